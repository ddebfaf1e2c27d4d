use proptest::prelude::*;

use super::*;

fn one(sql: &str) -> Statement {
    let mut all = parse(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    assert_eq!(all.len(), 1, "{sql}");
    all.remove(0).statement
}

/// The statement's variant, by its name.
fn variant(sql: &str) -> String {
    let text = format!("{:?}", one(sql));
    text.split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or("")
        .to_string()
}

#[test]
fn what_pgbench_sends() {
    let init = [
        "drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers",
        "create table pgbench_history(tid int,bid int,aid    int,delta int,mtime timestamp,filler char(22))",
        "create table pgbench_accounts(aid    int not null,bid int,abalance int,filler char(84)) with (fillfactor=90)",
        "create unlogged table pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)) with (fillfactor=100)",
        "begin",
        "truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers",
        "insert into pgbench_branches(bid,bbalance) values(1,0)",
        "copy pgbench_accounts from stdin",
        "copy pgbench_accounts from stdin with (freeze on)",
        "insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, 10) as bid",
        "insert into pgbench_accounts(aid,bid,abalance,filler) select aid, (aid - 1) / 100000 + 1, 0, '' from generate_series(1, 1000000) as aid",
        "commit",
        "vacuum analyze pgbench_branches",
        "alter table pgbench_branches add primary key (bid)",
        "alter table pgbench_tellers add constraint pgbench_tellers_bid_fkey foreign key (bid) references pgbench_branches",
        "vacuum pgbench_branches",
        "truncate pgbench_history",
        "select o.n, p.partstrat, pg_catalog.count(i.inhparent) from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace) cross join lateral (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) as o(n) left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid) left join pg_catalog.pg_inherits as i on (c.oid = i.inhparent) where c.relname = 'pgbench_accounts' and o.n is not null group by 1, 2 order by 1 asc limit 1",
        "BEGIN;UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2;END;",
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
    ];
    for sql in init {
        parse(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    }
}

#[test]
fn two_phases() {
    for (sql, expected) in [
        ("prepare transaction 'a'", "TwoPhase"),
        ("commit prepared 'a'", "TwoPhase"),
        ("rollback prepared 'a'", "TwoPhase"),
        ("prepare transaction as select 1", "Prepare"),
    ] {
        assert_eq!(variant(sql), expected, "{sql}");
    }
    for sql in [
        "prepare transaction a",
        "commit prepared",
        "abort prepared 'a'",
        "end prepared 'a'",
    ] {
        assert!(parse(sql).is_err(), "{sql}");
    }
}

#[test]
fn utility_statements() {
    let cases = [
        ("begin isolation level repeatable read, read only", "Begin"),
        ("start transaction read write", "Begin"),
        ("set local statement_timeout = '5s'", "Set"),
        ("set search_path to a, \"B\"", "Set"),
        ("set time zone 'UTC'", "Set"),
        (
            "set session characteristics as transaction isolation level serializable",
            "SetTransaction",
        ),
        (
            "set transaction isolation level read committed",
            "SetTransaction",
        ),
        ("show all", "Show"),
        ("show transaction isolation level", "Show"),
        ("reset all", "Reset"),
        ("savepoint a", "Savepoint"),
        ("rollback to savepoint a", "RollbackTo"),
        ("rollback work to a", "RollbackTo"),
        ("release a", "Release"),
        ("abort and chain", "Rollback"),
        ("vacuum (verbose, analyze) t", "Vacuum"),
        ("vacuum full", "Vacuum"),
        ("analyze t (a, b)", "Analyze"),
        ("lock table a, b in share row exclusive mode nowait", "Lock"),
        ("discard all", "Discard"),
        ("checkpoint", "Checkpoint"),
        ("deallocate prepare all", "Deallocate"),
        ("prepare p (int, text) as select $1, $2", "Prepare"),
        ("execute p (1, 'x')", "Execute"),
        (
            "declare c no scroll cursor with hold for select 1",
            "Declare",
        ),
        ("fetch backward 5 in c", "Fetch"),
        ("fetch c", "Fetch"),
        ("fetch next from c", "Fetch"),
        ("move all c", "Fetch"),
        ("close all", "Close"),
        (
            "create role r with login password 'x' valid until '2030-01-01' in role a, b",
            "CreateRole",
        ),
        ("alter user r set work_mem = '1MB'", "AlterRoleSet"),
        ("alter role r password null", "AlterRole"),
        ("create database d owner x", "CreateDatabase"),
        (
            "alter sequence s restart with -5 increment by 2 no maxvalue",
            "AlterSequence",
        ),
        ("grant a, b to c", "GrantRole"),
        ("grant select on t to public", "Grant"),
        (
            "grant select (a, b), update on table t, s.u to public, x with grant option",
            "Grant",
        ),
        (
            "grant all privileges on all tables in schema s to x",
            "Grant",
        ),
        (
            "revoke grant option for insert on t from group x cascade",
            "Grant",
        ),
        (
            "grant a to b with admin option, set false granted by c",
            "GrantRole",
        ),
        ("revoke inherit option for a from b", "GrantRole"),
        (
            "alter default privileges for role x in schema s grant select on tables to y",
            "AlterDefaultPrivileges",
        ),
        ("reassign owned by x to y", "ReassignOwned"),
        ("drop owned by x, y cascade", "DropOwned"),
        (
            "copy t (a, b) from '/x' csv header quote '\"' force not null a",
            "Copy",
        ),
        ("copy binary t to stdout", "Copy"),
        (
            "copy (select 1) to stdout with (format csv, header match, force_quote *)",
            "Copy",
        ),
        ("copy t from stdin using delimiters '|'", "Copy"),
        ("explain (analyze, costs off) select 1", "Explain"),
        ("explain analyze verbose delete from t", "Explain"),
        ("explain (select 1)", "Explain"),
        ("comment on constraint c on t is null", "Comment"),
        ("table t", "Query"),
        ("values (1), (2) order by 1", "Query"),
        ("create view v as select 1", "CreateView"),
        ("reindex table t", "Reindex"),
        (
            "alter table t alter a set data type int using a::int, add b int, drop c cascade",
            "AlterTable",
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(variant(sql), expected, "{sql}");
    }
}

/// Fully parenthesised, to see precedence.
fn shape(sql: &str) -> String {
    use ast::Node as N;
    fn show(e: &ast::Expr) -> String {
        let list = |l: &[ast::Expr], sep: &str| {
            format!("({})", l.iter().map(show).collect::<Vec<_>>().join(sep))
        };
        match &e.node {
            N::Integer(s) | N::Decimal(s) => s.clone(),
            N::Text(s) => format!("'{s}'"),
            N::Column(parts) => parts.join("."),
            N::Binary { op, left, right } => {
                format!("({} {} {})", show(left), op.name, show(right))
            }
            N::Unary { op, arg } => format!("({} {})", op.name, show(arg)),
            N::And(l) => list(l, " and "),
            N::Or(l) => list(l, " or "),
            N::Not(a) => format!("(not {})", show(a)),
            N::IsNull { arg, .. } => format!("({} isnull)", show(arg)),
            N::Cast { arg, ty } => format!("({}::{})", show(arg), ty.name.last()),
            N::Between { arg, low, high, .. } => {
                format!("({} between {} {})", show(arg), show(low), show(high))
            }
            N::Like { arg, pattern, .. } => format!("({} like {})", show(arg), show(pattern)),
            N::Row { fields, .. } => list(fields, ", "),
            N::Subscript { arg, index } => format!("{}[{}]", show(arg), show(index)),
            N::Subquery(_) => "(query)".into(),
            N::InList {
                arg, list: items, ..
            } => format!("({} in {})", show(arg), list(items, ", ")),
            N::InQuery { arg, .. } => format!("({} in query)", show(arg)),
            other => format!("{other:?}"),
        }
    }
    show(&parse_expr(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}")))
}

#[test]
fn operators_bind_as_in_postgresql() {
    let cases = [
        ("1 + 2 * 3 - 4", "((1 + (2 * 3)) - 4)"),
        ("- 2 ^ 2", "(-2 ^ 2)"),
        ("-a ^ 2", "((- a) ^ 2)"),
        ("2 ^ 3 ^ 4", "((2 ^ 3) ^ 4)"),
        ("not a = b and c or d", "(((not (a = b)) and c) or d)"),
        ("a || b < c", "((a || b) < c)"),
        (
            "a between 1 + 1 and 3 and b",
            "((a between (1 + 1) 3) and b)",
        ),
        ("a like 'x' || 'y' and b", "((a like ('x' || 'y')) and b)"),
        ("-1::int", "(- (1::int4))"),
        ("a is null = b", "((a isnull) = b)"),
        ("a::int[1]", "(a::int4)"),
        ("(a)[1]", "a[1]"),
        ("a <> -b", "(a <> (- b))"),
        ("(1, 2) = (3, 4)", "((1, 2) = (3, 4))"),
        ("((select 1)) + 1", "((query) + 1)"),
        ("((1 + 2))", "(1 + 2)"),
        ("a in ((select 1))", "(a in query)"),
        ("a in (1, (2))", "(a in (1, 2))"),
        ("a in ((1) + 2, 3)", "(a in ((1 + 2), 3))"),
        ("~ a & b", "((~ a) & b)"),
    ];
    for (sql, expected) in cases {
        assert_eq!(shape(sql), expected, "{sql}");
    }
}

#[test]
fn errors_name_the_token_and_its_place() {
    let cases = [
        ("selec 1", "syntax error at or near \"selec\"", 1),
        (
            "select 1;; select é from a where",
            "syntax error at end of input",
            33,
        ),
        ("select 'é' 1 from", "syntax error at or near \"1\"", 12),
        (
            "create table t (a int,)",
            "syntax error at or near \")\"",
            23,
        ),
        (
            "insert into t values (1",
            "syntax error at end of input",
            24,
        ),
        (
            "select a from t where a = = 1",
            "syntax error at or near \"=\"",
            27,
        ),
        ("select * from a join b", "syntax error at end of input", 23),
        (
            "begin transaction isolation level x",
            "syntax error at or near \"x\"",
            35,
        ),
    ];
    for (sql, message, position) in cases {
        let e = parse(sql).expect_err(sql);
        assert_eq!(
            (e.message(), e.fields().position),
            (message, Some(position)),
            "{sql}"
        );
    }
}

#[test]
fn several_statements_know_their_text() {
    let sql = "select 1; ; insert into t values (';') ;";
    let parsed = parse(sql).unwrap();
    let texts: Vec<&str> = parsed
        .iter()
        .map(|p| &sql[p.start as usize..p.end as usize])
        .collect();
    assert_eq!(texts, ["select 1", "insert into t values (';')"]);
}

#[test]
fn nesting_is_bounded_not_the_stack() {
    let deep = [
        format!("select {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("select {}1", "- ".repeat(100_000)),
        format!("select {}true", "not ".repeat(100_000)),
        format!("select 1{}", " + 1".repeat(100_000)),
        format!("select 1{}", "::int".repeat(100_000)),
        format!("select {}1", "case when true then ".repeat(100_000)),
        format!("select * from {}t", "(".repeat(100_000)),
        format!("{}select 1", "(".repeat(100_000)),
        format!("select 1{}", " union select 1".repeat(100_000)),
        format!("select * from t{}", " join t on true".repeat(100_000)),
        format!("select {}", "array[".repeat(100_000)),
        format!("{}select 1", "explain ".repeat(100_000)),
        format!("{}select 1", "with a as (".repeat(100_000)),
    ];
    for sql in &deep {
        let e = parse(sql).expect_err("too deep");
        assert!(["54001", "42601"].contains(&e.code().as_str()), "{e:?}");
    }
    // Wide is not deep.
    parse(&format!("select 1{}", " or true".repeat(100_000))).unwrap();
    parse(&format!("select 1 in (1{})", ", 1".repeat(100_000))).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_text_is_parsed_or_refused(sql in "\\PC{0,60}") {
        let _ = parse(&sql).map_err(|e| e.to_string());
    }

    /// A good statement with something cut out or doubled.
    #[test]
    fn damaged_statements_are_parsed_or_refused(at in 0usize..200, len in 0usize..20, twice: bool) {
        let sql = "with w as (select a, count(*) filter (where b like 'x%') from t group by 1) \
                   select distinct on (a) w.*, (select max(b) from t) from w left join t using (a) \
                   where a in (1, 2) and b is not null order by a desc nulls last limit 5 for update of t";
        let cut = at.min(sql.len());
        let end = (cut + len).min(sql.len());
        let damaged = match twice {
            true => format!("{}{}{}", &sql[..end], &sql[cut..end], &sql[end..]),
            false => format!("{}{}", &sql[..cut], &sql[end..]),
        };
        let _ = parse(&damaged).map_err(|e| e.to_string());
    }
}
