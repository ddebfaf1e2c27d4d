use throng_types::Error;

use super::Work;
use crate::testing::{Workbench, line};
use throng_catalog::{Catalog, Object};

/// A message as the case files write it.
fn told(mark: &str, e: &Error, with_code: bool) -> String {
    let mut text = match with_code {
        true => format!("{mark} {}", line(e)),
        false => format!("{mark} {}", e.message()),
    };
    for more in [&e.fields().detail, &e.fields().hint].into_iter().flatten() {
        text += &format!(" | {}", more.replace('\n', " / "));
    }
    text
}

/// Definitions one after the other: each one's error or notices are PostgreSQL 18's.
#[test]
fn definitions_do_what_they_do_in_postgresql() {
    let mut bench = Workbench::new("create table e()");
    let mut lines = include_str!("cases.txt")
        .lines()
        .filter(|l| !l.is_empty())
        .peekable();
    let mut wrong = Vec::new();
    while let Some(sql) = lines.next() {
        let mut expected = Vec::new();
        while let Some(l) = lines.next_if(|l| l.starts_with(['!', '~', '.'])) {
            if l != "." {
                expected.push(l.to_string());
            }
        }
        let got: Vec<String> = match bench.run(sql) {
            Ok(outcomes) => outcomes
                .iter()
                .flat_map(|o| &o.notices)
                .map(|n| told("~", n, false))
                .collect(),
            Err(e) => vec![told("!", &e, true)],
        };
        if got != expected {
            wrong.push(format!("{sql}\n  want {expected:?}\n  got  {got:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Every object survives its stored form, and the catalog loaded from the rows is the same.
#[test]
fn stored_rows_give_the_catalog_back() {
    let bench = Workbench::new(
        "create table a (id serial primary key, v varchar(5) default 'x', check (length(v) > 0));
         create table b (a_id int references a on delete set null, n numeric(4,1), unique (n));
         create index on b (n desc nulls last, a_id);
         create sequence s minvalue -5; create schema z; create role r login password 'p';
         comment on column a.v is 'it''s'; alter table b drop column n;",
    );
    let stored: Vec<(String, String)> = bench
        .catalog
        .objects()
        .map(|o| (o.kind().tag().to_string(), o.to_json()))
        .collect();
    let objects = stored
        .iter()
        .map(|(tag, json)| Object::from_json(tag, json).unwrap());
    let loaded = Catalog::load(throng_catalog::builtin::DATABASE, objects);
    for object in bench.catalog.objects() {
        assert_eq!(loaded.object(object.oid()), Some(object));
    }
    let a = loaded
        .relation_in(throng_catalog::builtin::PUBLIC, "a")
        .unwrap()
        .oid();
    assert_eq!(loaded.indexes_of(a), bench.catalog.indexes_of(a));
    assert_eq!(loaded.referencing(a), bench.catalog.referencing(a));
    assert_eq!(loaded.sequences_of(a).len(), 1);
}

/// The work a statement leaves, by kind.
fn work(bench: &mut Workbench, sql: &str) -> String {
    let outcomes = bench.run(sql).unwrap();
    let name = |w: &Work| match w {
        Work::CreateHeap(_) => "heap",
        Work::CreateIndex { build: true, .. } => "build",
        Work::CreateIndex { build: false, .. } => "index",
        Work::CreateSequence(_) => "sequence",
        Work::RestartSequence { .. } => "restart",
        Work::DropFile(_) => "drop",
        Work::Rewrite { .. } => "rewrite",
        Work::Repack { .. } => "repack",
        Work::IndexVersions(_) => "index versions",
        Work::CheckNotNull { .. } => "not-null",
        Work::CheckDomain(_) => "domain",
        Work::CheckRows { .. } => "check",
        Work::CheckPartition { .. } => "partition",
        Work::CheckForeignKey { .. } => "fk",
        Work::CheckPointsElsewhere { .. } => "points elsewhere",
        Work::CreateDatabase { .. } => "database",
        Work::CloseDatabase { .. } => "close",
        Work::DropDatabase(_) => "drop database",
        Work::Fill { .. } => "fill",
        Work::Refresh(_) => "refresh",
        Work::RefreshInPlace(_) => "refresh in place",
    };
    outcomes
        .iter()
        .flat_map(|o| &o.work)
        .map(name)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn changes_touch_only_the_rows_they_must() {
    let mut bench = Workbench::new("create table r (a int primary key)");
    let cases = [
        (
            "create table t (a int primary key, b serial, c text unique)",
            "heap sequence index index",
        ),
        ("alter table t add d int default 5", ""),
        ("alter table t add e int not null", "not-null"),
        (
            "alter table t add f float default random()",
            "heap rewrite drop drop build drop build",
        ),
        (
            "alter table t alter c type varchar(10)",
            "heap rewrite drop drop build drop build",
        ),
        ("alter table t alter c type varchar(20)", ""),
        (
            "alter table t add check (a > 0), add foreign key (a) references r",
            "check fk",
        ),
        ("alter table t add check (a > 1) not valid", ""),
        ("alter table t validate constraint t_a_check1", "check"),
        ("alter table t add g int, add unique (g)", "build"),
        (
            "alter table t alter a type bigint, add unique (d)",
            "heap rewrite drop drop build drop build drop build build",
        ),
        (
            "truncate t restart identity",
            "drop heap drop index drop index drop index drop index drop sequence restart",
        ),
        ("create table u as select 1 as x", "heap fill"),
        ("alter table t drop column b", "drop"),
        ("drop table t", "drop drop drop drop drop"),
    ];
    for (sql, expected) in cases {
        assert_eq!(work(&mut bench, sql), expected, "{sql}");
    }
}

#[test]
fn renaming_a_column_renames_it_in_checks() {
    let mut bench = Workbench::new("create table t (a int, b int, check (a + t.b > length('a')))");
    bench
        .run("alter table t rename a to \"A x\"; alter table t rename to u")
        .unwrap();
    let constraint = &bench.catalog.constraints()[0];
    let throng_catalog::ConstraintKind::Check { expr, .. } = &constraint.kind else {
        panic!("a check")
    };
    assert_eq!(expr, "((\"A x\" + b) > length('a'::text))");
    bench.bind_one("insert into u values (1, 2)").unwrap();
}

#[test]
fn members_may_do_what_owners_may() {
    let mut bench = Workbench::new(
        "create role owner; create role member in role owner; create role other;
         create table t (a int); alter table t owner to owner;",
    );
    let sql = "drop table t";
    let parsed = throng_syntax::parse::parse(sql).unwrap();
    let as_role = |bench: &Workbench, name: &str| {
        let role = bench.catalog.role_by_name(name).unwrap().oid;
        bench
            .bind_as(role, &[], &parsed[0].statement, sql)
            .map(|_| ())
            .map_err(|e| line(&e))
    };
    assert_eq!(as_role(&bench, "member"), Ok(()));
    assert_eq!(
        as_role(&bench, "other"),
        Err("42501 must be owner of table t".into())
    );
    let refused = bench
        .run("grant member to owner")
        .map_err(|e| line(&e))
        .unwrap_err();
    assert!(refused.contains("is a member of role"), "{refused}");
}
