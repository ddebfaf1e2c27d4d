//! The pool: opening it, finding pages in it, and what happens when they are not there.

mod evict;
mod extend;
pub(crate) mod guard;
mod io;
pub(crate) mod ring;
mod write;

pub use extend::Extended;
pub use guard::{ExclusiveGuard, OptimisticPage, SharedGuard};
pub use ring::{AccessStrategy, Ring};
pub use write::FlushAfter;

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_disk::RelFiles;
use throng_observe::{Counter, WaitEvent, background, count};
use throng_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use throng_sync::lock::{Condvar, Mutex};
use throng_sync::thread::{self, JoinHandle};
use throng_sync::{CachePadded, Nodes, SpinWait, lab};
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, Error, FileId, Lsn, PageId, Result, error::state};
use throng_wal::{ImageHorizon, Wal};

use crate::frames::{FrameNo, Frames};
use crate::growth::{Extension, GrowthLock};
use crate::request::{Begun, Registry};
use crate::wait::{Interrupt, PAGE_READER, PAGE_WRITER, Try, Wait};
use crate::words::PageRef;
use guard::PagePin;
use io::ReadQueue;
use ring::BehindQueue;

/// Told of errors that no session waits for: a page that could not be written and will be tried
/// again.
pub type ErrorReport = Arc<dyn Fn(&Error) + Send + Sync>;

/// How to open a pool.
pub struct PoolConfig {
    /// Memory for pages, in bytes; rounded down to whole pages, and up to
    /// [`PoolConfig::MIN_FRAMES`].
    pub bytes: usize,
    /// Threads that read pages in. More than the disk has heads or queues for does not help.
    pub io_threads: usize,
    /// Where errors of background work go.
    pub report: ErrorReport,
    /// The redo point of the last checkpoint, if it is known that nothing after it needs redo;
    /// otherwise [`Lsn::MAX`], with which every change is logged as an image until the next
    /// checkpoint.
    pub redo: Lsn,
    /// How much longer the latch of every changed page is held: the laboratory's hot latch
    /// (`lab_latch_hold_us`).
    pub lab_latch_hold: Duration,
    /// How files are made longer.
    pub extension: Extension,
    /// The memory nodes over which free frames and the pages' memory are split.
    pub nodes: Nodes,
}

impl PoolConfig {
    /// Fewer would not hold the pages of one B-tree split for each of a few sessions. 128 KB,
    /// PostgreSQL's minimum too. Models have fewer pages.
    pub const MIN_FRAMES: usize = if throng_sync::IS_MODEL { 8 } else { 16 };

    pub fn new(bytes: usize) -> PoolConfig {
        PoolConfig {
            bytes,
            io_threads: 4,
            report: Arc::new(report_to_stderr),
            redo: Lsn::MAX,
            lab_latch_hold: Duration::ZERO,
            extension: Extension::default(),
            nodes: Nodes::one(),
        }
    }
}

fn report_to_stderr(error: &Error) {
    eprintln!("LOG: {error}");
}

/// What the pool is doing, at a glance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    pub frames: usize,
    /// Frames ready for use.
    pub free: usize,
    /// Frames with a page.
    pub valid: usize,
    pub dirty: usize,
    pub reads: u64,
    pub writes: u64,
    pub evictions: u64,
    /// Writes that failed and were, or will be, repeated.
    pub write_errors: u64,
    /// Pages written by somebody who needed the frame at once, rather than by the page writer or a
    /// checkpoint.
    pub foreground_writes: u64,
}

#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) evictions: AtomicU64,
    pub(crate) write_errors: AtomicU64,
    pub(crate) foreground_writes: AtomicU64,
}

impl Totals {
    pub(crate) fn add(total: &AtomicU64, n: u64) {
        total.fetch_add(n, Ordering::Relaxed);
    }
}

/// The pool with its threads: dropping it ends them. Everything else is [`PoolCore`].
///
/// Dropping writes nothing: what is dirty is in the log. A clean shutdown takes a checkpoint first.
pub struct Pool {
    core: Arc<PoolCore>,
    threads: Vec<JoinHandle<()>>,
}

/// Pages in memory. See the crate's page.
pub struct PoolCore {
    pub(crate) frames: Arc<Frames>,
    pub(crate) registry: Registry,
    pub(crate) files: Arc<RelFiles>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) horizon: ImageHorizon,
    pub(crate) queue: ReadQueue,
    pub(crate) behind: BehindQueue,
    /// The clock's hand, counting up for ever.
    pub(crate) hand: AtomicU64,
    pub(crate) extension: Extension,
    /// By file number.
    pub(crate) growth: Box<[CachePadded<GrowthLock>]>,
    /// Loads that have a ring just now: they share what loads may keep.
    pub(crate) loads: Arc<AtomicUsize>,
    /// Told when a write ends.
    pub(crate) write_ended: (Mutex<()>, Condvar),
    pub(crate) report: ErrorReport,
    pub(crate) last_report: Mutex<Option<Instant>>,
    pub(crate) stopping: AtomicBool,
    pub(crate) totals: Totals,
    pub(crate) flush_after: FlushAfter,
    lab_latch_hold: Duration,
}

