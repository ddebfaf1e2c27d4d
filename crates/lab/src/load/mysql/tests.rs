//! Conversations with servers that say what a test tells them to.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use proptest::prelude::*;

use super::*;
use crate::load::connection::Connection;
use crate::load::dialect::Dialect;
use crate::load::reactor;
use crate::load::rows::Rows;
use crate::load::sql::Book;

/// A server for one connection: it says its greeting, then one line for each packet that it is
/// sent, then nothing any more, and hangs up its side. What it was sent is the result.
struct Canned {
    address: SocketAddr,
    running: JoinHandle<Vec<Vec<u8>>>,
}

impl Canned {
    fn start(greeting: Vec<u8>, lines: Vec<Vec<u8>>) -> Canned {
        let mut lines = [vec![greeting], lines].concat().into_iter();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let running = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut heard = Vec::new();
            loop {
                // A client that has heard enough hangs up, at any point.
                let _ = lines.next().map(|line| stream.write_all(&line));
                if lines.len() == 0 {
                    let _ = stream.shutdown(Shutdown::Write);
                }
                match sent(&mut stream) {
                    Ok(body) => heard.push(body),
                    Err(_) => return heard,
                }
            }
        });
        Canned { address, running }
    }

    fn target(&self) -> Target {
        Target {
            dialect: Dialect::MySql,
            ..Target::local(self.address)
        }
    }

    fn heard(self) -> Vec<Vec<u8>> {
        self.running.join().expect("the server's thread")
    }
}

