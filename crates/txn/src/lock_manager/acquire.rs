//! The ways a session gets and loses its locks.

use std::sync::Arc;
use throng_sync::atomic::{AtomicBool, Ordering};

use throng_observe::{Structure, sampled};
use throng_types::{FileId, Oid, Result, Tid, Xid};

use super::deadlock;
use super::wait::{Verdict, wait_until_granted};
use crate::lock::fast::Fast;
use crate::lock::held::{HeldLocks, LockScope, Words};
use crate::lock::wait::{WaitNode, WaitOn};
use crate::lock::{LockMode, LockTag, WaitPolicy, modes};
use crate::session::{Core, SessionEntry};
use crate::status::Standing;

/// A session that has used so many words at once and holds nothing starts counting anew.
const WORDS_KEPT: u32 = 64;

/// A place in a queue that is left when the wait is given up, by error or by dropping the future.
struct Ticket<'a> {
    session: &'a SessionEntry,
    on: WaitOn,
    over: AtomicBool,
}

impl<'a> Ticket<'a> {
    fn new(session: &'a SessionEntry, on: WaitOn) -> Ticket<'a> {
        session.note_waiting(on.clone());
        Ticket {
            session,
            on,
            over: AtomicBool::new(false),
        }
    }

    fn is_over(&self) -> bool {
        self.over.swap(true, Ordering::Relaxed)
    }

    /// Leaves the queue, or gives back what was granted at the last moment.
    fn give_up(&self) {
        if self.is_over() {
            return;
        }
        let core = self.session.core();
        match &self.on {
            WaitOn::Lock { tag, node } => {
                if !core.locks.withdraw(*tag, node) {
                    core.locks.release(node.pid, *tag, node.mode.bit());
                }
            }
            WaitOn::Holders { tag, node } => core.locks.unwatch(*tag, node),
            WaitOn::Xid { xid, node, .. } => core.xids.remove(*xid, node),
        }
        self.session.note_not_waiting();
    }

    fn granted(self) {
        if !self.is_over() {
            self.session.note_not_waiting();
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// A strong lock wanted or held: while it lives, weak ones on the relation go through the table.
struct Strong<'a> {
    core: &'a Core,
    relation: Option<Oid>,
}

impl<'a> Strong<'a> {
    fn raise(core: &'a Core, tag: LockTag, mode: LockMode) -> Strong<'a> {
        let relation = strong_relation(tag, mode);
        if let Some(relation) = relation {
            core.strong.raise(relation);
            core.registry
                .each(|session| session.fast.move_to(&core.locks, session.pid(), relation));
        }
        Strong { core, relation }
    }
    /// The lock is held: the counter stays up until it is released.
    fn keep(mut self) {
        self.relation = None;
    }
}

impl Drop for Strong<'_> {
    fn drop(&mut self) {
        if let Some(relation) = self.relation {
            self.core.strong.lower(relation);
        }
    }
}

fn strong_relation(tag: LockTag, mode: LockMode) -> Option<Oid> {
    match tag {
        LockTag::Relation(oid) if mode.is_strong() => Some(oid),
        _ => None,
    }
}

impl SessionEntry {
    /// Takes a lock, waiting as `policy` says. `false`: it is not free, and the policy is not to
    /// wait.
    pub async fn lock(
        self: &Arc<Self>,
        tag: LockTag,
        mode: LockMode,
        scope: LockScope,
        policy: WaitPolicy,
    ) -> Result<bool> {
        if policy == WaitPolicy::NoWait {
            return Ok(self.try_lock(tag, mode, scope));
        }
        if !self.lock_short_way(tag, mode, scope) {
            let lets_past = policy == WaitPolicy::LetPast;
            Box::pin(self.lock_in_table(tag, mode, lets_past)).await?;
            self.note_in_table(tag, mode, scope);
        }
        Ok(true)
    }

    /// Takes a lock if it is free.
    pub fn try_lock(&self, tag: LockTag, mode: LockMode, scope: LockScope) -> bool {
        if self.lock_short_way(tag, mode, scope) {
            return true;
        }
        let strong = Strong::raise(self.core(), tag, mode);
        let got = self.core().locks.try_acquire(self.pid(), tag, mode);
        if got {
            strong.keep();
            self.note_in_table(tag, mode, scope);
        }
        got
    }

    fn note_in_table(&self, tag: LockTag, mode: LockMode, scope: LockScope) {
        let locks = &mut *self.held.lock();
        let at = locks.by_tag.find_or_add(tag);
        let held = &mut locks.by_tag[at];
        held.in_table |= mode.bit();
        held.note(tag, mode, scope, &mut locks.order);
    }

    /// Held already, or weak and nobody strong about.
    #[inline]
    fn lock_short_way(&self, tag: LockTag, mode: LockMode, scope: LockScope) -> bool {
        let _sampled = sampled(Structure::LockTable);
        let locks = &mut *self.held.lock();
        let place = locks.by_tag.find(tag);
        if let Some(at) = place
            && locks.by_tag[at].is_held(mode)
        {
            locks.by_tag[at].note(tag, mode, scope, &mut locks.order);
            return true;
        }
        let LockTag::Relation(relation) = tag else {
            return false;
        };
        if !mode.is_weak() {
            return false;
        }
        let at = place.unwrap_or_else(|| locks.by_tag.add(tag));
        let held = &mut locks.by_tag[at];
        let word = *held.word.get_or_insert_with(|| locks.words.take());
        let outcome = self
            .fast
            .acquire(word, relation, held.in_word, mode, &self.core().strong);
        // Moved by one strong locker while another held the lock already: it was not there to be
        // had.
        let moved_in_vain =
            outcome == Fast::Moved && !self.core().locks.holds(self.pid(), tag, mode);
        let outcome = match moved_in_vain {
            true => Fast::RefusedAndMoved,
            false => outcome,
        };
        match outcome {
            Fast::Held => held.in_word |= mode.bit(),
            Fast::Moved => {
                held.word_was_moved();
                held.in_table |= mode.bit();
            }
            Fast::RefusedAndMoved => held.word_was_moved(),
            Fast::Refused => {}
        }
        let got = matches!(outcome, Fast::Held | Fast::Moved);
        if got {
            held.note(tag, mode, scope, &mut locks.order);
        } else {
            locks.forget_if_unused(at);
        }
        got
    }

    async fn lock_in_table(
        self: &Arc<Self>,
        tag: LockTag,
        mode: LockMode,
        lets_past: bool,
    ) -> Result<()> {
        let core = self.core();
        let strong = Strong::raise(core, tag, mode);
        if let Some(node) = core.locks.acquire(self.pid(), tag, mode, lets_past) {
            self.wait_in_queue(WaitOn::Lock { tag, node }).await?;
        }
        strong.keep();
        Ok(())
    }

    /// Waits until those who hold a mode that `mode` excludes have given it up; who comes after
    /// them is not waited for, and nobody waits for us.
    pub(crate) async fn wait_for_holders(
        self: &Arc<Self>,
        tag: LockTag,
        mode: LockMode,
    ) -> Result<()> {
        let core = self.core();
        // While it lives, locks are given back in the table, where we are seen.
        let _strong = Strong::raise(core, tag, mode);
        if let Some(node) = core.locks.watch(self.pid(), tag, mode) {
            self.wait_in_queue(WaitOn::Holders { tag, node }).await?;
        }
        Ok(())
    }

    async fn wait_in_queue(self: &Arc<Self>, on: WaitOn) -> Result<()> {
        let ticket = Ticket::new(self, on.clone());
        let look = || -> Verdict { deadlock::check(self.core(), self, || ticket.give_up()) };
        // Two who hold a lock and both ask for more of it wait for each other from the start: the
        // second gives up at once.
        if on.node().asks_for_more
            && let Verdict::Deadlock(error) = look()
        {
            return Err(error);
        }
        wait_until_granted(self, &on, look).await?;
        ticket.granted();
        Ok(())
    }

    /// Waits until the transaction or subtransaction has ended. Not for one's own.
    /// `row` says because of which row, by file and chain's root.
    pub(crate) async fn wait_for_xid(
        self: &Arc<Self>,
        xid: Xid,
        row: Option<(FileId, Tid)>,
    ) -> Result<()> {
        let core = self.core();
        debug_assert!(
            !matches!(core.status.standing(xid), Standing::InProgress { top } if Some(top) == self.top_xid()),
            "a transaction waits for itself"
        );
        let node = Arc::new(WaitNode::new(self.pid(), LockMode::Share));
        core.xids.add(xid, node.clone());
        // After the node is there: who ends now sees it, who ended before is seen here.
        if !matches!(core.status.standing(xid), Standing::InProgress { .. }) {
            core.xids.remove(xid, &node);
            return Ok(());
        }
        Box::pin(self.wait_in_queue(WaitOn::Xid { xid, node, row })).await
    }

    /// Gives a session-level lock back. `false`: it was not held.
    pub fn unlock(&self, tag: LockTag, mode: LockMode) -> bool {
        let locks = &mut *self.held.lock();
        let Some(at) = locks.by_tag.find(tag) else {
            return false;
        };
        let was_held = locks.by_tag[at].forget_once(mode);
        if was_held {
            self.drop_unheld(locks, tag, at);
        }
        was_held
    }

    /// Gives back what the transaction has locked since it held `keep` locks.
    pub(crate) fn unlock_transaction(&self, keep: usize) {
        self.unlock_some(keep, usize::MAX);
    }

    /// The same, so many of them, the last first. Whether that were all.
    pub(crate) fn unlock_some(&self, keep: usize, most: usize) -> bool {
        let locks = &mut *self.held.lock();
        let until = keep.max(locks.order.len().saturating_sub(most));
        while locks.order.len() > until {
            let (tag, mode) = locks.order.pop().expect("longer than keep");
            let at = locks.by_tag.find(tag).expect("a lock in the order is held");
            locks.by_tag[at].transaction &= !mode.bit();
            self.drop_unheld(locks, tag, at);
        }
        if locks.words.count > WORDS_KEPT && locks.by_tag.is_empty() {
            locks.words = Words::default();
            self.fast.forget_all();
        }
        until <= keep
    }

    /// Whether the transaction and the session beyond it both hold something.
    pub(crate) fn shares_locks_with_session(&self) -> bool {
        let locks = self.held.lock();
        let both = |tag| {
            let held = locks.by_tag.find(tag).map(|at| &locks.by_tag[at]);
            held.is_some_and(|held| held.transaction != 0 && held.session_modes != 0)
        };
        locks.by_tag.tags().any(both)
    }

    /// The transaction's locks, in the order it got them.
    pub(crate) fn transaction_locks(&self) -> Vec<(LockTag, LockMode)> {
        self.held.lock().order.clone()
    }

    /// The transaction's locks are `heir`'s from now on, whom nobody knows yet. None of them is
    /// free in between.
    pub(crate) fn hand_over_locks(&self, heir: &SessionEntry) {
        let core = self.core();
        let locks = &mut *self.held.lock();
        let inherited = &mut *heir.held.lock();
        for (tag, mode) in std::mem::take(&mut locks.order) {
            let at = locks.by_tag.find(tag).expect("a lock in the order is held");
            if locks.by_tag[at].in_word != 0
                && let LockTag::Relation(relation) = tag
            {
                // As a strong locker does it; if one was quicker, it is in the table as well.
                self.fast.move_to(&core.locks, self.pid(), relation);
                locks.by_tag[at].word_was_moved();
            }
            let held = &mut locks.by_tag[at];
            core.locks
                .hand_over(tag, mode.bit(), self.pid(), heir.pid());
            held.transaction &= !mode.bit();
            held.in_table &= !mode.bit();
            locks.forget_if_unused(at);
            let at = inherited.by_tag.find_or_add(tag);
            let own = &mut inherited.by_tag[at];
            own.in_table |= mode.bit();
            own.note(tag, mode, LockScope::Transaction, &mut inherited.order);
        }
    }

    /// How many locks the transaction has taken.
    pub(crate) fn lock_count(&self) -> usize {
        self.held.lock().order.len()
    }

    /// Gives back what is held for the session (`pg_advisory_unlock_all`).
    pub fn release_session_locks(&self) {
        let locks = &mut *self.held.lock();
        let tags: Vec<LockTag> = locks.by_tag.tags().collect();
        for tag in tags {
            if let Some(at) = locks.by_tag.find(tag) {
                let held = &mut locks.by_tag[at];
                (held.session, held.session_modes) = ([0; 9], 0);
                self.drop_unheld(locks, tag, at);
            }
        }
    }

    /// Releases the modes of a lock that neither the transaction nor the session wants any longer.
    fn drop_unheld(&self, locks: &mut HeldLocks, tag: LockTag, at: usize) {
        let held = &mut locks.by_tag[at];
        let wanted = held.transaction | held.session_modes;
        if held.in_word & !wanted != 0 {
            let LockTag::Relation(relation) = tag else {
                unreachable!("only relations have words")
            };
            let word = held.word.expect("modes in a word have one");
            if self
                .fast
                .release(word, relation, held.in_word, held.in_word & wanted)
            {
                held.in_word &= wanted;
            } else {
                held.word_was_moved();
            }
        }
        let given_up = held.in_table & !wanted;
        held.in_table &= wanted;
        if given_up != 0 {
            self.core().locks.release(self.pid(), tag, given_up);
            for mode in modes(given_up) {
                if let Some(relation) = strong_relation(tag, mode) {
                    self.core().strong.lower(relation);
                }
            }
        }
        locks.forget_if_unused(at);
    }
}

/// A place in the queue for a row: held from before the wait until the row is changed or given up.
pub(crate) struct QueuePlace {
    session: Arc<SessionEntry>,
    tag: LockTag,
    mode: LockMode,
}

impl SessionEntry {
    /// Waits for one's turn at a row.
    pub(crate) async fn queue_for(
        self: &Arc<Self>,
        tag: LockTag,
        mode: LockMode,
    ) -> Result<QueuePlace> {
        Box::pin(self.lock_in_table(tag, mode, false)).await?;
        Ok(QueuePlace {
            session: self.clone(),
            tag,
            mode,
        })
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        self.session
            .core()
            .locks
            .release(self.session.pid(), self.tag, self.mode.bit());
    }
}
