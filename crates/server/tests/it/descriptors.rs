//! Files and sockets under a low limit: nobody takes what another needs.

use crate::client::Client;
use crate::server::Home;

#[test]
fn hundreds_of_tables_need_few_descriptors() {
    let home = Home::new();
    let server = home.serve_with_files(256, &["--set", "autovacuum=off"]);
    let mut client = server.connect();
    for n in 0..300 {
        client.run(&format!("create table t{n} (id int primary key)"));
        client.run(&format!("insert into t{n} values ({n})"));
    }
    for n in (0..300).step_by(13) {
        let found = client.run(&format!("select id from t{n}"));
        assert_eq!(found.value(), n.to_string());
    }
    server.kill();
    // Recovery opens as many.
    let server = home.serve_with_files(256, &[]);
    assert_eq!(server.connect().run("select id from t299").value(), "299");
}

#[test]
fn silent_sockets_take_nobody_elses_descriptors() {
    let home = Home::new();
    let server = home.serve_with_files(256, &["--set", "max_connections=1000"]);
    let mut client = server.connect();
    client.run("create table t (n int)");
    let address = server.address();
    let mut silent: Vec<Client> = (0..400)
        .map_while(|_| Client::open(&address).ok())
        .collect();
    assert!(silent.len() > 200);
    // Who is there already works on, new files and log included.
    for n in 0..20 {
        client.run(&format!("create table more{n} (id int primary key)"));
        client.run(&format!(
            "insert into t select generate_series(1, 1000 + {n})"
        ));
    }
    client.run("checkpoint");
    // Who comes and speaks gets in: of the silent ones the oldest have made way.
    let found = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        Client::connect(&address).is_ok_and(|mut c| c.run("select 1").value() == "1")
    });
    assert!(found, "nobody gets in beside silent sockets");
    // Where sessions have them all, who comes is told so.
    silent.clear();
    let mut sessions = Vec::new();
    let refusal = loop {
        let (session, greeting) =
            Client::enter(&address, "postgres", "postgres").expect("an answer");
        match greeting.error() {
            Some(refusal) => break refusal.clone(),
            None => sessions.push(session),
        }
        assert!(sessions.len() < 256, "more sessions than descriptors");
    };
    assert_eq!(refusal.code, "53300");
    assert_eq!(refusal.severity, "FATAL");
    assert_eq!(refusal.message, "sorry, too many clients already");
    // When they go there is room again.
    sessions.clear();
    let came = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        Client::connect(&address).is_ok()
    });
    assert!(came, "nobody gets in after the sessions have gone");
}
