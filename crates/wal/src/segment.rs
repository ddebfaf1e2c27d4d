//! Segment files: made ahead of use, used once around, recycled.
//!
//! Segment `n` holds the stream's bytes `n * size .. (n + 1) * size` in `DIR/wal/<start as 16 hex
//! digits>`. A segment has its full length, written zeros, and a durable name before the flusher
//! sees it, so that a commit's sync finds nothing but data to write. A thread of its own (the
//! maker) sees to that:
//!
//! ```text
//!  (nothing) ──zero-fill, sync──► wal/new ──rename, sync dir──► ready ──flusher──► current ──► old
//!                                               ▲                                              │ recycle_before
//!                                               └───────────rename, sync dir──────── spare ◄───┴──► removed
//! ```
//! A recycled segment still holds old records; their own LSNs give them away. What may not stay are
//! bytes *at their right place* beyond the log's end, written but never synced before a crash:
//! behind new records they could pass for records again. [`Segments::open`] clears them before
//! anything is appended.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use throng_disk::{Disk, File};
use throng_sync::atomic::{AtomicBool, Ordering};
use throng_sync::lock::{Condvar, Mutex, MutexGuard};
use throng_types::error::state;
use throng_types::{Error, Lsn, Result};

use crate::config::WalConfig;
use crate::directory::{DIR, missing, numbers, path};
use crate::made::Made;

/// A segment that is not whole yet.
const NEW: &str = "wal/new";
/// How many segments are kept ready beyond the current one. When the disk is full they are what
/// commits, rollbacks and a checkpoint still have room in.
const AHEAD: u64 = 2;
/// At least so many old segments are kept for reuse.
const KEEP: usize = 3;
/// How long the maker waits before it tries again on a full disk.
const RETRY: Duration = Duration::from_secs(1);
/// How often it is noted how far the log is durable.
const NOTE: Duration = Duration::from_secs(1);
/// Bytes zeroed or looked at with one call.
const CHUNK: usize = 256 << 10;

/// As [`numbers`]. An error also when the first one's length is another.
fn list(disk: &dyn Disk, size: u64) -> Result<Vec<u64>> {
    let numbers = numbers(disk, size)?;
    if let Some(path) = numbers.first().map(|&first| path(first, size)) {
        let len = disk.len_of(&path)?;
        if len != Some(size) {
            let len = len.unwrap_or(0);
            return Err(missing(format!(
                "the log's file {path} has {len} bytes instead of {size}"
            )));
        }
    }
    Ok(numbers)
}

pub(crate) struct Segments {
    disk: Arc<dyn Disk>,
    size: u64,
    made: Made,
    state: Mutex<SegmentState>,
    changed: Condvar,
    /// Whether `short` is set, for a look without the lock.
    is_short: AtomicBool,
}

struct SegmentState {
    /// Whole segments that the flusher may write to: the current one and those ahead.
    ready: BTreeMap<u64, Arc<dyn File>>,
    /// The one the flusher writes to.
    current: u64,
    /// The first number that has no segment yet.
    next: u64,
    /// Segments before the current one that may still be needed.
    old: BTreeSet<u64>,
    /// Segments that nobody needs, to be renamed.
    spare: Vec<u64>,
    /// The current segment at the last recycling.
    recycled_at: u64,
    /// Why the last attempt to make a segment failed.
    short: Option<Error>,
    stop: bool,
}

impl Segments {
    /// Makes the directory ready to append at `start`, the log's end: clears what lies beyond it.
    pub fn open(disk: Arc<dyn Disk>, config: &WalConfig, start: Lsn) -> Result<Segments> {
        let size = config.segment_size;
        disk.create_dir(DIR)?;
        disk.sync_dir("")?;
        disk.remove(NEW)?;
        let there = list(&*disk, size)?;
        let current = start.0 / size;
        let here = path(current, size);
        let file = if disk.exists(&here)? {
            let file = disk.open(&here, false)?;
            clear_from(&*file, start.0 % size, size)?;
            file
        } else {
            make(&*disk, &here, size)?
        };
        let made = Made::open(&*disk, config.identifier)?;
        disk.sync_dir(DIR)?;
        // Those beyond are not missed from here on.
        made.enter(current)?;
        let mut old = BTreeSet::new();
        for number in there {
            if number > current {
                disk.remove(&path(number, size))?;
            } else if number < current {
                old.insert(number);
            }
        }
        disk.sync_dir(DIR)?;
        let state = SegmentState {
            ready: BTreeMap::from([(current, file)]),
            current,
            next: current + 1,
            old,
            spare: Vec::new(),
            recycled_at: current,
            short: None,
            stop: false,
        };
        Ok(Segments {
            disk,
            size,
            made,
            state: Mutex::new(state),
            changed: Condvar::new(),
            is_short: AtomicBool::new(false),
        })
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Where the oldest segment begins that may still be read.
    pub fn oldest(&self) -> Lsn {
        let state = self.state.lock();
        Lsn(state.old.first().unwrap_or(&state.current) * self.size)
    }

    /// The segment for the flusher to write to from now on. Waits for the maker when it is not
    /// ready yet.
    pub fn advance(&self, number: u64) -> Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        while state.current < number {
            let done = state.current;
            state.ready.remove(&done);
            state.old.insert(done);
            state.current += 1;
        }
        // Whatever failed before, try again now that it matters.
        state.short = None;
        self.changed.notify_all();
        loop {
            if let Some(file) = state.ready.get(&number) {
                return Ok(file.clone());
            }
            if let Some(error) = &state.short {
                return Err(error.clone());
            }
            self.changed.wait(&mut state);
        }
    }

