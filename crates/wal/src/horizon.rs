//! When a page's change must be logged as a whole image, decided without stopping anybody at a
//! checkpoint.
//!
//! A page half written when the machine dies is healed by an image of it in the log. So the first
//! change of a page after a checkpoint's redo point R must be an image; "first" means `page.lsn <=
//! R`. The difficulty is a mini-transaction that looked before R moved and logs after. The
//! checkpointer:
//!
//! ```text
//!  horizon   H0 ──1──► MAX ("always image") ───────────4──► R ────────────►
//!                       2: wait out every mini-transaction  5: wait out every one whose
//!                          that may have seen H0               record may lie before R
//!                                          3: R = end of the log
//! ```
//! After 2 nobody decides by H0, so every record after R was decided by MAX or by R. After 5
//! whoever logged before R has also marked its pages dirty, so the checkpoint writes them and redo
//! need not start earlier. Both hold only if a ticket spans all of it: from before the decision
//! until after the marking.
//!
//! Invariants (the loom models below check them):
//! * the first record of a page after R is an image;
//! * what a ticket's holder did is seen by the checkpointer if the holder's record lies before R.

use std::marker::PhantomData;
use std::time::Duration;
use throng_sync::atomic::{AtomicU64, Ordering, fence};
use throng_sync::lock::Mutex;
use throng_sync::{PerThread, SpinWait, thread_index, threads_high_water};
use throng_types::Lsn;

/// The pages' horizon and, for each thread, whether it is inside a mini-transaction.
pub struct ImageHorizon {
    horizon: AtomicU64,
    /// Written by its own thread only:
    ///
    /// ```text
    ///  63                            8 7      0
    ///  | how often depth left zero     | depth |
    /// ```
    lanes: PerThread<AtomicU64>,
    /// One checkpoint at a time.
    checkpoint: Mutex<()>,
}

const DEPTH: u64 = 0xff;
const GENERATION: u64 = 0x100;

/// True while a ticket is out that was out when `seen` was read.
fn still_inside(seen: u64, now: u64) -> bool {
    now & DEPTH != 0 && now & !DEPTH == seen & !DEPTH
}

/// A mini-transaction's leave to change pages. Keep it until the record is inserted and its pages
/// are stamped and marked dirty (or, for a commit, until the status is set).
///
/// Tickets nest; a thread that holds one must not wait for a page, a lock or a checkpoint.
pub struct MtrTicket<'a> {
    lane: &'a AtomicU64,
    horizon: Lsn,
    /// The lane is this thread's.
    _not_send: PhantomData<*const ()>,
}

impl ImageHorizon {
    /// `horizon`: the redo point of the last checkpoint; [`Lsn::MAX`] when there was none.
    pub fn new(horizon: Lsn) -> ImageHorizon {
        ImageHorizon {
            horizon: AtomicU64::new(horizon.0),
            lanes: PerThread::new(|_| AtomicU64::new(0)),
            checkpoint: Mutex::new(()),
        }
    }

    /// Begins a mini-transaction on this thread.
    #[inline]
    pub fn enter(&self) -> MtrTicket<'_> {
        let lane = self.lanes.get(thread_index());
        let was = lane.load(Ordering::Relaxed);
        debug_assert!(was & DEPTH < DEPTH, "tickets nest too deeply");
        let opens = if was & DEPTH == 0 { GENERATION } else { 0 };
        // Release: a checkpointer that waits for this thread's last ticket may learn from this
        // store that it is gone, and must then see what was done under it.
        lane.store(was + opens + 1, Ordering::Release);
        // The store above must not sink below the load: either we see the raised horizon, or the
        // checkpointer, which fences between raising and looking, sees us.
        fence(Ordering::SeqCst);
        let horizon = Lsn(self.horizon.load(Ordering::Relaxed));
        MtrTicket {
            lane,
            horizon,
            _not_send: PhantomData,
        }
    }

    /// Moves the horizon to a new redo point, which is returned. `inserted` tells the end of the
    /// log.
    ///
    /// Waits only for mini-transactions under way (microseconds); nobody waits for it.
    pub fn begin_checkpoint(&self, inserted: impl FnOnce() -> Lsn) -> Lsn {
        let _alone = self.checkpoint.lock();
        // 1. From here on, who enters logs images.
        self.horizon.store(Lsn::MAX.0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // 2. Nobody is left who decides by the old horizon.
        self.wait_out();
        // 3. What lies before R need not be redone once this checkpoint is complete.
        let redo = inserted();
        // The read of the log's end must not sink below the looks of phase 5: whoever's record it
        // counted is seen there.
        fence(Ordering::SeqCst);
        // 4. A page changed after R by now has had its image.
        self.horizon.store(redo.0, Ordering::Relaxed);
        // 5. Whoever logged before R has marked its pages.
        self.wait_out();
        redo
    }

    /// The redo point by which pages are imaged now; [`Lsn::MAX`] while a checkpoint begins.
    pub fn current(&self) -> Lsn {
        Lsn(self.horizon.load(Ordering::Relaxed))
    }

    /// Returns when every ticket that is out now has been dropped.
    fn wait_out(&self) {
        for index in 0..threads_high_water() {
            let lane = self.lanes.get(index);
            // Acquire, here and below: what the holder did before dropping its ticket is seen
            // after.
            let seen = lane.load(Ordering::Acquire);
            if seen & DEPTH == 0 {
                continue;
            }
            let mut spin = SpinWait::new();
            let mut yields = 0;
            while still_inside(seen, lane.load(Ordering::Acquire)) {
                if spin.spin() {
                    continue;
                }
                // The holder waits for room in the log, or lost its core: let it have ours.
                yields += 1;
                if yields < 100 || throng_sync::IS_MODEL {
                    throng_sync::thread::yield_now();
                } else {
                    throng_sync::thread::sleep(Duration::from_micros(100));
                }
            }
        }
    }
}

