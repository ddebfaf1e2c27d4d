//! The walk: every session's id in one array, under one latch.
//!
//! ```text
//!   a snapshot (latch shared)              an end (latch exclusive)        a beginning (ids one at a time)
//!   to = completed + 1                     completed = max(completed, id)   id given out
//!   for every session: its id, if any,     how it stands                    the session's word = id
//!     and its subtransactions' ids         the session's word = 0           only then the next id
//! ```
//!
//! Ids above the greatest that has ended count as running without being asked for. So only ids
//! below it must be in the array, and they are: a session stores its id before the next one is
//! given out (PostgreSQL's XidGenLock).
//!
//! The array is dense, a word a session as in PostgreSQL from 14 on, so that what is measured is
//! the walk and the latch and not a stride through memory.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU32 as PlainU32;
use std::sync::atomic::Ordering as PlainOrdering;

use throng_observe::{Object, WaitEvent, blocking};
use throng_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use throng_sync::lock::Mutex;
use throng_sync::{CachePadded, Latch};
use throng_types::Xid;

use super::{Form, IdPurpose, RunningSet, SessionIndex};
use crate::growvec::GrowVec;

/// A session's word when its transaction has no id.
const NO_XID: u64 = 0;

pub(crate) struct Walk {
    latch: CachePadded<Latch>,
    /// Held while an id is given out and stored.
    giving: Latch,
    /// The greatest id that has ended. Written under the latch.
    completed: AtomicU64,
    /// By place: the session's id. Set by its session, read under the latch, cleared under it
    /// exclusively.
    xids: GrowVec<AtomicU64>,
    subs: GrowVec<Subs>,
    /// Places that are walked: all that are taken are below.
    high: PlainU32,
    /// Places below `high` that are not taken.
    free: Mutex<BTreeSet<SessionIndex>>,
}

/// A transaction's subtransactions that have an id and have not ended.
#[derive(Default)]
struct Subs {
    count: AtomicU32,
    xids: Mutex<Vec<u64>>,
}

impl Walk {
    pub(crate) fn new(next: Xid) -> Walk {
        Walk {
            latch: CachePadded::new(Latch::new()),
            giving: Latch::new(),
            completed: AtomicU64::new(next.0.saturating_sub(1)),
            xids: GrowVec::new(),
            subs: GrowVec::new(),
            high: PlainU32::new(0),
            free: Mutex::default(),
        }
    }

    fn xid_of(&self, place: SessionIndex) -> &AtomicU64 {
        self.xids.get(place.into()).expect("a place given out")
    }

    fn subs_of(&self, place: SessionIndex) -> &Subs {
        self.subs.get(place.into()).expect("a place given out")
    }

    fn shared(&self) {
        if !self.latch.try_shared() {
            let _wait = blocking(WaitEvent::ProcArray, Object::NONE);
            self.latch.shared();
        }
    }

    fn exclusive(&self) {
        if !self.latch.try_exclusive() {
            let _wait = blocking(WaitEvent::ProcArray, Object::NONE);
            self.latch.exclusive();
        }
    }
}

impl Form for Walk {
    fn enter(&self) -> SessionIndex {
        let mut free = self.free.lock();
        // The lowest, so that what is walked becomes shorter again when many have gone.
        if let Some(place) = free.pop_first() {
            return place;
        }
        // A walk under way may miss the new place: nothing runs there whose id it asks for.
        let place = self.high.load(PlainOrdering::Relaxed);
        self.xids.at(place.into());
        self.subs.at(place.into());
        self.high.store(place + 1, PlainOrdering::Release);
        place
    }

    fn leave(&self, place: SessionIndex) {
        // Not if its transaction never ended (the log failed while it waited for its commit): then
        // it runs until the restart.
        if self.xid_of(place).load(Ordering::Relaxed) != NO_XID {
            return;
        }
        let mut free = self.free.lock();
        free.insert(place);
        let mut high = self.high.load(PlainOrdering::Relaxed);
        while high > 0 && free.remove(&(high - 1)) {
            high -= 1;
        }
        self.high.store(high, PlainOrdering::Release);
    }

    fn begin(&self, place: SessionIndex, part: IdPurpose, give: impl FnOnce() -> Xid) -> Xid {
        self.giving.exclusive();
        let xid = give();
        match part {
            // Release: pairs with the walk. What matters comes before it anyway: the latch is
            // between an id that has ended and the walk that counts it, and `giving` between that
            // id and all below it.
            IdPurpose::Top => self.xid_of(place).store(xid.0, Ordering::Release),
            IdPurpose::Sub => {
                let subs = self.subs_of(place);
                subs.xids.lock().push(xid.0);
                subs.count.fetch_add(1, Ordering::Release);
            }
        }
        self.giving.unlock_exclusive();
        xid
    }

    fn end<R>(
        &self,
        place: SessionIndex,
        part: IdPurpose,
        xids: &[Xid],
        stand: impl FnOnce() -> R,
    ) -> R {
        self.exclusive();
        let result = stand();
        let last = xids.iter().map(|xid| xid.0).max().unwrap_or(0);
        if last > self.completed.load(Ordering::Relaxed) {
            self.completed.store(last, Ordering::Relaxed);
        }
        let subs = self.subs_of(place);
        if subs.count.load(Ordering::Relaxed) > 0 {
            let mut running = subs.xids.lock();
            match part {
                IdPurpose::Top => running.clear(),
                IdPurpose::Sub => running.retain(|sub| !xids.contains(&Xid(*sub))),
            }
            subs.count.store(running.len() as u32, Ordering::Relaxed);
        }
        if part == IdPurpose::Top {
            self.xid_of(place).store(NO_XID, Ordering::Relaxed);
        }
        self.latch.unlock_exclusive();
        result
    }

    fn hand_over(&self, from: SessionIndex, to: SessionIndex) {
        self.exclusive();
        let xid = self.xid_of(from).load(Ordering::Relaxed);
        self.xid_of(to).store(xid, Ordering::Relaxed);
        let running = std::mem::take(&mut *self.subs_of(from).xids.lock());
        self.subs_of(from).count.store(0, Ordering::Relaxed);
        let subs = self.subs_of(to);
        subs.count.store(running.len() as u32, Ordering::Relaxed);
        *subs.xids.lock() = running;
        self.xid_of(from).store(NO_XID, Ordering::Relaxed);
        self.latch.unlock_exclusive();
    }

    fn look(&self, set: &mut RunningSet, _next: impl Fn() -> Xid) {
        let list = set.restart_list();
        self.shared();
        let to = self.completed.load(Ordering::Relaxed) + 1;
        let mut from = to;
        let high = self.high.load(PlainOrdering::Acquire);
        let mut place = 0;
        for words in self.xids.pieces(high.into()) {
            for (i, word) in words.iter().enumerate() {
                let xid = word.load(Ordering::Acquire);
                if xid == NO_XID || xid >= to {
                    continue;
                }
                from = from.min(xid);
                list.push(xid);
                let subs = self.subs_of((place + i) as SessionIndex);
                if subs.count.load(Ordering::Acquire) > 0 {
                    list.extend(subs.xids.lock().iter().filter(|sub| **sub < to));
                }
            }
            place += words.len();
        }
        self.latch.unlock_shared();
        (set.from, set.to) = (from, to);
    }
}
