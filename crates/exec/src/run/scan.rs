//! Scans: of a heap in block order, of an index in key order, of a system catalog.

use std::ops::Bound;
use std::rc::Rc;

use throng_access::btree::{Cursor, Direction, KeyRange};
use throng_access::{Fetched, TupleBatch};
use throng_bind::expr::{Expr, system};
use throng_bind::tablesample::Taken;
use throng_buffer::Ring;
use throng_catalog::{Key, Left};
use throng_plan::{IndexScan, KeyMatch, KeySpan, SeqScan};
use throng_types::key::{self, KeyOrder};
use throng_types::page::PAGE_SIZE;
use throng_types::row::RowLayout;
use throng_types::{BlockNo, Datum, Tid};

use super::context::Found;
use super::dead_rows::DeadRows;
use super::eval::{eval, holds, show};
use super::{Cx, Operator, Row, Step, empty, follow};
use crate::large::Fetch;
use crate::table::{Index, Table};

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

/// The one version that a re-check is about, given once if the scan's conditions still hold for it.
#[derive(Default)]
struct Recheck {
    done: bool,
    bytes: Vec<u8>,
}

impl Recheck {
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
    recheck: Recheck,
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
            recheck: Recheck::default(),
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
        if let Some((_, tid)) = cx.recheck.filter(|(rel, _)| *rel == self.plan.rel) {
            return match self.is_meant(tid, cx)? {
                true => self.recheck.next(tid, &mut self.decoder, None, cx, row),
                false => Ok(false),
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
        self.recheck = Recheck::default();
    }
}

/// Rows by index.
pub struct IndexScanOp {
    plan: &'static IndexScan,
    index: Rc<Index>,
    decoder: Decoder,
    /// Ranges still to read after the one in hand, the next one last; None before they are
    /// computed.
    ranges: Option<Vec<KeyRange>>,
    /// Kept for the next look-up.
    cursor: Option<Cursor>,
    /// The cursor is within a range.
    reading: bool,
    /// Room for a look-up's key.
    key: Vec<u8>,
    tids: Vec<Tid>,
    at: usize,
    /// Those of the entries in hand whose rows were found dead.
    dead: DeadRows,
    bytes: Vec<u8>,
    recheck: Recheck,
}

impl IndexScanOp {
    pub fn new(plan: &'static IndexScan, table: Rc<Table>, index: Rc<Index>) -> IndexScanOp {
        IndexScanOp {
            plan,
            index,
            decoder: Decoder::new(table, &plan.columns, &plan.filter),
            ranges: None,
            cursor: None,
            reading: false,
            key: Vec::new(),
            tids: Vec::new(),
            at: 0,
            dead: DeadRows::default(),
            bytes: Vec::new(),
            recheck: Recheck::default(),
        }
    }

    /// There is nothing left to give.
    fn end(&mut self) {
        self.ranges = Some(Vec::new());
        self.reading = false;
        self.tids.clear();
        self.at = 0;
    }

    fn direction(&self) -> Direction {
        match self.plan.reverse {
            true => Direction::Backward,
            false => Direction::Forward,
        }
    }

    /// Finds out what is to be read. A look-up by equality, as most are, is done in the room that
    /// the last one left.
    fn begin(&mut self, cx: &mut Cx) -> Step<()> {
        let is_equality = |matching: &KeyMatch| matches!(matching, KeyMatch::Eq(_));
        let is_look_up = |span: &KeySpan| {
            span.lower.is_none() && span.upper.is_none() && span.prefix.iter().all(is_equality)
        };
        let span = match &self.plan.spans[..] {
            [span] if is_look_up(span) => span,
            _ => {
                self.ranges = Some(self.key_ranges(cx)?);
                return Ok(());
            }
        };
        self.key.clear();
        let mut is_null = false;
        for (matching, order) in span.prefix.iter().zip(&self.index.orders) {
            let KeyMatch::Eq(expr) = matching else {
                continue;
            };
            let value = eval(expr, &[], cx)?;
            is_null |= value.is_null();
            key::encode_one(&value, *order, &mut self.key)?;
        }
        // Nothing is left to read but what is found now: a cursor would only know where it goes on.
        let at_once = self.plan.is_single && cx.env.snapshot.reads().is_none();
        if at_once && !is_null {
            match self.index.tree.get(&self.key, &mut self.tids) {
                Ok(leaf) => self.dead.of(Some(leaf)),
                Err(wait) => {
                    self.tids.clear();
                    return Err(wait.into());
                }
            }
        }
        // One of them at most is seen: the newest as a rule.
        self.tids.reverse();
        self.ranges = Some(Vec::new());
        if at_once || is_null {
            return Ok(());
        }
        let direction = self.direction();
        let cursor = self
            .cursor
            .get_or_insert_with(|| self.index.tree.cursor(KeyRange::all(), direction));
        cursor.seek(&self.key);
        self.reading = true;
        Ok(())
    }

