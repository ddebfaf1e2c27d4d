//! The kernel's performance events: opening them on the threads of a process, and reading what they
//! say.
//!
//! ```text
//!            core 0    core 1          an event a (thread, core), since only such events may be inherited by
//! thread 7     e ────┐   e ────┐       the threads that are started meanwhile
//! thread 8     e ────┤   e ────┤
//!                 ring 0    ring 1     all events of a core write to one ring
//! ```
//!
//! A ring is a metadata page and a power of two of data pages, shared with the kernel:
//!
//! ```text
//! | data_head (kernel writes) … data_tail (we write) | record record record … |
//! ```
//!
//! The kernel never overwrites what lies between tail and head; what does not fit is counted in a
//! `LOST` record.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::{self, perf_event_attr, perf_event_mmap_page};
use perf_event_open_sys::{ioctls, perf_event_open};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// What the kernel says.
#[derive(Debug, PartialEq, Eq)]
pub enum Record {
    /// A thread was seen with this stack, innermost address first, kernel addresses among them
    /// where permitted.
    Stack {
        pid: u32,
        tid: u32,
        nanos: u64,
        stack: Box<[u64]>,
    },
    /// A thread got a core.
    Resumed { tid: u32, nanos: u64 },
    /// A thread lost its core; `ready` if it could have gone on.
    Stopped { tid: u32, nanos: u64, ready: bool },
    /// So many records did not fit.
    Lost(u64),
}

impl Record {
    /// When it happened, on the monotonic clock; 0 for what has no time.
    pub fn nanos(&self) -> u64 {
        match self {
            Record::Stack { nanos, .. }
            | Record::Resumed { nanos, .. }
            | Record::Stopped { nanos, .. } => *nanos,
            Record::Lost(_) => 0,
        }
    }
}

/// What to record of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Its stack so many times a second of its time on a core.
    OnCpu { hertz: u64 },
    /// Its stack whenever it leaves its core, and when it comes back.
    OffCpu,
}

/// An open event; closing it ends it.
pub struct Event(OwnedFd);

