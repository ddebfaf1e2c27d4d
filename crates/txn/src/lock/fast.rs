//! Weak relation locks without the lock table.
//!
//! A session keeps the weak modes it holds on relations in words of its own; a strong locker raises
//! the relation's counter and then goes through everybody's words, moving what it finds into the
//! table. A counter is shared by the relations that hash to it. One word:
//!
//! ```text
//!   63            40 39                8 7      0
//!   │      0       │   relation's oid   │ modes │        0: unused
//! ```
//!
//! ```text
//!   a weak locker                          a strong locker
//!   1 word = oid, modes                    1 counter += 1
//!     ── both SeqCst ──                      ── both SeqCst ──
//!   2 counter == 0? then it has it.        2 every session's words: move those of this relation
//!     Else take the word back and go       3 wait in the table
//!     the long way; gone already?
//!     Then it was moved: the table says
//!     whether it has it.
//! ```
//!
//! Words are changed by compare-and-swap only, so a mode is at every moment in a word or in the
//! table, and never in both. The words are as many as the session has needed at once: there is no
//! limit past which a statement that touches many partitions falls off. After a transaction that
//! needed very many they are counted from none again, so that strong lockers do not look at its
//! words for ever.

use throng_sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use throng_types::Oid;

use super::table::LockTable;
use super::{LockInfo, LockMode, LockTag, ModeMask, modes};
use crate::growvec::GrowVec;

const COUNTERS: usize = if throng_sync::IS_MODEL { 4 } else { 4096 };

/// How many strong locks there are, or are wanted, by relation.
pub(crate) struct StrongLocks(Box<[AtomicU32]>);

impl StrongLocks {
    pub(crate) fn new() -> StrongLocks {
        StrongLocks((0..COUNTERS).map(|_| AtomicU32::new(0)).collect())
    }

    fn counter(&self, relation: Oid) -> &AtomicU32 {
        &self.0[(relation.0.wrapping_mul(0x9E37_79B1) >> 20) as usize % self.0.len()]
    }

