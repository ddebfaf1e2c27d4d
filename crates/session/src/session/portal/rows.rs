//! Rows of a cursor that are kept, so that it can go back among them or outlive its transaction: in
//! memory, or past `work_mem` in a temporary file.

use std::borrow::Cow;
use std::ops::Range;

use throng_bind::command::FetchDirection;
use throng_sync::Pooled;
use throng_types::{Datum, Result};

use crate::session::statement::query::Run;
use throng_exec::spill::RowStore;

pub(in crate::session) struct Stored {
    pub rows: RowStore,
    /// The current row, counting from 1; 0 is before the first.
    pub at: usize,
    pub tag: Option<Cow<'static, str>>,
    /// Rows that were given before the first of these, and are not kept.
    pub before: u64,
    /// Gives the rows after these; none where these are all.
    pub rest: Option<Pooled<Run>>,
}

impl Stored {
    pub fn of(rows: RowStore) -> Stored {
        Stored {
            rows,
            at: 0,
            tag: None,
            before: 0,
            rest: None,
        }
    }

    /// How many rows have to be there before a direction is followed.
    pub fn needed(&self, direction: FetchDirection) -> usize {
        let on = |n: i64| match usize::try_from(n) {
            Ok(n) => self.at.saturating_add(n),
            Err(_) => 0,
        };
        match direction {
            FetchDirection::Forward(n) | FetchDirection::Relative(n) => on(n),
            FetchDirection::Backward(n) => on(n.saturating_neg()),
            FetchDirection::Absolute(n) => usize::try_from(n).unwrap_or(usize::MAX),
        }
    }

    /// The rows a direction names, the position moved accordingly.
    pub fn picked(&mut self, direction: FetchDirection) -> Picked {
        let count = self.rows.len();
        // Rows are numbered from 1; 0 is before the first, count + 1 after the last.
        let to = |n: i128| n.clamp(0, count as i128 + 1) as usize;
        let at = self.at as i128;
        let one = |target: usize| match target {
            0 => Picked::default(),
            n => Picked::forward(n - 1..n.min(count)),
        };
        match direction {
            FetchDirection::Forward(n) | FetchDirection::Backward(n) if n == 0 => one(self.at),
            FetchDirection::Forward(n) | FetchDirection::Backward(n) => {
                let forward = matches!(direction, FetchDirection::Forward(_)) == (n > 0);
                let n = i128::from(n.unsigned_abs());
                if forward {
                    let end = to(at + n);
                    let from = self.at.min(count);
                    self.at = end;
                    Picked::forward(from..end.min(count))
                } else {
                    let start = to(at - n);
                    let until = self.at.saturating_sub(1).min(count);
                    self.at = start;
                    Picked {
                        rows: start.saturating_sub(1).min(until)..until,
                        backward: true,
                    }
                }
            }
            FetchDirection::Relative(n) => {
                self.at = to(at + i128::from(n));
                one(self.at)
            }
            FetchDirection::Absolute(n) => {
                self.at = match n < 0 {
                    true => to(count as i128 + 1 + i128::from(n)),
                    false => to(n.into()),
                };
                one(self.at)
            }
        }
    }

    /// The row it stands on, if it does.
    ///
    /// # Errors
    /// 58030 from the file system.
    pub fn current(&mut self) -> Result<Option<&[Datum]>> {
        match self.at.checked_sub(1) {
            Some(number) => self.rows.get(number),
            None => Ok(None),
        }
    }
}

/// Rows that are to be given, by their numbers from 0.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Picked {
    rows: Range<usize>,
    /// The last one first.
    backward: bool,
}

impl Picked {
    pub fn forward(rows: Range<usize>) -> Picked {
        Picked {
            rows,
            backward: false,
        }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }
}

impl Iterator for Picked {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        match self.backward {
            false => self.rows.next(),
            true => self.rows.next_back(),
        }
    }
}
