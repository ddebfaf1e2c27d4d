//! The data directory on the machine's file system.

use crate::error::{Action, file_error};
use crate::reading::{Reader, Reading};
use crate::{Disk, File};
use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io};

/// Files below one directory, which no other server uses.
///
/// Reads and writes go through the system's page cache, by offset unless [`RealDisk::with_reading`]
/// says otherwise; `sync` is fdatasync.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    reading: Reading,
    /// Locked as long as it is open; the kernel lets go of it however the process ends.
    _lock: OwnedFd,
}

/// Whether the process's syncs ask the kernel for anything.
static SYNCING: AtomicBool = AtomicBool::new(true);

/// The setting `fsync`. Off, an answered commit survives the server's end, but not the machine's.
pub fn set_fsync(on: bool) {
    SYNCING.store(on, Ordering::Relaxed);
}

fn is_syncing() -> bool {
    SYNCING.load(Ordering::Relaxed)
}

/// The lock file's name, in the data directory.
const LOCK_FILE: &str = "lock";

impl RealDisk {
    /// Uses `root`, which is made (for its owner alone) if it is missing. Fails with
    /// [`io::ErrorKind::ResourceBusy`] if another server uses it.
    pub fn new(root: impl AsRef<Path>) -> io::Result<RealDisk> {
        RealDisk::with_reading(root, Reading::default())
    }

    /// As [`new`](RealDisk::new), with files read in another way.
    pub fn with_reading(root: impl AsRef<Path>, reading: Reading) -> io::Result<RealDisk> {
        let root = root.as_ref();
        let shown = root.display().to_string();
        if !root.is_dir() {
            use std::os::unix::fs::DirBuilderExt;
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(root)
                .map_err(|e| file_error(Action::CreateDirectory, &shown, e))?;
        }
        let root = root
            .canonicalize()
            .map_err(|e| file_error(Action::OpenDirectory, &shown, e))?;
        let lock = lock(&root)?;
        Ok(RealDisk {
            root,
            reading,
            _lock: lock,
        })
    }

    /// The data directory's full path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The full path of a path below the data directory. Those that would leave it are a caller's
    /// bug.
    fn full(&self, path: &str) -> PathBuf {
        let below = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        assert!(below, "path \"{path}\" is not below the data directory");
        self.root.join(path)
    }
}

impl RealDisk {
    /// The process that uses the data directory `root`; None if none does.
    ///
    /// # Errors
    /// Where there is no such directory, or its lock file cannot be read.
    pub fn holder(root: &Path) -> io::Result<Option<u32>> {
        let path = root.join(LOCK_FILE);
        let file = fs::File::open(&path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(None),
            Err(Errno::WOULDBLOCK) => Ok(fs::read_to_string(&path)?.trim().parse().ok()),
            Err(e) => Err(e.into()),
        }
    }
}

/// Takes the lock file and writes the process id into it, for whoever looks.
fn lock(root: &Path) -> io::Result<OwnedFd> {
    let path = root.join(LOCK_FILE);
    let shown = path.display().to_string();
    let failed = |e: Errno| file_error(Action::Lock, &shown, e.into());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&path, flags, FILE_MODE).map_err(failed)?;
    match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(in_use(root, &path)),
        Err(e) => return Err(failed(e)),
    }
    rustix::fs::ftruncate(&fd, 0).map_err(failed)?;
    let pid = format!("{}\n", std::process::id());
    rustix::io::pwrite(&fd, pid.as_bytes(), 0).map_err(failed)?;
    Ok(fd)
}

#[cold]
fn in_use(root: &Path, lock: &Path) -> io::Error {
    let holder = match fs::read_to_string(lock) {
        Ok(pid) if !pid.trim().is_empty() => format!(" (PID {})", pid.trim()),
        _ => String::new(),
    };
    let message = format!(
        "data directory \"{}\" is in use by another server{holder}",
        root.display()
    );
    io::Error::new(io::ErrorKind::ResourceBusy, message)
}

/// Data is its owner's alone.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

impl Disk for RealDisk {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn File>> {
        let mut flags = OFlags::RDWR | OFlags::CLOEXEC;
        if create {
            flags |= OFlags::CREATE;
        }
        let action = if create { Action::Create } else { Action::Open };
        let fd = retry(|| rustix::fs::open(self.full(path), flags, FILE_MODE))
            .map_err(|e| file_error(action, path, e))?;
        Ok(Arc::new(RealFile {
            fd,
            path: path.into(),
            reader: Reader::new(self.reading),
        }))
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        self.full(path)
            .try_exists()
            .map_err(|e| file_error(Action::Stat, path, e))
    }

