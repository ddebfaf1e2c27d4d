//! Computations of one value that take long: they look up now and then.
//!
//! A function on the way through much work calls [`poll`], and one that is about to do much asks
//! [`expect`]. What comes of it depends on where the function runs:
//!
//! | thread | what is told | why |
//! | --- | --- | --- |
//! | an event loop, within [`bounded`] | an error, once the work takes longer than [`TURN`] | the value is computed anew on another thread, and others have the core meanwhile |
//! | one that computes for a session, within [`until`] | an error, once nobody waits for the value any longer | a cancel or a timeout ends it |
//! | any, within [`briefly`] | an error, once the work takes longer than [`TURN`] | the value is computed when it is needed |
//! | any other | nothing | |
//!
//! The error goes up as any other does. It is never the value's: [`bounded`] and [`briefly`] tell
//! their caller that the work was broken off, whatever became of the error on its way.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::state;
use crate::{Datum, Error, Result};

/// How long a value may be computed on an event loop.
pub const TURN: Duration = Duration::from_millis(2);

/// Polls between two looks at the clock.
const STRIDE: u32 = 64;

/// Work, in bytes touched or the like, that is not begun on an event loop.
pub const MUCH: usize = 1 << 20;

/// Whether most work on a value is longer than an event loop should be held.
#[inline]
fn is_long(value: &Datum) -> bool {
    /// Bytes of a text or the like.
    const LONG: usize = 64 << 10;
    match value {
        Datum::Text(text) | Datum::Json(text) => text.len() > LONG,
        Datum::Bytea(bytes) => bytes.len() > LONG,
        Datum::Base(value) => value.bytes.len() > LONG,
        Datum::Jsonb(json) => json.as_bytes().len() > LONG,
        Datum::Numeric(number) => number.is_wide(),
        Datum::Array(_) | Datum::Record(_) => holds_much(value, NESTED),
        _ => false,
    }
}

/// Records and arrays inside each other that are looked into; deeper ones are taken for long.
const NESTED: u32 = 8;

/// Whether an array or a record has many items, or a long one.
fn holds_much(value: &Datum, levels: u32) -> bool {
    /// Items of an array.
    const MANY: usize = 4_096;
    /// Those of them that are looked at: where one is long, most are.
    const LOOKED_AT: usize = 64;
    let items = match value {
        Datum::Array(array) if array.items.len() > MANY => return true,
        Datum::Array(array) => &array.items[..array.items.len().min(LOOKED_AT)],
        Datum::Record(record) => &record.values[..],
        _ => return is_long(value),
    };
    levels == 0 || items.iter().any(|item| holds_much(item, levels - 1))
}

/// Whether most work on these values is longer than a turn.
#[inline]
pub fn are_long(args: &[Datum]) -> bool {
    args.iter().any(is_long)
}

/// Whether a call with these arguments is for another thread than this one.
#[inline]
pub fn is_for_another_thread(args: &[Datum]) -> bool {
    are_long(args) && is_shared()
}

/// Whether others may wait for this thread, which nothing bounds.
#[inline]
pub fn is_shared() -> bool {
    MODE.get() == Mode::Free
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Free,
    Bounded,
    /// Bounded, and longer than that.
    Broken,
    Until,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Free) };
    static LEFT: Cell<u32> = const { Cell::new(STRIDE) };
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Work that takes time was done since [`has_taken_time`] was asked last.
    static TOOK_TIME: Cell<bool> = const { Cell::new(false) };
    static UNWANTED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Looks up: to be called for every few hundred nanoseconds of work.
#[inline]
pub fn poll() -> Result<()> {
    if MODE.get() == Mode::Free {
        return Ok(());
    }
    let left = LEFT.get();
    LEFT.set(left.wrapping_sub(1));
    match left {
        0 => look(),
        _ => Ok(()),
    }
}

/// Looks up at once: to be called for every some hundred microseconds of work.
#[cold]
pub fn look() -> Result<()> {
    LEFT.set(STRIDE);
    TOOK_TIME.set(true);
    let over = match MODE.get() {
        Mode::Free => false,
        Mode::Broken => true,
        Mode::Bounded => match BEGAN.get() {
            None => {
                BEGAN.set(Some(Instant::now()));
                false
            }
            Some(began) => began.elapsed() > TURN,
        },
        Mode::Until => UNWANTED.with_borrow(|unwanted| {
            let is_set = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
            unwanted.as_ref().is_some_and(is_set)
        }),
    };
    match over {
        false => Ok(()),
        true => Err(broken_off()),
    }
}

/// Whether the values that were computed since this was last asked took their time: some tens of
/// microseconds at least.
#[inline]
pub fn has_taken_time() -> bool {
    TOOK_TIME.take()
}

/// Says that so much work is to come.
#[inline]
pub fn expect(work: usize) -> Result<()> {
    /// Some tens of microseconds.
    const SOME: usize = MUCH / 32;
    if work > SOME {
        TOOK_TIME.set(true);
    }
    match work > MUCH && MODE.get() == Mode::Bounded {
        false => Ok(()),
        true => Err(broken_off()),
    }
}

