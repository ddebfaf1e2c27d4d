//! What must not cost more for what else there is: definitions beside many others, and single rows
//! of tables with many partitions.
//!
//! Costs are the server's own time on the processors, so that what else the machine does hardly
//! counts: a batch of statements where there is little is compared with the same batch where there
//! is eight times as much and more. A walk over all there is makes the second a multiple of the
//! first.

use std::fmt::Write;
use std::fs;
use std::time::Duration;

use crate::client::Client;
use crate::server::{Home, Server};

/// What a batch may cost where there is much, by what it costs where there is little. Files in a
/// full folder and pages to be written make it twice as much by themselves.
const MOST: f64 = 4.0;
/// Batches of which the cheapest counts.
const TRIES: usize = 3;

/// Time on the processors of a whole process, so far.
fn busy(server: &Server) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.id())).expect("a process");
    // After the name, which is in parentheses: the 12th and 13th are its own and the kernel's
    // ticks.
    let after = stat.rsplit_once(')').expect("a name").1;
    let ticks = after.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|n| n.parse::<u64>().expect("ticks")).sum();
    Duration::from_millis(ticks * 10)
}

fn cost(server: &Server, client: &mut Client, batch: &str) -> Duration {
    let before = busy(server);
    client.run(batch);
    busy(server) - before
}

/// A batch in one transaction: `of` for each number.
fn batch(numbers: std::ops::Range<usize>, of: impl Fn(usize) -> String) -> String {
    let mut text = "begin;".to_owned();
    for number in numbers {
        write!(text, "{};", of(number)).expect("a text");
    }
    text + "commit"
}

fn served(home: &Home) -> Server {
    home.serve(&["--set", "autovacuum=off"])
}

fn must_be_like(what: &str, few: Duration, many: Duration) {
    // A tick is 10 ms: less than a few of them is no measure.
    let few = few.max(Duration::from_millis(50));
    assert!(
        many.as_secs_f64() < few.as_secs_f64() * MOST,
        "{what}: {few:?} where there are few, {many:?} where there are many"
    );
}

/// Batches of definitions from the first on: the first ones are compared with the last ones, which
/// come when there are `rounds` times as many objects.
fn definitions(
    server: &Server,
    what: &str,
    size: usize,
    rounds: usize,
    of: impl Fn(usize) -> String,
) {
    let mut client = server.connect();
    let costs: Vec<Duration> = (0..rounds)
        .map(|round| {
            cost(
                server,
                &mut client,
                &batch(round * size..(round + 1) * size, &of),
            )
        })
        .collect();
    let least = |costs: &[Duration]| *costs.iter().min().expect("some");
    must_be_like(
        what,
        least(&costs[..TRIES]),
        least(&costs[rounds - TRIES..]),
    );
}

#[test]
fn definitions_cost_what_they_change() {
    let home = Home::new();
    let server = served(&home);
    server
        .connect()
        .run("create function f(int) returns int language sql immutable as 'select $1'");
    definitions(&server, "CREATE TABLE", 100, 24, |n| {
        format!("create table t{n} (id serial primary key, v text not null, check (f(id) > 0))")
    });
    definitions(&server, "CREATE VIEW, CREATE FUNCTION", 100, 24, |n| {
        format!(
            "create view w{n} as select id from t{n}; \
             create function f{n}(int) returns int language sql as 'select $1'"
        )
    });
    definitions(&server, "renames", 60, 24, |n| {
        format!("alter table t{n} rename to u{n}; alter table u{n} rename v to w")
    });
    // There are 2,400 tables and functions at the beginning, and one of each kind less every time:
    // the other way round.
    let mut client = server.connect();
    let drop = |n: usize| format!("drop function f{n}; drop table u{n} cascade");
    client.run("set client_min_messages = error");
    let many =
        (0..TRIES).map(|at| cost(&server, &mut client, &batch(at * 60..(at + 1) * 60, drop)));
    let many = many.min().expect("some");
    client.run(&batch(180..1200, drop));
    let few =
        (20..20 + TRIES).map(|at| cost(&server, &mut client, &batch(at * 60..(at + 1) * 60, drop)));
    must_be_like("DROP", few.min().expect("some"), many);
}

