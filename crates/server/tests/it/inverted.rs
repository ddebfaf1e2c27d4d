//! Inverted indexes find what a scan of the table finds: for all conditions, for every snapshot,
//! beside writers and vacuum.

use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::client::Client;
use crate::server::Home;

const KEYS: i32 = 12;

fn set_up(client: &mut Client) {
    client.run(
        "create table t (id int primary key, a int[], s text[], doc jsonb, n int, \
         filler text default repeat('x', 60))",
    );
    client.run("create index t_a on t using gin (a)");
    client.run("create index t_two on t using gin (s, a)");
    client.run("create index t_doc on t using gin (doc)");
    client.run("create index t_ways on t using gin (doc jsonb_path_ops)");
    client.run("create index t_some on t using gin (a) where n > 5");
    client.run("create index t_made on t using gin ((array[n, n % 3]))");
    client.run("create index t_n on t (n)");
}

fn one_in(dice: &mut StdRng, n: u32) -> bool {
    dice.random_range(0..n) == 0
}

/// An array of few different values; NULLs, empty ones, and NULL itself among them.
fn array(dice: &mut StdRng, nulls: bool) -> String {
    if nulls && one_in(dice, 12) {
        return "null".to_owned();
    }
    let items: Vec<String> = (0..dice.random_range(0..5))
        .map(|_| match nulls && one_in(dice, 8) {
            true => "NULL".to_owned(),
            false => dice.random_range(0..KEYS).to_string(),
        })
        .collect();
    format!("'{{{}}}'", items.join(","))
}

