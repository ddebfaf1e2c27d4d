//! What a crash can do to more than rows of a table: counters outside of transactions, upserts,
//! definitions, values that lie in pages of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::Rng;

use crate::client::{Address, Answer, Client};

/// Sequences, with how they count.
const SEQUENCES: [(&str, &str); 3] = [
    ("plain", "start 1000"),
    ("cached", "cache 20"),
    ("downward", "increment -3"),
];
/// Few rows that many change.
const COUNTERS: usize = 5;
const DOCUMENTS: usize = 6;
/// Repetitions of a document's 32 characters: some pages' worth.
const LENGTH: usize = 1500;

/// What clients were told, and what they have asked for.
#[derive(Default)]
pub struct Told {
    /// Values that were given out, by sequence.
    values: Mutex<BTreeMap<&'static str, BTreeSet<i64>>>,
    /// The keys of rows whose keys a sequence has given.
    issued: Mutex<BTreeSet<i64>>,
    counters: [Counted; COUNTERS],
    /// The version of each document that was acknowledged last.
    documents: [AtomicUsize; DOCUMENTS],
    shapes: Mutex<BTreeSet<usize>>,
}

#[derive(Default)]
struct Counted {
    asked: AtomicUsize,
    acknowledged: AtomicUsize,
}

pub fn set_up(client: &mut Client) {
    for (name, options) in SEQUENCES {
        client.run(&format!("create sequence {name} {options}"));
    }
    client.run("create table issued (id serial primary key, note text)");
    client.run("create table counter (k int primary key, n bigint not null)");
    client.run(
        "create table document (id int primary key, version int not null, body text, marks jsonb)",
    );
    client.run("create index on document using gin (marks)");
    client.run(&format!(
        "insert into document select i, 0, repeat(md5('0'), {LENGTH}), '{{\"of\": [0]}}' \
         from generate_series(0, {}) i",
        DOCUMENTS - 1
    ));
}

/// Runs SQL until the server is gone: none then. An error is a fault.
pub(super) fn ask(client: &mut Client, sql: &str) -> io::Result<Option<Answer>> {
    let answer = client.query(sql)?;
    if answer.closed() {
        return Ok(None);
    }
    assert!(answer.error().is_none(), "{sql}: {:?}", answer.parts);
    Ok(Some(answer))
}

pub(super) fn number(answer: &Answer) -> i64 {
    answer.value().parse().expect("a number")
}

/// Takes values, and rows with a key of their own.
pub fn sequences(address: &Address, told: &Told) -> io::Result<()> {
    let mut client = Client::connect(address)?;
    loop {
        for (name, _) in SEQUENCES {
            let Some(taken) = ask(&mut client, &format!("select nextval('{name}')"))? else {
                return Ok(());
            };
            let value = number(&taken);
            let mut values = told.values.lock().expect("not poisoned");
            let new = values.entry(name).or_default().insert(value);
            assert!(new, "{name} has given {value} twice");
        }
        let row = "insert into issued (note) values ('x') returning id";
        let Some(row) = ask(&mut client, row)? else {
            return Ok(());
        };
        told.issued
            .lock()
            .expect("not poisoned")
            .insert(number(&row));
    }
}

/// Counts by upserts that are prepared once.
pub fn upserts(address: &Address, told: &Told) -> io::Result<()> {
    let mut client = Client::connect(address)?;
    let prepare = "prepare count (int) as insert into counter values ($1, 1) \
                   on conflict (k) do update set n = counter.n + 1 returning n";
    if ask(&mut client, prepare)?.is_none() {
        return Ok(());
    }
    loop {
        let k = rand::rng().random_range(0..COUNTERS);
        let counted = &told.counters[k];
        counted.asked.fetch_add(1, Ordering::Relaxed);
        let Some(answer) = ask(&mut client, &format!("execute count ({k})"))? else {
            return Ok(());
        };
        assert_eq!(answer.rows().len(), 1, "an upsert changes one row");
        counted.acknowledged.fetch_add(1, Ordering::Relaxed);
    }
}

