//! One partition's rows, read as they are asked for.

use std::collections::VecDeque;

use throng_sql::expr::{Expr, SortKey};
use throng_sql::plan::WindowNode;
use throng_types::Datum;

use crate::run::context::Kept;
use crate::run::hashed::{Key, key_of, row_bytes};
use crate::run::sort::sort_key;
use crate::run::{BoxOperator, Cx, Row, Step};

struct Entry {
    row: Row,
    /// The number of its group of peers, from 0.
    group: usize,
    /// Where that group starts.
    group_start: usize,
    /// What it was charged.
    bytes: usize,
}

pub(super) struct Rows {
    input: BoxOperator,
    partition: &'static [Expr],
    order: &'static [SortKey],
    entries: VecDeque<Entry>,
    /// The place in the partition of the first entry.
    base: usize,
    /// No more rows of this partition are to come.
    ended: bool,
    /// A row taken from the input that is in no entry yet: of this partition, or the next one's first.
    pending: Row,
    have_pending: bool,
    input_ended: bool,
    partition_key: Option<Key>,
    order_key: Box<[u8]>,
    key: Key,
    kept: Kept,
}

impl Rows {
    pub fn new(plan: &'static WindowNode, input: BoxOperator) -> Rows {
        Rows {
            input,
            partition: &plan.partition,
            order: &plan.order,
            entries: VecDeque::new(),
            base: 0,
            ended: false,
            pending: Row::new(),
            have_pending: false,
            input_ended: false,
            partition_key: None,
            order_key: Box::default(),
            key: Key::default(),
            kept: Kept::default(),
        }
    }

    /// Starts the next partition; false when there is none.
    pub fn begin(&mut self, cx: &mut Cx) -> Step<bool> {
        if !self.have_pending && !self.take(cx)? {
            return Ok(false);
        }
        self.forget(usize::MAX, cx);
        self.base = 0;
        self.ended = false;
        self.partition_key = None;
        Ok(true)
    }

    fn take(&mut self, cx: &mut Cx) -> Step<bool> {
        if self.input_ended {
            return Ok(false);
        }
        self.have_pending = self.input.next(cx, &mut self.pending)?;
        self.input_ended = !self.have_pending;
        Ok(self.have_pending)
    }

    /// Whether the partition has a row at this place; reads up to it.
    pub fn has(&mut self, place: usize, cx: &mut Cx) -> Step<bool> {
        while self.end() <= place {
            if !self.read(cx)? {
                return Ok(false);
            }
            cx.tick()?;
        }
        Ok(true)
    }

    /// Reads the rest of the partition and gives its length.
    pub fn all(&mut self, cx: &mut Cx) -> Step<usize> {
        while self.read(cx)? {
            cx.tick()?;
        }
        Ok(self.end())
    }

    /// One more row; false at the partition's end.
    fn read(&mut self, cx: &mut Cx) -> Step<bool> {
        if self.ended {
            return Ok(false);
        }
        if !self.have_pending && !self.take(cx)? {
            self.ended = true;
            return Ok(false);
        }
        if !self.partition.is_empty() {
            key_of(self.partition, &self.pending, cx, &mut self.key)?;
            match &self.partition_key {
                Some(key) if *key != self.key => {
                    self.ended = true;
                    return Ok(false);
                }
                Some(_) => {}
                None => self.partition_key = Some(self.key.clone()),
            }
        }
        let place = self.end();
        let (mut group, mut group_start) = (0, 0);
        if !self.order.is_empty() {
            let key = sort_key(self.order, &self.pending, cx)?;
            if let Some(last) = self.entries.back() {
                (group, group_start) = (last.group, last.group_start);
                if key != self.order_key {
                    (group, group_start) = (group + 1, place);
                }
            }
            self.order_key = key;
        }
        let bytes = row_bytes(&self.pending);
        self.kept.add(bytes, cx)?;
        self.have_pending = false;
        self.entries.push_back(Entry {
            row: std::mem::take(&mut self.pending),
            group,
            group_start,
            bytes,
        });
        Ok(true)
    }

    /// One past the last row that was read.
    pub fn end(&self) -> usize {
        self.base + self.entries.len()
    }

    pub fn row(&self, place: usize) -> &[Datum] {
        &self.entries[place - self.base].row
    }

    pub fn group(&self, place: usize) -> usize {
        self.entries[place - self.base].group
    }

    pub fn group_start(&self, place: usize) -> usize {
        self.entries[place - self.base].group_start
    }

    /// Gives the current row out, and forgets those before `needed`.
    pub fn give(&mut self, current: usize, needed: usize, cx: &mut Cx, out: &mut Row) {
        let entry = &mut self.entries[current - self.base];
        if needed > current {
            *out = std::mem::take(&mut entry.row);
        } else {
            out.clone_from(&entry.row);
        }
        self.forget(needed, cx);
    }

    fn forget(&mut self, before: usize, cx: &mut Cx) {
        // The last one read stays: the next is compared with its group.
        while self.base < before && (self.entries.len() > 1 || before == usize::MAX) {
            let Some(entry) = self.entries.pop_front() else {
                return;
            };
            self.kept.give_back(entry.bytes, cx);
            self.base += 1;
        }
    }

    pub fn rewind(&mut self, cx: &mut Cx) {
        self.forget(usize::MAX, cx);
        self.input.rewind(cx);
        self.have_pending = false;
        self.input_ended = false;
    }
}
