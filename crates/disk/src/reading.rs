//! How a file's bytes come into memory: three ways, one of which a server uses.
//!
//! | way | a read is | what threads share |
//! |---|---|---|
//! | [`Reading::Pread`] | one `pread` into the caller's buffer | nothing but the file |
//! | [`Reading::Mapped`] | a copy out of the file's mapping, with a page fault where the kernel has not mapped it yet | the process's address space, read-locked by each fault |
//! | [`Reading::MapPerRead`] | `mmap`, the copy, `munmap` | the address space, write-locked twice a read, and other cores' TLBs told of it |
//!
//! The last is what glibc 2.17 did for the buffers of `fseek` and `fclose`, and what stopped
//! DolphinDB's thousand jobs (see `docs/design/extension.md`): the kernel keeps one lock a process
//! for its address space. Both mapped ways have another fault that no lock explains: where the disk
//! cannot be read, `pread` returns an error, and a mapping ends the process with SIGBUS.
//!
//! All `unsafe` of this crate is here, but for one call in `real`.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::str::FromStr;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use throng_sync::lock::RwLock;

/// How files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reading {
    /// By offset, into the reader's own buffer.
    #[default]
    Pread,
    /// Out of one mapping of the whole file.
    Mapped,
    /// Out of a mapping made for each read.
    MapPerRead,
}

impl Reading {
    pub const ALL: [Reading; 3] = [Reading::Pread, Reading::Mapped, Reading::MapPerRead];

    /// As the setting `lab_read` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Reading::Pread => "pread",
            Reading::Mapped => "mmap",
            Reading::MapPerRead => "map_per_read",
        }
    }
}

impl FromStr for Reading {
    type Err = ();
    fn from_str(name: &str) -> Result<Reading, ()> {
        Reading::ALL
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or(())
    }
}

/// A read-only shared mapping of a part of a file.
pub(crate) struct Mapping {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: the mapping is this value's own and only ever read; it is unmapped when the value is
// dropped, by whichever thread.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`: reading needs no turns.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len > 0` bytes from `offset` on, which is a multiple of the system's page size.
    fn new(fd: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Mapping> {
        // SAFETY: a new mapping at an address of the kernel's choosing touches no memory that
        // exists.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ,
                MapFlags::SHARED,
                fd,
                offset,
            )?
        };
        let start = NonNull::new(start).expect("the kernel never maps at null unasked");
        Ok(Mapping { start, len })
    }

    /// Copies the bytes from `at` on. The caller has made sure that the file has them.
    fn copy(&self, at: usize, out: &mut [u8]) {
        assert!(
            at <= self.len && out.len() <= self.len - at,
            "a copy lies within its mapping"
        );
        // SAFETY: the source lies within the mapping (just checked), which is readable while `self`
        // lives; the destination is the caller's alone, and no part of a mapping that nobody else
        // has a pointer to. Others may write to the file meanwhile: through the kernel, not through
        // memory of this program, so no reference here is broken; what is torn by that the page's
        // checksum shows, as with `pread`.
        unsafe {
            let source = self.start.as_ptr().cast::<u8>().add(at);
            std::ptr::copy_nonoverlapping(source, out.as_mut_ptr(), out.len());
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and length are those of the mapping made in `new`, and no pointer into it
        // outlives `copy`.
        let unmapped = unsafe { munmap(self.start.as_ptr(), self.len) };
        debug_assert!(unmapped.is_ok(), "the file's own mapping");
    }
}

/// One file's way of being read.
pub(crate) enum Reader {
    Pread,
    /// The mapping covers the file's beginning; longer files are mapped anew when a read needs what
    /// came after.
    Mapped(RwLock<Option<Mapping>>),
    MapPerRead,
}

impl Reader {
    pub(crate) fn new(reading: Reading) -> Reader {
        match reading {
            Reading::Pread => Reader::Pread,
            Reading::Mapped => Reader::Mapped(RwLock::new(None)),
            Reading::MapPerRead => Reader::MapPerRead,
        }
    }

    /// Reads what the file has of `out.len()` bytes from `offset` on; how many. `None`: by `pread`,
    /// which is the caller's.
    #[inline]
    pub(crate) fn read(
        &self,
        file: &impl AsFd,
        out: &mut [u8],
        offset: u64,
    ) -> Option<io::Result<usize>> {
        match self {
            Reader::Pread => None,
            Reader::Mapped(kept) => Some(read_mapped(kept, file.as_fd(), out, offset)),
            Reader::MapPerRead => Some(map_and_read(file.as_fd(), out, offset)),
        }
    }

    /// The file is about to be cut: what is mapped of it is let go, and nobody maps it before `cut`
    /// has returned.
    pub(crate) fn while_cutting<R>(&self, cut: impl FnOnce() -> R) -> R {
        match self {
            Reader::Mapped(kept) => {
                let mut kept = kept.write();
                *kept = None;
                cut()
            }
            Reader::Pread | Reader::MapPerRead => cut(),
        }
    }
}

/// Bytes of a read that the file has.
fn available(fd: BorrowedFd<'_>, wanted: usize, offset: u64) -> io::Result<usize> {
    let len = rustix::fs::fstat(fd)?.st_size as u64;
    Ok(wanted.min(usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX)))
}

