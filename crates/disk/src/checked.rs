//! No write succeeds after one has failed.
//!
//! When a write or an fsync fails, the kernel may drop the pages it could not write and report
//! success next time (PostgreSQL's mailing list calls it *fsyncgate*, 2018). So once data may be
//! lost, nothing more can be promised: every later write, sync, allocation, and change of a name
//! fails too, and only a restart, which trusts nothing but the log, clears it. Reads go on, so that
//! a server can still answer and shut down.
//!
//! A full disk met while a file *grows* loses nothing: the bytes were never there. It is reported
//! and not remembered.

use crate::{Disk, File};
use std::io;
use std::sync::{Arc, OnceLock};
use throng_sync::atomic::{AtomicBool, Ordering};

/// A disk that fails for good once it has failed.
pub struct CheckedDisk<D> {
    inner: D,
    health: Arc<Health>,
}

/// Shared by a disk and its files.
#[derive(Default)]
struct Health {
    /// Set after `cause`; looked at before every write.
    failed: AtomicBool,
    cause: OnceLock<(io::ErrorKind, String)>,
    /// Told of the first failure.
    tell: Option<Tell>,
}

/// Called with the text of a failure, by the thread that met it.
pub type Tell = Box<dyn Fn(&str) + Send + Sync>;

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
        let first = self.cause.set((error.kind(), error.to_string())).is_ok();
        self.failed.store(true, Ordering::Release);
        if first && let Some(tell) = &self.tell {
            tell(&error.to_string());
        }
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

    /// As [`new`](CheckedDisk::new); `tell` is called when the disk fails, once.
    pub fn telling(inner: D, tell: Tell) -> CheckedDisk<D> {
        let health = Health {
            tell: Some(tell),
            ..Health::default()
        };
        CheckedDisk {
            inner,
            health: Arc::new(health),
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
    fn len_of(&self, path: &str) -> io::Result<Option<u64>> {
        self.inner.len_of(path)
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
    fn read_at_once(&self, buf: &mut [u8], offset: u64) -> bool {
        self.inner.read_at_once(buf, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.growing(offset + data.len() as u64, || {
            self.inner.write_at(data, offset)
        })
    }
    fn sync(&self) -> io::Result<()> {
        self.health.guard(|| self.inner.sync())
    }
    fn start_writeback(&self) {
        self.inner.start_writeback();
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.growing(len, || self.inner.set_len(len))
    }
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.health.check()?;
        // Allocation writes nothing that was there before: a full disk loses nothing, wherever it
        // is met.
        self.inner.allocate(offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, FaultOp, SimDisk};

    fn disk() -> (SimDisk, CheckedDisk<SimDisk>) {
        let sim = SimDisk::new();
        (sim.clone(), CheckedDisk::new(sim))
    }

    #[test]
    fn nothing_is_written_after_a_failed_sync() {
        let (sim, disk) = disk();
        let (a, b) = (disk.open("a", true).unwrap(), disk.open("b", true).unwrap());
        a.write_at(b"one", 0).unwrap();
        sim.inject(Fault::new(FaultOp::Sync, "a").times(1));
        let first = a.sync().unwrap_err();
        assert_eq!(
            first.to_string(),
            "could not fsync file \"a\": Input/output error"
        );

        // The disk would do it now; but what the first sync lost, no later one brings back.
        let refusals = [
            a.sync().unwrap_err(),
            a.write_at(b"two", 0).unwrap_err(),
            b.write_at(b"two", 0).unwrap_err(),
            b.sync().unwrap_err(),
            b.set_len(0).unwrap_err(),
            b.allocate(0, 10).unwrap_err(),
            disk.sync_dir("").unwrap_err(),
            disk.rename("a", "c").unwrap_err(),
            disk.remove("a").unwrap_err(),
            disk.open("c", true).unwrap().write_at(b"x", 0).unwrap_err(),
            disk.failure().unwrap(),
        ];
        for refusal in refusals {
            assert!(
                refusal.to_string().contains(&first.to_string()),
                "{refusal}"
            );
        }
        let mut buf = [0; 3];
        assert_eq!(a.read_at(&mut buf, 0).unwrap(), 3);
        assert_eq!(&buf, b"one");
        assert_eq!(b.len().unwrap(), 0);
    }

    #[test]
    fn a_failed_write_is_remembered() {
        let (sim, disk) = disk();
        let file = disk.open("a", true).unwrap();
        sim.inject(Fault::new(FaultOp::Write, "a").after(1).times(1));
        file.write_at(b"one", 0).unwrap();
        assert!(file.write_at(b"two", 0).is_err());
        assert!(file.write_at(b"two", 0).is_err());
        assert!(file.sync().is_err());
    }

    #[test]
    fn a_full_disk_met_while_growing_is_not_remembered() {
        let (sim, disk) = disk();
        let file = disk.open("a", true).unwrap();
        file.write_at(&[1; 1000], 0).unwrap();
        sim.set_capacity(1500);
        for full in [file.write_at(&[2; 1000], 1000), file.allocate(1000, 1000)] {
            assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        }
        file.write_at(&[3; 1000], 0).unwrap();
        file.sync().unwrap();
        assert!(disk.failure().is_none());

        // Met while overwriting, it has lost something.
        sim.inject(Fault::new(FaultOp::Write, "a").times(1).disk_full());
        assert_eq!(
            file.write_at(&[4; 10], 0).unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
        assert!(file.sync().is_err());
        assert!(disk.failure().is_some());
    }
}
