//! No write succeeds after one has failed.
//!
//! When a write or an fsync fails, the kernel may drop the pages it could not write and report success next time
//! (PostgreSQL's mailing list calls it *fsyncgate*, 2018). So once data may be lost, nothing more can be promised:
//! every later write, sync, allocation, and change of a name fails too, and only a restart, which trusts nothing but the
//! log, clears it. Reads go on, so that a server can still answer and shut down.
//!
//! A full disk met while a file *grows* loses nothing: the bytes were never there. It is reported and not remembered.

use crate::{Disk, File};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A disk that fails for good once it has failed.
#[derive(Debug)]
pub struct CheckedDisk<D> {
    inner: D,
    health: Arc<Health>,
}

/// Shared by a disk and its files.
#[derive(Debug, Default)]
struct Health {
    /// Set after `cause`; looked at before every write.
    failed: AtomicBool,
    cause: OnceLock<(io::ErrorKind, String)>,
}

impl Health {
    #[inline]
    fn check(&self) -> io::Result<()> {
        // Acquire: pairs with the Release in `fail`, so that the cause is there.
        if self.failed.load(Ordering::Acquire) {
            Err(self.refusal())
        } else {
            Ok(())
        }
    }

    #[cold]
    fn refusal(&self) -> io::Error {
        let first = self
            .cause
            .get()
            .map_or("unknown", |(_, text)| text.as_str());
        io::Error::other(format!(
            "storage has failed and needs a restart; the first error was: {first}"
        ))
    }

    #[cold]
    fn fail(&self, error: io::Error) -> io::Error {
        let _ = self.cause.set((error.kind(), error.to_string()));
        self.failed.store(true, Ordering::Release);
        error
    }

    /// Does something whose failure may lose data.
    fn guard<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.check()?;
        act().map_err(|e| self.fail(e))
    }
}

impl<D: Disk> CheckedDisk<D> {
    pub fn new(inner: D) -> CheckedDisk<D> {
        CheckedDisk {
            inner,
            health: Arc::default(),
        }
    }

    /// The first failure, if there was one.
    pub fn failure(&self) -> Option<io::Error> {
        self.health.check().err()
    }

    pub fn inner(&self) -> &D {
        &self.inner
    }
}

impl<D: Disk> Disk for CheckedDisk<D> {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open(path, create)?;
        Ok(Arc::new(CheckedFile {
            inner,
            health: self.health.clone(),
        }))
    }
    fn exists(&self, path: &str) -> io::Result<bool> {
        self.inner.exists(path)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.health.check()?;
        self.inner.remove(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.health.check()?;
        self.inner.rename(from, to)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.health.check()?;
        self.inner.create_dir(path)
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.health.guard(|| self.inner.sync_dir(dir))
    }
}

struct CheckedFile {
    inner: Arc<dyn File>,
    health: Arc<Health>,
}

impl CheckedFile {
    /// Whether `error` is a full disk met on the way to `end`, beyond the file's present end.
    fn only_full(&self, error: &io::Error, end: u64) -> bool {
        let full = matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        );
        full && self.inner.len().is_ok_and(|len| len < end)
    }

    fn growing(&self, end: u64, act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.health.check()?;
        act().map_err(|e| {
            if self.only_full(&e, end) {
                e
            } else {
                self.health.fail(e)
            }
        })
    }
}

impl File for CheckedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buf, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.growing(offset + data.len() as u64, || {
            self.inner.write_at(data, offset)
        })
    }
    fn sync(&self) -> io::Result<()> {
        self.health.guard(|| self.inner.sync())
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.growing(len, || self.inner.set_len(len))
    }
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.health.check()?;
        // Allocation writes nothing that was there before: a full disk loses nothing, wherever it is met.
        self.inner.allocate(offset, len)
    }
}