/// After so many torn or missed looks a reader takes the latch: the page is being written all the
/// time.
const OPTIMISTIC_ATTEMPTS: usize = 4;

impl Pool {
    /// Reserves the memory and starts the threads.
    ///
    /// # Errors
    /// 53200 when memory or threads cannot be had.
    pub fn open(config: PoolConfig, files: Arc<RelFiles>, wal: Arc<Wal>) -> Result<Arc<Pool>> {
        let frames = Arc::new(Frames::new(
            (config.bytes / PAGE_SIZE).max(PoolConfig::MIN_FRAMES),
            config.nodes,
        )?);
        let core = Arc::new(PoolCore {
            registry: Registry::new(frames.clone()),
            frames,
            files,
            wal,
            horizon: ImageHorizon::new(config.redo),
            queue: ReadQueue::default(),
            behind: BehindQueue::default(),
            hand: AtomicU64::new(0),
            extension: Extension {
                bulk: config.extension.bulk.clamp(1, Extension::MOST),
                ..config.extension
            },
            growth: (0..64).map(|_| CachePadded::default()).collect(),
            loads: Arc::default(),
            write_ended: Default::default(),
            report: config.report,
            last_report: Mutex::new(None),
            stopping: AtomicBool::new(false),
            totals: Totals::default(),
            flush_after: FlushAfter::default(),
            lab_latch_hold: config.lab_latch_hold,
        });
        let mut pool = Pool {
            core,
            threads: Vec::new(),
        };
        pool.start(PAGE_WRITER, PAGE_WRITER.into(), PoolCore::run_page_writer)?;
        for i in 0..config.io_threads.max(1) {
            pool.start(
                PAGE_READER,
                format!("{PAGE_READER}-{i}"),
                PoolCore::run_reader,
            )?;
        }
        Ok(Arc::new(pool))
    }

    /// `kind` is what the waits of such threads are shown under.
    fn start(&mut self, kind: &'static str, name: String, run: fn(&PoolCore)) -> Result<()> {
        let core = self.core.clone();
        let thread = thread::Builder::new().name(name).spawn(move || {
            let _background = background(kind);
            run(&core);
        });
        self.threads.push(thread?);
        Ok(())
    }
}

impl Deref for Pool {
    type Target = PoolCore;
    #[inline]
    fn deref(&self) -> &PoolCore {
        &self.core
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.core.stopping.store(true, Ordering::SeqCst);
        self.core.queue.wake_all();
        self.core.frames.stock.writer().unpark();
        for thread in self.threads.drain(..) {
            // A panic there has been printed; another one here would abort.
            let _ = thread.join();
        }
    }
}