/// Replaces documents, and makes tables whose shape changes before and after they are committed. Of
/// one client.
pub fn documents(address: &Address, told: &Told, ids: &AtomicUsize) -> io::Result<()> {
    let mut client = Client::connect(address)?;
    loop {
        let id = ids.fetch_add(1, Ordering::Relaxed);
        let at = id % DOCUMENTS;
        let replace = format!(
            "update document set version = {id}, body = repeat(md5('{id}'), {LENGTH}), \
             marks = '{{\"of\": [{id}]}}' where id = {at}"
        );
        if ask(&mut client, &replace)?.is_none() {
            return Ok(());
        }
        told.documents[at].store(id, Ordering::Relaxed);
        let shape = [
            format!(
                "begin; create table shape_{id} as select i from generate_series(1, 20) i; \
                 alter table shape_{id} add column c int default {id}; \
                 create index on shape_{id} (c); commit"
            ),
            format!("alter table shape_{id} alter column i type bigint"),
            format!("begin; truncate shape_{id}; alter table shape_{id} drop column c; rollback"),
        ];
        for sql in shape {
            if ask(&mut client, &sql)?.is_none() {
                return Ok(());
            }
        }
        told.shapes.lock().expect("not poisoned").insert(id);
    }
}

/// All of it, after a restart.
pub fn inspect(client: &mut Client, told: &Told) {
    for (name, options) in SEQUENCES {
        let value = number(&client.run(&format!("select nextval('{name}')")));
        let mut values = told.values.lock().expect("not poisoned");
        let values = values.entry(name).or_default();
        let goes_on = match options.contains('-') {
            true => values.first().is_none_or(|&last| value < last),
            // Sessions that had values in advance gave them out late.
            false => values.last().is_none_or(|&last| value > last),
        };
        assert!(
            goes_on,
            "{name} went back to {value}, of {} values",
            values.len()
        );
        assert!(values.insert(value), "{name} has given {value} twice");
    }

    let rows = client.run("select id from issued");
    let there: BTreeSet<i64> = rows
        .rows()
        .iter()
        .map(|row| {
            row[0]
                .as_deref()
                .and_then(|id| id.parse().ok())
                .expect("an id")
        })
        .collect();
    let issued = told.issued.lock().expect("not poisoned");
    let lost: Vec<_> = issued.difference(&there).collect();
    assert!(lost.is_empty(), "acknowledged rows are missing: {lost:?}");

    for (k, counted) in told.counters.iter().enumerate() {
        let n = client.run(&format!(
            "select coalesce(max(n), 0) from counter where k = {k}"
        ));
        let n = number(&n) as usize;
        let asked = counted.asked.load(Ordering::Relaxed);
        let acknowledged = counted.acknowledged.load(Ordering::Relaxed);
        assert!(
            (acknowledged..=asked).contains(&n),
            "counter {k} is {n}: {acknowledged} upserts were acknowledged, {asked} asked for"
        );
    }

    let torn =
        format!("select id from document where body <> repeat(md5(version::text), {LENGTH})");
    assert!(client.run(&torn).rows().is_empty(), "documents are torn");
    client.run("set enable_seqscan = off");
    let marked = "select count(*) from document d where not exists \
                  (select from document m where m.id = d.id \
                   and m.marks @> jsonb_build_object('of', jsonb_build_array(d.version)))";
    assert_eq!(number(&client.run(marked)), 0, "documents without entries");
    client.run("reset enable_seqscan");
    for (id, version) in told.documents.iter().enumerate() {
        let there = client.run(&format!("select version from document where id = {id}"));
        let acknowledged = version.load(Ordering::Relaxed) as i64;
        assert!(number(&there) >= acknowledged, "document {id} went back");
    }

    for id in told
        .shapes
        .lock()
        .expect("not poisoned")
        .iter()
        .rev()
        .take(50)
    {
        let sql = format!("select count(*) || ' ' || sum(c) from shape_{id} where c = {id}");
        assert_eq!(client.run(&sql).value(), format!("20 {}", id * 20));
    }
}
