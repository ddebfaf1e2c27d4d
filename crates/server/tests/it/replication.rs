//! Replication connections, byte by byte: who may have one, what it answers, and what it bears.
//! PostgreSQL's own programs are run against them in `tests/replication`.

use std::time::Duration;

use crate::client::{Answer, AnswerPart, Client, PATIENCE, Received, framed, startup_packet};
use crate::server::{Home, Server};

fn enter(server: &Server, user: &str, replication: &str) -> (Client, Answer) {
    let mut client = Client::open(&server.address()).expect("a connection");
    let parameters = [("user", user), ("replication", replication)];
    client.send(&startup_packet(&parameters)).expect("sent");
    let answer = client.finish().expect("an answer");
    (client, answer)
}

fn sender(server: &Server) -> Client {
    let (client, answer) = enter(server, "postgres", "true");
    assert_eq!(answer.error(), None);
    client
}

fn row(answer: &Answer) -> Vec<String> {
    let rows = answer.rows();
    assert_eq!(rows.len(), 1, "{answer:?}");
    let values = rows[0].iter();
    values.map(|v| v.clone().unwrap_or_default()).collect()
}

/// Data of COPY, once there is some; nothing if none comes in the time given.
fn copied(client: &mut Client, patience: Duration) -> Vec<u8> {
    while let Ok(Received::Message(message)) = client.receive(patience) {
        if message.tag == b'd' {
            return message.body;
        }
    }
    Vec::new()
}

fn code(answer: &Answer) -> String {
    answer.code().to_owned()
}

#[test]
fn only_some_may_and_only_so_many() {
    let home = Home::new();
    let server = home.serve(&["--set", "max_wal_senders=2"]);
    let mut sql = server.connect();
    sql.run("create role plain login");
    sql.run("create role copier login replication");
    let refused = |user, replication| code(&enter(&server, user, replication).1);
    assert_eq!(refused("plain", "true"), "42501");
    assert_eq!(refused("nobody", "true"), "28000");
    assert_eq!(refused("postgres", "database"), "0A000");
    assert_eq!(refused("postgres", "perhaps"), "22023");
    // With no replication it is a session like others.
    assert_eq!(code(&enter(&server, "postgres", "off").1), "");
    let first = enter(&server, "copier", "on").0;
    let _second = sender(&server);
    assert_eq!(refused("postgres", "1"), "53300");
    let listed = "select usename, state, sync_state from pg_stat_replication order by 1";
    assert_eq!(sql.run(listed).rows().len(), 2);
    drop(first);
    let began = std::time::Instant::now();
    while !refused("postgres", "yes").is_empty() {
        assert!(
            began.elapsed() < PATIENCE,
            "the place of who left stays taken"
        );
    }
}

