//! Kill -9 under load, again and again: what was acknowledged is there, what was not is there whole
//! or not at all.
//!
//! Money that goes round, tables that come and go; sequences, upserts, definitions and large values
//! in [`kinds`], a queue in [`queue`], rooms that are booked in [`bookings`].
//!
//! `THRONG_CRASHES` says how many times (3). When to kill is counted in acknowledged commits, not
//! in time, so a slow machine crashes in as many different places as a fast one.

mod bookings;
mod kinds;
mod queue;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::Rng;

use crate::client::{Address, AnswerPart, Client};
use crate::server::{Home, Server};

const ACCOUNTS: i64 = 200;
const OPENING_BALANCE: i64 = 1_000;
const WRITERS: usize = 8;
/// One that makes tables, one that makes documents, two with sequences, three that count, two at
/// the queue, three that book rooms.
const OTHERS: usize = 12;
/// Few pages, so that dirty ones are written out and read back during the load.
const SMALL_POOL: &[&str] = &["--memory", "4MB", "--set", "checkpoint_timeout=30s"];

/// What the clients were told.
#[derive(Default)]
struct Acknowledged {
    transfers: Mutex<BTreeSet<i64>>,
    tables: Mutex<BTreeSet<i64>>,
    kinds: kinds::Told,
    queue: queue::Told,
    count: AtomicUsize,
}

