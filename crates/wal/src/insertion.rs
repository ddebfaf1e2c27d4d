//! How a thread gets a place in the log: three forms behind one trait, one of them chosen when the
//! log is opened.
//!
//! ```text
//!   form     who may copy at once           a place is given out by
//!   lock     one thread                     the lock's holder
//!   lanes    as many as there are lanes     a spinlock, tens of instructions
//!   add      every thread                   one fetch_add
//! ```
//!
//! `lock` is PostgreSQL's WALInsertLock until 9.3; `lanes` its insertion locks since 9.4
//! (`WALInsertLockAcquire` and `ReserveXLogInsertLocation` in `xlog.c`), eight of them and a
//! spinlock around the position; `add` is what this server does. Whatever the form, who may copy
//! has a *lane* of [`LogBuffer`](crate::buffer::LogBuffer) to itself, which tells the flusher how
//! far it is.

use std::str::FromStr;
use throng_observe::{WaitEvent, blocking};
use throng_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use throng_sync::{CachePadded, Latch, MAX_THREADS, PerThread, Spinlock, threads_high_water};

/// The setting `lab_wal_insert`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InsertForm {
    Lock,
    Lanes,
    #[default]
    Add,
}

impl InsertForm {
    pub const ALL: [InsertForm; 3] = [InsertForm::Lock, InsertForm::Lanes, InsertForm::Add];

    /// As the setting spells it.
    pub const fn name(self) -> &'static str {
        match self {
            InsertForm::Lock => "lock",
            InsertForm::Lanes => "lanes",
            InsertForm::Add => "add",
        }
    }
}

impl FromStr for InsertForm {
    type Err = ();
    fn from_str(name: &str) -> Result<InsertForm, ()> {
        InsertForm::ALL
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or(())
    }
}

/// One way of letting threads insert.
pub(crate) trait Form {
    /// Leave to insert for thread `thread`: a lane that nobody else uses until it is left.
    fn enter(&self, thread: usize) -> usize;
    /// Gives out `len` positions: moves `tail` on and returns where it was.
    ///
    /// Release: who sees the new tail sees what the thread did before. Acquire: what it does after
    /// stays after.
    fn reserve(&self, tail: &AtomicU64, len: u64) -> u64;
    /// The same if nobody has been given positions since `tail` was `at`; else nothing.
    fn reserve_at(&self, tail: &AtomicU64, at: u64, len: u64) -> bool;
    /// The record is copied, and the lane shows so.
    fn leave(&self, lane: usize);
    /// Lanes that may be in use.
    fn lanes(&self) -> usize;
}

/// Every thread has a lane of its own.
pub(crate) struct ByAdd;

