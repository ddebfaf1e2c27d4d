//! Giving one's core away for a moment.
//!
//! On a full core a thread that is about to wait lets others run first: clients that have something
//! to send, sessions that are about to commit. They need microseconds, and on an idle core the call
//! comes back at once. Whoever computes for long would take a whole time slice, which is
//! milliseconds; so while somebody does, nothing is given away. Threads that do nothing else [come
//! after](come_after) others: where the kernel can be told to take the core from them soon, they do
//! not count.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many there are.
static COMPUTING: AtomicUsize = AtomicUsize::new(0);

/// Held by whoever computes for long beside the threads that serve, and does not [come
/// after](come_after) them in short slices.
#[derive(Debug)]
#[must_use = "it counts for as long as it is held"]
pub struct Computing(());

impl Computing {
    pub fn begin() -> Computing {
        COMPUTING.fetch_add(1, Ordering::Relaxed);
        Computing(())
    }

    /// Whether anybody does.
    #[inline]
    pub fn is_under_way() -> bool {
        COMPUTING.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        COMPUTING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets those who need this core for a moment have it. May come back at once, and does where
/// somebody computes.
#[inline]
pub fn yield_core() {
    if !Computing::is_under_way() {
        crate::thread::yield_now();
    }
}

/// Gives the calling thread the weight of a niceness, and slices so short that who wakes up need
/// not wait for one to end (`sched_setattr(2)`). Whether its slices are: Linux before 6.12 knows of
/// the weight only.
///
/// # Errors
/// The kernel's. The thread is then as it was.
pub fn come_after(nice: i32) -> io::Result<bool> {
    /// The first version of `struct sched_attr`, in linux/sched/types.h.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        slice_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    let size = size_of::<Attributes>() as u32;
    let wanted = Attributes {
        size,
        policy: libc::SCHED_OTHER as u32,
        nice,
        // The shortest there is.
        slice_ns: 100_000,
        ..Attributes::default()
    };
    let mut had = Attributes::default();
    // SAFETY: both live until the calls return, and are as long as the kernel is told. The calls
    // change when the calling thread runs, and say so; nothing else.
    let result = unsafe {
        match libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) {
            0 => libc::syscall(libc::SYS_sched_getattr, 0, &raw mut had, size, 0),
            failed => failed,
        }
    };
    match result {
        0 => Ok(had.slice_ns == wanted.slice_ns),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "a call that Miri does not know")]
    fn who_comes_after_others_has_less_weight() {
        let thread = std::thread::spawn(|| {
            come_after(19).expect("a lower priority is always allowed");
            rustix::process::getpriority_process(None).expect("it has one")
        });
        assert_eq!(thread.join().expect("it does not panic"), 19);
    }

    #[test]
    fn it_is_under_way_until_the_last_one_ends() {
        assert!(!Computing::is_under_way());
        let (one, other) = (Computing::begin(), Computing::begin());
        drop(one);
        assert!(Computing::is_under_way());
        drop(other);
        assert!(!Computing::is_under_way());
    }
}
