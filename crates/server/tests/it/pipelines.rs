//! When answers leave, and to what messages that follow each other in the extended protocol answer.

use std::time::{Duration, Instant};

use crate::client::{Client, PATIENCE, Received, framed};
use crate::protocol::with_server;

fn parse(name: &str, sql: &str) -> Vec<u8> {
    framed(b'P', format!("{name}\0{sql}\0\0\0").as_bytes())
}

fn bind(portal: &str, statement: &str) -> Vec<u8> {
    framed(
        b'B',
        format!("{portal}\0{statement}\0\0\0\0\0\0\0").as_bytes(),
    )
}

fn describe(what: char, name: &str) -> Vec<u8> {
    framed(b'D', format!("{what}{name}\0").as_bytes())
}

fn execute(portal: &str) -> Vec<u8> {
    framed(b'E', format!("{portal}\0\0\0\0\0").as_bytes())
}

fn query(sql: &str) -> Vec<u8> {
    framed(b'Q', format!("{sql}\0").as_bytes())
}

const SYNC: &[u8] = b"S\0\0\0\x04";
const FLUSH: &[u8] = b"H\0\0\0\x04";

/// The tags of messages up to the next ReadyForQuery, an error's with its SQLSTATE.
fn tags(client: &mut Client) -> String {
    let mut seen = String::new();
    while !seen.ends_with('Z') {
        match client.receive(PATIENCE).expect("a message") {
            Received::Message(message) => {
                seen.push(message.tag as char);
                if message.tag == b'E' {
                    let fields = message.body.split(|b| *b == 0);
                    let code = fields.into_iter().find(|f| f.first() == Some(&b'C'));
                    seen += &String::from_utf8_lossy(&code.expect("a code")[1..]);
                }
            }
            _ => panic!("no answer after {seen}"),
        }
    }
    seen
}

fn answered(client: &mut Client, messages: &[&[u8]]) -> String {
    client.send(&messages.concat()).expect("sent");
    tags(client)
}

/// Whether nothing comes for a while.
fn is_silent(client: &mut Client) -> bool {
    let received = client.receive(Duration::from_millis(300));
    matches!(received, Ok(Received::Nothing))
}

#[test]
fn answers_wait_for_flush_or_sync() {
    with_server(|server| {
        let mut client = server.connect();
        let batch = [
            parse("", "select 1"),
            bind("", ""),
            describe('P', ""),
            execute(""),
        ]
        .concat();
        client.send(&batch).expect("sent");
        assert!(is_silent(&mut client));
        client.send(SYNC).expect("sent");
        assert_eq!(tags(&mut client), "12TDCZ");
        client.send(&batch).expect("sent");
        assert!(is_silent(&mut client));
        client.send(FLUSH).expect("sent");
        for tag in *b"12TDC" {
            let Ok(Received::Message(message)) = client.receive(PATIENCE) else {
                panic!("no answer")
            };
            assert_eq!(message.tag, tag);
        }
        assert_eq!(answered(&mut client, &[SYNC]), "Z");
        // An error does not wait; what follows it is passed over.
        client.send(&parse("", "select nothing")).expect("sent");
        let Ok(Received::Message(message)) = client.receive(PATIENCE) else {
            panic!("no answer")
        };
        assert_eq!(message.tag, b'E');
        assert_eq!(answered(&mut client, &[&batch, SYNC]), "Z");
        // Nor do long answers.
        let long = [
            parse("", "select repeat('x', 20000)"),
            bind("", ""),
            execute(""),
        ]
        .concat();
        client.send(&long).expect("sent");
        assert!(!is_silent(&mut client));
        client.send(SYNC).expect("sent");
        assert!(tags(&mut client).ends_with('Z'));
    });
}

#[test]
fn an_answer_does_not_wait_for_the_next_statement() {
    with_server(|server| {
        let mut client = server.connect();
        let one = |sql: &str| [&parse("", sql)[..], &bind("", ""), &execute(""), SYNC].concat();
        let simple = [
            query("select 1"),
            query("select pg_sleep(1)"),
            query("select 3"),
        ];
        let extended = [one("select 1"), one("select pg_sleep(1)"), one("select 3")];
        for messages in [simple, extended] {
            let begun = Instant::now();
            client.send(&messages.concat()).expect("sent");
            tags(&mut client);
            assert!(begun.elapsed() < Duration::from_millis(700));
            tags(&mut client);
            tags(&mut client);
            assert!(begun.elapsed() >= Duration::from_millis(1000));
        }
    });
}

