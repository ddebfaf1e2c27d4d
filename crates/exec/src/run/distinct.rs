//! DISTINCT and DISTINCT ON: the first row of each key.
//!
//! Keys that were seen are in memory. Where they do not fit, rows of further keys wait for the end
//! of the input: they are then sorted by key, of which the first stays, and these by their number,
//! for they come in the order of the input.

use throng_bind::expr::Expr;

use super::context::RowMemory;
use super::hashed::{self, Key, RowTable};
use super::{BoxOperator, Cx, Operator, Row, Step};
use crate::spill::Sorter;

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
    kept: RowMemory,
    input_ended: bool,
    late: Option<Box<LateRows>>,
}

/// Rows whose keys did not fit in memory.
#[derive(Default)]
struct LateRows {
    /// With their number behind the key.
    by_key: Sorter,
    count: u64,
    /// The first of each key.
    by_number: Sorter,
    chosen: bool,
    last: Vec<u8>,
    row: Row,
}

const NUMBER: usize = size_of::<u64>();

impl LateRows {
    fn add(&mut self, key: &Key, row: Row, cx: &mut Cx) -> Step<()> {
        let key = [key.bytes(), &self.count.to_be_bytes()].concat();
        self.count += 1;
        Ok(self.by_key.add(key.into(), row, cx)?)
    }

    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if !self.chosen {
            self.by_key.finish(cx)?;
            while self.by_key.next(cx, &mut self.row)? {
                let (key, number) = self.by_key.key().split_at(self.by_key.key().len() - NUMBER);
                if self.by_number.is_empty() || key != self.last {
                    self.last.clear();
                    self.last.extend_from_slice(key);
                    let number = number.into();
                    self.by_number
                        .add(number, std::mem::take(&mut self.row), cx)?;
                }
                cx.tick()?;
            }
            self.by_key.clear(cx);
            self.chosen = true;
        }
        self.by_number.finish(cx)?;
        Ok(self.by_number.next(cx, row)?)
    }
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
            kept: RowMemory::default(),
            input_ended: false,
            late: None,
        }
    }

    /// Notes the current key; false if it was seen before, or the row waits.
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
        let bytes = hashed::row_bytes(&[]) + self.key.len();
        if self.late.is_none() && self.kept.fits(bytes, cx) {
            self.seen.insert(Some(&self.key), Row::new());
            return Ok(true);
        }
        let late = self.late.get_or_insert_default();
        late.add(&self.key, std::mem::take(&mut self.pending), cx)?;
        Ok(false)
    }
}

impl Operator for Distinct {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        while !self.input_ended {
            if !self.have_pending {
                if !self.input.next(cx, &mut self.pending)? {
                    self.input_ended = true;
                    break;
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
        match &mut self.late {
            Some(late) => late.next(cx, row),
            None => Ok(false),
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.input.rewind(cx);
        self.seen = RowTable::default();
        self.kept.release(cx);
        if let Some(mut late) = self.late.take() {
            late.by_key.clear(cx);
            late.by_number.clear(cx);
        }
        self.last = None;
        self.have_pending = false;
        self.input_ended = false;
    }
}
