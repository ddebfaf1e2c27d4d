//! `mmap`: threads that read through mappings, and one that opens files as an old C library did.
//!
//! ```text
//!   readers (as many as clients)                        opener (one)
//!   map     mmap 256 KB, touch each page, munmap        stdio of glibc 2.17: mmap a buffer, read, munmap it
//!   kept    touch each page of one mapping                    of glibc 2.35: the buffer is from the heap
//!   pread   pread 256 KB into a buffer of one's own
//! ```
//!
//! A process has one lock for its address space (mmap_sem, now mmap_lock): a page fault takes it
//! shared, mapping and unmapping take it exclusively. Newer kernels spare most faults the lock
//! (per-VMA locks, Linux 6.4), which this shows too: the difference between the first two variants
//! is then small.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use super::{About, Bench, Case, Effect, Metric, Number, Pace, Role, Sample, Setup, Turn, Variant};
use crate::{Error, Result, crew};

pub struct Mmap;

/// The file that is read; it stays in the system's page cache.
const FILE: usize = 32 << 20;
/// Of it, one read: 64 pages of 4 KB to fault in.
const READ: usize = 256 << 10;
/// The buffer of a `FILE`: the file system's block (st_blksize).
const STDIO: usize = 4096;

impl Case for Mmap {
    fn name(&self) -> &'static str {
        "mmap"
    }

    fn about(&self) -> About {
        About {
            title: "files read through mappings while somebody maps and unmaps",
            text: "Threads map a part of a file, touch its pages and unmap it, while one more opens, reads and closes a file, its \
                   buffer mapped and unmapped each time as glibc 2.17 did, or taken from the heap; beside them the same bytes \
                   through one kept mapping, and by pread. \
                   In DolphinDB a thousand jobs waited for the kernel's mmap_sem with CPU at 30 %: in this program of nine threads \
                   CPU was 300 % with glibc 2.17 and 880 % with 2.35, and 20 queries at once became 2.4 to 3.2 times faster.",
            source: "DolphinDB, about 1000 concurrent jobs over three months of sensor data; the program beside it",
            operations: "reads of 256 KB",
            inside: "the cores' time left idle while the threads waited for each other",
        }
    }

    fn variants(&self) -> Vec<Variant> {
        let variant = |name, role, about| Variant { name, role, about };
        vec![
            variant(
                "map-stdio-maps",
                Role::Was,
                "map, touch, unmap; beside it stdio that maps its buffer (glibc 2.17)",
            ),
            variant(
                "map-stdio-heap",
                Role::Became,
                "map, touch, unmap; beside it stdio with its buffer from the heap (glibc 2.35)",
            ),
            variant(
                "kept",
                Role::Other,
                "one mapping of the file, its pages dropped and touched again (lab_read = mmap)",
            ),
            variant(
                "pread",
                Role::Further,
                "read by offset into a buffer of one's own (default)",
            ),
        ]
    }

    fn default_clients(&self, _cores: usize) -> Vec<usize> {
        // The published program had eight readers.
        vec![1, 2, 4, 8]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![
            Effect {
                was: "map-stdio-maps",
                became: "map-stdio-heap",
                metric: Metric::Throughput,
                published: Some(880.0 / 300.0),
                figure: "CPU of nine threads 300 % to 880 %: that much more of their time spent reading",
            },
            Effect {
                was: "map-stdio-maps",
                became: "map-stdio-heap",
                metric: Metric::Inside,
                published: Some((9.0 - 3.0) / (9.0 - 8.8)),
                figure: "nine threads that used 3 cores' time, then 8.8",
            },
            Effect {
                was: "map-stdio-maps",
                became: "pread",
                metric: Metric::Throughput,
                published: None,
                figure: "beyond what was published",
            },
        ]
    }

    fn functions(&self) -> &'static [&'static str] {
        &["mmap", "munmap", "page_fault", "handle_mm_fault"]
    }

    fn pace(&self) -> Pace {
        Pace {
            budget: Duration::from_secs(48),
            ..Pace::default()
        }
    }

    fn prepare(&self, variant: &Variant, setup: &Setup) -> Result<Box<dyn Bench>> {
        let path = setup.scratch.join("mmap.data");
        if !path.exists() {
            std::fs::write(&path, vec![1; FILE])?;
        }
        let (reading, stdio) = match variant.name {
            "map-stdio-maps" => (Reading::MapEach, Stdio::Maps),
            "map-stdio-heap" => (Reading::MapEach, Stdio::Heap),
            "kept" => (
                Reading::Kept(Mapping::of_file(&File::open(&path)?, 0, FILE)?),
                Stdio::Heap,
            ),
            "pread" => (Reading::Pread, Stdio::Heap),
            other => return Err(Error::usage(format!("mmap has no variant {other}"))),
        };
        Ok(Box::new(Readers {
            file: File::open(&path)?,
            path,
            reading,
            stdio,
        }))
    }
}

