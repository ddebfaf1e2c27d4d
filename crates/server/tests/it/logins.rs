//! Logins: who is let in, how many, for how long, and what the log has of it.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use tokio_postgres::{Config, NoTls};

use crate::client::{Address, Client};
use crate::server::{Home, Server};

fn login(server: &Server, user: &str, password: &str) -> Config {
    let mut config = Config::new();
    config
        .host("127.0.0.1")
        .port(server.port())
        .user(user)
        .password(password)
        .dbname("postgres");
    config
}

/// The SQLSTATE and the message that a client is refused with.
async fn refusal(config: &Config) -> Option<(String, String)> {
    let error = config.connect(NoTls).await.err()?;
    let error = error.as_db_error().expect("an answer");
    Some((error.code().code().to_owned(), error.message().to_owned()))
}

#[tokio::test]
async fn expired_passwords_and_limits_of_roles() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut first = server.connect();
    for sql in [
        "create role exp login password 'x' valid until '2001-01-01'",
        "create role good login password 'x' valid until 'infinity'",
        "create role later login password 'x' valid until '2999-01-01 12:00+05'",
        "create role none login password 'x' connection limit 0",
        "create role one login password 'x' connection limit 1",
        "create role god superuser login password 'x' connection limit 0 ",
        "create role bare login valid until '2001-01-01'",
    ] {
        first.run(sql);
    }
    let of = async |user: &str, password: &str| refusal(&login(&server, user, password)).await;
    let failed = |user: &str| {
        let message = format!("password authentication failed for user \"{user}\"");
        Some(("28P01".to_owned(), message))
    };
    let many = |user: &str| {
        let message = format!("too many connections for role \"{user}\"");
        Some(("53300".to_owned(), message))
    };
    assert_eq!(of("exp", "x").await, failed("exp"));
    assert_eq!(of("exp", "y").await, failed("exp"));
    assert_eq!(of("bare", "x").await, failed("bare"));
    assert_eq!(of("nobody", "x").await, failed("nobody"));
    assert_eq!(of("good", "y").await, failed("good"));
    for user in ["good", "later", "god"] {
        assert_eq!(of(user, "x").await, None, "{user}");
    }
    assert_eq!(of("none", "x").await, many("none"));
    let (_held, connection) = login(&server, "one", "x").connect(NoTls).await.expect("in");
    let served = tokio::spawn(connection);
    assert_eq!(of("one", "x").await, many("one"));
    drop(_held);
    served.await.expect("no panic").expect("a clean end");
    let deadline = Instant::now() + Duration::from_secs(10);
    while of("one", "x").await.is_some() {
        assert!(Instant::now() < deadline, "its place is not given back");
    }
    let log = home.log_text();
    for told in [
        "User \"exp\" has an expired password.",
        "User \"bare\" has no password assigned.",
        "Role \"nobody\" does not exist.",
        "Password does not match for user \"good\".",
        "too many connections for role \"none\"",
    ] {
        assert!(log.contains(told), "{told} is not in\n{log}");
    }
}

#[test]
fn places_are_kept_for_superusers() {
    let home = Home::new();
    let server = home.serve(&[
        "--set",
        "max_connections=5",
        "--set",
        "superuser_reserved_connections=2",
        "--set",
        "reserved_connections=1",
    ]);
    let mut owner = server.connect();
    owner.run("create role plain login");
    owner.run("create role helper login in role pg_use_reserved_connections");
    let enter = |user: &str| Client::enter(&server.address(), user, "postgres").expect("an answer");
    let refused = |user: &str| {
        let (_, answer) = enter(user);
        let error = answer.error().expect("a refusal");
        (error.code.clone(), error.message.clone())
    };
    let _second = enter("plain");
    let message = "remaining connection slots are reserved for roles with privileges of the \"pg_use_reserved_connections\" role";
    assert_eq!(refused("plain"), ("53300".into(), message.into()));
    let _third = enter("helper");
    let message = "remaining connection slots are reserved for roles with the SUPERUSER attribute";
    assert_eq!(refused("helper"), ("53300".into(), message.into()));
    let _fourth = server.connect();
    let mut fifth = server.connect();
    assert_eq!(fifth.run("select 1").value(), "1");
    let message = "sorry, too many clients already";
    assert_eq!(refused("postgres"), ("53300".into(), message.into()));
}

