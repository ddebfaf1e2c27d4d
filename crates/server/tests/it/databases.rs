//! Several databases of one server: what each has for itself, what all share, how they come and go.

use std::time::Duration;

use crate::client::{Client, PATIENCE, Received};
use crate::server::{Home, Server};

fn enter(server: &Server, database: &str) -> Client {
    let (client, greeting) =
        Client::enter(&server.address(), "postgres", database).expect("answered");
    assert_eq!(greeting.code(), "", "{greeting:?}");
    client
}

/// Why nobody is let into a database.
fn refusal(server: &Server, user: &str, database: &str) -> String {
    let (_, greeting) = Client::enter(&server.address(), user, database).expect("answered");
    greeting.code().to_owned()
}

fn column(client: &mut Client, sql: &str) -> Vec<String> {
    let answer = client.run(sql);
    let values = answer.rows().into_iter();
    values
        .map(|row| row[0].clone().unwrap_or_default())
        .collect()
}

#[test]
fn each_has_its_own_and_all_share_roles() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut first = server.connect();
    assert_eq!(
        column(&mut first, "select datname from pg_database order by oid"),
        ["template1", "template0", "postgres"]
    );
    first.run("create table t (v text); insert into t values ('first')");
    first.run("create database a");
    let mut a = enter(&server, "a");
    assert_eq!(a.run("select current_database()").value(), "a");
    assert_eq!(
        a.query("select * from t").expect("answered").code(),
        "42P01"
    );
    a.run("create table t (id serial primary key, v text); create type mood as enum ('fine')");
    a.run("insert into t (v) select 'a' || i from generate_series(1, 300) i");
    a.run("create view w as select count(*) n from t; grant usage on schema public to public");
    assert_eq!(first.run("select v from t").value(), "first");
    assert_eq!(a.run("select n from w").value(), "300");
    assert_eq!(
        a.run("select table_catalog from information_schema.tables where table_name = 't'")
            .value(),
        "a"
    );
    // One text, understood in two databases.
    for _ in 0..3 {
        assert_eq!(first.run("select count(*) from t").value(), "1");
        assert_eq!(a.run("select count(*) from t").value(), "300");
    }
    let elsewhere = first.query("select * from a.public.t").expect("answered");
    assert_eq!(elsewhere.code(), "0A000");

    // Roles, and what is said of databases, are everybody's.
    a.run("create role helper login; comment on database postgres is 'the first'");
    assert_eq!(
        first
            .run("select count(*) from pg_roles where rolname = 'helper'")
            .value(),
        "1"
    );
    a.run("alter table t owner to helper; grant select on w to helper");
    let needed = first.query("drop role helper").expect("answered");
    let detail = needed.error().and_then(|e| e.detail.clone());
    assert_eq!(
        (needed.code(), detail.as_deref()),
        ("2BP01", Some("3 objects in database a"))
    );

    // Locks of the application's own, and what is said on channels, stay within.
    a.run("select pg_advisory_lock(7); listen news");
    assert_eq!(first.run("select pg_try_advisory_lock(7)").value(), "t");
    assert_eq!(
        first.run("select string_agg(d.datname, ' ' order by datname) from pg_locks l join pg_database d on d.oid = l.database where locktype = 'advisory'").value(),
        "a postgres"
    );
    first.run("notify news, 'not for you'");
    let mut other = enter(&server, "a");
    other.run("notify news, 'for you'");
    let Received::Message(told) = a.receive(PATIENCE).expect("received") else {
        panic!("nothing was told");
    };
    let payload = b"news\0for you\0";
    assert!(told.tag == b'A' && told.body.ends_with(payload));
    assert_eq!(
        first.run("select string_agg(datname, ' ' order by datname) from pg_stat_activity where backend_type = 'client backend'").value(),
        "a a postgres"
    );
    home.assert_no_panic();
}

#[test]
fn what_is_in_them_survives_kill() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut first = server.connect();
    first.run("create database kept");
    first.run("create database gone");
    first.run("create role keeper; create table t (v int)");
    let mut kept = enter(&server, "kept");
    kept.run("create table t (id serial primary key, v text) ; create index on t (v)");
    kept.run("insert into t (v) select repeat(i::text, 50) from generate_series(1, 2000) i");
    kept.run("create schema s; alter schema public owner to keeper; create table s.u (v int); drop table s.u");
    let mut gone = enter(&server, "gone");
    gone.run("create table large (v text); insert into large select repeat('x', 100) from generate_series(1, 10000)");
    let before = home.files();
    drop(gone);
    first.run("drop database gone");
    // An aborted one leaves nothing.
    assert_eq!(
        first
            .query("create database template1")
            .expect("answered")
            .code(),
        "42P04"
    );
    server.kill();
    home.check();

    let server = home.serve(&[]);
    assert!(
        home.files() < before,
        "the dropped database's files are still there"
    );
    let mut first = server.connect();
    assert_eq!(
        column(
            &mut first,
            "select datname from pg_database where not datistemplate order by oid"
        ),
        ["postgres", "kept"]
    );
    assert_eq!(first.run("select count(*) from t").value(), "0");
    assert_eq!(refusal(&server, "postgres", "gone"), "3D000");
    let mut kept = enter(&server, "kept");
    assert_eq!(
        kept.run("select count(*) from t where v like '%7%'")
            .value(),
        "542"
    );
    kept.run("insert into t (v) values ('more')");
    assert_eq!(
        kept.run("select count(*) from pg_namespace where nspname in ('public', 's')")
            .value(),
        "2"
    );
    assert_eq!(
        kept.run("select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'public'")
            .value(),
        "keeper"
    );
    // Numbers are given out for all databases.
    kept.run("create table v (a int)");
    first.run("create table v (a int)");
    let oid = "select 'v'::regclass::oid";
    assert_ne!(kept.run(oid).value(), first.run(oid).value());
    assert!(server.stop().success());
    home.check();
    home.assert_no_panic();
}

