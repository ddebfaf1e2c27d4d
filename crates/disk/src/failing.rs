//! A disk that fails when it is told to: for seeing that a server comes back.

use std::io;
use std::sync::Arc;

use rustix::io::Errno;

use crate::error::{Action, file_error};
use crate::{Disk, File};

/// In the data directory: makes the next write or sync fail, and is gone then.
pub const TRIGGER: &str = "disk-fault";

/// Another disk, a write or sync of which fails with EIO, once, when there is a file of the name
/// [`TRIGGER`].
pub struct FailingDisk<D> {
    inner: Arc<D>,
}

impl<D: Disk> FailingDisk<D> {
    pub fn new(inner: D) -> FailingDisk<D> {
        FailingDisk {
            inner: Arc::new(inner),
        }
    }
}

/// The error, if there is to be one.
fn strike(disk: &impl Disk, action: Action, path: &str) -> io::Result<()> {
    if disk.exists(TRIGGER)? {
        disk.remove(TRIGGER)?;
        return Err(file_error(action, path, Errno::IO.into()));
    }
    Ok(())
}

impl<D: Disk + 'static> Disk for FailingDisk<D> {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(FailingFile {
            inner: self.inner.open(path, create)?,
            disk: self.inner.clone(),
            path: path.into(),
        }))
    }
    fn exists(&self, path: &str) -> io::Result<bool> {
        self.inner.exists(path)
    }
    fn len_of(&self, path: &str) -> io::Result<Option<u64>> {
        self.inner.len_of(path)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.inner.create_dir(path)
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        strike(&self.inner, Action::SyncDirectory, dir)?;
        self.inner.sync_dir(dir)
    }
}

struct FailingFile<D> {
    inner: Arc<dyn File>,
    disk: Arc<D>,
    path: Box<str>,
}

impl<D: Disk> File for FailingFile<D> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buf, offset)
    }
    fn read_at_once(&self, buf: &mut [u8], offset: u64) -> bool {
        self.inner.read_at_once(buf, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        strike(&self.disk, Action::Write, &self.path)?;
        self.inner.write_at(data, offset)
    }
    fn sync(&self) -> io::Result<()> {
        strike(&self.disk, Action::Sync, &self.path)?;
        self.inner.sync()
    }
    fn start_writeback(&self) {
        self.inner.start_writeback();
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.inner.allocate(offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimDisk;

    #[test]
    fn it_fails_once_each_time_it_is_told_to() {
        let sim = SimDisk::new();
        let disk = FailingDisk::new(sim.clone());
        let file = disk.open("a", true).unwrap();
        file.write_at(b"one", 0).unwrap();
        for _ in 0..2 {
            sim.open(TRIGGER, true).unwrap();
            let error = file.sync().unwrap_err();
            assert_eq!(
                error.to_string(),
                "could not fsync file \"a\": Input/output error"
            );
            file.sync().unwrap();
        }
    }
}
