//! Clients that break the protocol, lie, freeze or vanish, and logins: everyone else goes on.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::{AnswerPart, Client, PATIENCE, Received, framed, startup_packet};
use crate::server::{Home, Server};

/// One server for the tests that break nothing but their own connection.
pub fn with_server(test: impl FnOnce(&Server)) {
    let home = Home::new();
    let server = home.serve(&[]);
    test(&server);
    // Whatever was done to it, the server still serves and stops as it should.
    assert_eq!(server.connect().run("select 1").value(), "1");
    assert!(server.stop().success());
    home.assert_no_panic();
}

/// Everything until the server hangs up; the SQLSTATEs of the errors on the way.
fn last_words(client: &mut Client) -> Vec<String> {
    let mut codes = Vec::new();
    loop {
        match client.poll(PATIENCE).expect("an end") {
            None => panic!("the connection is neither answered nor closed"),
            Some(answer) => {
                codes.extend(answer.error().map(|e| e.code.clone()));
                if answer.closed() {
                    return codes;
                }
            }
        }
    }
}

#[test]
fn broken_messages_end_their_own_connection_only() {
    with_server(|server| {
        let mut bystander = server.connect();
        bystander.run("begin; create table held (v int); insert into held values (1)");
        let broken: &[(&str, &[u8], &str)] = &[
            ("a giant length", b"Q\xff\xff\xff\xffselect", "08P01"),
            (
                "a length over a gigabyte",
                b"Q\x40\x00\x00\x05select",
                "08P01",
            ),
            ("a length below itself", b"Q\0\0\0\x03", "08P01"),
            ("a Sync of a megabyte", b"S\0\x10\0\0", "08P01"),
            ("an unknown type", b"\x01\0\0\0\x04", "08P01"),
            ("garbage", &[0x9c; 64], "08P01"),
            ("a query without its end", b"Q\0\0\0\x0cselect 1", "08P01"),
            ("a Parse cut short", b"P\0\0\0\x08s\0sel", "08P01"),
            (
                "a Bind that promises parameters",
                b"B\0\0\0\x0c\0\0\0\0\0\x05\0\0",
                "08P01",
            ),
            (
                "a Bind with a giant parameter",
                b"B\0\0\0\x10\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0",
                "08P01",
            ),
            ("a Describe of nothing known", b"D\0\0\0\x06X\0", "08P01"),
        ];
        for (what, bytes, code) in broken {
            let mut client = server.connect();
            client.send(bytes).expect("sent");
            assert_eq!(last_words(&mut client), [*code], "{what}");
        }
        assert_eq!(bystander.run("select v from held").value(), "1");
        bystander.run("rollback");
    });
}

