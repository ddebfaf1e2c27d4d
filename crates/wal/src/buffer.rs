//! The ring that records are copied into, in parallel, and the lanes that tell how far it is whole.
//!
//! A position is a byte of the endless stream; it lives at `position % size` of the ring. One word,
//! `tail`, gives out positions; each thread (or, in other forms of [`insertion`](crate::insertion),
//! each lock) has a lane, one word that only its holder writes:
//!
//! | lane | means | next |
//! |---|---|---|
//! | `IDLE` | nothing under way: all that this thread ever reserved is copied | a lower bound |
//! | a position | everything this thread has yet to copy lies at or above it | a higher one, `IDLE` |
//!
//! Insertion in numbered phases (`reserve`, `copy`):
//! 1. get a lane, and publish a lower bound in it: a value of `tail` from before the reservation;
//! 2. reserve: one `fetch_add` on `tail` (or what the form does instead);
//! 3. copy, no further than `limit`; when it is reached, publish how far we are and wait for the
//!    flusher;
//! 4. publish `IDLE`, leave the lane.
//!
//! The flusher reads `tail` first and the lanes after. If the value of `tail` counts a reservation,
//! the reader has also seen phase 1 of it, so the reservation's lane shows a position at or below
//! it until phase 4. Hence every byte below `min(tail, busy lanes)` is copied
//! ([`LogBuffer::copied_to`]).
//!
//! Whoever waits in phase 3 with the lowest position has everything below it copied; the flusher
//! writes that and moves `limit`, so nobody waits for good, even with a record longer than the
//! ring.

use crate::insertion::{Form, InsertForm, Insertion};
use crate::ring::Ring;
use throng_sync::atomic::{AtomicU64, Ordering};
use throng_sync::{CachePadded, PerThread};

const IDLE: u64 = u64::MAX;
/// `limit` once the log has failed: nothing is copied any more, and nobody waits.
const DEAD: u64 = u64::MAX;

/// The log's end in memory.
pub(crate) struct LogBuffer {
    ring: Ring,
    /// The next position to give out.
    tail: CachePadded<AtomicU64>,
    /// The first position that must not be written yet: the ring still holds unwritten bytes there.
    limit: CachePadded<AtomicU64>,
    lanes: PerThread<AtomicU64>,
    insertion: Insertion,
}

/// Reserved positions, not yet copied. To be handed to [`LogBuffer::copy`].
#[must_use = "a reservation that is never copied stops the flusher for good"]
pub(crate) struct Reservation {
    pub start: u64,
    pub end: u64,
    lane: usize,
}

impl LogBuffer {
    /// `size`: bytes of the ring, a power of two. The first position given out is `start`.
    /// `lanes` counts where the form is lanes.
    pub fn new(size: usize, start: u64, form: InsertForm, lanes: usize) -> LogBuffer {
        LogBuffer {
            ring: Ring::new(size),
            tail: CachePadded::new(AtomicU64::new(start)),
            limit: CachePadded::new(AtomicU64::new(start + size as u64)),
            lanes: PerThread::new(|_| AtomicU64::new(IDLE)),
            insertion: Insertion::new(form, lanes),
        }
    }
    pub fn size(&self) -> u64 {
        self.ring.size()
    }
    /// The end of all that was ever reserved, copied or not.
    ///
    /// Acquire: what the reserving threads did before reserving is seen.
    #[inline]
    pub fn tail(&self) -> u64 {
        self.tail.load(Ordering::Acquire)
    }
    /// Bytes that could be reserved now and copied without waiting; negative when the ring is
    /// overbooked.
    #[inline]
    pub fn room(&self) -> i64 {
        let limit = self.limit.load(Ordering::Relaxed);
        // Ends far apart only when the log is dead, and then there is always room.
        limit.min(i64::MAX as u64) as i64 - self.tail.load(Ordering::Relaxed) as i64
    }

    /// Whether the byte at `at` may be copied (or the log is dead, and nothing is).
    pub fn may_copy(&self, at: u64) -> bool {
        self.limit.load(Ordering::Relaxed) > at
    }