#[test]
fn time_limits_act_from_the_next_statement_on() {
    with_server(|server| {
        let mut client = server.connect();
        let both = "set statement_timeout = '50ms'; select 1 from pg_sleep(1)";
        assert_eq!(answered(&mut client, &[&query(both)]), "CTE57014Z");
        client.run("set statement_timeout = '50ms'");
        // Each has its own time.
        let each = "select pg_sleep(0.03); select pg_sleep(0.03); select pg_sleep(0.03)";
        assert_eq!(answered(&mut client, &[&query(each)]), "TDCTDCTDCZ");
        // One statement's messages share theirs, from Parse on.
        client
            .send(&[&parse("s", "select 1")[..], FLUSH].concat())
            .expect("sent");
        std::thread::sleep(Duration::from_millis(150));
        assert_eq!(
            answered(&mut client, &[&describe('S', "s"), SYNC]),
            "1E57014Z"
        );
        let again = [parse("t", "select 1"), bind("", "t"), execute("")].concat();
        client.send(&[&again[..], FLUSH].concat()).expect("sent");
        std::thread::sleep(Duration::from_millis(150));
        assert_eq!(
            answered(&mut client, &[&bind("", "t"), &execute(""), SYNC]),
            "12DC2DCZ"
        );
    });
}

#[test]
fn a_statement_that_cannot_be_computed_has_no_columns() {
    with_server(|server| {
        let mut client = server.connect();
        client.run("create table t (a int); insert into t values (0)");
        for (sql, seen) in [
            ("select 1; select 1/0; select 2", "TDCE22012Z"),
            ("select 1/a from t", "TE22012Z"),
            ("select 'x'::text::int", "E22P02Z"),
            ("select 1/(random()*0)::int", "TE22012Z"),
        ] {
            assert_eq!(answered(&mut client, &[&query(sql)]), seen, "{sql}");
        }
    });
}

#[test]
fn a_portal_knows_what_its_command_shows_when_it_is_bound() {
    with_server(|server| {
        let mut client = server.connect();
        let fetch = parse("f", "fetch all in \"qc\"");
        assert_eq!(
            answered(&mut client, &[&fetch, &describe('S', "f"), SYNC]),
            "1tnZ"
        );
        client.run("begin");
        client.run("declare qc cursor for select * from generate_series(1, 2)");
        let run = [&bind("", "f")[..], &describe('P', ""), &execute(""), SYNC];
        assert_eq!(answered(&mut client, &run), "2TDDCZ");
        client.run("rollback");
        // Other commands are looked at when they run.
        let drop = [
            &parse("d", "drop table nope")[..],
            &describe('S', "d"),
            &bind("", "d"),
        ];
        let drop = [&drop.concat()[..], &execute(""), SYNC];
        assert_eq!(answered(&mut client, &drop), "1tn2E42P01Z");
    });
}

#[test]
fn a_failed_transactions_portals_are_refused_until_it_ends() {
    with_server(|server| {
        let mut client = server.connect();
        client.run("begin");
        let made = [&parse("s", "select 1")[..], &bind("p", "s"), SYNC];
        assert_eq!(answered(&mut client, &made), "12Z");
        assert_eq!(
            answered(&mut client, &[&query("select nothing")]),
            "E42703Z"
        );
        assert_eq!(answered(&mut client, &[&execute("p"), SYNC]), "E25P02Z");
        assert_eq!(answered(&mut client, &[&execute("q"), SYNC]), "E34000Z");
        client.run("rollback");
        assert_eq!(answered(&mut client, &[&execute("p"), SYNC]), "E34000Z");
    });
}

/// Errors and notices say where they come from.
#[test]
fn errors_have_a_place() {
    with_server(|server| {
        let mut client = server.connect();
        client.send(&query("select nothing")).expect("sent");
        let Ok(Received::Message(message)) = client.receive(PATIENCE) else {
            panic!("no answer")
        };
        let fields: Vec<u8> = message
            .body
            .split(|b| *b == 0)
            .filter_map(|f| f.first().copied())
            .collect();
        for field in *b"SVCMPFLR" {
            assert!(fields.contains(&field), "no {}", field as char);
        }
    });
}
