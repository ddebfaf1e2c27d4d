//! More data than memory, errors, cancels.

use std::time::{Duration, Instant};

use throng_types::Datum;
use throng_types::error::state;

use crate::database::{Database, by_pool, by_rows, execute, on_a_loop, query};

/// A table of `rows` rows: `k` scattered over all numbers below, `pad` a string that makes the
/// table larger than the memory of a job.
async fn big_table(session: &mut throng_session::Session, rows: u32) {
    execute(session, "CREATE TABLE big (k int, g int, pad text)").await;
    let fill = format!(
        "INSERT INTO big SELECT (n::bigint * 7919 % {rows})::int, n % 20000, 'padding that takes room ' || n \
         FROM generate_series(0, {rows} - 1) n"
    );
    execute(session, &fill).await;
    // The least there is; the pool of the tests gives its own least.
    execute(session, "SET work_mem = '64kB'").await;
}

/// Whether spill files were there at some moment while `f` ran.
async fn spills<T>(database: &Database, f: impl Future<Output = T>) -> (bool, T) {
    meanwhile(|| database.spilled_now(), f).await
}

/// Whether something held at some moment while `f` ran.
async fn meanwhile<T>(holds: impl Fn() -> bool, f: impl Future<Output = T>) -> (bool, T) {
    let seen = std::cell::Cell::new(false);
    let watch = async {
        loop {
            seen.set(seen.get() || holds());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let result = tokio::select! {
        result = f => result,
        () = watch => unreachable!("it watches for ever"),
    };
    (seen.get(), result)
}

#[test]
fn sorts_groups_and_joins_larger_than_memory_spill_and_are_right() {
    const ROWS: u32 = 100_003;
    let database = Database::new();
    on_a_loop(async {
        let mut session = database.session();
        big_table(&mut session, ROWS).await;

        let (spilled, rows) = spills(
            &database,
            by_pool(&mut session, "SELECT k, pad FROM big ORDER BY k"),
        )
        .await;
        let rows = rows.expect("a sort");
        assert!(spilled, "the sort is larger than its memory");
        assert_eq!(rows.len(), ROWS as usize);
        assert!(
            rows.iter()
                .enumerate()
                .all(|(i, row)| row[0] == Datum::Int4(i as i32))
        );
        drop(rows);

        let grouped = "SELECT count(*), sum(c), sum(n), max(l) FROM \
                       (SELECT pad, count(*) c, sum(k) n, max(length(pad)) l FROM big GROUP BY pad) q";
        let (spilled, got) = spills(&database, by_pool(&mut session, grouped)).await;
        assert!(spilled, "the groups are larger than their memory");
        execute(&mut session, "SET work_mem = '256MB'").await;
        assert_eq!(
            got.expect("groups"),
            by_rows(&mut session, grouped).await.expect("groups")
        );
        execute(&mut session, "SET work_mem = '64kB'").await;

        let arrays = "SELECT count(*), sum(array_length(x, 1)) FROM \
                      (SELECT g, array_agg(pad ORDER BY k) x FROM big GROUP BY g) q";
        let (spilled, got) = spills(&database, by_pool(&mut session, arrays)).await;
        assert!(spilled, "the arrays are larger than their memory");
        assert_eq!(
            got.expect("arrays"),
            vec![vec![Datum::Int8(20000), Datum::Int8(ROWS.into())]]
        );

        let joined =
            "SELECT count(*), sum(x.k) FROM big x JOIN big y ON x.pad = y.pad AND x.k = y.k";
        let (spilled, got) = spills(&database, by_pool(&mut session, joined)).await;
        assert!(spilled, "the join's table is larger than its memory");
        let sum = i64::from(ROWS) * i64::from(ROWS - 1) / 2;
        assert_eq!(
            got.expect("a join"),
            vec![vec![Datum::Int8(ROWS.into()), Datum::Int8(sum)]]
        );
        assert!(!database.spilled_now(), "nothing is left behind");
        session.close().await;
    });
}

#[test]
fn errors_are_those_of_the_rows() {
    let database = Database::new();
    on_a_loop(async {
        let mut session = database.session();
        execute(&mut session, "CREATE TABLE t (i int, b bigint, f float8)").await;
        execute(
            &mut session,
            "INSERT INTO t SELECT n, n, n FROM generate_series(0, 5000) n",
        )
        .await;
        execute(
            &mut session,
            "INSERT INTO t VALUES (2147483647, 9223372036854775807, 1e308)",
        )
        .await;
        for (sql, code) in [
            ("SELECT i + 1 FROM t", state::NUMERIC_VALUE_OUT_OF_RANGE),
            ("SELECT b * 2 FROM t", state::NUMERIC_VALUE_OUT_OF_RANGE),
            ("SELECT f * 10 FROM t", state::NUMERIC_VALUE_OUT_OF_RANGE),
            ("SELECT sum(10 / i) FROM t", state::DIVISION_BY_ZERO),
            (
                "SELECT i FROM t WHERE i::smallint > 3",
                state::NUMERIC_VALUE_OUT_OF_RANGE,
            ),
            ("SELECT i FROM t ORDER BY 1 / i", state::DIVISION_BY_ZERO),
            (
                "SELECT i FROM t LIMIT -1",
                state::INVALID_ROW_COUNT_IN_LIMIT,
            ),
        ] {
            let error = by_pool(&mut session, sql).await.expect_err(sql);
            assert_eq!(error.code(), code, "{sql}: {error:?}");
            let of_rows = by_rows(&mut session, sql).await.expect_err(sql);
            assert_eq!(error.message(), of_rows.message(), "{sql}");
        }
        let kept = by_pool(
            &mut session,
            "SELECT count(*) FROM t WHERE i <> 0 AND 10 / i = 10",
        )
        .await;
        assert_eq!(kept.expect("guarded"), vec![vec![Datum::Int8(1)]]);
        session.close().await;
    });
}

#[test]
fn a_cancel_ends_the_job_and_frees_its_place() {
    let database = Database::new();
    on_a_loop(async {
        let mut session = database.session();
        execute(&mut session, "CREATE TABLE t (i int)").await;
        execute(
            &mut session,
            "INSERT INTO t SELECT n FROM generate_series(1, 20000) n",
        )
        .await;
        // Hours of work: every row meets every row.
        let endless =
            "SELECT count(*) FROM t x JOIN t y ON x.i % 1 = y.i % 1 JOIN t z ON x.i % 1 = z.i % 1";
        execute(&mut session, "SET statement_timeout = 300").await;
        let began = Instant::now();
        let error = by_pool(&mut session, endless).await.expect_err("a timeout");
        assert_eq!(error.code(), state::QUERY_CANCELED);
        execute(&mut session, "SET statement_timeout = 0").await;
        // The pool has one place: this waits until the cancelled job has left it.
        let count = query(&mut session, "SELECT count(*) FROM t")
            .await
            .expect("a count");
        assert_eq!(count, vec![vec![Datum::Int8(20000)]]);
        assert!(began.elapsed() < Duration::from_secs(60), "the job went on");
        session.close().await;
    });
}

/// Where the kernel lets its workers have a core for long.
#[test]
fn a_job_is_known_to_compute() {
    let last = std::thread::spawn(|| throng_sync::come_after(10));
    let gives_back = matches!(last.join().expect("a thread"), Ok(true));
    let database = Database::new();
    on_a_loop(async {
        let mut session = database.session();
        big_table(&mut session, 50_000).await;
        let sorted = by_pool(&mut session, "SELECT k, pad FROM big ORDER BY pad, k");
        let (seen, rows) = meanwhile(throng_sync::Computing::is_under_way, sorted).await;
        assert_eq!(rows.expect("a sort").len(), 50_000);
        assert_eq!(seen, !gives_back);
    });
}
