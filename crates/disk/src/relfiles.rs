//! All relation files: `base/<FileId>`, by page.
//!
//! Every existing file that was touched has a [`RelFile`], small and kept until the file is
//! removed. Open handles are bounded: past the bound the one not used for longest (by a clock) is
//! synced if it must be, and closed.
//!
//! Any number of threads may read, write and sync one file at once. Two that extend the same file
//! queue on it; each then looks at the length again. Callers see to it that nobody uses pages
//! beyond a truncation or of a removed file.

use crate::relfile::RelFile;
use crate::{Disk, descriptors};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use throng_sync::atomic::{AtomicBool, Ordering};
use throng_sync::lock::{Mutex, RwLock};
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, FileId, PageId};

/// How often a handle is closed to make room for one that the system refuses to open.
const MAX_RETRIES: usize = 8;
const BASE: &str = "base";
/// Lookups of different files should rarely meet on one lock's cache line.
const SHARDS: usize = 64;

/// The relation files of a data directory.
pub struct RelFiles {
    disk: Arc<dyn Disk>,
    shards: [RwLock<HashMap<FileId, Arc<RelFile>>>; SHARDS],
    /// Files whose handle is open, in the order of the clock; a removed one lingers until the hand
    /// comes.
    open: Mutex<VecDeque<Arc<RelFile>>>,
    max_open: usize,
    /// How long files are, as [`RelFiles::census`] last told or [`RelFiles::expect`] was told: of
    /// those that nobody has touched since the start, what is known.
    lengths: Mutex<HashMap<FileId, u32>>,
    /// Files were made or removed since `base` was last synced.
    names_changed: AtomicBool,
}

/// What the handle cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelFilesStats {
    /// Files touched since the start and not removed.
    pub files: usize,
    /// Handles open.
    pub open: usize,
    /// Files to be synced by the next checkpoint.
    pub dirty: usize,
}

impl RelFiles {
    /// Makes `base` if it is missing, durably.
    pub fn new(disk: Arc<dyn Disk>) -> io::Result<RelFiles> {
        RelFiles::with_max_open(disk, descriptors::shares().files)
    }

    /// As [`new`](RelFiles::new), with another bound on open handles (at least one).
    pub fn with_max_open(disk: Arc<dyn Disk>, max_open: usize) -> io::Result<RelFiles> {
        disk.create_dir(BASE)?;
        disk.sync_dir("")?;
        Ok(RelFiles {
            disk,
            shards: std::array::from_fn(|_| RwLock::default()),
            open: Mutex::default(),
            max_open: max_open.max(1),
            lengths: Mutex::default(),
            names_changed: AtomicBool::new(false),
        })
    }

    /// An existing file. [`io::ErrorKind::NotFound`] if there is none.
    pub fn file(&self, id: FileId) -> io::Result<Arc<RelFile>> {
        if let Some(file) = self.shard(id).read().get(&id) {
            return Ok(file.clone());
        }
        self.load(id, false)
    }

    /// Makes an empty file. One that is there is left as it is, so that redo may repeat it.
    pub fn create(&self, id: FileId) -> io::Result<()> {
        if self.shard(id).read().contains_key(&id) {
            return Ok(());
        }
        // Before it is seen and after it is made: whoever syncs the names of what he has seen syncs
        // this one.
        self.names_changed.store(true, Ordering::Release);
        self.load(id, true)?;
        self.names_changed.store(true, Ordering::Release);
        Ok(())
    }

