//! ANALYZE that nobody asks for.

use std::time::{Duration, Instant};

use crate::client::{Client, PATIENCE};
use crate::server::Home;

const GLANCE: Duration = Duration::from_millis(50);

fn value(client: &mut Client, sql: &str) -> String {
    client.run(sql).value().to_owned()
}

/// Asks until the answer is `expected`.
fn until(client: &mut Client, sql: &str, expected: &str) {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = value(client, sql);
        if found == expected {
            return;
        }
        assert!(Instant::now() < end, "{sql}: {found}, not {expected}");
        std::thread::sleep(GLANCE);
    }
}

fn activity(of: &str, table: &str) -> String {
    format!("select ({of})::text from pg_stat_user_tables where relname = '{table}'")
}

#[test]
fn a_table_that_has_changed_is_analyzed() {
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum_naptime=1"]);
    let mut client = server.connect();
    client.run("create table unasked (a int, b text)");
    client.run("create table left_alone (a int) with (autovacuum_enabled = off)");
    client.run("create table patient (a int) with (autovacuum_analyze_threshold = 100000)");
    client.run("create temp table own (a int)");
    for table in ["left_alone", "patient", "own"] {
        client.run(&format!(
            "insert into {table} select generate_series(1, 1000)"
        ));
    }
    client.run("insert into unasked select i, 'w' || i % 5 from generate_series(1, 1000) i");
    until(&mut client, &activity("autoanalyze_count", "unasked"), "1");
    let seen = activity(
        "n_mod_since_analyze || ' ' || analyze_count || ' ' || (last_autoanalyze > now() - interval '1 hour')",
        "unasked",
    );
    assert_eq!(value(&mut client, &seen), "0 0 true");
    let known = "select string_agg(attname || ' ' || n_distinct, ', ' order by attname) from pg_stats where tablename = 'unasked'";
    assert_eq!(value(&mut client, known), "a -1, b 5");
    for table in ["left_alone", "patient", "own"] {
        let changed = activity("n_mod_since_analyze || ' ' || autoanalyze_count", table);
        assert_eq!(value(&mut client, &changed), "1000 0", "{table}");
    }
    // Told to look, it counts from there; a part of the columns is not the table.
    client.run("analyze patient");
    client.run("update patient set a = 0 where a <= 10");
    client.run("analyze patient (a)");
    let changed = activity("n_mod_since_analyze || ' ' || analyze_count", "patient");
    assert_eq!(value(&mut client, &changed), "10 2");
    client.run("alter table left_alone reset (autovacuum_enabled)");
    until(
        &mut client,
        &activity("autoanalyze_count", "left_alone"),
        "1",
    );
}

#[test]
fn rows_that_were_not_committed_are_looked_at_once_they_are() {
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum_naptime=1"]);
    let mut writer = server.connect();
    let mut client = server.connect();
    client.run("create table slow (a int)");
    writer.run("begin");
    writer.run("insert into slow select generate_series(1, 5000)");
    client.run("insert into slow select generate_series(1, 100)");
    let rows = "select reltuples::int::text from pg_class where relname = 'slow'";
    until(&mut client, rows, "100");
    writer.run("commit");
    until(&mut client, rows, "5100");
    until(&mut client, &activity("n_mod_since_analyze", "slow"), "0");
}
