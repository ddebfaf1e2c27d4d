//! `tests/scripts/sql`: statements, one session a script, and PostgreSQL's answers to them.
//!
//! ```text
//! # A comment.
//! select 1 as one;
//! ----
//! [one:int4]
//! 1
//! SELECT 1
//! ```
//! A record ends at an empty line. `---- unordered` compares rows as a set; `---- ours` is an
//! answer in which we differ from PostgreSQL and know it: what is not supported yet, say. The lines
//! after a `copy … from stdin;`, up to one that holds `\.`, are its data.

use std::path::Path;

use crate::client::Client;
use crate::script::{Detail, Tally, Target, name, render, scripts};

const SEPARATOR: &str = "----";
const UNORDERED: &str = "---- unordered";
const OURS: &str = "---- ours";
/// Set, a run against our own server writes down the answers that are ours.
const WRITE_OURS: &str = "THRONG_WRITE_OURS";
const END_OF_DATA: &str = "\\.";

/// A piece of a script.
enum Item {
    /// Comments and empty lines, kept as they are.
    Text(String),
    Record(Record),
}

struct Record {
    line: usize,
    /// The statement, and COPY's data where there is any.
    input: Vec<String>,
    /// The separator: how answers are compared.
    kind: &'static str,
    expected: Vec<String>,
}

fn read(text: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            items.push(Item::Text(line.to_owned()));
            continue;
        }
        let mut record = Record {
            line: number + 1,
            input: vec![line.to_owned()],
            kind: SEPARATOR,
            expected: Vec::new(),
        };
        // A script that was never run has no answers yet: the statement ends at the empty line.
        let mut answers = false;
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
            let separator = [SEPARATOR, UNORDERED, OURS]
                .into_iter()
                .find(|s| *s == line);
            match separator {
                Some(kind) if !answers => {
                    answers = true;
                    record.kind = kind;
                }
                _ if answers => record.expected.push(line.to_owned()),
                _ => record.input.push(line.to_owned()),
            }
        }
        items.push(Item::Record(record));
    }
    items
}

fn written(items: &[Item]) -> String {
    let mut text = String::new();
    let mut line = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    for item in items {
        match item {
            Item::Text(comment) => line(comment),
            Item::Record(record) => {
                record.input.iter().for_each(|l| line(l));
                line(record.kind);
                record.expected.iter().for_each(|l| line(l));
            }
        }
    }
    text
}

/// Runs one record and returns its answer as lines.
fn answer(client: &mut Client, record: &Record) -> Vec<String> {
    let data = record
        .input
        .iter()
        .position(|l| l == END_OF_DATA)
        .map(|end| {
            let start = record
                .input
                .iter()
                .position(|l| l.ends_with(';'))
                .expect("a statement")
                + 1;
            (start, end)
        });
    let answer = match data {
        None => client.query(&record.input.join("\n")),
        Some((start, end)) => {
            let bytes: String = record.input[start..end]
                .iter()
                .map(|l| format!("{l}\n"))
                .collect();
            client.copy_in(&record.input[..start].join("\n"), bytes.as_bytes())
        }
    };
    match answer {
        Err(e) => vec![format!("no answer: {e}")],
        Ok(answer) => {
            let mut lines = render(&answer, Detail::Full);
            if record.kind == UNORDERED {
                lines.sort();
            }
            lines
        }
    }
}

/// A session in a schema of the script's own, with what PostgreSQL and we might be configured
/// differently in.
fn session(target: &Target, schema: &str) -> Client {
    let mut client = target.connect();
    client.run("set client_min_messages = warning");
    client.run(&format!("drop schema if exists {schema} cascade"));
    client.run(&format!("create schema {schema}"));
    client.run(&format!("set search_path = {schema}"));
    client.run("set timezone = 'UTC'");
    client.run("set datestyle = 'ISO, MDY'");
    client.run("reset client_min_messages");
    client
}

fn run(target: &Target, path: &Path, tally: &mut Tally) {
    let script = name(path);
    let text = std::fs::read_to_string(path).expect("a script");
    let mut items = read(&text);
    let schema = format!("sql_{script}");
    let mut client = session(target, &schema);
    for item in &mut items {
        let Item::Record(record) = item else { continue };
        let got = answer(&mut client, record);
        let lost = got
            .iter()
            .any(|l| l == "closed" || l.starts_with("no answer"));
        let learn = target.oracle || std::env::var_os(WRITE_OURS).is_some();
        if !learn {
            let place = format!("{script}:{}", record.line);
            tally.compare(&place, &record.input.join("\n"), &record.expected, &got);
        } else if (record.kind == OURS) != target.oracle {
            record.expected = got;
        }
        if lost {
            // The rest of the script deserves its own verdict.
            client = session(target, &schema);
        }
    }
    let mut client = target.connect();
    client.run(&format!(
        "set client_min_messages = warning; drop schema {schema} cascade"
    ));
    if target.oracle || std::env::var_os(WRITE_OURS).is_some() {
        std::fs::write(path, written(&items)).expect("the script is written");
    }
}

#[test]
fn sql_scripts() {
    let target = Target::new();
    let mut tally = Tally::default();
    for path in scripts("sql") {
        run(&target, &path, &mut tally);
    }
    tally.end();
    target.end();
}
