//! Scans: of a heap in block order, of a system catalog; and what makes rows of stored ones.

mod bitmap;
mod index;
mod tid_set;

use std::rc::Rc;

use throng_access::TupleBatch;
use throng_bind::expr::{Expr, system};
use throng_bind::tablesample::Taken;
use throng_buffer::Ring;
use throng_catalog::{Key, Left};
use throng_plan::{KeyMatch, SeqScan};
use throng_types::page::PAGE_SIZE;
use throng_types::row::RowLayout;
use throng_types::{BlockNo, Datum, Tid};

use super::context::Found;
use super::eval::{eval, holds, show};
use super::{Cx, Operator, Row, Step, empty, follow};
use crate::large::Fetch;
use crate::table::{Index, Table};

pub use bitmap::CombinedScanOp;
pub use index::index_scan;

/// Turns stored rows into a scan's output rows: first what the filter reads, the rest only of the
/// rows that it shows.
struct Decoder {
    table: Rc<Table>,
    /// Columns of the table that the filter reads and the others, ascending, each with its place in
    /// the output.
    filtered: Vec<(usize, usize)>,
    others: Vec<(usize, usize)>,
    /// System columns.
    system: Vec<(i16, usize)>,
    filter: &'static Option<Expr>,
    /// So many of a row's first bytes are enough for all of them.
    reach: usize,
    values: Row,
    /// The version that `values` is being made of, and whether the filter shows it: large values
    /// may have to be waited for.
    making: Option<(Tid, bool)>,
    reading: Fetch,
}

impl Decoder {
    fn new(table: Rc<Table>, columns: &'static [i16], filter: &'static Option<Expr>) -> Decoder {
        let mut reads = Vec::new();
        if let Some(filter) = filter {
            reads.resize(columns.len(), false);
            filter.any(&mut |part| {
                match part {
                    Expr::Slot(at, _) => reads[*at as usize] = true,
                    Expr::SubPlan(_) => reads.fill(true),
                    _ => {}
                }
                false
            });
        }
        let (mut filtered, mut others, mut system) = (Vec::new(), Vec::new(), Vec::new());
        for (place, column) in columns.iter().copied().enumerate() {
            match usize::try_from(column - 1) {
                Ok(column) if reads.get(place) == Some(&true) => filtered.push((column, place)),
                Ok(column) => others.push((column, place)),
                Err(_) => system.push((column, place)),
            }
        }
        filtered.sort_unstable();
        others.sort_unstable();
        let wanted = [filtered.last(), others.last()].into_iter().flatten();
        let first = wanted.map(|(column, _)| column + 1).max().unwrap_or(0);
        let reach = table.layout.reach(first).unwrap_or(PAGE_SIZE);
        Decoder {
            table,
            reach,
            filtered,
            others,
            system,
            filter,
            values: vec![Datum::Null; columns.len()],
            making: None,
            reading: Fetch::default(),
        }
    }

    /// Forgets the row in hand.
    fn reset(&mut self) {
        empty(&mut self.values);
        self.making = None;
        self.reading = Fetch::default();
    }

    /// Fills `row` from the stored bytes; false if the filter keeps it out. Called again for the
    /// same row where it had to wait.
    fn take(&mut self, tid: Tid, bytes: &[u8], cx: &mut Cx, row: &mut Row) -> Step<bool> {
        let external = RowLayout::has_external(bytes);
        let mut shown = match self.making {
            Some((of, shown)) if of == tid => shown,
            _ => {
                self.begin(tid, bytes)?;
                false
            }
        };
        if !shown {
            if external {
                self.table
                    .fetch_into(&self.filtered, &mut self.values, &mut self.reading)?;
            }
            if let Some(filter) = self.filter {
                shown = holds(filter, &self.values, cx)?;
                cx.evaluated();
                if !shown {
                    self.making = None;
                    return Ok(false);
                }
            }
            self.table
                .decode_into(bytes, &self.others, &mut self.values)?;
            self.making = Some((tid, true));
        }
        if external {
            self.table
                .fetch_into(&self.others, &mut self.values, &mut self.reading)?;
        }
        self.making = None;
        std::mem::swap(row, &mut self.values);
        Ok(true)
    }

    /// The values that are there before the filter is asked.
    fn begin(&mut self, tid: Tid, bytes: &[u8]) -> Step<()> {
        // A row kept out left its values here: each place is written again before it is read.
        let width = self.filtered.len() + self.others.len() + self.system.len();
        if self.values.len() != width {
            self.values.resize(width, Datum::Null);
        }
        for at in 0..self.system.len() {
            let (column, place) = self.system[at];
            self.values[place] = match column {
                system::CTID => Datum::Tid(tid),
                system::TABLEOID => Datum::Oid(self.table.def.oid.0),
                n => self.header_column(n, tid)?,
            };
        }
        self.table
            .decode_into(bytes, &self.filtered, &mut self.values)?;
        self.making = Some((tid, false));
        Ok(())
    }

