//! A value that takes long to compute: a cancel and a timeout end it, others on its core go on, and
//! what holds a core is seen.

use std::time::{Duration, Instant};

use crate::client::{Answer, Client};
use crate::server::Home;

/// Far above what a short statement takes, far below what the values take.
const SOON: Duration = Duration::from_secs(4);

/// The answer, and how long it took: of the first call that is not refused because values that were
/// given up have still to let go of their memory.
fn once_there_is_room(client: &mut Client, sql: &str) -> (Duration, Answer) {
    let first = Instant::now();
    loop {
        let began = Instant::now();
        let answer = client.query(sql).expect("an answer");
        if answer.code() != "53200" || first.elapsed() > 4 * SOON {
            return (began.elapsed(), answer);
        }
    }
}

#[test]
fn a_timeout_ends_a_long_value() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut client = server.connect();
    client.run("set statement_timeout = '300ms'");
    for value in [
        "md5(repeat('a', 400000000))",
        "('[' || repeat('1,', 20000000) || '1]')::jsonb",
        "replace(repeat('ab', 40000000), 'a', 'ccc')",
        "99999.123::numeric ^ 25000",
        "md5(repeat(random()::text, 20000000))",
        "(select count(*) from regexp_split_to_table(repeat('ab', 4000000), 'b'))",
    ] {
        let (took, answer) = once_there_is_room(&mut client, &format!("select {value}"));
        assert!(took < SOON, "{value}: {took:?}");
        // A fast machine may be done before.
        if answer.error().is_some() {
            assert_eq!(answer.code(), "57014", "{value}: {answer:?}");
        }
    }
    client.run("reset statement_timeout");
    let hashed = client.run("select md5(repeat('a', 200000))");
    assert_eq!(hashed.value(), "561b1994f6baacd6e5eaf4baaa12849f");
    let replace = "select length(replace(repeat('ab', 100000), 'a', 'ccc'))";
    let (_, replaced) = once_there_is_room(&mut client, replace);
    assert_eq!(replaced.value(), "400000");
    home.assert_no_panic();
}

#[test]
fn others_go_on_beside_a_long_value() {
    let home = Home::new();
    let server = home.serve(&["--cores", "0"]);
    let mut long = server.connect();
    let mut other = server.connect();
    long.start("select md5(repeat('a', 400000000))")
        .expect("sent");
    let mut slowest = Duration::ZERO;
    for _ in 0..50 {
        let began = Instant::now();
        assert_eq!(other.run("select 1").value(), "1");
        slowest = slowest.max(began.elapsed());
    }
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    long.cancel().expect("sent");
    let began = Instant::now();
    let answer = long.finish().expect("an answer");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert!(answer.error().is_none() || answer.code() == "57014");
    let short = "select count(*) from throng.stalls where held_ms < 10 or pid is null";
    assert_eq!(other.run(short).value(), "0");
    home.assert_no_panic();
}

/// Reading a long statement, and finding out what it means, is no reason for others to wait.
#[test]
fn others_go_on_beside_a_long_text() {
    let home = Home::new();
    let server = home.serve(&["--cores", "0"]);
    let mut long = server.connect();
    let mut other = server.connect();
    long.run("create table t (a int, b text)");
    let rows: Vec<String> = (0..200_000).map(|i| format!("({i}, 'v{i}')")).collect();
    let insert = format!("insert into t values {}", rows.join(", "));
    long.start(&insert).expect("sent");
    let (mut slowest, mut asked) = (Duration::ZERO, 0);
    let inserted = loop {
        if let Some(answer) = long.poll(Duration::ZERO).expect("a connection") {
            break answer;
        }
        let began = Instant::now();
        assert_eq!(other.run("select 1").value(), "1");
        slowest = slowest.max(began.elapsed());
        asked += 1;
    };
    assert_eq!(inserted.code(), "");
    assert!(
        asked > 10 && slowest < Duration::from_secs(1),
        "{asked} times, {slowest:?}"
    );
    assert_eq!(other.run("select sum(a) from t").value(), "19999900000");
    // A timeout ends that, too.
    long.run("set statement_timeout = '50ms'");
    let began = Instant::now();
    let answer = long.query(&insert).expect("an answer");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(answer.code(), "57014", "{answer:?}");
    home.assert_no_panic();
}

