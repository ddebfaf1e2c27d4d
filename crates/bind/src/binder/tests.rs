use throng_types::sqltype::format_type;

use crate::command::BoundStatement;
use crate::testing::{SCHEMA, Workbench, line};

/// The columns a statement gives, or its error.
fn outcome(bench: &Workbench, sql: &str) -> String {
    let bound = match bench.bind_one(sql) {
        Ok(bound) => bound,
        Err(e) => return format!("! {}", line(&e)),
    };
    let BoundStatement::Query(query) = bound.statement else {
        return "= ".into();
    };
    let columns: Vec<String> = query
        .kind
        .columns()
        .iter()
        .map(|c| format!("{} {}", c.name, format_type(c.ty)))
        .collect();
    format!("= {}", columns.join(", "))
}

/// Each statement's result columns or error are PostgreSQL 18's.
#[test]
fn statements_mean_what_they_mean_in_postgresql() {
    let bench = Workbench::new(SCHEMA);
    let mut lines = include_str!("cases.txt").lines().filter(|l| !l.is_empty());
    let mut wrong = Vec::new();
    while let (Some(sql), Some(expected)) = (lines.next(), lines.next()) {
        let got = outcome(&bench, sql);
        if got.trim() != expected.trim() {
            wrong.push(format!("{sql}\n  want {expected}\n  got  {got}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Parameters without declared types get the types PostgreSQL 18 gives them.
#[test]
fn parameters_get_their_types_from_where_they_stand() {
    let mut bench = Workbench::new(SCHEMA);
    bench
        .run(
            "create table pgbench_accounts(aid int not null, bid int, abalance int, filler char(84));
             create table pgbench_history(tid int, bid int, aid int, delta int, mtime timestamp,
                 filler char(22))",
        )
        .unwrap();
    let lines: Vec<&str> = include_str!("params.txt")
        .lines()
        .filter(|l| !l.is_empty())
        .collect();
    let mut wrong = Vec::new();
    for case in lines.chunks(2) {
        let got = match bench.bind_one(case[0]).map(|b| b.statement) {
            Ok(BoundStatement::Query(query)) => {
                let types: Vec<String> = query.params.iter().map(|t| format_type(*t)).collect();
                format!("= {}", types.join(", "))
            }
            Ok(_) => "= ".into(),
            Err(e) => format!("! {} {}", e.code().as_str(), e.message()),
        };
        if got != case[1] {
            wrong.push(format!("{}\n  want {}\n  got  {got}", case[0], case[1]));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
