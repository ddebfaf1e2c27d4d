//! Rows of a cursor that are kept, so that it can go back among them or outlive its transaction.

use std::borrow::Cow;

use throng_sql::command::FetchDirection;
use throng_sync::Pooled;

use super::query::Run;
use crate::run::Row;

pub(super) struct Stored {
    pub rows: Vec<Row>,
    /// The current row, counting from 1; 0 is before the first.
    pub at: usize,
    pub tag: Option<Cow<'static, str>>,
    /// Rows that were given before the first of these, and are not kept.
    pub before: u64,
    /// Gives the rows after these; none where these are all.
    pub rest: Option<Pooled<Run>>,
}

impl Stored {
    pub fn of(rows: Vec<Row>) -> Stored {
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
    pub fn picked(&mut self, direction: FetchDirection) -> Vec<Row> {
        let count = self.rows.len();
        // Rows are numbered from 1; 0 is before the first, count + 1 after the last.
        let to = |n: i128| n.clamp(0, count as i128 + 1) as usize;
        let at = self.at as i128;
        let one = |target: usize, rows: &[Row]| match target {
            0 => Vec::new(),
            n => rows.get(n - 1).cloned().into_iter().collect(),
        };
        match direction {
            FetchDirection::Forward(n) | FetchDirection::Backward(n) if n == 0 => {
                one(self.at, &self.rows)
            }
            FetchDirection::Forward(n) | FetchDirection::Backward(n) => {
                let forward = matches!(direction, FetchDirection::Forward(_)) == (n > 0);
                let n = i128::from(n.unsigned_abs());
                if forward {
                    let end = to(at + n);
                    let from = self.at.min(count);
                    self.at = end;
                    self.rows[from..end.min(count).max(from)].to_vec()
                } else {
                    let start = to(at - n);
                    let until = self.at.saturating_sub(1).min(count);
                    self.at = start;
                    let mut rows = self.rows[start.saturating_sub(1).min(until)..until].to_vec();
                    rows.reverse();
                    rows
                }
            }
            FetchDirection::Relative(n) => {
                self.at = to(at + i128::from(n));
                one(self.at, &self.rows)
            }
            FetchDirection::Absolute(n) => {
                self.at = match n < 0 {
                    true => to(count as i128 + 1 + i128::from(n)),
                    false => to(n.into()),
                };
                one(self.at, &self.rows)
            }
        }
    }
}