impl MtrTicket<'_> {
    /// Whether a change of a page with this LSN must be logged as an image of the page.
    #[inline]
    pub fn needs_image(&self, page_lsn: Lsn) -> bool {
        page_lsn <= self.horizon
    }
}

impl Drop for MtrTicket<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: everything done under the ticket is seen by the checkpointer that finds it gone.
        self.lane
            .store(self.lane.load(Ordering::Relaxed) - 1, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_page_needs_one_image_after_each_checkpoint() {
        let horizon = ImageHorizon::new(Lsn(100));
        assert!(horizon.enter().needs_image(Lsn(0)));
        assert!(horizon.enter().needs_image(Lsn(100)));
        assert!(!horizon.enter().needs_image(Lsn(101)));
        assert_eq!(horizon.begin_checkpoint(|| Lsn(500)), Lsn(500));
        assert!(horizon.enter().needs_image(Lsn(500)));
        assert!(!horizon.enter().needs_image(Lsn(501)));
    }

    #[test]
    fn a_checkpoint_waits_for_tickets_and_nobody_waits_for_it() {
        let horizon = ImageHorizon::new(Lsn(0));
        std::thread::scope(|s| {
            let outer = horizon.enter();
            let inner = horizon.enter();
            let (done, finished) = mpsc::channel();
            let horizon = &horizon;
            s.spawn(move || done.send(horizon.begin_checkpoint(|| Lsn(9))).unwrap());
            while horizon.current() != Lsn::MAX {
                std::thread::yield_now();
            }
            // Dropped out of order: the thread is inside until the last is gone.
            drop(outer);
            s.spawn(|| assert!(horizon.enter().needs_image(Lsn(1 << 60))))
                .join()
                .unwrap();
            assert!(finished.try_recv().is_err());
            drop(inner);
            assert_eq!(finished.recv().unwrap(), Lsn(9));
        });
    }

    #[test]
    fn a_lane_that_was_left_and_entered_again_is_not_waited_for() {
        assert!(still_inside(GENERATION | 2, GENERATION | 1));
        assert!(!still_inside(GENERATION | 1, GENERATION));
        assert!(!still_inside(GENERATION | 1, (2 * GENERATION) | 1));
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::{Arc, Mutex as LoomMutex};
    use loom::thread;

    struct World {
        horizon: ImageHorizon,
        tail: AtomicU64,
        /// LSN of the only page, guarded as by its latch, and what was logged: (end, image).
        page: LoomMutex<(u64, Vec<(u64, bool)>)>,
        /// By record end: whether its holder has marked the page dirty.
        dirty: [AtomicU64; 8],
    }

    fn mtr(world: &World) {
        let ticket = world.horizon.enter();
        let mut page = world.page.lock().unwrap();
        let image = ticket.needs_image(Lsn(page.0));
        let end = world.tail.fetch_add(1, Ordering::AcqRel) + 1;
        page.0 = end;
        page.1.push((end, image));
        world.dirty[end as usize].store(1, Ordering::Relaxed);
    }

    fn check(mtrs: [usize; 2]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let world = Arc::new(World {
                horizon: ImageHorizon::new(Lsn(0)),
                tail: AtomicU64::new(1),
                page: LoomMutex::new((1, Vec::new())),
                dirty: std::array::from_fn(|_| AtomicU64::new(0)),
            });
            let threads = mtrs.map(|count| {
                let world = world.clone();
                thread::spawn(move || (0..count).for_each(|_| mtr(&world)))
            });
            let redo = world
                .horizon
                .begin_checkpoint(|| Lsn(world.tail.load(Ordering::Acquire)));
            for end in 2..=redo.0 {
                assert_eq!(
                    world.dirty[end as usize].load(Ordering::Relaxed),
                    1,
                    "the checkpoint would miss a page"
                );
            }
            for thread in threads {
                thread.join().unwrap();
            }
            let page = world.page.lock().unwrap();
            if let Some((_, image)) = page.1.iter().find(|(end, _)| *end > redo.0) {
                assert!(
                    image,
                    "the first change after the redo point is not an image"
                );
            }
        });
    }

    #[test]
    fn loom_first_change_after_redo_is_an_image_and_earlier_ones_are_dirty() {
        check([1, 1]);
    }

    #[test]
    fn loom_a_thread_that_enters_again_is_not_taken_for_the_one_before() {
        check([2, 0]);
    }
}
