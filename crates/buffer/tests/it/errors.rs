//! Damage, disks that refuse, disks that are full.

use throng_buffer::{Interrupt, Mtr, retry_blocking};
use throng_disk::{Disk, Fault, FaultOp};
use throng_types::page::PAGE_SIZE;
use throng_types::{FileId, Xid, error::state};

use crate::world::{World, page_of};

#[test]
fn a_damaged_page_is_reported_and_the_others_go_on() {
    for is_cached in [false, true] {
        damage_a_page(is_cached);
    }
}

fn damage_a_page(is_cached: bool) {
    let world = World::new(16);
    world.disk.set_cached(is_cached);
    world.make_file(1, 40, |block| block as u8);
    world.checkpoint().unwrap();
    // Push block 3 out, then flip a bit of it on the disk.
    (4..40).for_each(|block| assert_eq!(world.value(page_of(1, block)), block as u8));
    (4..40).for_each(|block| assert_eq!(world.value(page_of(1, block)), block as u8));
    let file = world.disk.open("base/1", false).unwrap();
    file.write_at(&[0xFF], 3 * PAGE_SIZE as u64 + 4000).unwrap();
    let error = retry_blocking(|| world.pool.shared(page_of(1, 3)).map(drop)).unwrap_err();
    assert_eq!(error.code(), state::DATA_CORRUPTED);
    assert_eq!(
        error.message(),
        "invalid page in block 3 of relation base/1"
    );
    assert_eq!(world.value(page_of(1, 2)), 2);
    // Repaired, it is read like any other: the failure was not remembered.
    file.write_at(&[3], 3 * PAGE_SIZE as u64 + 4000).unwrap();
    assert_eq!(world.value(page_of(1, 3)), 3);
}

#[test]
fn a_read_error_reaches_who_asked() {
    for is_cached in [false, true] {
        fail_reads(is_cached);
    }
}

fn fail_reads(is_cached: bool) {
    let world = World::new(16);
    world.disk.set_cached(is_cached);
    world.make_file(1, 40, |_| 1);
    world.checkpoint().unwrap();
    world.disk.inject(Fault::new(FaultOp::Read, "base/1"));
    let read = |block| retry_blocking(|| world.pool.shared(page_of(1, block)).map(drop));
    let failed: Vec<_> = (0..40).filter_map(|block| read(block).err()).collect();
    assert!(!failed.is_empty());
    assert!(failed.iter().all(|error| error.code() == state::IO_ERROR));
    world.disk.clear_faults();
    (0..40).for_each(|block| read(block).unwrap());
}

#[test]
fn a_page_that_cannot_be_written_stays_and_is_written_later() {
    let world = World::new(16);
    world.make_file(1, 64, |_| 0);
    world.checkpoint().unwrap();
    world
        .disk
        .inject(Fault::new(FaultOp::Write, "base/1").times(25));
    for block in 0..64 {
        world.fill(page_of(1, block), block as u8 + 1);
    }
    (0..64).for_each(|block| assert_eq!(world.value(page_of(1, block)), block as u8 + 1));
    assert!(world.pool.stats().write_errors >= 25);
    let reports = world.reports.lock().unwrap();
    assert!(
        reports[0].contains("could not write to file \"base/1\": Input/output error"),
        "{}",
        reports[0]
    );
    drop(reports);
    world.checkpoint().unwrap();
    let recovered = World::recover(world.disk.crash_image(1), 16);
    (0..64).for_each(|block| assert_eq!(recovered.value(page_of(1, block)), block as u8 + 1));
}

#[test]
fn a_checkpoint_that_cannot_write_fails_and_the_next_one_does_it() {
    let world = World::new(64);
    world.make_file(1, 8, |_| 1);
    world
        .disk
        .inject(Fault::new(FaultOp::Write, "base/1").times(1));
    let error = world.checkpoint().unwrap_err();
    assert_eq!(error.code(), state::IO_ERROR);
    world.checkpoint().unwrap();
    assert_eq!(world.pool.stats().dirty, 0);
}

#[test]
fn a_full_disk_refuses_extension_and_nothing_else() {
    let world = World::new(32);
    world.make_file(1, 4, |_| 1);
    world.disk.set_capacity(world.disk.used());
    for attempt in 0..100 {
        let error = match world.pool.extend(FileId(1), 1 + attempt % 9) {
            Err(Interrupt::Error(error)) => error,
            Err(Interrupt::Wait(_) | Interrupt::Yield) => panic!("frames are lost"),
            Ok(_) => panic!("the disk is full"),
        };
        assert_eq!(error.code(), state::DISK_FULL);
        assert_eq!(
            error.message(),
            "could not extend file \"base/1\": No space left on device"
        );
        assert_eq!(
            error.fields().hint.as_deref(),
            Some("Check free disk space.")
        );
    }
    assert_eq!(world.pool.blocks(FileId(1)).unwrap(), 4);
    world.fill(page_of(1, 2), 9);
    assert_eq!(world.value(page_of(1, 2)), 9);
    world.disk.set_capacity(u64::MAX);
    let guard = retry_blocking(|| world.pool.new_page(FileId(1))).unwrap();
    assert_eq!(guard.page_id(), page_of(1, 4));
    assert!(guard.iter().all(|&byte| byte == 0));
}

#[test]
fn when_the_log_has_failed_no_page_is_written() {
    let world = World::new(16);
    world.make_file(1, 8, |_| 1);
    world.checkpoint().unwrap();
    world.disk.inject(Fault::new(FaultOp::Sync, "wal/"));
    let writes = world.pool.stats().writes;
    let lsn = world.fill(page_of(1, 0), 2);
    assert!(world.wal.flush_blocking(lsn).is_err());
    assert!(world.pool.flush_for_checkpoint(&mut |_, _| ()).is_err());
    assert_eq!(world.pool.stats().writes, writes);
    let mut mtr = Mtr::new(&world.pool, Xid(3));
    mtr.add(world.exclusive(page_of(1, 1)));
    mtr.write(0, 24, b"x");
    mtr.commit();
    assert!(world.pool.flush_for_checkpoint(&mut |_, _| ()).is_err());
    assert_eq!(world.pool.stats().writes, writes);
}