    /// xmin, xmax, cmin and cmax: asked for rarely enough that the tuple is looked at once more.
    fn header_column(&self, column: i16, tid: Tid) -> Step<Datum> {
        let mut bytes = Vec::new();
        let Some(header) = self.table.heap.read_version(tid, &mut bytes)? else {
            return Ok(Datum::Null);
        };
        Ok(match column {
            system::XMIN => Datum::Oid(header.xmin.0 as u32),
            system::XMAX => Datum::Oid(header.xmax.0 as u32),
            system::CMIN => Datum::Oid(header.cmin.0),
            _ => Datum::Oid(header.cmax.0),
        })
    }
}

/// The only version that a re-check lets a scan give, once, if the scan's conditions hold for it.
#[derive(Default)]
struct OnlyVersion {
    done: bool,
    bytes: Vec<u8>,
}

impl OnlyVersion {
    fn next(
        &mut self,
        tid: Tid,
        decoder: &mut Decoder,
        condition: Option<&'static Expr>,
        cx: &mut Cx,
        row: &mut Row,
    ) -> Step<bool> {
        if self.done
            || decoder
                .table
                .heap
                .read_version(tid, &mut self.bytes)?
                .is_none()
        {
            return Ok(false);
        }
        let mut shown = decoder.take(tid, &self.bytes, cx, row)?;
        if let Some(condition) = condition.filter(|_| shown) {
            shown = holds(condition, row, cx)?;
            cx.evaluated();
        }
        self.done = true;
        Ok(shown)
    }
}

/// Every visible row of a heap.
pub struct SeqScanOp {
    plan: &'static SeqScan,
    decoder: Decoder,
    batch: TupleBatch,
    at: usize,
    block: BlockNo,
    /// The blocks there were when the scan began: rows added later are not for this snapshot.
    end: Option<BlockNo>,
    /// A big scan passes through few frames, so that it does not push everything else out.
    ring: Option<Ring>,
    /// The place of the only row to give.
    place: Option<Tid>,
    /// The rows that are taken, known when the first is due.
    taken: Option<Taken>,
    /// What chooses them where no seed was given.
    seed: u32,
    only: OnlyVersion,
}

impl SeqScanOp {
    pub fn new(plan: &'static SeqScan, table: Rc<Table>) -> SeqScanOp {
        SeqScanOp {
            plan,
            decoder: Decoder::new(table, &plan.columns, &plan.filter),
            batch: TupleBatch::new(),
            at: 0,
            block: 0,
            end: None,
            ring: None,
            place: None,
            taken: None,
            seed: match &plan.sample {
                Some(_) => rand::random(),
                None => 0,
            },
            only: OnlyVersion::default(),
        }
    }

    /// The blocks to read, found out when the first is due.
    fn end(&mut self, cx: &mut Cx) -> Step<BlockNo> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        let mut only = None;
        if let Some(place) = &self.plan.place {
            let Datum::Tid(tid) = eval(&place.value, &[], cx)? else {
                return Ok(*self.end.insert(0));
            };
            only = Some(tid);
        }
        if let Some(sample) = &self.plan.sample {
            let percent = eval(&sample.percent, &[], cx)?;
            let seed = match &sample.seed {
                Some(seed) => Some(eval(seed, &[], cx)?),
                None => None,
            };
            let taken = Taken::new(sample.method, &percent, seed.as_ref(), self.seed)?;
            self.taken = Some(taken);
        }
        let heap = &self.decoder.table.heap;
        if let Some(reads) = cx.env.snapshot.reads() {
            reads.relation(heap.file());
        }
        let blocks = heap.blocks()?;
        let end = match only {
            None => blocks,
            Some(tid) => {
                self.block = tid.block;
                blocks.min(tid.block.saturating_add(1))
            }
        };
        self.place = only;
        Ok(*self.end.insert(end))
    }

    /// Whether a newer version is still the row that is meant.
    fn is_meant(&mut self, tid: Tid, cx: &mut Cx) -> Step<bool> {
        match &self.plan.place {
            Some(place) if place.cursor.is_none() => {
                Ok(eval(&place.value, &[], cx)? == Datum::Tid(tid))
            }
            _ => Ok(true),
        }
    }
}

