//! A queue: rows come at one end and go at the other, so readers meet entries of dead rows and mark
//! them.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::kinds::{ask, number};
use crate::client::{Address, Client};

/// What clients were told, and what they have asked for.
#[derive(Default)]
pub struct Told {
    pushed: Mutex<BTreeSet<i64>>,
    popped: Mutex<BTreeSet<i64>>,
    /// Pops whose answers have not come, or never will.
    open: AtomicUsize,
}

pub fn set_up(client: &mut Client) {
    client.run("create table job (id bigint primary key, state text not null default 'new')");
    client.run("create index on job (state, id)");
}

/// Pushes two jobs, pops one by deleting it and one by changing its state.
pub fn work(address: &Address, told: &Told, ids: &AtomicUsize) -> io::Result<()> {
    let mut client = Client::connect(address)?;
    loop {
        for _ in 0..2 {
            let id = ids.fetch_add(1, Ordering::Relaxed) as i64;
            if ask(&mut client, &format!("insert into job values ({id})"))?.is_none() {
                return Ok(());
            }
            told.pushed.lock().expect("not poisoned").insert(id);
        }
        for pop in ["delete from job", "update job set state = 'done'"] {
            let head =
                "select id from job where state = 'new' order by id limit 1 for update skip locked";
            told.open.fetch_add(1, Ordering::Relaxed);
            let Some(popped) = ask(
                &mut client,
                &format!("{pop} where id = ({head}) returning id"),
            )?
            else {
                return Ok(());
            };
            told.open.fetch_sub(1, Ordering::Relaxed);
            if !popped.rows().is_empty() {
                let id = number(&popped);
                let is_new = told.popped.lock().expect("not poisoned").insert(id);
                assert!(is_new, "job {id} was popped twice");
            }
        }
    }
}

/// All of it, after a restart: by the index what the table has.
pub fn inspect(client: &mut Client, told: &Told) {
    let mut ids = |sql: &str| -> BTreeSet<i64> {
        let answer = client.run(sql);
        let id = |row: &&crate::client::Row| row[0].as_deref().and_then(|id| id.parse().ok());
        answer.rows().iter().filter_map(id).collect()
    };
    let by_index = ids("select id from job where state = 'new' order by id");
    let by_table = ids("select id from job where state || '' = 'new'");
    assert_eq!(by_index, by_table);
    let (pushed, popped) = (
        told.pushed.lock().expect("not poisoned"),
        told.popped.lock().expect("not poisoned"),
    );
    let back: Vec<_> = popped.intersection(&by_table).collect();
    assert!(back.is_empty(), "popped jobs are there again: {back:?}");
    let gone = pushed
        .difference(&popped)
        .filter(|id| !by_table.contains(id))
        .count();
    let open = told.open.load(Ordering::Relaxed);
    assert!(
        gone <= open,
        "{gone} jobs are missing, {open} pops were open"
    );
}
