//! The current row's frame: where it starts and ends, and what is left out of it.
//!
//! Offsets are the same for all rows, so both ends only move forward in a partition.

use std::ops::Range;

use throng_bind::expr::{Expr, SortKey};
use throng_bind::window::{self, Exclude, FrameBound, FrameMode, Reach, in_range};
use throng_plan::WindowNode;
use throng_types::error::state;
use throng_types::{Datum, Error};

use super::rows::Rows;
use crate::run::eval::eval;
use crate::run::{Cx, Step};

pub(super) struct Frame {
    plan: &'static window::Frame,
    order: &'static [SortKey],
    /// Whether any call looks at the frame: else it need not be known.
    wanted: bool,
    /// Start and end offsets, once they have been evaluated.
    offsets: Option<[Datum; 2]>,
    head: usize,
    /// One past the last row.
    tail: usize,
    /// One past the last peer of the current row, where peers are left out.
    peers_end: usize,
    current: usize,
    group_start: usize,
}

impl Frame {
    pub fn new(plan: &'static WindowNode, wanted: bool) -> Frame {
        Frame {
            plan: &plan.frame,
            order: &plan.order,
            wanted,
            offsets: None,
            head: 0,
            tail: 0,
            peers_end: 0,
            current: 0,
            group_start: 0,
        }
    }

    /// At the start of a partition.
    pub fn begin(&mut self) {
        (self.head, self.tail, self.peers_end) = (0, 0, 0);
    }

    pub fn rewind(&mut self) {
        self.offsets = None;
    }

    pub fn range(&self) -> Range<usize> {
        self.head..self.tail.max(self.head)
    }

    /// The frame's rows but for those excluded are those of these ranges.
    pub fn parts(&self) -> [Range<usize>; 3] {
        let Range { start, end } = self.range();
        let (gone, kept) = match self.plan.exclude {
            Exclude::Nothing => return [start..end, end..end, end..end],
            Exclude::CurrentRow => (self.current..self.current + 1, None),
            Exclude::Group => (self.group_start..self.peers_end, None),
            Exclude::Ties => (self.group_start..self.peers_end, Some(self.current)),
        };
        let before = start..gone.start.clamp(start, end);
        let after = gone.end.clamp(start, end)..end;
        let kept = match kept {
            Some(row) if (start..end).contains(&row) => row..row + 1,
            _ => after.start..after.start,
        };
        [before, kept, after]
    }

    pub fn excludes(&self) -> bool {
        self.plan.exclude != Exclude::Nothing
    }

    /// Whether the first row of a partition is in the frames of all its rows.
    pub fn only_grows(&self) -> bool {
        !self.excludes() && self.plan.start == FrameBound::UnboundedPreceding
    }

    /// The first row that frames to come may look at to find their ends.
    pub fn needs(&self) -> usize {
        if !self.wanted {
            return usize::MAX;
        }
        match self.plan.start {
            FrameBound::UnboundedPreceding => self.tail,
            _ => self.head.min(self.tail),
        }
    }

    /// Finds the frame of the row at `current`.
    pub fn move_to(&mut self, current: usize, rows: &mut Rows, cx: &mut Cx) -> Step<()> {
        if !self.wanted {
            return Ok(());
        }
        self.evaluate_offsets(cx)?;
        self.current = current;
        self.group_start = rows.group_start(current)?;
        self.find_head(rows, cx)?;
        self.find_tail(rows, cx)?;
        if matches!(self.plan.exclude, Exclude::Group | Exclude::Ties) {
            self.peers_end = self.peers_end.max(current);
            let group = rows.group(current)?;
            while rows.has(self.peers_end, cx)? && rows.group(self.peers_end)? == group {
                self.peers_end += 1;
            }
        }
        Ok(())
    }

    fn evaluate_offsets(&mut self, cx: &mut Cx) -> Step<()> {
        if self.offsets.is_some() {
            return Ok(());
        }
        let start = self.offset(self.plan.start.offset(), "starting", cx)?;
        let end = self.offset(self.plan.end.offset(), "ending", cx)?;
        cx.evaluated();
        self.offsets = Some([start, end]);
        Ok(())
    }

