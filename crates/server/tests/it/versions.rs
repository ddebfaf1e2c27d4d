//! What versions of rows that an old snapshot keeps cost those who do not see them, and that what
//! is not kept is missed by nobody.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::client::Client;
use crate::server::Home;

/// Pages looked at so far, by everybody.
fn pages_read(client: &mut Client) -> u64 {
    let sql = "select count from throng.counters where counter = 'blks_hit'";
    client.run(sql).value().parse().expect("a number")
}

fn blocks(client: &mut Client, table: &str) -> u64 {
    let size = client.run(&format!("select pg_relation_size('{table}') / 8192"));
    size.value().parse().expect("a number")
}

/// However long it looks: what is neither its version nor anybody's goes.
#[test]
fn a_row_stays_on_its_page_beside_who_only_reads() {
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum=off"]);
    let (mut reader, mut query, mut client) =
        (server.connect(), server.connect(), server.connect());
    client.run("create table hot (k int primary key, n int, filler char(100))");
    client.run("insert into hot values (1, 0, 'padded')");
    client.run("create table wide as select * from generate_series(1, 3000) i");
    reader.run("begin isolation level repeatable read read only");
    reader.run("select * from hot");
    // A statement under way: it asks for its rows bit by bit.
    query.run("begin");
    query.run("declare c cursor for select n, i from hot, wide");
    assert_eq!(query.run("fetch 1 from c").rows().len(), 1);
    for _ in 0..2000 {
        client.run("update hot set n = n + 1 where k = 1");
    }
    assert!(blocks(&mut client, "hot") <= 2);
    assert_eq!(client.run("select n from hot where k = 1").value(), "2000");
    assert_eq!(reader.run("select n from hot where k = 1").value(), "0");
    assert_eq!(query.run("fetch all from c").rows().len(), 2999);
    // One that may change what it sees keeps all that came after.
    reader.run("commit");
    query.run("commit");
    reader.run("begin isolation level repeatable read");
    reader.run("select * from hot");
    for _ in 0..1000 {
        client.run("update hot set n = n + 1 where k = 1");
    }
    assert!(blocks(&mut client, "hot") > 10);
}

#[test]
fn a_look_up_by_key_finds_the_newest_version_first() {
    const LOOK_UPS: u64 = 100;
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum=off"]);
    let (mut old, mut client) = (server.connect(), server.connect());
    client.run("create table hot (k int primary key, n int)");
    client.run("insert into hot values (1, 0)");
    old.run("begin isolation level repeatable read");
    old.run("select * from hot");
    for _ in 0..10 {
        client.run(&"update hot set n = n + 1 where k = 1;".repeat(200));
    }
    let blocks = blocks(&mut client, "hot");
    assert!(blocks > 8, "{blocks} blocks");
    let before = pages_read(&mut client);
    for _ in 0..LOOK_UPS {
        let n = client.run("select n from hot where k = 1");
        assert_eq!(n.value(), "2000");
    }
    let each = (pages_read(&mut client) - before) / LOOK_UPS;
    assert!(each < blocks, "{each} pages were looked at, of {blocks}");
    assert_eq!(old.run("select n from hot where k = 1").value(), "0");
}

/// Readers of all lengths, and transfers between few rows: what comes and goes between two readers'
/// snapshots is not theirs.
#[test]
fn every_reader_finds_a_sum_that_transfers_leave_alone() {
    const ROWS: usize = 12;
    const SUM: &str = "select sum(n) from hot";
    let home = Home::new();
    let server = home.serve(&[]);
    let mut client = server.connect();
    client.run("create table hot (k int primary key, n int, filler char(200))");
    client.run(&format!(
        "insert into hot select i, 100, 'padded' from generate_series(1, {ROWS}) i"
    ));
    let total = client.run(SUM).value().to_owned();
    let over = AtomicBool::new(false);
    let connect = || server.connect();
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (over, mut client) = (&over, connect());
            scope.spawn(move || {
                let mut n = writer;
                while !over.load(Ordering::Relaxed) {
                    // The lower one first: nobody waits in a circle.
                    let (from, to) = (n % (ROWS - 1) + 1, n % (ROWS - 1) + 2);
                    client.run(&format!(
                        "begin; update hot set n = n - 1 where k = {from}; update hot set n = n + 1 where k = {to}; {}",
                        if n % 5 == 0 { "rollback" } else { "commit" }
                    ));
                    n += 7;
                }
            });
        }
        let readers = [0, 3, 40, 300].map(|pause| {
            let (over, mut client, total) = (&over, connect(), &total);
            scope.spawn(move || {
                let mut looks = 0;
                while !over.load(Ordering::Relaxed) {
                    client.run("begin isolation level repeatable read read only");
                    let each = "select string_agg(n::text, ',' order by k) from hot";
                    let first = client.run(each).value().to_owned();
                    std::thread::sleep(Duration::from_millis(pause));
                    assert_eq!(client.run(SUM).value(), total);
                    assert_eq!(client.run(each).value(), first);
                    client.run("commit");
                    // A statement's own snapshot.
                    assert_eq!(client.run(SUM).value(), total);
                    looks += 1;
                }
                looks
            })
        });
        std::thread::sleep(Duration::from_secs(4));
        over.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().expect("every sum is right") > 2);
        }
    });
    assert_eq!(client.run(SUM).value(), total);
    assert!(blocks(&mut client, "hot") < 20);
    assert!(server.stop().success());
    home.check();
}
