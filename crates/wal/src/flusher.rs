//! The flusher: one thread that writes and syncs for everybody.
//!
//! Group commit falls out of there being one: while it writes and syncs, further commits gather,
//! and the next round makes all of them durable with one sync. Alone, a commit is flushed at once.
//! Before a round the flusher lets whoever else can run on its core run first
//! (`throng_sync::yield_core`): on a busy core that is those who are about to commit.
//! `commit_delay` makes it wait a fixed time instead, when there are others.
//!
//! To wake the flusher and be woken by it takes longer than a quick disk's sync. So a thread that
//! has nothing else to do may make a round itself ([`flush_here`]): whoever has the [`Writer`]'s
//! lock is the flusher for that round.
//!
//! A round, in phases, under the writer's lock:
//! 1. take the observer's token;
//! 2. take the end of the log as the target;
//! 3. write what is copied, until the target is reached (copies under way take microseconds);
//! 4. sync;
//! 5. tell the observer, publish `flushed`, wake the waiters.
//!
//! What was inserted before phase 1 is durable at phase 5.
//!
//! When room gets short the flusher writes what there is (phases 2 and 3) and has the system send
//! it on, but waits for no sync: a load of many records goes on meanwhile, and its commit finds
//! little left to sync.

use crate::segment::Segments;
use crate::shared::Shared;
use crate::writer::{SCRATCH, Writer};
use std::time::{Duration, Instant};
use throng_observe::{Object, WaitEvent, blocking, stop_point, waiting};
use throng_sync::SpinWait;
use throng_sync::atomic::{Ordering, fence};
use throng_sync::lock::MutexGuard;
use throng_types::{Error, Lsn, Result};

/// A thread other than the flusher makes a round only if syncs take less than this: it has others
/// to serve after it.
const QUICK_SYNC: Duration = Duration::from_micros(200);

/// When the flusher has to work next.
enum Due {
    Now(Why),
    In(Duration),
    Sometime,
}

enum Why {
    /// Somebody waits for a commit.
    Commit,
    /// An asynchronous commit is old enough.
    LazyCommit,
    /// Room is getting short.
    Room,
    Stop,
}

/// The flusher's life.
pub(crate) fn run(shared: &Shared, segments: &Segments) {
    let mut last_words = LastWords {
        shared,
        said: false,
    };
    let outcome = Flusher {
        shared,
        segments,
        lazy_since: None,
    }
    .live();
    last_words.said = true;
    match outcome {
        Ok(()) => shared.end(),
        Err(error) => shared.fail(error),
    }
}

/// Makes a round on the calling thread, unless another one is under way or it would take long.
pub(crate) fn flush_here(shared: &Shared, segments: &Segments) {
    // `commit_delay` is for the flusher to wait.
    if shared.config.commit_delay_us.load(Ordering::Relaxed) > 0 {
        return;
    }
    let Some(mut writer) = shared.writer.try_lock() else {
        return;
    };
    let end = shared.buffer.tail();
    let is_short = end - shared.flushed().0 <= SCRATCH && end / segments.size() == writer.number;
    if !is_short || writer.sync_time > QUICK_SYNC || shared.failed().is_some() {
        return;
    }
    let mut last_words = LastWords {
        shared,
        said: false,
    };
    let outcome = round(shared, segments, &mut writer);
    last_words.said = true;
    if let Err(error) = outcome {
        shared.fail(error);
        // For the flusher to end.
        shared.kick();
    }
}

/// Who panics while flushing leaves nobody waiting.
struct LastWords<'a> {
    shared: &'a Shared,
    said: bool,
}

impl Drop for LastWords<'_> {
    fn drop(&mut self) {
        if !self.said {
            self.shared
                .fail(Error::internal("the log's flusher has panicked"));
        }
    }
}

struct Flusher<'a> {
    shared: &'a Shared,
    segments: &'a Segments,
    /// When the oldest asynchronous commit not yet flushed was first seen.
    lazy_since: Option<Instant>,
}

