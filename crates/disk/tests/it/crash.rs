//! What a simulated crash keeps, may lose, and must not make up.

use proptest::prelude::*;
use std::collections::HashSet;
use throng_disk::{Disk, Fault, FaultOp, SimDisk};

const SECTOR: usize = 512;

fn content(disk: &dyn Disk, path: &str) -> Option<Vec<u8>> {
    let file = disk.open(path, false).ok()?;
    let mut data = vec![0; file.len().unwrap() as usize];
    assert_eq!(file.read_at(&mut data, 0).unwrap(), data.len());
    Some(data)
}

/// A disk with one durable, empty file.
fn disk_with_file() -> (SimDisk, std::sync::Arc<dyn throng_disk::File>) {
    let disk = SimDisk::new();
    let file = disk.open("f", true).unwrap();
    disk.sync_dir("").unwrap();
    (disk, file)
}

#[derive(Clone, Debug)]
enum Op {
    Write { at: usize, len: usize },
    SetLen(usize),
    Sync,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (0..4000usize, 1..2000usize).prop_map(|(at, len)| Op::Write { at, len }),
        1 => (0..5000usize).prop_map(Op::SetLen),
        2 => Just(Op::Sync),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Sector by sector, the image has what was synced or what was written since; nothing third.
    #[test]
    fn each_sector_is_old_or_new(ops in prop::collection::vec(op(), 1..25), seed in any::<u64>()) {
        let (disk, file) = disk_with_file();
        let mut now: Vec<u8> = Vec::new();
        let mut durable = now.clone();
        // Each write has a byte of its own, so that a mixture shows.
        for (byte, op) in (1..).zip(&ops) {
            match *op {
                Op::Write { at, len } => {
                    file.write_at(&vec![byte; len], at as u64).unwrap();
                    now.resize(now.len().max(at + len), 0);
                    now[at..at + len].fill(byte);
                }
                Op::SetLen(len) => {
                    file.set_len(len as u64).unwrap();
                    now.resize(len, 0);
                }
                Op::Sync => {
                    file.sync().unwrap();
                    durable = now.clone();
                }
            }
        }
        let after = content(&disk.crash_image(seed), "f").unwrap();
        let (short, long) = (now.len().min(durable.len()), now.len().max(durable.len()));
        prop_assert!((short..=long).contains(&after.len()));
        let sector = |data: &[u8], i: usize| -> Vec<u8> {
            let mut whole = data.to_vec();
            whole.resize(long.next_multiple_of(SECTOR), 0);
            whole.truncate(after.len().max(i * SECTOR));
            whole[i * SECTOR..].iter().copied().take(SECTOR).collect()
        };
        for i in 0..after.len().div_ceil(SECTOR) {
            let got = sector(&after, i);
            prop_assert!(got == sector(&durable, i) || got == sector(&now, i), "sector {}", i);
        }
        // The disk itself has not crashed, and the same seed crashes the same way.
        prop_assert_eq!(content(&disk, "f").unwrap(), now);
        prop_assert_eq!(content(&disk.crash_image(seed), "f").unwrap(), after);
    }
}

#[test]
fn different_seeds_lose_different_sectors() {
    let (disk, file) = disk_with_file();
    file.write_at(&[1; 8 * SECTOR], 0).unwrap();
    file.sync().unwrap();
    file.write_at(&[2; 8 * SECTOR], 0).unwrap();
    let images: HashSet<_> = (0..200)
        .map(|seed| content(&disk.crash_image(seed), "f").unwrap())
        .collect();
    assert!(images.contains(&vec![1; 8 * SECTOR]));
    assert!(images.contains(&vec![2; 8 * SECTOR]));
    assert!(images.len() > 50, "{}", images.len());
}

#[test]
fn synced_bytes_of_a_synced_name_survive() {
    let (disk, file) = disk_with_file();
    file.write_at(b"kept", 0).unwrap();
    file.sync().unwrap();
    for seed in 0..50 {
        assert_eq!(content(&disk.crash_image(seed), "f").unwrap(), b"kept");
    }
}

#[test]
fn a_name_that_was_not_synced_may_be_lost() {
    let disk = SimDisk::new();
    disk.create_dir("d").unwrap();
    disk.sync_dir("").unwrap();
    let file = disk.open("d/f", true).unwrap();
    file.write_at(b"x", 0).unwrap();
    file.sync().unwrap();
    let found: HashSet<bool> = (0..50)
        .map(|seed| disk.crash_image(seed).exists("d/f").unwrap())
        .collect();
    assert_eq!(found, HashSet::from([false, true]));
    disk.sync_dir("d").unwrap();
    assert!((0..50).all(|seed| disk.crash_image(seed).exists("d/f").unwrap()));
}

#[test]
fn a_rename_happens_or_does_not() {
    let disk = SimDisk::new();
    for (name, text) in [("control", b"old"), ("control.new", b"new")] {
        let file = disk.open(name, true).unwrap();
        file.write_at(text, 0).unwrap();
        file.sync().unwrap();
    }
    disk.sync_dir("").unwrap();
    disk.rename("control.new", "control").unwrap();
    let found: HashSet<_> = (0..50)
        .map(|seed| {
            let image = disk.crash_image(seed);
            let control = content(&image, "control").unwrap();
            assert_eq!(image.exists("control.new").unwrap(), control == b"old");
            control
        })
        .collect();
    assert_eq!(found, HashSet::from([b"old".to_vec(), b"new".to_vec()]));
}

#[test]
fn a_removed_file_may_come_back_with_what_it_had() {
    let (disk, file) = disk_with_file();
    file.write_at(b"kept", 0).unwrap();
    file.sync().unwrap();
    disk.remove("f").unwrap();
    let found: HashSet<_> = (0..50)
        .map(|seed| content(&disk.crash_image(seed), "f"))
        .collect();
    assert_eq!(found, HashSet::from([None, Some(b"kept".to_vec())]));
}

#[test]
fn what_a_failed_sync_lost_no_later_sync_brings_back() {
    let (disk, file) = disk_with_file();
    file.write_at(&[1; SECTOR], 0).unwrap();
    file.sync().unwrap();
    file.write_at(&[2; SECTOR], 0).unwrap();
    disk.inject(Fault::new(FaultOp::Sync, "f").times(1));
    file.sync().unwrap_err();
    file.sync().unwrap();
    let images = |disk: &SimDisk| -> HashSet<u8> {
        (0..50)
            .map(|seed| content(&disk.crash_image(seed), "f").unwrap()[0])
            .collect()
    };
    assert_eq!(images(&disk), HashSet::from([1, 2]));
    // Written anew and synced, it is durable.
    file.write_at(&[3; SECTOR], 0).unwrap();
    file.sync().unwrap();
    assert_eq!(images(&disk), HashSet::from([3]));
}

#[test]
fn a_failed_write_may_have_been_done_in_part() {
    let (disk, file) = disk_with_file();
    file.write_at(&[1; 4], 0).unwrap();
    disk.inject(Fault::new(FaultOp::Write, "f").times(1));
    let error = file.write_at(&[2; 4], 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "could not write to file \"f\": Input/output error"
    );
    assert_eq!(content(&disk, "f").unwrap(), [2, 2, 1, 1]);
    disk.inject(Fault::new(FaultOp::Write, "other"));
    file.write_at(&[3; 4], 0).unwrap();
}
