//! Random queries over random data give the same rows either way.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use throng_session::Session;
use throng_types::Datum;

use crate::database::{Database, by_pool, by_rows, execute, on_a_loop};

/// Columns by what may be done with them. Values repeat, are NULL, and differ in form where they
/// are equal.
const TABLES: [&str; 2] = ["a", "b"];
const ROWS: usize = 700;

async fn fill(session: &mut Session, rng: &mut StdRng) {
    for table in TABLES {
        execute(
            session,
            &format!(
                "CREATE TABLE {table} (i int, b bigint, s smallint, f float8, n numeric, t text, c char(3), \
                 d date, ts timestamptz, l bool, v interval)"
            ),
        )
        .await;
        for _ in 0..ROWS / 50 {
            let rows: Vec<String> = (0..50).map(|_| row(rng)).collect();
            execute(
                session,
                &format!("INSERT INTO {table} VALUES {}", rows.join(",")),
            )
            .await;
        }
    }
    execute(session, "DELETE FROM a WHERE i = 3").await;
    execute(session, "UPDATE b SET b = b + 1 WHERE s = 1").await;
}

fn row(rng: &mut StdRng) -> String {
    let values = [
        rng.random_range(-5..20).to_string(),
        ["-1", "0", "7", "9000000000000", "12"][rng.random_range(0..5)].to_owned(),
        rng.random_range(0..4).to_string(),
        ["0.0", "'-0'", "1.5", "'NaN'", "'Infinity'", "-2.25", "100"][rng.random_range(0..7)]
            .to_owned(),
        [
            "1.0",
            "1.00",
            "1",
            "'NaN'",
            "-3.75",
            "0.000",
            "12345678901234567890.5",
        ][rng.random_range(0..7)]
        .to_owned(),
        ["''", "'a'", "'ab'", "'b'", "'straße'", "'a '"][rng.random_range(0..6)].to_owned(),
        ["'a'", "'a  '", "'b'", "'abc'"][rng.random_range(0..4)].to_owned(),
        ["'2024-02-29'", "'1999-12-31'", "'infinity'", "'-infinity'"][rng.random_range(0..4)]
            .to_owned(),
        ["'2024-02-29 12:00+00'", "'1999-12-31 23:59:59.999999+02'"][rng.random_range(0..2)]
            .to_owned(),
        ["true", "false"][rng.random_range(0..2)].to_owned(),
        ["'1 mon'", "'30 days'", "'1 day'", "'24:00:00'"][rng.random_range(0..4)].to_owned(),
    ];
    let values: Vec<String> = values
        .into_iter()
        .map(|v| {
            if rng.random_ratio(1, 8) {
                "NULL".to_owned()
            } else {
                v
            }
        })
        .collect();
    format!("({})", values.join(","))
}

/// A value over the columns of `tables`, each known by its name; of a type that can be grouped and
/// sorted.
fn value(rng: &mut StdRng, tables: &[&str]) -> String {
    let t = tables.choose(rng).copied().unwrap_or("a");
    let column = ["i", "b", "s", "f", "n", "t", "c", "d", "ts", "l", "v"]
        .choose(rng)
        .copied()
        .unwrap_or("i");
    match rng.random_range(0..14) {
        0 => format!("{t}.i + {t}.s * 2"),
        1 => format!("{t}.b / 3 - {t}.i"),
        2 => format!("{t}.i % 4"),
        3 => format!("CASE WHEN {t}.i <> 0 THEN 100 / {t}.i ELSE {t}.s END"),
        4 => format!("coalesce({t}.t, 'none') || {t}.s::text"),
        5 => format!("{t}.n * 2"),
        6 => format!("upper({t}.t)"),
        _ => format!("{t}.{column}"),
    }
}

fn condition(rng: &mut StdRng, tables: &[&str], depth: u32) -> String {
    let t = tables.choose(rng).copied().unwrap_or("a");
    match rng.random_range(0..if depth == 0 { 9 } else { 12 }) {
        0 => format!("{t}.i > {}", rng.random_range(-5..20)),
        1 => format!("{t}.b <= {t}.i"),
        2 => format!("{t}.f < {t}.i::float8"),
        3 => format!("{t}.t = 'ab'"),
        4 => format!("{t}.i IS NULL"),
        5 => format!("{t}.l"),
        6 => format!("{t}.d >= '2000-01-01'"),
        7 => format!("{t}.i <> 0 AND 60 / {t}.i > 3"),
        8 => format!("{t}.n = 1"),
        9 => format!("NOT ({})", condition(rng, tables, depth - 1)),
        10 => format!(
            "({} OR {})",
            condition(rng, tables, depth - 1),
            condition(rng, tables, depth - 1)
        ),
        _ => format!(
            "({} AND {})",
            condition(rng, tables, depth - 1),
            condition(rng, tables, depth - 1)
        ),
    }
}

