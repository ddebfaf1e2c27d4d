//! How every transaction that ever was stands: in progress, committed (and when), aborted.
//!
//! ```text
//!  xid:   0        16384      32768      49152            next
//!         |  old    |  old     |  recent  |  recent  | … ──┘
//!            bits      "all       one atomic word per xid
//!                    committed"
//! ```
//!
//! A *recent* segment has one word per xid with its commit's sequence number. When every xid in it
//! has ended and every snapshot sees its commits, the segment is reduced to an *old* one: a list of
//! the aborted, or a bit for each where they are many, and its words are used again for a later
//! segment.
//!
//! One word's states:
//!
//! ```text
//!   IN_PROGRESS ──► LOGGED ──► COMMITTING ──► COMMITTED(csn)
//!    │    ▲  │        (its commit record is in the log)
//!    │    │  └──► SUB(top): stands as its top transaction does; then COMMITTED(csn) or ABORTED
//!    │    └ all words begin here
//!    └──► ABORTED
//! ```
//!
//! Only the transaction itself writes its words. `COMMITTING` lasts from before the sequence number
//! is taken until it is stored, some ten instructions: a reader that meets it waits for the number,
//! because whether its snapshot includes the commit is not known before. A reader that meets an
//! earlier state knows that the number will be greater than its snapshot's (the snapshot's was read
//! before the state was, see [`crate::snapshot`]).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use throng_access::XidStatus;
use throng_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use throng_sync::lock::Mutex;
use throng_types::{Csn, Result, Xid, interrupt};

use crate::growvec::GrowVec;

/// Xids in a segment. Few under test, so that segments come and go all the time.
pub(crate) const SEGMENT: u64 = if cfg!(test) { 64 } else { 16384 };
pub(crate) const WORDS: usize = (SEGMENT / 64) as usize;
const _: () = assert!(
    SEGMENT.is_multiple_of(64) && SEGMENT <= 65536,
    "aborted xids are listed as u16 offsets"
);

/// The sequence number of every commit in an old segment: before all snapshots.
pub const CSN_OLD: Csn = Csn(0);

const TAG_BITS: u32 = 3;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;
const IN_PROGRESS: u64 = 0;
const ABORTED: u64 = 1;
const LOGGED: u64 = 2;
const COMMITTING: u64 = 3;
const COMMITTED: u64 = 4;
const SUB: u64 = 5;

/// How a transaction stands, as a reader needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Running; `top` is the transaction it is part of (itself, unless it is a subtransaction).
    InProgress {
        top: Xid,
    },
    Committed(Csn),
    Aborted,
}

impl From<Standing> for XidStatus {
    fn from(standing: Standing) -> XidStatus {
        match standing {
            Standing::InProgress { .. } => XidStatus::InProgress,
            Standing::Committed(csn) => XidStatus::Committed(csn),
            Standing::Aborted => XidStatus::Aborted,
        }
    }
}

/// The status of every xid.
pub struct StatusLog {
    segments: GrowVec<Slot>,
    /// Word arrays: made once, used for one segment after another.
    arrays: GrowVec<Words>,
    pool: Mutex<ArrayPool>,
    /// The lowest segment that may still be recent: where trimming starts to look.
    trim_from: AtomicU64,
}

#[derive(Default)]
struct Slot {
    /// The segment's word array in `arrays`, plus one; 0: none.
    array: AtomicU32,
    old: OnceLock<OldSegment>,
    /// Words before this one have been seen to be old.
    scanned: AtomicU32,
}

struct Words(Box<[AtomicU64]>);

impl Default for Words {
    fn default() -> Words {
        Words((0..SEGMENT).map(|_| AtomicU64::new(IN_PROGRESS)).collect())
    }
}

#[derive(Default)]
struct ArrayPool {
    free: Vec<u32>,
    made: u32,
}

/// A segment whose transactions have all ended and whose commits everyone sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OldSegment {
    /// These did not commit; the rest did.
    Aborted(Box<[u16]>),
    /// A bit for each that committed.
    Bits(Box<[u64; WORDS]>),
}

