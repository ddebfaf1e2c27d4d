//! Which form of each structure this process runs, chosen once, before its threads start.
//!
//! The choice is one word that nobody writes afterwards, so that asking costs a test of a line
//! every core keeps, and a branch that always goes the same way; the ways not taken by default are
//! `#[cold]`. Code that wants no question at all (the lab's own loops) names the form as a type
//! parameter instead.
//!
//! ```text
//!  31 … 16 | 15 … 12 | 11 … 8 | 7 … 4    | 3 … 0
//! |   0    | pin     | latch  | back-off | spinlock |        all zero: the defaults
//! ```

use std::fmt;

/// How a spinlock is tried. See [`crate::spin`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum SpinForm {
    #[default]
    Ttas = 0,
    Tas = 1,
    Cas = 2,
    LlscFull = 3,
    Llsc = 4,
    Lse = 5,
}

/// How a spinlock's waiters pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum BackOffForm {
    #[default]
    Fixed = 0,
    Adaptive = 1,
}

/// How a latch's word is changed. See [`crate::latch::RawLatch`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum LatchForm {
    #[default]
    Cas = 0,
    Spin = 1,
    Add = 2,
}

/// How a page is pinned by who reads it. See [`crate::pin::RawPin`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum PinForm {
    /// Reads pin nothing; the pins that remain are additions.
    #[default]
    None = 0,
    Spin = 1,
    Cas = 2,
    Add = 3,
}

macro_rules! names {
    ($form:ident: $($variant:ident = $name:literal),*) => {
        impl $form {
            /// Every form, the default first, whether or not this machine has it.
            pub const ALL: &[$form] = &[$($form::$variant),*];

            /// As settings and the lab spell it.
            pub const fn name(self) -> &'static str {
                match self { $($form::$variant => $name),* }
            }

            pub fn from_name(name: &str) -> Option<$form> {
                Self::ALL.iter().copied().find(|form| form.name() == name)
            }

            fn of(bits: u32) -> $form {
                match bits { $(bits if bits == $form::$variant as u32 => $form::$variant,)* _ => unreachable!("only select writes the word") }
            }
        }

        impl std::str::FromStr for $form {
            type Err = ();
            fn from_str(name: &str) -> Result<$form, ()> {
                $form::from_name(name).ok_or(())
            }
        }
    };
}

names!(SpinForm: Ttas = "ttas", Tas = "tas", Cas = "cas", LlscFull = "llsc_full", Llsc = "llsc", Lse = "lse");
names!(BackOffForm: Fixed = "fixed", Adaptive = "adaptive");
names!(LatchForm: Cas = "cas", Spin = "spin", Add = "add");
names!(PinForm: None = "none", Spin = "spin", Cas = "cas", Add = "add");

impl SpinForm {
    /// Whether this processor can run it.
    pub fn is_available(self) -> bool {
        match self {
            SpinForm::Ttas | SpinForm::Tas | SpinForm::Cas => true,
            SpinForm::LlscFull | SpinForm::Llsc => HAS_ASSEMBLY,
            SpinForm::Lse => HAS_ASSEMBLY && has_lse(),
        }
    }
}

/// The forms written in assembly are there: not on other processors, nor where code is interpreted.
const HAS_ASSEMBLY: bool = cfg!(all(target_arch = "aarch64", not(any(loom, shuttle, miri))));

#[cfg(target_arch = "aarch64")]
fn has_lse() -> bool {
    std::arch::is_aarch64_feature_detected!("lse")
}
#[cfg(not(target_arch = "aarch64"))]
fn has_lse() -> bool {
    false
}

/// One form of each structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    pub spin: SpinForm,
    pub back_off: BackOffForm,
    pub latch: LatchForm,
    pub pin: PinForm,
}

/// Why a choice was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// This processor cannot run the form of that name.
    Unavailable(&'static str),
    /// This process has chosen otherwise before, and may be using it.
    ChosenBefore,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Unavailable(form) => {
                write!(f, "this processor cannot run the form \"{form}\"")
            }
            Refused::ChosenBefore => f.write_str("this process runs other forms already"),
        }
    }
}

impl std::error::Error for Refused {}

const SPIN: u32 = 0x000f;
const BACK_OFF: u32 = 0x00f0;
const LATCH: u32 = 0x0f00;
const PIN: u32 = 0xf000;

impl Choice {
    fn bits(self) -> u32 {
        self.spin as u32
            | (self.back_off as u32) << 4
            | (self.latch as u32) << 8
            | (self.pin as u32) << 12
    }
}

