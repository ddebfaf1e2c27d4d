//! The log against simulated disks: what survives, what fails, what is waited for.

#[cfg(not(shuttle))]
#[path = "it/crash.rs"]
mod crash;
#[cfg(not(shuttle))]
#[path = "it/flush.rs"]
mod flush;
#[cfg(shuttle)]
#[path = "it/schedules.rs"]
mod schedules;
#[cfg(not(shuttle))]
#[path = "it/segments.rs"]
mod segments;

use std::sync::Arc;
use throng_disk::{Disk, SimDisk};
use throng_types::{Lsn, Xid};
use throng_wal::{Reader, Record, RecordBuilder, Wal, WalConfig};

const SEGMENT: u64 = 16 << 10;
const RING: usize = 8 << 10;

fn config() -> WalConfig {
    WalConfig {
        segment_size: SEGMENT,
        buffer: RING,
        ..WalConfig::default()
    }
}

fn open(disk: &SimDisk, start: Lsn) -> Arc<Wal> {
    Wal::open(Arc::new(disk.clone()), config(), start).expect("the log opens")
}

fn reader(disk: &SimDisk, from: Lsn) -> Reader {
    Reader::new(
        Arc::new(disk.clone()) as Arc<dyn Disk>,
        SEGMENT,
        &Arc::default(),
        from,
    )
}

/// How many subtransactions the commit with this xid has in these tests: a few, and sometimes so
/// many that the record is larger than the ring.
fn subxids(xid: u64) -> Vec<Xid> {
    let count = if xid.is_multiple_of(97) {
        12_000
    } else {
        (xid * 7) % 120
    };
    (1..=count).map(|i| Xid(xid + i)).collect()
}

fn build(record: &mut RecordBuilder, xid: u64) {
    record.commit(Xid(xid), &subxids(xid), &[], Lsn::ZERO, 0);
}

fn insert(wal: &Wal, xid: u64) -> Lsn {
    let mut record = RecordBuilder::new();
    build(&mut record, xid);
    wal.insert(&mut record)
}

/// The xids of all commits from `from` on, each checked to be whole, and the log's end.
fn read_all(disk: &SimDisk, from: Lsn) -> (Vec<u64>, Lsn) {
    let mut reader = reader(disk, from);
    let mut xids = Vec::new();
    let mut last = from;
    while let Some(entry) = reader.next().expect("the log reads") {
        assert_eq!(entry.start, last, "records follow each other");
        last = entry.end;
        let Record::Commit {
            xid,
            subxids: subs,
            dropped,
            ..
        } = entry.record
        else {
            panic!("only commits were inserted, not {:?}", entry.record)
        };
        assert_eq!(subs, subxids(xid.0));
        assert!(dropped.is_empty());
        xids.push(xid.0);
    }
    assert_eq!(reader.end(), last);
    (xids, last)
}