/// How the readers read.
enum Reading {
    MapEach,
    Kept(Mapping),
    Pread,
}

/// Where the opener's buffer comes from.
#[derive(Clone, Copy)]
enum Stdio {
    Maps,
    Heap,
}

struct Readers {
    file: File,
    path: PathBuf,
    reading: Reading,
    stdio: Stdio,
}

impl Readers {
    /// The sum of one byte a page of the file's part at `offset`.
    fn read(&self, offset: usize, buffer: &mut [u8]) -> io::Result<u64> {
        match &self.reading {
            Reading::MapEach => Ok(Mapping::of_file(&self.file, offset, READ)?.touch(0, READ)),
            Reading::Kept(mapping) => {
                mapping.forget(offset, READ)?;
                Ok(mapping.touch(offset, READ))
            }
            Reading::Pread => {
                let n = rustix::io::pread(&self.file, &mut *buffer, offset as u64)?;
                Ok(buffer[..n]
                    .iter()
                    .step_by(STDIO)
                    .map(|&b| u64::from(b))
                    .sum())
            }
        }
    }
}

/// `fopen`, `fseek`, one read and `fclose`, with the system calls that a C library makes for them.
fn open_and_close(path: &Path, stdio: Stdio, offset: u64) -> io::Result<()> {
    let file = File::open(path)?;
    match stdio {
        Stdio::Maps => {
            let buffer = Mapping::anonymous(STDIO)?;
            buffer.fill_from(&file, offset)?;
        }
        Stdio::Heap => {
            let mut buffer = vec![0; STDIO];
            rustix::io::pread(&file, &mut buffer, offset)?;
        }
    }
    Ok(())
}

impl Bench for Readers {
    fn run(&mut self, turn: &Turn) -> Result<Sample> {
        let stop = AtomicBool::new(false);
        let this = &*self;
        let (before, since) = (cpu_time(), Instant::now());
        let (sample, opened) = std::thread::scope(|scope| {
            let opener = scope.spawn(|| {
                let mut opened = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    let offset = opened as usize * STDIO % FILE;
                    open_and_close(&this.path, this.stdio, offset as u64)?;
                    opened += 1;
                }
                io::Result::Ok(opened)
            });
            let sample = crew::run(turn, |worker| {
                let mut buffer = vec![0; READ];
                let mut at = worker.index * READ;
                while worker.goes_on() {
                    let offset = at % FILE;
                    // The crew has no way to fail; what cannot be read is not counted, and is seen
                    // as no reads at all.
                    let read = worker.step(|| this.read(offset, &mut buffer));
                    if read.is_err() {
                        return;
                    }
                    at += READ;
                }
            });
            stop.store(true, Ordering::Relaxed);
            let opened = opener
                .join()
                .unwrap_or_else(|p| std::panic::resume_unwind(p));
            (sample, opened)
        });
        let mut sample = sample?;
        let wall = since.elapsed().as_secs_f64();
        let cpu = (cpu_time() - before).as_secs_f64() / wall;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let wanted = (turn.clients + 1).min(cores) as f64;
        sample.inside = Some((1.0 - cpu / wanted).clamp(0.0, 1.0));
        let number = |name, unit, value| Number { name, unit, value };
        sample.numbers = vec![
            number("CPU", "%", 100.0 * cpu),
            number("files opened", "/s", opened? as f64 / wall),
        ];
        Ok(sample)
    }
}

