//! `throng bench` against a server: every workload runs, nothing fails, and what must hold
//! afterwards holds.

use serde_json::Value;

use crate::server::{Home, throng};

/// Runs a workload for half a second with a few clients; what it found, as JSON.
fn bench(port: u16, args: &[&str]) -> Value {
    let output = throng()
        .arg("bench")
        .args(args)
        .args(["--target", &format!("postgres://127.0.0.1:{port}")])
        .args(["--seconds", "0.5", "--rounds", "1", "--json"])
        .output()
        .expect("the bench runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Something was done at every point, nothing failed, and every condition held; how many conditions
/// there were.
fn assert_sound(found: &Value, what: &str) -> usize {
    let target = &found["targets"][0];
    for point in target["points"].as_array().expect("points") {
        let throughput = point["throughput"]["median"].as_f64().expect("a number");
        assert!(throughput > 0.0, "{what}: nothing was done");
        assert_eq!(point["failures"], serde_json::json!({}), "{what}");
    }
    let conditions = target["conditions"].as_array().expect("conditions");
    for condition in conditions {
        assert_eq!(condition["fault"], Value::Null, "{what}: {condition}");
    }
    conditions.len()
}

#[test]
fn every_workload_runs_and_its_conditions_hold() {
    let home = Home::new();
    let server = home.serve(&["--memory", "128MB"]);
    for (args, conditions) in [
        (
            &[
                "select",
                "--scale",
                "1",
                "--clients",
                "1,8",
                "--mode",
                "extended",
            ][..],
            0,
        ),
        (&["update", "--keep", "--scale", "1", "--clients", "4"], 0),
        (
            &[
                "tpcb",
                "--scale",
                "1",
                "--clients",
                "4",
                "--mode",
                "prepared",
            ],
            1,
        ),
        (&["copy", "--scale", "100", "--clients", "8"], 1),
        (&["connect", "--clients", "4"], 0),
        (&["scan", "--scale", "200", "--clients", "20"], 0),
        (
            &[
                "select",
                "--keep",
                "--scale",
                "1",
                "--clients",
                "4",
                "--rate",
                "200",
            ],
            0,
        ),
    ] {
        assert_eq!(
            assert_sound(&bench(server.port(), args), &args.join(" ")),
            conditions
        );
    }
    // What copy brought is of no use to a later run, and may be large.
    let left = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind = 'r' AND relname ~ '^(bench|pgbench)_'";
    assert_eq!(
        server.connect().run(left).value(),
        "bench_reading pgbench_accounts pgbench_branches pgbench_history pgbench_tellers"
    );
}

#[test]
fn tpcc_keeps_its_consistency_conditions() {
    let home = Home::new();
    let server = home.serve(&["--memory", "256MB"]);
    let args = [
        "tpcc",
        "--scale",
        "1",
        "--clients",
        "20",
        "--mode",
        "prepared",
    ];
    let found = bench(server.port(), &args);
    assert_eq!(assert_sound(&found, "tpcc"), 11);
    let point = &found["targets"][0]["points"][0];
    assert!(point["tpmc"]["median"].as_f64().expect("a number") > 0.0);
}

#[test]
fn a_script_runs_and_what_is_wrong_with_one_is_said_with_its_line() {
    let home = Home::new();
    let server = home.serve(&[]);
    let script = home.sockets().join("script.sql");
    let path = script.to_str().expect("UTF-8");
    std::fs::write(
        &script,
        "\\set aid random(1, 100000 * :scale)\n\
         SELECT abalance FROM pgbench_accounts WHERE aid = :aid\n\
         \\gset\n\
         \\sleep 100 us\n\
         UPDATE pgbench_accounts SET abalance = :abalance + 1 WHERE aid = :aid;\n",
    )
    .expect("written");
    let args = [
        "script",
        path,
        "--scale",
        "1",
        "--clients",
        "4",
        "--mode",
        "prepared",
    ];
    assert_sound(&bench(server.port(), &args), "script");

    std::fs::write(&script, "SELECT 1;\n\\if true\n\\endif\n").expect("written");
    let output = throng()
        .args(["bench", "script", path])
        .output()
        .expect("the bench runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("line 2: \\if is not supported"), "{said}");
}
