//! Each thread's numbers.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use throng_sync::{CachePadded, MAX_THREADS, thread_index, threads_high_water};

use crate::clock::UsedLately;
use crate::counter::Counter;
use crate::event::WaitEvent;
use crate::histogram::Histogram;
use crate::object::{Holder, names};
use crate::present::Present;
use crate::structure::{Structure, StructureCell};
use crate::table::ObjectTable;

/// What one thread records: written by it alone, but for `generation`'s being looked at.
pub(crate) struct Slot {
    pub(crate) counters: [AtomicU64; Counter::COUNT],
    /// The generation of all numbers below: older ones do not count any more.
    generation: AtomicU64,
    /// A background thread's name, by its place and one; 0: the thread serves sessions.
    background: AtomicU32,
    /// The session whose statement runs on this thread now; 0: none.
    pub(crate) session: AtomicU32,
    /// Since when it has run in one go; 0: not known.
    pub(crate) since: AtomicU64,
    /// The core whose event loop this is, and one; 0: none.
    pub(crate) core: AtomicU32,
    /// Processor time that this thread has used, as it was lately.
    pub(crate) used: UsedLately,
    /// Nanoseconds in which sessions ran here.
    pub(crate) running: AtomicU64,
    /// Nanoseconds in which this thread, with all sessions on it, was kept from running by
    /// [`blocking`](crate::blocking) waits. Not reset.
    pub(crate) blocked: AtomicU64,
    /// The last of them.
    pub(crate) last_block: Present,
    /// The wait that this thread is in.
    pub(crate) present: Present,
    pub(crate) structures: [StructureCell; Structure::COUNT],
    /// For sessions, and for the thread itself in the background.
    pub(crate) waits: [[WaitCell; WaitEvent::COUNT]; 2],
    pub(crate) objects: ObjectTable,
}

/// One event's waits on one thread.
pub(crate) struct WaitCell {
    pub(crate) nanos: AtomicU64,
    pub(crate) longest: AtomicU64,
    pub(crate) histogram: Histogram,
}

impl WaitCell {
    const fn new() -> WaitCell {
        WaitCell {
            nanos: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            histogram: Histogram::new(),
        }
    }

    fn clear(&self) {
        self.nanos.store(0, Ordering::Relaxed);
        self.longest.store(0, Ordering::Relaxed);
        self.histogram.clear();
    }
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            counters: [const { AtomicU64::new(0) }; Counter::COUNT],
            generation: AtomicU64::new(0),
            background: AtomicU32::new(0),
            session: AtomicU32::new(0),
            since: AtomicU64::new(0),
            core: AtomicU32::new(0),
            used: UsedLately::new(),
            running: AtomicU64::new(0),
            blocked: AtomicU64::new(0),
            last_block: Present::new(),
            present: Present::new(),
            structures: [const { StructureCell::new() }; Structure::COUNT],
            waits: [const { [const { WaitCell::new() }; WaitEvent::COUNT] }; 2],
            objects: ObjectTable::new(),
        }
    }

    pub(crate) fn is_background(&self) -> bool {
        self.background.load(Ordering::Relaxed) != 0
    }

    /// A background thread's name.
    pub(crate) fn name(&self) -> Option<&'static str> {
        let place = self.background.load(Ordering::Relaxed).checked_sub(1)?;
        names::at(place as usize)
    }

    /// Whether its numbers are of the present generation.
    pub(crate) fn is_current(&self) -> bool {
        // Acquire: numbers seen after are not older than the generation.
        self.generation.load(Ordering::Acquire) == GENERATION.load(Ordering::Relaxed)
    }

    /// By the owner only.
    #[cold]
    fn start_afresh(&self, generation: u64) {
        self.running.store(0, Ordering::Relaxed);
        self.waits.iter().flatten().for_each(WaitCell::clear);
        self.structures.iter().for_each(StructureCell::clear);
        self.objects.clear();
        self.generation.store(generation, Ordering::Release);
    }
}

