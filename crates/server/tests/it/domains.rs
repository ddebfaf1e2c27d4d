//! Parameters that clients declare as of a domain, in text and binary. With `THRONG_ORACLE` set,
//! PostgreSQL is asked.

use crate::client::{Answer, Client, framed};
use crate::script::Target;

fn oid(client: &mut Client, name: &str) -> u32 {
    let answer = client.run(&format!("select '{name}'::regtype::oid"));
    answer.value().parse().expect("a number")
}

/// `sql` with one parameter of this type, in binary unless `text`; the answer is text.
fn ask(client: &mut Client, sql: &str, ty: u32, text: bool, value: Option<&[u8]>) -> Answer {
    let mut parse = format!("\0{sql}\0\0\x01").into_bytes();
    parse.extend_from_slice(&ty.to_be_bytes());
    let mut bind = b"\0\0\0\x01\0".to_vec();
    bind.push(u8::from(!text));
    bind.extend_from_slice(b"\0\x01");
    let length = value.map_or(-1, |value| value.len() as i32);
    bind.extend_from_slice(&length.to_be_bytes());
    bind.extend_from_slice(value.unwrap_or_default());
    bind.extend_from_slice(b"\0\0");
    let mut batch = framed(b'P', &parse);
    batch.extend(framed(b'B', &bind));
    batch.extend(framed(b'E', b"\0\0\0\0\0"));
    batch.extend(framed(b'S', b""));
    client.send(&batch).expect("sent");
    client.finish().expect("an answer")
}

fn array(element: u32, items: &[i32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [1, 0, element as i32, items.len() as i32, 1] {
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    for item in items {
        bytes.extend_from_slice(&4i32.to_be_bytes());
        bytes.extend_from_slice(&item.to_be_bytes());
    }
    bytes
}

fn record(fields: &[(u32, &[u8])]) -> Vec<u8> {
    let mut bytes = (fields.len() as i32).to_be_bytes().to_vec();
    for (ty, value) in fields {
        bytes.extend_from_slice(&ty.to_be_bytes());
        bytes.extend_from_slice(&(value.len() as i32).to_be_bytes());
        bytes.extend_from_slice(value);
    }
    bytes
}

#[test]
fn parameters_may_be_of_domains() {
    let target = Target::new();
    let mut client = target.connect();
    client.run("drop table if exists measured; drop type if exists pair; drop domain if exists positive, word");
    client.run("create domain positive as int not null check (value > 0)");
    client.run("create domain word as varchar(3)");
    client.run("create type pair as (a positive, b text)");
    client.run("create table measured (a positive, b positive[], c pair)");
    let client = &mut client;
    let positive = oid(client, "positive");
    let (positives, pair, word) = (
        oid(client, "positive[]"),
        oid(client, "pair"),
        oid(client, "word"),
    );

    let five = 5i32.to_be_bytes();
    let bad = (-5i32).to_be_bytes();
    let sum = "select $1 + 1";
    assert_eq!(ask(client, sum, positive, false, Some(&five)).value(), "6");
    assert_eq!(ask(client, sum, positive, true, Some(b"7")).value(), "8");
    assert_eq!(
        ask(client, sum, positive, false, Some(&bad)).code(),
        "23514"
    );
    assert_eq!(
        ask(client, sum, positive, true, Some(b"-7")).code(),
        "23514"
    );
    assert_eq!(ask(client, sum, positive, false, None).code(), "23502");
    assert_eq!(ask(client, sum, positive, true, None).code(), "23502");
    assert_eq!(
        ask(client, sum, positive, false, Some(b"\0")).code(),
        "08P01"
    );

    let second = "select $1[2], cardinality($1)";
    let answer = ask(
        client,
        second,
        positives,
        false,
        Some(&array(positive, &[3, 4])),
    );
    assert_eq!(answer.rows()[0][0].as_deref(), Some("4"));
    let answer = ask(client, second, positives, true, Some(b"{3,4,5}"));
    assert_eq!(answer.rows()[0][1].as_deref(), Some("3"));
    let answer = ask(
        client,
        second,
        positives,
        false,
        Some(&array(positive, &[3, -4])),
    );
    assert_eq!(answer.code(), "23514");
    assert_eq!(
        ask(client, second, positives, true, Some(b"{3,-4}")).code(),
        "23514"
    );

    let whole = record(&[(positive, &five), (25, b"x y")]);
    let fields = "select $1, ($1).a";
    let answer = ask(client, fields, pair, false, Some(&whole));
    assert_eq!(answer.rows()[0][0].as_deref(), Some("(5,\"x y\")"));
    let refused = record(&[(positive, &bad), (25, b"x")]);
    assert_eq!(
        ask(client, fields, pair, false, Some(&refused)).code(),
        "23514"
    );
    let plain = record(&[(23, &five), (25, b"x")]);
    assert_eq!(
        ask(client, fields, pair, false, Some(&plain)).code(),
        "42804"
    );

    assert_eq!(
        ask(client, "select $1 || '!'", word, true, Some(b"abc")).value(),
        "abc!"
    );
    assert_eq!(
        ask(client, "select $1 || '!'", word, false, Some(b"abcd")).code(),
        "22001"
    );

    // Stored, and what is stored is as if it had been written.
    ask(
        client,
        "insert into measured (a) values ($1)",
        positive,
        false,
        Some(&five),
    );
    ask(
        client,
        "update measured set b = $1",
        positives,
        false,
        Some(&array(positive, &[1, 2])),
    );
    ask(
        client,
        "update measured set c = $1",
        pair,
        false,
        Some(&whole),
    );
    let answer = client.run("select a + 1, b[2] + 1, (c).b from measured");
    let row = [
        Some("6".to_owned()),
        Some("3".to_owned()),
        Some("x y".to_owned()),
    ];
    assert_eq!(answer.rows(), [&row.to_vec()]);
    client.run("drop table measured; drop type pair; drop domain positive, word");
    target.end();
}
