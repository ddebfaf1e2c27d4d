//! Sessions through a driver that others wrote: typed parameters and rows in binary, COPY,
//! transactions.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Config, NoTls};

use crate::server::{Home, Server};

fn config(server: &Server) -> Config {
    let mut config = Config::new();
    config
        .host("127.0.0.1")
        .port(server.port())
        .user("postgres")
        .dbname("postgres");
    config
}

async fn driver(server: &Server) -> tokio_postgres::Client {
    let (client, connection) = config(server).connect(NoTls).await.expect("let in");
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn binary_values_there_and_back() {
    let home = Home::new();
    let server = home.serve(&[]);
    let client = driver(&server).await;
    client
        .batch_execute(
            "create table t (a smallint, b integer, c bigint, d real, e double precision, f boolean, \
             g text, h bytea, i varchar(10))",
        )
        .await
        .expect("created");
    let insert = client
        .prepare("insert into t values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning c")
        .await
        .expect("prepared");
    assert_eq!(
        insert.params(),
        [
            Type::INT2,
            Type::INT4,
            Type::INT8,
            Type::FLOAT4,
            Type::FLOAT8,
            Type::BOOL,
            Type::TEXT,
            Type::BYTEA,
            Type::VARCHAR
        ]
    );
    let bytes: &[u8] = b"\0\xff";
    let row = client
        .query_one(
            &insert,
            &[
                &-2i16,
                &i32::MAX,
                &i64::MIN,
                &1.5f32,
                &-0.1f64,
                &true,
                &"héllo",
                &bytes,
                &"vc",
            ],
        )
        .await
        .expect("inserted");
    assert_eq!(row.get::<_, i64>(0), i64::MIN);
    let row = client
        .query_one("select * from t", &[])
        .await
        .expect("a row");
    assert_eq!(row.get::<_, i16>(0), -2);
    assert_eq!(row.get::<_, i32>(1), i32::MAX);
    assert_eq!(row.get::<_, f32>(3), 1.5);
    assert_eq!(row.get::<_, f64>(4), -0.1);
    assert!(row.get::<_, bool>(5));
    assert_eq!(row.get::<_, &str>(6), "héllo");
    assert_eq!(row.get::<_, &[u8]>(7), bytes);
    assert_eq!(row.get::<_, &str>(8), "vc");
    let none: Option<i32> = None;
    let row = client
        .query_one("select $1::int is null", &[&none])
        .await
        .expect("a row");
    assert!(row.get::<_, bool>(0));
}

#[tokio::test]
async fn prepared_plans_follow_the_catalog() {
    let home = Home::new();
    let server = home.serve(&[]);
    let client = driver(&server).await;
    client
        .batch_execute("create table t (id int primary key, v int); insert into t values (1, 10)")
        .await
        .expect("created");
    let read = client
        .prepare("select v from t where id = $1")
        .await
        .expect("prepared");
    assert_eq!(
        client
            .query_one(&read, &[&1])
            .await
            .expect("a row")
            .get::<_, i32>(0),
        10
    );
    client
        .batch_execute("create index on t (v); alter table t add w text")
        .await
        .expect("altered");
    assert_eq!(
        client
            .query_one(&read, &[&1])
            .await
            .expect("a row")
            .get::<_, i32>(0),
        10
    );
    client
        .batch_execute("drop table t; create table t (v int, id int); insert into t values (20, 1)")
        .await
        .expect("made anew");
    assert_eq!(
        client
            .query_one(&read, &[&1])
            .await
            .expect("a row")
            .get::<_, i32>(0),
        20
    );
    client.batch_execute("drop table t").await.expect("dropped");
    let missing = client.query_one(&read, &[&1]).await.expect_err("no table");
    assert_eq!(missing.code().map(|c| c.code()), Some("42P01"));
}

#[tokio::test]
async fn transactions_of_a_driver() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut client = driver(&server).await;
    client
        .batch_execute("create table t (v int)")
        .await
        .expect("created");
    let transaction = client.transaction().await.expect("begun");
    transaction
        .execute("insert into t values (1)", &[])
        .await
        .expect("inserted");
    transaction.rollback().await.expect("undone");
    let mut transaction = client.transaction().await.expect("begun");
    transaction
        .execute("insert into t values ($1)", &[&2])
        .await
        .expect("inserted");
    let nested = transaction.transaction().await.expect("a savepoint");
    nested
        .execute("insert into t values (3)", &[])
        .await
        .expect("inserted");
    nested
        .execute("select 1/0", &[])
        .await
        .expect_err("division by zero");
    nested.rollback().await.expect("undone");
    transaction.commit().await.expect("committed");
    let rows = client.query("select v from t", &[]).await.expect("rows");
    assert_eq!(
        rows.iter().map(|r| r.get::<_, i32>(0)).collect::<Vec<_>>(),
        [2]
    );
}

