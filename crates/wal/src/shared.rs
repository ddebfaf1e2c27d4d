//! What inserters, waiters and the flusher share.

use crate::buffer::LogBuffer;
use crate::config::WalConfig;
use crate::timeline::TimelineId;
use crate::waiters::{FlushWaiters, RoomWaiters};
use crate::writer::Writer;
use std::sync::{Arc, OnceLock};
use throng_sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use throng_sync::lock::Mutex;
use throng_sync::{CachePadded, Parker};
use throng_types::error::{Severity, state};
use throng_types::{Error, Lsn};

/// The flusher's thread: what commits wait for.
pub(crate) const FLUSHER: &str = "wal-flusher";

/// Told about flushes, one at a time, by the thread that flushes; must not wait for the log or for
/// anyone who might.
pub trait FlushObserver: Send + Sync {
    /// A flush begins. What was inserted before this call is durable when the token comes back.
    fn before_flush(&self) -> u64;
    /// The flush that got this token is done, and all below `flushed` durable. The waiters do not
    /// know yet.
    fn after_flush(&self, token: u64, flushed: Lsn);
    /// How many transactions are at work, for `commit_siblings`; need not count further than
    /// `enough`. Asked only while `commit_delay` is set.
    fn active_transactions(&self, enough: u32) -> u32;
}

impl<T: FlushObserver + ?Sized> FlushObserver for Arc<T> {
    fn before_flush(&self) -> u64 {
        (**self).before_flush()
    }
    fn after_flush(&self, token: u64, flushed: Lsn) {
        (**self).after_flush(token, flushed);
    }
    fn active_transactions(&self, enough: u32) -> u32 {
        (**self).active_transactions(enough)
    }
}

/// What inserters, waiters and the flusher share.
pub(crate) struct Shared {
    pub buffer: LogBuffer,
    flushed: CachePadded<AtomicU64>,
    /// The highest position that somebody waits for.
    pub wanted: CachePadded<AtomicU64>,
    /// The highest position that should be flushed before long.
    pub lazily_wanted: AtomicU64,
    /// The flusher sleeps, or is about to.
    pub asleep: AtomicBool,
    pub stop: AtomicBool,
    pub parker: Parker,
    /// Locked by who makes a round: the flusher, or a thread that flushes for itself.
    pub writer: Mutex<Writer>,
    pub flush_waiters: FlushWaiters,
    pub room_waiters: RoomWaiters,
    pub config: WalConfig,
    /// Of what is inserted.
    pub timeline: TimelineId,
    observer: OnceLock<Box<dyn FlushObserver>>,
    failed: OnceLock<Error>,
}

impl Shared {
    pub fn new(config: WalConfig, start: Lsn, writer: Writer) -> Shared {
        let ring = config.buffer.max(4096).next_power_of_two();
        Shared {
            buffer: LogBuffer::new(ring, start.0, config.insert, config.insert_lanes),
            flushed: CachePadded::new(AtomicU64::new(start.0)),
            wanted: CachePadded::new(AtomicU64::new(start.0)),
            lazily_wanted: AtomicU64::new(start.0),
            asleep: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            parker: Parker::new(),
            writer: Mutex::new(writer),
            flush_waiters: FlushWaiters::new(),
            room_waiters: RoomWaiters::default(),
            timeline: config.history.current(),
            config,
            observer: OnceLock::new(),
            failed: OnceLock::new(),
        }
    }

    /// Once.
    pub fn set_observer(&self, observer: Box<dyn FlushObserver>) {
        assert!(
            self.observer.set(observer).is_ok(),
            "the log has an observer already"
        );
    }

    #[inline]
    pub fn flushed(&self) -> Lsn {
        // Acquire: who sees its commit flushed sees what the observer did about it.
        Lsn(self.flushed.load(Ordering::Acquire))
    }
    pub fn failed(&self) -> Option<&Error> {
        self.failed.get()
    }
    pub fn observer(&self) -> Option<&dyn FlushObserver> {
        self.observer.get().map(|observer| &**observer)
    }
    #[inline]
    pub fn has_room(&self) -> bool {
        self.buffer.room() >= (self.buffer.size() / 4) as i64
    }
    /// Whether so much waits in the ring that the flusher writes it unasked.
    #[inline]
    pub fn needs_writing(&self) -> bool {
        let unasked = self.buffer.size() / 8;
        self.buffer.room() <= (self.buffer.size() - unasked) as i64
    }

    /// Wakes the flusher if it sleeps. The wish for which it is to wake has been stored before.
    #[inline]
    pub fn kick(&self) {
        // The wish must not sink below the look: see the flusher's `sleep`.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.parker.unpark();
        }
    }
    /// Somebody waits for `lsn`.
    pub fn want(&self, lsn: Lsn) {
        self.wanted.fetch_max(lsn.0, Ordering::Relaxed);
        self.kick();
    }

    pub fn publish_flushed(&self, flushed: Lsn) {
        // Release: pairs with `flushed`.
        self.flushed.store(flushed.0, Ordering::Release);
        self.flush_waiters.wake(flushed);
    }

    /// The flusher gives up: nothing that is not flushed yet ever will be.
    #[cold]
    pub fn fail(&self, error: Error) {
        let code = if error.code() == state::DISK_FULL {
            state::DISK_FULL
        } else {
            state::IO_ERROR
        };
        let message = format!(
            "the write-ahead log failed, nothing more can be made durable: {}",
            error.message()
        );
        self.close(Error::new(code, message).severity(Severity::Panic));
    }

    /// The flusher has flushed everything and ends.
    pub fn end(&self) {
        self.close(
            Error::new(state::ADMIN_SHUTDOWN, "the write-ahead log is shut down")
                .severity(Severity::Fatal),
        );
    }

    fn close(&self, error: Error) {
        // First the error, then whatever makes others look for it.
        let _ = self.failed.set(error);
        self.buffer.kill();
        self.room_waiters.wake();
        // Twice: this thread will not be here to help out if a baton stays out.
        self.flush_waiters.wake(Lsn::MAX);
        self.flush_waiters.wake(Lsn::MAX);
    }
}