impl OldSegment {
    /// From a bit for each that committed, in the smaller form.
    pub(crate) fn from_bits(bits: &[u64; WORDS]) -> OldSegment {
        let committed: u32 = bits.iter().map(|w| w.count_ones()).sum();
        let aborted = SEGMENT as usize - committed as usize;
        if aborted * 2 > WORDS * 8 {
            return OldSegment::Bits(Box::new(*bits));
        }
        OldSegment::Aborted(
            (0..SEGMENT as usize)
                .filter(|i| bits[i / 64] >> (i % 64) & 1 == 0)
                .map(|i| i as u16)
                .collect(),
        )
    }

    pub(crate) fn to_bits(&self) -> [u64; WORDS] {
        match self {
            OldSegment::Bits(bits) => **bits,
            OldSegment::Aborted(list) => {
                let mut bits = [u64::MAX; WORDS];
                for &i in list {
                    bits[i as usize / 64] &= !(1 << (i % 64));
                }
                bits
            }
        }
    }

    fn committed(&self, offset: usize) -> bool {
        match self {
            OldSegment::Bits(bits) => bits[offset / 64] >> (offset % 64) & 1 == 1,
            OldSegment::Aborted(list) => list.binary_search(&(offset as u16)).is_err(),
        }
    }
}

impl StatusLog {
    /// With nothing but `old` segments, numbered from 0 without a gap.
    pub(crate) fn new(old: impl IntoIterator<Item = OldSegment>) -> StatusLog {
        let log = StatusLog {
            segments: GrowVec::new(),
            arrays: GrowVec::new(),
            pool: Mutex::default(),
            trim_from: AtomicU64::new(0),
        };
        let mut count = 0;
        for (n, segment) in old.into_iter().enumerate() {
            let fresh = log.segments.at(n as u64).old.set(segment).is_ok();
            assert!(fresh, "an old segment is set once");
            count = n as u64 + 1;
        }
        log.trim_from.store(count, Ordering::Relaxed);
        if count == 0 {
            // The numbers that no transaction gets must not keep the first segment.
            for x in 0..Xid::FIRST.0 {
                log.begin(Xid(x));
                log.abort(Xid(x));
            }
        }
        log
    }

    /// Makes room for `xid`'s word. To be called before anybody may see the xid.
    pub(crate) fn begin(&self, xid: Xid) {
        let slot = self.segments.at(xid.0 / SEGMENT);
        if slot.array.load(Ordering::Acquire) == 0 {
            self.add_array(slot);
        }
    }

    #[cold]
    fn add_array(&self, slot: &Slot) {
        let mut pool = self.pool.lock();
        if slot.array.load(Ordering::Acquire) != 0 {
            return;
        }
        assert!(slot.old.get().is_none(), "an xid was given out twice");
        let index = pool.free.pop().unwrap_or_else(|| {
            pool.made += 1;
            pool.made - 1
        });
        self.arrays.at(index as u64);
        slot.array.store(index + 1, Ordering::Release);
    }

    /// The word of an xid that has not ended, written by its own transaction only.
    fn word(&self, xid: Xid) -> &AtomicU64 {
        let slot = self
            .segments
            .get(xid.0 / SEGMENT)
            .expect("a running xid has a segment");
        let array = slot.array.load(Ordering::Acquire);
        assert!(array != 0, "a running xid keeps its segment");
        &self.arrays.get(array as u64 - 1).expect("arrays stay").0[(xid.0 % SEGMENT) as usize]
    }

    /// `sub` stands as `top` does from now on.
    pub(crate) fn set_sub(&self, sub: Xid, top: Xid) {
        debug_assert!(top < sub);
        self.word(sub)
            .store(top.0 << TAG_BITS | SUB, Ordering::Release);
    }

    /// The transaction's commit record is in the log: a checkpoint must count it as committed.
    pub(crate) fn set_logged(&self, xid: Xid) {
        self.word(xid).store(LOGGED, Ordering::Release);
    }

    /// Commits `xid` and its `subs` at the number that `next` gives out.
    pub(crate) fn commit(&self, xid: Xid, subs: &[Xid], next: impl FnOnce() -> Csn) -> Csn {
        let word = self.word(xid);
        // Before the number is taken: who reads the clock after `next` has moved it sees this or
        // the number.
        word.store(COMMITTING, Ordering::SeqCst);
        let csn = next();
        let done = csn.0 << TAG_BITS | COMMITTED;
        word.store(done, Ordering::SeqCst);
        for &sub in subs {
            self.word(sub).store(done, Ordering::SeqCst);
        }
        csn
    }

