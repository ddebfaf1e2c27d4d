//! Whatever the order of steps, nobody slips through between a read and a write.

use std::sync::Arc;

use throng_sync::atomic::{AtomicU64, Ordering};
use throng_sync::schedules::check;
use throng_sync::thread::spawn;
use throng_types::{FileId, Tid};

use super::*;

const FILE: FileId = FileId(1);

fn tid(row: usize) -> Tid {
    Tid::new(0, row as u16 + 1)
}

const EXECUTIONS: usize = 3000;

/// Two rows, each with the id of who wrote it last, and who looks after their readers.
struct World {
    serial: Ssi,
    rows: [AtomicU64; 2],
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            serial: Ssi::new(),
            rows: [AtomicU64::new(0), AtomicU64::new(0)],
        })
    }

    fn begin(&self, xid: u64) -> Arc<Member> {
        let take = || ((), Csn(0));
        let (_, member) = self.serial.begin(1, false, Some(Xid(xid)), take);
        member.expect("a writer is followed")
    }

    /// Locks, then looks.
    fn read(&self, member: &Member, row: usize) -> Result<(), Reason> {
        self.serial.targets.row(member, FILE, tid(row));
        match self.rows[row].load(Ordering::Acquire) {
            0 => Ok(()),
            writer => self
                .serial
                .conflict_out(member, Writer::Running(Xid(writer))),
        }
    }

    /// Writes, then asks.
    fn write(&self, member: &Member, xid: u64, row: usize) -> Result<(), Reason> {
        self.rows[row].store(xid, Ordering::Release);
        self.serial.wrote_row(member, FILE, tid(row))
    }

    fn end(&self, member: &Member, done: Result<(), Reason>) -> bool {
        let commits = done.and_then(|()| self.serial.prepare(member));
        match commits {
            Ok(()) => self.serial.committed(member),
            Err(_) => self.serial.rolled_back(member),
        }
        commits.is_ok()
    }
}

#[test]
fn of_two_who_write_what_the_other_has_read_one_commits() {
    check(EXECUTIONS, || {
        let world = World::new();
        // Both begin before either ends.
        let (one, two) = (world.begin(10), world.begin(11));
        let other = {
            let world = world.clone();
            spawn(move || {
                let done = world.read(&two, 1).and_then(|()| world.write(&two, 11, 0));
                world.end(&two, done)
            })
        };
        let done = world.read(&one, 0).and_then(|()| world.write(&one, 10, 1));
        let first = world.end(&one, done);
        let second = other.join().unwrap();
        assert!(!(first && second), "write skew");
    });
}

#[test]
fn a_lock_is_found_while_it_becomes_a_greater_one() {
    check(EXECUTIONS, || {
        let world = World::new();
        let reader = world.begin(10);
        for row in 0..2 {
            world.serial.targets.row(&reader, FILE, tid(row));
        }
        let id = reader.id;
        let other = {
            let world = world.clone();
            // The third row of the page: its lock becomes the page's.
            spawn(move || world.serial.targets.row(&reader, FILE, tid(2)))
        };
        let found = world
            .serial
            .targets
            .readers(FILE, Written::Row(tid(0)), |readers| {
                readers.ids().contains(&id)
            });
        assert_eq!(found, Some(true));
        other.join().unwrap();
    });
}
