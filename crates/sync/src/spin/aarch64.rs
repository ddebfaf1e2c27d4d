//! The forms of the case of Greenplum on Kunpeng, instruction by instruction: what the compiler
//! makes of an atomic depends on its version and flags, and the difference between these is what
//! the case is about.
//!
//! | form | instructions | what it is |
//! |---|---|---|
//! | [`LlscFull`] | `ldxr`, `stxr`, `dmb ish` | test-and-set as the case found it: a write and a full barrier on every try |
//! | [`Llsc`] | `ldaxr`, compare, `stlxr` | what replaced it: nothing is written unless the lock is free, no barrier but the two |
//! | [`Lse`] | `swpa` | one instruction of the large system extensions (ARMv8.1); the case measured it as slower |

use std::arch::asm;

use super::raw::{FREE, HELD, RawSpin};
use crate::atomic::{AtomicU32, Ordering};

/// Exclusive load and store with a full barrier after.
#[derive(Debug)]
pub struct LlscFull;

impl RawSpin for LlscFull {
    const NAME: &'static str = "llsc_full";

    #[inline]
    fn try_lock(word: &AtomicU32) -> bool {
        let old: u32;
        // SAFETY: the pointer is to a live, aligned word that is only used atomically; the two
        // instructions read and write it and nothing else, and touch no stack and no flags. The
        // barrier keeps what follows behind the store, as Acquire asks; memory is not declared
        // untouched, so the compiler keeps its accesses on their side, too.
        unsafe {
            asm!(
                "2: ldxr {old:w}, [{word}]",
                "stxr {failed:w}, {held:w}, [{word}]",
                "cbnz {failed:w}, 2b",
                "dmb ish",
                word = in(reg) word.as_ptr(),
                held = in(reg) HELD,
                old = out(reg) old,
                failed = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
        old == FREE
    }
}

/// Compare first; exclusive load with acquire, exclusive store with release.
#[derive(Debug)]
pub struct Llsc;

impl RawSpin for Llsc {
    const NAME: &'static str = "llsc";

    #[inline]
    fn try_lock(word: &AtomicU32) -> bool {
        let old: u32;
        // SAFETY: as in `LlscFull`; the load acquires, so what follows stays behind it. A
        // reservation that is left when the lock is held is cleared.
        unsafe {
            asm!(
                "2: ldaxr {old:w}, [{word}]",
                "cbnz {old:w}, 3f",
                "stlxr {failed:w}, {held:w}, [{word}]",
                "cbnz {failed:w}, 2b",
                "b 4f",
                "3: clrex",
                "4:",
                word = in(reg) word.as_ptr(),
                held = in(reg) HELD,
                old = out(reg) old,
                failed = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
        old == FREE
    }
}

/// Swap in one instruction, tested first by those who wait.
#[derive(Debug)]
pub struct Lse;

impl RawSpin for Lse {
    const NAME: &'static str = "lse";

    #[inline]
    fn try_lock(word: &AtomicU32) -> bool {
        let old: u32;
        // SAFETY: as in `LlscFull`; the swap acquires. That the processor has the instruction is
        // made sure of where the form is chosen (`SpinForm::is_available`).
        unsafe {
            asm!(
                ".arch_extension lse",
                "swpa {held:w}, {old:w}, [{word}]",
                word = in(reg) word.as_ptr(),
                held = in(reg) HELD,
                old = out(reg) old,
                options(nostack, preserves_flags),
            );
        }
        old == FREE
    }
    #[inline]
    fn try_again(word: &AtomicU32) -> bool {
        word.load(Ordering::Relaxed) == FREE && Lse::try_lock(word)
    }
}