/// A value of hundreds of megabytes is written and read piece by piece, and its text is looked at
/// so.
#[test]
fn others_go_on_beside_a_stored_value() {
    let home = Home::new();
    let server = home.serve(&["--cores", "0"]);
    let mut client = server.connect();
    client.run("create table stored (a text)");
    let stores = "insert into stored select repeat('\u{e4}', 10000000)";
    let reads = "select a > 'b' from stored";
    let updates = "update stored set a = a || 'b'";
    for (what, sql) in [
        ("^insert", stores),
        ("^select a", reads),
        ("^update", updates),
    ] {
        client.run(sql);
        let began = Instant::now();
        let often = held(&mut client, what, 80);
        assert!(often < 2, "{what}: {often} times for more than 80 ms");
        assert!(began.elapsed() < SOON);
    }
    client.run("set statement_timeout = '20ms'");
    for sql in [stores, reads] {
        let answer = client.query(sql).expect("an answer");
        assert_eq!(answer.code(), "57014", "{sql}: {answer:?}");
    }
    home.assert_no_panic();
}

/// A client that does not read its answer keeps nobody from ending the statement, and finds what
/// was sent of it whole.
#[test]
fn a_client_that_does_not_read_is_not_waited_for() {
    let home = Home::new();
    let server = home.serve(&["--cores", "0"]);
    let mut other = server.connect();
    for sql in [
        "select repeat('x', 1000000) from generate_series(1, 100)",
        "select array_fill('xxxx'::text, array[10000]) from generate_series(1, 2000)",
        "copy (select repeat('x', 100000) from generate_series(1, 2000)) to stdout",
    ] {
        let (mut cancelled, mut timed, mut ended) =
            (server.connect(), server.connect(), server.connect());
        let pid = |client: &mut Client| client.run("select pg_backend_pid()").value().to_owned();
        let pids = [&mut cancelled, &mut timed, &mut ended].map(pid);
        timed.run("set statement_timeout = '300ms'");
        for client in [&mut cancelled, &mut timed, &mut ended] {
            client.start(sql).expect("sent");
        }
        let waits = |other: &mut Client, pid: &str| {
            let sql = format!(
                "select coalesce(max(state || coalesce(wait_event, '')), 'gone') from pg_stat_activity where pid = {pid}"
            );
            other.run(&sql).value().to_owned()
        };
        for pid in [&pids[0], &pids[2]] {
            let long = 15 * SOON;
            until(|| waits(&mut other, pid) == "activeClientWrite", long, sql);
        }
        cancelled.cancel().expect("sent");
        other.run(&format!("select pg_terminate_backend({})", pids[2]));
        until(
            || waits(&mut other, &pids[0]).starts_with("idle"),
            SOON,
            sql,
        );
        until(
            || waits(&mut other, &pids[1]).starts_with("idle"),
            SOON,
            sql,
        );
        until(|| waits(&mut other, &pids[2]) == "gone", SOON, sql);
        for client in [&mut cancelled, &mut timed] {
            let answer = client.finish().expect("an answer");
            assert_eq!(answer.code(), "57014", "{sql}");
            assert_eq!(client.run("select 1").value(), "1", "{sql}");
        }
    }
    home.assert_no_panic();
}

/// Asks until it is so.
fn until(mut is_so: impl FnMut() -> bool, within: Duration, what: &str) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < within, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What functions say is taken by the client at once, and still the loop that says it gives way to
/// others.
#[test]
fn others_go_on_beside_a_talkative_function() {
    let home = Home::new();
    let server = home.serve(&["--cores", "0"]);
    let mut talks = server.connect();
    talks.run("set statement_timeout = '2s'");
    let answer = talks
        .query("do $$begin loop raise notice 'x'; end loop; end$$")
        .expect("an answer");
    assert_eq!(answer.code(), "57014", "{answer:?}");
    let held = held(&mut talks, "raise notice", 10);
    // A busy machine takes the thread away now and then.
    assert!(held < 8, "{held} times for more than 10 ms");
    home.assert_no_panic();
}

/// A statement that calls a function for each row gives way between the calls, and so do calls
/// within calls.
#[test]
fn others_go_on_beside_many_calls() {
    let home = Home::new();
    let server = home.serve(&["--cores", "0"]);
    let mut calls = server.connect();
    calls.run(
        "create function counts(int) returns bigint language sql volatile as 'select count(*) from pg_class where oid > $1'",
    );
    calls.run("select sum(counts(g)) from generate_series(1, 500) g");
    let often = held(&mut calls, "sum.counts", 50);
    assert!(often < 4, "{often} times for more than 50 ms");
    calls.run(
        "create function deeper(int) returns int language plpgsql as \
         'begin if $1 = 0 then return 0; end if; return 1 + deeper($1 - 1); end'",
    );
    calls.run("select deeper(900)");
    let deep = held(&mut calls, "select deeper", 50);
    assert!(deep < 2, "{deep} times for more than 50 ms");
    home.assert_no_panic();
}

