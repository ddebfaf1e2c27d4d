//! The order of commits, and how far back anybody still looks.
//!
//! ```text
//!   commits:   1   2   3   4   5   6   7   8   9
//!                      ▲       ▲           ▲   ▲
//!                horizon   oldest      durable  last
//!                          snapshot
//! ```
//!
//! A snapshot is the `last` number, read once: it sees the commits up to it. Nobody is asked and
//! nobody is walked. What a snapshot owes in return is to publish its number in its session's slot,
//! so that the horizon stays at or below it. Taking one and moving the horizon meet like this
//! (Dekker's way: each writes, then looks at the other's):
//!
//! ```text
//!   a reader                                 the one who advances
//!   1 S = last                               1 C = last
//!   2 slot = S                               2 proposed = C
//!     ── fence ──                              ── fence ──
//!   3 if proposed > S: again from 1          3 horizon = min(C, every slot)
//! ```
//!
//! If the reader does not see the proposal, the one who advances sees the slot; so no snapshot is
//! ever below the horizon. The slots are walked by a background thread a few times in a hundred
//! milliseconds, and by a transaction only where a page is full and so many commits have come since
//! the last walk that it costs less than a line read for each.
//!
//! Between a long query's snapshot and those of everybody else lie commits that no snapshot falls
//! into ([`Gaps`]). The same walk finds them, by the same protocol: a snapshot that it does not
//! meet is of its candidate or later, so what it finds empty stays so. For that a slot tells two
//! things more. It is marked as long as its session may ask for what came after its number, too:
//! because it [follows](Clock::publish) rows to their newest versions, or because it holds further
//! snapshots, which are not in the slot. Where there is a mark nothing after it is taken for empty.
//!
//! The horizon also stays below every commit whose record is not on disk yet: a bit that was set on
//! a page by it, which nothing logs, can reach the disk, and the commit it relied on must then be
//! there too. What is logged need not wait for that, for its record comes after the commit's:
//! pruning goes by [`Clock::prunable`], so that commits that nobody waits for keep no versions.

use std::collections::VecDeque;

use throng_access::Gaps;
use throng_sync::CachePadded;
use throng_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use throng_sync::lock::Mutex;
use throng_types::{Csn, Lsn};

use crate::growvec::GrowVec;

/// A slot's value when its session has no snapshot.
const NO_SNAPSHOT: u64 = u64::MAX;

/// A slot's value: the oldest snapshot's number, and whether what came after it is asked for too.
#[inline]
fn held(oldest: u64, and_later: bool) -> u64 {
    oldest << 1 | u64::from(and_later)
}

/// Slots that share a cache-line pair; all of them belong to sessions of one thread.
const CHUNK: usize = 16;
const _: () = assert!(
    CHUNK * 8 == 128,
    "a chunk fills two cache lines, which processors fetch together"
);

#[repr(align(128))]
pub(crate) struct Chunk([AtomicU64; CHUNK]);

impl Default for Chunk {
    fn default() -> Chunk {
        Chunk(std::array::from_fn(|_| AtomicU64::new(NO_SNAPSHOT)))
    }
}

/// Commit numbers and the horizon. See the module's header.
pub struct Clock {
    line: Line,
    horizon: Horizon,
    slots: GrowVec<Chunk>,
    /// How many are in use.
    chunks: AtomicU64,
    gaps: Mutex<Gaps>,
    has_gaps: AtomicBool,
    /// Of the horizons and the gaps, and rollbacks: see [`Clock::moves`].
    moves: CachePadded<AtomicU32>,
    free: Mutex<FreeSlots>,
    undurable: Mutex<VecDeque<(Csn, Lsn)>>,
}

/// Written by every commit.
#[repr(align(128))]
struct Line {
    last: AtomicU64,
}

/// Written rarely, read by every snapshot.
#[repr(align(128))]
struct Horizon {
    proposed: AtomicU64,
    /// Seen by all, on disk or not.
    prunable: AtomicU64,
    usable: AtomicU64,
    /// Commits up to here are on disk.
    durable: AtomicU64,
}

#[derive(Default)]
struct FreeSlots {
    /// By thread: slots of chunks that the thread's sessions have to themselves.
    by_thread: Vec<Vec<u32>>,
}

