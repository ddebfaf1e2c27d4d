//! The ways to try a spinlock's word, and the loop around them.
//!
//! ```text
//! word: 0 (free) ──a try that succeeds (Acquire)──▶ 1 (held) ──store (Release)──▶ 0
//! ```
//!
//! | form | first try | every further try | what a waiter does to the line |
//! |---|---|---|---|
//! | [`Tas`] | swap | swap | takes it for writing each time, from the holder too |
//! | [`Ttas`] | swap | load, and swap if it is free | shares it until it is worth taking |
//! | [`Cas`] | compare-and-swap | compare-and-swap | x86: as a swap; LL/SC: writes only if it is free |
//!
//! All forms keep the same word, so that they differ in nothing else.

use super::back_off::BackOff;
use crate::atomic::{AtomicU32, Ordering};
use crate::lab::{self, SpinForm};

pub(crate) const FREE: u32 = 0;
pub(crate) const HELD: u32 = 1;

/// A way to take a spinlock's word.
pub trait RawSpin: 'static {
    /// As `lab_spinlock` spells it.
    const NAME: &'static str;

    /// Takes the lock if it is free. On success, what the last holder wrote is seen.
    fn try_lock(word: &AtomicU32) -> bool;

    /// As `try_lock`, for one who has tried in vain before.
    #[inline]
    fn try_again(word: &AtomicU32) -> bool {
        Self::try_lock(word)
    }

    /// Gives the lock back; the caller holds it.
    #[inline]
    fn unlock(word: &AtomicU32) {
        // Release: everything done under the lock is seen by the next holder.
        word.store(FREE, Ordering::Release);
    }
}

/// Takes the lock, as long as it takes.
#[inline]
pub fn lock<R: RawSpin, B: BackOff>(word: &AtomicU32) {
    if !R::try_lock(word) {
        lock_contended::<R, B>(word);
    }
}

/// The wait after a first try in vain.
#[cold]
pub(crate) fn lock_contended<R: RawSpin, B: BackOff>(word: &AtomicU32) {
    let mut back_off = B::begin();
    loop {
        back_off.pause();
        if R::try_again(word) {
            break;
        }
    }
    back_off.end();
}

/// Test-and-set, each time: what `s_lock.h` had for ARM before the case of Greenplum on Kunpeng.
#[derive(Debug)]
pub struct Tas;

impl RawSpin for Tas {
    const NAME: &'static str = "tas";

    #[inline]
    fn try_lock(word: &AtomicU32) -> bool {
        // In a model each swap in vain would be one more value to read, without end: there it is
        // left out, as what it writes is there already.
        if cfg!(loom) {
            return Cas::try_lock(word);
        }
        // Acquire: what the last holder wrote is seen before anything read under the lock.
        word.swap(HELD, Ordering::Acquire) == FREE
    }
}

/// Test, then test-and-set: `TAS_SPIN` of PostgreSQL's `s_lock.h` on x86-64.
#[derive(Debug)]
pub struct Ttas;

impl RawSpin for Ttas {
    const NAME: &'static str = "ttas";

    #[inline]
    fn try_lock(word: &AtomicU32) -> bool {
        Tas::try_lock(word)
    }
    #[inline]
    fn try_again(word: &AtomicU32) -> bool {
        // In a model the test may answer from the past for ever: there it is made, and not
        // believed.
        (word.load(Ordering::Relaxed) == FREE || cfg!(loom)) && Tas::try_lock(word)
    }
}

/// Compare-and-swap.
#[derive(Debug)]
pub struct Cas;

impl RawSpin for Cas {
    const NAME: &'static str = "cas";

    #[inline]
    fn try_lock(word: &AtomicU32) -> bool {
        // Acquire: as in `Tas`.
        word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
}

/// The form that `lab_spinlock` names.
#[derive(Debug)]
pub struct ChosenSpin;

impl RawSpin for ChosenSpin {
    const NAME: &'static str = "chosen";

    #[inline]
    fn try_lock(word: &AtomicU32) -> bool {
        if lab::spin_is_default() {
            Ttas::try_lock(word)
        } else {
            first_try(word)
        }
    }
    #[inline]
    fn try_again(word: &AtomicU32) -> bool {
        if lab::spin_is_default() {
            Ttas::try_again(word)
        } else {
            further_try(word)
        }
    }
}

macro_rules! by_form {
    ($method:ident($word:expr)) => {
        match lab::spin() {
            SpinForm::Ttas => Ttas::$method($word),
            SpinForm::Tas => Tas::$method($word),
            SpinForm::Cas => Cas::$method($word),
            #[cfg(all(target_arch = "aarch64", not(any(loom, shuttle, miri))))]
            SpinForm::LlscFull => super::aarch64::LlscFull::$method($word),
            #[cfg(all(target_arch = "aarch64", not(any(loom, shuttle, miri))))]
            SpinForm::Llsc => super::aarch64::Llsc::$method($word),
            #[cfg(all(target_arch = "aarch64", not(any(loom, shuttle, miri))))]
            SpinForm::Lse => super::aarch64::Lse::$method($word),
            #[cfg(not(all(target_arch = "aarch64", not(any(loom, shuttle, miri)))))]
            SpinForm::LlscFull | SpinForm::Llsc | SpinForm::Lse => {
                unreachable!("select refuses what this machine cannot run")
            }
        }
    };
}

#[cold]
fn first_try(word: &AtomicU32) -> bool {
    by_form!(try_lock(word))
}

#[cold]
fn further_try(word: &AtomicU32) -> bool {
    by_form!(try_again(word))
}