/// A session whose notifications are kept: channel and payload, and who told.
async fn listener(
    server: &Server,
) -> (
    tokio_postgres::Client,
    tokio::sync::mpsc::UnboundedReceiver<(String, String, i32)>,
) {
    let (client, mut connection) = config(server).connect(NoTls).await.expect("let in");
    let (told, notifications) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(n) = message {
                // The test may be over.
                let _ = told.send((
                    n.channel().to_owned(),
                    n.payload().to_owned(),
                    n.process_id(),
                ));
            }
        }
    });
    (client, notifications)
}

#[tokio::test]
async fn notifications_are_told_at_commit_to_those_who_listen() {
    let home = Home::new();
    let server = home.serve(&[]);
    let (hearer, mut heard) = listener(&server).await;
    let (teller, mut echo) = listener(&server).await;
    let run = async |client: &tokio_postgres::Client, sql: &str| {
        client
            .batch_execute(sql)
            .await
            .unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    };
    let pid: i32 = teller
        .query_one("select pg_backend_pid()", &[])
        .await
        .expect("pid")
        .get(0);
    let next = async |notifications: &mut tokio::sync::mpsc::UnboundedReceiver<_>| {
        let wait = std::time::Duration::from_secs(20);
        let (channel, payload, from): (String, String, i32) =
            tokio::time::timeout(wait, notifications.recv())
                .await
                .expect("in time")
                .expect("open");
        assert_eq!(from, pid);
        format!("{channel} {payload}")
    };

    run(&hearer, "listen news").await;
    // Rolled back, as a whole and in part; said twice; committed. Who is idle is woken.
    run(&teller, "begin; notify news, 'no'; rollback").await;
    run(
        &teller,
        "begin; notify news, 'a'; savepoint s; notify news, 'not'; rollback to s; notify news, 'a'; \
         select pg_notify('news', 'b'); notify other, 'c'; commit",
    )
    .await;
    assert_eq!(next(&mut heard).await, "news a");
    assert_eq!(next(&mut heard).await, "news b");

    // In a transaction nothing is told; what has come comes with its end.
    run(&hearer, "begin").await;
    run(&teller, "listen news; notify news").await;
    assert_eq!(next(&mut echo).await, "news ");
    run(&hearer, "select 1").await;
    assert!(heard.try_recv().is_err());
    run(&hearer, "commit").await;
    assert_eq!(next(&mut heard).await, "news ");

    // LISTEN and UNLISTEN are the transaction's too.
    run(
        &hearer,
        "begin; unlisten *; rollback; begin; listen more; rollback",
    )
    .await;
    let rows = hearer
        .query("select pg_listening_channels()", &[])
        .await
        .expect("channels");
    assert_eq!(
        rows.iter()
            .map(|r| r.get::<_, String>(0))
            .collect::<Vec<_>>(),
        ["news"]
    );
    run(&hearer, "unlisten news").await;
    run(&teller, "notify news, 'unheard'").await;
    assert_eq!(next(&mut echo).await, "news unheard");
    run(&hearer, "select 1").await;
    assert!(heard.try_recv().is_err());

    // What is no channel or no payload.
    for (sql, code) in [
        ("select pg_notify('', 'x')", "22023"),
        ("select pg_notify(null, 'x')", "22023"),
        ("select pg_notify(repeat('c', 64), '')", "22023"),
        ("select pg_notify('c', repeat('p', 8000))", "22023"),
    ] {
        let error = teller.batch_execute(sql).await.expect_err(sql);
        assert_eq!(error.code().expect("from the server").code(), code, "{sql}");
    }
}