/// An aggregate whose result does not hang on the order of rows.
fn aggregate(rng: &mut StdRng, t: &str) -> String {
    let call = match rng.random_range(0..13) {
        0 => "count(*)".to_owned(),
        1 => format!("count({t}.t)"),
        2 => format!("sum({t}.i)"),
        3 => format!("sum({t}.b)"),
        4 => format!("avg({t}.s)"),
        5 => format!("sum({t}.n)"),
        6 => format!("min({t}.t)"),
        7 => format!("max({t}.f)"),
        8 => format!("bool_and({t}.l)"),
        9 => format!("count(DISTINCT {t}.n)"),
        10 => format!("sum(DISTINCT {t}.i)"),
        11 => format!("string_agg({t}.t, ',' ORDER BY {t}.t DESC NULLS LAST)"),
        _ => format!("array_agg({t}.i ORDER BY {t}.i, {t}.s)"),
    };
    match rng.random_ratio(1, 4) {
        true => format!("{call} FILTER (WHERE {t}.i <> 0 AND 10 / {t}.i < 4)"),
        false => call,
    }
}

/// A query, and whether the order of its rows is told.
fn statement(rng: &mut StdRng) -> (String, bool) {
    let (from, tables): (String, Vec<&str>) = match rng.random_range(0..6) {
        0..=2 => ("a".to_owned(), vec!["a"]),
        _ => {
            let kind = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
                .choose(rng)
                .copied()
                .unwrap_or("JOIN");
            let on = [
                "a.i = b.i",
                "a.n = b.n AND a.s = b.s",
                "a.c = b.c AND a.i = b.i",
                "a.f = b.f AND a.t = b.t",
                "a.i = b.i AND a.b < b.b + 5",
            ]
            .choose(rng)
            .copied()
            .unwrap_or("a.i = b.i");
            (format!("a {kind} b ON {on}"), vec!["a", "b"])
        }
    };
    let filter = match rng.random_ratio(1, 2) {
        true => format!(" WHERE {}", condition(rng, &tables, 2)),
        false => String::new(),
    };
    let values: Vec<String> = (0..rng.random_range(1..4))
        .map(|_| value(rng, &tables))
        .collect();
    let list = values.join(", ");
    let all: Vec<String> = (1..=values.len()).map(|i| i.to_string()).collect();
    match rng.random_range(0..7) {
        0 | 1 => (format!("SELECT {list} FROM {from}{filter}"), false),
        // Ordered by all it shows: only rows that are the same can change places.
        2 => {
            let direction = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]
                .choose(rng)
                .copied()
                .unwrap_or("");
            let keys: Vec<String> = all.iter().map(|k| format!("{k}{direction}")).collect();
            let limit = ["", " LIMIT 10", " LIMIT 7 OFFSET 20", " OFFSET 600"]
                .choose(rng)
                .copied()
                .unwrap_or("");
            (
                format!(
                    "SELECT {list} FROM {from}{filter} ORDER BY {}{limit}",
                    keys.join(", ")
                ),
                true,
            )
        }
        3 => (format!("SELECT DISTINCT {list} FROM {from}{filter}"), false),
        4 => {
            let t = tables.choose(rng).copied().unwrap_or("a");
            let aggregates: Vec<String> = (0..rng.random_range(1..4))
                .map(|_| aggregate(rng, t))
                .collect();
            let having = if rng.random_ratio(1, 4) {
                " HAVING count(*) > 2"
            } else {
                ""
            };
            (
                format!(
                    "SELECT {list}, {} FROM {from}{filter} GROUP BY {}{having}",
                    aggregates.join(", "),
                    all.join(", ")
                ),
                false,
            )
        }
        5 => {
            let t = tables.choose(rng).copied().unwrap_or("a");
            let aggregates: Vec<String> = (0..rng.random_range(1..4))
                .map(|_| aggregate(rng, t))
                .collect();
            (
                format!("SELECT {} FROM {from}{filter}", aggregates.join(", ")),
                false,
            )
        }
        _ => {
            let all = if rng.random() { " ALL" } else { "" };
            (
                format!("SELECT i, n, t FROM a UNION{all} SELECT i, n, t FROM b WHERE i > 2"),
                false,
            )
        }
    }
}

/// Rows as text in which equal values look alike, whatever their scale or sign of zero; DISTINCT
/// and GROUP BY may show any form.
fn comparable(rows: Vec<Vec<Datum>>, ordered: bool) -> Vec<String> {
    let mut rows: Vec<String> = rows
        .into_iter()
        .map(|row| {
            let values = row.iter().map(|value| {
                let mut key = Vec::new();
                let order = throng_types::key::KeyOrder {
                    blank_padded: true,
                    ..throng_types::key::KeyOrder::ASCENDING
                };
                throng_types::key::encode_one(value, order, &mut key).expect("an ordered value");
                format!("{key:02x?}")
            });
            values.collect::<Vec<_>>().join(" ")
        })
        .collect();
    if !ordered {
        rows.sort();
    }
    rows
}

