//! What holds sessions up is named first by `throng.waits`, with what it is about and who has it:
//! each test plants one cause.

use std::time::{Duration, Instant};

use crate::client::{Address, Client, PATIENCE, Row};
use crate::server::{Home, Server};

const GLANCE: Duration = Duration::from_millis(5);

/// A row's values by the names of its columns, an empty text for NULL.
struct Found {
    columns: Vec<String>,
    row: Row,
}

impl Found {
    fn get(&self, column: &str) -> &str {
        let at = self.columns.iter().position(|c| c == column);
        let at = at.unwrap_or_else(|| panic!("no column {column}"));
        self.row[at].as_deref().unwrap_or_default()
    }

    fn number(&self, column: &str) -> f64 {
        self.get(column).parse().unwrap_or(0.0)
    }
}

fn rows(client: &mut Client, from: &str) -> Vec<Found> {
    let answer = client.run(&format!("select * from {from}"));
    let columns: Vec<String> = answer
        .parts
        .iter()
        .find_map(|part| match part {
            crate::client::AnswerPart::Columns(columns) => {
                Some(columns.iter().map(|c| c.name.clone()).collect())
            }
            _ => None,
        })
        .unwrap_or_else(|| panic!("no columns from {from}: {answer:?}"));
    answer
        .rows()
        .into_iter()
        .map(|row| Found {
            columns: columns.clone(),
            row: row.clone(),
        })
        .collect()
}

/// The first row of `throng.waits`.
fn greatest(client: &mut Client) -> Found {
    rows(client, "throng.waits")
        .into_iter()
        .next()
        .expect("something was waited for")
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
    }
}

fn finish(client: &mut Client) {
    until("an answer", || match client.poll(GLANCE) {
        Ok(Some(answer)) => {
            assert!(answer.error().is_none(), "{:?}", answer.error());
            true
        }
        Ok(None) => false,
        Err(e) => panic!("no answer: {e}"),
    });
}

#[test]
fn a_long_row_lock() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut monitor = server.connect();
    monitor.run("create table stock (id int primary key, n int)");
    monitor.run("insert into stock select g, 0 from generate_series(1, 10) g");
    monitor.run("select throng_reset_waits()");

    let (mut holder, mut first, mut second) =
        (server.connect(), server.connect(), server.connect());
    let update = "update stock set n = n + 1 where id = 3";
    holder.run("begin");
    holder.run(update);
    first.start(update).expect("sent");
    let pid_of = |client: &Client| client.pid.to_string();
    let (holder_pid, first_pid, second_pid) = (pid_of(&holder), pid_of(&first), pid_of(&second));
    let of = |monitor: &mut Client, pid: &str| {
        let all = rows(monitor, "throng.waiting_now");
        all.into_iter().find(|row| row.get("pid") == pid)
    };
    until("the first waits", || of(&mut monitor, &first_pid).is_some());
    second.start(update).expect("sent");
    // Long enough to be the greatest hold-up for certain.
    until("they wait for long", || {
        of(&mut monitor, &second_pid).is_some_and(|row| row.number("waited_ms") > 300.0)
    });

    let row = "row (0,3) of table stock";
    let now = of(&mut monitor, &first_pid).expect("waits");
    assert_eq!(now.get("wait_event"), "transactionid");
    assert_eq!(now.get("object"), row);
    assert_eq!(now.get("holders"), format!("{{{holder_pid}}}"));
    assert_eq!(now.get("root_blocker"), holder_pid);
    assert_eq!(now.get("blocker_state"), "idle in transaction");
    assert_eq!(now.get("blocker_runs"), update);
    assert!(now.get("remedy").contains(&holder_pid));
    let now = of(&mut monitor, &second_pid).expect("waits");
    assert_eq!((now.get("wait_event"), now.get("object")), ("tuple", row));
    assert_eq!(now.get("holders"), format!("{{{first_pid}}}"));
    assert_eq!(now.get("root_blocker"), holder_pid);
    let seen = monitor.run(&format!(
        "select wait_event_type || ':' || wait_event from pg_stat_activity where pid = {first_pid}"
    ));
    assert_eq!(seen.value(), "Lock:transactionid");
    let seen = monitor.run(&format!(
        "select wait_event_type || ':' || wait_event from pg_stat_activity where pid = {holder_pid}"
    ));
    assert_eq!(seen.value(), "Client:ClientRead");

    holder.run("commit");
    finish(&mut first);
    finish(&mut second);
    let worst = greatest(&mut monitor);
    assert_eq!(worst.get("wait_event_type"), "Lock");
    assert_eq!(worst.get("object"), row);
    assert_eq!(worst.get("holder"), holder_pid);
    assert!(worst.number("max_ms") > 300.0);
    assert!(worst.get("remedy").contains("transaction"));
    assert!(rows(&mut monitor, "throng.waiting_now").is_empty());
    home.assert_no_panic();
}