impl Flusher<'_> {
    fn live(&mut self) -> Result<()> {
        loop {
            if let Some(error) = self.shared.failed() {
                return Err(error.clone());
            }
            match self.due() {
                Due::Now(Why::Stop) => return self.round(),
                Due::Now(Why::Commit) => {
                    self.gather();
                    self.round()?;
                }
                Due::Now(Why::LazyCommit) => self.round()?,
                Due::Now(Why::Room) => self.write_ahead()?,
                Due::In(_) | Due::Sometime => self.sleep(),
            }
        }
    }

    fn due(&mut self) -> Due {
        let shared = self.shared;
        let flushed = shared.flushed().0;
        if shared.wanted.load(Ordering::Relaxed) > flushed {
            return Due::Now(Why::Commit);
        }
        if shared.stop.load(Ordering::Relaxed) {
            return Due::Now(Why::Stop);
        }
        match self.lazy_commit_due(flushed) {
            Due::Sometime | Due::In(_) if shared.needs_writing() => Due::Now(Why::Room),
            due => due,
        }
    }

    fn lazy_commit_due(&mut self, flushed: u64) -> Due {
        let shared = self.shared;
        if shared.lazily_wanted.load(Ordering::Relaxed) <= flushed {
            self.lazy_since = None;
            return Due::Sometime;
        }
        let since = *self.lazy_since.get_or_insert_with(Instant::now);
        let delay =
            Duration::from_micros(shared.config.writer_delay_us.load(Ordering::Relaxed).into());
        match delay.checked_sub(since.elapsed()) {
            Some(left) if !left.is_zero() => Due::In(left),
            _ => Due::Now(Why::LazyCommit),
        }
    }

    /// Sleeps until somebody wants something. Who does sets its wish first and looks at `asleep`
    /// after, so we look at the wishes once more after setting it: one of the two sees the other.
    fn sleep(&mut self) {
        let shared = self.shared;
        shared.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        match self.due() {
            Due::Now(_) => {}
            Due::In(time) => {
                let _wait = waiting(WaitEvent::FlusherIdle, Object::NONE);
                shared.parker.park_timeout(time);
            }
            Due::Sometime => {
                let _wait = waiting(WaitEvent::FlusherIdle, Object::NONE);
                shared.parker.park();
            }
        }
        shared.asleep.store(false, Ordering::Relaxed);
    }

    /// Gives others the core to join in; with `commit_delay` that time, if `commit_siblings` others
    /// are at work.
    fn gather(&self) {
        let config = &self.shared.config;
        let delay = config.commit_delay_us.load(Ordering::Relaxed);
        if delay == 0 {
            return throng_sync::yield_core();
        }
        // The committing transaction itself is active too.
        let enough = config.commit_siblings.load(Ordering::Relaxed) + 1;
        let active = self
            .shared
            .observer()
            .map_or(0, |observer| observer.active_transactions(enough));
        if active >= enough {
            let _wait = waiting(WaitEvent::CommitDelay, Object::NONE);
            throng_sync::thread::sleep(Duration::from_micros(delay.into()));
        }
    }

    fn round(&mut self) -> Result<()> {
        self.lazy_since = None;
        round(self.shared, self.segments, &mut *self.writer()?)
    }

    fn write_ahead(&self) -> Result<()> {
        let mut writer = self.writer()?;
        let target = self.shared.buffer.tail();
        write_to(self.shared, self.segments, &mut writer, target)?;
        writer.file.start_writeback();
        Ok(())
    }

    fn writer(&self) -> Result<MutexGuard<'_, Writer>> {
        let writer = self.shared.writer.lock();
        // Another thread's round may have failed meanwhile.
        match self.shared.failed() {
            None => Ok(writer),
            Some(error) => Err(error.clone()),
        }
    }
}

fn round(shared: &Shared, segments: &Segments, writer: &mut Writer) -> Result<()> {
    stop_point!("wal.round");
    // 1, 2.
    let token = shared.observer().map(|observer| observer.before_flush());
    let target = shared.buffer.tail();
    if target == shared.flushed().0 {
        // Nothing new; the observer's knowledge may be.
        if let (Some(observer), Some(token)) = (shared.observer(), token) {
            observer.after_flush(token, Lsn(target));
        }
        return Ok(());
    }
    // 3.
    write_to(shared, segments, writer, target)?;
    // 4.
    writer.sync()?;
    // 5.
    let written = Lsn(writer.written);
    if let (Some(observer), Some(token)) = (shared.observer(), token) {
        observer.after_flush(token, written);
    }
    shared.publish_flushed(written);
    Ok(())
}

/// Writes at least up to `target`, freeing room as it goes: inserters below the target may wait for
/// it.
fn write_to(shared: &Shared, segments: &Segments, writer: &mut Writer, target: u64) -> Result<()> {
    let buffer = &shared.buffer;
    let mut spin = SpinWait::new();
    let mut yields = 0;
    while writer.written < target {
        let copied = buffer.copied_to();
        if copied <= writer.written {
            // A copy is under way; if its thread has lost its core, it may have ours.
            if !spin.spin() {
                yields += 1;
                if yields < 50 {
                    throng_sync::thread::yield_now();
                } else {
                    throng_sync::thread::sleep(Duration::from_micros(50));
                }
            }
            continue;
        }
        let _wait = blocking(WaitEvent::WalWrite, Object::lsn(copied));
        writer.write(buffer, segments, copied)?;
        buffer.free_to(writer.written);
        shared.room_waiters.wake();
        spin.reset();
        yields = 0;
    }
    Ok(())
}