    /// An error when no segment could be made ahead: the disk is full.
    pub fn check_space(&self) -> Result<()> {
        if !self.is_short.load(Ordering::Relaxed) {
            return Ok(());
        }
        match &self.state.lock().short {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Segments wholly before `lsn` are needed no more: some are kept for reuse, the others go.
    pub fn recycle_before(&self, lsn: Lsn) -> Result<()> {
        let mut state = self.state.lock();
        let first_needed = (lsn.0 / self.size).min(state.current);
        let needed = state.old.split_off(&first_needed);
        let free = std::mem::replace(&mut state.old, needed);
        // As many as were used since the last time, so that a steady load makes no new ones.
        let used = (state.current - state.recycled_at) as usize;
        state.recycled_at = state.current;
        let keep = used.max(KEEP);
        let mut remove = Vec::new();
        for number in free {
            if state.spare.len() < keep {
                state.spare.push(number);
            } else {
                remove.push(number);
            }
        }
        let surplus = state.spare.len().saturating_sub(keep);
        remove.extend(state.spare.drain(..surplus));
        // On a full disk the room that this made is there to be tried at once.
        state.short = None;
        self.changed.notify_all();
        drop(state);
        for number in remove {
            self.disk.remove(&path(number, self.size))?;
        }
        Ok(())
    }

    /// The maker's life: keeps segments ready ahead of the flusher until told to stop, and notes
    /// how far the log is durable.
    pub fn run_maker(&self, flushed: &dyn Fn() -> Lsn) {
        let mut state = self.state.lock();
        while !state.stop {
            if state.next > state.current + AHEAD {
                self.wait_and_note(&mut state, flushed);
            } else if state.short.is_some() {
                // Cleared by whoever has reason to hope; else by time.
                if self.changed.wait_for(&mut state, RETRY).timed_out() {
                    self.make_next(&mut state);
                }
            } else {
                self.make_next(&mut state);
            }
        }
    }

    fn wait_and_note(&self, state: &mut MutexGuard<'_, SegmentState>, flushed: &dyn Fn() -> Lsn) {
        if throng_sync::IS_MODEL {
            // No time passes there.
            self.changed.wait(state);
        } else if self.changed.wait_for(state, NOTE).timed_out() {
            // Where this cannot be written, the disk has failed for all who write.
            let _ = MutexGuard::unlocked(state, || self.made.note(flushed()));
        }
    }

    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    fn make_next(&self, state: &mut MutexGuard<'_, SegmentState>) {
        let number = state.next;
        let spare = state.spare.pop();
        let made = MutexGuard::unlocked(state, || self.make_or_reuse(number, spare));
        match made {
            Ok(file) => {
                state.ready.insert(number, file);
                state.next = number + 1;
                state.short = None;
            }
            Err(error) => state.short = Some(no_segment(error)),
        }
        self.is_short
            .store(state.short.is_some(), Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn make_or_reuse(&self, number: u64, spare: Option<u64>) -> io::Result<Arc<dyn File>> {
        let path_of = |number| path(number, self.size);
        let file = match spare {
            Some(spare) => {
                self.disk.rename(&path_of(spare), &path_of(number))?;
                self.disk.open(&path_of(number), false)?
            }
            None => make(&*self.disk, &path_of(number), self.size)?,
        };
        self.disk.sync_dir(DIR)?;
        self.made.enter(number)?;
        Ok(file)
    }
}

/// A whole new segment of zeros. Its name is durable after a sync of the directory.
fn make(disk: &dyn Disk, path: &str, size: u64) -> io::Result<Arc<dyn File>> {
    let file = disk.open(NEW, true)?;
    if let Err(error) = file.allocate(0, size) {
        // Leave a full disk no fuller than it was.
        let _ = disk.remove(NEW);
        return Err(error);
    }
    // Allocated is not written: without the zeros each sync would also have to record what was
    // written.
    zero(&*file, 0, size)?;
    file.sync()?;
    disk.rename(NEW, path)?;
    disk.open(path, false)
}

fn zero(file: &dyn File, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; CHUNK];
    let mut at = from;
    while at < to {
        let len = (to - at).min(CHUNK as u64) as usize;
        file.write_at(&zeros[..len], at)?;
        at += len as u64;
    }
    Ok(())
}

/// Makes `from..size` zeros, writing only where they are not.
fn clear_from(file: &dyn File, from: u64, size: u64) -> io::Result<()> {
    let mut bytes = vec![0; CHUNK];
    let mut at = from;
    let mut wrote = false;
    while at < size {
        let want = (size - at).min(CHUNK as u64) as usize;
        let got = file.read_at(&mut bytes[..want], at)?;
        if got < want || bytes[..got].iter().any(|&b| b != 0) {
            zero(file, at, at + want as u64)?;
            wrote = true;
        }
        at += want as u64;
    }
    if wrote { file.sync() } else { Ok(()) }
}

#[cold]
fn no_segment(error: io::Error) -> Error {
    let error = Error::from(error);
    if error.code() == state::DISK_FULL {
        error.hint("Free some space; the server goes on by itself.")
    } else {
        error
    }
}