#[test]
fn broken_startups_are_refused() {
    with_server(|server| {
        let broken: &[(&str, &[u8])] = &[
            ("a giant length", b"\xff\xff\xff\xff\0\x03\0\0"),
            ("no length", b"\0\0\0\x04"),
            ("an old protocol", b"\0\0\0\x09\0\x02\0\0\0"),
            ("no user", b"\0\0\0\x09\0\x03\0\0\0"),
            ("a parameter without its end", b"\0\0\0\x0d\0\x03\0\0user\0"),
            ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ];
        for (what, bytes) in broken {
            let mut client = Client::open(&server.address()).expect("connected");
            client.send(bytes).expect("sent");
            let codes = last_words(&mut client);
            assert!(codes.len() <= 1, "{what}: {codes:?}");
        }
        for (user, database, code) in [
            ("postgres", "no_such_database", "3D000"),
            ("nobody", "postgres", "28000"),
        ] {
            let mut client = Client::open(&server.address()).expect("connected");
            client
                .send(&startup_packet(&[("user", user), ("database", database)]))
                .expect("sent");
            assert_eq!(last_words(&mut client), [code]);
        }
        // A cancel request for nobody changes nothing, and is closed without a word.
        let mut client = Client::open(&server.address()).expect("connected");
        client
            .send(b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07\0\0\0\x07")
            .expect("sent");
        assert!(last_words(&mut client).is_empty());
    });
}

#[test]
fn a_message_cut_off_by_the_clients_end_is_forgotten() {
    with_server(|server| {
        let mut watcher = server.connect();
        watcher.run("create table t (id int primary key, v int); insert into t values (1, 0)");
        for cut in 1..30 {
            let mut client = server.connect();
            let message = framed(b'Q', b"update t set v = v + 1\0");
            client
                .send(&message[..cut.min(message.len() - 1)])
                .expect("sent");
        }
        assert_eq!(watcher.run("select v from t").value(), "0");
    });
}

#[test]
fn errors_leave_the_session_usable() {
    with_server(|server| {
        let mut client = server.connect();
        client.run("create table t (id int primary key)");
        let wrong = [
            ("selec 1", "42601"),
            ("select nothing from nowhere", "42P01"),
            ("select 1/0", "22012"),
            ("select 'a'::int", "22P02"),
            ("select 2147483647 + 1", "22003"),
            ("insert into t values (null)", "23502"),
            ("insert into t values (1), (1)", "23505"),
            ("select repeat('x', 1073741824)", "54000"),
            ("commit and chain", "25P01"),
            ("\u{1F98A}", "42601"),
            ("select 'unterminated", "42601"),
            ("select (((((((((1", "42601"),
        ];
        for (sql, code) in wrong {
            let answer = client.query(sql).expect("an answer");
            assert_eq!(answer.code(), code, "{sql}: {:?}", answer.parts);
            assert_eq!(client.run("select 42").value(), "42", "after {sql}");
        }
        // Bytes that are no UTF-8.
        client
            .send(&framed(b'Q', b"select '\xff\xfe'\0"))
            .expect("sent");
        assert_eq!(client.finish().expect("an answer").code(), "22021");
        // Nesting without end is refused, not followed.
        let deep = format!("select {}1{}", "(".repeat(5_000_000), ")".repeat(5_000_000));
        assert_eq!(client.query(&deep).expect("an answer").code(), "54001");
        assert_eq!(client.run("select count(*) from t").value(), "0");
    });
}

/// What is executed before a Sync is one transaction, and a block to what asks for one or refuses
/// to be in one.
#[test]
fn what_is_executed_up_to_sync_is_a_block() {
    with_server(|server| {
        let mut client = server.connect();
        client.run("create table t (a int)");
        let mut batch = |statements: &[&str]| {
            let mut bytes = Vec::new();
            for sql in statements {
                bytes.extend_from_slice(&framed(b'P', format!("\0{sql}\0\0\0").as_bytes()));
                bytes.extend_from_slice(&framed(b'B', b"\0\0\0\0\0\0\0\0"));
                bytes.extend_from_slice(&framed(b'E', b"\0\0\0\0\0"));
            }
            bytes.extend_from_slice(&framed(b'S', b""));
            client.send(&bytes).expect("sent");
            client.finish().expect("an answer")
        };
        // An error takes back what ran since the last Sync, and nothing before it.
        assert_eq!(batch(&["insert into t values (1)"]).code(), "");
        let failing = ["insert into t values (2)", "select 1 / 0"];
        assert_eq!(batch(&failing).code(), "22012");
        assert_eq!(batch(&["select sum(a) from t"]).value(), "1");
        // LOCK is in a block behind another statement; alone it is in none.
        assert_eq!(batch(&["lock t"]).code(), "25P01");
        assert_eq!(batch(&["select 1", "lock t"]).code(), "");
        // VACUUM is committed at once where it comes first, and refused where it does not.
        assert_eq!(batch(&["vacuum t", "select 1"]).code(), "");
        assert_eq!(batch(&["select 1", "vacuum t"]).code(), "25001");
        assert_eq!(batch(&["select 1", "savepoint s"]).code(), "25P01");
        // A block that ends in the batch leaves none behind.
        let ended = ["begin", "insert into t values (4)", "commit", "vacuum t"];
        assert_eq!(batch(&ended).code(), "");
        assert_eq!(batch(&["select sum(a) from t"]).value(), "5");
        let mut other = server.connect();
        let refused = other.query("select 1; vacuum t").expect("an answer");
        assert_eq!(refused.code(), "25001");
        assert_eq!(other.run("select 1; lock t").code(), "");
        assert_eq!(other.run("vacuum t").code(), "");
    });
}

/// In the extended protocol everything after an error is skipped up to Sync, and then the session
/// goes on.
#[test]
fn extended_errors_are_skipped_to_sync() {
    with_server(|server| {
        let mut client = server.connect();
        let parse = |sql: &str| framed(b'P', format!("\0{sql}\0\0\0").as_bytes());
        let bind = framed(b'B', b"\0\0\0\0\0\0\0\0");
        let execute = framed(b'E', b"\0\0\0\0\0");
        let sync = framed(b'S', b"");
        let mut batch = Vec::new();
        for sql in ["select 1", "select 1/0", "select 2"] {
            batch.extend_from_slice(&parse(sql));
            batch.extend_from_slice(&bind);
            batch.extend_from_slice(&execute);
        }
        batch.extend_from_slice(&sync);
        batch.extend_from_slice(&parse("select 3"));
        batch.extend_from_slice(&bind);
        batch.extend_from_slice(&execute);
        batch.extend_from_slice(&sync);
        // Byte by byte first, then as one write.
        for size in [1, batch.len()] {
            for piece in batch.chunks(size) {
                client.send(piece).expect("sent");
            }
            let first = client.finish().expect("an answer");
            assert_eq!(first.code(), "22012");
            assert_eq!(first.rows().len(), 1, "{:?}", first.parts);
            let second = client.finish().expect("an answer");
            assert_eq!(second.value(), "3");
        }
        // What does not exist is an error, not the end.
        for (bytes, code) in [
            (framed(b'B', b"\0nosuch\0\0\0\0\0\0\0"), "26000"),
            (framed(b'E', b"nosuch\0\0\0\0\0"), "34000"),
            (framed(b'D', b"Snosuch\0"), "26000"),
        ] {
            client.send(&bytes).expect("sent");
            client.send(&sync).expect("sent");
            assert_eq!(client.finish().expect("an answer").code(), code);
        }
    });
}

#[test]
fn a_client_that_vanishes_releases_its_locks() {
    with_server(|server| {
        let mut setup = server.connect();
        setup.run("create table t (id int primary key, v int); insert into t values (1, 0)");
        let mut gone = server.connect();
        gone.run("begin; update t set v = 1 where id = 1; lock table t in access exclusive mode");
        let mut waiter = server.connect();
        waiter
            .start("update t set v = v + 10 where id = 1")
            .expect("sent");
        drop(gone);
        let answer = waiter.finish().expect("an answer");
        assert!(answer.error().is_none(), "{:?}", answer.parts);
        assert_eq!(setup.run("select v from t").value(), "10");
    });
}

/// One vanishes while it waits for a lock itself: nobody waits for the dead.
#[test]
fn a_waiter_that_vanishes_leaves_the_queue() {
    with_server(|server| {
        let mut holder = server.connect();
        holder.run("create table t (id int primary key, v int); insert into t values (1, 0)");
        holder.run("begin; update t set v = 1");
        let mut waiter = server.connect();
        waiter
            .start("begin; update t set v = 2; update t set v = 3")
            .expect("sent");
        let asks = format!(
            "select wait_event_type from pg_stat_activity where pid = {}",
            waiter.pid
        );
        let mut monitor = server.connect();
        while !monitor
            .run(&asks)
            .rows()
            .iter()
            .any(|r| r[0].as_deref() == Some("Lock"))
        {}
        drop(waiter);
        holder.run("commit");
        monitor.run("update t set v = v + 10");
        let v: i32 = monitor
            .run("select v from t")
            .value()
            .parse()
            .expect("a number");
        assert!([11, 12, 13].contains(&v), "{v}");
    });
}

#[test]
fn a_client_that_reads_nothing_stops_nobody() {
    with_server(|server| {
        let mut frozen = server.connect();
        frozen
            .start("select repeat('x', 1000) from generate_series(1, 200000)")
            .expect("sent");
        // It has begun to be answered, so what is not read piles up.
        assert!(matches!(
            frozen.receive(PATIENCE).expect("a message"),
            Received::Message(_)
        ));
        let mut others: Vec<Client> = (0..8).map(|_| server.connect()).collect();
        for _ in 0..20 {
            for other in &mut others {
                assert_eq!(other.run("select 1").value(), "1");
            }
        }
    });
}

#[test]
fn cancel_stops_a_statement_and_not_the_session() {
    with_server(|server| {
        let mut client = server.connect();
        let mut monitor = server.connect();
        let asks = format!(
            "select count(*) from pg_stat_activity where pid = {} and state = 'active'",
            client.pid
        );
        for sql in [
            "select count(*) from generate_series(1, 1000000000)",
            "select pg_sleep(600)",
        ] {
            client.start(sql).expect("sent");
            while monitor.run(&asks).value() != "1" {}
            client.cancel().expect("cancelled");
            assert_eq!(client.finish().expect("an answer").code(), "57014", "{sql}");
            assert_eq!(client.run("select 1").value(), "1");
        }
    });
}

#[test]
fn sessions_end_when_the_server_is_stopped() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut idle = server.connect();
    let mut busy = server.connect();
    busy.run("create table t (v int)");
    busy.run("begin; insert into t values (1)");
    // One that has not said yet what it wants is not waited for.
    let _silent = TcpStream::connect(("127.0.0.1", server.port())).expect("connected");
    let asked = Instant::now();
    assert!(server.stop().success());
    assert!(
        asked.elapsed() < PATIENCE,
        "stopped after {:?}",
        asked.elapsed()
    );
    for client in [&mut idle, &mut busy] {
        assert_eq!(last_words(client), ["57P01"]);
    }
    let server = home.serve(&[]);
    assert_eq!(server.connect().run("select count(*) from t").value(), "0");
}