    fn offset(&self, expr: Option<&'static Expr>, which: &str, cx: &mut Cx) -> Step<Datum> {
        let Some(expr) = expr else {
            return Ok(Datum::Null);
        };
        let value = eval(expr, &[], cx)?;
        if value.is_null() {
            let message = format!("frame {which} offset must not be null");
            return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message).into());
        }
        let counted = self.plan.mode != FrameMode::Range;
        if counted && value.as_i64().is_some_and(|n| n < 0) {
            let message = format!("frame {which} offset must not be negative");
            return Err(Error::new(state::INVALID_PRECEDING_OR_FOLLOWING_SIZE, message).into());
        }
        Ok(value)
    }

    /// An offset as a count of rows or groups.
    fn count(&self, end: usize) -> usize {
        let offset = self.offsets.as_ref().and_then(|o| o[end].as_i64());
        offset.map_or(0, |n| usize::try_from(n).unwrap_or(0))
    }

    fn find_head(&mut self, rows: &mut Rows, cx: &mut Cx) -> Step<()> {
        let group = rows.group(self.current)?;
        let from = match (&self.plan.start, self.plan.mode) {
            (FrameBound::UnboundedPreceding | FrameBound::UnboundedFollowing, _) => return Ok(()),
            (FrameBound::CurrentRow, FrameMode::Rows) => {
                self.head = self.current;
                return Ok(());
            }
            (FrameBound::CurrentRow, _) => {
                self.head = self.group_start;
                return Ok(());
            }
            (FrameBound::Preceding(_), FrameMode::Rows) => {
                self.head = self.current.saturating_sub(self.count(0));
                return Ok(());
            }
            (FrameBound::Following(_), FrameMode::Rows) => {
                let wanted = self.current.saturating_add(self.count(0));
                let there = rows.has(wanted, cx)?;
                self.head = if there { wanted } else { rows.end() };
                return Ok(());
            }
            (FrameBound::Preceding(_), FrameMode::Groups) => group.saturating_sub(self.count(0)),
            (FrameBound::Following(_), FrameMode::Groups) => group.saturating_add(self.count(0)),
            (FrameBound::Preceding(_), FrameMode::Range) => {
                return self.head_by_value(true, rows, cx);
            }
            (FrameBound::Following(_), FrameMode::Range) => {
                return self.head_by_value(false, rows, cx);
            }
        };
        while rows.has(self.head, cx)? && rows.group(self.head)? < from {
            self.head += 1;
        }
        Ok(())
    }

    fn find_tail(&mut self, rows: &mut Rows, cx: &mut Cx) -> Step<()> {
        let group = rows.group(self.current)?;
        let up_to = match (&self.plan.end, self.plan.mode) {
            (FrameBound::UnboundedFollowing | FrameBound::UnboundedPreceding, _) => {
                self.tail = rows.all(cx)?;
                return Ok(());
            }
            (FrameBound::CurrentRow, FrameMode::Rows) => {
                self.tail = self.current + 1;
                return Ok(());
            }
            (FrameBound::CurrentRow, _) => group,
            (FrameBound::Preceding(_), FrameMode::Rows) => {
                self.tail = (self.current + 1).saturating_sub(self.count(1));
                return Ok(());
            }
            (FrameBound::Following(_), FrameMode::Rows) => {
                let last = self.current.saturating_add(self.count(1));
                let there = rows.has(last, cx)?;
                self.tail = if there { last + 1 } else { rows.end() };
                return Ok(());
            }
            (FrameBound::Preceding(_), FrameMode::Groups) => match group.checked_sub(self.count(1))
            {
                Some(group) => group,
                None => return Ok(()),
            },
            (FrameBound::Following(_), FrameMode::Groups) => group.saturating_add(self.count(1)),
            (FrameBound::Preceding(_), FrameMode::Range) => {
                return self.tail_by_value(true, rows, cx);
            }
            (FrameBound::Following(_), FrameMode::Range) => {
                return self.tail_by_value(false, rows, cx);
            }
        };
        while rows.has(self.tail, cx)? && rows.group(self.tail)? <= up_to {
            self.tail += 1;
        }
        Ok(())
    }

    /// The single ORDER BY column's value at a place.
    fn order_value(&self, place: usize, rows: &mut Rows, cx: &mut Cx) -> Step<Datum> {
        eval(&self.order[0].expr, rows.row(place)?, cx)
    }

    /// Moves the head over rows that are before the bound.
    fn head_by_value(&mut self, preceding: bool, rows: &mut Rows, cx: &mut Cx) -> Step<()> {
        let base = self.order_value(self.current, rows, cx)?;
        let SortKey {
            descending,
            nulls_first,
            ..
        } = self.order[0];
        let reach = Reach {
            back: preceding != descending,
            at_most: descending,
        };
        while rows.has(self.head, cx)? {
            let value = self.order_value(self.head, rows, cx)?;
            let stays = match (value.is_null(), base.is_null()) {
                (false, false) => self.within(&value, &base, 0, reach, cx)?,
                (head_null, base_null) if nulls_first => !head_null || base_null,
                (head_null, base_null) => head_null || !base_null,
            };
            if stays {
                break;
            }
            self.head += 1;
            cx.tick()?;
        }
        Ok(())
    }

    /// Moves the tail over rows that are not after the bound.
    fn tail_by_value(&mut self, preceding: bool, rows: &mut Rows, cx: &mut Cx) -> Step<()> {
        let base = self.order_value(self.current, rows, cx)?;
        let SortKey {
            descending,
            nulls_first,
            ..
        } = self.order[0];
        let reach = Reach {
            back: preceding != descending,
            at_most: !descending,
        };
        while rows.has(self.tail, cx)? {
            let value = self.order_value(self.tail, rows, cx)?;
            let inside = match (value.is_null(), base.is_null()) {
                (false, false) => self.within(&value, &base, 1, reach, cx)?,
                (tail_null, _) if nulls_first => tail_null,
                (_, base_null) => base_null,
            };
            if !inside {
                break;
            }
            self.tail += 1;
            cx.tick()?;
        }
        Ok(())
    }

    fn within(
        &self,
        value: &Datum,
        base: &Datum,
        end: usize,
        reach: Reach,
        cx: &mut Cx,
    ) -> Step<bool> {
        let Some(offsets) = &self.offsets else {
            return Err(Error::internal("a frame without its offsets").into());
        };
        Ok(in_range(&cx.eval, value, base, &offsets[end], reach)?)
    }
}
