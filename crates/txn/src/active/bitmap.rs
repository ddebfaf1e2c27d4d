//! The bitmap: a bit for each id, set while it runs.
//!
//! ```text
//!   id        … 4095 │ 4096                              8191 │ 8192 …
//!             chunk  │ 0000000000000100 11111111 …            │ no chunk yet: all run
//!             gone:  │  ended       ▲ runs     ▲ not given out
//!             all    │              oldest
//!             ended  │
//! ```
//!
//! Bits are born set, a chunk at a time, and cleared at the end: there is no moment at which an id
//! has been given out and is not marked. A snapshot copies the words from the oldest id that may
//! run to the next to be given out.
//!
//! Words are copied one after the other, so an end in between could be missed while a later one is
//! not. Two counters keep that out (a sequence lock with many writers):
//!
//! ```text
//!   who ends                              a snapshot
//!   1 begun += 1                          1 d = done
//!     ── fence ──                         2 copy
//!   2 how it stands; its bits = 0           ── fence ──
//!   3 done += 1                           3 begun == d? Else again from 1
//! ```
//!
//! Equal counters mean that nobody was between 1 and 3 at any time from the first look to the last.
//! A snapshot that has failed often closes the gate: who wants to end waits before 1, and the
//! snapshot needs to wait for those in between only.
//!
//! Costs nothing for sessions that are idle, and grows with the ids given out since the oldest that
//! still runs.

use throng_sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use throng_sync::lock::Mutex;
use throng_sync::{CachePadded, SpinWait};
use throng_types::Xid;

use super::{Form, IdPurpose, RunningSet, SessionIndex, WORD};
use crate::growvec::GrowVec;

/// Words of a chunk. Few under test, so that chunks come and go.
const CHUNK_WORDS: usize = if cfg!(loom) {
    1
} else if cfg!(test) {
    2
} else {
    64
};
const CHUNK: u64 = CHUNK_WORDS as u64 * WORD;

/// A snapshot that has been disturbed so often closes the gate.
const PATIENCE: u32 = if cfg!(loom) {
    1
} else if cfg!(shuttle) {
    2
} else {
    32
};

pub(crate) struct Bitmap {
    ends: CachePadded<Ends>,
    /// Snapshots that want nobody to begin an end.
    gate: CachePadded<AtomicU32>,
    /// Every id below has ended.
    oldest: CachePadded<AtomicU64>,
    /// By chunk: its place in `words` plus one; 0: not made yet, or gone.
    chunks: GrowVec<AtomicU32>,
    words: GrowVec<Words>,
    pool: Mutex<Pool>,
}

/// Ends that have begun, and ends that are done.
struct Ends {
    begun: AtomicU64,
    done: AtomicU64,
}

struct Words([AtomicU64; CHUNK_WORDS]);

impl Default for Words {
    fn default() -> Words {
        Words(std::array::from_fn(|_| AtomicU64::new(u64::MAX)))
    }
}

#[derive(Default)]
struct Pool {
    free: Vec<u32>,
    made: u32,
    /// The first chunk that has not been given back.
    first: u64,
}

impl Bitmap {
    pub(crate) fn new(next: Xid) -> Bitmap {
        let bitmap = Bitmap {
            ends: CachePadded::new(Ends {
                begun: AtomicU64::new(0),
                done: AtomicU64::new(0),
            }),
            gate: CachePadded::new(AtomicU32::new(0)),
            oldest: CachePadded::new(AtomicU64::new(next.0)),
            chunks: GrowVec::new(),
            words: GrowVec::new(),
            pool: Mutex::default(),
        };
        bitmap.pool.lock().first = next.0 / CHUNK;
        bitmap
    }

    /// Of the ids from the first on and below `next`, all have ended but these.
    pub(crate) fn have_ended(&self, next: Xid, running: &[Xid]) {
        let first = self.oldest.load(Ordering::Relaxed);
        for xid in (first..next.0)
            .map(Xid)
            .filter(|xid| !running.contains(xid))
        {
            self.begin(0, IdPurpose::Sub, || xid);
            self.end(0, IdPurpose::Sub, &[xid], || ());
        }
    }

    /// The chunk's words, if it has been made and has not been given back.
    #[inline]
    fn words(&self, chunk: u64) -> Option<&[AtomicU64; CHUNK_WORDS]> {
        // Acquire: the words are there, and all set.
        match self.chunks.get(chunk)?.load(Ordering::Acquire) {
            0 => None,
            place => self.words.get(u64::from(place) - 1).map(|words| &words.0),
        }
    }

    #[cold]
    fn make(&self, chunk: u64) {
        let slot = self.chunks.at(chunk);
        let mut pool = self.pool.lock();
        if slot.load(Ordering::Relaxed) != 0 {
            return;
        }
        let place = pool.free.pop().unwrap_or_else(|| {
            pool.made += 1;
            pool.made - 1
        });
        self.words.at(place.into());
        // Release: pairs with `words`.
        slot.store(place + 1, Ordering::Release);
    }

    /// Before bits are cleared.
    fn begin_end(&self) {
        loop {
            self.ends.begun.fetch_add(1, Ordering::Relaxed);
            // Release: a snapshot that copies a word changed after this, and fences, sees the
            // count.
            fence(Ordering::SeqCst);
            if self.gate.load(Ordering::Relaxed) == 0 {
                return;
            }
            self.finish_end();
            self.wait_at_gate();
        }
    }