fn crashes() -> usize {
    std::env::var("THRONG_CRASHES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(3)
}

fn set_up(client: &mut Client) {
    kinds::set_up(client);
    queue::set_up(client);
    bookings::set_up(client);
    client
        .run("create table account (id bigint primary key, balance bigint not null, filler text)");
    client.run(
        "create table transfer (id bigint primary key, source bigint not null references account, \
         target bigint not null references account, amount bigint not null, note text, \
         both_sides bigint[])",
    );
    client.run("create index on transfer (source)");
    client.run("create index on transfer using gin (both_sides)");
    client.run(&format!(
        "insert into account select i, {OPENING_BALANCE}, repeat('x', 200) from generate_series(1, {ACCOUNTS}) i"
    ));
}

/// Moves money until the server is gone. Some transfers are one message, some a conversation, some
/// go through a savepoint that is rolled back; some notes are long enough to live outside their
/// row.
fn transfers(address: &Address, ids: &AtomicUsize, told: &Acknowledged) -> std::io::Result<()> {
    let mut client = Client::connect(address)?;
    let mut random = rand::rng();
    loop {
        let id = ids.fetch_add(1, Ordering::Relaxed) as i64;
        let source = random.random_range(1..=ACCOUNTS);
        let target = random.random_range(1..=ACCOUNTS);
        let amount = random.random_range(1..100);
        let length = if id % 16 == 0 { 20_000 } else { 20 };
        let (first, second) = (source.min(target), source.max(target));
        let sign = |account| i64::from(account == target) - i64::from(account == source);
        let mut statements: Vec<String> = [first, second]
            .iter()
            .map(|&account| {
                let change = amount * sign(account);
                format!("update account set balance = balance + ({change}) where id = {account}")
            })
            .collect();
        if source == target {
            statements.pop();
        }
        statements.push(format!(
            "insert into transfer values ({id}, {source}, {target}, {amount}, repeat('n', {length}), \
             array[{source}, {target}])"
        ));
        if id % 3 == 0 {
            statements.push("savepoint undone".to_owned());
            statements.push(
                "update account set balance = 0".to_owned() + &format!(" where id = {first}"),
            );
            statements.push("rollback to undone".to_owned());
        }
        let done = if id % 2 == 0 {
            client.query(&format!("begin; {}; commit", statements.join("; ")))?
        } else {
            client.query("begin")?;
            for statement in &statements {
                client.query(statement)?;
            }
            client.query("commit")?
        };
        if done.closed() {
            return Ok(());
        }
        assert!(done.error().is_none(), "transfer {id}: {:?}", done.parts);
        // An error on the way makes COMMIT a rollback.
        let committed = done
            .parts
            .contains(&AnswerPart::Complete("COMMIT".to_owned()));
        assert!(committed, "transfer {id}: {:?}", done.parts);
        told.transfers.lock().expect("not poisoned").insert(id);
        told.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes tables, each with as many rows as its name says, and drops every second of them again.
fn tables(address: &Address, ids: &AtomicUsize, told: &Acknowledged) -> std::io::Result<()> {
    let mut client = Client::connect(address)?;
    loop {
        let id = ids.fetch_add(1, Ordering::Relaxed) as i64;
        let made = client.query(&format!(
            "begin; create table made_{id} (n int primary key); \
             insert into made_{id} select generate_series(1, 50); commit"
        ))?;
        if made.closed() {
            return Ok(());
        }
        assert!(made.error().is_none(), "table {id}: {:?}", made.parts);
        if id % 2 == 0 {
            let dropped = client.query(&format!("drop table made_{id}"))?;
            if dropped.closed() {
                return Ok(());
            }
            assert!(dropped.error().is_none(), "table {id}: {:?}", dropped.parts);
        } else {
            told.tables.lock().expect("not poisoned").insert(id);
        }
    }
}

/// Runs the load until `commits` more were acknowledged, then kills the server under it.
fn load_and_kill(server: Server, ids: &AtomicUsize, told: &Acknowledged, commits: usize) {
    let address = server.address();
    let goal = told.count.load(Ordering::Relaxed) + commits;
    let ended = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS + OTHERS {
            let (address, ended) = (&address, &ended);
            scope.spawn(move || {
                // An error of the connection is the end that is expected; a wrong answer panics.
                let _ended = Ended(ended);
                let _ = match writer {
                    0 => tables(address, ids, told),
                    1 => kinds::documents(address, &told.kinds, ids),
                    2..4 => kinds::sequences(address, &told.kinds),
                    4..7 => kinds::upserts(address, &told.kinds),
                    7..9 => queue::work(address, &told.queue, ids),
                    9..12 => bookings::work(address),
                    _ => transfers(address, ids, told),
                };
            });
        }
        while told.count.load(Ordering::Relaxed) < goal && ended.load(Ordering::Relaxed) == 0 {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        server.kill();
    });
}

/// Counts a writer that has ended, by a panic or otherwise.
struct Ended<'a>(&'a AtomicUsize);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn ids_of(client: &mut Client, sql: &str) -> BTreeSet<i64> {
    let answer = client.run(sql);
    answer
        .rows()
        .iter()
        .map(|row| {
            row[0]
                .as_deref()
                .and_then(|v| v.parse().ok())
                .expect("an id")
        })
        .collect()
}

/// The whole bank, after a restart.
fn inspect(client: &mut Client, told: &Acknowledged) {
    kinds::inspect(client, &told.kinds);
    queue::inspect(client, &told.queue);
    bookings::inspect(client);
    let sum = client.run("select sum(balance) from account");
    assert_eq!(
        sum.value(),
        (ACCOUNTS * OPENING_BALANCE).to_string(),
        "money appeared or vanished"
    );

    let wrong = client.run(&format!(
        "select a.id, a.balance from account a where a.balance <> {OPENING_BALANCE} \
         + coalesce((select sum(amount) from transfer where target = a.id), 0) \
         - coalesce((select sum(amount) from transfer where source = a.id), 0)"
    ));
    assert!(
        wrong.rows().is_empty(),
        "balances without their transfers: {:?}",
        wrong.rows()
    );

    let there = ids_of(client, "select id from transfer");
    let told_transfers = told.transfers.lock().expect("not poisoned");
    let lost: Vec<_> = told_transfers.difference(&there).collect();
    assert!(
        lost.is_empty(),
        "acknowledged transfers are missing: {lost:?}"
    );

    let by_index =
        client.run("set enable_seqscan = off; select count(*) from transfer where source > 0");
    assert_eq!(
        by_index.value(),
        there.len().to_string(),
        "index and table differ"
    );
    let inverted = client.run(
        "select count(*) from generate_series(1::bigint, 9) a where \
         (select count(*) from transfer where both_sides @> array[a]) \
         <> (select count(*) from transfer t where t.source = a or t.target = a)",
    );
    assert_eq!(inverted.value(), "0", "inverted index and table differ");
    let notes = client.run("select count(*) from transfer where length(note) not in (20, 20000)");
    assert_eq!(notes.value(), "0", "long values are damaged");

    for id in told.tables.lock().expect("not poisoned").iter() {
        let rows = client.run(&format!("select count(*) from made_{id}"));
        assert_eq!(rows.value(), "50", "made_{id}");
    }
    client.run("reset enable_seqscan");
}

#[test]
fn acknowledged_commits_survive_kill() {
    let home = Home::new();
    let server = home.serve(SMALL_POOL);
    set_up(&mut server.connect());
    let (ids, told) = (AtomicUsize::new(1), Acknowledged::default());
    let mut running = server;
    for round in 0..crashes() {
        let commits = rand::rng().random_range(50..800);
        load_and_kill(running, &ids, &told, commits);
        if round % 2 == 1 {
            garbage_after_the_log(&home);
        }
        running = home.serve(SMALL_POOL);
        assert!(
            running.startup < Duration::from_secs(10),
            "round {round}: restart took {:?}",
            running.startup
        );
        inspect(&mut running.connect(), &told);
    }
    assert!(running.stop().success());
    home.assert_no_panic();
    home.check();
    // A clean stop leaves nothing to redo, and what is there is the same.
    let server = home.serve(SMALL_POOL);
    inspect(&mut server.connect(), &told);
}

/// Writes noise where the next log record would have gone: a torn write of a record that nobody was
/// told about.
///
/// A record begins with its length, its checksum and its own place in the stream of all segments
/// (little endian, 4, 4 and 8 bytes), and a segment's name is its place in hexadecimal: so the last
/// record is found from behind.
fn garbage_after_the_log(home: &Home) {
    let mut segments: Vec<PathBuf> = std::fs::read_dir(home.data().join("wal"))
        .expect("a log")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    segments.sort();
    let last_record = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        let start = u64::from_str_radix(name, 16).ok()?;
        let bytes = std::fs::read(path).expect("a segment");
        let at = bytes
            .windows(16)
            .enumerate()
            .rev()
            .find_map(|(at, header)| {
                let place = u64::from_le_bytes(header[8..].try_into().expect("eight bytes"));
                (place == start + at as u64 && place != 0).then_some(at)
            })?;
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        Some((bytes, at + length as usize))
    };
    // Segments laid out in advance hold no record yet.
    let (path, (mut bytes, end)) = segments
        .iter()
        .rev()
        .find_map(|path| Some((path, last_record(path)?)))
        .expect("a record");
    if end >= bytes.len() {
        return;
    }
    let until = bytes.len().min(end + 4096);
    rand::rng().fill(&mut bytes[end..until]);
    std::fs::write(path, bytes).expect("written");
}