#[tokio::test]
async fn temporary_tables_are_their_sessions_own() {
    let home = Home::new();
    let count = "select count(*) from pg_class c join pg_namespace n on n.oid = relnamespace \
                 where nspname like 'pg\\_temp%'";
    let counted = async |client: &tokio_postgres::Client| -> i64 {
        client.query_one(count, &[]).await.expect("counted").get(0)
    };
    {
        let server = home.serve(&["--cores", "0"]);
        let [one, two] = [driver(&server).await, driver(&server).await];
        two.batch_execute("create table t (a int); insert into t values (0)")
            .await
            .expect("made");
        let read = async |client: &tokio_postgres::Client| -> i32 {
            client
                .query_one("select a from t", &[])
                .await
                .expect("read")
                .get(0)
        };
        // One plan cache serves both sessions, with one text.
        assert_eq!((read(&one).await, read(&two).await), (0, 0));
        one.batch_execute("create temp table t (a int); insert into t values (1)")
            .await
            .expect("made");
        assert_eq!((read(&one).await, read(&two).await), (1, 0));
        two.batch_execute("create temp table t (a int); insert into t values (2)")
            .await
            .expect("made");
        assert_eq!((read(&one).await, read(&two).await), (1, 2));
        assert_eq!(counted(&one).await, 2);
        drop(two);
        for _ in 0..200 {
            if counted(&one).await == 1 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert_eq!(counted(&one).await, 1);
        server.kill();
    }
    let server = home.serve(&[]);
    assert_eq!(counted(&driver(&server).await).await, 0);
}

#[tokio::test]
async fn types_are_made_after_a_restart_too() {
    let home = Home::new();
    let server = home.serve(&[]);
    let client = driver(&server).await;
    client
        .batch_execute("create type mood as enum ('sad', 'ok')")
        .await
        .expect("made");
    server.kill();
    let server = home.serve(&[]);
    let client = driver(&server).await;
    client
        .batch_execute("create type size as enum ('s', 'm')")
        .await
        .expect("made");
    client
        .batch_execute("create table t (a mood, b size); insert into t values ('ok', 'm')")
        .await
        .expect("used");
    let row = client
        .query_one(
            "select 't'::regclass::oid < 100000, a::text || b from t",
            &[],
        )
        .await
        .expect("read");
    assert_eq!(
        (row.get::<_, bool>(0), row.get::<_, &str>(1)),
        (true, "okm")
    );
}

/// Changes of definitions drawn by lot, some of them undone, while the cleaner takes old versions
/// away or a snapshot keeps them.
#[tokio::test]
async fn definitions_are_found_among_their_versions() {
    let home = Home::new();
    let eager = [
        "--set",
        "autovacuum_naptime=1",
        "--set",
        "autovacuum_vacuum_threshold=5",
        "--set",
        "autovacuum_vacuum_scale_factor=0",
    ];
    let server = home.serve(&eager);
    let (client, other) = (driver(&server).await, driver(&server).await);
    let mut lot = 7u64;
    let mut draw = |below: u64| {
        lot = lot.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (lot >> 33) % below
    };
    // What is said of each table that is there.
    let mut tables = BTreeMap::<String, String>::new();
    for step in 0..1500 {
        if step % 300 == 100 {
            let keep = "begin isolation level repeatable read; select from pg_class";
            other.batch_execute(keep).await.expect("a snapshot");
        }
        if step % 300 == 250 {
            other.batch_execute("commit").await.expect("no snapshot");
        }
        let mut after = tables.clone();
        let mut statements = Vec::new();
        for _ in 0..=draw(3) {
            let name = format!("t{}", draw(12));
            let said = format!("step {step}, {}", "x".repeat(draw(2000) as usize));
            match (after.contains_key(&name), draw(4)) {
                (false, _) => {
                    statements.push(format!("create table {name} (a serial primary key)"));
                    after.insert(name, String::new());
                }
                (true, 0) => {
                    statements.push(format!("drop table {name}"));
                    after.remove(&name);
                }
                (true, _) => {
                    statements.push(format!("comment on table {name} is '{said}'"));
                    after.insert(name, said);
                }
            }
        }
        let undone = draw(4) == 0;
        let end = if undone { "rollback" } else { "commit" };
        let script = format!("begin; {}; {end}", statements.join("; "));
        client.batch_execute(&script).await.expect(&script);
        if !undone {
            tables = after;
        }
    }
    let told = async |server: &Server| -> BTreeMap<String, String> {
        let query =
            "select relname::text, coalesce(obj_description(oid, 'pg_class'), '') from pg_class
                     where relkind = 'r' and relnamespace = 'public'::regnamespace";
        let rows = driver(server).await.query(query, &[]).await.expect("rows");
        rows.iter().map(|r| (r.get(0), r.get(1))).collect()
    };
    assert_eq!(told(&server).await, tables);
    server.kill();
    assert_eq!(told(&home.serve(&eager)).await, tables);
}

/// Rows of several values that are not in memory: a scan waits in the midst of one, and goes on
/// there.
#[tokio::test(flavor = "multi_thread")]
async fn large_values_of_one_row_are_not_mixed_up() {
    let home = Home::new();
    let server = home.serve(&["--memory", "32MB"]);
    let client = driver(&server).await;
    // All of one length, by one transaction.
    let setup = "create table t (id int primary key, a text, b text, c text);
                 insert into t select i, repeat(md5('a' || i), 900), repeat(md5('b' || i), 900), repeat(md5('c' || i), 900)
                   from generate_series(1, 1000) i;
                 set enable_seqscan = off";
    client.batch_execute(setup).await.expect("made");
    let wrong = "select count(*), coalesce(sum((a <> repeat(md5('a' || id), 900) or b <> repeat(md5('b' || id), 900)
                   or c <> repeat(md5('c' || id), 900))::int), 0) from t where id > 0";
    for _ in 0..3 {
        let row = client.query_one(wrong, &[]).await.expect("rows");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1000, 0));
    }
}

