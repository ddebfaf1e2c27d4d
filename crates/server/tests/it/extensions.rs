//! Extensions outlive their server, and leave the numbers of others alone.

use crate::server::Home;

#[test]
fn an_extension_outlives_a_restart() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut client = server.connect();
    client.run("create extension citext");
    client.run("create extension \"uuid-ossp\"");
    client.run("create table t (id uuid default uuid_generate_v4(), name citext unique)");
    client.run("insert into t (name) values ('Ada')");
    let oids =
        "select string_agg(oid::text, ',' order by oid) from pg_proc where proname ~ 'citext'";
    let before = client.run(oids).value().to_owned();
    drop(client);
    assert!(server.stop().success());

    let server = home.serve(&[]);
    let mut client = server.connect();
    assert_eq!(client.run(oids).value(), before);
    let found = client.run("select count(*) from t where name = 'ADA' and id is not null");
    assert_eq!(found.value(), "1");
    // The numbers of the extension's types are not those that objects get next.
    client.run("create type colour as enum ('red')");
    client.run("create table u (c colour)");
    client.run("insert into t (name) values ('Grace')");
    client.run("drop extension citext cascade");
    client.run("drop extension \"uuid-ossp\" cascade");
    assert_eq!(client.run("select count(*) from t").value(), "2");
    client.run("create extension citext");
    drop(client);
    assert!(server.stop().success());
    home.assert_no_panic();
    home.check();
}