fn read_mapped(
    kept: &RwLock<Option<Mapping>>,
    fd: BorrowedFd<'_>,
    out: &mut [u8],
    offset: u64,
) -> io::Result<usize> {
    loop {
        {
            let kept = kept.read();
            if let Some(mapping) = &*kept {
                let at = usize::try_from(offset).unwrap_or(usize::MAX);
                if at
                    .checked_add(out.len())
                    .is_some_and(|end| end <= mapping.len)
                {
                    mapping.copy(at, out);
                    return Ok(out.len());
                }
            }
        }
        // Not mapped as far as that. Under the lock nobody cuts the file.
        let mut kept = kept.write();
        let has = available(fd, out.len(), offset)?;
        if has < out.len() {
            // Only at a file's end, and only where nothing is or the last bytes are.
            return match has {
                0 => Ok(0),
                _ => map_and_read(fd, &mut out[..has], offset),
            };
        }
        let len = rustix::fs::fstat(fd)?.st_size;
        *kept = Some(Mapping::new(fd, 0, len as usize)?);
    }
}

fn map_and_read(fd: BorrowedFd<'_>, out: &mut [u8], offset: u64) -> io::Result<usize> {
    let has = available(fd, out.len(), offset)?;
    if has == 0 {
        return Ok(0);
    }
    let within = (offset % rustix::param::page_size() as u64) as usize;
    let mapping = Mapping::new(fd, offset - within as u64, within + has)?;
    mapping.copy(within, &mut out[..has]);
    Ok(has)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, RealDisk};

    #[test]
    fn every_way_reads_what_was_written_where_the_file_has_it() {
        for reading in Reading::ALL {
            let dir = tempfile::tempdir().unwrap();
            let disk = RealDisk::with_reading(dir.path(), reading).unwrap();
            let file = disk.open("a", true).unwrap();
            let mut out = [9; 100];
            assert_eq!(file.read_at(&mut out, 0).unwrap(), 0, "{reading:?}");
            let data: Vec<u8> = (0..20_000u32).map(|i| (i % 251) as u8).collect();
            file.write_at(&data, 0).unwrap();
            for offset in [0, 1, 4095, 4096, 8192, 19_900] {
                assert_eq!(file.read_at(&mut out, offset).unwrap(), 100);
                assert_eq!(out[..], data[offset as usize..][..100], "{reading:?}");
            }
            assert_eq!(file.read_at(&mut out, 19_950).unwrap(), 50);
            assert_eq!(out[..50], data[19_950..]);
            assert_eq!(file.read_at(&mut out, 20_000).unwrap(), 0);
            assert_eq!(file.read_at(&mut out, 1 << 40).unwrap(), 0);
            assert_eq!(file.read_at(&mut [], 5).unwrap(), 0);
        }
    }

    #[test]
    fn every_way_sees_changes_growth_and_cuts() {
        for reading in Reading::ALL {
            let dir = tempfile::tempdir().unwrap();
            let disk = RealDisk::with_reading(dir.path(), reading).unwrap();
            let file = disk.open("a", true).unwrap();
            let byte = |offset| {
                let mut out = [0];
                file.read_at(&mut out, offset).map(|n| (n, out[0])).unwrap()
            };
            file.write_at(&[1; 8192], 0).unwrap();
            assert_eq!(byte(100), (1, 1));
            file.write_at(&[2; 8192], 0).unwrap();
            assert_eq!(byte(100), (1, 2), "{reading:?}: a change");
            file.write_at(&[3; 8192], 8192).unwrap();
            assert_eq!(byte(9000), (1, 3), "{reading:?}: growth");
            file.set_len(4096).unwrap();
            assert_eq!(byte(9000), (0, 0), "{reading:?}: a cut");
            assert_eq!(byte(100), (1, 2));
            file.allocate(0, 16_384).unwrap();
            assert_eq!(byte(9000), (1, 0), "{reading:?}: zeros after a cut");
        }
    }

    #[test]
    fn readers_and_a_writer_at_the_files_end_do_not_meet() {
        const PAGE: usize = 8192;
        for reading in Reading::ALL {
            let dir = tempfile::tempdir().unwrap();
            let disk = RealDisk::with_reading(dir.path(), reading).unwrap();
            let file = disk.open("a", true).unwrap();
            let pages = std::sync::atomic::AtomicU64::new(0);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        let mut out = vec![0; PAGE];
                        let mut seen = 0;
                        while seen < 200 {
                            seen = pages.load(std::sync::atomic::Ordering::Acquire);
                            for page in seen.saturating_sub(3)..seen {
                                let n = file.read_at(&mut out, page * PAGE as u64).unwrap();
                                assert_eq!(n, PAGE, "{reading:?}");
                                assert!(out.iter().all(|&byte| byte == page as u8));
                            }
                        }
                    });
                }
                for page in 0..200u64 {
                    file.write_at(&vec![page as u8; PAGE], page * PAGE as u64)
                        .unwrap();
                    pages.store(page + 1, std::sync::atomic::Ordering::Release);
                }
            });
        }
    }
}