/// Silent sockets in any number keep nobody out, and go by themselves.
#[test]
fn silent_sockets_keep_nobody_out() {
    let home = Home::new();
    let server = home.serve(&["--set", "authentication_timeout=2"]);
    let Address::Tcp(address) = server.address() else {
        panic!("a server without an address")
    };
    let silent: Vec<TcpStream> = (0..900)
        .filter_map(|_| TcpStream::connect(address).ok())
        .collect();
    let mut client = server.connect();
    client.run("create table t (a int)");
    client.run("insert into t values (1)");
    assert_eq!(server.connect().run("select a from t").value(), "1");
    for mut socket in silent {
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("set");
        let read = std::io::Read::read(&mut socket, &mut [0; 100]);
        assert!(
            matches!(read, Ok(0))
                || read.is_err_and(|e| e.kind() != std::io::ErrorKind::WouldBlock)
        );
    }
}

#[test]
fn the_log_has_what_is_asked_for() {
    let home = Home::new();
    let server = home.serve(&[
        "--set",
        "log_connections=all",
        "--set",
        "log_disconnections=on",
    ]);
    let mut client = server.connect();
    client.run("set log_statement = 'mod'");
    client.run("create table logged (a int)");
    client.run("insert into logged values (1)");
    client.run("select 'not told'");
    client.run("set log_statement = 'all'; set log_min_duration_statement = 0");
    client.run("select 'told'");
    let code =
        |client: &mut Client, sql: &str| client.query(sql).expect("an answer").code().to_owned();
    assert_eq!(code(&mut client, "select 1/0 as failed"), "22012");
    client.run("set log_min_error_statement = 'panic'; set log_statement = 'none'; set log_min_duration_statement = -1");
    assert_eq!(code(&mut client, "select 1/0 as untold"), "22012");
    client.run("set log_min_messages = 'fatal'");
    assert_eq!(code(&mut client, "select unknown_column"), "42703");
    drop(client);
    assert!(server.stop().success());
    let log = home.log_text();
    for told in [
        "connection authorized: user=postgres database=postgres",
        "statement: create table logged (a int)",
        "statement: insert into logged values (1)",
        "statement: select 'told'",
        "duration: ",
        "division by zero",
        "select 1/0 as failed",
        "disconnection: session time: 0:00:0",
    ] {
        assert!(log.contains(told), "{told} is not in\n{log}");
    }
    for untold in ["not told", "as untold", "unknown_column"] {
        assert!(!log.contains(untold), "{untold} is in\n{log}");
    }
}

/// What ends a session that waits for its client, and one whose transaction lasts too long.
#[test]
fn sessions_end_when_their_time_is_over() {
    let home = Home::new();
    let server = home.serve(&[]);
    let ends = |settings: &str, then: &str| {
        let mut client = server.connect();
        client.run(settings);
        if !then.is_empty() {
            client.start(then).expect("sent");
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let answer = client.poll(Duration::from_secs(20)).expect("an answer");
            let answer = answer.expect("an end");
            if let Some(error) = answer.error() {
                return error.code.clone();
            }
            assert!(Instant::now() < deadline);
        }
    };
    assert_eq!(ends("set idle_session_timeout = 100", ""), "57P05");
    assert_eq!(
        ends(
            "set transaction_timeout = 200",
            "begin; select pg_sleep(10)"
        ),
        "25P04"
    );
    assert_eq!(ends("set transaction_timeout = 200", "begin"), "25P04");
    assert_eq!(
        ends("set transaction_timeout = 200", "select pg_sleep(10)"),
        "25P04"
    );
    let idle = "set idle_in_transaction_session_timeout = 100";
    assert_eq!(ends(idle, "begin"), "25P03");
    let both = "set transaction_timeout = 200; set statement_timeout = 100";
    assert_eq!(ends(both, "select pg_sleep(10)"), "57014");
}