#[test]
fn catalogs_cost_what_is_asked_of_them() {
    /// Of one table, as programs ask: by its name or oid, alone and in joins.
    const ASKED: [&str; 8] = [
        "select c.oid from pg_class c left join pg_namespace n on n.oid = c.relnamespace \
            where c.relname = 't{n}' and n.nspname = 'public'",
        "select a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid) \
            from pg_attribute a left join pg_attrdef d \
            on a.attrelid = d.adrelid and a.attnum = d.adnum \
            where a.attrelid = 't{n}'::regclass and a.attnum > 0 and not a.attisdropped",
        "select a.attname from pg_index i join pg_attribute a \
            on a.attrelid = i.indrelid and a.attnum = any (i.indkey) \
            where i.indrelid = 't{n}'::regclass and i.indisprimary",
        "select conname, pg_get_constraintdef(oid) from pg_constraint \
            where conrelid = 't{n}'::regclass",
        "select conname from pg_constraint where confrelid = 't{n}'::regclass",
        "select (select count(*) from pg_trigger t where t.tgrelid = c.oid) \
            from pg_class c where oid = 't{n}'::regclass",
        "select typname from pg_type where oid = 't{n}'::regtype",
        "select inhrelid::regclass from pg_inherits where inhparent = 't{n}'::regclass",
    ];
    let home = Home::new();
    let server = served(&home);
    let mut client = server.connect();
    let make = |n: usize| {
        format!("create table t{n} (id serial primary key, v text not null, check (id > 0))")
    };
    let ask = |n: usize| {
        let asked = ASKED.iter().map(|sql| sql.replace("{n}", &n.to_string()));
        asked.collect::<Vec<String>>().join(";")
    };
    client.run(&batch(0..100, make));
    let mut measured = || {
        (0..TRIES)
            .map(|_| cost(&server, &mut client, &batch(0..100, ask)))
            .min()
    };
    let few = measured().expect("some");
    for hundred in 1..24 {
        server
            .connect()
            .run(&batch(hundred * 100..(hundred + 1) * 100, make));
    }
    let many = measured().expect("some");
    must_be_like("look-ups of one table", few, many);
}

#[test]
fn temporary_tables_cost_what_they_are() {
    let home = Home::new();
    let server = served(&home);
    let mut client = server.connect();
    let come_and_go =
        "begin;create temporary table mine (id int) on commit drop;commit;".repeat(40);
    let few = (0..TRIES)
        .map(|_| cost(&server, &mut client, &come_and_go))
        .min();
    let mut other = server.connect();
    other.run(&batch(0..1500, |n| {
        format!("create temporary table t{n} (id int primary key) on commit delete rows")
    }));
    let many = (0..TRIES)
        .map(|_| cost(&server, &mut client, &come_and_go))
        .min();
    must_be_like("temporary tables", few.expect("some"), many.expect("some"));
    drop(other);
}

/// Statements about one row each.
fn about_rows(table: &str, statement: &str) -> String {
    (0..60)
        .map(|n| {
            statement
                .replace("$t", table)
                .replace("$n", &(n * 7).to_string())
                + ";"
        })
        .collect()
}

