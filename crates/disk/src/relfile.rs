//! One relation's file: its length, its handle, and whether it must still be synced.

use crate::error::{Action, file_error};
use crate::{Disk, File};
use std::io;
use std::sync::Arc;
use throng_observe::{Object, WaitEvent, blocking};
use throng_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use throng_sync::lock::{Mutex, MutexGuard, RwLock};
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, FileId, PageId};

/// A file has at most this many blocks: `u32::MAX` is no block's number (`Tid::NONE` has it).
pub(crate) const MAX_BLOCKS: u32 = u32::MAX - 1;

/// Up to this many blocks are added by writing zeros, which later writes need not convert; more by
/// reserving space. PostgreSQL draws the line at the same place.
const WRITE_ZEROS_UP_TO: u32 = 8;
static ZEROS: [u8; WRITE_ZEROS_UP_TO as usize * PAGE_SIZE] =
    [0; WRITE_ZEROS_UP_TO as usize * PAGE_SIZE];

/// A file of this length, 1 MB, or longer is made longer than it was asked to be: by a 16th, up to
/// 4 MB.
const AHEAD_FROM: u32 = 128;
const AHEAD_PART: u32 = 16;
const AHEAD_AT_MOST: u32 = 512;

/// An existing relation file. Whoever uses it often keeps it: [`blocks`](RelFile::blocks) is then
/// one load.
pub struct RelFile {
    id: FileId,
    path: Box<str>,
    /// Blocks in the file, as everybody counts them. Changes only under `growing`.
    blocks: AtomicU32,
    growing: Mutex<Made>,
    /// The file is about to be cut to so many blocks; else no limit.
    to_stay: AtomicU32,
    handle: RwLock<Handle>,
    /// Used since the handle cache last looked.
    used: AtomicBool,
    /// Written since the last sync. Set after the write, cleared before the sync: so whoever finds
    /// it clear after a write of its own has returned knows that a sync began after that write.
    dirty: AtomicBool,
    /// Blocks written since the system was last asked to send them to the device.
    unflushed: AtomicU32,
}

/// The blocks that the file has on disk: as many as count, or more, made ahead. Those that do not
/// count yet are zeros.
///
/// An index grows by a page at a time; so its next pages cost no call and no wait for whoever
/// writes to the file. A crash leaves the blocks made ahead in the file, where they count: pages of
/// zeros, as any crash between growing and using leaves.
struct Made(u32);

enum Handle {
    Closed,
    Open(Arc<dyn File>),
    /// The file has been removed: a late user must not open another of that name.
    Removed,
}

pub(crate) fn path_of(id: FileId) -> String {
    format!("base/{id}")
}

pub(crate) fn offset_of(block: BlockNo) -> u64 {
    u64::from(block) * PAGE_SIZE as u64
}