/// A value of its own pages goes with its row, once nobody can see that any more, and its pages are
/// used again.
#[tokio::test]
async fn pages_of_large_values_are_used_again() {
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum=off"]);
    let client = driver(&server).await;
    let setup = "create table t (id int primary key, a text, b text);
                 insert into t select i, repeat('a' || i, 20000), 'small' from generate_series(1, 5) i";
    client.batch_execute(setup).await.expect("made");
    let size = async || -> i64 {
        let row = client
            .query_one("select pg_relation_size('t')", &[])
            .await
            .expect("a size");
        row.get(0)
    };
    let other = driver(&server).await;
    let reader = "begin isolation level repeatable read; select from t";
    other.batch_execute(reader).await.expect("a snapshot");
    let round = async |round: i32| {
        for i in 0..20 {
            let changes: [&str; 5] = [
                &format!(
                    "update t set a = repeat('b{i}', 20000), b = '{round}' where id % 2 = {}",
                    i % 2
                ),
                &format!("update t set b = 'only {i}' where id = 3"),
                "begin; delete from t where id = 5; rollback",
                "begin; savepoint s; update t set a = 'short'; rollback to s; commit",
                &format!(
                    "delete from t where id = 4; insert into t values (4, repeat('c{i}', 20000), '')"
                ),
            ];
            for change in changes {
                client.batch_execute(change).await.expect(change);
            }
        }
        client.batch_execute("vacuum t").await.expect("cleaned");
    };
    round(0).await;
    let row = other
        .query_one("select string_agg(a, '' order by id) from t", &[])
        .await
        .expect("old rows");
    let old: String = (1..=5).map(|i| format!("a{i}").repeat(20000)).collect();
    assert!(row.get::<_, &str>(0) == old, "what an old snapshot sees");
    other.batch_execute("commit").await.expect("no snapshot");
    round(1).await;
    let settled = size().await;
    for i in 2..6 {
        round(i).await;
    }
    let grown = size().await;
    assert!(grown <= settled + settled / 4, "{settled} to {grown}");
    let lengths = "select string_agg(length(a)::text, ' ' order by id) from t";
    let row = client.query_one(lengths, &[]).await.expect("lengths");
    assert_eq!(row.get::<_, &str>(0), "60000 60000 60000 60000 60000");
    server.stop();
    home.check();
}

