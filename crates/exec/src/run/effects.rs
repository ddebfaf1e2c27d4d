//! What a function has done that must not be done twice when its row is evaluated again.
//!
//! An expression that stops (see [`crate::run`]) is evaluated again from its start. A function that
//! had an effect before the stop finds here that it had it:
//!
//! ```text
//! pg_sleep(1), pg_sleep(2)   log: [until 1]                    stop, wait
//! again                      1 is over, [until 1, until 3]     stop, wait
//! again                      1 is over, 3 is over              the row is done: the log is emptied
//! ```

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use throng_txn::{LockMode, LockScope, LockTag};
use throng_types::{Datum, Oid};

use crate::offload::{Callee, Outcome};
use crate::run::routine::{CallPlace, CallResult};

/// One effect.
#[derive(Clone)]
pub enum Effect {
    Sleep {
        until: Instant,
    },
    /// `granted` is set by the wait, or at once.
    Lock {
        tag: LockTag,
        mode: LockMode,
        scope: LockScope,
        granted: Arc<AtomicBool>,
    },
    /// A user's function was run.
    Called {
        routine: Oid,
        args: Arc<[Datum]>,
        /// None where it is strict and an argument was NULL.
        result: Option<Arc<CallResult>>,
        /// Where its arguments began, if they may be others when they are computed again.
        place: Option<CallPlace>,
    },
    /// A volatile subquery was begun, by its number among the plan's.
    Began {
        subplan: u32,
    },
    /// A value was computed by another thread.
    Computed {
        callee: Callee,
        args: Arc<[Datum]>,
        value: Outcome,
        /// Where its arguments began, if they may be others when they are computed again.
        place: Option<CallPlace>,
    },
}

/// The effects of the evaluation in hand, in order.
#[derive(Default)]
pub struct Effects {
    log: RefCell<Vec<Effect>>,
    at: Cell<usize>,
    /// Where the innermost subquery's effects begin; those before are of the expression around it.
    base: Cell<usize>,
}

/// The effects of a statement that waits for another one.
pub struct Suspended {
    log: Vec<Effect>,
    at: usize,
    base: usize,
}

impl Effects {
    /// The evaluation begins again.
    pub fn again(&self) {
        self.at.set(0);
        self.base.set(0);
    }

    /// A statement begins: nothing has been done.
    pub fn clear(&self) {
        self.again();
        self.log.borrow_mut().clear();
    }

    /// What the evaluation that stopped asked for was done; it finds it when it is done again.
    pub fn record(&self, effect: Effect) {
        let mut log = self.log.borrow_mut();
        log.truncate(self.at.get());
        log.push(effect);
    }

    /// Another statement runs while this one waits for it.
    pub fn suspend(&self) -> Suspended {
        Suspended {
            log: self.log.take(),
            at: self.at.replace(0),
            base: self.base.replace(0),
        }
    }

    pub fn resume(&self, suspended: Suspended) {
        *self.log.borrow_mut() = suspended.log;
        self.at.set(suspended.at);
        self.base.set(suspended.base);
    }

    /// A subquery begins or goes on; what is answered is for [`Effects::leave`].
    pub fn enter(&self) -> usize {
        self.base.replace(self.at.get())
    }

    pub fn leave(&self, outside: usize) {
        self.base.set(outside);
    }

    /// Whether a volatile subquery begins a run here; it goes on with the one begun if it was
    /// begun before the evaluation stopped.
    pub fn begins_run(&self, subplan: u32) -> bool {
        let at = self.at.replace(self.at.get() + 1);
        let mut log = self.log.borrow_mut();
        let begun = matches!(log.get(at), Some(Effect::Began { subplan: s }) if *s == subplan);
        if !begun {
            log.truncate(at);
            log.push(Effect::Began { subplan });
        }
        !begun
    }

    /// The evaluation is complete: what follows is another row's.
    #[inline]
    pub fn done(&self) {
        let base = self.base.get();
        if self.at.get() > base {
            self.at.set(base);
            self.log.borrow_mut().truncate(base);
        }
    }

    /// Where in the log the evaluation is.
    pub fn at(&self) -> usize {
        self.at.get()
    }

    /// What the call at this place gave, if it was answered; its arguments' effects are passed over
    /// with it.
    pub fn answer_at(&self, wanted: CallPlace) -> Option<Option<Arc<CallResult>>> {
        let log = self.log.borrow();
        let mut answers = log.iter().enumerate().skip(self.at.get());
        let (at, result) = answers.find_map(|(at, effect)| match effect {
            Effect::Called {
                result,
                place: Some(place),
                ..
            } if *place == wanted => Some((at, result.clone())),
            _ => None,
        })?;
        self.at.set(at + 1);
        Some(result)
    }

    /// Whether the evaluation has not come to all that was had.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.at.get() < self.log.borrow().len()
    }

    /// The value that was computed at this place, if it is what `fits`.
    pub fn computed(
        &self,
        fits: impl FnOnce(Callee, &[Datum], Option<CallPlace>) -> bool,
    ) -> Option<Outcome> {
        let log = self.log.borrow();
        let at = self.at.get();
        match log.get(at) {
            Some(Effect::Computed {
                callee,
                args,
                value,
                place,
            }) if fits(*callee, args, *place) => {
                self.at.set(at + 1);
                Some(value.clone())
            }
            _ => None,
        }
    }

    /// What was computed for the call at this place, if it is what `fits`; its arguments' effects
    /// are passed over with it.
    pub fn computed_at(
        &self,
        wanted: CallPlace,
        fits: impl Fn(&Outcome) -> bool,
    ) -> Option<Outcome> {
        let log = self.log.borrow();
        let mut values = log.iter().enumerate().skip(self.at.get());
        let (at, value) = values.find_map(|(at, effect)| match effect {
            Effect::Computed {
                value,
                place: Some(place),
                ..
            } if *place == wanted && fits(value) => Some((at, value.clone())),
            _ => None,
        })?;
        self.at.set(at + 1);
        Some(value)
    }

    /// The effect that was had at this place, if it fits; else `make` is had now.
    pub fn had_or<E>(
        &self,
        fits: impl FnOnce(&Effect) -> bool,
        make: impl FnOnce() -> Result<Effect, E>,
    ) -> Result<Effect, E> {
        let at = self.at.get();
        let had = self.log.borrow().get(at).filter(|e| fits(e)).cloned();
        let effect = match had {
            Some(effect) => effect,
            None => {
                let effect = make()?;
                let mut log = self.log.borrow_mut();
                log.truncate(at);
                log.push(effect.clone());
                effect
            }
        };
        self.at.set(at + 1);
        Ok(effect)
    }
}
