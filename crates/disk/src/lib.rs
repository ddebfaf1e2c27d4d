//! Files read and written by offset, and the faults they can have.
//!
//! ```text
//!   RelFiles   relation files: pages, lengths, handles, what is not durable yet
//!      │
//!   CheckedDisk  after one failed write or sync, no later one succeeds
//!      │
//!   RealDisk │ SimDisk   the data directory │ memory, with faults and crash images
//! ```
//!
//! Paths are relative to the data directory and use `/`. Errors are `io::Error`s whose kind is the
//! system's and whose text names the file, as PostgreSQL's do: `could not write to file "base/123":
//! No space left on device`.
//!
//! What is durable: a file's bytes and length after [`File::sync`]; that a name exists, is gone, or
//! means another file, after [`Disk::sync_dir`] of its directory. Nothing else.
//!
//! Imported by: `server`, `session`, `exec`, `lab`, `txn`, `access`, `buffer`, `wal`.

mod checked;
pub mod descriptors;
mod error;
mod failing;
mod reading;
mod real;
mod relfile;
mod relfiles;
mod sim;
mod slow;

pub use checked::{CheckedDisk, Tell};
pub use error::{Action, file_error};
pub use failing::{FailingDisk, TRIGGER};
pub use reading::Reading;
pub use real::{RealDisk, set_fsync};
pub use relfile::RelFile;
pub use relfiles::{RelFiles, RelFilesStats};
pub use sim::{Fault, FaultOp, SimDisk};
pub use slow::SlowDisk;

use std::io;
use std::sync::Arc;

/// An open file. All methods take offsets, so any number of threads may use one handle at once.
pub trait File: Send + Sync {
    /// Fills `buf` from `offset` on; fewer bytes only where the file ends. Returns how many.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Fills `buf` from `offset` on if that takes no waiting for a device. False where it would, or
    /// where nobody knows: `buf` then holds anything.
    fn read_at_once(&self, _buf: &mut [u8], _offset: u64) -> bool {
        false
    }
    /// Writes all of `data` at `offset`, growing the file if it ends before; a gap reads as zeros.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;
    /// Makes what was written before the call durable, and the length with it (fdatasync).
    fn sync(&self) -> io::Result<()>;
    /// Has what was written begin its way to the device, and does not wait: [`sync`](File::sync)
    /// finds less to do then, and others find the device less busy. A hint, without one there is
    /// nothing to do; what goes wrong, the sync tells.
    fn start_writeback(&self) {}
    /// Bytes in the file.
    fn len(&self) -> io::Result<u64>;
    /// Cuts the file or, with zeros that take no space yet, grows it.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves space for `len` bytes from `offset` on, so that writing them cannot fail for lack
    /// of it; the file grows to `offset + len` if it is shorter, with zeros.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// A data directory.
pub trait Disk: Send + Sync {
    /// Opens a file for reading and writing. With `create`, a missing one is made, empty; its
    /// directory must exist.
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn File>>;
    fn exists(&self, path: &str) -> io::Result<bool>;
    /// Bytes in a file, without opening it where that can be told; None where there is none.
    fn len_of(&self, path: &str) -> io::Result<Option<u64>> {
        match self.exists(path)? {
            true => self.open(path, false)?.len().map(Some),
            false => Ok(None),
        }
    }
    /// Removes a file. One that is not there is no error.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Gives a file another name, in place of any file of that name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// The names of the files and directories in `dir` (the data directory is `""`), sorted.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Makes a directory. One that is there already is no error.
    fn create_dir(&self, path: &str) -> io::Result<()>;
    /// Makes durable which names `dir` holds.
    fn sync_dir(&self, dir: &str) -> io::Result<()>;
}

impl<D: Disk + ?Sized> Disk for Arc<D> {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn File>> {
        (**self).open(path, create)
    }
    fn exists(&self, path: &str) -> io::Result<bool> {
        (**self).exists(path)
    }
    fn len_of(&self, path: &str) -> io::Result<Option<u64>> {
        (**self).len_of(path)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        (**self).remove(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        (**self).rename(from, to)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        (**self).list(dir)
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        (**self).create_dir(path)
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        (**self).sync_dir(dir)
    }
}

/// `dir/name`, where `""` is the data directory itself.
pub(crate) fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() {
        name.to_string()
    } else {
        format!("{dir}/{name}")
    }
}

/// The directory that a path's last name is in.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}