/// Says that a value's text is to be written. Where that takes long on an event loop the work is
/// broken off, whatever is written instead.
#[inline]
pub fn expect_text(value: &Datum) -> Result<()> {
    match is_long(value) {
        false => Ok(()),
        true => expect(usize::MAX),
    }
}

#[cold]
fn broken_off() -> Error {
    if MODE.get() == Mode::Bounded {
        MODE.set(Mode::Broken);
    }
    Error::new(
        state::QUERY_CANCELED,
        "canceling statement due to user request",
    )
}

/// Runs `f` on an event loop; None where it was broken off because it takes too long there.
#[inline]
pub fn bounded<T>(f: impl FnOnce() -> T) -> Option<T> {
    match MODE.get() {
        Mode::Free => for_a_turn(f, Before(Mode::Free, None)),
        _ => Some(f()),
    }
}

/// Runs `f` on any thread; None where it was broken off because it takes longer than a turn.
pub fn briefly<T>(f: impl FnOnce() -> T) -> Option<T> {
    for_a_turn(f, Before(MODE.get(), BEGAN.take()))
}

#[inline]
fn for_a_turn<T>(f: impl FnOnce() -> T, before: Before) -> Option<T> {
    MODE.set(Mode::Bounded);
    let value = f();
    let broken = MODE.get() == Mode::Broken;
    drop(before);
    match broken {
        false => Some(value),
        true => None,
    }
}

/// What is told to this thread once this is dropped, by a panic too.
struct Before(Mode, Option<Instant>);

impl Drop for Before {
    #[inline]
    fn drop(&mut self) {
        MODE.set(self.0);
        BEGAN.set(self.1);
    }
}

/// Runs `f` on a thread of its own, until `unwanted` is set.
pub fn until<T>(unwanted: &Arc<AtomicBool>, f: impl FnOnce() -> T) -> T {
    UNWANTED.with_borrow_mut(|kept| *kept = Some(unwanted.clone()));
    let before = Before(Mode::Free, None);
    MODE.set(Mode::Until);
    let value = f();
    drop(before);
    UNWANTED.with_borrow_mut(|kept| *kept = None);
    value
}

/// This thread serves nobody else: what takes long is computed here, to its end.
pub fn take_your_time() {
    MODE.set(Mode::Until);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forever() -> Result<()> {
        loop {
            poll()?;
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_loop_is_held_for_a_turn_only() {
        let began = Instant::now();
        // An error that is swallowed changes nothing.
        assert!(bounded(|| forever().is_ok()).is_none());
        assert!(began.elapsed() >= TURN);
        assert_eq!(bounded(|| 7), Some(7));
        assert!(bounded(|| expect(MUCH + 1).is_ok()).is_none());
        assert!(expect(MUCH + 1).is_ok(), "nobody waits here");
    }

    #[test]
    fn what_holds_a_long_value_is_long() {
        let record = |value: Datum| {
            Datum::Record(Arc::new(crate::Record {
                types: [crate::oid::INT4, crate::oid::TEXT].into(),
                names: None,
                values: vec![Datum::Int4(1), value],
            }))
        };
        let text = |len| Datum::from("x".repeat(len));
        assert!(!are_long(&[record(text(1000))]));
        assert!(are_long(&[Datum::Null, record(text(100_000))]));
        assert!(are_long(&[record(record(text(100_000)))]));
        let nested = (0..20).fold(text(1), |inner, _| record(inner));
        assert!(are_long(&[nested]), "nobody looks so deep");
    }

    #[test]
    fn work_that_polls_is_known_to_take_time() {
        has_taken_time();
        bounded(|| poll().is_ok());
        assert!(!has_taken_time());
        bounded(|| expect(MUCH / 2).is_ok());
        assert!(has_taken_time());
        for _ in 0..STRIDE + 1 {
            bounded(|| poll().is_ok());
        }
        assert!(has_taken_time());
        assert!(!has_taken_time());
    }

    #[test]
    fn what_is_broken_off_within_goes_no_further() {
        assert_eq!(bounded(|| briefly(forever).is_none()), Some(true));
        assert_eq!(
            bounded(|| briefly(|| expect(MUCH + 1)).is_none()),
            Some(true)
        );
        let never = Arc::new(AtomicBool::new(false));
        assert!(until(&never, || briefly(forever).is_none() && poll().is_ok()));
        assert!(until(&never, || bounded(|| expect(MUCH + 1).is_ok()).is_some()));
    }

    #[test]
    fn nobody_waits_any_longer() {
        let unwanted = Arc::new(AtomicBool::new(false));
        let set = unwanted.clone();
        let setter = std::thread::spawn(move || set.store(true, Ordering::Relaxed));
        assert!(until(&unwanted, forever).is_err());
        setter.join().unwrap();
        assert!(poll().is_ok());
    }
}
