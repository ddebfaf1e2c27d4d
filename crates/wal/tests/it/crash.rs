//! What a crash may not take.

use super::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Several threads commit while the disk is photographed as a crash might leave it; then the log is
/// opened on the photograph and the next generation goes on from there, with other bytes left over
/// beyond the end.
#[test]
fn acknowledged_records_survive_any_crash() {
    for seed in 0..30u64 {
        let mut disk = SimDisk::new();
        let mut start = Wal::FIRST;
        let mut survived: Vec<u64> = Vec::new();
        for generation in 0..5u64 {
            let (image, acknowledged) = run_until_crash(&disk, start, seed, generation);
            let (xids, end) = read_all(&image, Wal::FIRST);
            assert_eq!(
                xids[..survived.len()],
                survived[..],
                "what was there after one crash is there after the next"
            );
            let new = &xids[survived.len()..];
            check_prefixes(new, &acknowledged, generation);
            survived = xids;
            disk = image;
            start = end;
        }
    }
}

const THREADS: u64 = 3;
const EACH: u64 = 60;

fn xid(generation: u64, thread: u64, i: u64) -> u64 {
    (generation << 40) | (thread << 32) | i
}

/// The crashed disk, and how many of its commits each thread knew to be durable before the crash.
fn run_until_crash(disk: &SimDisk, start: Lsn, seed: u64, generation: u64) -> (SimDisk, Vec<u64>) {
    let wal = open(disk, start);
    let known = Mutex::new(vec![0; THREADS as usize]);
    let stop = AtomicBool::new(false);
    let moment = (seed * 5 + generation * 11) % 40;
    std::thread::scope(|s| {
        for thread in 0..THREADS {
            let (wal, known, stop) = (&wal, &known, &stop);
            s.spawn(move || {
                for i in 0..EACH {
                    let lsn = insert(wal, xid(generation, thread, i));
                    // Some are not waited for: they may or may not survive.
                    if !(i + seed + thread).is_multiple_of(3) {
                        wal.flush_blocking(lsn).unwrap();
                        known.lock().unwrap()[thread as usize] = i + 1;
                    }
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        while known.lock().unwrap().iter().sum::<u64>() < moment {
            std::thread::yield_now();
        }
        // First what is known, then the crash: what becomes known in between does not count.
        let acknowledged = known.lock().unwrap().clone();
        let image = disk.crash_image(seed << 8 | generation);
        stop.store(true, Ordering::Relaxed);
        (image, acknowledged)
    })
}

/// Each thread's commits are there from its first on without a gap, at least as far as it knew.
fn check_prefixes(xids: &[u64], acknowledged: &[u64], generation: u64) {
    for thread in 0..THREADS {
        let base = xid(generation, thread, 0);
        let of_thread: Vec<u64> = xids
            .iter()
            .copied()
            .filter(|x| x >> 32 == base >> 32)
            .collect();
        let expected: Vec<u64> = (0..of_thread.len() as u64).map(|i| base + i).collect();
        assert_eq!(of_thread, expected);
        assert!(
            of_thread.len() as u64 >= acknowledged[thread as usize],
            "an acknowledged commit is gone"
        );
    }
}

/// Damages byte `at` of the stream.
fn damage(disk: &SimDisk, at: u64) {
    let file = disk
        .open(&format!("wal/{:016X}", at / SEGMENT * SEGMENT), false)
        .unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, at % SEGMENT).unwrap();
    file.write_at(&[!byte[0]], at % SEGMENT).unwrap();
}

#[test]
fn the_log_ends_at_a_torn_record_and_what_lay_behind_never_comes_back() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let ends: Vec<Lsn> = (1..=4).map(|xid| insert(&wal, xid)).collect();
    wal.shutdown().unwrap();
    drop(wal);
    // The second record's last byte never reached the disk; the third and fourth did.
    damage(&disk, ends[1].0 - 1);
    let (xids, end) = read_all(&disk, Wal::FIRST);
    assert_eq!((xids, end), (vec![1], ends[0]));

    let wal = open(&disk, end);
    // Of the same length, so that the third would follow it exactly.
    assert_eq!(insert(&wal, 2), ends[1]);
    wal.shutdown().unwrap();
    drop(wal);
    assert_eq!(read_all(&disk, Wal::FIRST), (vec![1, 2], ends[1]));
}

#[test]
fn a_later_segment_that_outlived_its_log_never_comes_back() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let mut ends = vec![Wal::FIRST];
    while ends.last().unwrap().0 < Wal::FIRST.0 + 2 * SEGMENT {
        ends.push(insert(&wal, 5));
    }
    wal.shutdown().unwrap();
    drop(wal);
    damage(&disk, ends[1].0 + 3);
    let (_, end) = read_all(&disk, Wal::FIRST);
    assert_eq!(end, ends[1]);
    let wal = open(&disk, end);
    let kept = ends.len() / 2;
    for _ in 2..=kept {
        insert(&wal, 5);
    }
    wal.shutdown().unwrap();
    drop(wal);
    let (xids, end) = read_all(&disk, Wal::FIRST);
    assert_eq!((xids.len(), end), (kept, ends[kept]));
}

#[test]
fn a_whole_record_of_unknown_form_is_an_error_not_the_end() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let end = insert(&wal, 1);
    wal.shutdown().unwrap();
    drop(wal);
    let body = [200u8, 1, 2, 3];
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&(16 + body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&crc_fast::crc32_iscsi(&body).to_le_bytes());
    bytes.extend_from_slice(&end.0.to_le_bytes());
    bytes.extend_from_slice(&body);
    let file = disk
        .open(&format!("wal/{:016X}", end.0 / SEGMENT * SEGMENT), false)
        .unwrap();
    file.write_at(&bytes, end.0 % SEGMENT).unwrap();
    let mut reader = reader(&disk, end);
    assert_eq!(
        reader.next().unwrap_err().code(),
        throng_types::error::state::DATA_CORRUPTED
    );
}