impl Form for ByAdd {
    #[inline]
    fn enter(&self, thread: usize) -> usize {
        thread
    }
    #[inline]
    fn reserve(&self, tail: &AtomicU64, len: u64) -> u64 {
        tail.fetch_add(len, Ordering::AcqRel)
    }
    fn reserve_at(&self, tail: &AtomicU64, at: u64, len: u64) -> bool {
        tail.compare_exchange(at, at + len, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
    #[inline]
    fn leave(&self, _: usize) {}
    #[inline]
    fn lanes(&self) -> usize {
        threads_high_water()
    }
}

/// One lock around all of it.
pub(crate) struct OneLock(CachePadded<Latch>);

impl Form for OneLock {
    fn enter(&self, _: usize) -> usize {
        exclusive(&self.0, 0);
        0
    }
    fn reserve(&self, tail: &AtomicU64, len: u64) -> u64 {
        move_on(tail, len)
    }
    fn reserve_at(&self, tail: &AtomicU64, at: u64, len: u64) -> bool {
        move_on_from(tail, at, len)
    }
    fn leave(&self, _: usize) {
        self.0.unlock_exclusive();
    }
    fn lanes(&self) -> usize {
        1
    }
}

/// A lock a lane, and a spinlock for the position.
pub(crate) struct Lanes {
    locks: Box<[CachePadded<Latch>]>,
    position: CachePadded<Spinlock<()>>,
    /// The lane a thread tries first: the next one after it had to wait, so that threads spread.
    choice: PerThread<AtomicU32>,
}

impl Form for Lanes {
    fn enter(&self, thread: usize) -> usize {
        let choice = self.choice.get(thread);
        let mine = choice.load(Ordering::Relaxed);
        let lane = mine as usize % self.locks.len();
        if !self.locks[lane].try_exclusive() {
            choice.store(mine.wrapping_add(1), Ordering::Relaxed);
            exclusive(&self.locks[lane], lane as u64);
        }
        lane
    }
    fn reserve(&self, tail: &AtomicU64, len: u64) -> u64 {
        let _held = self.position.lock();
        move_on(tail, len)
    }
    fn reserve_at(&self, tail: &AtomicU64, at: u64, len: u64) -> bool {
        let _held = self.position.lock();
        move_on_from(tail, at, len)
    }
    fn leave(&self, lane: usize) {
        self.locks[lane].unlock_exclusive();
    }
    fn lanes(&self) -> usize {
        self.locks.len()
    }
}

/// With whatever protects `tail` held.
fn move_on(tail: &AtomicU64, len: u64) -> u64 {
    // Relaxed: the lock has brought what the one before us wrote.
    let start = tail.load(Ordering::Relaxed);
    tail.store(start + len, Ordering::Release);
    start
}

/// The same, if `tail` is still `at`.
fn move_on_from(tail: &AtomicU64, at: u64, len: u64) -> bool {
    let is_there = tail.load(Ordering::Relaxed) == at;
    if is_there {
        move_on(tail, len);
    }
    is_there
}

fn exclusive(latch: &Latch, lane: u64) {
    if !latch.try_exclusive() {
        let _wait = blocking(WaitEvent::WalInsert, lane);
        latch.exclusive();
    }
}

/// The form chosen.
pub(crate) enum Insertion {
    Lock(OneLock),
    Lanes(Lanes),
    Add(ByAdd),
}

impl Insertion {
    /// `lanes`: how many there are, where the form is lanes.
    pub fn new(form: InsertForm, lanes: usize) -> Insertion {
        match form {
            InsertForm::Add => Insertion::Add(ByAdd),
            InsertForm::Lock => Insertion::Lock(OneLock(CachePadded::new(Latch::new()))),
            InsertForm::Lanes => {
                let lanes = lanes.clamp(1, MAX_THREADS);
                Insertion::Lanes(Lanes {
                    locks: (0..lanes).map(|_| CachePadded::new(Latch::new())).collect(),
                    position: CachePadded::new(Spinlock::named("wal.position", ())),
                    choice: PerThread::new(|thread| AtomicU32::new(thread as u32)),
                })
            }
        }
    }
}

/// Hands a call to the form there is: a branch that always goes the same way.
macro_rules! to_form {
    ($self:ident, $form:ident => $call:expr) => {
        match $self {
            Insertion::Add($form) => $call,
            Insertion::Lanes($form) => $call,
            Insertion::Lock($form) => $call,
        }
    };
}

impl Form for Insertion {
    #[inline]
    fn enter(&self, thread: usize) -> usize {
        to_form!(self, form => form.enter(thread))
    }
    #[inline]
    fn reserve(&self, tail: &AtomicU64, len: u64) -> u64 {
        to_form!(self, form => form.reserve(tail, len))
    }
    fn reserve_at(&self, tail: &AtomicU64, at: u64, len: u64) -> bool {
        to_form!(self, form => form.reserve_at(tail, at, len))
    }
    #[inline]
    fn leave(&self, lane: usize) {
        to_form!(self, form => form.leave(lane));
    }
    fn lanes(&self) -> usize {
        to_form!(self, form => form.lanes())
    }
}