    /// It committed before the server started.
    fn found_committed(&self, xid: Xid) {
        let word = CSN_OLD.0 << TAG_BITS | COMMITTED;
        self.word(xid).store(word, Ordering::Release);
    }

    /// SeqCst, so that a waiter either sees it or is seen by the one who ends (see
    /// [`crate::lock::xid`]).
    pub(crate) fn abort(&self, xid: Xid) {
        self.word(xid).store(ABORTED, Ordering::SeqCst);
    }

    /// How `xid` stands. Any number may be asked for: one never given out is in progress.
    #[inline]
    pub fn standing(&self, xid: Xid) -> Standing {
        if xid <= Xid::FROZEN {
            return if xid == Xid::FROZEN {
                Standing::Committed(CSN_OLD)
            } else {
                Standing::Aborted
            };
        }
        let mut at = xid;
        loop {
            match self.read(at) {
                Found::Old(true) => return Standing::Committed(CSN_OLD),
                Found::Old(false) => return Standing::Aborted,
                Found::Word(word) => match word & TAG_MASK {
                    ABORTED => return Standing::Aborted,
                    COMMITTED => return Standing::Committed(Csn(word >> TAG_BITS)),
                    COMMITTING => self.wait_out(at),
                    SUB => at = Xid(word >> TAG_BITS),
                    _ => return Standing::InProgress { top: at },
                },
                Found::Never => return Standing::InProgress { top: at },
            }
        }
    }

    /// The transactions below `next` whose work a snapshot with that number does not show although
    /// it may still come: those that run, and those that committed after it. Subtransactions that
    /// have not ended are not told. Not for a snapshot before the horizon.
    pub(crate) fn unseen(&self, next: Xid, csn: Csn) -> Result<Vec<Xid>> {
        let first = self.trim_from.load(Ordering::Relaxed) * SEGMENT;
        let mut unseen = Vec::new();
        for xid in (first..next.0).map(Xid) {
            interrupt::poll()?;
            let is_unseen = match self.standing(xid) {
                Standing::InProgress { top } => top == xid,
                Standing::Committed(at) => at > csn,
                Standing::Aborted => false,
            };
            unseen.extend(is_unseen.then_some(xid));
        }
        Ok(unseen)
    }

    /// Whether `xid` is `top` or a subtransaction of it that has not ended.
    #[inline]
    pub fn is_part_of(&self, xid: Xid, top: Xid) -> bool {
        xid == top
            || (xid > top
                && matches!(self.read(xid), Found::Word(w) if w == top.0 << TAG_BITS | SUB))
    }

    #[inline]
    fn read(&self, xid: Xid) -> Found {
        let Some(slot) = self.segments.get(xid.0 / SEGMENT) else {
            return Found::Never;
        };
        let offset = (xid.0 % SEGMENT) as usize;
        loop {
            let array = slot.array.load(Ordering::Acquire);
            if array == 0 {
                return slot
                    .old
                    .get()
                    .map_or(Found::Never, |old| Found::Old(old.committed(offset)));
            }
            // Acquire: a word written after the array went to another segment brings with it that
            // `slot.array` was cleared before, so the second look cannot miss it.
            let word = self.arrays.get(array as u64 - 1).expect("arrays stay").0[offset]
                .load(Ordering::Acquire);
            if slot.array.load(Ordering::Relaxed) == array {
                return Found::Word(word);
            }
        }
    }

    #[cold]
    fn wait_out(&self, xid: Xid) {
        let mut tries = 0u32;
        while matches!(self.read(xid), Found::Word(COMMITTING)) {
            tries += 1;
            if tries < 64 {
                throng_sync::hint::spin_loop();
            } else {
                // The committer was put off its core between two instructions: let it on.
                throng_sync::thread::yield_now();
            }
        }
    }

    /// Reduces the segments below `next` whose commits are all at or before `horizon`. One caller
    /// at a time.
    pub(crate) fn trim(&self, next: Xid, horizon: Csn) {
        let from = self.trim_from.load(Ordering::Relaxed);
        let mut gapless = true;
        for n in from..next.0 / SEGMENT {
            let slot = self.segments.at(n);
            if slot.old.get().is_none() && !self.reduce(slot, horizon) {
                gapless = false;
            }
            if gapless {
                self.trim_from.store(n + 1, Ordering::Relaxed);
            }
        }
    }

