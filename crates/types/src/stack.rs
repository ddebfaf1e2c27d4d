//! What is left of the calling thread's stack.
//!
//! Trees that a client decides the depth of are walked recursively. Whoever goes a level deeper on
//! a client's word asks [`check`] first, and gives 54001 where the stack comes to its end, as
//! PostgreSQL does. The threads that run statements have [`SIZE`] bytes, of which only what was
//! touched takes memory; any other thread's size is asked of the system.
//!
//! ```text
//! top                                            floor                bottom
//!  ├── recursion: check() lets it go deeper ──────┤── kept for what ────┤
//!                                                    does not ask: leaf
//!                                                    functions, walks, drops
//! ```
//! A walk that cannot fail (a clone, a comparison, a drop) does not ask. It goes over a tree that
//! somebody made who asked, with frames that are smaller than the maker's, and so ends above where
//! the maker ended.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::error::state;
use crate::{Error, Result};

/// Bytes of stack of a thread that reads, plans or runs statements: for some thousands of levels in
/// a build without optimisation. It is address space, and memory only where a statement went that
/// deep.
pub const SIZE: usize = 256 << 20;

/// The part that is kept for what does not ask.
const KEPT: usize = 4;

/// Bytes of what is kept that one level of a tree takes when it is dropped, at most.
const DROPPED: usize = 1 << 10;

/// Recursion that goes no deeper leaves the stack as it is; what is deeper is [given
/// back](give_back).
const SHALLOW: usize = 8 << 20;

/// For so long a deep stack is taken to be in use.
const IN_USE: Duration = Duration::from_secs(1);

/// How much deeper recursion goes before it is noted again.
const NOTED: usize = 1 << 20;

/// A page, and what the caller of a call may have below itself.
const RED_ZONE: usize = 64 << 10;

/// A thread's stack.
#[derive(Clone, Copy)]
struct Bounds {
    bottom: usize,
    size: usize,
}

impl Bounds {
    /// The address that recursion may come down to.
    fn floor(self) -> usize {
        self.bottom + self.size / KEPT
    }
    /// The address below which recursion is deep.
    fn shallow(self) -> usize {
        (self.bottom + self.size)
            .saturating_sub(SHALLOW)
            .max(self.floor())
    }
}