    /// Phases 1 and 2. `thread`: the calling thread's index; a thread has one reservation at a
    /// time.
    #[inline]
    pub fn reserve(&self, thread: usize, len: u64) -> Reservation {
        let lane = self.insertion.enter(thread);
        // 1. Release: who sees this bound has seen the bytes copied under the one before.
        let bound = self.tail.load(Ordering::Relaxed);
        self.lanes.get(lane).store(bound, Ordering::Release);
        // 2. Release: who counts this reservation sees the bound. Acquire: keeps `copy` below.
        let start = self.insertion.reserve(&self.tail, len);
        Reservation {
            start,
            end: start + len,
            lane,
        }
    }

    /// The same, if nobody has been given positions since the tail was `at`; else nothing.
    pub fn reserve_at(&self, thread: usize, at: u64, len: u64) -> Option<Reservation> {
        let lane = self.insertion.enter(thread);
        self.lanes.get(lane).store(at, Ordering::Release);
        if self.insertion.reserve_at(&self.tail, at, len) {
            return Some(Reservation {
                start: at,
                end: at + len,
                lane,
            });
        }
        self.lanes.get(lane).store(IDLE, Ordering::Release);
        self.insertion.leave(lane);
        None
    }

    /// Phases 3 and 4. `full(at)` is called, again and again, while the byte at `at` has no room
    /// yet; it sees to it that the flusher works, and waits.
    #[inline]
    pub fn copy(&self, place: Reservation, record: &[u8], mut full: impl FnMut(u64)) {
        debug_assert_eq!(record.len() as u64, place.end - place.start);
        let lane = self.lanes.get(place.lane);
        let mut at = place.start;
        let mut rest = record;
        while !rest.is_empty() {
            // Acquire: the flusher has done reading the bytes that we are about to overwrite.
            let limit = self.limit.load(Ordering::Acquire);
            if limit == DEAD {
                break;
            }
            let room = limit.saturating_sub(at).min(rest.len() as u64);
            if room == 0 {
                // Release: what we copied so far may be written.
                lane.store(at, Ordering::Release);
                full(at);
                continue;
            }
            let (now, later) = rest.split_at(room as usize);
            // SAFETY: `at .. at + room` is within our reservation, so no other inserter writes it;
            // it lies below `limit`, so the positions one ring earlier have been written out and
            // the flusher is done with them; and our lane shows a position at or below `at`, so the
            // flusher does not read these bytes until we publish beyond them.
            unsafe { self.ring.put(at, now) };
            at += room;
            rest = later;
        }
        // 4. Release: the bytes are there for whoever sees the lane idle.
        lane.store(IDLE, Ordering::Release);
        self.insertion.leave(place.lane);
    }

    /// A position below which every byte is copied, at most `tail` as it was when asked. Not
    /// monotonic: a lane's bound may be lower than needed.
    pub fn copied_to(&self) -> u64 {
        let mut safe = self.tail();
        for lane in 0..self.insertion.lanes() {
            // Acquire: pairs with the Release of `copy`.
            safe = safe.min(self.lanes.get(lane).load(Ordering::Acquire));
        }
        safe
    }

    /// Hands bytes `from..to` to `read`, in order, in pieces contiguous in the ring, until it
    /// fails.
    ///
    /// # Safety
    /// `to` is at most what [`copied_to`](Self::copied_to) has returned, and `from` at least what
    /// [`free_to`](Self::free_to) was last told; both are called by the same thread as this, or by
    /// threads that take turns under a lock.
    pub unsafe fn read<E>(
        &self,
        from: u64,
        to: u64,
        read: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // SAFETY: below `copied_to` all copies are complete and visible (the caller's first
        // promise); above the last `free_to`, `limit` keeps inserters one ring ahead off these
        // bytes (the second).
        unsafe { self.ring.read(from, to, read) }
    }

    /// Everything below `written` is in the file: its room may be used again.
    pub fn free_to(&self, written: u64) {
        // Release: the flusher's reads of those bytes come before.
        self.limit.store(written + self.size(), Ordering::Release);
    }