#[test]
fn one_that_is_used_is_not_dropped() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut first = server.connect();
    first.run("create database busy");
    let mut busy = enter(&server, "busy");
    busy.run("create table t (v int)");
    first.start("drop database busy").expect("sent");
    // While it waits nobody else comes in, and who is there goes on.
    let waiting = "select wait_event from pg_stat_activity where query like 'drop database%' and wait_event is not null";
    let mut seen = server.connect();
    while column(&mut seen, waiting) != ["DatabaseInUse"] {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(refusal(&server, "postgres", "busy"), "3D000");
    busy.run("insert into t values (1)");
    let refused = first.finish().expect("answered");
    let detail = refused.error().and_then(|e| e.detail.clone());
    assert_eq!(refused.code(), "55006");
    assert_eq!(
        detail.as_deref(),
        Some("There is 1 other session using the database.")
    );
    let mut again = enter(&server, "busy");
    assert_eq!(again.run("select count(*) from t").value(), "1");

    // Who leaves in time does not stand in the way.
    drop((again, busy));
    first.run("alter database busy rename to quiet");
}

#[test]
fn force_ends_who_is_there() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut first = server.connect();
    first.run("create database busy");
    let mut busy = enter(&server, "busy");
    busy.run("begin; create table t (v int)");
    first.run("drop database busy with (force)");
    let ended = busy.query("select 1").expect("answered");
    assert!(ended.code() == "57P01" || ended.closed(), "{ended:?}");
    assert_eq!(refusal(&server, "postgres", "busy"), "3D000");
    home.assert_no_panic();
}

#[test]
fn who_may_and_what_is_asked_for() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut first = server.connect();
    first.run("create role plain login; create role maker login createdb");
    first.run("create database a");
    let asked = [
        ("create database a", "42P04"),
        ("begin; create database b; end", "25001"),
        ("create database b template nothing", "3D000"),
        ("create database b encoding 'latin1'", "0A000"),
        (
            "create database b locale 'de_DE.UTF-8' template template0",
            "42809",
        ),
        ("create database b tablespace there", "42704"),
        ("create database b strategy slowly", "22023"),
        ("create database b owner nobody", "42704"),
        ("create database b connection limit -2", "22023"),
        (
            "create database b is_template true is_template false",
            "42601",
        ),
        ("create database b colour red", "42601"),
        ("drop database b", "3D000"),
        ("drop database postgres", "55006"),
        ("drop database template1", "42809"),
        ("begin; drop database a; end", "25001"),
        ("alter database postgres rename to c", "55006"),
        ("alter database a rename to template1", "42P04"),
        ("alter database postgres allow_connections false", "22023"),
        ("alter database b set work_mem = '1MB'", "3D000"),
        ("drop database if exists b", ""),
        (
            "create database b with encoding = 'UTF8' template = template0 locale_provider = libc locale = 'C.UTF-8' owner = maker connection limit = 1",
            "",
        ),
        ("alter database b set work_mem = '3MB'", ""),
        ("alter database a allow_connections false", ""),
    ];
    for (sql, code) in asked {
        let answer = first.query(sql).expect("answered");
        assert_eq!(answer.code(), code, "{sql}: {answer:?}");
        first.run("rollback");
    }
    assert_eq!(refusal(&server, "postgres", "a"), "55000");
    assert_eq!(refusal(&server, "postgres", "template0"), "55000");
    let (mut b, _) = Client::enter(&server.address(), "maker", "b").expect("answered");
    assert_eq!(b.run("show work_mem").value(), "3MB");
    b.run("create table public.t (v int)");
    assert_eq!(refusal(&server, "plain", "b"), "53300");
    assert_eq!(first.run("show work_mem").value(), "256MB");
    first.run("revoke connect on database b from public");
    drop(b);
    assert_eq!(refusal(&server, "plain", "b"), "42501");

    let (mut plain, _) = Client::enter(&server.address(), "plain", "postgres").expect("answered");
    for sql in [
        "create database c",
        "drop database b",
        "alter database b is_template true",
    ] {
        assert_eq!(plain.query(sql).expect("answered").code(), "42501", "{sql}");
    }
    let (mut maker, _) = Client::enter(&server.address(), "maker", "postgres").expect("answered");
    maker.run("create database c");
    maker.run("create database d template template0");
    assert_eq!(
        maker
            .query("create database e template a")
            .expect("answered")
            .code(),
        "42501"
    );
    assert_eq!(
        maker
            .query("create database e template b")
            .expect("answered")
            .code(),
        "0A000"
    );
    assert_eq!(
        maker
            .query("create database e owner plain")
            .expect("answered")
            .code(),
        "42501"
    );
    maker.run("drop database c");
    maker.run("alter database d rename to f");
    let (_, greeting) = Client::enter(&server.address(), "maker", "f").expect("answered");
    assert_eq!(greeting.code(), "");

    // What a template has without rows comes with it.
    let mut template = enter(&server, "template1");
    template.run("create schema tools; create function tools.one() returns int language sql return 1; create type tools.mood as enum ('fine')");
    first.run("create database made");
    let mut made = enter(&server, "made");
    assert_eq!(
        made.run("select tools.one() || ' ' || 'fine'::tools.mood")
            .value(),
        "1 fine"
    );
    made.run("drop schema tools cascade");
    assert_eq!(template.run("select tools.one()").value(), "1");
    home.assert_no_panic();
}