thread_local! {
    /// The address below which there is something to note; all ones before the stack is known.
    static MARK: Cell<usize> = const { Cell::new(usize::MAX) };
    static BOUNDS: Cell<Option<Bounds>> = const { Cell::new(None) };
    /// When recursion was last seen to have been deep, of what was not given back yet.
    static DEEP: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// 54001 where the stack comes to its end.
#[inline]
pub fn check() -> Result<()> {
    match is_low() {
        false => Ok(()),
        true => Err(exceeded()),
    }
}

/// Whether to go no deeper.
#[inline]
pub fn is_low() -> bool {
    let here = here();
    here < MARK.get() && is_below_floor(here)
}

/// Links of a chain that is read by a loop but makes a tree as deep as it is long, `1 + 1 + 1 + …`:
/// so many can be dropped within what is kept.
pub fn longest_chain() -> usize {
    this_stack().size / KEPT / DROPPED
}

#[inline(always)]
fn here() -> usize {
    let mark = 0u8;
    std::ptr::from_ref(std::hint::black_box(&mark)).addr()
}

#[cold]
fn is_below_floor(here: usize) -> bool {
    let bounds = this_stack();
    let known = MARK.get() != usize::MAX;
    let mark = match known {
        false => bounds.shallow(),
        true => here.saturating_sub(NOTED).max(bounds.floor()),
    };
    if !known || here >= bounds.floor() {
        MARK.set(mark);
    }
    here < bounds.floor()
}

/// Gives the memory back that deep recursion has left below, once none has been as deep for
/// [`IN_USE`]: a statement that goes as deep with each turn would have all of it brought anew each
/// time. To be called where a thread has nothing to do.
#[inline]
pub fn give_back() {
    if let Some(bounds) = BOUNDS.get()
        && (MARK.get() < bounds.shallow() || DEEP.get().is_some())
    {
        give_back_unused(bounds, IN_USE);
    }
}

#[cold]
fn give_back_unused(bounds: Bounds, in_use: Duration) {
    let now = Instant::now();
    if MARK.get() < bounds.shallow() {
        // From here on it is seen whether recursion is deep again.
        MARK.set(bounds.shallow());
        DEEP.set(Some(now));
    }
    if DEEP.get().is_some_and(|deep| now - deep >= in_use) {
        DEEP.set(None);
        give_back_below(bounds, here());
    }
}

#[cold]
fn give_back_below(bounds: Bounds, here: usize) {
    let page = RED_ZONE;
    let from = bounds.bottom.next_multiple_of(page);
    let to = here.saturating_sub(RED_ZONE) / page * page;
    if from < to {
        let from = std::ptr::without_provenance_mut(from);
        // SAFETY: the range lies within this thread's stack and below all that this call and its
        // callers have there, with a red zone between: nothing lives in it. Its pages read as zeros
        // when they are next touched.
        unsafe { libc::madvise(from, to - from.addr(), libc::MADV_DONTNEED) };
    }
}

/// What a thread is taken to have that does not tell.
const UNKNOWN: usize = 1 << 20;

fn this_stack() -> Bounds {
    if let Some(bounds) = BOUNDS.get() {
        return bounds;
    }
    let bounds = asked().unwrap_or(Bounds {
        bottom: here().saturating_sub(UNKNOWN),
        size: UNKNOWN,
    });
    BOUNDS.set(Some(bounds));
    bounds
}

/// The lowest address of this thread's stack, and its size, as the system has them.
fn asked() -> Option<Bounds> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the thread is this one, which is alive; the call initialises the attributes where it
    // gives 0.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut bottom, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes were initialised above and are destroyed once, after the last use.
    let known = unsafe {
        let known = libc::pthread_attr_getstack(attributes.as_ptr(), &mut bottom, &mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        known
    };
    let bottom = bottom.addr();
    (known == 0).then_some(Bounds { bottom, size })
}

/// 54001
#[cold]
pub fn exceeded() -> Error {
    Error::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").hint(format!(
        "Statements nest as deep as {} MB of stack allow.",
        (SIZE - SIZE / KEPT) >> 20
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn levels() -> u32 {
        let level = std::hint::black_box([0u8; 100]);
        match check() {
            Ok(()) => levels() + u32::from(level[0]) + 1,
            Err(e) => {
                assert_eq!(e.code(), state::STATEMENT_TOO_COMPLEX);
                0
            }
        }
    }

    /// Resident memory is the process's: one test at a time goes deep.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn recursion_ends_before_the_stack_does() {
        let _alone = ALONE.lock().unwrap();
        let on = |size| {
            let thread = std::thread::Builder::new().stack_size(size);
            thread.spawn(levels).unwrap().join().unwrap()
        };
        // The C library may give a thread a larger stack than it asks for, which another one has
        // left.
        let (small, large) = (on(1 << 20), on(128 << 20));
        assert!(small > 500 && large > 6 * small, "{small} {large}");
    }
    #[test]
    fn what_deep_recursion_leaves_is_given_back() {
        let _alone = ALONE.lock().unwrap();
        let resident = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
            let kb = line.split_whitespace().nth(1).unwrap();
            kb.parse::<usize>().unwrap() << 10
        };
        let run = move || {
            let before = resident();
            let deep = levels();
            let left = resident();
            give_back();
            // It may be as deep with the next turn.
            let kept = resident();
            assert_eq!(levels(), deep, "as deep as before");
            give_back_unused(this_stack(), Duration::ZERO);
            let after = resident();
            assert_eq!(levels(), deep, "as deep as before");
            (before, left, kept, after)
        };
        let thread = std::thread::Builder::new().stack_size(SIZE / 4);
        let (before, left, kept, after) = thread.spawn(run).unwrap().join().unwrap();
        assert!(left > before + (SIZE / 8), "{before} {left}");
        assert!(kept > before + (SIZE / 8), "{before} {kept}");
        assert!(after + SIZE / 8 < left, "{left} {after}");
    }
}