    pub fn exists(&self, id: FileId) -> io::Result<bool> {
        match self.file(id) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Removes a file. One that is not there is no error.
    pub fn remove(&self, id: FileId) -> io::Result<()> {
        // Under the shard's lock, so that nobody opens it anew in between.
        let mut shard = self.shard(id).write();
        if let Some(file) = shard.remove(&id) {
            file.mark_removed();
        }
        self.lengths.lock().remove(&id);
        self.disk.remove(&crate::relfile::path_of(id))?;
        self.names_changed.store(true, Ordering::Release);
        Ok(())
    }

    /// Every file in `base`, in order. Names that are not numbers are not ours.
    pub fn list(&self) -> io::Result<Vec<FileId>> {
        let names = self.disk.list(BASE)?;
        let mut ids: Vec<FileId> = names
            .iter()
            .filter_map(|name| name.parse().ok())
            .map(FileId)
            .collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Tells of files that nobody has touched yet: how many blocks each has at least.
    pub fn expect(&self, files: &[(FileId, u32)]) {
        self.lengths.lock().extend(files.iter().copied());
    }

    /// Every file there is, with the blocks that it has at least: what a later start must find if
    /// nothing that is logged after the call makes a file shorter, and all that was written before
    /// the call has been synced.
    pub fn census(&self) -> Vec<(FileId, u32)> {
        let touched = self.files_where(|_| true);
        let mut lengths = self.lengths.lock();
        for file in touched {
            // One that is removed from here on is taken out after.
            if !file.is_removed() {
                lengths.insert(file.id(), file.blocks_to_stay());
            }
        }
        let mut all: Vec<_> = lengths.iter().map(|(&id, &blocks)| (id, blocks)).collect();
        all.sort_unstable();
        all
    }

    /// The file is about to be cut to `blocks`: to be said before that is logged.
    pub fn will_truncate(&self, id: FileId, blocks: u32) -> io::Result<()> {
        self.file(id)?.will_truncate(blocks);
        Ok(())
    }

    /// How many blocks the file has.
    pub fn blocks(&self, id: FileId) -> io::Result<u32> {
        Ok(self.file(id)?.blocks())
    }

    /// Reads one page as it is on disk: nothing is verified.
    pub fn read_page(&self, page: PageId, into: &mut [u8; PAGE_SIZE]) -> io::Result<()> {
        let file = self.file(page.file())?;
        file.read(&*self.handle(&file)?, page.block(), into)
    }

    /// As [`read_page`](Self::read_page), if that takes no waiting for the disk: the system has the
    /// page in memory. False where it has not, or where reading fails.
    pub fn read_page_at_once(&self, page: PageId, into: &mut [u8; PAGE_SIZE]) -> bool {
        let Ok(file) = self.file(page.file()) else {
            return false;
        };
        self.handle(&file)
            .is_ok_and(|handle| file.read_at_once(&*handle, page.block(), into))
    }

    /// Writes neighbouring pages, `first` and those after it, which the file must have. Durable
    /// after the next sync.
    pub fn write_pages(&self, first: PageId, pages: &[[u8; PAGE_SIZE]]) -> io::Result<()> {
        let file = self.file(first.file())?;
        file.write(&*self.handle(&file)?, first.block(), pages)
    }

    /// Has what was written to the file begin its way to the device if it is `blocks` or more since
    /// that was last done. Neither waits nor makes anything durable.
    pub fn flush_after(&self, id: FileId, blocks: u32) -> io::Result<()> {
        let file = self.file(id)?;
        file.flush_after(&*self.handle(&file)?, blocks);
        Ok(())
    }

    /// Adds `n` blocks of zeros at the end; returns the first.
    pub fn extend(&self, id: FileId, n: u32) -> io::Result<BlockNo> {
        let file = self.file(id)?;
        file.extend(&*self.handle(&file)?, n)
    }

    /// Grows the file, with zeros, to at least `blocks`.
    pub fn ensure(&self, id: FileId, blocks: u32) -> io::Result<()> {
        let file = self.file(id)?;
        file.ensure(&*self.handle(&file)?, blocks)
    }

    /// Cuts the file to `blocks`; a shorter one stays as it is.
    pub fn truncate(&self, id: FileId, blocks: u32) -> io::Result<()> {
        let file = self.file(id)?;
        file.truncate(&*self.handle(&file)?, blocks)
    }

    /// Gives back what files were made longer ahead. For a server that stops: one that goes on
    /// would make it again.
    pub fn trim(&self) -> io::Result<()> {
        for file in self.files_where(RelFile::is_ahead) {
            match self.handle(&file).and_then(|handle| file.trim(&*handle)) {
                Err(e) if !file.is_removed() => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes what was written to one file durable.
    pub fn sync(&self, id: FileId) -> io::Result<()> {
        let file = self.file(id)?;
        file.sync_with(&*self.handle(&file)?)
    }

    /// Makes durable all that was written, made and removed before the call. Returns how many files
    /// were synced.
    ///
    /// After an error the files not yet synced are still to be synced.
    pub fn sync_all_dirty(&self) -> io::Result<usize> {
        let mut synced = 0;
        for file in self.files_where(RelFile::is_dirty) {
            match self
                .handle(&file)
                .and_then(|handle| file.sync_with(&*handle))
            {
                Ok(()) => synced += 1,
                // Removed meanwhile: nobody needs its bytes.
                Err(_) if file.is_removed() => {}
                Err(e) => return Err(e),
            }
        }
        self.sync_names()?;
        Ok(synced)
    }

    /// Makes durable which files there are.
    pub fn sync_names(&self) -> io::Result<()> {
        if self.names_changed.swap(false, Ordering::AcqRel) {
            self.disk
                .sync_dir(BASE)
                .inspect_err(|_| self.names_changed.store(true, Ordering::Release))?;
        }
        Ok(())
    }

    pub fn stats(&self) -> RelFilesStats {
        RelFilesStats {
            files: self.shards.iter().map(|shard| shard.read().len()).sum(),
            open: self
                .open
                .lock()
                .iter()
                .filter(|file| !file.is_removed())
                .count(),
            dirty: self.files_where(RelFile::is_dirty).len(),
        }
    }

    fn shard(&self, id: FileId) -> &RwLock<HashMap<FileId, Arc<RelFile>>> {
        // Ids are given out in sequence: neighbours go to different shards.
        &self.shards[id.0 as usize % SHARDS]
    }

    fn files_where(&self, wanted: impl Fn(&RelFile) -> bool) -> Vec<Arc<RelFile>> {
        let mut files = Vec::new();
        for shard in &self.shards {
            files.extend(shard.read().values().filter(|file| wanted(file)).cloned());
        }
        files
    }

    #[cold]
    fn load(&self, id: FileId, create: bool) -> io::Result<Arc<RelFile>> {
        let file = {
            let mut shard = self.shard(id).write();
            if let Some(file) = shard.get(&id) {
                return Ok(file.clone());
            }
            let file = self.making_room(|| RelFile::open(&*self.disk, id, create))?;
            let file = Arc::new(file);
            shard.insert(id, file.clone());
            file
        };
        self.opened(&file);
        Ok(file)
    }

    fn handle(&self, file: &Arc<RelFile>) -> io::Result<Arc<dyn crate::File>> {
        let (handle, reopened) = self.making_room(|| file.handle(&*self.disk))?;
        if reopened {
            self.opened(file);
        }
        Ok(handle)
    }

    /// Opens something; where the system has no descriptor left, after closing handles of our own.
    fn making_room<T>(&self, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
        let mut opened = open();
        for _ in 0..MAX_RETRIES {
            match &opened {
                Err(e) if descriptors::is_exhausted(e) && self.close_one()? => opened = open(),
                _ => break,
            }
        }
        opened
    }

    /// False when none is open.
    #[cold]
    fn close_one(&self) -> io::Result<bool> {
        let victim = next_victim(&mut self.open.lock(), None);
        match victim {
            None => Ok(false),
            Some(victim) => match victim.close() {
                Ok(()) => Ok(true),
                Err(e) => {
                    self.open.lock().push_back(victim);
                    Err(e)
                }
            },
        }
    }

    /// Counts a handle that was opened, and closes another if there are too many.
    #[cold]
    fn opened(&self, file: &Arc<RelFile>) {
        let victims = {
            let mut open = self.open.lock();
            open.push_back(file.clone());
            let excess = open.len().saturating_sub(self.max_open);
            (0..excess)
                .filter_map(|_| next_victim(&mut open, Some(file)))
                .collect::<Vec<_>>()
        };
        // Outside the lock: closing may sync.
        for victim in victims {
            if victim.close().is_err() {
                // It is still dirty and still open: the next checkpoint's sync will say so.
                self.open.lock().push_back(victim);
            }
        }
    }
}

/// Turns the clock's hand to the first file not used since its last turn, other than `newest`.
fn next_victim(
    open: &mut VecDeque<Arc<RelFile>>,
    newest: Option<&Arc<RelFile>>,
) -> Option<Arc<RelFile>> {
    // Twice around finds one: the first turn clears the marks.
    for _ in 0..2 * open.len() {
        let candidate = open.pop_front()?;
        if newest.is_some_and(|newest| Arc::ptr_eq(&candidate, newest))
            || (!candidate.is_removed() && candidate.take_used())
        {
            open.push_back(candidate);
        } else {
            return Some(candidate);
        }
    }
    None
}
