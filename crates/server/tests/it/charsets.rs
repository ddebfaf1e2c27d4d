//! Clients that do not speak UTF-8. With `THRONG_ORACLE` set, the same is asked of PostgreSQL.

use crate::client::{Client, Message, PATIENCE, Received, framed};
use crate::script::Target;

/// All messages of an answer but those that say that it ends, as tag and body; a COPY that asks for
/// data gets these.
fn ask(client: &mut Client, messages: &[u8], data: &[u8]) -> Vec<(char, Vec<u8>)> {
    client.send(messages).expect("sent");
    let mut answer = Vec::new();
    loop {
        match client.receive(PATIENCE).expect("an answer") {
            Received::Message(Message { tag: b'Z', .. }) => return answer,
            Received::Message(Message { tag: b'G', .. }) => {
                for piece in data.chunks(3) {
                    client.send(&framed(b'd', piece)).expect("sent");
                }
                client.send(&framed(b'c', b"")).expect("sent");
            }
            Received::Message(message) => answer.push((char::from(message.tag), message.body)),
            Received::Nothing | Received::End => {
                panic!("the connection is neither answered nor open")
            }
        }
    }
}

fn query(client: &mut Client, sql: &[u8]) -> Vec<(char, Vec<u8>)> {
    ask(client, &framed(b'Q', &[sql, b"\0"].concat()), b"")
}

/// The only value of each row.
fn values(answer: &[(char, Vec<u8>)]) -> Vec<&[u8]> {
    let rows = answer.iter().filter(|(tag, _)| *tag == 'D');
    rows.map(|(_, body)| &body[6..]).collect()
}

/// A field of the error or notice among these.
fn field(answer: &[(char, Vec<u8>)], key: u8) -> Option<Vec<u8>> {
    let (_, body) = answer.iter().find(|(tag, _)| matches!(tag, 'E' | 'N'))?;
    let mut fields = body.split(|b| *b == 0);
    let found = fields.find(|field| field.first() == Some(&key))?;
    Some(found[1..].to_vec())
}

fn column_name(answer: &[(char, Vec<u8>)]) -> &[u8] {
    let (_, body) = answer.iter().find(|(tag, _)| *tag == 'T').expect("columns");
    body[2..].split(|b| *b == 0).next().expect("a name")
}

