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
    // Who comes is told so.
    let (_, greeting) = Client::enter(&address, "postgres", "postgres").expect("an answer");
    let refusal = greeting.error().expect("a refusal");
    assert_eq!(refusal.code, "53300");
    assert_eq!(refusal.severity, "FATAL");
    assert_eq!(refusal.message, "sorry, too many clients already");
    // When they go there is room again.
    silent.clear();
    let came = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        Client::connect(&address).is_ok()
    });
    assert!(came, "nobody gets in after the sockets have gone");
}
