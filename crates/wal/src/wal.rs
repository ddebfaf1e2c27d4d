//! The log as the other rooms see it.

use crate::config::WalConfig;
use crate::record::{LSN_AT, RecordBuilder};
use crate::segment::Segments;
use crate::shared::{FLUSHER, FlushObserver, Shared};
use crate::wait::{FlushWait, RoomWait};
use crate::writer::Writer;
use crate::{flusher, made, tail};
use std::sync::Arc;
use throng_disk::Disk;
use throng_observe::{Counter, Structure, background, count, sampled};
use throng_sync::atomic::{Ordering, fence};
use throng_sync::lock::Mutex;
use throng_sync::thread::{self, JoinHandle};
use throng_sync::thread_index;
use throng_types::{Error, Lsn, Result};

/// The write-ahead log, open for insertion.
///
/// Dropping it stops its threads after a last flush; [`shutdown`](Self::shutdown) does so and tells
/// the outcome.
pub struct Wal {
    shared: Arc<Shared>,
    segments: Arc<Segments>,
    flusher: Mutex<Option<JoinHandle<()>>>,
    maker: Mutex<Option<JoinHandle<()>>>,
}

impl Wal {
    /// Where the log of a new data directory starts: not at zero, so that a page never logged (LSN 0)
    /// is older than every record, and at the start of a segment of any reasonable size.
    pub const FIRST: Lsn = Lsn(16 << 20);

    /// Opens the log for appending at `start`: [`FIRST`](Self::FIRST), or where a
    /// [`Reader`](crate::Reader) found its end. What the files hold beyond is cleared.
    pub fn open(disk: Arc<dyn Disk>, config: WalConfig, start: Lsn) -> Result<Arc<Wal>> {
        assert!(
            config.segment_size.is_multiple_of(4096) && config.segment_size > 0,
            "segments are made of whole blocks"
        );
        let segments = Arc::new(Segments::open(disk, &config, start)?);
        let writer = Writer::open(&segments, start)?;
        let shared = Arc::new(Shared::new(config, start, writer));
        let wal = Wal {
            shared: shared.clone(),
            segments: segments.clone(),
            flusher: Mutex::default(),
            maker: Mutex::default(),
        };
        let (made_by, of) = (segments.clone(), shared.clone());
        let flushed = move || of.flushed();
        *wal.maker.lock() = Some(spawn("wal-segments", move || made_by.run_maker(&flushed))?);
        *wal.flusher.lock() = Some(spawn(FLUSHER, move || flusher::run(&shared, &segments))?);
        Ok(Arc::new(wal))
    }

    /// Looks whether all segments from the one of `redo` on are there and whole, before anything is
    /// read of them. `complete`: of a directory in which each segment was entered as it was made,
    /// which those of old are not.
    ///
    /// # Errors
    /// XX001 naming what is missing.
    pub fn verify(disk: &dyn Disk, config: &WalConfig, redo: Lsn, complete: bool) -> Result<()> {
        made::verify(disk, config, redo, complete)
    }

    /// Looks whether the log may end at `end`, where a [`Reader`](crate::Reader) has found its end:
    /// behind it there may be what a crash has torn, but no proof that more was durable.
    ///
    /// # Errors
    /// XX001 naming the file and the place.
    pub fn verify_end(disk: &Arc<dyn Disk>, config: &WalConfig, end: Lsn) -> Result<()> {
        tail::verify(disk, config.segment_size, end)
    }

    pub fn config(&self) -> &WalConfig {
        &self.shared.config
    }

    /// Whom to tell about flushes. Once.
    ///
    /// # Panics
    /// The second time.
    pub fn set_flush_observer(&self, observer: Box<dyn FlushObserver>) {
        self.shared.set_observer(observer);
    }

    /// Appends a record and returns its end: the LSN to stamp pages with and to wait for.
    ///
    /// Blocks the thread only while the ring is full, which who asks [`has_room`](Self::has_room)
    /// first hardly ever meets. Never fails: when the log has failed, no wait on the LSN succeeds.
    #[inline]
    pub fn insert(&self, record: &mut RecordBuilder) -> Lsn {
        self.insert_span(record).1
    }

