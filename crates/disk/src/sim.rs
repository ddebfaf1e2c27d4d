//! A disk in memory that forgets what was not synced, and fails when told to.
//!
//! What a crash may leave ([`SimDisk::crash_image`]) is what a POSIX file system with a journal for
//! its own structures may leave:
//!
//! * of the bytes written since a file's last sync, any 512-byte sectors, in no order;
//! * of a file grown since, any length in between; of one cut since, either length;
//! * of the names made, removed and renamed since their directory's last sync, any first few, in
//!   order;
//! * everything else as it was.
//!
//! A failed sync behaves as Linux's does: the sectors that it should have made durable are taken
//! for written by later syncs, but are not, until they are written anew.

mod content;
mod fault;
mod names;

pub use fault::{Fault, FaultOp};

use crate::error::{Action, file_error};
use crate::{Disk, File, join, parent};
use content::Content;
use fault::Faults;
use names::{NameOp, Names, Node};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use throng_sync::lock::{Mutex, RwLock};

/// A simulated data directory. Clones are the same disk: a test keeps one beside the server's.
#[derive(Clone)]
pub struct SimDisk {
    world: Arc<World>,
}

struct World {
    /// Held shared by each operation and exclusively by `crash_image`: a crash is one moment for
    /// all files.
    moment: RwLock<()>,
    names: Mutex<Names>,
    faults: Mutex<Faults>,
    capacity: AtomicU64,
    syncs: AtomicU64,
    /// By path.
    writebacks: Mutex<BTreeMap<Box<str>, u64>>,
    cached: AtomicBool,
}

impl Default for SimDisk {
    fn default() -> SimDisk {
        SimDisk::new()
    }
}

impl SimDisk {
    /// An empty data directory.
    pub fn new() -> SimDisk {
        SimDisk::with(Names::default(), u64::MAX)
    }

    fn with(names: Names, capacity: u64) -> SimDisk {
        SimDisk {
            world: Arc::new(World {
                moment: RwLock::new(()),
                names: Mutex::new(names),
                faults: Mutex::default(),
                capacity: AtomicU64::new(capacity),
                syncs: AtomicU64::new(0),
                writebacks: Mutex::default(),
                cached: AtomicBool::new(false),
            }),
        }
    }

    /// Another disk, holding what this one might hold after losing power now. The same seed chooses
    /// the same losses. This one goes on undisturbed.
    pub fn crash_image(&self, seed: u64) -> SimDisk {
        let _moment = self.world.moment.write();
        let mut rng = Rng(seed);
        let names = self.world.names.lock().crash(&mut rng);
        SimDisk::with(names, self.world.capacity.load(Ordering::Relaxed))
    }

    /// Arms a fault. Several may be armed; the first that fits an operation is used.
    pub fn inject(&self, fault: Fault) {
        self.world.faults.lock().add(fault);
    }

    /// Disarms all faults.
    pub fn clear_faults(&self) {
        self.world.faults.lock().clear();
    }

    /// From now on files that would make the sum of all lengths exceed `bytes` cannot grow
    /// (ENOSPC).
    pub fn set_capacity(&self, bytes: u64) {
        self.world.capacity.store(bytes, Ordering::Relaxed);
    }

    /// Whether files are in the system's memory from now on, so that nobody waits to
    /// [read](File::read_at_once) them. They are not at first, nor in a crash image.
    pub fn set_cached(&self, cached: bool) {
        self.world.cached.store(cached, Ordering::Relaxed);
    }

    /// The sum of all files' lengths.
    pub fn used(&self) -> u64 {
        self.world
            .names
            .lock()
            .files()
            .map(|file| file.lock().len())
            .sum()
    }

    /// How many files' syncs have succeeded.
    pub fn syncs(&self) -> u64 {
        self.world.syncs.load(Ordering::Relaxed)
    }

    /// How often [`File::start_writeback`] was called of files whose path begins so.
    pub fn writebacks(&self, path: &str) -> u64 {
        let counts = self.world.writebacks.lock();
        let under = counts.iter().filter(|(name, _)| name.starts_with(path));
        under.map(|(_, count)| count).sum()
    }
}

