//! Columns that were kept from an earlier scan are those of the rows that the snapshot sees,
//! whatever was done to the table since.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::database::{Database, by_pool, by_rows, execute, on_a_loop, query};

const QUERIES: [&str; 4] = [
    "SELECT count(*) FROM t",
    "SELECT sum(a), min(b), max(c), count(c) FROM t",
    "SELECT id, b FROM t WHERE a % 7 = 3 ORDER BY id, b",
    "SELECT t.id, u.c FROM t JOIN t u ON t.a = u.id WHERE t.b < 100 ORDER BY t.id, u.c",
];

/// Something that changes the table, or seems to.
fn change(random: &mut StdRng) -> String {
    let from = random.random_range(0..6000);
    let to = from + random.random_range(1..400);
    match random.random_range(0..9) {
        0 => format!("UPDATE t SET b = b + 1 WHERE id BETWEEN {from} AND {to}"),
        1 => format!("UPDATE t SET a = a + 1, c = c || 'x' WHERE id BETWEEN {from} AND {to}"),
        2 => format!("DELETE FROM t WHERE id BETWEEN {from} AND {to}"),
        3 => format!("INSERT INTO t SELECT i, i % 100, i / 8.0, 'new' FROM generate_series({from}, {to}) i"),
        4 => format!("BEGIN; UPDATE t SET b = -1 WHERE id BETWEEN {from} AND {to}; ROLLBACK"),
        5 => format!("BEGIN; SAVEPOINT s; DELETE FROM t WHERE id < {to}; ROLLBACK TO s; UPDATE t SET a = 5 WHERE id = {from}; COMMIT"),
        6 => "VACUUM t".into(),
        7 => format!("INSERT INTO t VALUES ({from}, 3, NULL, repeat('long', 4000))"),
        // Every row that is there gets the column without being written.
        _ => "BEGIN; ALTER TABLE t ADD COLUMN d int DEFAULT 1; SELECT sum(d), count(*) FROM t; ROLLBACK".into(),
    }
}

#[test]
fn kept_columns_are_those_of_the_rows() {
    let database = Database::new();
    on_a_loop(async {
        let mut writer = database.session();
        let mut reader = database.session();
        let mut earlier = database.session();
        execute(
            &mut writer,
            "CREATE TABLE t (id int, a int, b numeric, c text)",
        )
        .await;
        let rows =
            "INSERT INTO t SELECT i, i % 100, i / 8.0, 'row ' || i FROM generate_series(1, 6000) i";
        execute(&mut writer, rows).await;
        let mut random = StdRng::seed_from_u64(23);
        for round in 0..120 {
            if round % 10 == 0 {
                // A snapshot that stays for some rounds.
                execute(
                    &mut earlier,
                    "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t",
                )
                .await;
            }
            if random.random_bool(0.6) {
                execute(&mut writer, "SET analytics_above_cost = 0").await;
                let change = change(&mut random);
                if change.contains("ALTER") {
                    // Which nobody else may have locked.
                    execute(&mut earlier, "ROLLBACK").await;
                }
                execute(&mut writer, &change).await;
            }
            for session in [&mut reader, &mut earlier] {
                let sql = QUERIES[random.random_range(0..QUERIES.len())];
                let rows = by_rows(session, sql).await.expect(sql);
                for _ in 0..3 {
                    let pool = by_pool(session, sql).await.expect(sql);
                    assert_eq!(
                        format!("{rows:?}"),
                        format!("{pool:?}"),
                        "{sql}, round {round}"
                    );
                }
            }
        }
        execute(&mut earlier, "ROLLBACK").await;
    });
}

/// Columns that a transaction added and took back are not found by the next that adds one.
#[test]
fn a_column_that_is_taken_back_is_forgotten() {
    let database = Database::new();
    on_a_loop(async {
        let mut session = database.session();
        execute(
            &mut session,
            "CREATE TABLE t (id int); INSERT INTO t SELECT generate_series(1, 5000)",
        )
        .await;
        execute(&mut session, "SET analytics_above_cost = 0").await;
        for value in 1..5 {
            execute(
                &mut session,
                &format!("BEGIN; ALTER TABLE t ADD COLUMN d int DEFAULT {value}"),
            )
            .await;
            for _ in 0..3 {
                let rows = query(&mut session, "SELECT sum(d), count(*) FROM t").await;
                let rows = format!("{:?}", rows.expect("a sum"));
                assert_eq!(rows, format!("[[Int8({}), Int8(5000)]]", 5000 * value));
            }
            execute(&mut session, "ROLLBACK").await;
        }
    });
}

#[test]
fn what_is_read_again_is_kept() {
    let database = Database::new();
    on_a_loop(async {
        let mut session = database.session();
        execute(&mut session, "CREATE TABLE t (id int, a int); INSERT INTO t SELECT i, i FROM generate_series(1, 5000) i").await;
        execute(&mut session, "SET analytics_above_cost = 0").await;
        assert_eq!(database.pool.cached_bytes(), 0);
        for (sql, columns) in [
            ("SELECT sum(a) FROM t", 1),
            ("SELECT sum(a), sum(id) FROM t", 2),
        ] {
            // Rows are settled once the horizon has passed their commit, a moment later.
            let mut tries = 0;
            while database.pool.cached_bytes() < columns * 4 * 5000 {
                execute(&mut session, sql).await;
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                tries += 1;
                assert!(tries < 1000, "{sql}");
            }
        }
    });
}
