//! Bookings of rooms under an exclusion constraint: many want the same hours, some change their
//! minds. Whatever was committed, no two that are there overlap.

use std::io;

use rand::Rng;

use crate::client::{Address, Client};

/// Few, so that everybody is in everybody's way.
const ROOMS: i64 = 3;
const HOURS: i64 = 120;

pub fn set_up(client: &mut Client) {
    client.run(
        "create table booking (id bigint generated always as identity primary key, room int4range, \
         during int4range, exclude using gist (room with =, during with &&))",
    );
    client.run(
        "create table shift (id int4range, during int4range, primary key (id, during without overlaps))",
    );
}

/// Books, moves, cancels and changes its mind until the server is gone.
pub fn work(address: &Address) -> io::Result<()> {
    let mut client = Client::connect(address)?;
    let mut random = rand::rng();
    loop {
        let room = random.random_range(1..=ROOMS);
        let start = random.random_range(0..HOURS);
        let end = start + random.random_range(1..8);
        let (room, during) = (format!("'[{room},{room}]'"), format!("'[{start},{end})'"));
        let insert = format!("insert into booking (room, during) values ({room}, {during})");
        let at = format!("room = {room} and during && {during}");
        let statement = match random.random_range(0..9) {
            0..3 => insert,
            3 => format!("{insert} on conflict do nothing"),
            4 => format!(
                "update booking set during = {during} where id = (select min(id) from booking where {at})"
            ),
            5 => format!("delete from booking where {at}"),
            6 => format!("begin; {insert}; rollback"),
            7 => format!("begin; delete from booking where {at}; {insert}; commit"),
            _ => format!("insert into shift values ({room}, {during})"),
        };
        let done = client.query(&statement)?;
        if done.closed() {
            return Ok(());
        }
        if let Some(error) = done.error() {
            // In conflict, or a deadlock of two who wait for each other.
            let expected = ["23P01", "40P01"].contains(&error.code.as_str());
            assert!(expected, "{statement}: {:?}", done.parts);
            if client.query("rollback")?.closed() {
                return Ok(());
            }
        }
    }
}

/// All of it, after a restart.
pub fn inspect(client: &mut Client) {
    for (table, key) in [("booking", "room"), ("shift", "id")] {
        let both = format!(
            "select a.ctid, b.ctid from {table} a join {table} b on a.{key} = b.{key} \
             and (a.during * b.during) <> 'empty' and a.ctid < b.ctid"
        );
        let overlapping = client.run(&both);
        let rows = overlapping.rows();
        assert!(rows.is_empty(), "{table}: rows that overlap: {rows:?}");
        let by_table = client.run(&format!(
            "select count(*) from {table} where upper(during) > lower(during)"
        ));
        let by_table = by_table.value().to_owned();
        client.run("set enable_seqscan = off");
        let by_index = client.run(&format!(
            "select sum(n) from (select (select count(*) from {table} where {key} = r and during && '[0,200)') as n \
             from (select int4range(g, g, '[]') as r from generate_series(1, {ROOMS}) g) x) y"
        ));
        assert_eq!(
            by_index.value(),
            by_table,
            "{table}: index and table differ"
        );
        client.run("reset enable_seqscan");
    }
}
