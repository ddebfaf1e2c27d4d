//! Queries that the pool cannot run as a whole: what of them it runs, and that the rows are the
//! same.

use throng_types::Datum;

use crate::database::{Database, by_pool, by_rows, execute, on_a_loop, query};

#[test]
fn aggregates_below_operators_that_run_here() {
    let database = Database::new();
    on_a_loop(async {
        let mut session = database.session();
        execute(&mut session, "CREATE TABLE t (g int, v int)").await;
        let fill = "INSERT INTO t SELECT i % 7, i FROM generate_series(1, 1000) i";
        execute(&mut session, fill).await;
        let mut started = database.pool.started();
        for (sql, parts) in [
            (
                "WITH s AS (SELECT g, sum(v) AS v FROM t GROUP BY g) \
                 SELECT g FROM s WHERE v = (SELECT max(v) FROM s)",
                1,
            ),
            ("SELECT count(*) FROM t WHERE v > (SELECT avg(v) FROM t)", 1),
            // Two parts, one within the other's loop.
            (
                "SELECT (SELECT sum(v) FROM t), (SELECT count(*) FROM t) FROM generate_series(1, 3)",
                2,
            ),
            // Of a subquery that asks for the row around it nothing can run elsewhere.
            (
                "SELECT x, (SELECT count(*) FROM t WHERE g = x) FROM generate_series(0, 2) x",
                0,
            ),
        ] {
            let expected = by_rows(&mut session, sql).await.expect(sql);
            let got = by_pool(&mut session, sql).await.expect(sql);
            assert_eq!(got, expected, "{sql}");
            assert_eq!(database.pool.started() - started, parts, "{sql}");
            started = database.pool.started();
        }
        let error = by_pool(&mut session, "SELECT (SELECT sum(1 / (v - 5)) FROM t)").await;
        assert_eq!(
            error.expect_err("a division by zero").code().as_str(),
            "22012"
        );
        session.close().await;
    });
}

#[test]
fn explain_tells_what_the_pools_operators_did() {
    let database = Database::new();
    on_a_loop(async {
        let mut session = database.session();
        execute(&mut session, "CREATE TABLE t (g int, v int)").await;
        let fill = "INSERT INTO t SELECT i % 7, i FROM generate_series(1, 1000) i";
        execute(&mut session, fill).await;
        for sql in [
            "SELECT g, count(*) FROM t WHERE v > 500 GROUP BY g ORDER BY g",
            "WITH s AS MATERIALIZED (SELECT g, count(*) FROM t WHERE v > 500 GROUP BY g) SELECT * FROM s",
        ] {
            execute(&mut session, "SET analytics_above_cost = 0").await;
            let explain = format!("EXPLAIN (ANALYZE, TIMING OFF) {sql}");
            let lines = query(&mut session, &explain).await.expect(sql);
            let text = |row: &Vec<Datum>| row[0].as_str().unwrap_or_default().to_owned();
            let plan = lines.iter().map(text).collect::<Vec<_>>().join("\n");
            assert!(!plan.contains("never executed"), "{plan}");
            let of = |operator: &str| {
                let line = plan.lines().find(|l| l.contains(operator));
                line.unwrap_or_else(|| panic!("no {operator} in\n{plan}"))
                    .to_owned()
            };
            assert!(
                of("Seq Scan").contains("actual rows=500.00 loops=1"),
                "{plan}"
            );
            assert!(
                of("Aggregate").contains("actual rows=7.00 loops=1"),
                "{plan}"
            );
        }
        session.close().await;
    });
}
