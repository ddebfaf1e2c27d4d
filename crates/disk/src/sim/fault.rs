//! Faults to be injected into a simulated disk.

use rustix::io::Errno;

/// The operation that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultOp {
    /// Opening a file that exists.
    Open,
    /// Making a file or directory.
    Create,
    Read,
    /// A write; its first half is done.
    Write,
    /// A file's sync.
    Sync,
    SetLen,
    Allocate,
    Remove,
    Rename,
    /// A directory's sync; its path ends with `/` (the data directory's is empty).
    SyncDir,
}

/// When to fail, and how.
#[derive(Clone, Debug)]
pub struct Fault {
    op: FaultOp,
    path: String,
    skip: u64,
    times: u64,
    errno: i32,
}

impl Fault {
    /// Every such operation on a path that contains `path` fails with EIO ("Input/output error").
    pub fn new(op: FaultOp, path: impl Into<String>) -> Fault {
        let errno = Errno::IO.raw_os_error();
        Fault {
            op,
            path: path.into(),
            skip: 0,
            times: u64::MAX,
            errno,
        }
    }
    /// Only after `n` have succeeded.
    pub fn after(mut self, n: u64) -> Fault {
        self.skip = n;
        self
    }
    /// Only `n` times.
    pub fn times(mut self, n: u64) -> Fault {
        self.times = n;
        self
    }
    /// With ENOSPC ("No space left on device").
    pub fn disk_full(mut self) -> Fault {
        self.errno = Errno::NOSPC.raw_os_error();
        self
    }
}

#[derive(Default)]
pub(super) struct Faults {
    armed: Vec<Fault>,
}

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.armed.push(fault);
    }

    pub(super) fn clear(&mut self) {
        self.armed.clear();
    }

    /// Whether this operation fails, and with which error number. Counts it.
    pub(super) fn strike(&mut self, op: FaultOp, path: &str) -> Option<i32> {
        let fits =
            |fault: &&mut Fault| fault.op == op && fault.times > 0 && path.contains(&fault.path);
        for fault in self.armed.iter_mut().filter(fits) {
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            fault.times = fault.times.saturating_sub(1);
            return Some(fault.errno);
        }
        None
    }
}