    fn reduce(&self, slot: &Slot, horizon: Csn) -> bool {
        let array = slot.array.load(Ordering::Acquire);
        if array == 0 {
            return false;
        }
        let words = &self.arrays.get(array as u64 - 1).expect("arrays stay").0;
        let is_old = |word: u64| match word & TAG_MASK {
            ABORTED => true,
            COMMITTED => word >> TAG_BITS <= horizon.0,
            _ => false,
        };
        let mut at = slot.scanned.load(Ordering::Relaxed) as usize;
        while at < words.len() && is_old(words[at].load(Ordering::Acquire)) {
            at += 1;
        }
        slot.scanned.store(at as u32, Ordering::Relaxed);
        if at < words.len() {
            return false;
        }
        let mut bits = [0u64; WORDS];
        for (i, word) in words.iter().enumerate() {
            bits[i / 64] |=
                u64::from(word.load(Ordering::Acquire) & TAG_MASK == COMMITTED) << (i % 64);
        }
        let fresh = slot.old.set(OldSegment::from_bits(&bits)).is_ok();
        assert!(fresh, "a segment is reduced once");
        slot.array.store(0, Ordering::Release);
        for word in words {
            // Release, and after the clearing above: see `read`.
            word.store(IN_PROGRESS, Ordering::Release);
        }
        self.pool.lock().free.push(array - 1);
        true
    }

    /// A segment's commits for the disk: one bit for each xid that has committed or whose commit
    /// record is in the log.
    pub(crate) fn export(&self, segment: u64) -> Exported {
        let Some(slot) = self.segments.get(segment) else {
            return Exported::Open(OldSegment::from_bits(&[0; WORDS]));
        };
        let base = segment * SEGMENT;
        if let Some(old) = slot.old.get() {
            return Exported::Final(old.clone());
        }
        let mut bits = [0u64; WORDS];
        for i in 0..SEGMENT {
            bits[i as usize / 64] |= u64::from(self.is_logged(Xid(base + i))) << (i % 64);
        }
        Exported::Open(OldSegment::from_bits(&bits))
    }

    fn is_logged(&self, mut xid: Xid) -> bool {
        loop {
            match self.read(xid) {
                Found::Old(committed) => return committed,
                Found::Never => return false,
                Found::Word(word) => match word & TAG_MASK {
                    SUB => xid = Xid(word >> TAG_BITS),
                    tag => return matches!(tag, LOGGED | COMMITTING | COMMITTED),
                },
            }
        }
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    fn is_old(&self, xid: Xid) -> bool {
        matches!(self.read(xid), Found::Old(_))
    }
}

enum Found {
    Old(bool),
    Word(u64),
    Never,
}

/// What a checkpoint writes of a segment.
pub(crate) enum Exported {
    /// Will never change again.
    Final(OldSegment),
    Open(OldSegment),
}

/// The status of all xids as recovery puts it together: what the checkpoint saved, and the commits
/// in the log since.
#[derive(Clone, Default)]
pub(crate) struct StatusBuilder {
    saved: BTreeMap<u64, OldSegment>,
    touched: BTreeMap<u64, Box<[u64; WORDS]>>,
}

impl StatusBuilder {
    pub(crate) fn load(&mut self, segment: u64, saved: OldSegment) {
        self.saved.insert(segment, saved);
    }

    pub(crate) fn commit(&mut self, xid: Xid) {
        let n = xid.0 / SEGMENT;
        let saved = &self.saved;
        let bits = self.touched.entry(n).or_insert_with(|| {
            Box::new(
                saved
                    .get(&n)
                    .map_or([0; WORDS], |segment| segment.to_bits()),
            )
        });
        let i = xid.0 % SEGMENT;
        bits[i as usize / 64] |= 1 << (i % 64);
    }

    /// The first segment that more is known of than was saved.
    pub(crate) fn first_touched(&self) -> Option<u64> {
        self.touched.first_key_value().map(|(n, _)| *n)
    }

    /// Whether `xid` is known to have committed.
    pub(crate) fn committed(&self, xid: Xid) -> bool {
        let (n, i) = (xid.0 / SEGMENT, (xid.0 % SEGMENT) as usize);
        match self.touched.get(&n) {
            Some(bits) => bits[i / 64] >> (i % 64) & 1 == 1,
            None => self
                .saved
                .get(&n)
                .is_some_and(|segment| segment.committed(i)),
        }
    }