#[test]
fn random_queries_give_the_same_rows_both_ways() {
    let database = Database::new();
    on_a_loop(async {
        let mut rng = StdRng::seed_from_u64(20);
        let mut session = database.session();
        fill(&mut session, &mut rng).await;
        let mut rows_seen = 0;
        for _ in 0..400 {
            let (sql, ordered) = statement(&mut rng);
            let expected = by_rows(&mut session, &sql).await;
            let got = by_pool(&mut session, &sql).await;
            match (expected, got) {
                (Ok(expected), Ok(got)) => {
                    rows_seen += got.len();
                    assert_eq!(
                        comparable(got, ordered),
                        comparable(expected, ordered),
                        "{sql}"
                    );
                }
                (Err(expected), Err(got)) => assert_eq!(got.code(), expected.code(), "{sql}"),
                (expected, got) => panic!("{sql}\nrows: {expected:?}\npool: {got:?}"),
            }
        }
        assert!(rows_seen > 1000, "the queries select something");
        assert!(
            database.pool.started() >= 380,
            "only {} of 400 ran on the pool",
            database.pool.started()
        );
        session.close().await;
    });
}

#[test]
fn first_rows_of_each_key_and_halves_of_joins() {
    let database = Database::new();
    on_a_loop(async {
        let mut rng = StdRng::seed_from_u64(7);
        let mut session = database.session();
        fill(&mut session, &mut rng).await;
        for (sql, ordered) in [
            (
                "SELECT DISTINCT ON (i) i, n, t, s FROM a ORDER BY i, n, t, s",
                true,
            ),
            (
                "SELECT i, t FROM a WHERE i IN (SELECT b.i FROM b WHERE b.s = 2)",
                false,
            ),
            (
                "SELECT i, t FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.i = a.i AND b.s > a.s)",
                false,
            ),
            (
                "SELECT i, t FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.i = a.i AND b.s > a.s)",
                false,
            ),
            ("SELECT count(*) FROM a WHERE false", false),
            (
                "SELECT sum(i), count(*), max(t) FROM a WHERE i > 100000",
                false,
            ),
            ("SELECT i FROM a WHERE i > 100000 GROUP BY i", false),
            ("SELECT 1 FROM a LIMIT 0", false),
        ] {
            let expected = by_rows(&mut session, sql).await.expect(sql);
            let got = by_pool(&mut session, sql).await.expect(sql);
            assert_eq!(
                comparable(got, ordered),
                comparable(expected, ordered),
                "{sql}"
            );
        }
        assert_eq!(
            database.pool.started(),
            6,
            "all but LIMIT 0 and WHERE false cost something"
        );
        session.close().await;
    });
}

#[test]
fn keys_of_different_types_meet() {
    let database = Database::new();
    on_a_loop(async {
        let mut session = database.session();
        for table in ["x", "y"] {
            let columns =
                "s smallint, i int, b bigint, r real, f float8, t text, v varchar, n name";
            execute(&mut session, &format!("CREATE TABLE {table} ({columns})")).await;
            for row in [
                "0, 0, 0, 0, '-0', '', '', ''",
                "7, 7, 7, 1.5, 1.5, 'a', 'a', 'a'",
                "-7, -7, -7, 'NaN', 'NaN', 'ab', 'ab', 'ab'",
                "32767, 2147483647, 9000000000000, 0.1, 0.1, 'A', 'A', 'A'",
                "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
            ] {
                execute(&mut session, &format!("INSERT INTO {table} VALUES ({row})")).await;
            }
        }
        let mut run = 0;
        for family in [&["s", "i", "b"][..], &["r", "f"], &["t", "v", "n"]] {
            for (left, right) in family
                .iter()
                .flat_map(|l| family.iter().map(move |r| (l, r)))
            {
                let joins = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
                    .map(|join| format!("SELECT * FROM x {join} y ON x.{left} = y.{right}"));
                let halves = ["EXISTS", "NOT EXISTS"].map(|half| {
                    let partner = format!("SELECT 1 FROM y WHERE x.{left} = y.{right}");
                    format!("SELECT * FROM x WHERE {half} ({partner})")
                });
                for sql in joins.iter().chain(&halves) {
                    let expected = by_rows(&mut session, sql).await.expect(sql);
                    let got = by_pool(&mut session, sql).await.expect(sql);
                    assert_eq!(comparable(got, false), comparable(expected, false), "{sql}");
                    run += 1;
                }
            }
        }
        assert_eq!(database.pool.started(), run);
        session.close().await;
    });
}