#[test]
fn rows_of_partitions_cost_what_they_are() {
    let home = Home::new();
    let server = served(&home);
    let mut client = server.connect();
    let strategies = [
        ("range", "for values from ($n * 10) to ($n * 10 + 10)"),
        (
            "list",
            "for values in ($n0, $n1, $n2, $n3, $n4, $n5, $n6, $n7, $n8, $n9)",
        ),
        ("hash", "for values with (modulus $of, remainder $n)"),
    ];
    let sizes = [("few", 80), ("many", 1200)];
    for (strategy, bound) in strategies {
        for (name, size) in sizes {
            let table = format!("{strategy}_{name}");
            client.run(&format!(
                "create table {table} (id int, v int) partition by {strategy} (id)"
            ));
            client.run(&batch(0..size, |n| {
                let bound = bound.replace("$of", &size.to_string());
                format!(
                    "create table {table}{n} partition of {table} {}",
                    bound.replace("$n", &n.to_string())
                )
            }));
        }
        for statement in [
            "insert into $t values ($n, 1)",
            "select v from $t where id = $n",
            "update $t set v = v + 1 where id = $n",
            "execute $t_q($n)",
            "delete from $t where id = $n",
        ] {
            let costs = sizes.map(|(name, _)| {
                let table = format!("{strategy}_{name}");
                if statement.starts_with("execute") {
                    client.run(&format!(
                        "prepare {table}_q(int) as select v from {table} where id = $1"
                    ));
                }
                let statements = about_rows(&table, statement);
                client.run(&statements);
                (0..TRIES)
                    .map(|_| cost(&server, &mut client, &statements))
                    .min()
                    .expect("some")
            });
            must_be_like(&format!("{strategy}: {statement}"), costs[0], costs[1]);
        }
    }
}

/// The partitioned tables and partitions that the session has locked.
const LOCKED: &str = "select string_agg(c.relname, ' ' order by c.relname) from pg_locks l join pg_class c on c.oid = l.relation \
     where l.pid = pg_backend_pid() and c.relname like 'p%' and c.relname not like 'pg%'";

#[test]
fn plans_without_values_lock_what_the_values_choose() {
    let home = Home::new();
    let server = served(&home);
    let mut client = server.connect();
    client.run("create table p (id int, sub int, v int) partition by range (id)");
    client
        .run("create table p0 partition of p for values from (0) to (10) partition by list (sub)");
    client.run("create table p0a partition of p0 for values in (1); create table p0b partition of p0 default");
    for n in 1..9 {
        client.run(&format!(
            "create table p{n} partition of p for values from ({n}0) to ({n}9)"
        ));
    }
    client.run("set plan_cache_mode = force_generic_plan");
    client.run("prepare r(int, int) as select * from p where id = $1 and sub = $2");
    client.run("prepare w(int) as update p set v = 1 where id = $1");
    client.run("prepare l(int) as select * from p where id = $1 for update");
    client.run("prepare d(int) as delete from p where id between $1 and $1 + 10");
    client.run("prepare i(int) as insert into p values ($1 + 1, 1, 1), ($1 + 11, 1, 1)");
    let cases = [
        ("execute r(5, 1)", "p p0a"),
        ("execute r(25, 1)", "p p2"),
        ("execute r(95, 1)", "p"),
        ("execute w(35)", "p p3"),
        ("execute l(45)", "p p4"),
        ("execute d(55)", "p p5 p6"),
        ("execute i(21)", "p p2 p3"),
        ("execute i(3)", "p p0a p1"),
        ("insert into p values (71, 0, 0)", "p p7"),
        (
            "select * from p where id = (select 11)",
            "p p0a p0b p1 p2 p3 p4 p5 p6 p7 p8",
        ),
    ];
    for (statement, locked) in cases {
        client.run("begin");
        client.run(statement);
        assert_eq!(client.run(LOCKED).value(), locked, "{statement}");
        client.run("rollback");
    }
}

#[test]
fn the_array_of_a_subquery_is_made_once() {
    let home = Home::new();
    let server = served(&home);
    let mut client = server.connect();
    let over = |items: usize| {
        format!(
            "select percentile_cont(array(select i / 4000.0 from generate_series(1, {items}) i)) \
             within group (order by g) is null from generate_series(1, 20000) g"
        )
    };
    let few = cost(&server, &mut client, &over(10));
    let many = cost(&server, &mut client, &over(4000));
    must_be_like("a subquery's array beside 20,000 rows", few, many);
}