    /// Every xid below `next` that has not committed is aborted. Answers the log and the first xid
    /// to give out: the next segment's first, so that old and new never share one.
    pub(crate) fn finish(self, next: Xid) -> (StatusLog, Xid) {
        self.finish_beside(next, &[])
    }

    /// The same, where some go on, each as part of its top transaction: themselves, or those whose
    /// subtransactions they are.
    pub(crate) fn finish_beside(mut self, next: Xid, running: &[(Xid, Xid)]) -> (StatusLog, Xid) {
        for (n, bits) in std::mem::take(&mut self.touched) {
            self.saved.insert(n, OldSegment::from_bits(&bits));
        }
        let last = self.saved.last_key_value().map_or(0, |(n, _)| n + 1);
        let segments = if next <= Xid::FIRST {
            last
        } else {
            next.0.div_ceil(SEGMENT).max(last)
        };
        // Segments from the first of those on are not old yet.
        let recent = running.iter().map(|(xid, _)| xid.0 / SEGMENT).min();
        let recent = recent.map_or(segments, |first| first.min(segments));
        let mut saved = std::mem::take(&mut self.saved);
        let mut of = |n| {
            let segment = saved.remove(&n);
            segment.unwrap_or(OldSegment::from_bits(&[0; WORDS]))
        };
        let log = StatusLog::new((0..recent).map(&mut of));
        let running: std::collections::HashMap<Xid, Xid> = running.iter().copied().collect();
        for n in recent..segments {
            let segment = of(n);
            for offset in 0..SEGMENT {
                let xid = Xid(n * SEGMENT + offset);
                log.begin(xid);
                match running.get(&xid) {
                    Some(top) if *top != xid => log.set_sub(xid, *top),
                    Some(_) => {}
                    None if segment.committed(offset as usize) => log.found_committed(xid),
                    None => log.abort(xid),
                }
            }
        }
        (log, Xid((segments * SEGMENT).max(Xid::FIRST.0)))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn log() -> StatusLog {
        StatusLog::new([])
    }

    #[test]
    fn a_transaction_passes_through_its_states() {
        let log = log();
        let xid = Xid(5);
        assert_eq!(
            log.standing(xid),
            Standing::InProgress { top: xid },
            "never begun"
        );
        log.begin(xid);
        assert_eq!(log.standing(xid), Standing::InProgress { top: xid });
        log.set_logged(xid);
        assert_eq!(
            log.standing(xid),
            Standing::InProgress { top: xid },
            "a reader does not see the record"
        );
        assert_eq!(log.commit(xid, &[], || Csn(9)), Csn(9));
        assert_eq!(log.standing(xid), Standing::Committed(Csn(9)));
        log.begin(Xid(6));
        log.abort(Xid(6));
        assert_eq!(log.standing(Xid(6)), Standing::Aborted);
        assert_eq!(log.standing(Xid::FROZEN), Standing::Committed(CSN_OLD));
        assert_eq!(log.standing(Xid::NONE), Standing::Aborted);
        assert_eq!(
            log.standing(Xid(u64::MAX)),
            Standing::InProgress { top: Xid(u64::MAX) },
            "a torn number does no harm"
        );
    }

    #[test]
    fn a_subtransaction_stands_as_its_top_does() {
        let log = log();
        for x in 10..14 {
            log.begin(Xid(x));
        }
        for x in 11..14 {
            log.set_sub(Xid(x), Xid(10));
        }
        assert_eq!(log.standing(Xid(12)), Standing::InProgress { top: Xid(10) });
        assert!(log.is_part_of(Xid(12), Xid(10)) && log.is_part_of(Xid(10), Xid(10)));
        log.abort(Xid(12));
        assert!(!log.is_part_of(Xid(12), Xid(10)));
        log.commit(Xid(10), &[Xid(11), Xid(13)], || Csn(4));
        assert_eq!(log.standing(Xid(11)), Standing::Committed(Csn(4)));
        assert_eq!(log.standing(Xid(12)), Standing::Aborted);
        assert_eq!(log.standing(Xid(13)), Standing::Committed(Csn(4)));
    }

    #[test]
    fn segments_become_old_once_everyone_sees_them_and_their_words_are_used_again() {
        let log = log();
        let mut csn = 0;
        let end = |log: &StatusLog, x: u64, csn: &mut u64| {
            log.begin(Xid(x));
            if x.is_multiple_of(5) {
                log.abort(Xid(x));
            } else {
                *csn += 1;
                log.commit(Xid(x), &[], || Csn(*csn));
            }
        };
        for x in 0..SEGMENT * 4 {
            end(&log, x, &mut csn);
        }
        let half = csn / 2;
        log.trim(Xid(SEGMENT * 4), Csn(half));
        assert!(log.is_old(Xid(SEGMENT)) && !log.is_old(Xid(SEGMENT * 3)));
        log.trim(Xid(SEGMENT * 4), Csn(csn));
        assert!(log.is_old(Xid(SEGMENT * 3)));
        for x in SEGMENT * 4..SEGMENT * 8 {
            end(&log, x, &mut csn);
        }
        assert_eq!(log.pool.lock().made, 4, "four arrays serve eight segments");
        for x in 2..SEGMENT * 8 {
            let aborted = log.standing(Xid(x)) == Standing::Aborted;
            assert_eq!(aborted, x % 5 == 0, "xid {x}");
        }
    }

    #[test]
    fn one_running_transaction_keeps_only_its_own_segment() {
        let log = log();
        for x in 0..SEGMENT * 3 {
            log.begin(Xid(x));
            if x != 70 {
                log.commit(Xid(x), &[], || Csn(x + 1));
            }
        }
        log.trim(Xid(SEGMENT * 3), Csn(SEGMENT * 3));
        assert!(log.is_old(Xid(5)) && !log.is_old(Xid(71)) && log.is_old(Xid(SEGMENT * 2)));
        assert_eq!(log.standing(Xid(70)), Standing::InProgress { top: Xid(70) });
        log.abort(Xid(70));
        log.trim(Xid(SEGMENT * 3), Csn(SEGMENT * 3));
        assert!(log.is_old(Xid(71)));
    }

    #[test]
    fn what_is_saved_and_logged_is_what_is_found_after_a_restart() {
        let log = log();
        for x in 3..SEGMENT * 2 {
            log.begin(Xid(x));
        }
        log.commit(Xid(3), &[], || Csn(1));
        log.abort(Xid(4));
        log.set_logged(Xid(6));
        log.set_sub(Xid(7), Xid(6));
        let mut builder = StatusBuilder::default();
        for n in 0..2 {
            match log.export(n) {
                Exported::Final(s) | Exported::Open(s) => builder.load(n, s),
            }
        }
        builder.commit(Xid(SEGMENT + 1));
        assert!(builder.committed(Xid(3)) && !builder.committed(Xid(5)));
        let (log, next) = builder.finish(Xid(SEGMENT + 2));
        assert_eq!(next, Xid(SEGMENT * 2));
        for x in 3..SEGMENT * 2 {
            let committed = [3, 6, 7, SEGMENT + 1].contains(&x);
            assert_eq!(
                log.standing(Xid(x)) == Standing::Committed(CSN_OLD),
                committed,
                "xid {x}"
            );
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    /// A snapshot sees a transaction and its subtransaction both or not at all, and sticks to it.
    #[test]
    fn loom_a_commit_and_a_snapshot() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let log = Arc::new(StatusLog::new([]));
            let last = Arc::new(AtomicU64::new(0));
            log.begin(Xid(3));
            log.begin(Xid(4));
            log.set_sub(Xid(4), Xid(3));
            let committer = {
                let (log, last) = (log.clone(), last.clone());
                loom::thread::spawn(move || {
                    log.commit(Xid(3), &[Xid(4)], || {
                        Csn(last.fetch_add(1, Ordering::AcqRel) + 1)
                    });
                })
            };
            let snapshot = Csn(last.load(Ordering::Acquire));
            let sees =
                |xid| matches!(log.standing(xid), Standing::Committed(csn) if csn <= snapshot);
            let (sub, top) = (sees(Xid(4)), sees(Xid(3)));
            assert_eq!(sub, top, "half a transaction is seen");
            committer.join().unwrap();
            assert_eq!(sees(Xid(3)), top, "a snapshot changes its mind");
            assert_eq!(sees(Xid(4)), sub, "a snapshot changes its mind");
        });
    }
}