    fn len_of(&self, path: &str) -> io::Result<Option<u64>> {
        match fs::metadata(self.full(path)) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(file_error(Action::Stat, path, e)),
        }
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(self.full(path)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(file_error(Action::Remove, path, e))
            }
            _ => Ok(()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.full(from), self.full(to)).map_err(|e| file_error(Action::Rename, from, e))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let failed = |e| file_error(Action::OpenDirectory, dir, e);
        let mut names = Vec::new();
        for entry in fs::read_dir(self.full(dir)).map_err(failed)? {
            // Names that are not UTF-8 are not ours.
            names.extend(entry.map_err(failed)?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        match fs::DirBuilder::new().mode(0o700).create(self.full(path)) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                Err(file_error(Action::CreateDirectory, path, e))
            }
            _ => Ok(()),
        }
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        if !is_syncing() {
            return Ok(());
        }
        fs::File::open(self.full(dir))
            .and_then(|dir| dir.sync_all())
            .map_err(|e| file_error(Action::SyncDirectory, dir, e))
    }
}

struct RealFile {
    fd: OwnedFd,
    path: Box<str>,
    reader: Reader,
}

impl RealFile {
    fn failed(&self, action: Action) -> impl FnOnce(io::Error) -> io::Error {
        move |e| file_error(action, &self.path, e)
    }
}

impl File for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Some(read) = self.reader.read(&self.fd, buf, offset) {
            return read.map_err(self.failed(Action::Read));
        }
        let mut done = 0;
        while done < buf.len() {
            let rest = &mut buf[done..];
            match retry(|| rustix::io::pread(&self.fd, &mut *rest, offset + done as u64)) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) => return Err(self.failed(Action::Read)(e)),
            }
        }
        Ok(done)
    }

    #[cfg(target_os = "linux")]
    fn read_at_once(&self, buf: &mut [u8], offset: u64) -> bool {
        let whole = buf.len();
        let into = &mut [io::IoSliceMut::new(buf)];
        matches!(self.reader, Reader::Pread)
            && rustix::io::preadv2(&self.fd, into, offset, ReadWriteFlags::NOWAIT) == Ok(whole)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < data.len() {
            match retry(|| rustix::io::pwrite(&self.fd, &data[done..], offset + done as u64)) {
                // A write of nothing without an error is how some file systems say that they are
                // full.
                Ok(0) => return Err(self.failed(Action::Write)(Errno::NOSPC.into())),
                Ok(n) => done += n,
                Err(e) => return Err(self.failed(Action::Write)(e)),
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if !is_syncing() {
            return Ok(());
        }
        retry(|| rustix::fs::fdatasync(&self.fd)).map_err(self.failed(Action::Sync))
    }

    #[cfg(target_os = "linux")]
    fn start_writeback(&self) {
        let to_the_end = 0;
        // SAFETY: takes numbers, and a file that is open as long as `self` lives.
        unsafe {
            libc::sync_file_range(
                self.fd.as_raw_fd(),
                0,
                to_the_end,
                libc::SYNC_FILE_RANGE_WRITE,
            )
        };
    }

    fn len(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstat(&self.fd).map_err(io::Error::from);
        Ok(stat.map_err(self.failed(Action::Stat))?.st_size as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.reader
            .while_cutting(|| retry(|| rustix::fs::ftruncate(&self.fd, len)))
            .map_err(self.failed(Action::Truncate))
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), offset, len) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_missing(offset + len),
            Err(Errno::INTR) => self.allocate(offset, len),
            Err(e) => Err(self.failed(Action::Extend)(e.into())),
        }
    }
}

impl RealFile {
    /// `allocate` where the file system cannot: zeros from the file's end to `end`.
    #[cold]
    fn write_missing(&self, end: u64) -> io::Result<()> {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let mut at = self.len()?;
        while at < end {
            let n = (end - at).min(ZEROS.len() as u64);
            self.write_at(&ZEROS[..n as usize], at)?;
            at += n;
        }
        Ok(())
    }
}

/// Calls again while a signal interrupts.
fn retry<T>(call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    Ok(rustix::io::retry_on_intr(call)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let first = RealDisk::new(dir.path().join("data")).unwrap();
        let second = RealDisk::new(dir.path().join("data")).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::ResourceBusy);
        let text = second.to_string();
        assert!(text.contains("is in use by another server (PID "), "{text}");
        drop(first);
        RealDisk::new(dir.path().join("data")).unwrap();
    }

    #[test]
    fn errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(dir.path()).unwrap();
        let error = disk.open("base/1", false).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(
            error.to_string(),
            "could not open file \"base/1\": No such file or directory"
        );
        let error = disk.rename("a", "b").unwrap_err();
        assert_eq!(
            error.to_string(),
            "could not rename file \"a\": No such file or directory"
        );
    }

    #[test]
    #[should_panic(expected = "is not below the data directory")]
    fn paths_stay_below_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(dir.path()).unwrap();
        let _ = disk.exists("../x");
    }

    #[test]
    fn zeros_are_written_where_space_cannot_be_reserved() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let fd = fs::File::create_new(path).unwrap().into();
        let file = RealFile {
            fd,
            path: "a".into(),
            reader: Reader::new(Reading::Pread),
        };
        file.write_missing(100_000).unwrap();
        assert_eq!(file.len().unwrap(), 100_000);
        file.write_missing(50_000).unwrap();
        assert_eq!(file.len().unwrap(), 100_000);
    }
}
