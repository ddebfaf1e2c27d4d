//! Redo equals do: pages that the log makes are those that the server made, whatever was done to
//! them.

use crate::client::Client;
use crate::server::Home;

/// Work on every kind of page, before and after a checkpoint.
fn work(client: &mut Client, round: usize) {
    for sql in [
        "create table if not exists t (id serial primary key, k int, body text)",
        "create index if not exists t_k on t (k)",
        "create sequence if not exists s start 1000",
        "insert into t (k, body) select i % 50, repeat('x', i % 300) from generate_series(1, 2000) i",
        "insert into t (k, body) select i, string_agg(md5((i * j)::text), '') \
         from generate_series(1, 5) i, generate_series(1, 900) j group by i",
        "update t set k = k + 1 where id % 3 = 0",
        "delete from t where id % 7 = 0",
        "vacuum t",
        "select nextval('s')",
    ] {
        client.run(sql);
    }
    client.run(&format!(
        "create table made_{round} (id serial primary key)"
    ));
    client.run(&format!("insert into made_{round} default values"));
}

#[test]
fn the_log_makes_the_pages_that_the_server_made() {
    let home = Home::new();
    for round in 0..3 {
        let server = home.serve(&["--set", "autovacuum=off"]);
        let mut client = server.connect();
        work(&mut client, round);
        client.run("checkpoint");
        work(&mut client, round + 10);
        match round {
            0 => assert!(server.stop().success()),
            // Pages that were written after the checkpoint are ahead of it.
            1 => {
                client.run("checkpoint");
                server.kill();
            }
            _ => server.kill(),
        }
        let checked = home.run_check(&["--redo", "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&checked.stdout).expect("a report");
        assert!(checked.status.success(), "round {round}: {report}");
        let compared = report["compared"].as_u64().expect("a count");
        assert!(compared > 30, "round {round}: {report}");
    }
}

/// A crash behind a checkpoint, which logs the counters' pages whole at their next use.
#[test]
fn sequences_go_on_after_a_crash() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut client = server.connect();
    client.run("create table t (id serial primary key, v int)");
    client.run("insert into t (v) select i from generate_series(1, 50) i");
    client.run("checkpoint");
    client.run("insert into t (v) select i from generate_series(1, 20) i");
    client.run("create sequence s start 1000");
    client.run("create sequence back increment -5 start -70");
    assert_eq!(client.run("select nextval('back')").value(), "-70");
    server.kill();
    let server = home.serve(&[]);
    let mut client = server.connect();
    let next = client.run("insert into t (v) values (0) returning id > 70");
    assert_eq!(next.value(), "t");
    assert_eq!(client.run("select nextval('s')").value(), "1000");
    assert_eq!(client.run("select nextval('back') < -70").value(), "t");
    drop(client);
    assert!(server.stop().success());
    home.check();
}