#[test]
fn one_server_a_directory() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let second = home.serve_to_end(&["--listen", "127.0.0.1:0"]);
    assert!(!second.status.success());
    assert!(!second.stderr.is_empty());
}

#[test]
fn other_addresses_need_a_password_first() {
    let home = Home::new();
    let refused = home.serve_to_end(&["--listen", "0.0.0.0:0"]);
    assert!(!refused.status.success());
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        message.contains("refusing to listen") && message.contains("PASSWORD"),
        "{message}"
    );

    let server = home.serve(&[]);
    server
        .connect()
        .run("alter role postgres password 'open sesame'");
    assert!(server.stop().success());
    let server = home.serve(&["--listen", "0.0.0.0:0"]);
    assert!(server.stop().success());
}

#[tokio::test]
async fn passwords_by_scram() {
    use tokio_postgres::{Config, NoTls};

    let home = Home::new();
    let server = home.serve(&[]);
    let mut first = server.connect();
    first.run("alter role postgres password 'correct horse'");
    first.run("create role reader login password 'battery staple'");
    first.run("create role guest");
    let login = |user: &'static str, password: &'static str| {
        let mut config = Config::new();
        config
            .host("127.0.0.1")
            .port(server.port())
            .user(user)
            .password(password)
            .dbname("postgres");
        config
    };
    for (user, password) in [("postgres", "correct horse"), ("reader", "battery staple")] {
        let (client, connection) = login(user, password).connect(NoTls).await.expect("let in");
        let served = tokio::spawn(connection);
        let row = client
            .query_one("select current_user::text", &[])
            .await
            .expect("a row");
        assert_eq!(row.get::<_, &str>(0), user);
        drop(client);
        served.await.expect("no panic").expect("a clean end");
    }
    for (user, password, code) in [
        ("postgres", "wrong", "28P01"),
        ("postgres", "", "28P01"),
        ("reader", "correct horse", "28P01"),
        ("nobody", "correct horse", "28P01"),
        ("guest", "correct horse", "28P01"),
    ] {
        let Err(refused) = login(user, password).connect(NoTls).await else {
            panic!("{user} was let in with {password:?}")
        };
        assert_eq!(
            refused.code().map(|c| c.code()),
            Some(code),
            "{user}: {refused}"
        );
    }
    // A session from before the password goes on.
    assert_eq!(first.run("select 1").value(), "1");
}

