use throng_types::sqltype::format_type;

use crate::command::BoundStatement;
use crate::testing::{Workbench, line};

const SCHEMA: &str = "
    create table a(id int primary key, v text, n numeric(10,2), t timestamptz, b boolean, arr int[]);
    create table b(id bigint primary key, a_id int references a, name varchar(20), c char(3),
        f float8, d date, u uuid, i interval, s smallint, r real, ts timestamp, ti time, by bytea);
    create table p(x int, y int not null default 5, id serial,
        g int generated always as identity, unique (x, y));
    create table e()";

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

/// What is bound can be planned, or is refused as not done yet.
#[test]
fn what_is_bound_is_planned() {
    let bench = Workbench::new(SCHEMA);
    let lines: Vec<&str> = include_str!("cases.txt")
        .lines()
        .filter(|l| !l.is_empty())
        .collect();
    let mut wrong = Vec::new();
    for case in lines.chunks(2) {
        let Ok(bound) = bench.bind_one(case[0]) else {
            continue;
        };
        if let Some(Err(e)) = bench.plan(bound)
            && e.code() != throng_types::error::state::FEATURE_NOT_SUPPORTED
        {
            wrong.push(format!("{}: {}", case[0], line(&e)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