#[test]
fn what_clients_send_and_get_is_in_their_character_set() {
    let target = Target::new();
    let mut client = target.connect();
    let set = |client: &mut Client, name: &str| {
        let answer = query(client, format!("set client_encoding = '{name}'").as_bytes());
        let told = answer.iter().find(|(tag, _)| *tag == 'S');
        told.map(|(_, body)| String::from_utf8_lossy(body).into_owned())
    };
    query(&mut client, b"drop table if exists spoken");
    query(&mut client, b"create table spoken (n int, t text)");

    // Statements, values, columns' names.
    assert_eq!(
        set(&mut client, "iso-8859-15").as_deref(),
        Some("client_encoding\0LATIN9\0")
    );
    query(
        &mut client,
        b"insert into spoken values (1, 'caf\xe9 \xa4')",
    );
    let answer = query(
        &mut client,
        b"select convert_to(t, 'UTF8')::text as \"\xe9\xa4\" from spoken",
    );
    assert_eq!(values(&answer), [b"\\x636166c3a920e282ac"]);
    assert_eq!(column_name(&answer), b"\xe9\xa4");
    assert_eq!(
        values(&query(&mut client, b"select t from spoken")),
        [b"caf\xe9 \xa4"]
    );
    // The same statement again, for what is known of it was told in UTF-8.
    set(&mut client, "utf8");
    let answer = query(&mut client, "select t as \"é\" from spoken".as_bytes());
    assert_eq!(values(&answer), ["café €".as_bytes()]);
    set(&mut client, "latin9");
    assert_eq!(
        column_name(&query(&mut client, b"select t as \"\xe9\" from spoken")),
        b"\xe9"
    );

    // What has no equivalent is an error, and the session goes on.
    set(&mut client, "latin1");
    let answer = query(&mut client, b"select t from spoken");
    assert_eq!(field(&answer, b'C').as_deref(), Some(&b"22P05"[..]));
    assert_eq!(
        field(&answer, b'M')
            .map(|m| String::from_utf8_lossy(&m).into_owned())
            .as_deref(),
        Some(
            "character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\""
        )
    );
    assert_eq!(values(&query(&mut client, b"select 1")), [b"1"]);

    // Errors and notices.
    let answer = query(&mut client, b"select * from \"\xfc\xe9\"");
    assert_eq!(
        field(&answer, b'M').as_deref(),
        Some(&b"relation \"\xfc\xe9\" does not exist"[..])
    );
    let answer = query(
        &mut client,
        b"do $$ begin raise notice '\xfc %', chr(233); end $$",
    );
    assert_eq!(field(&answer, b'M').as_deref(), Some(&b"\xfc \xe9"[..]));

    // Statements that are none of the character set; in a transaction it has failed.
    for (charset, sql, code, message) in [
        (
            "win1252",
            &b"select '\x81'"[..],
            "22P05",
            "character with byte sequence 0x81 in encoding \"WIN1252\" has no equivalent in encoding \"UTF8\"",
        ),
        (
            "sjis",
            b"select '\x81",
            "22021",
            "invalid byte sequence for encoding \"SJIS\": 0x81",
        ),
        (
            "utf8",
            b"select '\xe9'",
            "22021",
            "invalid byte sequence for encoding \"UTF8\": 0xe9 0x27",
        ),
    ] {
        set(&mut client, charset);
        query(&mut client, b"begin");
        let answer = query(&mut client, sql);
        let told = |key| field(&answer, key).map(|m| String::from_utf8_lossy(&m).into_owned());
        assert_eq!(told(b'C').as_deref(), Some(code), "{charset}");
        assert_eq!(told(b'M').as_deref(), Some(message), "{charset}");
        let answer = query(&mut client, b"select 1");
        assert_eq!(
            field(&answer, b'C').as_deref(),
            Some(&b"25P02"[..]),
            "{charset}"
        );
        query(&mut client, b"rollback");
    }

    // Names and values of the extended protocol, as text and binary; a character whose second byte
    // is a backslash.
    set(&mut client, "sjis");
    let mut batch = framed(
        b'P',
        b"\x83\x5c\0select $1::text || '\x83\x5c', $2::int\0\0\0",
    );
    for format in [0, 1] {
        let bind = [
            &b"\0\x83\x5c\0\0\x01\0"[..],
            &[format],
            b"\0\x02\0\0\0\x02\x82\xa0",
            match format {
                0 => &b"\0\0\0\x015"[..],
                _ => b"\0\0\0\x04\0\0\0\x05",
            },
            b"\0\x01\0",
            &[format],
        ]
        .concat();
        batch.extend(framed(b'B', &bind));
        batch.extend(framed(b'E', b"\0\0\0\0\0"));
    }
    batch.extend(framed(b'C', b"S\x83\x5c\0"));
    batch.extend(framed(b'S', b""));
    let answer = ask(&mut client, &batch, b"");
    let rows: Vec<_> = answer.iter().filter(|(tag, _)| *tag == 'D').collect();
    assert_eq!(rows.len(), 2, "{answer:?}");
    assert!(
        rows[0]
            .1
            .ends_with(b"\0\0\0\x04\x82\xa0\x83\x5c\0\0\0\x015"),
        "{rows:?}"
    );
    assert!(
        rows[1]
            .1
            .ends_with(b"\0\0\0\x04\x82\xa0\x83\x5c\0\0\0\x04\0\0\0\x05"),
        "{rows:?}"
    );

    // COPY, in pieces that cut characters; ENCODING says otherwise.
    query(&mut client, b"truncate spoken");
    let copy = framed(b'Q', b"copy spoken from stdin\0");
    ask(
        &mut client,
        &copy,
        b"1\t\x83\x5c\x83\x5c\\\\\x82\xa0\n2\t\xb1\n",
    );
    let copy = framed(
        b'Q',
        b"copy spoken from stdin (format csv, encoding 'win1251')\0",
    );
    ask(&mut client, &copy, b"3,\xcf\xf0\xe8\n");
    set(&mut client, "utf8");
    let answer = query(&mut client, b"select t from spoken order by n");
    let expected = ["ソソ\\あ", "ｱ", "При"].map(str::as_bytes);
    assert_eq!(values(&answer), expected);
    set(&mut client, "euc_jp");
    let answer = query(
        &mut client,
        b"copy (select t from spoken where n < 3 order by n) to stdout",
    );
    let lines: Vec<_> = answer.iter().filter(|(tag, _)| *tag == 'd').collect();
    assert_eq!(lines[0].1, b"\xa5\xbd\xa5\xbd\\\\\xa4\xa2\n");
    assert_eq!(lines[1].1, b"\x8e\xb1\n");
    let answer = query(
        &mut client,
        b"copy (select t from spoken where n = 3) to stdout (encoding 'koi8r')",
    );
    assert!(
        answer.contains(&('d', b"\xf0\xd2\xc9\n".to_vec())),
        "{answer:?}"
    );
    let answer = query(&mut client, b"copy spoken to stdout (encoding 'klingon')");
    assert_eq!(field(&answer, b'C').as_deref(), Some(&b"22023"[..]));

    // What is set is undone with its transaction.
    query(&mut client, b"begin");
    set(&mut client, "win1252");
    query(&mut client, b"rollback");
    assert_eq!(
        values(&query(&mut client, b"show client_encoding")),
        [b"EUC_JP"]
    );
    query(&mut client, b"drop table spoken");
    drop(client);
    target.end();
}