#[test]
fn the_unix_socket_serves_too() {
    let home = Home::new();
    let server = home.serve(&[]);
    let path = home.sockets().join(format!(".s.PGSQL.{}", server.port()));
    let mut client =
        Client::connect(&crate::client::Address::Unix(path.clone())).expect("connected");
    assert_eq!(client.run("select 1").value(), "1");
    drop(client);
    assert!(server.stop().success());
    assert!(!path.exists(), "the socket is left behind");
}

#[test]
fn parameters_reported_at_the_start() {
    with_server(|server| {
        let mut client = server.connect();
        let of = |client: &Client, name: &str| {
            client
                .parameters
                .iter()
                .rfind(|(n, _)| n == name)
                .map(|(_, v)| v.clone())
        };
        let version = of(&client, "server_version").expect("a version");
        assert!(
            version.starts_with("18.") && version.contains(" (Throng "),
            "{version}"
        );
        for (name, value) in [
            ("server_encoding", "UTF8"),
            ("client_encoding", "UTF8"),
            ("integer_datetimes", "on"),
            ("standard_conforming_strings", "on"),
            ("is_superuser", "on"),
            ("session_authorization", "postgres"),
        ] {
            assert_eq!(of(&client, name).as_deref(), Some(value), "{name}");
        }
        assert!(of(&client, "DateStyle").is_some() && of(&client, "TimeZone").is_some());
        client.run("set application_name = 'somebody'");
        assert_eq!(of(&client, "application_name").as_deref(), Some("somebody"));
    });
}