    /// The ranges of keys that satisfy the conditions, the first to read last.
    fn key_ranges(&self, cx: &mut Cx) -> Step<Vec<KeyRange>> {
        let mut ranges = Vec::new();
        for span in &self.plan.spans {
            self.ranges_of(span, cx, &mut ranges)?;
        }
        if self.plan.spans.len() > 1 {
            ranges = KeyRange::union(ranges);
        }
        if !self.plan.reverse {
            ranges.reverse();
        }
        Ok(ranges)
    }

    fn ranges_of(
        &self,
        span: &'static KeySpan,
        cx: &mut Cx,
        ranges: &mut Vec<KeyRange>,
    ) -> Step<()> {
        let mut prefixes = vec![Vec::new()];
        for (matching, order) in span.prefix.iter().zip(&self.index.orders) {
            let parts = key_parts(matching, *order, cx)?;
            prefixes = prefixes
                .iter()
                .flat_map(|prefix| parts.iter().map(|part| [prefix.as_slice(), part].concat()))
                .collect();
        }
        if span.lower.is_none() && span.upper.is_none() {
            ranges.extend(prefixes.into_iter().map(KeyRange::prefix));
            return Ok(());
        }
        let order = self.index.orders[span.prefix.len()];
        let mut ends = [None, None];
        for (end, bound) in ends.iter_mut().zip([&span.lower, &span.upper]) {
            let Some(bound) = bound else { continue };
            let value = eval(&bound.value, &[], cx)?;
            if value.is_null() {
                return Ok(());
            }
            let mut bytes = Vec::new();
            key::encode_one(&value, order, &mut bytes)?;
            *end = Some((bytes, bound.inclusive));
        }
        let [lower, upper] = ends;
        let (low, high) = if order.descending {
            (upper, lower)
        } else {
            (lower, upper)
        };
        ranges.extend(prefixes.iter().map(|p| bounded(p, &low, &high, order)));
        Ok(())
    }