/// A comparison with each item of a long array is another thread's work, and so is a table of them.
#[test]
fn others_go_on_beside_comparisons_with_long_arrays() {
    let home = Home::new();
    let server = home.serve(&["--cores", "0"]);
    let mut client = server.connect();
    let array = "(array_fill(7, array[1000000]))";
    for (what, condition, rows) in [
        ("g < all", format!("g < all {array}"), "6"),
        ("g = any", format!("g = any {array}"), "1"),
        ("random", format!("g + random() * 0 < all {array}"), "6"),
        (
            "case when",
            format!("case when g < all {array} then true end"),
            "6",
        ),
    ] {
        let sql = format!("select count(*) from generate_series(1, 30) g where {condition}");
        assert_eq!(client.run(&sql).value(), rows, "{sql}");
        let often = held(&mut client, what, 50);
        assert!(often < 2, "{what}: {often} times for more than 50 ms");
    }
    home.assert_no_panic();
}

/// A transaction ends piece by piece: what it has opened, set, locked and made may be thousands of
/// things.
#[test]
fn others_go_on_beside_the_end_of_much() {
    let home = Home::new();
    let server = home.serve(&["--cores", "0"]);
    let mut client = server.connect();
    client.run("create table a (x int)");
    let opens = "do $$declare c refcursor; begin for i in 1..9000 loop c := null; \
                 open c for select * from a; end loop; end$$";
    let sets = "do $$begin for i in 1..50000 loop execute 'set my.v' || i || ' = 1'; \
                end loop; end$$";
    let makes = "do $$begin for i in 1..2000 loop execute 'create temp table t' || i || \
                 '(a int primary key)'; end loop; end$$";
    for (what, ends) in [(opens, "commit"), (opens, "rollback"), (sets, "rollback")] {
        end_in_turns(&mut client, what, ends);
    }
    end_in_turns(&mut client, makes, "rollback");
    assert_eq!(client.run("select count(*) from pg_cursors").value(), "0");
    home.assert_no_panic();
}

/// Half of an end that takes long is longer than any stretch of it.
fn end_in_turns(client: &mut Client, what: &str, ends: &str) {
    client.run("begin");
    client.run(what);
    // The marker tells this end from others.
    let began = Instant::now();
    client.run(&format!("{ends} /* {} */", what.len()));
    let taken = began.elapsed().as_millis() as u32;
    let most = (taken / 2).max(30);
    let often = held(client, &format!("^{ends} .. {} ", what.len()), most);
    assert_eq!(often, 0, "{ends} of {what}: more than {most} of {taken} ms");
}

/// How often statements like this held an event loop and computed for more than `ms`. Other tests
/// beside this one take its thread from its core, for longer than that.
fn held(client: &mut Client, like: &str, ms: u32) -> u32 {
    let sql = format!(
        "select count(*) from throng.stalls where cpu_ms > {ms} and statement ~ '{like}' \
         and statement !~ 'throng.stalls'"
    );
    client.run(&sql).value().parse().expect("a number")
}

/// A value that is small and makes much, or that is walked many times, is computed beside the loop
/// and given up when told.
#[test]
fn small_arguments_make_long_work() {
    let home = Home::new();
    let server = home.serve(&["--cores", "0"]);
    let mut client = server.connect();
    client.run("set statement_timeout = '300ms'");
    let walks = "select jsonb_path_exists((select jsonb_agg(g) from generate_series(1, 3000) g), '$[*] ? (@ == 0 || exists($[*] ? (@ == -1)))')";
    let fills = "select array_length(array_fill(1, array[20000000]), 1)";
    let spreads = "select jsonb_build_array(variadic array_fill(1, array[3000000])) is null";
    let varies = "select var_pop(n) is null from (select ('1' || repeat('7', 60000))::numeric n from generate_series(1, 9)) s";
    let alone = "select array_length((select array_agg(g) from generate_series(1, 400000) g), 1)";
    for statement in [walks, fills, spreads, varies, alone] {
        let began = Instant::now();
        let answer = client.query(statement).expect("an answer");
        assert!(began.elapsed() < SOON, "{statement}: {:?}", began.elapsed());
        let done = answer.error().is_none() || ["57014", "53200"].contains(&answer.code());
        assert!(done, "{statement}: {answer:?}");
        assert_eq!(held(&mut client, "", 200), 0, "{statement}");
    }
    home.assert_no_panic();
}
