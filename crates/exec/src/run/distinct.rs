//! DISTINCT and DISTINCT ON: the first row of each key.

use throng_sql::expr::Expr;

use super::context::Kept;
use super::hashed::{self, Key, RowTable};
use super::{BoxOperator, Cx, Operator, Row, Step};

pub struct Distinct {
    input: BoxOperator,
    keys: &'static [Expr],
    /// Rows of one key come together: only the last key need be remembered.
    sorted: bool,
    seen: RowTable,
    last: Option<Key>,
    key: Key,
    pending: Row,
    have_pending: bool,
    kept: Kept,
}

impl Distinct {
    pub fn new(input: BoxOperator, keys: &'static [Expr], sorted: bool) -> Distinct {
        Distinct {
            input,
            keys,
            sorted,
            seen: RowTable::default(),
            last: None,
            key: Key::default(),
            pending: Row::new(),
            have_pending: false,
            kept: Kept::default(),
        }
    }

    /// Notes the current key; false if it was seen before.
    fn first_of_its_key(&mut self, cx: &mut Cx) -> Step<bool> {
        if self.sorted {
            let new = self.last.as_ref() != Some(&self.key);
            if new {
                self.last = Some(self.key.clone());
            }
            return Ok(new);
        }
        if self.seen.first(&self.key).is_some() {
            return Ok(false);
        }
        self.kept.add(hashed::row_bytes(&[]) + self.key.len(), cx)?;
        self.seen.insert(Some(&self.key), Row::new());
        Ok(true)
    }
}

impl Operator for Distinct {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            if !self.have_pending {
                if !self.input.next(cx, &mut self.pending)? {
                    return Ok(false);
                }
                self.have_pending = true;
            }
            hashed::key_of(self.keys, &self.pending, cx, &mut self.key)?;
            cx.evaluated();
            self.have_pending = false;
            if self.first_of_its_key(cx)? {
                std::mem::swap(row, &mut self.pending);
                return Ok(true);
            }
            cx.tick()?;
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.input.rewind(cx);
        self.seen = RowTable::default();
        self.kept.release(cx);
        self.last = None;
        self.have_pending = false;
    }
}