#[test]
fn a_hot_latch() {
    let home = Home::new();
    let server = home.serve(&["--cores", "0,1", "--set", "lab_latch_hold_us=3000"]);
    // Those that come by a Unix socket are dealt to the cores in turn.
    let socket = format!(".s.PGSQL.{}", server.port());
    let socket = Address::Unix(home.sockets().join(socket));
    let connect = || Client::connect(&socket).expect("connected");
    let mut monitor = connect();
    monitor.run("create table counters (id int primary key, n int)");
    monitor.run("insert into counters values (1, 0), (2, 0)");
    // Two sessions on two cores change rows of one page, each its own.
    let (mut one, mut other) = (connect(), connect());
    monitor.run("select throng_reset_waits()");
    let updates = |id| format!("update counters set n = n + 1 where id = {id};").repeat(40);
    one.start(&updates(1)).expect("sent");
    other.start(&updates(2)).expect("sent");
    finish(&mut one);
    finish(&mut other);

    let worst = greatest(&mut monitor);
    assert_eq!(worst.get("wait_event_type"), "LWLock");
    assert!(worst.get("wait_event").starts_with("BufferContent"));
    assert_eq!(worst.get("object"), "table counters, block 0");
    let holder: i32 = worst.get("holder").parse().expect("a session");
    assert!([one.pid, other.pid].contains(&holder), "{holder}");
    assert!(worst.get("holder_runs").starts_with("update counters"));
    assert!(worst.get("remedy").contains("page"));
    home.assert_no_panic();
}

/// A table of a page for each two rows.
fn make_wide(client: &mut Client, rows: u32) {
    client.run("create table wide (id int primary key, filler text)");
    client.run(&format!(
        "insert into wide select g, repeat(md5(g::text), 110) from generate_series(1, {rows}) g"
    ));
    client.run("checkpoint");
}

fn read_each(client: &mut Client, ids: impl Iterator<Item = u32>) {
    for id in ids {
        let answer = client.run(&format!("select length(filler) from wide where id = {id}"));
        assert_eq!(answer.value(), "3520");
    }
}

#[test]
fn a_slow_disk() {
    let home = Home::new();
    let server = home.serve(&[]);
    make_wide(&mut server.connect(), 120);
    server.stop();

    let server = home.serve(&["--set", "lab_slow_disk_us=8000"]);
    let mut client = server.connect();
    client.run("select throng_reset_waits()");
    read_each(&mut client, (1..60).step_by(2));
    let worst = greatest(&mut client);
    assert_eq!(worst.get("wait_event"), "DataFileRead");
    assert_eq!(worst.get("object"), "table wide");
    assert!(worst.get("holder_runs").starts_with("page-reader"));
    assert!(worst.number("p50_us") > 8000.0);
    assert!(worst.get("remedy").starts_with("The disk takes"));

    client.run("create table log (id int)");
    client.run("select throng_reset_waits()");
    for id in 0..5 {
        client.run(&format!("insert into log values ({id})"));
    }
    let worst = greatest(&mut client);
    assert_eq!(worst.get("wait_event"), "WalFlush");
    assert_eq!(worst.get("object"), "the write-ahead log");
    assert!(worst.get("holder_runs").starts_with("wal-flusher"));
    assert!(worst.get("remedy").starts_with("The disk takes"));
    home.assert_no_panic();
}

/// Reads pages of `wide` in turn, never one twice within what a pool of 1 MB holds.
fn starve(server: &Server) -> Client {
    let mut client = server.connect();
    make_wide(&mut client, 600);
    client.run("select throng_reset_waits()");
    read_each(&mut client, (0..400).map(|i| 1 + i * 37 % 600));
    client
}

fn assert_names_the_pool(row: &Found) {
    assert_eq!(row.get("wait_event"), "DataFileRead");
    assert_eq!(row.get("object"), "table wide");
    let remedy = row.get("remedy");
    assert!(remedy.contains("shared_buffers = 1MB"), "{remedy}");
}

#[test]
fn a_starved_pool() {
    let home = Home::new();
    let server = home.serve(&["--memory", "1MB", "--set", "lab_slow_disk_us=300"]);
    let worst = greatest(&mut starve(&server));
    assert_names_the_pool(&worst);
    assert!(worst.get("holder_runs").starts_with("page-reader"));
    home.assert_no_panic();
}