/// Once `pg_terminate_backend` has answered, the session answers no statement, however short.
#[test]
fn a_terminated_session_answers_nothing_more() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut other = server.connect();
    for _ in 0..50 {
        let mut idle = server.connect();
        let pid = idle.run("select pg_backend_pid()").value().to_owned();
        other.run(&format!("select pg_terminate_backend({pid})"));
        if let Ok(answer) = idle.query("select 1") {
            assert!(answer.closed() || answer.code() == "57P01", "{answer:?}");
        }
    }
    home.assert_no_panic();
}

/// A client that leaves while its statement sleeps, computes, aggregates in the pool or waits for a
/// lock: its session ends soon, and what it held is free. With the interval at 0 nobody looks.
#[test]
fn a_session_ends_with_its_client() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut other = server.connect();
    other.run("create table t (a int); insert into t select generate_series(1, 1000)");
    other.run("begin; lock table t");
    let statements = [
        "select pg_sleep(1000)",
        "begin; select pg_advisory_lock(1); lock table t",
        "select count(*) from generate_series(1, 1000000) a, generate_series(1, 1000000) b",
        "set analytics_above_cost = 0; select count(a + b) from generate_series(1, 1000000) a, \
         generate_series(1, 1000000) b",
        "do $$ begin loop perform 1; end loop; end $$",
    ];
    for statement in statements {
        let mut client = server.connect();
        client.start(statement).expect("sent");
    }
    let mut patient = server.connect();
    patient.run("set client_connection_check_interval = 0");
    patient.start("select pg_sleep(3)").expect("sent");
    let began = Instant::now();
    let here = "select count(*) from pg_stat_activity where query like '%sleep(3)' \
                and pid <> pg_backend_pid()";
    while other.run(here).value() == "0" && began.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(patient);
    let others = "select count(*) from pg_stat_activity where pid <> pg_backend_pid() \
                  and backend_type = 'client backend' and query not like '%sleep(3)'";
    while other.run(others).value() != "0" {
        assert!(began.elapsed() < Duration::from_secs(20), "they go on");
        std::thread::sleep(Duration::from_millis(50));
    }
    if began.elapsed() < Duration::from_secs(2) {
        assert_eq!(other.run(here).value(), "1");
    }
    assert_eq!(other.run("select pg_try_advisory_lock(1)").value(), "t");
    home.assert_no_panic();
}

/// What goes wrong is told to the client, whether or not the log's disk takes it.
#[test]
fn a_log_that_cannot_be_written_ends_no_session() {
    let home = Home::new();
    let server = home.serve_without_log(&["--set", "log_statement=all"]);
    let mut client = server.connect();
    for statement in [
        "select 1 / 0",
        "select 1",
        "do $$ begin raise log 'x'; end $$",
    ] {
        let answer = client.query(statement).expect("an answer");
        assert!(!answer.closed(), "{statement}");
    }
    assert_eq!(client.query("select 1 / 0").expect("told").code(), "22012");
    assert!(server.stop().success());
    home.check();
}