#[test]
fn commands_are_answered_and_mistakes_end_nothing() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut sql = server.connect();
    let mut client = sender(&server);
    let mut run = |command: &str| client.query(command).expect("an answer");
    let system = row(&run("IDENTIFY_SYSTEM"));
    assert_eq!((system[1].as_str(), system[3].as_str()), ("1", ""));
    assert_eq!(row(&run("SHOW wal_segment_size")), ["16MB"]);
    for (command, expected) in [
        ("SELECT 1", "42601"),
        ("", "42601"),
        ("TIMELINE_HISTORY 1", "58P01"),
        ("START_REPLICATION PHYSICAL F/0", "XX000"),
        ("START_REPLICATION PHYSICAL 0/0", "58P01"),
        ("START_REPLICATION PHYSICAL 0/1000000 TIMELINE 7", "XX000"),
        ("START_REPLICATION SLOT none PHYSICAL 0/1000000", "42704"),
        ("CREATE_REPLICATION_SLOT x LOGICAL pgoutput", "0A000"),
        ("DROP_REPLICATION_SLOT none", "42704"),
        ("BASE_BACKUP (COMPRESSION 'zstd')", "0A000"),
        ("BASE_BACKUP (INCREMENTAL)", "0A000"),
        ("CREATE_REPLICATION_SLOT \"Not a name\" PHYSICAL", "42602"),
    ] {
        assert_eq!(code(&run(command)), expected, "{command}");
    }
    let made = run("CREATE_REPLICATION_SLOT kept PHYSICAL RESERVE_WAL");
    assert_eq!(row(&made)[0], "kept");
    assert_eq!(code(&run("CREATE_REPLICATION_SLOT kept PHYSICAL")), "42710");
    run("CREATE_REPLICATION_SLOT passing TEMPORARY PHYSICAL (RESERVE_WAL)");
    let read = row(&run("READ_REPLICATION_SLOT kept"));
    assert_eq!((read[0].as_str(), read[2].as_str()), ("physical", "1"));
    assert_eq!(row(&run("READ_REPLICATION_SLOT none")), ["", "", ""]);
    let slots = "select slot_name, temporary, active from pg_replication_slots order by 1";
    let shown = sql.run(slots);
    let shown: Vec<_> = shown.rows().into_iter().cloned().collect();
    let expected = [["kept", "f", "f"], ["passing", "t", "t"]];
    let expected = expected.map(|row| row.map(|v| Some(v.to_owned())).to_vec());
    assert_eq!(shown, expected);
    assert_eq!(
        sql.query("select pg_drop_replication_slot('passing')")
            .expect("told")
            .code(),
        "55006"
    );
    // An extended query is refused, and the connection goes on at Sync.
    client
        .send(&framed(b'P', b"\0select 1\0\0\0"))
        .expect("sent");
    client.send(&framed(b'S', b"")).expect("sent");
    assert_eq!(client.finish().expect("an answer").code(), "08P01");
    assert_eq!(
        row(&client.query("IDENTIFY_SYSTEM").expect("an answer")),
        system
    );
    drop(client);
    let began = std::time::Instant::now();
    while sql.run(slots).rows().len() > 1 {
        assert!(began.elapsed() < PATIENCE, "the temporary slot stays");
    }
    sql.run("select pg_drop_replication_slot('kept')");
    assert!(sql.run(slots).rows().is_empty());
}

#[test]
fn the_log_comes_as_it_is_flushed() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut sql = server.connect();
    let mut client = sender(&server);
    let start = row(&client.query("IDENTIFY_SYSTEM").expect("an answer"))[2].clone();
    client
        .start(&format!("START_REPLICATION PHYSICAL {start}"))
        .expect("sent");
    sql.run("create table t as select 'needle in the log'::text as v");
    let mut streamed = Vec::new();
    let began = std::time::Instant::now();
    while !streamed.windows(17).any(|w| w == b"needle in the log") {
        assert!(began.elapsed() < PATIENCE, "it never comes");
        streamed.extend(copied(&mut client, Duration::from_millis(100)));
    }
    assert_eq!(
        sql.run("select state from pg_stat_replication").value(),
        "streaming"
    );
    // What a client claims beyond what was sent is not believed.
    let mut reply = vec![b'r'];
    reply.extend_from_slice(&[0x7f; 24]);
    reply.extend_from_slice(&[0; 9]);
    client.send(&framed(b'd', &reply)).expect("sent");
    let believed = "select count(*) from pg_stat_replication where flush_lsn <= sent_lsn";
    let began = std::time::Instant::now();
    while sql.run(believed).value() != "1" {
        assert!(began.elapsed() < PATIENCE, "it is believed");
    }
    // What says nothing that is known ends the stream, not the server.
    client.send(&framed(b'd', b"?nonsense")).expect("sent");
    copied(&mut client, Duration::from_millis(300));
    sql.run("select 1");
    // A client that goes away in the middle of a backup leaves nothing.
    let mut copier = sender(&server);
    copier
        .start("BASE_BACKUP (CHECKPOINT 'fast', WAL, MANIFEST 'yes')")
        .expect("sent");
    assert!(!copied(&mut copier, Duration::from_secs(10)).is_empty());
    drop(copier);
    // Somebody else's can be ended from outside.
    let mut slow = sender(&server);
    slow.start("BASE_BACKUP (MAX_RATE 32)").expect("sent");
    let ended = "select pg_terminate_backend(pid) from pg_stat_replication where state = 'backup'";
    let began = std::time::Instant::now();
    while sql.run(ended).rows().is_empty() {
        assert!(began.elapsed() < PATIENCE, "the backup never begins");
    }
    let told = slow.finish().expect("told");
    assert!(
        told.parts
            .iter()
            .any(|part| matches!(part, AnswerPart::Report(r) if r.code == "57P01")),
        "{:?}",
        told.error()
    );
}