/// Pages that the system has in its cache are read by the session that misses them: quickly, and
/// yet not unseen.
#[test]
fn a_starved_pool_beside_a_large_cache() {
    let home = Home::new();
    let server = home.serve(&["--memory", "1MB"]);
    let mut client = starve(&server);
    let mut all = rows(&mut client, "throng.waits").into_iter();
    let reads =
        |row: &Found| row.get("wait_event") == "DataFileRead" && row.get("waiter") == "session";
    let read = all.find(reads).expect("reads");
    assert_names_the_pool(&read);
    assert!(read.number("count") > 100.0);
    home.assert_no_panic();
}

#[test]
fn nothing_is_recorded_when_not_asked_for() {
    let home = Home::new();
    let server = home.serve(&["--set", "track_waits=off"]);
    let mut client = server.connect();
    client.run("create table log (id int)");
    client.run("insert into log values (1)");
    assert!(rows(&mut client, "throng.waits").is_empty());
    let mut sleeper = server.connect();
    sleeper.start("select pg_sleep(60)").expect("sent");
    // What a session waits for now is always shown.
    until("it sleeps", || {
        let asks = format!(
            "select coalesce(wait_event, '') from pg_stat_activity where pid = {}",
            sleeper.pid
        );
        client.run(&asks).value() == "PgSleep"
    });
    client.run("create role reader login");
    client.run("set role reader");
    let refused = client
        .query("select throng_reset_waits()")
        .expect("answered");
    assert_eq!(refused.code(), "42501");
    home.assert_no_panic();
}

#[test]
fn what_happens_is_counted() {
    let home = Home::new();
    let server = home.serve(&["--set", "deadlock_timeout=10", "--set", "autovacuum=off"]);
    let mut monitor = server.connect();
    monitor.run("create database aside");
    monitor.run("create table pair (id int primary key, n int)");
    monitor.run("insert into pair values (1, 0), (2, 0)");
    fn counted(monitor: &mut Client, counter: &str) -> f64 {
        let mut all = rows(monitor, "throng.counters").into_iter();
        let row = all.find(|row| row.get("counter") == counter);
        row.expect("a counter").number("count")
    }
    /// Transactions committed and rolled back.
    fn ended(monitor: &mut Client, database: &str) -> (f64, f64) {
        let mut all = rows(monitor, "pg_stat_database").into_iter();
        let row = all.find(|row| row.get("datname") == database);
        let row = row.expect("a database");
        (row.number("xact_commit"), row.number("xact_rollback"))
    }
    fn statistic(monitor: &mut Client, view: &str, column: &str) -> f64 {
        rows(monitor, view)[0].number(column)
    }
    let checkpoints = ["num_requested", "num_done"];
    let made = checkpoints.map(|which| statistic(&mut monitor, "pg_stat_checkpointer", which));
    let logged = statistic(&mut monitor, "pg_stat_wal", "wal_bytes");
    let work = ["blks_hit", "wal_records", "wal_bytes", "wal_sync"];
    let before = work.map(|which| counted(&mut monitor, which));
    assert_eq!(counted(&mut monitor, "deadlocks"), 0.0);
    let (mut one, mut other) = (server.connect(), server.connect());
    let aside = ended(&mut monitor, "aside");
    let start = ended(&mut monitor, "postgres");

    let update = |id: u32| format!("update pair set n = n + 1 where id = {id}");
    for (client, id) in [(&mut one, 1), (&mut other, 2)] {
        client.run("begin");
        client.run(&update(id));
    }
    one.start(&update(2)).expect("sent");
    let answers = [other.query(&update(1)), one.finish()].map(|a| a.expect("an answer"));
    let mut codes = answers.each_ref().map(|a| a.code());
    codes.sort_unstable();
    assert_eq!(codes, ["", "40P01"], "one of the two gives up");
    for client in [&mut one, &mut other] {
        client.run("commit");
    }
    for failing in ["select 1 / 0", "select * from nowhere"] {
        assert_ne!(one.query(failing).expect("an answer").code(), "");
    }

    // The one who asks has asked in a transaction of its own.
    let end = ended(&mut monitor, "postgres");
    assert_eq!(end, (start.0 + 2.0, start.1 + 3.0));
    assert_eq!(ended(&mut monitor, "aside"), aside);
    assert_eq!(counted(&mut monitor, "deadlocks"), 1.0);
    for (which, before) in work.iter().zip(before) {
        assert!(counted(&mut monitor, which) > before, "{which}");
    }
    monitor.run("checkpoint");
    for (which, before) in checkpoints.iter().zip(made) {
        let now = statistic(&mut monitor, "pg_stat_checkpointer", which);
        assert!(now > before, "{which}");
    }
    assert!(statistic(&mut monitor, "pg_stat_wal", "wal_bytes") > logged);
    assert!(statistic(&mut monitor, "pg_stat_bgwriter", "buffers_alloc") > 0.0);
    home.assert_no_panic();
}