impl PoolCore {
    /// Runs `look` over the page without latching it, again until it has seen one consistent state,
    /// and returns what it returned then. After a few torn looks it runs under the shared latch.
    ///
    /// `look` may be called several times and must bear any bytes: bound every loop, and empty what
    /// it fills each time.
    ///
    /// # Errors
    /// A wait when the page is not in memory; XX001 when it is damaged or beyond its file's end.
    #[inline]
    pub fn read<R>(&self, page: PageId, look: impl FnMut(&PageRef<'_>) -> R) -> Try<R> {
        self.read_near(page, 0, look)
    }

    /// As [`read`](Self::read), of a page on which the bytes at `near` will be looked at: they are
    /// brought in ahead.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn read_near<R>(
        &self,
        page: PageId,
        near: usize,
        mut look: impl FnMut(&PageRef<'_>) -> R,
    ) -> Try<R> {
        if lab::reads_pin() {
            return self.read_pinned(page, look);
        }
        for _ in 0..OPTIMISTIC_ATTEMPTS {
            let Some(optimistic) = self.try_optimistic(page, near, true)? else {
                continue;
            };
            let answer = look(optimistic.page());
            if optimistic.validate() {
                return Ok(answer);
            }
            count(Counter::OptimisticRetry, 1);
        }
        self.read_latched(page, look)
    }

    #[cold]
    fn read_latched<R>(&self, page: PageId, mut look: impl FnMut(&PageRef<'_>) -> R) -> Try<R> {
        let guard = self.shared(page)?;
        Ok(look(&guard.page()))
    }

    /// As PostgreSQL reads: with a pin, and the latch held shared. For the laboratory.
    #[cold]
    fn read_pinned<R>(&self, page: PageId, mut look: impl FnMut(&PageRef<'_>) -> R) -> Try<R> {
        loop {
            let Some(number) = self.frames.find(page) else {
                self.missed(page, false)?;
                continue;
            };
            if let Some(_pin) = PagePin::of(self, number, page)
                && self.frames.latch_shared(number, page)
            {
                self.note_hit(number, false);
                let guard = SharedGuard::of_latched(self, number, page);
                return Ok(look(&guard.page()));
            }
        }
    }

    /// The page at its present version, for descents that couple versions instead of latches.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn read_with_version(&self, page: PageId) -> Try<OptimisticPage<'_>> {
        loop {
            if let Some(found) = self.try_optimistic(page, 0, true)? {
                return Ok(found);
            }
        }
    }

    /// `None` when it should be tried again.
    #[inline]
    fn try_optimistic(
        &self,
        page: PageId,
        near: usize,
        touch: bool,
    ) -> Try<Option<OptimisticPage<'_>>> {
        let Some(number) = self.frames.find_to_read(page, near) else {
            return self.missed(page, false).map(|()| None);
        };
        let frame = self.frames.at(number);
        let mut pin = None;
        if lab::reads_pin() {
            pin = PagePin::of(self, number, page);
            if pin.is_none() {
                return Ok(None);
            }
        }
        let Some(version) = frame.latch.optimistic() else {
            self.let_writer_finish(number, page);
            return Ok(None);
        };
        if !frame.holds(page) {
            return Ok(None);
        }
        if touch {
            frame.touch();
        }
        count(Counter::PageHit, 1);
        Ok(Some(OptimisticPage::new(self, number, page, version, pin)))
    }

    /// Spins for as long as a writer usually takes, then sleeps until this one has gone.
    #[cold]
    fn let_writer_finish(&self, number: FrameNo, page: PageId) {
        let frame = self.frames.at(number);
        let latch = &frame.latch;
        let mut spin = SpinWait::new();
        while latch.is_exclusive() {
            if !spin.spin() {
                if self.frames.latch_shared(number, page) {
                    latch.unlock_shared();
                }
                return;
            }
        }
    }

    /// The first step on the way to a page that will be read soon: what tells where it is comes
    /// into the core's cache while the caller goes on. These three look, and promise nothing.
    #[inline]
    pub fn fetch_bucket_ahead(&self, page: PageId) {
        self.frames.fetch_bucket_ahead(page);
    }

    /// The second step: its header and the bytes at `near`.
    #[inline]
    pub fn fetch_page_ahead(&self, page: PageId, near: usize) {
        self.frames.fetch_page_ahead(page, near);
    }

    /// The eight bytes around `near` as they may be, to guess by where to look next.
    #[inline]
    pub fn glance(&self, page: PageId, near: usize) -> Option<u64> {
        self.frames.glance(page, near)
    }

    /// The page with its latch held shared.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn shared(&self, page: PageId) -> Try<SharedGuard<'_>> {
        self.shared_entering(page, false)
    }

