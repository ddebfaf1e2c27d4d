//! What versions of rows that an old snapshot keeps cost those who do not see them.

use crate::client::Client;
use crate::server::Home;

/// Pages looked at so far, by everybody.
fn pages_read(client: &mut Client) -> u64 {
    let sql = "select count from throng.counters where counter = 'blks_hit'";
    client.run(sql).value().parse().expect("a number")
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
    let blocks = client.run("select pg_relation_size('hot') / 8192");
    let blocks: u64 = blocks.value().parse().expect("a number");
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
