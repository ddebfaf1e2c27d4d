//! A write or a sync fails once: the server comes back by itself, with all that it has
//! acknowledged.

use std::fs;
use std::time::{Duration, Instant};

use crate::client::{Address, Client};
use crate::server::{Home, Server};

/// How long coming back may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Has the next write or sync fail.
fn arm(home: &Home) {
    fs::write(home.data().join("disk-fault"), "").expect("written");
}

fn connect_again(address: &Address) -> Client {
    let until = Instant::now() + PATIENCE;
    loop {
        match Client::connect(address) {
            Ok(client) => return client,
            Err(e) => assert!(Instant::now() < until, "nobody comes back: {e}"),
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// A server that finds its port again.
fn serve(home: &Home) -> Server {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port");
    home.serve(&[
        "--listen",
        &port.to_string(),
        "--set",
        "lab_disk_fault=on",
        "--set",
        "autovacuum=off",
    ])
}

#[test]
fn a_failed_write_is_recovered_from() {
    let home = Home::new();
    let server = serve(&home);
    let address = server.address();
    let mut client = server.connect();
    client.run("create table t (n int primary key)");
    client.run("create sequence s");
    let (mut acknowledged, mut last) = (0, 0);
    for round in 0..3 {
        let mut idle = Client::connect(&address).expect("a session");
        idle.run("select 1");
        for _ in 0..20 {
            client.run(&format!("insert into t values ({acknowledged})"));
            acknowledged += 1;
            last = client
                .run("select nextval('s')")
                .value()
                .parse()
                .expect("a number");
        }
        arm(&home);
        // This one meets the fault, and is not acknowledged.
        let failed =
            client.query("insert into t values (-1 - (select count(*) from t where n < 0))");
        let refused = failed.map_or(true, |answer| answer.closed() || answer.error().is_some());
        assert!(refused, "round {round}: acknowledged without a disk");
        // Who had nothing to do with it is told why it ends.
        let farewell = idle.finish().expect("a farewell");
        let told = farewell.error().expect("a reason");
        assert_eq!(
            (told.code.as_str(), told.severity.as_str()),
            ("57P02", "FATAL")
        );
        client = connect_again(&address);
        let count = client
            .run("select count(*) from t where n >= 0")
            .value()
            .to_owned();
        assert_eq!(count, acknowledged.to_string(), "round {round}");
        let next: i64 = client
            .run("select nextval('s')")
            .value()
            .parse()
            .expect("a number");
        assert!(next > last, "round {round}: {next} after {last}");
    }
    drop(client);
    assert!(server.stop().success());
    home.assert_no_panic();
    home.check();
}
