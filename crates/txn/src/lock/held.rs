//! The locks a session holds.
//!
//! A lock is held for the transaction, or (advisory ones) for the session until it is unlocked as
//! often as it was locked. The order in which the transaction took its locks is kept: a rollback to
//! a savepoint gives back those taken since.

use super::by_tag::ByTag;
use super::{LockMode, LockTag, ModeMask};

/// What a session holds.
#[derive(Default)]
pub(crate) struct HeldLocks {
    pub(crate) by_tag: ByTag<Held>,
    pub(crate) order: Order,
    pub(crate) words: Words,
}

/// The transaction's locks, in the order it got them.
pub(crate) type Order = Vec<(LockTag, LockMode)>;

/// Which of a session's words are in use.
#[derive(Default)]
pub(crate) struct Words {
    /// Those below `count` that are not.
    pub(crate) free: Vec<u32>,
    pub(crate) count: u32,
}

impl Words {
    pub(crate) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }
}

#[derive(Default)]
pub(crate) struct Held {
    pub(crate) transaction: ModeMask,
    /// How often the session holds each mode beyond the transaction, and which it does.
    pub(crate) session: [u32; 9],
    pub(crate) session_modes: ModeMask,
    /// The session's word for this relation, and the modes that were put there.
    pub(crate) word: Option<u32>,
    pub(crate) in_word: ModeMask,
    pub(crate) in_table: ModeMask,
}

/// For how long a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockScope {
    Transaction,
    /// Until unlocked, or the session ends.
    Session,
}

impl Held {
    pub(crate) fn is_held(&self, mode: LockMode) -> bool {
        (self.in_word | self.in_table) & mode.bit() != 0
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.in_word | self.in_table == 0
    }

    /// Notes one more reason to hold what is held.
    pub(crate) fn note(
        &mut self,
        tag: LockTag,
        mode: LockMode,
        scope: LockScope,
        order: &mut Order,
    ) {
        match scope {
            LockScope::Session => {
                self.session[mode as usize] += 1;
                self.session_modes |= mode.bit();
            }
            LockScope::Transaction if self.transaction & mode.bit() == 0 => {
                self.transaction |= mode.bit();
                order.push((tag, mode));
            }
            LockScope::Transaction => {}
        }
    }

    /// One reason less to hold a mode for the session; `false`: it is not held for it.
    pub(crate) fn forget_once(&mut self, mode: LockMode) -> bool {
        let count = &mut self.session[mode as usize];
        if *count == 0 {
            return false;
        }
        *count -= 1;
        if *count == 0 {
            self.session_modes &= !mode.bit();
        }
        true
    }

    /// What was in the word has been moved to the table.
    pub(crate) fn word_was_moved(&mut self) {
        self.in_table |= self.in_word;
        self.in_word = 0;
    }
}

impl HeldLocks {
    /// A lock's place among those held is given up where nothing of it is held any longer.
    pub(crate) fn forget_if_unused(&mut self, at: usize) {
        let held = &self.by_tag[at];
        if held.is_unused() {
            self.words.free.extend(held.word);
            self.by_tag.remove(at);
        }
    }
}