/// Portals that are fetched in pieces, and several statements in one message.
#[test]
fn pieces_and_batches() {
    with_server(|server| {
        let mut client = server.connect();
        let mut batch = framed(b'P', b"\0select * from generate_series(1, 5)\0\0\0");
        batch.extend(framed(b'B', b"\0\0\0\0\0\0\0\0"));
        for _ in 0..3 {
            batch.extend(framed(b'E', b"\0\0\0\0\x02"));
        }
        batch.extend(framed(b'S', b""));
        client.send(&batch).expect("sent");
        let mut tags = String::new();
        loop {
            match client.receive(Duration::from_secs(30)).expect("a message") {
                Received::Message(message) => tags.push(message.tag as char),
                _ => panic!("no answer after {tags}"),
            }
            if tags.ends_with('Z') {
                break;
            }
        }
        assert_eq!(tags, "12DDsDDsDCZ");

        let answer = client
            .query("select 1; select 2; select 1/0; select 3")
            .expect("an answer");
        assert_eq!(answer.rows().len(), 2);
        assert_eq!(answer.code(), "22012");
        let empty = client.query("").expect("an answer");
        assert_eq!(empty.parts, [AnswerPart::Complete("(empty)".to_owned())]);
        // All statements of one message are one transaction.
        client
            .query("create table t (v int); insert into t values (1); select 1/0")
            .expect("an answer");
        assert_eq!(
            client.query("select * from t").expect("an answer").code(),
            "42P01"
        );
    });
}

/// A parameter of CALL has its argument's type where the client says none.
#[test]
fn parameters_of_calls_are_of_their_arguments_types() {
    with_server(|server| {
        let mut client = server.connect();
        client.run(
            "create procedure twice(inout x integer) language plpgsql as $$begin x := x * 2; end$$",
        );
        let mut batch = framed(b'P', b"\0call twice($1)\0\0\0");
        batch.extend(framed(b'B', b"\0\0\0\0\0\x01\0\0\0\x0221\0\0"));
        batch.extend(framed(b'E', b"\0\0\0\0\0"));
        batch.extend(framed(b'S', b""));
        client.send(&batch).expect("sent");
        assert_eq!(client.finish().expect("an answer").value(), "42");
    });
}