    fn finish_end(&self) {
        // Release: a snapshot that counts this end sees its bits cleared.
        self.ends.done.fetch_add(1, Ordering::Release);
    }

    #[cold]
    fn wait_at_gate(&self) {
        let mut spin = SpinWait::new();
        while self.gate.load(Ordering::Relaxed) != 0 {
            if !spin.spin() {
                throng_sync::thread::yield_now();
            }
        }
    }

    /// One attempt at a copy. `false`: an end came between.
    fn copy(&self, set: &mut RunningSet, next: &impl Fn() -> Xid) -> bool {
        // Acquire: the bits of all ends counted here are seen cleared.
        let done = self.ends.done.load(Ordering::Acquire);
        if self.ends.begun.load(Ordering::Relaxed) != done {
            return false;
        }
        // Acquire: who moved it saw ends whose counts must not be missed below.
        let from = self.oldest.load(Ordering::Acquire);
        let to = next().0.max(from);
        let words = set.restart_bits();
        let (mut word, last) = (from / WORD, to.div_ceil(WORD));
        while word < last {
            let chunk = word / CHUNK_WORDS as u64;
            let end = last.min((chunk + 1) * CHUNK_WORDS as u64);
            let (at, len) = ((word % CHUNK_WORDS as u64) as usize, (end - word) as usize);
            match self.words(chunk) {
                Some(bits) => words.extend(
                    bits[at..at + len]
                        .iter()
                        .map(|bits| bits.load(Ordering::Relaxed)),
                ),
                None => words.extend(std::iter::repeat_n(u64::MAX, len)),
            }
            word = end;
        }
        (set.from, set.to) = (from, to);
        // Acquire: keeps the look below from passing the copies above.
        fence(Ordering::Acquire);
        self.ends.begun.load(Ordering::Relaxed) == done
    }

    #[cold]
    fn copy_behind_gate(&self, set: &mut RunningSet, next: &impl Fn() -> Xid) {
        self.gate.fetch_add(1, Ordering::Relaxed);
        // Either who is about to end sees the gate, or we see that it has begun.
        fence(Ordering::SeqCst);
        let mut spin = SpinWait::new();
        while !self.copy(set, next) {
            if !spin.spin() {
                throng_sync::thread::yield_now();
            }
        }
        self.gate.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Form for Bitmap {
    /// Sessions have no place here: bits go by id.
    fn enter(&self) -> SessionIndex {
        0
    }
    fn leave(&self, _: SessionIndex) {}

    fn begin(&self, _: SessionIndex, _: IdPurpose, give: impl FnOnce() -> Xid) -> Xid {
        let xid = give();
        let chunk = xid.0 / CHUNK;
        if self.words(chunk).is_none() {
            self.make(chunk);
        }
        xid
    }

    fn end<R>(&self, _: SessionIndex, _: IdPurpose, xids: &[Xid], stand: impl FnOnce() -> R) -> R {
        self.begin_end();
        let result = stand();
        for xid in xids {
            let words = self.words(xid.0 / CHUNK).expect("a running id has its bit");
            let bit = 1 << (xid.0 % WORD);
            words[(xid.0 / WORD) as usize % CHUNK_WORDS].fetch_and(!bit, Ordering::Relaxed);
        }
        self.finish_end();
        result
    }

    fn look(&self, set: &mut RunningSet, next: impl Fn() -> Xid) {
        for _ in 0..PATIENCE {
            if self.copy(set, &next) {
                return;
            }
            throng_sync::hint::spin_loop();
        }
        self.copy_behind_gate(set, &next);
    }

    /// Moves `oldest` over what has ended, and gives back the chunks below it.
    fn tidy(&self) {
        let mut oldest = self.oldest.load(Ordering::Relaxed);
        // Ids below the start share their word with the first that was given out: they are set, and
        // have ended.
        let mut passed = oldest % WORD;
        while let Some(words) = self.words(oldest / CHUNK) {
            // Acquire: what the ends seen here counted before is passed on by the store of
            // `oldest`.
            let bits = words[(oldest / WORD) as usize % CHUNK_WORDS].load(Ordering::Acquire);
            let ended = (bits >> passed).trailing_zeros() as u64;
            if passed + ended < WORD {
                oldest = oldest / WORD * WORD + passed + ended;
                break;
            }
            oldest = (oldest / WORD + 1) * WORD;
            passed = 0;
        }
        // Release: see `copy`.
        self.oldest.store(oldest, Ordering::Release);
        let mut pool = self.pool.lock();
        while pool.first < oldest / CHUNK {
            let slot = self.chunks.at(pool.first);
            let place = slot.load(Ordering::Relaxed);
            if place != 0 {
                // As an end does, so that no snapshot takes the words of one chunk for those of
                // another.
                self.begin_end();
                slot.store(0, Ordering::Relaxed);
                let words = self.words.get(u64::from(place) - 1).expect("words stay");
                for word in &words.0 {
                    word.store(u64::MAX, Ordering::Relaxed);
                }
                self.finish_end();
                pool.free.push(place - 1);
            }
            pool.first += 1;
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl Bitmap {
    pub(super) fn chunks_made(&self) -> u32 {
        self.pool.lock().made
    }
}