fn json(dice: &mut StdRng, depth: u32) -> String {
    let kind = if depth == 0 { 4 } else { 7 };
    match dice.random_range(0..kind) {
        0 => dice.random_range(0..KEYS).to_string(),
        1 => format!("\"k{}\"", dice.random_range(0..KEYS)),
        2 => "null".to_owned(),
        3 => ["true", "false"][dice.random_range(0..2)].to_owned(),
        4 => {
            let items = (0..dice.random_range(0..4)).map(|_| json(dice, depth - 1));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        _ => {
            let members = (0..dice.random_range(0..4)).map(|_| {
                let key = dice.random_range(0..KEYS / 2);
                format!("\"k{key}\":{}", json(dice, depth - 1))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
    }
}

fn path(dice: &mut StdRng) -> String {
    let steps = [
        "k0", "k1", "k2", "k3", "*", "k1[*]", "k2[0]", "**.k1", "*.k3",
    ];
    let mut step = || steps[dice.random_range(0..steps.len())];
    let (first, second, third) = (step(), step(), step());
    let value = match dice.random_range(0..4) {
        0 => "null".to_owned(),
        1 => format!("\"k{}\"", dice.random_range(0..KEYS)),
        2 => "true".to_owned(),
        _ => dice.random_range(0..KEYS).to_string(),
    };
    match dice.random_range(0..9) {
        0 => format!("$.{first}"),
        1 => format!("$.{first}.{second}"),
        2 => format!("$.{first} ? (@ == {value})"),
        3 => format!("$ ? (@.{first} == {value} || exists(@.{second}.{third}))"),
        4 => format!("$.{first} ? (@.{second} == {value} && @.{third} != {value})"),
        5 => format!("$.{first} ? (!(@ == {value}))"),
        6 => format!("strict $.{first}"),
        7 => format!("$.{first}.size() ? (@ > 1)"),
        _ => format!("$.{first} ? (@ starts with \"k\" && $.{second} == {value})"),
    }
}

/// What is asked of a row: the operators of all classes, alone and together.
fn condition(dice: &mut StdRng) -> String {
    let one = |dice: &mut StdRng| {
        let operator = ["@>", "<@", "&&", "="][dice.random_range(0..4)];
        let key = dice.random_range(0..KEYS);
        match dice.random_range(0..13) {
            0 => format!("a {operator} {}", array(dice, false)),
            1 => format!("a {operator} {}", array(dice, true)),
            2 => format!("s {operator} {}", array(dice, true)),
            3 => format!("array[n, n % 3] {operator} {}", array(dice, false)),
            4 => format!("{}::int[] <@ a", array(dice, false)),
            5 => format!("doc @> '{}'", json(dice, 2)),
            6 => format!("doc ? 'k{key}'"),
            7 => format!("doc ?| array['k{key}', 'k{}', null]", (key + 1) % KEYS),
            8 => format!("doc ?& array['k{}', 'k{}']", key % 4, (key + 1) % 4),
            9 => format!("doc @? '{}'", path(dice)),
            10 => format!("doc @@ '$.k{} == {key}'", key % 4),
            11 => format!("n > 5 and a {operator} {}", array(dice, false)),
            _ => format!("n = {key}"),
        }
    };
    let first = one(dice);
    match dice.random_range(0..6) {
        0 => format!("{first} and {}", one(dice)),
        1 => format!("({first}) or ({})", one(dice)),
        2 => format!("(({first}) or ({})) and {}", one(dice), one(dice)),
        _ => first,
    }
}

fn row(dice: &mut StdRng, id: i32) -> String {
    let n = match one_in(dice, 10) {
        true => "null".to_owned(),
        false => dice.random_range(0..KEYS).to_string(),
    };
    let doc = match one_in(dice, 12) {
        true => "null".to_owned(),
        false => format!("'{}'", json(dice, 3)),
    };
    let (a, s) = (array(dice, true), array(dice, true));
    format!("({id}, {a}, {s}, {doc}, {n})")
}

/// Compares what is found by indexes with what a scan of the table finds; how many rows.
fn compare(client: &mut Client, condition: &str) -> usize {
    let sql = format!("select id from t where {condition} order by id");
    let mut found = |seqscan: &str, bitmapscan: &str| {
        client.run(&format!("set enable_seqscan = {seqscan}"));
        client.run(&format!("set enable_indexscan = {bitmapscan}"));
        client.run(&format!("set enable_bitmapscan = {bitmapscan}"));
        client
            .run(&sql)
            .rows()
            .into_iter()
            .cloned()
            .collect::<Vec<_>>()
    };
    let by_table = found("on", "off");
    let by_index = found("off", "on");
    assert_eq!(by_index, by_table, "{condition}");
    by_table.len()
}

#[test]
fn inverted_indexes_find_what_scans_find() {
    const SESSIONS: usize = 3;
    const ROWS: i32 = 240;
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum_naptime=1"]);
    let mut dice = StdRng::seed_from_u64(5);
    let mut sessions: Vec<(Client, bool)> =
        (0..SESSIONS).map(|_| (server.connect(), false)).collect();
    set_up(&mut sessions[0].0);
    let rows: Vec<String> = (0..ROWS).map(|id| row(&mut dice, id)).collect();
    let insert = format!(
        "insert into t (id, a, s, doc, n) values {}",
        rows.join(", ")
    );
    sessions[0].0.run(&insert);
    let mut compared = 0;
    for step in 0..1_500 {
        let at = dice.random_range(0..SESSIONS);
        let (client, is_open) = &mut sessions[at];
        // Each session has rows of its own: nobody waits for a lock.
        let id = dice.random_range(0..ROWS / SESSIONS as i32) * SESSIONS as i32 + at as i32;
        let sql = match dice.random_range(0..14) {
            0 => format!(
                "update t set a = {} where id = {id}",
                array(&mut dice, true)
            ),
            1 => format!(
                "update t set doc = '{}' where id = {id}",
                json(&mut dice, 3)
            ),
            2 => format!("update t set n = n + 1, filler = filler || 'y' where id = {id}"),
            3 => format!("delete from t where id = {id}"),
            4 => format!(
                "insert into t (id, a, s, doc, n) values {} on conflict do nothing",
                row(&mut dice, id)
            ),
            5 if !*is_open => {
                *is_open = true;
                let levels = ["read committed", "repeatable read", "serializable"];
                format!("begin isolation level {}", levels[dice.random_range(0..3)])
            }
            5 => "savepoint s".to_owned(),
            6 if *is_open => {
                *is_open = false;
                ["commit", "rollback"][dice.random_range(0..2)].to_owned()
            }
            6 if step % 5 == 0 => "vacuum t".to_owned(),
            7 if step % 40 == 0 && !*is_open => "analyze t".to_owned(),
            _ => {
                let condition = condition(&mut dice);
                compared += compare(client, &condition);
                continue;
            }
        };
        let answer = client.query(&sql).expect("an answer");
        // A serializable transaction may fail; it is over then.
        if let Some(error) = answer.error() {
            assert_eq!(error.code, "40001", "{sql}: {error:?}");
            client.run("rollback");
            *is_open = false;
        }
    }
    assert!(compared > 10_000, "{compared} rows were compared");
    for (client, is_open) in &mut sessions {
        if *is_open {
            client.run("commit");
        }
    }
    let client = &mut sessions[0].0;
    client.run("reindex table t");
    client.run("vacuum full t");
    for _ in 0..60 {
        compare(client, &condition(&mut dice));
    }
    assert!(server.stop().success());
    home.check();
}

/// One statement sees one state: an index and the table give it the same rows, whoever writes.
#[test]
fn inverted_indexes_agree_with_the_table_beside_writers() {
    const WRITERS: i32 = 3;
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum_naptime=1"]);
    let mut client = server.connect();
    client.run("create table t (id int primary key, tags int[], owner int)");
    client.run("create index on t using gin (tags)");
    client.run(
        "insert into t select i, array[i % 7, i % 11, 20 + i % 3], i % 3 \
         from generate_series(1, 900) i",
    );
    let (stop, address) = (AtomicBool::new(false), server.address());
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (stop, address) = (&stop, &address);
            scope.spawn(move || {
                let mut client = Client::connect(address).expect("a connection");
                let mut dice = StdRng::seed_from_u64(writer as u64);
                while !stop.load(Ordering::Relaxed) {
                    let id = dice.random_range(1..300) * WRITERS + writer;
                    let (a, b) = (dice.random_range(0..7), dice.random_range(0..11));
                    let sql = match dice.random_range(0..8) {
                        0 => format!("delete from t where id = {id}"),
                        1 | 2 => format!(
                            "insert into t values ({id}, '{{{a},{b}}}', {writer}) \
                             on conflict (id) do update set tags = excluded.tags"
                        ),
                        3 => format!(
                            "begin; update t set tags = '{{{a},{a}}}' where id = {id}; rollback"
                        ),
                        _ => format!(
                            "update t set tags = array[{a}, {b}, 20 + {a} % 3] where id = {id}"
                        ),
                    };
                    client.run(&sql);
                }
            });
        }
        client.run("set enable_seqscan = off");
        for round in 0..400 {
            let (a, b) = (round % 7, round % 11);
            let conditions = [
                (
                    format!("tags @> '{{{a},{b}}}'"),
                    format!("{a} = any (tags) and {b} = any (tags)"),
                ),
                (
                    format!("tags && '{{{a},{b}}}'"),
                    format!("{a} = any (tags) or {b} = any (tags)"),
                ),
            ];
            for (by_index, by_table) in conditions {
                let sum = "select count(*) || ' ' || coalesce(sum(id), 0) from t where";
                let sql = format!("select ({sum} {by_index}) = ({sum} {by_table})");
                assert_eq!(client.run(&sql).value(), "t", "{by_index}");
            }
            if round % 100 == 50 {
                client.run("vacuum t");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(server.stop().success());
    home.check();
}

/// Vacuum takes the entries of rows that have gone, and their room is used again.
#[test]
fn vacuum_takes_entries_out_of_inverted_indexes() {
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum=off"]);
    let mut client = server.connect();
    client.run("create table t (id int, tags int[])");
    client.run("create index t_tags on t using gin (tags)");
    let size = |client: &mut Client| -> i64 {
        let blocks = client.run("select pg_relation_size('t_tags') / 8192");
        blocks.value().parse().expect("a number")
    };
    let fill = "insert into t select i, array[i % 100, i, 1000 + i % 7] \
                from generate_series(1, 4000) i";
    client.run(fill);
    let full = size(&mut client);
    for _ in 0..6 {
        client.run("delete from t");
        client.run("vacuum t");
        client.run(fill);
    }
    let now = size(&mut client);
    assert!(now < full * 2, "{full} blocks at first, {now} now");
    client.run("set enable_seqscan = off");
    let found = client.run("select count(*) from t where tags @> '{7}'");
    assert_eq!(found.value(), "40");
    assert!(server.stop().success());
    home.check();
}