impl World {
    fn fault(&self, op: FaultOp, path: &str) -> Result<(), io::Error> {
        match self.faults.lock().strike(op, path) {
            None => Ok(()),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn File>> {
        let _moment = self.world.moment.read();
        let mut names = self.world.names.lock();
        let file = match names.get(path) {
            Some(Node::File(file)) => {
                let fault = self.world.fault(FaultOp::Open, path);
                fault.map_err(|e| file_error(Action::Open, path, e))?;
                file.clone()
            }
            Some(Node::Directory) => {
                return Err(file_error(Action::Open, path, Errno::ISDIR.into()));
            }
            None if create => {
                let failed = |e| file_error(Action::Create, path, e);
                self.world.fault(FaultOp::Create, path).map_err(failed)?;
                if !names.is_directory(parent(path)) {
                    return Err(failed(Errno::NOENT.into()));
                }
                let file = Arc::new(Mutex::new(Content::default()));
                names.change(NameOp::Link(path.to_string(), Node::File(file.clone())));
                file
            }
            None => return Err(file_error(Action::Open, path, Errno::NOENT.into())),
        };
        Ok(Arc::new(SimFile {
            world: self.world.clone(),
            file,
            path: path.into(),
        }))
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        Ok(self.world.names.lock().get(path).is_some())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let _moment = self.world.moment.read();
        let failed = |e| file_error(Action::Remove, path, e);
        self.world.fault(FaultOp::Remove, path).map_err(failed)?;
        let mut names = self.world.names.lock();
        match names.get(path) {
            None => Ok(()),
            Some(Node::Directory) => Err(failed(Errno::ISDIR.into())),
            Some(Node::File(_)) => {
                names.change(NameOp::Unlink(path.to_string()));
                Ok(())
            }
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let _moment = self.world.moment.read();
        let failed = |e| file_error(Action::Rename, from, e);
        self.world.fault(FaultOp::Rename, from).map_err(failed)?;
        let mut names = self.world.names.lock();
        match names.get(from) {
            None => Err(failed(Errno::NOENT.into())),
            Some(_) if parent(from) != parent(to) => Err(failed(Errno::XDEV.into())),
            Some(_) => {
                names.change(NameOp::Rename(from.to_string(), to.to_string()));
                Ok(())
            }
        }
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let names = self.world.names.lock();
        if !names.is_directory(dir) {
            return Err(file_error(Action::OpenDirectory, dir, Errno::NOENT.into()));
        }
        Ok(names.children(dir))
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        let _moment = self.world.moment.read();
        let failed = |e| file_error(Action::CreateDirectory, path, e);
        let mut names = self.world.names.lock();
        match names.get(path) {
            Some(Node::Directory) => Ok(()),
            Some(Node::File(_)) => Err(failed(Errno::EXIST.into())),
            None if !names.is_directory(parent(path)) => Err(failed(Errno::NOENT.into())),
            None => {
                self.world.fault(FaultOp::Create, path).map_err(failed)?;
                names.change(NameOp::Link(path.to_string(), Node::Directory));
                Ok(())
            }
        }
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        let _moment = self.world.moment.read();
        let failed = |e| file_error(Action::SyncDirectory, dir, e);
        self.world
            .fault(FaultOp::SyncDir, &join(dir, ""))
            .map_err(failed)?;
        let mut names = self.world.names.lock();
        if !names.is_directory(dir) {
            return Err(failed(Errno::NOENT.into()));
        }
        names.sync(dir);
        Ok(())
    }
}

struct SimFile {
    world: Arc<World>,
    file: Arc<Mutex<Content>>,
    /// As it was opened.
    path: Box<str>,
}

impl SimFile {
    fn failed(&self, action: Action) -> impl Fn(io::Error) -> io::Error {
        move |e| file_error(action, &self.path, e)
    }

    /// Whether the disk has room for this file to become `len` long.
    fn has_room(&self, len: u64) -> bool {
        let capacity = self.world.capacity.load(Ordering::Relaxed);
        if capacity == u64::MAX {
            return true;
        }
        let mine = self.file.lock().len();
        let all: u64 = self
            .world
            .names
            .lock()
            .files()
            .map(|file| file.lock().len())
            .sum();
        len <= mine || all + (len - mine) <= capacity
    }

    fn room(&self, len: u64) -> io::Result<()> {
        if self.has_room(len) {
            Ok(())
        } else {
            Err(Errno::NOSPC.into())
        }
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.world
            .fault(FaultOp::Read, &self.path)
            .map_err(self.failed(Action::Read))?;
        Ok(self.file.lock().read(buf, offset))
    }

    fn read_at_once(&self, buf: &mut [u8], offset: u64) -> bool {
        self.world.cached.load(Ordering::Relaxed)
            && self.read_at(buf, offset).is_ok_and(|n| n == buf.len())
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let _moment = self.world.moment.read();
        let result = self
            .world
            .fault(FaultOp::Write, &self.path)
            .and_then(|()| self.room(offset + data.len() as u64));
        if let Err(e) = result {
            // A write that fails may have been done in part: here, its first half.
            let half = &data[..data.len() / 2];
            if self.has_room(offset + half.len() as u64) {
                self.file.lock().write(half, offset);
            }
            return Err(self.failed(Action::Write)(e));
        }
        self.file.lock().write(data, offset);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let _moment = self.world.moment.read();
        if let Err(e) = self.world.fault(FaultOp::Sync, &self.path) {
            self.file.lock().sync_failed();
            return Err(self.failed(Action::Sync)(e));
        }
        self.file.lock().sync();
        self.world.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn start_writeback(&self) {
        let mut counts = self.world.writebacks.lock();
        *counts.entry(self.path.clone()).or_default() += 1;
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.lock().len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let _moment = self.world.moment.read();
        self.world
            .fault(FaultOp::SetLen, &self.path)
            .map_err(self.failed(Action::Truncate))?;
        // Growing this way takes no space.
        self.file.lock().set_len(len);
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        let _moment = self.world.moment.read();
        let end = offset + len;
        self.world
            .fault(FaultOp::Allocate, &self.path)
            .and_then(|()| self.room(end))
            .map_err(self.failed(Action::Extend))?;
        let mut file = self.file.lock();
        // Nothing is allocated of no bytes, wherever they would be.
        if len > 0 && file.len() < end {
            file.set_len(end);
        }
        Ok(())
    }
}

/// SplitMix64: small, and the same everywhere, so that a seed in a failing test means the same to
/// everyone.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// Below `n`; `n` is not zero.
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}
