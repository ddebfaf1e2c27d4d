//! The log as the other rooms see it.

use crate::buffer::Reservation;
use crate::config::WalConfig;
use crate::record::{LSN_AT, MIN_RECORD, RecordBuilder};
use crate::retention::{Retention, WalHold};
use crate::segment::Segments;
use crate::shared::{FLUSHER, FlushObserver, Shared};
use crate::timeline::TimelineId;
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
    retention: Arc<Retention>,
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
            retention: Arc::default(),
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
        tail::verify(disk, config, end)
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
        let bytes = record.seal(shared.timeline);
        let inserting = sampled(Structure::WalInsert);
        let place = shared.buffer.reserve(thread_index(), bytes.len() as u64);
        let span = (Lsn(place.start), Lsn(place.end));
        self.copy(place, bytes);
        drop(inserting);
        span
    }

    #[inline]
    fn copy(&self, place: Reservation, bytes: &mut [u8]) {
        let shared = &self.shared;
        bytes[LSN_AT..LSN_AT + 8].copy_from_slice(&place.start.to_le_bytes());
        shared.buffer.copy(place, bytes, |at| self.wait_for(at));
        count(Counter::WalRecord, 1);
        count(Counter::WalByte, bytes.len() as u64);
        if shared.needs_writing() {
            shared.kick();
        }
    }

    /// Fills what is left of the current segment, so that it can be archived; nothing where it has
    /// no record yet. Returns the end of what was in it.
    pub fn switch_segment(&self) -> Lsn {
        let size = self.shared.config.segment_size;
        loop {
            let end = self.inserted().0;
            let rest = (size - end % size) % size;
            if rest == 0 {
                return Lsn(end);
            }
            // Where there is too little room for a record, it goes on in the next segment.
            let len = rest.max(MIN_RECORD as u64);
            let mut record = RecordBuilder::new();
            record.filler(len as usize);
            let bytes = record.seal(self.shared.timeline);
            // Whatever comes between makes another rest.
            if let Some(place) = self.shared.buffer.reserve_at(thread_index(), end, len) {
                self.copy(place, bytes);
                return Lsn(end);
            }
        }
    }

    /// Appends bytes of another server's log as they are; `at` is where they have to come, the end
    /// of this log. Nothing else may be inserted.
    ///
    /// # Errors
    /// XX000 when the log ends elsewhere.
    pub fn append(&self, at: Lsn, bytes: &[u8]) -> Result<()> {
        let shared = &self.shared;
        let len = bytes.len() as u64;
        let Some(place) = shared.buffer.reserve_at(thread_index(), at.0, len) else {
            let end = self.inserted().to_halves();
            let message = format!("the log goes on at {end}, not at {}", at.to_halves());
            return Err(Error::internal(message));
        };
        shared.buffer.copy(place, bytes, |at| self.wait_for(at));
        count(Counter::WalByte, len);
        if shared.needs_writing() {
            shared.kick();
        }
        Ok(())
    }

    pub fn timeline(&self) -> TimelineId {
        self.shared.timeline
    }

    /// Keeps the log from `from` on, or what there is of it, as long as the answer is there.
    pub fn hold(&self, from: Lsn) -> WalHold {
        let hold = WalHold::new(&self.retention, from);
        hold.advance(self.oldest());
        hold
    }

    /// Where the oldest segment begins that is still there.
    pub fn oldest(&self) -> Lsn {
        self.segments.oldest()
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

    /// Segments wholly below `lsn` are needed no more, but for those that somebody
    /// [holds](Self::hold): reuses or removes them. To be called after a checkpoint has been made
    /// durable, with its redo point.
    pub fn recycle_before(&self, lsn: Lsn) -> Result<()> {
        self.retention
            .recycle(lsn, |least| self.segments.recycle_before(least))
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
