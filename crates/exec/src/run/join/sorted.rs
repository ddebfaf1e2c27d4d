//! The sides of a join in the order of their keys.
//!
//! ```text
//!   left   ── a  b  b  d ──►        partners: the right rows of one key, kept while left rows have it
//!   right  ── b  b  c  d ──►        c is alone: shown by right and full joins
//! ```
//! A row with a NULL in its key comes before all others, and meets nobody.

use std::cmp::Ordering;

use throng_types::{Datum, Result};

use crate::run::context::RowMemory;
use crate::run::hashed::{Key, RowTable};
use crate::run::{Cx, Row, Step};
use crate::spill::{RowList, Sorter};

pub(super) struct SortedSides {
    left: Sorter,
    right: Sorter,
    has_left: bool,
    /// The left side has given its last row.
    left_ended: bool,
    /// Right rows without partner are wanted.
    keeps_right: bool,
    partners: RowList,
    kept: RowMemory,
    /// The partners' key.
    key: Vec<u8>,
    /// The first right row that is not among the partners.
    next: Row,
    have_next: bool,
}

/// What a step among the right rows has come to.
pub(super) enum Found {
    /// So many rows have the left row's key.
    Partners(usize),
    /// The [row](SortedSides::alone) has no partner.
    Alone,
    End,
}

/// What begins the keys of rows that may meet others.
const WHOLE: u8 = 1;
const NULL: u8 = 0;

fn sort_key(key: Option<&[u8]>) -> Box<[u8]> {
    match key {
        None => Box::new([NULL]),
        Some(key) => [&[WHOLE], key].concat().into(),
    }
}

impl SortedSides {
    pub fn new(keeps_right: bool) -> SortedSides {
        SortedSides {
            left: Sorter::default(),
            right: Sorter::default(),
            has_left: false,
            left_ended: false,
            keeps_right,
            partners: RowList::default(),
            kept: RowMemory::default(),
            key: Vec::new(),
            next: Row::new(),
            have_next: false,
        }
    }

    pub fn take_table(&mut self, table: RowTable, cx: &mut Cx) -> Result<()> {
        table
            .into_entries()
            .try_for_each(|(key, row)| self.right.add(sort_key(key.as_deref()), row, cx))
    }

    /// `key`: none where it has a NULL.
    pub fn add_right(&mut self, key: Option<&Key>, row: Row, cx: &mut Cx) -> Result<()> {
        self.right.add(sort_key(key.map(Key::bytes)), row, cx)
    }

    pub fn add_left(&mut self, key: Option<&Key>, row: Row, cx: &mut Cx) -> Result<()> {
        self.left.add(sort_key(key.map(Key::bytes)), row, cx)
    }

    pub fn has_left(&self) -> bool {
        self.has_left
    }

    pub fn end_left(&mut self) {
        self.has_left = true;
    }

    /// Both sides have all their rows. May stop, to be called again.
    pub fn finish(&mut self, cx: &mut Cx) -> Step<()> {
        self.left.finish(cx)?;
        self.right.finish(cx)
    }

    pub fn next_left(&mut self, cx: &mut Cx, row: &mut Row) -> Result<bool> {
        let more = self.left.next(cx, row)?;
        self.left_ended = !more;
        Ok(more)
    }

    /// The partners of the left row, where they are those of the one before or there can be none.
    pub fn known_partners(&self) -> Option<usize> {
        let key = self.left.key();
        match key {
            [NULL, ..] => Some(0),
            key if key == self.key => Some(self.partners.len()),
            _ => None,
        }
    }

    pub fn partners(&self) -> usize {
        self.partners.len()
    }

    pub fn partner(&mut self, at: usize) -> Result<&[Datum]> {
        Ok(self.partners.get(at)?.unwrap_or_default())
    }

    /// The right row that [`seek`](Self::seek) found to be alone.
    pub fn alone(&self) -> &[Datum] {
        &self.next
    }

    /// Moves on to the partners of the left row or, past the last one, to the end. May stop, to be
    /// called again.
    pub fn seek(&mut self, cx: &mut Cx) -> Step<Found> {
        if self.left_ended || self.key != self.left.key() {
            self.partners.clear();
            self.kept.release(cx);
            self.key.clear();
            self.key.extend_from_slice(match self.left_ended {
                true => &[],
                false => self.left.key(),
            });
        }
        loop {
            if !self.have_next {
                if !self.right.next(cx, &mut self.next)? {
                    break;
                }
                self.have_next = true;
            }
            let order = match self.left_ended {
                true => Ordering::Less,
                false => self.right.key().cmp(&self.key),
            };
            match order {
                Ordering::Greater => break,
                Ordering::Equal => {
                    let next = std::mem::take(&mut self.next);
                    self.partners.keep(next, &mut self.kept, cx)?;
                }
                Ordering::Less => {}
            }
            self.have_next = false;
            if order.is_lt() && self.keeps_right {
                return Ok(Found::Alone);
            }
            cx.tick()?;
        }
        Ok(match self.left_ended {
            true => Found::End,
            false => Found::Partners(self.partners.len()),
        })
    }

    pub fn release(&mut self, cx: &mut Cx) {
        self.left.clear(cx);
        self.right.clear(cx);
        self.kept.release(cx);
    }
}
