//! A table used as a queue: the look at its head costs the same however many rows have gone before.

use rand::{Rng, SeedableRng};

use crate::client::Client;
use crate::server::Home;

/// Rows that come and go.
const POPS: usize = 1_200;
const LOOKS: u64 = 40;

fn pages_read(client: &mut Client) -> u64 {
    let sql = "select count from throng.counters where counter = 'blks_hit'";
    client.run(sql).value().parse().expect("a number")
}

/// Pages that one statement looks at.
fn pages_of(client: &mut Client, sql: &str) -> u64 {
    client.run(sql);
    let before = pages_read(client);
    for _ in 0..LOOKS {
        client.run(sql);
    }
    (pages_read(client) - before) / LOOKS
}

/// Rows that go by DELETE, by a change of the indexed column, and by a rollback; found from either
/// end, in any isolation.
#[test]
fn the_head_of_a_queue_costs_the_same_at_any_time() {
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum=off"]);
    let mut client = server.connect();
    client.run("create table q (id bigserial primary key, state text default 'n', rank int)");
    client.run("create index on q (state, id)");
    client.run("create index on q (rank)");
    client.run("insert into q (rank) select -i from generate_series(1, 100) i");
    client.run("analyze q");
    let head = "select id from q where state = 'n' order by id limit 1";
    let looks = [
        head,
        "select id from q order by id limit 1",
        "select min(id) from q",
        "select rank from q order by rank desc limit 1",
        "select count(*) from q where state = 'n' and id < 100",
    ];
    let first = looks.map(|sql| pages_of(&mut client, sql));
    for n in 0..POPS {
        let pop = match n % 3 {
            0 => "delete from q where id",
            _ => "update q set state = 'd', rank = -1000000 where id",
        };
        client.run(&format!("{pop} = ({head} for update skip locked)"));
        client.run("insert into q (rank) select min(rank) - 1 from q where rank > -1000000");
        client.run("delete from q where state = 'd'");
        if n % 5 == 0 {
            client.run("begin; insert into q (rank) values (0); rollback");
        }
    }
    let answers = looks.map(|sql| client.run(sql).value().to_owned());
    for (sql, first) in looks.into_iter().zip(first) {
        let now = pages_of(&mut client, sql);
        assert!(now < first + 60, "{sql}: {first} pages at first, now {now}");
    }
    client.run("set default_transaction_isolation = serializable");
    assert!(pages_of(&mut client, head) < first[0] + 100);
    client.run("reset default_transaction_isolation");
    // What was passed over was nobody's.
    client.run("vacuum q");
    assert_eq!(looks.map(|sql| client.run(sql).value().to_owned()), answers);
    assert!(server.stop().success());
    home.check();
}

/// An index whose dead entries were marked does not grow with the rows that have gone.
#[test]
fn an_index_takes_marked_entries_out_before_it_grows() {
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum=off"]);
    let mut client = server.connect();
    client.run("create table t (id int primary key, k text)");
    client.run("create index t_k on t (k)");
    client.run("insert into t values (1, 'a')");
    client.run("set enable_seqscan = off");
    for n in 0..1_500 {
        let k = if n % 2 == 0 {
            "repeat('b', 100)"
        } else {
            "repeat('a', 100)"
        };
        client.run(&format!("update t set k = {k} where id = 1"));
        assert_eq!(
            client.run("select count(*) from t where k >= 'a'").value(),
            "1"
        );
    }
    let blocks = client.run("select pg_relation_size('t_k') / 8192");
    let blocks: u64 = blocks.value().parse().expect("a number");
    assert!(blocks <= 4, "{blocks} blocks");
    assert_eq!(
        client.run("select left(k, 1) from t where id = 1").value(),
        "a"
    );
    assert!(server.stop().success());
    home.check();
}

