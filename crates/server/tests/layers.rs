//! Imports between rooms run downward only.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Each room and the rooms it may import, from the top of the house to the cellar.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "server",
        &[
            "analytics",
            "session",
            "exec",
            "lab",
            "values",
            "txn",
            "access",
            "buffer",
            "wal",
            "disk",
            "types",
            "observe",
            "sync",
        ],
    ),
    (
        "analytics",
        &[
            "exec", "plan", "bind", "values", "access", "buffer", "types", "sync",
        ],
    ),
    (
        "session",
        &[
            "exec", "plan", "bind", "catalog", "values", "syntax", "txn", "access", "buffer",
            "wal", "disk", "types", "observe", "sync",
        ],
    ),
    (
        "exec",
        &[
            "plan", "bind", "catalog", "values", "txn", "access", "buffer", "disk", "types",
            "observe", "sync",
        ],
    ),
    (
        "lab",
        &[
            "txn", "access", "buffer", "wal", "disk", "types", "observe", "sync",
        ],
    ),
    ("plan", &["bind", "catalog", "values", "syntax", "types"]),
    ("bind", &["catalog", "values", "syntax", "types"]),
    ("catalog", &["values", "syntax", "types", "observe"]),
    ("values", &["types", "observe"]),
    ("syntax", &["types"]),
    (
        "txn",
        &[
            "access", "buffer", "wal", "disk", "types", "observe", "sync",
        ],
    ),
    (
        "access",
        &["buffer", "wal", "disk", "types", "observe", "sync"],
    ),
    ("buffer", &["wal", "disk", "types", "observe", "sync"]),
    ("wal", &["disk", "types", "observe", "sync"]),
    ("disk", &["types", "observe", "sync"]),
    ("types", &[]),
    ("observe", &["sync"]),
    ("sync", &[]),
    // Beside the house: it looks at the sources.
    ("tidy", &[]),
];

/// Crates that some rooms alone may use.
const KEPT_IN: &[(&str, &[&str])] = &[("datafusion", &["analytics"]), ("clap", &["server", "lab"])];

/// The direct dependencies of every crate of the workspace, by `cargo metadata`.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // What tests alone import is no edge.
    let names = |list: &serde_json::Value| -> Vec<String> {
        let list = list.as_array().expect("a list").iter();
        let list = list.filter(|d| d["kind"] != "dev");
        list.map(|d| d["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    let packages = metadata["packages"].as_array().expect("packages").iter();
    packages
        .map(|p| {
            let name = p["name"]
                .as_str()
                .expect("a name")
                .trim_start_matches("throng-");
            (name.to_owned(), names(&p["dependencies"]))
        })
        .collect()
}

#[test]
fn imports_run_downward() {
    let dependencies = dependencies();
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    for (room, imports) in &dependencies {
        let may = allowed
            .get(room.as_str())
            .unwrap_or_else(|| panic!("{room} has no place in the house"));
        for import in imports.iter().filter_map(|i| i.strip_prefix("throng-")) {
            assert!(may.contains(&import), "{room} may not import {import}");
        }
    }
    assert_eq!(dependencies.len(), ALLOWED.len(), "a room is missing");
}

/// Each crate's header says who imports it.
#[test]
fn headers_name_the_importers() {
    let crates = Path::new("..");
    for (room, _) in ALLOWED.iter().filter(|(room, _)| *room != "tidy") {
        let importers = ALLOWED.iter().filter(|(_, imports)| imports.contains(room));
        let importers: Vec<&str> = importers.map(|(importer, _)| *importer).collect();
        let text = std::fs::read_to_string(crates.join(room).join("src/lib.rs"));
        let text = text.expect("a crate has a lib.rs");
        let header = text.lines().take_while(|line| line.starts_with("//!"));
        let told = header.skip_while(|line| !line.starts_with("//! Imported by:"));
        let told: Vec<&str> = told
            .flat_map(|line| line.split('`').skip(1).step_by(2))
            .collect();
        assert_eq!(told, importers, "{room}'s header");
    }
}

#[test]
fn guests_stay_in_their_room() {
    for (room, imports) in dependencies() {
        for (guest, hosts) in KEPT_IN {
            assert!(
                hosts.contains(&room.as_str()) || !imports.iter().any(|i| i == guest),
                "{guest} belongs to {hosts:?}, {room} imports it"
            );
        }
    }
}