/// So has one of CREATE TABLE AS; a materialized view keeps its query, which then must have none.
#[test]
fn parameters_of_a_tables_query_have_the_types_it_gives_them() {
    with_server(|server| {
        let mut client = server.connect();
        let mut bound = |sql: &[u8]| {
            let mut batch = framed(b'P', &[b"\0", sql, b"\0\0\0"].concat());
            batch.extend(framed(b'B', b"\0\0\0\0\0\x01\0\0\0\x041:00\0\0"));
            batch.extend(framed(b'E', b"\0\0\0\0\0"));
            batch.extend(framed(b'S', b""));
            client.send(&batch).expect("sent");
            client.finish().expect("an answer")
        };
        bound(b"create table early as select $1::time as t union select '2:00'");
        bound(b"create table no_time as select $1::time as t with no data");
        for create in [
            &b"create materialized view v as select $1::time as t"[..],
            b"explain create materialized view v as select $1::time as t",
        ] {
            assert_eq!(bound(create).code(), "0A000");
        }
        assert_eq!(
            client.run("select max(t) - min(t) from early").value(),
            "01:00:00"
        );
        assert_eq!(client.run("select count(t) from no_time").value(), "0");
    });
}

/// What a function says is told before its statement waits.
#[test]
fn a_message_comes_before_what_is_waited_for() {
    with_server(|server| {
        let mut holder = server.connect();
        holder.run("create table held (v int)");
        holder.run("begin; lock table held");
        let mut client = server.connect();
        let body = "begin raise notice 'waiting'; perform * from held; end";
        client.start(&format!("do $${body}$$")).expect("sent");
        match client.receive(Duration::from_secs(30)).expect("a message") {
            Received::Message(message) => assert_eq!(message.tag, b'N'),
            _ => panic!("no notice while the table is locked"),
        }
        holder.run("commit");
        assert_eq!(client.finish().expect("an answer").code(), "");
    });
}

#[test]
fn copied_lines_need_no_last_line_break() {
    with_server(|server| {
        let mut client = server.connect();
        client.run("create table t (v int)");
        for (options, data, copied) in [
            ("", &b"1\n2"[..], "COPY 2"),
            (" (format csv)", b"3", "COPY 1"),
            (" (format csv, on_error ignore)", b"4\nx", "COPY 1"),
            ("", b"", "COPY 0"),
        ] {
            let answer = client.copy_in(&format!("copy t from stdin{options}"), data);
            let answer = answer.expect("an answer");
            assert_eq!(
                answer.parts.last(),
                Some(&AnswerPart::Complete(copied.to_owned()))
            );
        }
        assert_eq!(client.run("select sum(v) from t").value(), "10");
    });
}

/// The messages up to the next ReadyForQuery, as tag and body.
fn messages(client: &mut Client) -> Vec<(char, Vec<u8>)> {
    let mut seen = Vec::new();
    loop {
        match client.receive(PATIENCE).expect("a message") {
            Received::Message(message) => seen.push((message.tag as char, message.body)),
            _ => panic!("no answer after {seen:?}"),
        }
        if seen.last().is_some_and(|(tag, _)| *tag == 'Z') {
            return seen;
        }
    }
}

/// A Bind of the unnamed portal, its parameters text.
fn bind(statement: &str, parameters: &[Option<&str>], result_formats: &[i16]) -> Vec<u8> {
    let mut body = vec![0];
    body.extend_from_slice(statement.as_bytes());
    body.extend_from_slice(&[0, 0, 0]);
    body.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
    for parameter in parameters {
        match parameter {
            None => body.extend_from_slice(&(-1_i32).to_be_bytes()),
            Some(text) => {
                body.extend_from_slice(&(text.len() as i32).to_be_bytes());
                body.extend_from_slice(text.as_bytes());
            }
        }
    }
    body.extend_from_slice(&(result_formats.len() as u16).to_be_bytes());
    for format in result_formats {
        body.extend_from_slice(&format.to_be_bytes());
    }
    framed(b'B', &body)
}