/// Chooses for the whole process. To be called before any other thread uses what is chosen; the
/// same choice may be made again.
///
/// # Errors
/// When this machine cannot run it, or another choice was made before.
pub fn select(choice: Choice) -> Result<(), Refused> {
    if !choice.spin.is_available() {
        return Err(Refused::Unavailable(choice.spin.name()));
    }
    store::select(choice.bits())
}

/// What this process runs.
pub fn chosen() -> Choice {
    Choice {
        spin: spin(),
        back_off: back_off(),
        latch: latch(),
        pin: pin(),
    }
}

#[inline(always)]
pub(crate) fn spin_is_default() -> bool {
    store::word() & SPIN == 0
}
#[inline(always)]
pub(crate) fn latch_is_default() -> bool {
    store::word() & LATCH == 0
}
pub(crate) fn spin() -> SpinForm {
    SpinForm::of(store::word() & SPIN)
}
pub(crate) fn back_off() -> BackOffForm {
    BackOffForm::of((store::word() & BACK_OFF) >> 4)
}
pub(crate) fn latch() -> LatchForm {
    LatchForm::of((store::word() & LATCH) >> 8)
}
pub(crate) fn pin() -> PinForm {
    PinForm::of((store::word() & PIN) >> 12)
}

/// Whether whoever reads a page pins it and enters its latch, as PostgreSQL's readers do: not by
/// default.
#[inline(always)]
pub fn reads_pin() -> bool {
    store::word() & PIN != 0
}

#[cfg(not(any(loom, shuttle)))]
mod store {
    use super::Refused;
    use crate::pad::CachePadded;
    use std::sync::Once;
    use std::sync::atomic::{AtomicU32, Ordering};

    static WORD: CachePadded<AtomicU32> = CachePadded::new(AtomicU32::new(0));
    static MADE: Once = Once::new();

    #[inline(always)]
    pub(super) fn word() -> u32 {
        // Relaxed: it was written before the threads that read it were started.
        WORD.load(Ordering::Relaxed)
    }

    pub(super) fn select(bits: u32) -> Result<(), Refused> {
        MADE.call_once(|| WORD.store(bits, Ordering::Relaxed));
        if word() == bits {
            Ok(())
        } else {
            Err(Refused::ChosenBefore)
        }
    }
}

/// A model's threads are coroutines of the test's own: each test chooses for itself, and again.
#[cfg(any(loom, shuttle))]
mod store {
    use super::Refused;
    use std::cell::Cell;

    thread_local! {
        static WORD: Cell<u32> = const { Cell::new(0) };
    }

    pub(super) fn word() -> u32 {
        WORD.get()
    }

    pub(super) fn select(bits: u32) -> Result<(), Refused> {
        WORD.set(bits);
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_bits_do_not_overlap() {
        for &spin in SpinForm::ALL {
            assert_eq!(SpinForm::from_name(spin.name()), Some(spin));
            for &back_off in BackOffForm::ALL {
                for &latch in LatchForm::ALL {
                    for &pin in PinForm::ALL {
                        let choice = Choice {
                            spin,
                            back_off,
                            latch,
                            pin,
                        };
                        let bits = choice.bits();
                        assert_eq!(SpinForm::of(bits & SPIN), spin);
                        assert_eq!(BackOffForm::of((bits & BACK_OFF) >> 4), back_off);
                        assert_eq!(LatchForm::of((bits & LATCH) >> 8), latch);
                        assert_eq!(PinForm::of((bits & PIN) >> 12), pin);
                    }
                }
            }
        }
        assert_eq!(SpinForm::from_name("mcs"), None);
        assert_eq!(Choice::default().bits(), 0);
    }

    #[test]
    fn the_first_choice_stays_and_no_other_is_taken() {
        // The process of these unit tests runs the defaults: what else is chosen here would race
        // with the others.
        assert_eq!(select(Choice::default()), Ok(()));
        let other = Choice {
            back_off: BackOffForm::Adaptive,
            ..Choice::default()
        };
        assert_eq!(select(other), Err(Refused::ChosenBefore));
        assert_eq!(chosen(), Choice::default());
        if cfg!(target_arch = "x86_64") {
            let arm = Choice {
                spin: SpinForm::Llsc,
                ..Choice::default()
            };
            assert_eq!(select(arm), Err(Refused::Unavailable("llsc")));
        }
    }
}
