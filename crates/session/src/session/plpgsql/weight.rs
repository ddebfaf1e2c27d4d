//! How much memory the variables of calls under way hold: a loop that doubles a string is stopped,
//! not the server.

use std::cell::Cell;
use std::rc::Rc;

use throng_types::error::state;
use throng_types::{Datum, Error, Result};

use super::Machine;
use throng_exec::run::hashed::datum_bytes;

/// What the variables of a session's calls may hold together. While a value is replaced there are
/// two of it.
const MOST_BYTES: usize = 128 << 20;
/// What takes less is not counted.
const LIGHT: usize = 256;

/// The weights of a call's variables.
pub(super) struct Weights {
    each: Vec<usize>,
    /// Of all calls of the session.
    total: Rc<Cell<usize>>,
}

impl Weights {
    pub fn new(variables: usize, total: &Rc<Cell<usize>>) -> Weights {
        Weights {
            each: vec![0; variables],
            total: total.clone(),
        }
    }
}

impl Drop for Weights {
    fn drop(&mut self) {
        let own: usize = self.each.iter().sum();
        self.total.set(self.total.get().saturating_sub(own));
    }
}

impl Machine {
    /// A variable got another value. 53200 where that is too much, 54001 for rows in rows without
    /// end; it is taken away again.
    pub(super) fn weigh(&mut self, at: usize) -> Result<()> {
        let heavy = matches!(
            self.values[at],
            Datum::Text(_)
                | Datum::Json(_)
                | Datum::Jsonb(_)
                | Datum::Bytea(_)
                | Datum::Base(_)
                | Datum::Array(_)
                | Datum::Record(_)
        );
        if let Datum::Record(record) = &self.values[at]
            && let Err(e) = throng_types::height::check(&record.values)
        {
            self.values[at] = Datum::Null;
            return Err(e);
        }
        let had = self.weights.each[at];
        if !heavy && had == 0 {
            return Ok(());
        }
        let bytes = if heavy {
            datum_bytes(&self.values[at])
        } else {
            0
        };
        let bytes = if bytes > LIGHT { bytes } else { 0 };
        let total = (self.weights.total.get() + bytes).saturating_sub(had);
        self.weights.each[at] = bytes;
        self.weights.total.set(total);
        if total <= MOST_BYTES || bytes <= had {
            return Ok(());
        }
        self.values[at] = Datum::Null;
        self.weights.total.set(total - bytes);
        self.weights.each[at] = 0;
        Err(
            Error::new(state::OUT_OF_MEMORY, "out of memory").detail(format!(
                "The variables of functions in PL/pgSQL hold more than {} MB in this session.",
                MOST_BYTES >> 20
            )),
        )
    }
}