    /// The log has failed: insertions go nowhere from now on, and wait for nothing.
    pub fn kill(&self) {
        self.limit.store(DEAD, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use throng_sync::thread_index;

    /// Inserters of every record size, some larger than the ring, against a flusher that checks
    /// each byte.
    #[test]
    fn what_the_flusher_reads_is_what_was_inserted() {
        for form in InsertForm::ALL {
            what_is_read_is_what_was_inserted(form);
        }
    }

    fn what_is_read_is_what_was_inserted(form: InsertForm) {
        const THREADS: u64 = 4;
        const EACH: u64 = if cfg!(miri) { 5 } else { 400 };
        const RING: usize = if cfg!(miri) { 128 } else { 1 << 10 };
        const SMALL: u64 = if cfg!(miri) { 30 } else { 300 };
        let buffer = LogBuffer::new(RING, 5000, form, 3);
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            let inserters: Vec<_> = (0..THREADS)
                .map(|t| {
                    let buffer = &buffer;
                    s.spawn(move || {
                        for i in 0..EACH {
                            let len = 1
                                + (i * 37 + t * 101) % SMALL
                                + if i % 50 == t { 2 * RING as u64 } else { 0 };
                            let place = buffer.reserve(thread_index(), len);
                            // Each byte tells its position.
                            let bytes: Vec<u8> =
                                (place.start..place.end).map(|p| (p % 251) as u8).collect();
                            buffer.copy(place, &bytes, |_| std::thread::yield_now());
                        }
                    })
                })
                .collect();
            let (buffer, done) = (&buffer, &done);
            s.spawn(move || {
                let mut written = 5000;
                loop {
                    let finished = done.load(Ordering::Acquire);
                    let to = buffer.copied_to().max(written);
                    let mut at = written;
                    // SAFETY: `to` is from `copied_to`, `written` what `free_to` was told; one
                    // thread does all.
                    let read = unsafe {
                        buffer.read(written, to, |piece| {
                            for &byte in piece {
                                assert_eq!(byte, (at % 251) as u8, "at {at}");
                                at += 1;
                            }
                            Ok::<(), ()>(())
                        })
                    };
                    read.unwrap();
                    assert_eq!(at, to);
                    written = to;
                    buffer.free_to(written);
                    if finished && written == buffer.tail() {
                        return;
                    }
                    std::thread::yield_now();
                }
            });
            for inserter in inserters {
                inserter.join().unwrap();
            }
            done.store(true, Ordering::Release);
        });
    }

