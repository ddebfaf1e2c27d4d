//! What a search writes: nothing that another core reads.
//!
//! The pool's memory is sealed, so that a write ends the process; hence each attempt is a process
//! of its own.

use std::process::{Command, ExitStatus};

use super::*;

/// Set for the process of an attempt, which it names.
const ATTEMPT: &str = "THRONG_TEST_SEALED_ATTEMPT";
const TEST: &str = "btree::tests::sealed::a_search_writes_to_no_shared_line";
const KEYS: u64 = 20_000;

#[test]
fn a_search_writes_to_no_shared_line() {
    if let Ok(attempt) = std::env::var(ATTEMPT) {
        return attempt_sealed(&attempt);
    }
    assert!(outcome("search").success(), "a search wrote");
    assert!(outcome("scan").success(), "a scan wrote");
    // That the seal holds is part of the proof.
    assert!(!outcome("insert").success(), "the seal let a write pass");
}

fn outcome(attempt: &str) -> ExitStatus {
    let this = std::env::current_exe().expect("a test is a program");
    let mut command = Command::new(this);
    command.args([TEST, "--exact"]).env(ATTEMPT, attempt);
    let output = command.output().expect("a process");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("running 1 test"), "{said}");
    output.status
}

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn attempt_sealed(attempt: &str) {
    // 1. The first frames share a system page with other memory: they are for this tree, which is
    //    not looked at.
    let world = World::new(Limit(180), 8192);
    for i in 0..2_000 {
        insert(&world.tree, &key(i), Tid::new(i as u32, 1));
    }
    let file = FileId(2);
    world.pool.files().create(file).unwrap();
    let made = retry_blocking(|| BTree::create(world.pool.clone(), file, Xid::NONE));
    let mut tree = made.unwrap();
    tree.limit = Limit(400);
    for i in 0..KEYS {
        insert(&tree, &key(i), Tid::new(i as u32, 1));
    }
    // 2. A page's use is noted once a round of the clock: now.
    let all = || (0..KEYS).for_each(|i| assert_eq!(get(&tree, &key(i)), [Tid::new(i as u32, 1)]));
    all();
    let (census, _) = tree.check();
    assert!(census.depth >= 3, "{} levels", census.depth);
    // 3. From here on a write is the end.
    let seal = world.pool.seal();
    let blocks = world.pool.blocks(file).unwrap();
    for block in 0..blocks {
        assert!(seal.covers(throng_types::PageId::new(file, block)));
    }
    match attempt {
        "search" => all(),
        "scan" => {
            let found = scan(&tree, KeyRange::all(), Direction::Forward, 100);
            assert_eq!(found.len() as u64, KEYS);
        }
        "insert" => insert(&tree, &key(KEYS), Tid::new(KEYS as u32, 1)),
        other => panic!("no attempt {other}"),
    }
}