    /// Fills `tids` with the next entries; false at the end.
    fn more(&mut self, cx: &mut Cx) -> Step<bool> {
        if self.ranges.is_none() {
            self.begin(cx)?;
            if self.at < self.tids.len() {
                return Ok(true);
            }
        }
        loop {
            if !self.reading {
                let Some(range) = self.ranges.as_mut().and_then(Vec::pop) else {
                    return Ok(false);
                };
                self.cursor = Some(self.index.tree.cursor(range, self.direction()));
                self.reading = true;
            }
            let Some(cursor) = &mut self.cursor else {
                return Ok(false);
            };
            self.tids.clear();
            self.at = 0;
            let more = match cx.env.snapshot.reads() {
                None => cursor.next(&mut self.tids)?,
                Some(reads) => cursor.next_noting(&mut self.tids, |start, end| {
                    reads.gap(self.index.tree.file(), start, end);
                })?,
            };
            self.reading = more;
            self.dead.of(cursor.leaf());
            if !self.tids.is_empty() {
                return Ok(true);
            }
            cx.tick()?;
        }
    }
}

/// The encodings that satisfy one condition on one key column, in index order, each once.
fn key_parts(matching: &'static KeyMatch, order: KeyOrder, cx: &mut Cx) -> Step<Vec<Vec<u8>>> {
    let values = match matching {
        KeyMatch::Eq(expr) => vec![eval(expr, &[], cx)?],
        KeyMatch::Any(expr) => match eval(expr, &[], cx)? {
            Datum::Array(array) => array.items.clone(),
            _ => Vec::new(),
        },
        KeyMatch::IsNull => {
            let mut bytes = Vec::new();
            key::encode_one(&Datum::Null, order, &mut bytes)?;
            return Ok(vec![bytes]);
        }
    };
    let mut parts = Vec::with_capacity(values.len());
    for value in values.iter().filter(|v| !v.is_null()) {
        let mut bytes = Vec::new();
        key::encode_one(value, order, &mut bytes)?;
        parts.push(bytes);
    }
    parts.sort_unstable();
    parts.dedup();
    Ok(parts)
}

/// One end of a range: the bytes of the value and whether it is in.
type End = Option<(Vec<u8>, bool)>;

/// The keys that begin with `prefix` and go on within the bounds; NULLs satisfy no bound.
fn bounded(prefix: &[u8], low: &End, high: &End, order: KeyOrder) -> KeyRange {
    let after = |bytes: &[u8]| [prefix, bytes].concat();
    let null = || {
        let mut bytes = prefix.to_vec();
        key::encode_one(&Datum::Null, order, &mut bytes).expect("NULL has a key");
        bytes
    };
    let end = |end: &End, nulls_beyond: bool| match end {
        Some((bytes, true)) => Bound::Included(after(bytes)),
        Some((bytes, false)) => Bound::Excluded(after(bytes)),
        None if nulls_beyond => Bound::Excluded(null()),
        None => Bound::Included(prefix.to_vec()),
    };
    KeyRange {
        lower: end(low, order.nulls_first),
        upper: end(high, !order.nulls_first),
    }
}

impl Operator for IndexScanOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if let Some((_, tid)) = cx.recheck.filter(|(rel, _)| *rel == self.plan.rel) {
            let condition = self.plan.condition.as_ref();
            return self
                .recheck
                .next(tid, &mut self.decoder, condition, cx, row);
        }
        loop {
            while let Some(root) = self.tids.get(self.at) {
                let heap = &self.decoder.table.heap;
                let most = self.decoder.reach;
                let found = follow::fetch(heap, *root, cx.env.snapshot, most, &mut self.bytes)?;
                let is_found = matches!(found, Fetched::Version(_));
                let shown = match found {
                    Fetched::Version(tid) => {
                        *cx.found = Some(Found {
                            rel: self.plan.rel,
                            tid,
                            root: *root,
                        });
                        self.decoder.take(tid, &self.bytes, cx, row)?
                    }
                    Fetched::Nothing => false,
                    Fetched::Dead => {
                        self.dead.add(*root);
                        false
                    }
                };
                self.at += 1;
                // Serializable transactions note all that they look for.
                if self.plan.is_single && is_found && cx.env.snapshot.reads().is_none() {
                    self.end();
                }
                if shown {
                    self.dead.pause(&self.index.tree);
                    return Ok(true);
                }
                cx.tick()?;
            }
            self.dead.mark(&self.index.tree);
            let started = self.ranges.is_some();
            if started && !self.reading && self.ranges.as_ref().is_some_and(Vec::is_empty) {
                return Ok(false);
            }
            if !self.more(cx)? {
                return Ok(false);
            }
        }
    }

    fn rewind(&mut self, _: &mut Cx) {
        self.ranges = None;
        self.reading = false;
        self.tids.clear();
        self.at = 0;
        self.dead.forget();
        self.recheck = Recheck::default();
    }

    fn reset(&mut self) -> bool {
        /// A leaf's entries are more than a look-up finds.
        const MANY: usize = 64;
        self.ranges = None;
        self.reading = false;
        self.at = 0;
        self.dead.forget();
        self.recheck = Recheck::default();
        self.decoder.reset();
        self.bytes.clear();
        self.bytes.shrink_to(PAGE_SIZE);
        self.tids.clear();
        self.tids.shrink_to(MANY);
        true
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