/// Zero pages until a thread touches its own, so the size costs address space only.
static SLOTS: [CachePadded<Slot>; MAX_THREADS] =
    [const { CachePadded::new(Slot::new()) }; MAX_THREADS];

/// Goes up when all numbers are to start afresh. Every thread clears its own when it next records,
/// and until then is left out: so nobody writes what another thread owns.
static GENERATION: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));

/// Read at every wait, written hardly ever.
static TRACKING: CachePadded<AtomicBool> = CachePadded::new(AtomicBool::new(true));

#[inline]
pub(crate) fn mine() -> &'static Slot {
    &SLOTS[thread_index()]
}

/// The calling thread's slot, of the present generation.
#[inline]
pub(crate) fn mine_current() -> &'static Slot {
    let slot = mine();
    let generation = GENERATION.load(Ordering::Relaxed);
    if slot.generation.load(Ordering::Relaxed) != generation {
        slot.start_afresh(generation);
    }
    slot
}

pub(crate) fn at(index: usize) -> Option<&'static Slot> {
    SLOTS.get(index).map(|slot| &**slot)
}

/// The slots that any thread has used.
pub(crate) fn all() -> impl Iterator<Item = &'static Slot> {
    SLOTS[..threads_high_water()].iter().map(|slot| &**slot)
}

/// Those of them whose waits count.
pub(crate) fn all_current() -> impl Iterator<Item = &'static Slot> {
    all().filter(|slot| slot.is_current())
}

/// Whether waits are recorded and structures sampled.
#[inline]
pub fn is_tracking() -> bool {
    TRACKING.load(Ordering::Relaxed)
}

/// Records waits and samples structures from now on, or no longer (the setting `track_waits`).
pub fn track(on: bool) {
    TRACKING.store(on, Ordering::Relaxed);
}

/// Forgets all waits, structures' times and running times; counters stay, as they are other views'
/// too.
pub fn reset() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Nanoseconds in which sessions' statements ran, on all threads, since the last [`reset`].
pub fn running_nanos() -> u64 {
    all_current()
        .map(|slot| slot.running.load(Ordering::Relaxed))
        .sum()
}

/// Says that the calling thread runs `core`'s event loop: what its sessions queue for is that core.
pub fn this_is_core(core: usize) {
    // A core's number fits; nothing but its name hangs on it.
    mine().core.store(core as u32 + 1, Ordering::Relaxed);
}

/// A thread that works in the background; see [`background`].
#[must_use = "the thread is a background thread until this is dropped"]
pub struct Background(());

/// Says that the calling thread works for no session: its waits are its own, and shown apart under
/// `name`, a constant.
pub fn background(name: &'static str) -> Background {
    let place = names::place_of(name).map_or(0, |place| place as u32 + 1);
    mine().background.store(place, Ordering::Relaxed);
    Background(())
}

impl Drop for Background {
    fn drop(&mut self) {
        // The thread's index, and with it the slot, goes to another.
        mine().background.store(0, Ordering::Relaxed);
    }
}

/// Who runs on the thread of this index: a session if there is one, else the thread itself.
pub(crate) fn who_runs_on(index: usize) -> Holder {
    match at(index).map_or(0, |slot| slot.session.load(Ordering::Relaxed)) {
        0 => Holder::thread(index),
        pid => Holder::session(pid),
    }
}

/// The background thread of that name, the first if there are several; for waits that it will end.
pub fn holder_named(name: &str) -> Holder {
    let named = all().position(|slot| slot.name() == Some(name));
    named.map_or(Holder::NONE, Holder::thread)
}

/// What the background thread waits for now.
pub fn present_of_thread(holder: Holder) -> Option<crate::present::PresentWait> {
    at(holder.thread_index()?)?.present.get()
}

/// What a holder that is no session is called: a background thread's name.
pub fn thread_name(holder: Holder) -> Option<&'static str> {
    at(holder.thread_index()?)?.name()
}