/// While an old snapshot shows the rows, their entries are not marked, and it finds them.
#[test]
fn an_old_snapshot_finds_what_has_gone_since() {
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum=off"]);
    let (mut old, mut client) = (server.connect(), server.connect());
    client.run("create table q (id int primary key)");
    client.run("insert into q select generate_series(1, 500)");
    old.run("begin isolation level repeatable read");
    assert_eq!(old.run("select count(*) from q").value(), "500");
    client.run("delete from q where id <= 400");
    let head = "select id from q order by id limit 1";
    for _ in 0..5 {
        assert_eq!(client.run(head).value(), "401");
    }
    assert_eq!(old.run(head).value(), "1");
    let below = "select count(*) from (select id from q where id < 402 order by id offset 0) s";
    assert_eq!(old.run(below).value(), "401");
    old.run("commit");
    assert_eq!(old.run(head).value(), "401");
    // A rollback brings back what was looked at while it was gone.
    client.run("begin; delete from q where id < 450");
    assert_eq!(client.run(head).value(), "450");
    assert_eq!(old.run(head).value(), "401");
    client.run("rollback");
    assert_eq!(client.run(head).value(), "401");
    assert_eq!(old.run(below).value(), "1");
}

/// Changes of all kinds in transactions side by side, beside snapshots of all ages: by the indexes
/// everybody finds what the table has for him.
#[test]
fn indexes_and_table_agree_for_every_snapshot() {
    const KEYS: i32 = 40;
    const SESSIONS: usize = 4;
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum_naptime=1"]);
    let mut dice = rand::rngs::StdRng::seed_from_u64(11);
    let mut sessions: Vec<(Client, bool)> =
        (0..SESSIONS).map(|_| (server.connect(), false)).collect();
    let client = &mut sessions[0].0;
    client.run(
        "create table t (id int primary key, k int, v int, filler text default repeat('x', 90))",
    );
    client.run("create index on t (k)");
    client.run(&format!(
        "insert into t select i, i, 0 from generate_series(0, {KEYS} - 1) i"
    ));
    let mut compared = 0;
    for step in 0..2_500 {
        let at = dice.random_range(0..SESSIONS);
        let (client, is_open) = &mut sessions[at];
        // One row for each session: nobody waits for a lock.
        let id = dice.random_range(0..KEYS / 4) * 4 + at as i32;
        let sql = match dice.random_range(0..16) {
            0..4 => format!("update t set v = v + 1 where id = {id}"),
            4..8 => format!(
                "update t set k = {} where id = {id}",
                dice.random_range(0..1000)
            ),
            8 => format!("delete from t where id = {id}"),
            9 => format!("insert into t values ({id}, {id}, 0) on conflict do nothing"),
            10 if !*is_open => {
                *is_open = true;
                let level = ["read committed", "repeatable read"][dice.random_range(0..2)];
                format!("begin isolation level {level}")
            }
            10 => "savepoint s".to_owned(),
            11 if *is_open => {
                *is_open = false;
                ["commit", "rollback"][dice.random_range(0..2)].to_owned()
            }
            _ => {
                let from = dice.random_range(0..1000);
                let mut rows = |condition: &str, seqscan: &str| {
                    client.run(&format!("set enable_seqscan = {seqscan}"));
                    let sql = format!("select id, k, v from t where {condition} order by k, id");
                    let answer = client.run(&sql);
                    answer.rows().into_iter().cloned().collect::<Vec<_>>()
                };
                let by_index = rows(&format!("k >= {from}"), "off");
                let by_table = rows(&format!("k + 0 >= {from}"), "on");
                assert_eq!(by_index, by_table, "step {step}");
                compared += by_table.len();
                let by_index = rows(&format!("id = {id}"), "off");
                let by_table = rows(&format!("id + 0 = {id}"), "on");
                assert_eq!(by_index, by_table, "step {step}");
                continue;
            }
        };
        client.run(&sql);
    }
    assert!(compared > 3_000, "{compared} rows were compared");
    drop(sessions);
    assert!(server.stop().success());
    home.check();
}
