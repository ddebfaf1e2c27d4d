//! The configuration file, and what a reload of it changes.

use std::fs;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::server::{Home, Server};

/// How long a reload may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Writes the file, has it read, and waits until it was.
fn reload(home: &Home, server: &Server, text: &str) {
    let loads = |log: &str| log.matches("configuration file reread").count();
    let before = loads(&home.log_text());
    fs::write(home.data().join("throng.toml"), text).expect("written");
    server.reload();
    let until = Instant::now() + PATIENCE;
    while loads(&home.log_text()) == before {
        assert!(Instant::now() < until, "not reread:\n{}", home.log_text());
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn shown(client: &mut Client, name: &str) -> String {
    let sql = format!("select setting || ' ' || source from pg_settings where name = '{name}'");
    client.run(&sql).value().to_owned()
}

#[test]
fn a_reload_takes_what_the_file_says_now() {
    let home = Home::new();
    fs::create_dir_all(home.data()).expect("a directory");
    let start = "listen = \"127.0.0.1:0\"\nmemory = \"64MB\"\nwork_mem = \"8MB\"\n\
                 deadlock_timeout = \"2s\"\nlock_timeout = 7\n";
    fs::write(home.data().join("throng.toml"), start).expect("written");
    let server = home.serve(&["--set", "lock_timeout=5"]);
    let mut client = server.connect();
    assert_eq!(shown(&mut client, "work_mem"), "8192 configuration file");
    assert_eq!(shown(&mut client, "lock_timeout"), "5 command line");
    let next = "memory = \"128MB\"\nwork_mem = \"16MB\"\nlock_timeout = 9\n\
                max_connections = 77\nfsync = false\n";
    reload(&home, &server, next);
    let mut client = server.connect();
    assert_eq!(shown(&mut client, "work_mem"), "16384 configuration file");
    assert_eq!(shown(&mut client, "deadlock_timeout"), "1000 default");
    assert_eq!(shown(&mut client, "lock_timeout"), "5 command line");
    assert_eq!(shown(&mut client, "fsync"), "off configuration file");
    assert_eq!(shown(&mut client, "shared_buffers"), "8192 command line");
    assert_ne!(
        shown(&mut client, "max_connections"),
        "77 configuration file"
    );
    let told = "parameter \"max_connections\" cannot be changed without restarting the server";
    assert!(home.log_text().contains(told), "{}", home.log_text());
    home.assert_no_panic();
}