impl Event {
    /// Opens a disabled event on one thread and one core, and on the threads it will start.
    pub fn open(mode: Mode, kernel: bool, tid: u32, core: usize) -> io::Result<Event> {
        let mut attr = perf_event_attr::default();
        attr.size = size_of::<perf_event_attr>() as u32;
        attr.type_ = bindings::PERF_TYPE_SOFTWARE;
        attr.sample_type = u64::from(
            bindings::PERF_SAMPLE_TID
                | bindings::PERF_SAMPLE_TIME
                | bindings::PERF_SAMPLE_CALLCHAIN,
        );
        attr.clockid = libc::CLOCK_MONOTONIC;
        attr.set_use_clockid(1);
        attr.set_sample_id_all(1);
        attr.set_disabled(1);
        attr.set_inherit(1);
        attr.set_exclude_hv(1);
        attr.set_exclude_kernel(u64::from(!kernel));
        attr.set_exclude_callchain_kernel(u64::from(!kernel));
        match mode {
            Mode::OnCpu { hertz } => {
                attr.config = bindings::PERF_COUNT_SW_CPU_CLOCK.into();
                attr.set_freq(1);
                attr.__bindgen_anon_1.sample_freq = hertz;
            }
            Mode::OffCpu => {
                attr.config = bindings::PERF_COUNT_SW_CONTEXT_SWITCHES.into();
                attr.__bindgen_anon_1.sample_period = 1;
                attr.set_context_switch(1);
            }
        }
        // SAFETY: attr is a valid attribute structure that says its own size, and lives through the
        // call, which writes to nothing else.
        let fd = unsafe {
            perf_event_open(
                &mut attr,
                tid as libc::pid_t,
                core as libc::c_int,
                -1,
                bindings::PERF_FLAG_FD_CLOEXEC.into(),
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just returned this descriptor, so nobody else owns it.
        Ok(Event(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Lets this event write to the ring of another one of the same core.
    pub fn share(&self, other: &Event) -> io::Result<()> {
        // SAFETY: both are open event descriptors; the call takes the second by value.
        done(unsafe { ioctls::SET_OUTPUT(self.0.as_raw_fd(), other.0.as_raw_fd()) })
    }

    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: an open event descriptor; the argument is flags.
        done(unsafe { ioctls::ENABLE(self.0.as_raw_fd(), 0) })
    }

    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: as in `enable`.
        done(unsafe { ioctls::DISABLE(self.0.as_raw_fd(), 0) })
    }
}

fn done(result: libc::c_int) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What the events of one core write to.
pub struct Ring {
    base: NonNull<u8>,
    /// Of the data, without the metadata page.
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and is reached through `&mut self` only.
unsafe impl Send for Ring {}

const PAGE: usize = 4096;
const HEADER: usize = 8;

impl Ring {
    /// Maps the event's ring, with so many data pages, a power of two.
    pub fn map(event: &Event, pages: usize) -> io::Result<Ring> {
        assert!(pages.is_power_of_two(), "the kernel takes no other number");
        let page = rustix::param::page_size().max(PAGE);
        let bytes = pages * page;
        // SAFETY: a new mapping at an address that the kernel chooses touches no memory of ours.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                page + bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &event.0,
                0,
            )
        }?;
        let base = NonNull::new(base.cast()).expect("a mapping is never at 0");
        Ok(Ring { base, bytes })
    }

    fn page(&self) -> usize {
        rustix::param::page_size().max(PAGE)
    }

    /// The two counters of the metadata page: where the kernel has written to, and where we have
    /// read to.
    fn counters(&self) -> (&AtomicU64, &AtomicU64) {
        let meta = self.base.as_ptr().cast::<perf_event_mmap_page>();
        // SAFETY: the mapping starts with this structure, is page-aligned and lives as long as
        // self. Both fields are aligned 64-bit words that kernel and process access atomically.
        unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*meta).data_head),
                AtomicU64::from_ptr(&raw mut (*meta).data_tail),
            )
        }
    }

    /// Hands over what was written since the last call.
    pub fn drain(&mut self, mut each: impl FnMut(Record)) {
        let (head, tail) = self.counters();
        // Acquire: the records up to the head are read after it. Release: they are read before the
        // kernel may write over them.
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        let mut bytes = Vec::new();
        while at + HEADER as u64 <= end {
            self.copy(at, HEADER, &mut bytes);
            let size = usize::from(u16::from_ne_bytes([bytes[6], bytes[7]]));
            if size < HEADER || at + size as u64 > end {
                // Not a record: nothing behind it can be found either.
                at = end;
                break;
            }
            self.copy(at, size, &mut bytes);
            if let Some(record) = parse(&bytes) {
                each(record);
            }
            at += size as u64;
        }
        let (_, tail) = self.counters();
        tail.store(at, Ordering::Release);
    }

    /// Copies `length` bytes from position `at` of the endless stream that the ring holds a window
    /// of.
    fn copy(&self, at: u64, length: usize, into: &mut Vec<u8>) {
        into.clear();
        let start = (at % self.bytes as u64) as usize;
        let first = length.min(self.bytes - start);
        // SAFETY: the data area is `bytes` long behind one page, start + first and length - first
        // lie within it, and the kernel does not write between tail and head, where these bytes
        // are.
        unsafe {
            let data = self.base.as_ptr().add(self.page());
            into.extend_from_slice(std::slice::from_raw_parts(data.add(start), first));
            into.extend_from_slice(std::slice::from_raw_parts(data, length - first));
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let length = self.page() + self.bytes;
        // SAFETY: exactly what `map` mapped; no reference into it outlives self.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), length) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Reads a record: `type u32 | misc u16 | size u16 | body`. None for kinds that do not matter here.
fn parse(bytes: &[u8]) -> Option<Record> {
    let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let kind = half(0)?;
    let misc = u32::from(u16::from_ne_bytes([bytes[4], bytes[5]]));
    match kind {
        // pid u32, tid u32, time u64, n u64, n addresses
        bindings::PERF_RECORD_SAMPLE => {
            let depth = usize::try_from(word(24)?).ok()?;
            let addresses = bytes.get(32..32 + depth.checked_mul(8)?)?;
            let stack = (addresses.chunks_exact(8))
                .map(|b| u64::from_ne_bytes(b.try_into().expect("eight bytes")))
                .filter(|address| !is_marker(*address))
                .collect();
            Some(Record::Stack {
                pid: half(8)?,
                tid: half(12)?,
                nanos: word(16)?,
                stack,
            })
        }
        // pid u32, tid u32, time u64
        bindings::PERF_RECORD_SWITCH => {
            let (tid, nanos) = (half(12)?, word(16)?);
            Some(if misc & bindings::PERF_RECORD_MISC_SWITCH_OUT == 0 {
                Record::Resumed { tid, nanos }
            } else {
                let ready = misc & bindings::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0;
                Record::Stopped { tid, nanos, ready }
            })
        }
        // id u64, lost u64
        bindings::PERF_RECORD_LOST => Some(Record::Lost(word(16)?)),
        _ => None,
    }
}

/// Addresses from `PERF_CONTEXT_MAX` up say whose the following ones are; they are none themselves.
fn is_marker(address: u64) -> bool {
    address >= -4095_i64 as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, body: &[u64]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend((8 + 8 * body.len() as u16).to_ne_bytes());
        bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    /// A process and a thread as the kernel puts them side by side.
    const WHO: u64 = if cfg!(target_endian = "little") {
        9 << 32 | 7
    } else {
        7 << 32 | 9
    };

    #[test]
    fn records_are_read() {
        let user = -512_i64 as u64;
        let sample = record(
            bindings::PERF_RECORD_SAMPLE,
            0,
            &[WHO, 1000, 3, user, 0xa, 0xb],
        );
        assert_eq!(
            parse(&sample),
            Some(Record::Stack {
                pid: 7,
                tid: 9,
                nanos: 1000,
                stack: Box::new([0xa, 0xb])
            })
        );
        let switch = |misc| parse(&record(bindings::PERF_RECORD_SWITCH, misc, &[WHO, 5]));
        let (tid, nanos) = (9, 5);
        assert_eq!(switch(0), Some(Record::Resumed { tid, nanos }));
        let stopped = |ready| Some(Record::Stopped { tid, nanos, ready });
        assert_eq!(switch(1 << 13), stopped(false));
        assert_eq!(switch(3 << 13), stopped(true));
        assert_eq!(
            parse(&record(bindings::PERF_RECORD_LOST, 0, &[1, 17])),
            Some(Record::Lost(17))
        );
        // Cut short, or with a depth that it does not hold.
        assert_eq!(
            parse(&record(bindings::PERF_RECORD_SAMPLE, 0, &[WHO, 1000])),
            None
        );
        assert_eq!(
            parse(&record(
                bindings::PERF_RECORD_SAMPLE,
                0,
                &[WHO, 1, u64::MAX]
            )),
            None
        );
    }
}
