//! The state of a user's aggregate.
//!
//! Its functions are expressions over the state and a row's arguments ([`Transition`]). They may
//! stop, like any; a state changes only once the new one is there, so what stopped is called again.

use std::collections::VecDeque;

use throng_bind::aggregate::Transition;
use throng_types::error::state;
use throng_types::{Datum, Error};

use super::context::RowMemory;
use super::eval::eval;
use super::hashed;
use super::{Cx, Row, Step};

#[derive(Default)]
pub(super) struct OwnState {
    value: Datum,
    /// There is a state: the first one, or a row's value.
    begun: bool,
    /// How many rows are in it.
    count: u64,
    /// Arguments that were taken and are not in the state yet.
    waiting: VecDeque<Row>,
    /// The memory of the state.
    kept: RowMemory,
    bytes: usize,
}

impl OwnState {
    pub fn new(transition: &Transition) -> OwnState {
        OwnState {
            value: transition.init.clone(),
            begun: !transition.init.is_null(),
            ..OwnState::default()
        }
    }

    /// Takes arguments, for [`OwnState::drain`].
    pub fn wait(&mut self, args: Row) {
        self.waiting.push_back(args);
    }

    /// Takes in what waits. May stop, to be called again.
    pub fn drain(&mut self, transition: &Transition, cx: &mut Cx) -> Step<()> {
        while let Some(args) = self.waiting.pop_front() {
            if let Err(stop) = self.step(transition, &args, cx) {
                self.waiting.push_front(args);
                return Err(stop);
            }
            cx.evaluated();
        }
        Ok(())
    }

    /// The row that the functions are over.
    fn row(&self, behind: &[Datum]) -> Row {
        let mut row = Row::with_capacity(behind.len() + 1);
        row.push(self.value.clone());
        row.extend_from_slice(behind);
        row
    }

    /// Takes in a row's arguments. May stop, to be called again.
    pub fn step(&mut self, transition: &Transition, args: &[Datum], cx: &mut Cx) -> Step<()> {
        if transition.strict {
            if args.iter().any(Datum::is_null) {
                return Ok(());
            }
            if !self.begun {
                self.begun = true;
                let first = args.first().cloned().unwrap_or_default();
                return self.changed(first, cx);
            }
            // A state that has become NULL stays so.
            if self.value.is_null() {
                return Ok(());
            }
        }
        let value = eval(&transition.step, &self.row(args), cx)?;
        if transition.inverse.is_some() && value.is_null() {
            let message = "moving-aggregate transition function must not return null";
            return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message).into());
        }
        self.changed(value, cx)
    }

    fn changed(&mut self, value: Datum, cx: &mut Cx) -> Step<()> {
        cx.meet(&value);
        let bytes = hashed::datum_bytes(&value);
        self.kept.need(bytes.saturating_sub(self.bytes), cx)?;
        self.kept.give_back(self.bytes.saturating_sub(bytes), cx);
        (self.value, self.bytes) = (value, bytes);
        self.count += 1;
        Ok(())
    }

    /// Takes a row's arguments out again; false where that cannot be done. May stop, to be called
    /// again.
    pub fn undo(&mut self, transition: &Transition, args: &[Datum], cx: &mut Cx) -> Step<bool> {
        let Some(inverse) = &transition.inverse else {
            return Ok(false);
        };
        if transition.strict && args.iter().any(Datum::is_null) {
            return Ok(true);
        }
        // Without rows the state is what it was at first.
        if self.count <= 1 || self.value.is_null() {
            return Ok(false);
        }
        let value = eval(inverse, &self.row(args), cx)?;
        if value.is_null() {
            return Ok(false);
        }
        let count = self.count;
        self.changed(value, cx)?;
        self.count = count - 1;
        Ok(true)
    }

    /// What the state becomes. May stop, to be called again.
    pub fn finish(&self, transition: &Transition, direct: &[Datum], cx: &mut Cx) -> Step<Datum> {
        match &transition.finish {
            Some(finish) => eval(finish, &self.row(direct), cx),
            None => Ok(self.value.clone()),
        }
    }

    /// Gives back its memory.
    pub fn release(&mut self, cx: &mut Cx) {
        self.kept.release(cx);
    }
}