    #[test]
    fn a_dead_log_lets_every_insertion_through() {
        let buffer = LogBuffer::new(64, 0, InsertForm::Add, 0);
        buffer.kill();
        assert!(buffer.room() > 1 << 40);
        let place = buffer.reserve(thread_index(), 1000);
        buffer.copy(place, &[1; 1000], |_| panic!("nobody waits for a dead log"));
        assert_eq!(buffer.copied_to(), 1000);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;
    use throng_sync::thread_index;

    /// All interleavings with at most `preemptions` switches that no thread asked for.
    fn model(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(f);
    }

    fn insert(buffer: &LogBuffer, len: u64) {
        let place = buffer.reserve(thread_index(), len);
        let bytes: Vec<u8> = (place.start..place.end).map(|p| p as u8 + 1).collect();
        buffer.copy(place, &bytes, |_| thread::yield_now());
    }

    /// One look of the flusher: whatever it would write must be there. Loom itself reports any byte
    /// that is written while it is read.
    fn flush(buffer: &LogBuffer, written: u64) -> u64 {
        let to = buffer.copied_to().max(written);
        let mut at = written;
        // SAFETY: as the flusher does it: `copied_to` before, `free_to` after, one thread.
        let read = unsafe {
            buffer.read(written, to, |piece| {
                for &byte in piece {
                    assert_eq!(byte, at as u8 + 1, "byte {at} was not copied yet");
                    at += 1;
                }
                Ok::<(), ()>(())
            })
        };
        read.unwrap();
        buffer.free_to(to);
        to
    }

    #[test]
    fn loom_the_flusher_never_reads_bytes_not_yet_copied() {
        nothing_is_read_before_it_is_copied(3, InsertForm::Add, 0);
    }

    #[test]
    fn loom_nor_under_one_lock() {
        nothing_is_read_before_it_is_copied(2, InsertForm::Lock, 0);
    }

    #[test]
    fn loom_nor_through_lanes() {
        nothing_is_read_before_it_is_copied(2, InsertForm::Lanes, 2);
    }

    #[test]
    fn loom_nor_through_a_lane_that_is_shared() {
        nothing_is_read_before_it_is_copied(2, InsertForm::Lanes, 1);
    }

    fn nothing_is_read_before_it_is_copied(preemptions: usize, form: InsertForm, lanes: usize) {
        model(preemptions, move || {
            let buffer = Arc::new(LogBuffer::new(8, 0, form, lanes));
            let flusher = {
                let buffer = buffer.clone();
                thread::spawn(move || flush(&buffer, 0))
            };
            let inserter = {
                let buffer = buffer.clone();
                thread::spawn(move || insert(&buffer, 1))
            };
            insert(&buffer, 1);
            inserter.join().unwrap();
            let written = flusher.join().unwrap();
            assert_eq!(flush(&buffer, written), 2);
        });
    }

    #[test]
    fn loom_a_place_that_is_meant_is_got_or_left() {
        for (form, lanes) in [(InsertForm::Add, 0), (InsertForm::Lanes, 2)] {
            model(2, move || {
                let buffer = Arc::new(LogBuffer::new(8, 0, form, lanes));
                let inserter = {
                    let buffer = buffer.clone();
                    thread::spawn(move || insert(&buffer, 1))
                };
                // What fills a segment: two bytes right at the tail, or nothing at all.
                let at = buffer.tail();
                let place = buffer.reserve_at(thread_index(), at, 2);
                let filled = place.is_some();
                if let Some(place) = place {
                    assert_eq!((place.start, place.end), (at, at + 2));
                    let bytes = [at as u8 + 1, at as u8 + 2];
                    buffer.copy(place, &bytes, |_| thread::yield_now());
                }
                let written = flush(&buffer, 0);
                inserter.join().unwrap();
                assert_eq!(flush(&buffer, written), if filled { 3 } else { 1 });
            });
        }
    }

    #[test]
    fn loom_two_threads_flush_in_turn() {
        model(2, || {
            let buffer = Arc::new(LogBuffer::new(4, 0, InsertForm::Add, 0));
            let written = Arc::new(loom::sync::Mutex::new(0));
            let take_turn = |buffer: &LogBuffer, written: &loom::sync::Mutex<u64>| {
                let mut written = written.lock().unwrap();
                *written = flush(buffer, *written);
            };
            let other = {
                let (buffer, written) = (buffer.clone(), written.clone());
                thread::spawn(move || {
                    insert(&buffer, 1);
                    take_turn(&buffer, &written);
                })
            };
            // There is room for all: a wait for room would spin, which a model follows for ever.
            insert(&buffer, 1);
            take_turn(&buffer, &written);
            insert(&buffer, 1);
            other.join().unwrap();
            take_turn(&buffer, &written);
            assert_eq!(*written.lock().unwrap(), 3);
        });
    }

    #[test]
    fn loom_a_thread_that_inserts_again_hides_nothing() {
        model(5, || {
            let buffer = Arc::new(LogBuffer::new(8, 0, InsertForm::Add, 0));
            let inserter = {
                let buffer = buffer.clone();
                thread::spawn(move || {
                    insert(&buffer, 1);
                    insert(&buffer, 2);
                })
            };
            let mut written = flush(&buffer, 0);
            written = flush(&buffer, written);
            inserter.join().unwrap();
            assert_eq!(flush(&buffer, written), 3);
        });
    }

    #[test]
    fn loom_room_is_reused_only_after_it_was_read() {
        room_is_reused_after_it_was_read(InsertForm::Add);
    }

    #[test]
    fn loom_room_is_reused_only_after_it_was_read_whoever_holds_the_lock() {
        room_is_reused_after_it_was_read(InsertForm::Lock);
    }

    fn room_is_reused_after_it_was_read(form: InsertForm) {
        model(2, move || {
            let buffer = Arc::new(LogBuffer::new(2, 0, form, 0));
            let inserter = {
                let buffer = buffer.clone();
                // Longer than the ring, so that it waits in the middle.
                thread::spawn(move || insert(&buffer, 3))
            };
            let mut written = 0;
            while written < 3 {
                let now = flush(&buffer, written);
                if now == written {
                    thread::yield_now();
                }
                written = now;
            }
            inserter.join().unwrap();
        });
    }
}