impl RelFile {
    /// Opens the file and looks at its length. A last block that is not whole does not count: it is
    /// what a crash has left of an extension.
    pub(crate) fn open(disk: &dyn Disk, id: FileId, create: bool) -> io::Result<RelFile> {
        let path = path_of(id).into_boxed_str();
        let handle = disk.open(&path, create)?;
        let blocks = handle.len()? / PAGE_SIZE as u64;
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX).min(MAX_BLOCKS);
        Ok(RelFile {
            id,
            path,
            blocks: AtomicU32::new(blocks),
            growing: Mutex::new(Made(blocks)),
            to_stay: AtomicU32::new(u32::MAX),
            handle: RwLock::new(Handle::Open(handle)),
            used: AtomicBool::new(true),
            dirty: AtomicBool::new(false),
            unflushed: AtomicU32::new(0),
        })
    }

    pub fn id(&self) -> FileId {
        self.id
    }

    /// `base/<id>`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How many blocks the file has. Those below are there to be read.
    #[inline]
    pub fn blocks(&self) -> u32 {
        // Acquire: the blocks up to the number read have been made.
        self.blocks.load(Ordering::Acquire)
    }

    /// Blocks that no truncation under way takes away.
    pub(crate) fn blocks_to_stay(&self) -> u32 {
        let to_stay = self.to_stay.load(Ordering::Acquire);
        self.blocks().min(to_stay)
    }

    pub(crate) fn will_truncate(&self, blocks: u32) {
        self.to_stay.store(blocks, Ordering::Release);
    }

    /// The open handle, opened again if need be; whether it was (the cache then counts it).
    pub(crate) fn handle(&self, disk: &dyn Disk) -> io::Result<(Arc<dyn File>, bool)> {
        if let Handle::Open(file) = &*self.handle.read() {
            if !self.used.load(Ordering::Relaxed) {
                self.used.store(true, Ordering::Relaxed);
            }
            return Ok((file.clone(), false));
        }
        let mut handle = self.handle.write();
        match &*handle {
            Handle::Open(file) => Ok((file.clone(), false)),
            Handle::Removed => Err(file_error(
                Action::Open,
                &self.path,
                rustix::io::Errno::NOENT.into(),
            )),
            Handle::Closed => {
                let file = disk.open(&self.path, false)?;
                *handle = Handle::Open(file.clone());
                self.used.store(true, Ordering::Relaxed);
                Ok((file, true))
            }
        }
    }

    /// For the cache's clock: whether it was used since the last look.
    pub(crate) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// Closes the handle. What was written through it is synced first, so that no error of writing
    /// it back goes to nobody.
    pub(crate) fn close(&self) -> io::Result<()> {
        let open = match &*self.handle.read() {
            Handle::Open(file) => file.clone(),
            Handle::Closed | Handle::Removed => return Ok(()),
        };
        if self.is_dirty() {
            self.sync_with(&*open)?;
        }
        let mut handle = self.handle.write();
        if matches!(*handle, Handle::Open(_)) {
            *handle = Handle::Closed;
        }
        Ok(())
    }

    /// Lets go of the handle for good.
    pub(crate) fn mark_removed(&self) {
        *self.handle.write() = Handle::Removed;
        self.dirty.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_removed(&self) -> bool {
        matches!(*self.handle.read(), Handle::Removed)
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    fn set_dirty(&self) {
        // Release: whoever sees it set, and syncs, does so after the write.
        if !self.dirty.load(Ordering::Relaxed) {
            self.dirty.store(true, Ordering::Release);
        }
    }

    pub(crate) fn sync_with(&self, file: &dyn File) -> io::Result<()> {
        let _waiting = blocking(WaitEvent::DataSync, Object::file(self.id.0));
        self.dirty.swap(false, Ordering::AcqRel);
        self.unflushed.store(0, Ordering::Relaxed);
        file.sync().inspect_err(|_| self.set_dirty())
    }

    pub(crate) fn read(
        &self,
        file: &dyn File,
        block: BlockNo,
        page: &mut [u8; PAGE_SIZE],
    ) -> io::Result<()> {
        let _waiting = blocking(
            WaitEvent::PageRead,
            Object::page(PageId::new(self.id, block).raw()),
        );
        // What was made ahead is not there to be read.
        let n = if block < self.blocks() {
            file.read_at(page, offset_of(block))?
        } else {
            0
        };
        if n < PAGE_SIZE {
            Err(self.short_read(block, n))
        } else {
            Ok(())
        }
    }

    /// As [`read`](Self::read), if that takes no waiting for the disk. False where it would, or
    /// fails.
    pub(crate) fn read_at_once(
        &self,
        file: &dyn File,
        block: BlockNo,
        page: &mut [u8; PAGE_SIZE],
    ) -> bool {
        block < self.blocks() && file.read_at_once(page, offset_of(block))
    }

    #[cold]
    fn short_read(&self, block: BlockNo, n: usize) -> io::Error {
        let path = &self.path;
        io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!(
                "could not read block {block} in file \"{path}\": read only {n} of {PAGE_SIZE} bytes"
            ),
        )
    }

    pub(crate) fn write(
        &self,
        file: &dyn File,
        first: BlockNo,
        pages: &[[u8; PAGE_SIZE]],
    ) -> io::Result<()> {
        let blocks = self.blocks();
        let last = u64::from(first) + pages.len().saturating_sub(1) as u64;
        if last >= u64::from(blocks) {
            let path = &self.path;
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("could not write block {last} in file \"{path}\": it has {blocks} blocks"),
            ));
        }
        let _waiting = blocking(
            WaitEvent::PageWrite,
            Object::page(PageId::new(self.id, first).raw()),
        );
        let result = file.write_at(pages.as_flattened(), offset_of(first));
        // Also after an error: part of it may have been written.
        self.set_dirty();
        self.unflushed
            .fetch_add(pages.len() as u32, Ordering::Relaxed);
        result
    }

    /// Has what was written begin its way to the device if it is `blocks` or more.
    pub(crate) fn flush_after(&self, file: &dyn File, blocks: u32) {
        if self.unflushed.load(Ordering::Relaxed) >= blocks {
            self.unflushed.store(0, Ordering::Relaxed);
            let _waiting = blocking(WaitEvent::DataFlush, Object::file(self.id.0));
            file.start_writeback();
        }
    }

    /// Adds `n` blocks of zeros; returns the first.
    pub(crate) fn extend(&self, file: &dyn File, n: u32) -> io::Result<BlockNo> {
        let made = self.grow_lock();
        let first = self.blocks();
        let end = first.checked_add(n).filter(|&end| end <= MAX_BLOCKS);
        self.grow(file, made, end.ok_or_else(|| self.too_long())?)?;
        Ok(first)
    }

    /// Grows the file to at least `blocks`.
    pub(crate) fn ensure(&self, file: &dyn File, blocks: u32) -> io::Result<()> {
        if self.blocks() >= blocks {
            return Ok(());
        }
        if blocks > MAX_BLOCKS {
            return Err(self.too_long());
        }
        let made = self.grow_lock();
        // Somebody else may have done it meanwhile.
        if self.blocks() >= blocks {
            Ok(())
        } else {
            self.grow(file, made, blocks)
        }
    }

    fn grow_lock(&self) -> MutexGuard<'_, Made> {
        self.growing.try_lock().unwrap_or_else(|| {
            let _waiting = blocking(WaitEvent::LockExtend, Object::file(self.id.0));
            self.growing.lock()
        })
    }

    fn grow(&self, file: &dyn File, mut made: MutexGuard<'_, Made>, end: u32) -> io::Result<()> {
        if end > made.0 {
            let _waiting = blocking(WaitEvent::Extend, Object::file(self.id.0));
            let ahead = end + ahead_of(end);
            // A disk too full for what may be needed later may have room for what is needed now.
            if ahead == end || self.make(file, &mut made, ahead).is_err() {
                self.make(file, &mut made, end)?;
            }
        }
        self.blocks.store(end, Ordering::Release);
        Ok(())
    }

    /// Makes the file longer on disk.
    fn make(&self, file: &dyn File, made: &mut Made, end: u32) -> io::Result<()> {
        let n = end - made.0;
        let at = offset_of(made.0);
        let result = if n <= WRITE_ZEROS_UP_TO {
            file.write_at(&ZEROS[..n as usize * PAGE_SIZE], at)
        } else {
            file.allocate(at, offset_of(n))
        };
        self.set_dirty();
        if let Err(e) = result {
            // Give back what it got of the space; if that fails too, the file ends in zeros that do
            // not count.
            let _ = file.set_len(at);
            return Err(match e.kind() {
                io::ErrorKind::StorageFull => file_error(Action::Extend, &self.path, root_cause(e)),
                _ => e,
            });
        }
        made.0 = end;
        Ok(())
    }

    #[cold]
    fn too_long(&self) -> io::Error {
        let path = &self.path;
        io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("cannot extend file \"{path}\" beyond {MAX_BLOCKS} blocks"),
        )
    }

    /// Cuts the file to `blocks`; a shorter one stays as it is.
    pub(crate) fn truncate(&self, file: &dyn File, blocks: u32) -> io::Result<()> {
        let made = self.grow_lock();
        if blocks < self.blocks() {
            self.cut(file, made, blocks)?;
        }
        self.to_stay.store(u32::MAX, Ordering::Release);
        Ok(())
    }

    /// Whether it has blocks made ahead.
    pub(crate) fn is_ahead(&self) -> bool {
        self.grow_lock().0 > self.blocks()
    }

    /// Gives back the blocks made ahead.
    pub(crate) fn trim(&self, file: &dyn File) -> io::Result<()> {
        let made = self.grow_lock();
        let blocks = self.blocks();
        if blocks < made.0 {
            self.cut(file, made, blocks)
        } else {
            Ok(())
        }
    }

    fn cut(&self, file: &dyn File, mut made: MutexGuard<'_, Made>, blocks: u32) -> io::Result<()> {
        let _waiting = blocking(WaitEvent::Truncate, Object::file(self.id.0));
        let before = self.blocks();
        self.blocks.store(blocks, Ordering::Release);
        let result = file.set_len(offset_of(blocks));
        self.set_dirty();
        match result {
            Ok(()) => made.0 = blocks,
            // Nothing was cut.
            Err(_) => self.blocks.store(before, Ordering::Release),
        }
        result
    }
}

/// How many blocks a file that needs `blocks` is to have beyond them.
fn ahead_of(blocks: u32) -> u32 {
    if blocks < AHEAD_FROM {
        return 0;
    }
    (blocks / AHEAD_PART)
        .min(AHEAD_AT_MOST)
        .min(MAX_BLOCKS - blocks)
}

/// The system's error inside one that names a file, to be told with another verb.
fn root_cause(e: io::Error) -> io::Error {
    let errno = e
        .get_ref()
        .and_then(|e| e.source())
        .and_then(|e| e.downcast_ref::<io::Error>())
        .and_then(|e| e.raw_os_error());
    errno.map_or(e, io::Error::from_raw_os_error)
}