/// Bind, Execute and Sync that come together are run as one step. It is answered as the messages
/// are one by one, be it well or not.
#[test]
fn what_runs_at_once_is_answered_as_its_messages_are() {
    with_server(|server| {
        let mut client = server.connect();
        client.run(
            "create table kin (a int primary key);
             create table t (a int primary key, b text, k int references kin deferrable initially deferred);
             create function says(x int) returns int language plpgsql as
                 $$begin raise notice 'says %', x; return x; end$$",
        );
        for (name, sql) in [
            ("all", "select * from t order by a"),
            ("one", "select b, a from t where a = $1"),
            ("add", "insert into t values ($1, $2, $3)"),
            (
                "back",
                "update t set b = b || 'x' where a > $1 returning a, b",
            ),
            ("div", "select 10 / $1"),
            ("zero", "select a from t where a > 1 / 0"),
            ("says", "select says($1)"),
            ("show", "show work_mem"),
            ("set", "set work_mem = '8MB'"),
            ("begin", "begin"),
            ("rollback", "rollback"),
            ("empty", ""),
        ] {
            let parse = framed(b'P', format!("{name}\0{sql}\0\0\0").as_bytes());
            client.send(&parse).expect("sent");
            client.send(&framed(b'S', b"")).expect("sent");
            assert_eq!(messages(&mut client)[0].0, '1', "{name}");
        }
        let describe = framed(b'D', b"P\0");
        let execute = framed(b'E', b"\0\0\0\0\0");
        let flush = framed(b'H', b"");
        let sync = framed(b'S', b"");
        type Case<'a> = (&'a str, &'a [Option<&'a str>], &'a [i16], &'a str);
        let cases: &[Case<'_>] = &[
            ("all", &[], &[], "2TDDCZ"),
            ("all", &[], &[1], "2TDDCZ"),
            ("one", &[Some("2")], &[0, 1], "2TDCZ"),
            ("one", &[Some("7")], &[], "2TCZ"),
            ("one", &[None], &[], "2TCZ"),
            ("zero", &[], &[], "EZ"),
            // Of Bind itself, then of Execute, then of the commit.
            ("one", &[Some("x")], &[], "EZ"),
            ("one", &[], &[], "EZ"),
            ("one", &[Some("1")], &[0, 0, 0], "EZ"),
            ("nosuch", &[], &[], "EZ"),
            ("div", &[Some("0")], &[], "2TEZ"),
            ("add", &[Some("1"), None, None], &[], "2nEZ"),
            ("add", &[Some("3"), Some("c"), Some("9")], &[], "2nCEZ"),
            ("add", &[Some("3"), Some("c"), Some("5")], &[], "2nCZ"),
            ("back", &[Some("1")], &[], "2TDCZ"),
            ("says", &[Some("4")], &[], "2TNDCZ"),
            ("show", &[], &[], "2TDCZ"),
            ("set", &[], &[], "2nCZ"),
            ("empty", &[], &[], "2nIZ"),
            ("begin", &[], &[], "2nCZ"),
            ("rollback", &[], &[], "2nNCZ"),
        ];
        let before = [
            "",
            "begin",
            "begin; select 1/0",
            "set plan_cache_mode = force_custom_plan",
            "set default_transaction_isolation = 'serializable'",
            "set default_transaction_read_only = on",
        ];
        for before in before {
            for &(name, parameters, formats, tags) in cases {
                for describes in [true, false] {
                    let bind = bind(name, parameters, formats);
                    let described = if describes { &describe[..] } else { &[] };
                    let mut answers = Vec::new();
                    // Of the messages one by one, with an end that is none, and together.
                    for between in [&flush[..], &framed(b'C', b"Pnosuch\0"), &[]] {
                        let reset = "rollback; reset all; delete from t; delete from kin; insert into kin values (5);
                             insert into t values (1, 'a', 5), (2, 'b', 5)";
                        for sql in reset.split(';').chain(before.split("; ")) {
                            client.query(sql).expect("an answer");
                        }
                        let batch = [&bind[..], between, described, between, &execute, between];
                        client
                            .send(&[&batch.concat()[..], &sync].concat())
                            .expect("sent");
                        let mut answer = messages(&mut client);
                        // What the Close in between was answered with.
                        answer.retain(|(tag, _)| *tag != '3');
                        // Nobody can come back to the portal, but in a block.
                        client.send(&[&describe[..], &sync].concat()).expect("sent");
                        answer.extend(messages(&mut client));
                        let left = client.query("select a, b, k from t order by a");
                        answers.push((answer, left.expect("an answer").parts));
                    }
                    let what = format!("{before}: {name} {parameters:?} {formats:?}");
                    assert_eq!(answers[0], answers[2], "{what}");
                    assert_eq!(answers[1], answers[2], "{what}");
                    let told: String = answers[2].0.iter().map(|(tag, _)| *tag).collect();
                    if before.is_empty() && describes {
                        assert!(told.starts_with(tags), "{what}: {told}");
                    }
                }
            }
        }
    });
}

