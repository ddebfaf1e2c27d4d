//! What the two kinds of script share: where they are, whom they are run against, how an answer
//! reads as text.
//!
//! The expected answers are PostgreSQL's. With `THRONG_ORACLE` set to `HOST:PORT` of a PostgreSQL
//! server (a HOST that begins with a slash is a directory of Unix sockets) the scripts are run
//! there instead and their files rewritten with what it answers. `THRONG_SCRIPT=part-of-a-name`
//! picks scripts.

use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};

use crate::client::{Address, Answer, AnswerPart, Client, Report};
use crate::server::{Home, Server};

/// The server that scripts run against.
pub struct Target {
    pub address: Address,
    /// Whether it is the one that says what is right.
    pub oracle: bool,
    ours: Option<(Server, Home)>,
}

impl Target {
    pub fn new() -> Target {
        Target::with(&[])
    }

    /// Ours with further arguments; the oracle as it is.
    pub fn with(args: &[&str]) -> Target {
        match std::env::var("THRONG_ORACLE") {
            Ok(place) => Target {
                address: oracle(&place),
                oracle: true,
                ours: None,
            },
            Err(_) => {
                let home = Home::new();
                // As many as the oracle has.
                let prepared = ["--set", "max_prepared_transactions=50"];
                let server = home.serve(&[&prepared, args].concat());
                Target {
                    address: server.address(),
                    oracle: false,
                    ours: Some((server, home)),
                }
            }
        }
    }

    pub fn connect(&self) -> Client {
        Client::connect(&self.address).unwrap_or_else(|e| panic!("could not connect: {e}"))
    }

    /// After the last script: the server stops cleanly, has not panicked, and left its files in
    /// order.
    pub fn end(self) {
        if let Some((server, home)) = self.ours {
            assert!(server.stop().success());
            home.assert_no_panic();
            home.check();
        }
    }
}

fn oracle(place: &str) -> Address {
    let (host, port) = place.rsplit_once(':').expect("THRONG_ORACLE is HOST:PORT");
    if host.starts_with('/') {
        return Address::Unix(Path::new(host).join(format!(".s.PGSQL.{port}")));
    }
    let mut addresses = place.to_socket_addrs().expect("an address");
    Address::Tcp(addresses.next().expect("an address"))
}

/// The scripts in `tests/scripts/<kind>`, by name. Tests run in their package's folder; a path
/// fixed when they were compiled would be that of another checkout when target directories are
/// kept.
pub fn scripts(kind: &str) -> Vec<PathBuf> {
    let dir = Path::new("../../tests/scripts").join(kind);
    let wanted = std::env::var("THRONG_SCRIPT").unwrap_or_default();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "script"))
        .filter(|path| {
            path.file_stem()
                .is_some_and(|n| n.to_string_lossy().contains(&wanted))
        })
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no scripts in {}", dir.display());
    paths
}

pub fn name(path: &Path) -> String {
    path.file_stem()
        .expect("a file")
        .to_string_lossy()
        .into_owned()
}

/// How much of an answer its text tells.
#[derive(Clone, Copy, PartialEq)]
pub enum Detail {
    /// Column types, the details and positions of errors.
    Full,
    /// Names and values: details hold process ids and the like.
    Terse,
}

/// An answer as lines. A NULL reads `NULL`, an empty string `''`; no line is empty.
pub fn render(answer: &Answer, detail: Detail) -> Vec<String> {
    let parts = &answer.parts;
    // Whether columns were described before a row could not be made is the planner's affair.
    let fails_at_once = |i: usize| matches!(parts.get(i + 1), Some(AnswerPart::Report(_)));
    parts
        .iter()
        .enumerate()
        .flat_map(|(i, part)| match part {
            AnswerPart::Columns(_) if fails_at_once(i) => Vec::new(),
            AnswerPart::Columns(columns) => {
                let name = |c: &crate::client::Column| match detail {
                    Detail::Full => format!("{}:{}", c.name, type_name(c.type_oid)),
                    Detail::Terse => c.name.clone(),
                };
                vec![format!(
                    "[{}]",
                    columns.iter().map(name).collect::<Vec<_>>().join("|")
                )]
            }
            AnswerPart::Row(row) if row.is_empty() => vec!["()".to_owned()],
            AnswerPart::Row(row) => {
                let value = |v: &Option<String>| match v.as_deref() {
                    None => "NULL".to_owned(),
                    Some("") => "''".to_owned(),
                    Some(text) => text.replace('\n', "\\n").replace('\r', "\\r"),
                };
                vec![row.iter().map(value).collect::<Vec<_>>().join("|")]
            }
            AnswerPart::Copied(line) => vec![format!("> {}", line.replace('\n', "\\n"))],
            AnswerPart::Complete(tag) => vec![tag.clone()],
            AnswerPart::Report(report) => told(report, detail),
            AnswerPart::Closed => vec!["closed".to_owned()],
        })
        .collect()
}

fn told(report: &Report, detail: Detail) -> Vec<String> {
    let Report {
        severity,
        code,
        message,
        ..
    } = report;
    let mut first = format!("{severity} {code}: {message}");
    if detail == Detail::Terse {
        return vec![first];
    }
    if let Some(position) = &report.position {
        first.push_str(&format!(" (at {position})"));
    }
    let mut lines = vec![first];
    lines.extend(report.detail.iter().map(|text| format!("DETAIL: {text}")));
    // Other contexts tell PostgreSQL's inner workings.
    let copy = report
        .context
        .iter()
        .filter(|text| text.starts_with("COPY "));
    lines.extend(copy.map(|text| format!("CONTEXT: {text}")));
    lines.iter().map(|line| line.replace('\n', "\\n")).collect()
}

fn type_name(oid: u32) -> String {
    let name = match oid {
        16 => "bool",
        17 => "bytea",
        18 => "char1",
        19 => "name",
        20 => "int8",
        21 => "int2",
        23 => "int4",
        25 => "text",
        26 => "oid",
        114 => "json",
        199 => "json[]",
        700 => "float4",
        701 => "float8",
        705 => "unknown",
        1007 => "int4[]",
        1009 => "text[]",
        1016 => "int8[]",
        1042 => "bpchar",
        1043 => "varchar",
        1082 => "date",
        1083 => "time",
        1114 => "timestamp",
        1184 => "timestamptz",
        1186 => "interval",
        1266 => "timetz",
        1700 => "numeric",
        2205 => "regclass",
        2206 => "regtype",
        2278 => "void",
        2950 => "uuid",
        3802 => "jsonb",
        3807 => "jsonb[]",
        // Types that a script makes have other oids on every server.
        16_384.. => "made",
        other => return other.to_string(),
    };
    name.to_owned()
}

/// What the scripts of one kind came to.
#[derive(Default)]
pub struct Tally {
    checked: usize,
    faults: Vec<String>,
}

impl Tally {
    /// Holds the lines that came against those the script expects.
    pub fn compare(&mut self, place: &str, step: &str, expected: &[String], got: &[String]) {
        self.checked += 1;
        if expected != got {
            let lines = |lines: &[String]| {
                lines
                    .iter()
                    .map(|l| format!("    {l}\n"))
                    .collect::<String>()
            };
            self.faults.push(format!(
                "{place}: {step}\n  expected\n{}  got\n{}",
                lines(expected),
                lines(got)
            ));
        }
    }

    pub fn end(self) {
        for fault in &self.faults {
            eprintln!("{fault}");
        }
        assert!(
            self.faults.is_empty(),
            "{} of {} answers are wrong",
            self.faults.len(),
            self.checked
        );
    }
}