    /// As [`insert`](Self::insert); returns the record's start and end.
    pub fn insert_span(&self, record: &mut RecordBuilder) -> (Lsn, Lsn) {
        let shared = &self.shared;
        let bytes = record.seal();
        let inserting = sampled(Structure::WalInsert);
        let place = shared.buffer.reserve(thread_index(), bytes.len() as u64);
        let (start, end) = (place.start, place.end);
        bytes[LSN_AT..LSN_AT + 8].copy_from_slice(&start.to_le_bytes());
        shared.buffer.copy(place, bytes, |at| self.wait_for(at));
        drop(inserting);
        count(Counter::WalRecord, 1);
        count(Counter::WalByte, end - start);
        if shared.needs_writing() {
            shared.kick();
        }
        (Lsn(start), Lsn(end))
    }

    /// The end of the last record inserted (its copy may be under way).
    #[inline]
    pub fn inserted(&self) -> Lsn {
        Lsn(self.shared.buffer.tail())
    }

    /// Everything below survives a crash.
    #[inline]
    pub fn flushed(&self) -> Lsn {
        self.shared.flushed()
    }

    /// Becomes ready when everything below `lsn` is flushed; then the error, of severity PANIC, if
    /// that cannot happen any more. May be dropped at any time. Holds no thread and no lock
    /// meanwhile.
    pub fn flush(&self, lsn: Lsn) -> FlushWait {
        FlushWait::new(&self.shared, lsn)
    }

    /// Flushes what is there on the calling thread, if that takes a few hundred microseconds at
    /// most and nobody is at it: for who would wait for it and has nothing else to do. How far that
    /// came [`flush`](Self::flush) tells.
    pub fn flush_here(&self) {
        flusher::flush_here(&self.shared, &self.segments);
    }

    /// As [`flush`](Self::flush), blocking the calling thread: for threads that own themselves.
    pub fn flush_blocking(&self, lsn: Lsn) -> Result<()> {
        self.flush(lsn).block()
    }

    /// Sees to it that everything below `lsn` is flushed within about `writer_delay_us`, and waits
    /// for nothing: asynchronous commit.
    pub fn request_flush(&self, lsn: Lsn) {
        let shared = &self.shared;
        let before = shared
            .lazily_wanted
            .fetch_max(lsn.0.min(shared.buffer.tail()), Ordering::Relaxed);
        // Either the flusher, about to sleep, sees this wish, or we see how far it has flushed.
        fence(Ordering::SeqCst);
        // Only the first since the last flush has to start the clock.
        if before <= shared.flushed().0 {
            shared.kick();
        }
    }

    /// Whether there is room for any sensible mini-transaction. To be asked before latching pages.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.shared.has_room()
    }

    /// Becomes ready when [`has_room`](Self::has_room) is true.
    pub fn room_wait(&self) -> RoomWait {
        RoomWait::new(&self.shared)
    }

    /// Why nothing can be made durable any more.
    pub fn failed(&self) -> Option<Error> {
        self.shared.failed().cloned()
    }

    /// An error (53100 as a rule) while no further segment can be made. New changes should be
    /// refused with it; the segments made ahead are room for what is under way, and for the
    /// checkpoint that frees others.
    pub fn check_space(&self) -> Result<()> {
        self.segments.check_space()
    }

    /// Segments wholly below `lsn` are needed no more: reuses or removes them. To be called after a
    /// checkpoint has been made durable, with its redo point.
    pub fn recycle_before(&self, lsn: Lsn) -> Result<()> {
        self.segments.recycle_before(lsn)
    }

    /// Flushes everything and stops the threads. Nothing may be inserted after.
    pub fn shutdown(&self) -> Result<()> {
        let flushed = self.flush_blocking(self.inserted());
        self.stop();
        flushed
    }

    fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.kick();
        // The flusher first: it may need one more segment.
        join(self.flusher.lock().take());
        self.segments.stop();
        join(self.maker.lock().take());
    }

    #[cold]
    fn wait_for(&self, at: u64) {
        RoomWait::for_position(&self.shared, at).block_for_insert();
    }
}

impl Drop for Wal {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn(name: &'static str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let run = move || {
        let _background = background(name);
        run();
    };
    Ok(thread::Builder::new().name(name.into()).spawn(run)?)
}

fn join(thread: Option<JoinHandle<()>>) {
    // The last owner may be the flusher's own observer: a thread does not wait for itself.
    if let Some(thread) = thread.filter(|t| t.thread().id() != thread::current().id()) {
        // A panic has been reported where it happened.
        let _ = thread.join();
    }
}
