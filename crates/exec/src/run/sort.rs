//! ORDER BY: rows gathered, sorted by their key's ordered bytes, given out. Rows with equal keys
//! keep the order they came in.

use throng_bind::expr::SortKey;
use throng_types::Datum;
use throng_types::key::{self, KeyOrder};

use super::eval::eval;
use super::{BoxOperator, Cx, Operator, Row, Step};
use crate::spill::Sorter;

pub struct Sort {
    input: BoxOperator,
    keys: &'static [SortKey],
    sorter: Sorter,
    pending: Row,
    have_pending: bool,
    /// The input has ended.
    gathered: bool,
}

impl Sort {
    pub fn new(input: BoxOperator, keys: &'static [SortKey]) -> Sort {
        Sort {
            input,
            keys,
            sorter: Sorter::default(),
            pending: Row::new(),
            have_pending: false,
            gathered: false,
        }
    }

    fn gather(&mut self, cx: &mut Cx) -> Step<()> {
        loop {
            if !self.have_pending {
                if !self.input.next(cx, &mut self.pending)? {
                    break;
                }
                self.have_pending = true;
            }
            let key = sort_key(self.keys, &self.pending, cx)?;
            cx.evaluated();
            self.have_pending = false;
            self.sorter
                .add(key, std::mem::take(&mut self.pending), cx)?;
            cx.tick()?;
        }
        self.gathered = true;
        Ok(())
    }
}

/// The ordered bytes of a row under an ORDER BY.
pub fn sort_key(keys: &'static [SortKey], row: &[Datum], cx: &mut Cx) -> Step<Box<[u8]>> {
    let mut bytes = Vec::with_capacity(16 * keys.len());
    for SortKey {
        expr,
        descending,
        nulls_first,
    } in keys
    {
        let value = eval(expr, row, cx)?;
        let order = KeyOrder::new(expr.ty().oid, *descending, *nulls_first);
        key::encode_one(&value, order, &mut bytes)?;
    }
    Ok(bytes.into())
}

impl Operator for Sort {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if !self.gathered {
            self.gather(cx)?;
        }
        self.sorter.finish(cx)?;
        Ok(self.sorter.next(cx, row)?)
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.input.rewind(cx);
        self.sorter.clear(cx);
        self.have_pending = false;
        self.gathered = false;
    }
}