/// Several in one write, and a statement whose result has other columns by then.
#[test]
fn what_runs_at_once_comes_in_any_number() {
    with_server(|server| {
        let mut client = server.connect();
        client.run("create table t (a int); insert into t values (1)");
        let parse = framed(b'P', b"s\0select * from t\0\0\0");
        let sync = framed(b'S', b"");
        client.send(&[&parse[..], &sync].concat()).expect("sent");
        assert_eq!(messages(&mut client).len(), 2);
        let run = [
            &bind("s", &[], &[])[..],
            &framed(b'D', b"P\0"),
            &framed(b'E', b"\0\0\0\0\0"),
            &sync,
        ];
        let run = run.concat();
        client.send(&run.repeat(100)).expect("sent");
        for _ in 0..100 {
            assert_eq!(client.finish().expect("an answer").value(), "1");
        }
        client.run("alter table t alter a type text");
        client.send(&run.repeat(2)).expect("sent");
        for _ in 0..2 {
            assert_eq!(client.finish().expect("an answer").code(), "0A000");
        }
        // One that shares its transaction with others.
        let other = framed(b'P', b"\0insert into t values ('2')\0\0\0");
        let batch = [
            &other[..],
            &bind("", &[], &[]),
            &framed(b'E', b"\0\0\0\0\0"),
            &framed(b'P', b"\0select count(*) / 0 from t\0\0\0"),
            &bind("", &[], &[]),
            &framed(b'E', b"\0\0\0\0\0"),
            &sync,
        ];
        client.send(&batch.concat()).expect("sent");
        assert_eq!(client.finish().expect("an answer").code(), "22012");
        assert_eq!(client.run("select count(*) from t").value(), "1");
    });
}

/// A transaction begins with the message that begins it, not with the statement before.
#[test]
fn a_bound_statements_time_is_its_own() {
    with_server(|server| {
        let mut client = server.connect();
        let sql = "select extract(epoch from clock_timestamp() - now()) < 0.5";
        let parse = framed(b'P', format!("s\0{sql}\0\0\0").as_bytes());
        let sync = framed(b'S', b"");
        client.send(&[&parse[..], &sync].concat()).expect("sent");
        messages(&mut client);
        let bind = bind("s", &[], &[]);
        let execute = framed(b'E', b"\0\0\0\0\0");
        for between in [&framed(b'H', b"")[..], &[]] {
            std::thread::sleep(Duration::from_millis(600));
            let batch = [&bind[..], between, &execute, &sync].concat();
            client.send(&batch).expect("sent");
            assert_eq!(client.finish().expect("an answer").value(), "t");
        }
    });
}
