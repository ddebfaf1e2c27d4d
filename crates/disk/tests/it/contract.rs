//! What every `Disk` promises, tried on the real one and on the simulated one.

use proptest::prelude::*;
use std::io::ErrorKind;
use throng_disk::{CheckedDisk, Disk, RealDisk, SimDisk};

/// The real disk in a directory of its own, and a simulated one behind the checks.
fn with_both(test: impl Fn(&dyn Disk)) {
    let dir = tempfile::tempdir().unwrap();
    test(&RealDisk::new(dir.path()).unwrap());
    test(&CheckedDisk::new(SimDisk::new()));
}

#[test]
fn reads_end_where_the_file_ends() {
    with_both(|disk| {
        let file = disk.open("a", true).unwrap();
        assert!(file.is_empty().unwrap());
        file.write_at(b"hello", 3).unwrap();
        assert_eq!(file.len().unwrap(), 8);
        let mut buf = [9; 10];
        assert_eq!(file.read_at(&mut buf, 0).unwrap(), 8);
        assert_eq!(&buf, b"\0\0\0hello\x09\x09");
        assert_eq!(file.read_at(&mut buf, 8).unwrap(), 0);
        assert_eq!(file.read_at(&mut buf, u64::from(u32::MAX)).unwrap(), 0);
        file.set_len(5).unwrap();
        file.set_len(7).unwrap();
        assert_eq!(file.read_at(&mut buf, 0).unwrap(), 7);
        assert_eq!(&buf[..7], b"\0\0\0he\0\0");
        file.allocate(4, 100).unwrap();
        assert_eq!(file.len().unwrap(), 104);
        file.allocate(0, 10).unwrap();
        assert_eq!(file.len().unwrap(), 104);
        file.sync().unwrap();
    });
}

#[test]
fn what_is_read_at_once_is_what_is_there() {
    with_both(|disk| {
        let file = disk.open("a", true).unwrap();
        file.write_at(&[7; 10_000], 0).unwrap();
        let mut buf = [0; 1000];
        // A file system may not know.
        if file.read_at_once(&mut buf, 8192) {
            assert_eq!(buf, [7; 1000]);
        }
        assert!(!file.read_at_once(&mut buf, 9001), "it ends before");
        assert!(!file.read_at_once(&mut buf, 20_000));
    });
}

#[test]
fn a_simulated_file_is_read_at_once_if_told_to() {
    let disk = SimDisk::new();
    let file = disk.open("a", true).unwrap();
    file.write_at(&[7; 1000], 0).unwrap();
    let mut buf = [0; 1000];
    assert!(!file.read_at_once(&mut buf, 0));
    disk.set_cached(true);
    assert!(file.read_at_once(&mut buf, 0));
    assert_eq!(buf, [7; 1000]);
}

#[test]
fn names() {
    with_both(|disk| {
        assert_eq!(
            disk.open("d/x", true).err().unwrap().kind(),
            ErrorKind::NotFound
        );
        assert_eq!(
            disk.open("x", false).err().unwrap().kind(),
            ErrorKind::NotFound
        );
        disk.create_dir("d").unwrap();
        disk.create_dir("d").unwrap();
        disk.open("d/b", true).unwrap().write_at(b"b", 0).unwrap();
        disk.open("d/a", true).unwrap().write_at(b"aa", 0).unwrap();
        assert_eq!(disk.list("d").unwrap(), ["a", "b"]);
        assert!(disk.list("").unwrap().contains(&"d".to_string()));
        disk.rename("d/a", "d/b").unwrap();
        assert_eq!(disk.list("d").unwrap(), ["b"]);
        assert_eq!(disk.open("d/b", false).unwrap().len().unwrap(), 2);
        assert_eq!(disk.open("d/b", true).unwrap().len().unwrap(), 2);
        assert_eq!(
            disk.rename("d/a", "d/c").unwrap_err().kind(),
            ErrorKind::NotFound
        );
        assert!(disk.exists("d/b").unwrap());
        disk.remove("d/b").unwrap();
        disk.remove("d/b").unwrap();
        assert!(!disk.exists("d/b").unwrap());
        disk.sync_dir("d").unwrap();
        disk.sync_dir("").unwrap();
        assert_eq!(
            disk.list("nowhere").unwrap_err().kind(),
            ErrorKind::NotFound
        );
        assert_eq!(
            disk.sync_dir("nowhere").unwrap_err().kind(),
            ErrorKind::NotFound
        );
    });
}

#[test]
fn a_removed_file_lives_on_in_its_handles() {
    with_both(|disk| {
        let file = disk.open("a", true).unwrap();
        file.write_at(b"x", 0).unwrap();
        disk.remove("a").unwrap();
        let mut buf = [0];
        assert_eq!(file.read_at(&mut buf, 0).unwrap(), 1);
        file.write_at(b"y", 0).unwrap();
        assert!(disk.open("a", true).unwrap().is_empty().unwrap());
    });
}

#[derive(Clone, Debug)]
enum Op {
    Write { at: u64, len: usize, byte: u8 },
    SetLen(u64),
    Allocate { at: u64, len: u64 },
    Read { at: u64, len: usize },
    Sync,
}

fn op() -> impl Strategy<Value = Op> {
    let at = 0..3000u64;
    prop_oneof![
        4 => (at.clone(), 1..1500usize, 1..255u8).prop_map(|(at, len, byte)| Op::Write { at, len, byte }),
        1 => at.clone().prop_map(Op::SetLen),
        1 => (at.clone(), 0..1500u64).prop_map(|(at, len)| Op::Allocate { at, len }),
        3 => (at, 0..3000usize).prop_map(|(at, len)| Op::Read { at, len }),
        1 => Just(Op::Sync),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// The simulated disk is the real one to whoever does not crash.
    #[test]
    fn simulated_and_real_files_read_alike(ops in prop::collection::vec(op(), 1..30)) {
        let dir = tempfile::tempdir().unwrap();
        let real = RealDisk::new(dir.path()).unwrap().open("f", true).unwrap();
        let sim = SimDisk::new().open("f", true).unwrap();
        for op in ops {
            for file in [&real, &sim] {
                match op {
                    Op::Write { at, len, byte } => file.write_at(&vec![byte; len], at).unwrap(),
                    Op::SetLen(len) => file.set_len(len).unwrap(),
                    Op::Allocate { at, len } => file.allocate(at, len).unwrap(),
                    Op::Sync => file.sync().unwrap(),
                    Op::Read { .. } => {}
                }
            }
            prop_assert_eq!(real.len().unwrap(), sim.len().unwrap());
            if let Op::Read { at, len } = op {
                let (mut a, mut b) = (vec![7; len], vec![7; len]);
                prop_assert_eq!(real.read_at(&mut a, at).unwrap(), sim.read_at(&mut b, at).unwrap());
                prop_assert_eq!(a, b);
            }
        }
    }
}