/// A session's place in the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotId {
    index: u32,
    thread: u32,
}

impl SlotId {
    /// No two sessions have one at the same time.
    pub(crate) fn number(self) -> u32 {
        self.index
    }
}

/// The first number a commit gets.
const FIRST: u64 = 1;

impl Default for Clock {
    fn default() -> Clock {
        let start = FIRST - 1;
        Clock {
            line: Line {
                last: AtomicU64::new(start),
            },
            horizon: Horizon {
                proposed: AtomicU64::new(start),
                prunable: AtomicU64::new(start),
                usable: AtomicU64::new(start),
                durable: AtomicU64::new(start),
            },
            slots: GrowVec::new(),
            chunks: AtomicU64::new(0),
            gaps: Mutex::default(),
            has_gaps: AtomicBool::new(false),
            moves: CachePadded::new(AtomicU32::new(1)),
            free: Mutex::default(),
            undurable: Mutex::default(),
        }
    }
}

impl Clock {
    /// The latest commit's number.
    #[inline]
    pub fn last(&self) -> Csn {
        Csn(self.line.last.load(Ordering::Acquire))
    }

    /// A commit's number. To be called with the commit's status at `COMMITTING`.
    #[inline]
    pub(crate) fn tick(&self) -> Csn {
        // AcqRel: who reads this number also sees the COMMITTING stored before.
        Csn(self.line.last.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Commits at or before this are seen by every snapshot there is or will be, and are on disk.
    #[inline]
    pub fn horizon(&self) -> Csn {
        Csn(self.horizon.usable.load(Ordering::Acquire))
    }

    /// Commits at or before this are seen by every snapshot there is or will be.
    #[inline]
    pub(crate) fn prunable(&self) -> Csn {
        Csn(self.horizon.prunable.load(Ordering::Acquire))
    }

    /// Where no snapshot is or will be, after [`prunable`](Self::prunable).
    #[inline]
    pub(crate) fn gaps(&self) -> Gaps {
        match self.has_gaps.load(Ordering::Relaxed) {
            true => *self.gaps.lock(),
            false => Gaps::default(),
        }
    }

    pub(crate) fn add_slot(&self, thread: usize) -> SlotId {
        let mut free = self.free.lock();
        if free.by_thread.len() <= thread {
            free.by_thread.resize_with(thread + 1, Vec::new);
        }
        if free.by_thread[thread].is_empty() {
            let chunk = self.chunks.load(Ordering::Relaxed);
            self.slots.at(chunk);
            // Release: who finds the number finds the chunk. Whoever adds one holds the list of
            // free slots.
            self.chunks.store(chunk + 1, Ordering::Release);
            let first = chunk as u32 * CHUNK as u32;
            free.by_thread[thread].extend((first..first + CHUNK as u32).rev());
        }
        let index = free.by_thread[thread].pop().expect("filled above");
        SlotId {
            index,
            thread: thread as u32,
        }
    }

    pub(crate) fn remove_slot(&self, slot: SlotId) {
        self.clear(slot);
        self.free.lock().by_thread[slot.thread as usize].push(slot.index);
    }

    #[inline]
    fn slot(&self, slot: SlotId) -> &AtomicU64 {
        let i = slot.index as usize;
        &self
            .slots
            .get((i / CHUNK) as u64)
            .expect("a slot given out is there")
            .0[i % CHUNK]
    }

    /// A new snapshot's number, published in the slot, marked: whoever has it may follow what it
    /// sees to the newest versions.
    #[inline]
    pub(crate) fn publish(&self, slot: SlotId) -> Csn {
        Csn(publish(
            self.slot(slot),
            &self.line.last,
            &self.horizon.proposed,
        ))
    }

    /// A further snapshot's number, of a session whose `oldest` is in the slot.
    #[inline]
    pub(crate) fn publish_another(&self, slot: SlotId, oldest: Csn) -> Csn {
        Csn(publish_another(
            self.slot(slot),
            oldest.0,
            &self.line.last,
            &self.horizon.proposed,
        ))
    }

    /// The slot goes on for an older or newer snapshot that the session still holds, marked or not.
    /// A mark that was not there before counts only for what is committed from here on.
    #[inline]
    pub(crate) fn republish(&self, slot: SlotId, oldest: Csn, and_later: bool) {
        // Release: the reads made with the snapshot that ends here are done before the horizon can
        // pass it.
        self.slot(slot)
            .store(held(oldest.0, and_later), Ordering::Release);
    }

    #[inline]
    pub(crate) fn clear(&self, slot: SlotId) {
        self.slot(slot).store(NO_SNAPSHOT, Ordering::Release);
    }

    /// Notes how far the log is, and counts commits as durable whose records it has on disk.
    ///
    /// `reserved` is read after `last`: every commit up to `last` had its record in the log before
    /// it took its number, so once the log is on disk up to there, so are they.
    pub(crate) fn note_log(&self, reserved: impl FnOnce() -> Lsn, flushed: Lsn) {
        let mut waiting = self.undurable.lock();
        let last = self.last();
        if waiting.back().is_none_or(|&(csn, _)| csn < last)
            && self.horizon.durable.load(Ordering::Relaxed) < last.0
        {
            waiting.push_back((last, reserved()));
        }
        while let Some(&(csn, lsn)) = waiting.front()
            && lsn <= flushed
        {
            self.note_durable(csn);
            waiting.pop_front();
        }
    }

    /// The commits up to here are on disk.
    pub(crate) fn note_durable(&self, csn: Csn) {
        self.horizon.durable.fetch_max(csn.0, Ordering::Relaxed);
    }

    /// Commits at or before this are on disk, and perhaps some after it, too.
    #[inline]
    pub(crate) fn durable(&self) -> Csn {
        Csn(self.horizon.durable.load(Ordering::Relaxed))
    }

    /// Whether every commit is on disk, as far as has been noted.
    pub(crate) fn is_durable(&self) -> bool {
        self.durable() == self.last()
    }

    /// Whether more commits have come since the slots were last walked than there are chunks of
    /// them.
    pub(crate) fn is_worth_advancing(&self) -> bool {
        let walked = self.horizon.proposed.load(Ordering::Relaxed);
        self.last().0.saturating_sub(walked) > self.chunks.load(Ordering::Relaxed)
    }

    /// Whether the horizon is where it can be, if nobody holds a snapshot.
    pub(crate) fn is_settled(&self) -> bool {
        self.horizon() == self.last()
    }

    /// Moves the horizon as far as snapshots and the log allow. One caller at a time.
    pub(crate) fn advance(&self) -> Csn {
        let candidate = self.line.last.load(Ordering::Acquire);
        let chunks = self.chunks.load(Ordering::Acquire);
        let slots = (0..chunks).flat_map(|n| {
            self.slots
                .get(n)
                .into_iter()
                .flat_map(|chunk| chunk.0.iter())
        });
        let Horizon {
            proposed,
            prunable,
            usable,
            durable,
        } = &self.horizon;
        let durable = durable.load(Ordering::Relaxed);
        let horizons = || [prunable, usable].map(|horizon| horizon.load(Ordering::Relaxed));
        let before = horizons();
        let found = advance(candidate, durable, slots, proposed, [prunable, usable]);
        if let Some(gaps) = found {
            let known = std::mem::replace(&mut *self.gaps.lock(), gaps);
            self.has_gaps.store(!gaps.is_empty(), Ordering::Relaxed);
            if known != gaps || before != horizons() {
                self.note_move();
            }
        }
        self.horizon()
    }

    /// Something may be prunable that was not.
    pub(crate) fn note_move(&self) {
        // Release: who sees the number sees what has moved.
        self.moves.fetch_add(1, Ordering::Release);
    }

    /// A number that is another one once either horizon or the gaps have moved, or a transaction
    /// was rolled back.
    pub(crate) fn moves(&self) -> u32 {
        self.moves.load(Ordering::Acquire)
    }
}

/// The reader's side of the protocol in the header.
#[inline]
fn publish(slot: &AtomicU64, last: &AtomicU64, proposed: &AtomicU64) -> u64 {
    loop {
        let seen = last.load(Ordering::Acquire);
        slot.store(held(seen, true), Ordering::Relaxed);
        // Keeps the look at the proposal from passing the store above.
        fence(Ordering::SeqCst);
        // Acquire: `last` is read again after the proposal, which never is ahead of it.
        if proposed.load(Ordering::Acquire) <= seen {
            return seen;
        }
    }
}

/// The same for a further snapshot. Who proposes and does not see the mark is seen here, and so is
/// the commit that he proposes.
#[inline]
fn publish_another(slot: &AtomicU64, oldest: u64, last: &AtomicU64, proposed: &AtomicU64) -> u64 {
    slot.store(held(oldest, true), Ordering::Relaxed);
    fence(Ordering::SeqCst);
    let proposed = proposed.load(Ordering::Acquire);
    let seen = last.load(Ordering::Acquire);
    debug_assert!(proposed <= seen, "a proposal is a commit's number");
    seen
}

/// What a walk of the slots finds.
struct Walk {
    /// The oldest snapshots with no mark, in order, all of them before `rest`; and how many.
    bounds: [Csn; Gaps::BOUNDS],
    len: usize,
    /// Nothing is known of what comes after this.
    rest: u64,
}

impl Walk {
    /// The last place is that of `rest`.
    const MOST: usize = Gaps::BOUNDS - 1;

    fn until(candidate: u64) -> Walk {
        Walk {
            bounds: [Csn(0); Gaps::BOUNDS],
            len: 0,
            rest: candidate,
        }
    }

    #[inline]
    fn meet(&mut self, slot: u64) {
        let csn = slot >> 1;
        if csn >= self.rest {
            return;
        }
        let mark = slot & 1 == 1;
        let at = self.bounds[..self.len].partition_point(|bound| bound.0 < csn);
        if mark {
            (self.rest, self.len) = (csn, at);
        } else if self.bounds[..self.len].get(at) != Some(&Csn(csn)) {
            if self.len == Self::MOST {
                self.rest = self.bounds[Self::MOST - 1].0.max(csn);
                self.len -= usize::from(at < Self::MOST);
            }
            if at < Self::MOST {
                self.bounds[at..=self.len].rotate_right(1);
                self.bounds[at] = Csn(csn);
                self.len += 1;
            }
        }
    }

    fn oldest(&self) -> u64 {
        match self.len {
            0 => self.rest,
            _ => self.bounds[0].0,
        }
    }

    fn gaps(mut self) -> Gaps {
        self.bounds[self.len] = Csn(self.rest);
        Gaps::between(&self.bounds[..=self.len])
    }
}

/// The other side. Moves what is seen by all, and that of it which is `durable`; finds where no
/// snapshot is, if it looks.
fn advance<'a>(
    candidate: u64,
    durable: u64,
    slots: impl Iterator<Item = &'a AtomicU64>,
    proposed: &AtomicU64,
    [prunable, usable]: [&AtomicU64; 2],
) -> Option<Gaps> {
    let has_reached = |horizon: &AtomicU64, to| horizon.load(Ordering::Relaxed) >= to;
    if has_reached(prunable, candidate) && has_reached(usable, candidate.min(durable)) {
        return None;
    }
    proposed.store(candidate, Ordering::Release);
    // Keeps the looks at the slots from passing the store above.
    fence(Ordering::SeqCst);
    // Acquire: what a reader did before it gave its snapshot up has happened before anything is
    // done by the new horizon.
    let mut walk = Walk::until(candidate);
    slots.for_each(|slot| walk.meet(slot.load(Ordering::Acquire)));
    let oldest = walk.oldest();
    for (horizon, to) in [(prunable, oldest), (usable, oldest.min(durable))] {
        if !has_reached(horizon, to) {
            horizon.store(to, Ordering::Release);
        }
    }
    Some(walk.gaps())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_horizon_waits_for_snapshots_and_for_the_disk() {
        let clock = Clock::default();
        let (a, b) = (clock.add_slot(0), clock.add_slot(1));
        for _ in 0..5 {
            clock.tick();
        }
        clock.note_log(|| Lsn(100), Lsn(50));
        assert_eq!(clock.advance(), Csn(0), "the log is not on disk");
        assert_eq!(clock.prunable(), Csn(5), "which pruning need not wait for");
        let held = clock.publish(a);
        assert_eq!(held, Csn(5));
        clock.tick();
        clock.note_log(|| Lsn(120), Lsn(120));
        assert_eq!(clock.advance(), Csn(5), "a snapshot is held");
        assert_eq!(clock.prunable(), Csn(5), "which pruning waits for, too");
        assert_eq!(clock.publish(b), Csn(6));
        clock.clear(a);
        assert_eq!(clock.advance(), Csn(6));
        assert!(clock.is_settled());
        clock.remove_slot(b);
        assert_eq!(clock.add_slot(1).index, b.index, "slots are used again");
    }

    #[test]
    fn between_snapshots_that_follow_nothing_there_is_a_gap() {
        let clock = Clock::default();
        let slots: Vec<SlotId> = (0..3).map(|thread| clock.add_slot(thread)).collect();
        let tick = |n: u64| (0..n).fold(Csn(0), |_, _| clock.tick());
        let gap = |made, ended| clock.gaps().cover(Csn(made), Csn(ended));
        tick(5);
        let long = clock.publish(slots[0]);
        tick(5);
        clock.advance();
        assert!(!gap(6, 10), "it may follow what it sees");
        clock.republish(slots[0], long, false);
        clock.advance();
        assert!(gap(6, 10) && !gap(5, 10) && !gap(6, 11));
        let other = clock.publish(slots[1]);
        tick(5);
        clock.advance();
        assert!(gap(6, 10) && !gap(11, 15));
        clock.republish(slots[1], other, false);
        clock.advance();
        assert!(gap(6, 10) && gap(11, 15) && !gap(9, 11));
        let further = clock.publish_another(slots[0], long);
        assert_eq!(further, Csn(15));
        tick(5);
        clock.advance();
        assert!(clock.gaps().is_empty(), "what else it holds is not known");
        assert_eq!(clock.prunable(), long);
        slots.iter().for_each(|slot| clock.remove_slot(*slot));
        clock.advance();
        assert_eq!(clock.prunable(), Csn(20));
    }

    #[test]
    fn what_may_make_more_prunable_is_a_move() {
        let clock = Clock::default();
        let (a, b) = (clock.add_slot(0), clock.add_slot(1));
        let mut known = clock.moves();
        let mut has_moved = |clock: &Clock| std::mem::replace(&mut known, clock.moves()) != known;
        clock.tick();
        clock.advance();
        assert!(has_moved(&clock), "prunable, not on disk");
        clock.advance();
        assert!(!has_moved(&clock));
        clock.note_durable(Csn(1));
        clock.advance();
        assert!(has_moved(&clock), "on disk");
        let held = clock.publish(a);
        clock.tick();
        clock.note_durable(Csn(2));
        clock.advance();
        assert!(!has_moved(&clock), "a snapshot holds both back");
        clock.republish(a, held, false);
        clock.advance();
        assert!(has_moved(&clock), "a gap behind it");
        clock.publish(b);
        clock.advance();
        assert!(!has_moved(&clock));
        clock.clear(a);
        clock.advance();
        assert!(has_moved(&clock), "the snapshot has ended");
        clock.note_move();
        assert!(has_moved(&clock));
    }

    /// Whatever the slots hold, in whatever order they are met.
    #[test]
    fn a_walk_takes_nothing_for_empty_that_is_not() {
        let mut seed = 1u64;
        let mut roll = |sides: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 32) % sides
        };
        let mut some = 0;
        for _ in 0..20_000 {
            let candidate = 10 + roll(30);
            let slots: Vec<u64> = (0..roll(2 * Gaps::BOUNDS as u64))
                .map(|_| match roll(5) {
                    0 => NO_SNAPSHOT,
                    mark => held(1 + roll(40), mark == 1 && roll(3) == 0),
                })
                .collect();
            let mut walk = Walk::until(candidate);
            slots.iter().for_each(|slot| walk.meet(*slot));
            let oldest = slots.iter().map(|slot| slot >> 1).fold(candidate, u64::min);
            assert_eq!(walk.oldest(), oldest);
            let gaps = walk.gaps();
            let asked = |csn: u64| {
                let by = |slot: &u64| slot >> 1 == csn || slot & 1 == 1 && slot >> 1 <= csn;
                csn >= candidate || slots.iter().any(by)
            };
            for made in 1..45 {
                for ended in made..45 {
                    let covered = gaps.cover(Csn(made), Csn(ended));
                    some += usize::from(covered);
                    assert!(!covered || !(made..ended).any(asked), "{slots:?}");
                }
            }
            // With few snapshots nothing that is empty is overlooked.
            if slots.len() < Walk::MOST {
                for made in oldest + 1..candidate {
                    let is_empty = !(made..candidate).any(asked);
                    let covered = gaps.cover(Csn(made), Csn(candidate));
                    assert_eq!(covered, is_empty && !asked(made), "{slots:?} {made}");
                }
            }
        }
        assert!(some > 10_000);
    }

    #[test]
    fn no_snapshot_is_ever_below_the_horizon() {
        let clock = Arc::new(Clock::default());
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let readers: Vec<_> = (0..3)
            .map(|i| {
                let (clock, slot) = (clock.clone(), clock.add_slot(i));
                std::thread::spawn(move || {
                    for _ in 0..20_000 {
                        let seen = clock.publish(slot);
                        clock.tick();
                        assert!(clock.horizon() <= seen && clock.prunable() <= seen);
                        clock.clear(slot);
                    }
                })
            })
            .collect();
        let (walker, stopped) = (clock.clone(), stop.clone());
        let advancing = std::thread::spawn(move || {
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                walker.note_log(|| Lsn(1), Lsn(1));
                walker.advance();
            }
        });
        for reader in readers {
            reader.join().expect("a reader panicked");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        advancing.join().expect("the advancing thread panicked");
        clock.note_log(|| Lsn(1), Lsn(1));
        assert_eq!(clock.advance(), clock.last());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn loom_a_snapshot_and_the_horizon() {
        loom::model(|| {
            let slot = Arc::new(AtomicU64::new(NO_SNAPSHOT));
            let last = Arc::new(AtomicU64::new(1));
            let (proposed, usable) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let walker = {
                let (slot, last, proposed, usable) =
                    (slot.clone(), last.clone(), proposed.clone(), usable.clone());
                let durable = AtomicU64::new(0);
                loom::thread::spawn(move || {
                    last.fetch_add(1, Ordering::AcqRel);
                    // The further one is what is looked at: it goes ahead of the other.
                    advance(
                        last.load(Ordering::Acquire),
                        0,
                        [&*slot].into_iter(),
                        &proposed,
                        [&usable, &durable],
                    );
                })
            };
            let seen = publish(&slot, &last, &proposed);
            assert!(
                usable.load(Ordering::Acquire) <= seen,
                "the horizon passed a snapshot"
            );
            walker.join().unwrap();
            assert!(
                usable.load(Ordering::Acquire) <= seen,
                "the horizon passed a snapshot"
            );
        });
    }

    #[test]
    fn loom_a_further_snapshot_and_a_gap() {
        loom::model(|| {
            // A query's snapshot of commit 1 has long been there.
            let slot = Arc::new(AtomicU64::new(held(1, false)));
            let last = Arc::new(AtomicU64::new(2));
            let proposed = Arc::new(AtomicU64::new(0));
            let walker = {
                let (slot, last, proposed) = (slot.clone(), last.clone(), proposed.clone());
                loom::thread::spawn(move || {
                    last.fetch_add(1, Ordering::AcqRel);
                    let (prunable, usable) = (AtomicU64::new(0), AtomicU64::new(0));
                    let candidate = last.load(Ordering::Acquire);
                    let slots = [&*slot].into_iter();
                    advance(candidate, 0, slots, &proposed, [&prunable, &usable])
                })
            };
            let further = publish_another(&slot, 1, &last, &proposed);
            let gaps = walker.join().unwrap().expect("there was something to see");
            // A version that the further one shows, and none after it.
            assert!(
                !gaps.cover(Csn(further), Csn(further + 1)),
                "a snapshot is in a gap"
            );
        });
    }
}
