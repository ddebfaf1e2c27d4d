//! One partition's rows, read as they are asked for. Where they do not fit in memory all of them
//! lie in a file from then on, each with its group behind it.

use std::collections::VecDeque;

use throng_bind::expr::{Expr, SortKey};
use throng_plan::WindowNode;
use throng_types::{Datum, Error};

use crate::run::context::RowMemory;
use crate::run::hashed::{Key, key_of, row_bytes};
use crate::run::sort::sort_key;
use crate::run::{BoxOperator, Cx, Row, Step, copy_row};
use crate::spill::RowList;

struct Entry {
    row: Row,
    /// The number of its group of peers, from 0.
    group: usize,
    /// Where that group starts.
    group_start: usize,
    /// What it was charged.
    bytes: usize,
}

/// Columns behind a row in a file.
const GROUP: usize = 2;

impl Entry {
    fn into_row(self) -> Row {
        let mut row = self.row;
        row.push(Datum::Int8(self.group as i64));
        row.push(Datum::Int8(self.group_start as i64));
        row
    }
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
    /// A row taken from the input that is in no entry yet: of this partition, or the next one's
    /// first.
    pending: Row,
    have_pending: bool,
    input_ended: bool,
    partition_key: Option<Key>,
    order_key: Box<[u8]>,
    key: Key,
    kept: RowMemory,
    /// The rows from a place on, where they do not fit in memory.
    spilled: Option<(usize, RowList)>,
    /// The last row's group, and where that starts.
    last: (usize, usize),
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
            kept: RowMemory::default(),
            spilled: None,
            last: (0, 0),
        }
    }

    /// Starts the next partition; false when there is none.
    pub fn begin(&mut self, cx: &mut Cx) -> Step<bool> {
        if !self.have_pending && !self.take(cx)? {
            return Ok(false);
        }
        self.forget(usize::MAX, cx);
        self.spilled = None;
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
            if place > 0 {
                (group, group_start) = self.last;
                if key != self.order_key {
                    (group, group_start) = (group + 1, place);
                }
            }
            self.order_key = key;
        }
        self.have_pending = false;
        self.last = (group, group_start);
        let bytes = row_bytes(&self.pending);
        let entry = Entry {
            row: std::mem::take(&mut self.pending),
            group,
            group_start,
            bytes,
        };
        if self.spilled.is_none() && !self.kept.fits(bytes, cx) {
            self.spill(cx)?;
        }
        match &mut self.spilled {
            None => self.entries.push_back(entry),
            Some((_, list)) => list.push(entry.into_row())?,
        }
        Ok(true)
    }

    #[cold]
    fn spill(&mut self, cx: &mut Cx) -> Step<()> {
        let mut list = RowList::default();
        list.spill(&cx.env.store.spill)?;
        for entry in self.entries.drain(..) {
            self.kept.give_back(entry.bytes, cx);
            list.push(entry.into_row())?;
        }
        self.spilled = Some((self.base, list));
        Ok(())
    }

    /// One past the last row that was read.
    pub fn end(&self) -> usize {
        match &self.spilled {
            None => self.base + self.entries.len(),
            Some((first, list)) => first + list.len(),
        }
    }

    /// A row of the file, with its group behind it.
    fn in_file(first: usize, list: &mut RowList, place: usize) -> Step<&[Datum]> {
        let row = list.get(place - first)?;
        Ok(row.ok_or_else(|| Error::internal("a row that is not in its window"))?)
    }

    pub fn row(&mut self, place: usize) -> Step<&[Datum]> {
        match &mut self.spilled {
            None => Ok(&self.entries[place - self.base].row),
            Some((first, list)) => {
                let row = Self::in_file(*first, list, place)?;
                Ok(&row[..row.len() - GROUP])
            }
        }
    }

    /// A row's group, and where that starts.
    fn group_and_start(&mut self, place: usize) -> Step<(usize, usize)> {
        match &mut self.spilled {
            None => {
                let entry = &self.entries[place - self.base];
                Ok((entry.group, entry.group_start))
            }
            Some((first, list)) => {
                let row = Self::in_file(*first, list, place)?;
                let number = |back: usize| row[row.len() - back].as_i64().unwrap_or(0) as usize;
                Ok((number(2), number(1)))
            }
        }
    }

    pub fn group(&mut self, place: usize) -> Step<usize> {
        Ok(self.group_and_start(place)?.0)
    }

    pub fn group_start(&mut self, place: usize) -> Step<usize> {
        Ok(self.group_and_start(place)?.1)
    }

    /// Gives the current row out, and forgets those before `needed`.
    pub fn give(&mut self, current: usize, needed: usize, cx: &mut Cx, out: &mut Row) -> Step<()> {
        if self.spilled.is_some() {
            copy_row(self.row(current)?, out);
            return Ok(());
        }
        let entry = &mut self.entries[current - self.base];
        if needed > current {
            *out = std::mem::take(&mut entry.row);
        } else {
            out.clone_from(&entry.row);
        }
        self.forget(needed, cx);
        Ok(())
    }

    fn forget(&mut self, before: usize, cx: &mut Cx) {
        while self.base < before {
            let Some(entry) = self.entries.pop_front() else {
                return;
            };
            self.kept.give_back(entry.bytes, cx);
            self.base += 1;
        }
    }

    pub fn rewind(&mut self, cx: &mut Cx) {
        self.forget(usize::MAX, cx);
        self.spilled = None;
        self.input.rewind(cx);
        self.have_pending = false;
        self.input_ended = false;
    }
}