    /// As [`shared`](Self::shared), for a scan or a load with a ring of its own.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn shared_with(&self, page: PageId, ring: &mut Ring) -> Try<SharedGuard<'_>> {
        let transient = ring.visit(self, page);
        self.shared_entering(page, transient)
    }

    fn shared_entering(&self, page: PageId, transient: bool) -> Try<SharedGuard<'_>> {
        loop {
            let Some(number) = self.frames.find(page) else {
                self.missed(page, transient)?;
                continue;
            };
            if self.frames.latch_shared(number, page) {
                self.note_hit(number, transient);
                return Ok(SharedGuard::of_latched(self, number, page));
            }
        }
    }

    /// The page with its latch held exclusively.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn exclusive(&self, page: PageId) -> Try<ExclusiveGuard<'_>> {
        self.exclusive_entering(page, false)
    }

    /// As [`exclusive`](Self::exclusive), for a scan or a load with a ring of its own.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn exclusive_with(&self, page: PageId, ring: &mut Ring) -> Try<ExclusiveGuard<'_>> {
        let transient = ring.visit(self, page);
        self.exclusive_entering(page, transient)
    }

    fn exclusive_entering(&self, page: PageId, transient: bool) -> Try<ExclusiveGuard<'_>> {
        loop {
            let Some(number) = self.frames.find(page) else {
                self.missed(page, transient)?;
                continue;
            };
            if self.frames.latch_exclusive(number, page) {
                self.note_hit(number, transient);
                return Ok(ExclusiveGuard::of_latched(self, number, page));
            }
        }
    }

    /// As [`exclusive`](Self::exclusive), but `None` when anybody else has the page latched.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn try_exclusive(&self, page: PageId) -> Try<Option<ExclusiveGuard<'_>>> {
        loop {
            let Some(number) = self.frames.find(page) else {
                self.missed(page, false)?;
                continue;
            };
            let frame = self.frames.at(number);
            if !frame.latch.try_exclusive() {
                return Ok(None);
            }
            if frame.holds(page) {
                self.note_hit(number, false);
                return Ok(Some(ExclusiveGuard::of_latched(self, number, page)));
            }
            frame.latch.unlock_exclusive_unchanged();
        }
    }

    /// Has the page read in if it is not here, without waiting. Does nothing when much is being
    /// read already.
    pub fn prefetch(&self, page: PageId) {
        self.prefetch_entering(page, false);
    }

    pub(crate) fn prefetch_entering(&self, page: PageId, transient: bool) {
        if self.queue.is_busy() || self.frames.find(page).is_some() {
            return;
        }
        if self.beyond_end(page).is_some() {
            return;
        }
        if let Begun::Mine(request) = self.begin_read(page, transient) {
            self.queue.push(request);
        }
    }

    #[inline]
    fn note_hit(&self, number: FrameNo, transient: bool) {
        if !transient {
            self.frames.at(number).touch();
        }
        count(Counter::PageHit, 1);
    }

    /// What to do about a page that was not found: `Ok` to look again.
    #[cold]
    fn missed(&self, page: PageId, transient: bool) -> Try<()> {
        if let Some(error) = self.beyond_end(page) {
            return Err(error.into());
        }
        match self.begin_read(page, transient) {
            Begun::Resident => Ok(()),
            Begun::Joined(request) => Err(Interrupt::Wait(Wait::for_read(
                request,
                WaitEvent::PageArrival,
            ))),
            Begun::Mine(request) if self.bring_in_at_once(&request) => Ok(()),
            Begun::Mine(request) => {
                self.queue.push(request.clone());
                Err(Interrupt::Wait(Wait::for_read(
                    request,
                    WaitEvent::PageRead,
                )))
            }
        }
    }

    pub(crate) fn begin_read(&self, page: PageId, transient: bool) -> Begun {
        self.registry
            .begin(page, transient, || self.frames.find(page).is_some())
    }

    #[cold]
    fn beyond_end(&self, page: PageId) -> Option<Error> {
        match self.blocks(page.file()) {
            Ok(blocks) if page.block() < blocks => None,
            Ok(_) => Some(Error::corrupted(format!(
                "could not read blocks {0}..{0} in file \"base/{1}\": read only 0 of {PAGE_SIZE} bytes",
                page.block(),
                page.file(),
            ))),
            Err(error) => Some(error),
        }
    }

    /// How many pages the file has.
    ///
    /// # Errors
    /// 58P01 when there is no such file; 58030 when its length cannot be told.
    pub fn blocks(&self, file: FileId) -> Result<BlockNo> {
        self.files.blocks(file).map_err(disk_error)
    }

    pub fn files(&self) -> &Arc<RelFiles> {
        &self.files
    }

    pub fn wal(&self) -> &Arc<Wal> {
        &self.wal
    }

    pub fn flush_after(&self) -> &FlushAfter {
        &self.flush_after
    }

    /// By what mini-transactions decide whether to log images; the checkpointer moves it.
    pub fn horizon(&self) -> &ImageHorizon {
        &self.horizon
    }

    pub fn stats(&self) -> PoolStats {
        let (valid, dirty) = self.frames.count();
        let total = |total: &AtomicU64| total.load(Ordering::Relaxed);
        PoolStats {
            frames: self.frames.len(),
            free: self.frames.stock.len(),
            valid,
            dirty,
            reads: total(&self.totals.reads),
            writes: total(&self.totals.writes),
            evictions: total(&self.totals.evictions),
            write_errors: total(&self.totals.write_errors),
            foreground_writes: total(&self.totals.foreground_writes),
        }
    }

    /// Before a changed page's latch is let go: keeps it a while longer if the laboratory wants
    /// that.
    #[inline]
    pub(crate) fn linger_in_latch(&self) {
        if !self.lab_latch_hold.is_zero() {
            thread::sleep(self.lab_latch_hold);
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// The error for a client; 58P01 for a file that is not there.
pub(crate) fn disk_error(error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Error::new(state::UNDEFINED_FILE, error.to_string());
    }
    Error::from(error)
}