    /// From here on nobody takes a weak lock on the relation without the table.
    pub(crate) fn raise(&self, relation: Oid) {
        self.counter(relation).fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn lower(&self, relation: Oid) {
        self.counter(relation).fetch_sub(1, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_raised(&self, relation: Oid) -> bool {
        self.counter(relation).load(Ordering::SeqCst) != 0
    }
}

/// A session's words. Written by the session, and taken away by strong lockers.
#[derive(Default)]
#[repr(C)]
pub(crate) struct FastWords {
    /// Words before this one may be in use. Raised before one is used, which a strong locker cannot
    /// miss: it reads this after raising the counter, as the weak one reads the counter after
    /// writing the word.
    high: AtomicU32,
    /// The first, which lie with what else a statement touches of its session.
    near: [AtomicU64; NEAR],
    far: FastGrow,
}

/// Words for the tables and indexes of a short statement.
const NEAR: usize = 5;

struct FastGrow(GrowVec<AtomicU64>);

impl Default for FastGrow {
    fn default() -> FastGrow {
        FastGrow(GrowVec::new())
    }
}

/// What came of asking for a mode the short way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fast {
    /// Held, in the word.
    Held,
    /// A strong locker moved the word to the table, with this mode unless another one's lock
    /// excludes it.
    Moved,
    /// Not held: a strong locker is about. The word's earlier modes are where they were.
    Refused,
    /// Not held, and the word's earlier modes have been moved to the table.
    RefusedAndMoved,
}

fn pack(relation: Oid, mask: ModeMask) -> u64 {
    (relation.0 as u64) << 8 | mask as u64
}

fn unpack(word: u64) -> (Oid, ModeMask) {
    (Oid((word >> 8) as u32), (word & 0xff) as ModeMask)
}

impl FastWords {
    /// Bytes of it from its beginning that a session with few locks touches.
    pub(crate) const TOUCHED: usize = std::mem::offset_of!(FastWords, far);

    /// Adds `mode` to word `index`, which holds `held` of the relation (0: unused).
    #[inline]
    pub(crate) fn acquire(
        &self,
        index: u32,
        relation: Oid,
        held: ModeMask,
        mode: LockMode,
        strong: &StrongLocks,
    ) -> Fast {
        if index >= self.high.load(Ordering::Relaxed) {
            self.grow(index);
        }
        let word = self.word(index).expect("made above");
        let before = if held == 0 { 0 } else { pack(relation, held) };
        let after = pack(relation, held | mode.bit());
        if word
            .compare_exchange(before, after, Ordering::SeqCst, Ordering::Relaxed)
            .is_err()
        {
            return Fast::RefusedAndMoved;
        }
        // What is SeqCst has one order, but loom takes its loads for less.
        if throng_sync::IS_MODEL {
            fence(Ordering::SeqCst);
        }
        if !strong.is_raised(relation) {
            return Fast::Held;
        }
        match word.compare_exchange(after, before, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => Fast::Refused,
            Err(_) => Fast::Moved,
        }
    }

    #[inline]
    fn word(&self, index: u32) -> Option<&AtomicU64> {
        let index = index as usize;
        match self.near.get(index) {
            None => self.far.0.get((index - NEAR) as u64),
            near => near,
        }
    }

    #[cold]
    fn grow(&self, index: u32) {
        if let Some(far) = (index as usize).checked_sub(NEAR) {
            self.far.0.at(far as u64);
        }
        self.high.store(index + 1, Ordering::SeqCst);
    }

    /// No word is in use: strong lockers need not look at any.
    pub(crate) fn forget_all(&self) {
        self.high.store(0, Ordering::SeqCst);
    }

    /// Leaves `keep` of `held` in the word. `false`: the modes are in the table.
    #[inline]
    pub(crate) fn release(
        &self,
        index: u32,
        relation: Oid,
        held: ModeMask,
        keep: ModeMask,
    ) -> bool {
        let word = self.word(index).expect("a word in use is there");
        let after = if keep == 0 { 0 } else { pack(relation, keep) };
        word.compare_exchange(
            pack(relation, held),
            after,
            Ordering::Release,
            Ordering::Relaxed,
        )
        .is_ok()
    }

    fn used(&self) -> impl Iterator<Item = &AtomicU64> {
        (0..self.high.load(Ordering::SeqCst)).filter_map(|i| self.word(i))
    }

    /// A strong locker's second step, for the session `pid` whose words these are.
    pub(crate) fn move_to(&self, table: &LockTable, pid: u32, relation: Oid) {
        self.take(relation, |mask, taken| {
            table.adopt(pid, LockTag::Relation(relation), mask, taken);
        });
    }

    /// Calls `adopt` for every word of the relation, with its modes and how to take them from the
    /// word: `false` from that if the owner was quicker.
    fn take(&self, relation: Oid, mut adopt: impl FnMut(ModeMask, &dyn Fn() -> bool)) {
        for word in self.used() {
            // Again, if the owner changed it meanwhile.
            loop {
                let seen = word.load(Ordering::SeqCst);
                let (oid, mask) = unpack(seen);
                if oid != relation || mask == 0 {
                    break;
                }
                adopt(mask, &|| {
                    word.compare_exchange(seen, 0, Ordering::SeqCst, Ordering::Relaxed)
                        .is_ok()
                });
            }
        }
    }

    pub(crate) fn list(&self, pid: u32, rows: &mut Vec<LockInfo>) {
        for word in self.used() {
            let (oid, mask) = unpack(word.load(Ordering::Relaxed));
            rows.extend(modes(mask).map(|mode| LockInfo {
                tag: LockTag::Relation(oid),
                pid,
                mode,
                granted: true,
                fast_path: true,
                wait_start: None,
            }));
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    /// Whatever the order, a weak lock that is held is found by the strong locker, in the table or
    /// on its way there.
    #[test]
    fn loom_a_weak_lock_and_a_strong_one() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let relation = Oid(7);
            let strong = Arc::new(StrongLocks(vec![AtomicU32::new(0)].into()));
            let words = Arc::new(FastWords::default());
            words.grow(0);
            let locker = {
                let (strong, words) = (strong.clone(), words.clone());
                loom::thread::spawn(move || {
                    strong.raise(relation);
                    let mut moved = 0;
                    words.take(relation, |mask, taken| {
                        if taken() {
                            moved |= mask;
                        }
                    });
                    moved
                })
            };
            let outcome = words.acquire(0, relation, 0, LockMode::AccessShare, &strong);
            let moved = locker.join().unwrap();
            match outcome {
                // Still held: the strong locker must have found it, and the word is empty.
                Fast::Held => {
                    assert_eq!(moved, LockMode::AccessShare.bit());
                    assert!(!words.release(0, relation, moved, 0));
                }
                Fast::Moved => assert_eq!(moved, LockMode::AccessShare.bit()),
                Fast::Refused => assert_eq!(moved, 0),
                Fast::RefusedAndMoved => panic!("there was nothing to move"),
            }
        });
    }
}
