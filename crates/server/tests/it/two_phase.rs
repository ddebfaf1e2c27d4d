//! Two-phase commit over the server's end: what is prepared is there whenever it comes back, its
//! definitions too.

use crate::client::Client;
use crate::server::{Home, Server};

const PREPARED: [&str; 2] = ["--set", "max_prepared_transactions=5"];

fn prepare(client: &mut Client) {
    client.run("create table t (a int primary key, b text)");
    client.run("insert into t values (1, 'one'), (2, 'two')");
    client.run("create table old (a int)");
    for (gid, statements) in [
        (
            "definitions",
            &[
                "create table made (a int primary key, b serial)",
                "insert into made values (7), (8)",
                "create view over as select a from made",
                "create function f() returns int language sql as 'select 5'",
                "drop table old",
            ][..],
        ),
        (
            "rows",
            &[
                "insert into t values (3, 'three')",
                "select * from t where a = 1 for key share",
                "update t set b = 'zwei' where a = 2",
            ],
        ),
    ] {
        client.run("begin");
        statements.iter().for_each(|sql| drop(client.run(sql)));
        client.run(&format!("prepare transaction '{gid}'"));
    }
}

/// Others find what they find while both are prepared.
fn assert_prepared(client: &mut Client) {
    let gids = "select string_agg(gid || ' ' || owner || ' ' || database, ', ' order by gid) from pg_prepared_xacts";
    let listed = "definitions postgres postgres, rows postgres postgres";
    assert_eq!(client.run(gids).value(), listed);
    client.run("set lock_timeout = '30ms'");
    for (sql, code) in [
        ("select * from made", "42P01"),
        ("select f()", "42883"),
        ("select * from old", "55P03"),
        ("create table made (a int)", "55P03"),
        ("update t set b = 'x' where a = 2", "55P03"),
        ("insert into t values (3, 'drei')", "55P03"),
        ("delete from t where a = 1", "55P03"),
        ("lock t in share mode", "42P10"),
        ("begin; lock t in share mode", "55P03"),
        ("rollback; prepare transaction 'rows'", ""),
    ] {
        let answer = client.query(sql).expect("an answer");
        match sql.starts_with("lock") {
            // Outside of a block.
            true => assert!(answer.error().is_some(), "{sql}"),
            false => assert_eq!(answer.code(), code, "{sql}: {answer:?}"),
        }
    }
    // Not of the key, which alone is locked.
    client.run("update t set b = b || '!' where a = 1");
    let seen = "select string_agg(a::text, ',' order by a) from t";
    assert_eq!(client.run(seen).value(), "1,2");
    client.run("reset lock_timeout");
}

fn again(home: &Home, server: Server, kills: bool) -> Server {
    match kills {
        true => server.kill(),
        false => assert!(server.stop().success()),
    }
    home.serve(&PREPARED)
}

#[test]
fn prepared_transactions_outlive_the_server() {
    for commits in [true, false] {
        let home = Home::new();
        let mut server = home.serve(&PREPARED);
        prepare(&mut server.connect());
        assert_prepared(&mut server.connect());
        for kills in [true, false, true] {
            server = again(&home, server, kills);
            assert_prepared(&mut server.connect());
            if kills {
                server.connect().run("checkpoint");
            }
        }
        let mut client = server.connect();
        let ends = if commits { "commit" } else { "rollback" };
        client.run(&format!("{ends} prepared 'definitions'"));
        client.run(&format!("{ends} prepared 'rows'"));
        for _ in 0..2 {
            let mut client = server.connect();
            assert_ended(&mut client, commits);
            server = again(&home, server, true);
        }
        let mut client = server.connect();
        if commits {
            // What was made is as what others make.
            client.run("alter table made add column c int default 3");
            client.run("drop view over");
            client.run("drop table made");
        }
        client.run("create table old2 (a int)");
        assert_eq!(
            client.run("select count(*) from pg_prepared_xacts").value(),
            "0"
        );
        assert!(server.stop().success());
        home.assert_no_panic();
        home.check();
    }
}

fn assert_ended(client: &mut Client, commits: bool) {
    let rows = "select string_agg(a || b, ',' order by a) from t";
    let found = client.run(rows).value().replace('!', "");
    match commits {
        true => {
            assert_eq!(found, "1one,2zwei,3three");
            assert_eq!(client.run("select sum(a) from over").value(), "15");
            assert_eq!(client.run("select f()").value(), "5");
            client.run("insert into made values ((select max(a) + 1 from made))");
            client.run("delete from made where a > 8");
            assert_eq!(
                client.query("select * from old").expect("an answer").code(),
                "42P01"
            );
        }
        false => {
            assert_eq!(found, "1one,2two");
            assert_eq!(
                client.query("select f()").expect("an answer").code(),
                "42883"
            );
            assert_eq!(
                client
                    .query("select * from made")
                    .expect("an answer")
                    .code(),
                "42P01"
            );
            assert_eq!(client.run("select count(*) from old").value(), "0");
        }
    }
}

#[test]
fn without_the_setting_nothing_is_prepared() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut client = server.connect();
    client.run("create table t (a int)");
    client.run("begin");
    client.run("insert into t values (1)");
    let refused = client
        .query("prepare transaction 'one'")
        .expect("an answer");
    assert_eq!(refused.code(), "55000");
    assert_eq!(client.run("select count(*) from t").value(), "0");
    home.assert_no_panic();
}