impl Operator for SeqScanOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if let Some(version) = cx.only_version(self.plan.rel) {
            return match version {
                Some(tid) if self.is_meant(tid, cx)? => {
                    self.only.next(tid, &mut self.decoder, None, cx, row)
                }
                _ => Ok(false),
            };
        }
        loop {
            while self.at < self.batch.len() {
                let tid = self.batch.tid(self.at);
                let elsewhere = self.place.is_some_and(|place| place != tid);
                if elsewhere || self.taken.is_some_and(|taken| !taken.row(tid)) {
                    self.at += 1;
                    continue;
                }
                *cx.found = Some(Found {
                    rel: self.plan.rel,
                    tid,
                    root: self.batch.root(self.at),
                });
                let shown = self.decoder.take(tid, self.batch.row(self.at), cx, row)?;
                self.at += 1;
                if shown {
                    return Ok(true);
                }
                cx.tick()?;
            }
            let end = self.end(cx)?;
            let heap = &self.decoder.table.heap;
            if self.block >= end {
                return Ok(false);
            }
            self.batch.clear();
            self.at = 0;
            if self.taken.is_some_and(|taken| !taken.page(self.block)) {
                self.block += 1;
                cx.tick()?;
                continue;
            }
            let ring = self
                .ring
                .get_or_insert_with(|| Ring::for_scan(heap.pool(), end));
            follow::scan_page(heap, self.block, cx.env.snapshot, ring, &mut self.batch)?;
            self.block += 1;
            cx.tick()?;
        }
    }

    fn rewind(&mut self, _: &mut Cx) {
        self.batch.clear();
        self.at = 0;
        self.block = 0;
        self.end = None;
        self.place = None;
        self.only = OnlyVersion::default();
    }
}

/// The rows of a system catalog, computed from the statement's catalog while they are read.
pub struct VirtualScanOp {
    table: &'static throng_catalog::VirtualTable,
    columns: &'static [i16],
    key: &'static Option<(Key, KeyMatch)>,
    filter: &'static Option<Expr>,
    left: Option<Left>,
    rows: std::vec::IntoIter<Row>,
    pending: Row,
    have_pending: bool,
}

impl VirtualScanOp {
    pub fn new(
        table: &'static throng_catalog::VirtualTable,
        columns: &'static [i16],
        key: &'static Option<(Key, KeyMatch)>,
        filter: &'static Option<Expr>,
    ) -> VirtualScanOp {
        VirtualScanOp {
            table,
            columns,
            key,
            filter,
            left: None,
            rows: Vec::new().into_iter(),
            pending: Row::new(),
            have_pending: false,
        }
    }

    fn begin(&self, cx: &mut Cx) -> Step<Left> {
        self.table.must_be_readable()?;
        let (key, values) = match self.key {
            None | Some((_, KeyMatch::IsNull)) => return Ok(self.table.all(cx.env.catalog)),
            Some((key, KeyMatch::Eq(value))) => (key, vec![eval(value, &[], cx)?]),
            Some((key, KeyMatch::Any(values))) => match eval(values, &[], cx)? {
                Datum::Array(values) => (key, values.items.clone()),
                _ => (key, Vec::new()),
            },
        };
        Ok(self.table.by_key(*key, &values, cx.env.catalog))
    }

    /// The next row with all its columns.
    fn next_whole(&mut self, cx: &mut Cx) -> Step<Option<Row>> {
        /// Making a piece's rows takes as long as looking at so many.
        const WORK: u32 = 256;
        let mut left = match self.left.take() {
            Some(left) => left,
            None => self.begin(cx)?,
        };
        let row = loop {
            if let Some(row) = self.rows.next() {
                break Some(row);
            }
            cx.worked(WORK);
            match (self.table).next_rows(&mut left, cx.env.catalog, cx.env.system) {
                Some(rows) => self.rows = rows.into_iter(),
                None => break None,
            }
        };
        self.left = Some(left);
        Ok(row)
    }
}

impl Operator for VirtualScanOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            if !self.have_pending {
                cx.tick()?;
                let Some(whole) = self.next_whole(cx)? else {
                    return Ok(false);
                };
                self.pending.clear();
                self.pending.extend(self.columns.iter().map(|c| match *c {
                    n if n > 0 => whole[n as usize - 1].clone(),
                    system::TABLEOID => Datum::Oid(self.table.oid.0),
                    _ => Datum::Null,
                }));
                self.have_pending = true;
            }
            let filter = self.filter.as_ref();
            if show(filter, &mut self.pending, &mut self.have_pending, cx, row)? {
                return Ok(true);
            }
        }
    }

    fn rewind(&mut self, _: &mut Cx) {
        self.left = None;
        self.rows = Vec::new().into_iter();
        self.have_pending = false;
    }
}
