//! ORDER BY: rows gathered, sorted by their key's ordered bytes, given out.

use throng_sql::expr::SortKey;
use throng_types::Datum;
use throng_types::key::{self, KeyOrder};

use super::context::Kept;
use super::eval::eval;
use super::hashed::row_bytes;
use super::{BoxOperator, Cx, Operator, Row, Step};

pub struct Sort {
    input: BoxOperator,
    keys: &'static [SortKey],
    /// Key bytes with their row; sorted once the input has ended.
    rows: Vec<(Box<[u8]>, Row)>,
    pending: Row,
    have_pending: bool,
    at: usize,
    sorted: bool,
    kept: Kept,
}

impl Sort {
    pub fn new(input: BoxOperator, keys: &'static [SortKey]) -> Sort {
        Sort {
            input,
            keys,
            rows: Vec::new(),
            pending: Row::new(),
            have_pending: false,
            at: 0,
            sorted: false,
            kept: Kept::default(),
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
            let bytes = sort_key(self.keys, &self.pending, cx)?;
            cx.evaluated();
            self.have_pending = false;
            self.kept.add(bytes.len() + row_bytes(&self.pending), cx)?;
            self.rows.push((bytes, std::mem::take(&mut self.pending)));
            cx.tick()?;
        }
        // Rows with equal keys keep the order they came in.
        self.rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.sorted = true;
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
        if !self.sorted {
            self.gather(cx)?;
        }
        let Some(kept) = self.rows.get_mut(self.at) else {
            return Ok(false);
        };
        let (bytes, kept) = std::mem::take(kept);
        self.kept.give_back(bytes.len() + row_bytes(&kept), cx);
        *row = kept;
        self.at += 1;
        Ok(true)
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.input.rewind(cx);
        self.rows.clear();
        self.kept.release(cx);
        self.have_pending = false;
        self.sorted = false;
        self.at = 0;
    }
}