/// What all threads of this process have used.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// A mapping of this value's own.
struct Mapping {
    start: *mut c_void,
    len: usize,
}

// SAFETY: the mapping is reached through this value only, and unmapped when it is dropped, by
// whichever thread.
unsafe impl Send for Mapping {}
// SAFETY: `touch` reads and `forget` changes nothing that a reader of a file mapping can see;
// `fill_from` is called on anonymous mappings by the one thread that has made them.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn of_file(file: &File, offset: usize, len: usize) -> io::Result<Mapping> {
        let (protection, flags) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choosing touches no memory that
        // exists.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                protection,
                flags,
                file.as_fd(),
                offset as u64,
            )?
        };
        Ok(Mapping { start, len })
    }

    fn anonymous(len: usize) -> io::Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as in `of_file`.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), len, protection, MapFlags::PRIVATE)? };
        Ok(Mapping { start, len })
    }

    /// Adds up one byte of each page.
    fn touch(&self, offset: usize, len: usize) -> u64 {
        assert!(offset + len <= self.len, "within the mapping");
        let pages = (offset..offset + len).step_by(STDIO);
        // SAFETY: within the mapping (just checked), which is readable while `self` lives; the file
        // is as long and nobody cuts it. Volatile, for the touching is the point.
        pages
            .map(|at| u64::from(unsafe { self.start.cast::<u8>().add(at).read_volatile() }))
            .sum()
    }

    /// Takes pages out of the address space, so that they fault again; the file keeps them.
    fn forget(&self, offset: usize, len: usize) -> io::Result<()> {
        assert!(offset + len <= self.len, "within the mapping");
        // SAFETY: a range of this mapping (just checked) of a file, shared and never written: what
        // is dropped comes back the same.
        unsafe { madvise(self.start.byte_add(offset), len, Advice::LinuxDontNeed)? };
        Ok(())
    }

    /// Reads from a file into a mapping that is this thread's.
    fn fill_from(&self, file: &File, offset: u64) -> io::Result<()> {
        // SAFETY: the mapping is anonymous, writable, as long as said, and nobody else's: made by
        // the calling thread, which drops it after this.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.start.cast::<u8>(), self.len) };
        rustix::io::pread(file, bytes, offset)?;
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and length of the mapping this value was made with; nothing borrows from it
        // any more.
        let unmapped = unsafe { munmap(self.start, self.len) };
        debug_assert!(unmapped.is_ok(), "a mapping of this value's own");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::testing::run_variants;

    #[test]
    fn every_variant_reads_the_same_bytes_and_counts_what_it_did() {
        let scratch = tempfile::tempdir().expect("a directory");
        let turn = Duration::from_millis(20);
        run_variants(&Mmap, scratch.path(), &[2], turn, |_, sample| {
            assert!(sample.numbers.iter().all(|n| n.value > 0.0));
        });
        let path = scratch.path().join("mmap.data");
        for reading in [Reading::MapEach, Reading::Pread] {
            let readers = Readers {
                file: File::open(&path).expect("the file"),
                path: path.clone(),
                reading,
                stdio: Stdio::Maps,
            };
            let mut buffer = vec![0; READ];
            let sum = readers.read(READ, &mut buffer).expect("read");
            assert_eq!(sum, (READ / STDIO) as u64);
        }
    }
}