/// The next packet of a client.
fn sent(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let [a, b, c, _] = header;
    let mut body = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// Bodies as packets, the first with this sequence number.
fn packets(first: u8, bodies: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (sequence, body) in (first..).zip(bodies) {
        let [a, b, c, ..] = (body.len() as u32).to_le_bytes();
        bytes.extend_from_slice(&[a, b, c, sequence]);
        bytes.extend_from_slice(body);
    }
    bytes
}

const DONE: &[u8] = b"\0\0\0\x02\0\0\0";

fn greeting() -> Vec<u8> {
    packets(0, &[&auth::tests::handshake("mysql_native_password")])
}

/// The server's lines until the session is ready, then `more`.
fn ready(more: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut lines = vec![
        packets(2, &[DONE]),
        packets(1, &[DONE]),
        packets(1, &[DONE]),
    ];
    lines.extend_from_slice(more);
    lines
}

fn column(kind: u8) -> Vec<u8> {
    let mut body = b"\x03def\0\0\0\x01n\0\x0c\x2d\0\x0b\0\0\0".to_vec();
    body.push(kind);
    body.extend_from_slice(&[0; 5]);
    body
}

/// Opens a connection to a server that says this, and lets `work` use it.
fn talk<T>(
    lines: Vec<Vec<u8>>,
    mode: Mode,
    work: impl AsyncFnOnce(&mut Connection) -> Result<T>,
) -> (Result<T>, Vec<Vec<u8>>) {
    let server = Canned::start(greeting(), lines);
    let target = server.target();
    let done = reactor::block_on(async |reactor| {
        let mut connection = Connection::open(&reactor, &target, mode).await?;
        work(&mut connection).await
    });
    (done.expect("a reactor"), server.heard())
}

fn ints(rows: &Rows) -> Vec<i64> {
    (0..rows.len())
        .map(|row| rows.int(row, 0).expect("an integer"))
        .collect()
}

#[test]
fn a_query_and_an_error_and_a_query() {
    let lines = ready(&[
        packets(
            1,
            &[
                b"\x01",
                &column(3),
                b"\xfe\0\0\x02\0",
                b"\x017",
                b"\x0242",
                b"\xfe\0\0\x03\0",
            ],
        ),
        packets(1, &[b"\xff\xbd\x04#40001Deadlock"]),
        packets(1, &[b"\0\x05\0\x02\0\0\0"]),
    ]);
    let (done, heard) = talk(lines, Mode::Simple, async |connection| {
        let tally = connection.simple("SELECT n").await?;
        assert_eq!((tally.rows, ints(connection.rows())), (2, vec![7, 42]));
        assert!(connection.in_transaction());
        let refused = connection.simple("UPDATE").await.expect_err("a deadlock");
        assert!(refused.is_retryable() && !refused.ends_connection());
        // The server says nothing of the transaction with an error: until told otherwise it may be
        // open.
        assert!(connection.in_transaction());
        connection.simple("DELETE").await
    });
    let tally = done.expect("answered");
    assert_eq!((tally.rows, tally.affected), (0, 5));
    assert_eq!(heard[3], b"\x03SELECT n");
    assert!(heard[1].starts_with(b"\x03SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"));
}

#[test]
fn a_statement_is_prepared_once() {
    let prepared = packets(
        1,
        &[
            b"\0\x09\0\0\0\x01\0\x01\0\0\0\0",
            &column(253),
            b"\xfe\0\0\x02\0",
            &column(8),
            b"\xfe\0\0\x02\0",
        ],
    );
    let executed = |n: u8| {
        let row = [0, 0, n, 0, 0, 0, 0, 0, 0, 0];
        packets(
            1,
            &[
                b"\x01",
                &column(8),
                b"\xfe\0\0\x02\0",
                &row,
                b"\xfe\0\0\x02\0",
            ],
        )
    };
    let lines = ready(&[prepared, executed(5), executed(6)]);
    let sql = Book::new(Dialect::MySql).query("SELECT n WHERE n = $1");
    let (done, heard) = talk(lines, Mode::Prepared, async |connection| {
        let mut seen = Vec::new();
        for n in [5, 6] {
            connection.run(&sql, &[Arg::Int(n)]).await?;
            seen.extend(ints(connection.rows()));
        }
        Ok(seen)
    });
    assert_eq!(done.expect("answered"), [5, 6]);
    assert_eq!(heard[3], b"\x16SELECT n WHERE n = ?");
    assert_eq!(heard[4][..5], *b"\x17\x09\0\0\0");
}

#[test]
fn an_extended_statement_is_closed_before_the_next() {
    let prepared = packets(
        1,
        &[
            b"\0\x09\0\0\0\0\0\x01\0\0\0\0",
            &column(253),
            b"\xfe\0\0\x02\0",
        ],
    );
    // Nothing is answered to the closing.
    let lines = ready(&[
        prepared,
        packets(1, &[b"\0\x01\0\x02\0\0\0"]),
        Vec::new(),
        packets(1, &[DONE]),
    ]);
    let sql = Book::new(Dialect::MySql).statement("DELETE $1");
    let (done, heard) = talk(lines, Mode::Extended, async |connection| {
        let tally = connection.run(&sql, &[Arg::Int(1)]).await?;
        connection.simple("COMMIT").await?;
        Ok(tally.affected)
    });
    assert_eq!(done.expect("answered"), 1);
    assert_eq!(heard[5], b"\x19\x09\0\0\0");
    assert_eq!(heard[6], b"\x03COMMIT");
}

#[test]
fn rows_in_batches() {
    let lines = ready(&[packets(1, &[b"\0\x02\0\x02\0\0\0"])]);
    let (done, heard) = talk(lines, Mode::Simple, async |connection| {
        let mut lines = [&b"1\t\\N\n"[..], b"2\tb\n"].into_iter();
        let more = |out: &mut Vec<u8>| {
            out.extend_from_slice(lines.next().expect("one more"));
            lines.len() > 0
        };
        connection.fill("t", more).await
    });
    assert_eq!(done.expect("answered").affected, 2);
    assert_eq!(heard[3], b"\x03INSERT INTO t VALUES ('1',null),('2','b')");
}

#[test]
fn what_a_server_must_not_say() {
    let wrong: &[(&str, Vec<u8>)] = &[
        ("a file", packets(1, &[b"\xfb/etc/passwd"])),
        ("out of turn", packets(7, &[DONE])),
        ("more results", packets(1, &[b"\0\0\0\x0a\0\0\0"])),
        ("columns beyond count", packets(1, &[b"\xfc\xff\xff"])),
        ("nothing", packets(1, &[b""])),
        (
            "a row of other columns",
            packets(1, &[b"\x01", &column(3), b"\xfe\0\0\x02\0", b"\x017\x018"]),
        ),
        (
            "no end of columns",
            packets(1, &[b"\x01", &column(3), b"\x017"]),
        ),
    ];
    for (what, said) in wrong {
        let (done, _) = talk(
            ready(std::slice::from_ref(said)),
            Mode::Simple,
            async |connection| connection.simple("SELECT").await,
        );
        let trouble = done.expect_err(what);
        assert!(trouble.ends_connection(), "{what}: {trouble}");
    }
}

#[test]
fn who_is_turned_away_does_not_storm() {
    let server = Canned::start(
        packets(0, &[b"\xff\x10\x04Too many connections"]),
        Vec::new(),
    );
    let target = server.target();
    let opened = reactor::block_on(async |reactor| {
        Connection::open(&reactor, &target, Mode::Simple)
            .await
            .map(|_| ())
    });
    let trouble = opened.expect("a reactor").expect_err("turned away");
    assert!(trouble.ends_connection(), "{trouble}");
    assert!(
        trouble.to_string().contains("Too many connections"),
        "{trouble}"
    );
    server.heard();
}

#[test]
fn a_server_that_asks_and_asks() {
    let switch = |sequence| {
        packets(
            sequence,
            &[b"\xfemysql_native_password\0abcdefghijklmnopqrst\0"],
        )
    };
    let lines = (1..20).map(|n| switch(2 * n)).collect();
    let (done, _) = talk(lines, Mode::Simple, async |_| Ok(()));
    assert!(
        done.expect_err("enough")
            .to_string()
            .contains("asks and asks")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a server says, in whichever shape, the client ends with a result.
    #[test]
    fn garbage_ends(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6),
        first in prop::sample::select(vec![0u8, 1, 2, 0xfb, 0xfe, 0xff]),
        late in any::<bool>(),
    ) {
        let mut bodies = bodies;
        if let Some(byte) = bodies.first_mut().and_then(|b| b.first_mut()) {
            *byte = first;
        }
        let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        let lines = match late {
            true => ready(&[packets(1, &bodies)]),
            false => vec![packets(2, &bodies)],
        };
        let (done, _) = talk(lines, Mode::Simple, async |connection| connection.simple("SELECT").await);
        if let Ok(tally) = done {
            prop_assert!(tally.rows <= bodies.len() as u64);
        }
    }
}
