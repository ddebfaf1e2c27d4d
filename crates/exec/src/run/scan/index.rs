//! Scans of an index: in key order, row by row, or in the order in which the rows lie.

use std::ops::Bound;
use std::rc::Rc;

use throng_access::btree::{Cursor, Direction, Entries, KeyRange};
use throng_access::{Fetched, TupleBatch};
use throng_plan::{IndexScan, KeyBounds, KeyMatch, KeySpan, SkippedKey};
use throng_types::key::{self, KeyOrder};
use throng_types::page::PAGE_SIZE;
use throng_types::{Datum, Error, Oid, Result, Tid, oid};

use super::{Cx, Decoder, Found, Index, OnlyVersion, Operator, Row, Step, Table, eval, follow};
use crate::run::BoxOperator;
use crate::run::dead_rows::DeadRows;

/// The operator of a scan.
pub fn index_scan(plan: &'static IndexScan, cx: &Cx) -> Result<BoxOperator> {
    let table = Table::of(&plan.table, cx.env.store, &cx.eval)?;
    let index = Index::of(&plan.index, &plan.table, cx.env.store);
    Ok(match plan.in_order || plan.is_single {
        true => Box::new(IndexScanOp::new(plan, table, index)),
        false => Box::new(BitmapScanOp::new(plan, table, index)),
    })
}

/// Rows by index.
pub struct IndexScanOp {
    plan: &'static IndexScan,
    index: Rc<Index>,
    decoder: Decoder,
    /// Ranges still to read after the one in hand, the next one last; None before they are
    /// computed.
    ranges: Option<Vec<KeyRange>>,
    /// So many leaves' entries are read as they are found; None: all.
    leaves: Option<u32>,
    /// Finds more ranges when those have been read.
    skip: Option<Box<Skip>>,
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
    only: OnlyVersion,
}

impl IndexScanOp {
    pub fn new(plan: &'static IndexScan, table: Rc<Table>, index: Rc<Index>) -> IndexScanOp {
        IndexScanOp {
            plan,
            index,
            decoder: Decoder::new(table, &plan.columns, &plan.filter),
            ranges: None,
            leaves: None,
            skip: None,
            cursor: None,
            reading: false,
            key: Vec::new(),
            tids: Vec::new(),
            at: 0,
            dead: DeadRows::default(),
            bytes: Vec::new(),
            only: OnlyVersion::default(),
        }
    }

    /// There is nothing left to give.
    fn end(&mut self) {
        self.ranges = Some(Vec::new());
        self.skip = None;
        self.reading = false;
        self.tids.clear();
        self.at = 0;
    }

    /// There are no more entries to read.
    fn is_read(&self) -> bool {
        !self.reading && self.skip.is_none() && self.ranges.as_ref().is_some_and(Vec::is_empty)
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
            span.bounds.is_empty() && span.skip.is_none() && span.prefix.iter().all(is_equality)
        };
        let span = match &self.plan.spans[..] {
            [span] if is_look_up(span) => span,
            [span] if let Some(skipped) = span.skip.as_deref() => {
                self.skip = Skip::new(self.plan, (span, skipped), &self.index, cx)?.map(Box::new);
                self.ranges = Some(Vec::new());
                return Ok(());
            }
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
        let mut ranges = key_ranges(&self.plan.spans, &self.index, cx)?;
        if !self.plan.reverse {
            ranges.reverse();
        }
        Ok(ranges)
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
                    if !self.skip(cx)? {
                        return Ok(false);
                    }
                    continue;
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

    /// Finds the ranges of the next value of a skipped column; false where there is none.
    fn skip(&mut self, cx: &mut Cx) -> Step<bool> {
        let Some(skip) = &mut self.skip else {
            return Ok(false);
        };
        cx.tick()?;
        let ranges = self.ranges.get_or_insert_default();
        if !skip.next(&self.index, ranges)? {
            self.skip = None;
            return Ok(false);
        }
        Ok(true)
    }
}

/// The ranges of keys that spans say, in order.
pub fn key_ranges(spans: &'static [KeySpan], index: &Index, cx: &mut Cx) -> Step<Vec<KeyRange>> {
    let mut ranges = Vec::new();
    let orders = &index.orders;
    for span in spans {
        let prefixes = key_prefixes(&span.prefix, orders, cx)?;
        if let Some(ends) = KeyEnds::of(&span.bounds, orders, span.prefix.len(), cx)? {
            ranges.extend(prefixes.iter().map(|prefix| ends.after(prefix)));
        }
    }
    match spans.len() {
        1 => Ok(ranges),
        _ => Ok(KeyRange::union(ranges)),
    }
}

/// What finds the ranges of a span that [skips](SkippedKey) a column's values.
struct Skip {
    /// Where values are still to be found: how long the prefix before them is, and the range. The
    /// next one last.
    left: Vec<(usize, KeyRange)>,
    /// The walk to the next value in the last of them.
    cursor: Option<Cursor>,
    found: Entries,
    /// The column, and how its values are ordered.
    column: (Oid, KeyOrder),
    /// What keys have after a value.
    tails: Vec<Vec<u8>>,
    ends: KeyEnds,
}

impl Skip {
    /// None where no key is to be read.
    fn new(
        plan: &'static IndexScan,
        (span, skipped): (&'static KeySpan, &'static SkippedKey),
        index: &Index,
        cx: &mut Cx,
    ) -> Step<Option<Skip>> {
        let (at, orders) = (span.prefix.len(), &index.orders);
        let behind = at + 1 + skipped.then.len();
        let values = KeyEnds::of(&skipped.bounds, orders, at, cx)?;
        let ends = KeyEnds::of(&span.bounds, orders, behind, cx)?;
        let (Some(values), Some(ends)) = (values, ends) else {
            return Ok(None);
        };
        // Ranges are read from the last one on.
        let prefixes = key_prefixes(&span.prefix, orders, cx)?.into_iter().rev();
        let left = prefixes.map(|prefix| (prefix.len(), values.after(&prefix)));
        let left: Vec<_> = left.collect();
        let mut tails = key_prefixes(&skipped.then, &orders[at + 1..], cx)?;
        tails.reverse();
        if let Some(reads) = cx.env.snapshot.reads() {
            // Rows with values that nobody has now are looked for, too.
            for (_, range) in &left {
                if let Some((start, end)) = range.clone().half_open() {
                    reads.gap(index.tree.file(), &start, end.as_deref());
                }
            }
        }
        Ok(Some(Skip {
            left,
            cursor: None,
            found: Entries::default(),
            column: (plan.table.columns[index.columns[at]].ty.oid, orders[at]),
            tails,
            ends,
        }))
    }

    /// Adds the ranges of the next value; false where there is none. May add none, and is called
    /// again then.
    fn next(&mut self, index: &Index, ranges: &mut Vec<KeyRange>) -> Step<bool> {
        let Some((prefix, range)) = self.left.last_mut() else {
            return Ok(false);
        };
        let cursor = self.cursor.get_or_insert_with(|| {
            let cursor = index.tree.cursor(range.clone(), Direction::Forward);
            cursor.with_batch(1)
        });
        let more = cursor.next_entries(&mut self.found)?;
        if self.found.is_empty() {
            if !more {
                self.cursor = None;
                self.left.pop();
            }
            return Ok(true);
        }
        let key = self.found.key(0);
        let (ty, order) = self.column;
        let len = key::part_len(&key[*prefix..], ty, order)
            .ok_or_else(|| Error::internal("an index key without its parts"))?;
        let with_value = key[..*prefix + len].to_vec();
        for tail in &self.tails {
            let whole = [&with_value[..], tail].concat();
            ranges.push(self.ends.after(&whole));
        }
        self.cursor = None;
        range.lower = Bound::Excluded(with_value);
        Ok(true)
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

/// The beginnings of keys that satisfy a condition on each of the first columns, in index order.
fn key_prefixes(
    matches: &'static [KeyMatch],
    orders: &[KeyOrder],
    cx: &mut Cx,
) -> Step<Vec<Vec<u8>>> {
    let mut prefixes = vec![Vec::new()];
    for (matching, order) in matches.iter().zip(orders) {
        let parts = key_parts(matching, *order, cx)?;
        prefixes = prefixes
            .iter()
            .flat_map(|prefix| parts.iter().map(|part| [prefix.as_slice(), part].concat()))
            .collect();
    }
    Ok(prefixes)
}

/// The ends of ranges on one key column.
struct KeyEnds {
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
}

impl KeyEnds {
    /// Of the key column `nth`; without bounds there may be none. None where a bound is NULL, which
    /// nothing satisfies. NULLs satisfy no bound.
    fn of(
        bounds: &'static KeyBounds,
        orders: &[KeyOrder],
        nth: usize,
        cx: &mut Cx,
    ) -> Step<Option<KeyEnds>> {
        let order = orders.get(nth).copied().unwrap_or_default();
        let mut ends = [const { Bound::Unbounded }; 2];
        for (end, bound) in ends.iter_mut().zip([&bounds.lower, &bounds.upper]) {
            let Some(bound) = bound else { continue };
            let value = eval(&bound.value, &[], cx)?;
            if value.is_null() {
                return Ok(None);
            }
            if let Some(reach) = bound.reach {
                let blank_padded = bound.value.type_oid() == oid::BPCHAR;
                let Some((low, high)) = reach.stretch(&value, blank_padded)? else {
                    return Ok(None);
                };
                return Ok(Some(KeyEnds { low, high }));
            }
            let mut bytes = Vec::new();
            key::encode_one(&value, order, &mut bytes)?;
            *end = match bound.inclusive {
                true => Bound::Included(bytes),
                false => Bound::Excluded(bytes),
            };
        }
        if order.descending {
            ends.swap(0, 1);
        }
        let [mut low, mut high] = ends;
        let nulls = match order.nulls_first {
            true => &mut low,
            false => &mut high,
        };
        if !bounds.is_empty() && *nulls == Bound::Unbounded {
            let mut bytes = Vec::new();
            key::encode_one(&Datum::Null, order, &mut bytes)?;
            *nulls = Bound::Excluded(bytes);
        }
        Ok(Some(KeyEnds { low, high }))
    }

    /// The keys that begin with `prefix` and go on within the ends.
    fn after(&self, prefix: &[u8]) -> KeyRange {
        let end = |end: &Bound<Vec<u8>>| match end {
            Bound::Included(bytes) => Bound::Included([prefix, bytes].concat()),
            Bound::Excluded(bytes) => Bound::Excluded([prefix, bytes].concat()),
            Bound::Unbounded => Bound::Included(prefix.to_vec()),
        };
        KeyRange {
            lower: end(&self.low),
            upper: end(&self.high),
        }
    }
}

impl Operator for IndexScanOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if let Some(version) = cx.only_version(self.plan.rel) {
            let condition = self.plan.condition.as_ref();
            return match version {
                Some(tid) => self.only.next(tid, &mut self.decoder, condition, cx, row),
                None => Ok(false),
            };
        }
        loop {
            while let Some(root) = self.tids.get(self.at) {
                let heap = &self.decoder.table.heap;
                let most = self.decoder.reach;
                heap.fetch_ahead(&self.tids[self.at..]);
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
            if self.is_read() || self.leaves == Some(0) || !self.more(cx)? {
                return Ok(false);
            }
            self.leaves = self.leaves.map(|left| left - 1);
        }
    }

    fn rewind(&mut self, _: &mut Cx) {
        self.ranges = None;
        self.skip = None;
        self.reading = false;
        self.tids.clear();
        self.at = 0;
        self.dead.forget();
        self.only = OnlyVersion::default();
    }

    fn reset(&mut self) -> bool {
        /// A leaf's entries are more than a look-up finds.
        const MANY: usize = 64;
        self.ranges = None;
        self.skip = None;
        self.reading = false;
        self.at = 0;
        self.dead.forget();
        self.only = OnlyVersion::default();
        self.decoder.reset();
        self.bytes.clear();
        self.bytes.shrink_to(PAGE_SIZE);
        self.tids.clear();
        self.tids.shrink_to(MANY);
        true
    }
}

/// Rows by index in no order: where they are many, in the order in which they lie, so that each
/// page is found once. PostgreSQL calls it a bitmap heap scan.
pub struct BitmapScanOp {
    /// What finds the entries, and reads the rows of the first ones.
    scan: IndexScanOp,
    /// The first ones are read.
    many: bool,
    /// Roots that are gathered next, at least.
    most: usize,
    /// The roots of rows that are still to be read, in order.
    roots: Vec<Tid>,
    at: usize,
    /// They are being gathered.
    gathering: bool,
    /// The rows of the page in hand.
    batch: TupleBatch,
    row: usize,
}

/// Leaves whose rows are read as they are found, where it is not known that there are many.
const FIRST_LEAVES: u32 = 2;
/// Roots that are gathered first; each time it is eight times as many, for who reads wants more.
const FIRST_ROOTS: usize = 1 << 11;
/// Roots that are gathered at most: a megabyte.
const MOST_ROOTS: usize = 1 << 17;

impl BitmapScanOp {
    pub fn new(plan: &'static IndexScan, table: Rc<Table>, index: Rc<Index>) -> BitmapScanOp {
        let mut made = BitmapScanOp {
            scan: IndexScanOp::new(plan, table, index),
            many: false,
            most: 0,
            roots: Vec::new(),
            at: 0,
            gathering: false,
            batch: TupleBatch::new(),
            row: 0,
        };
        made.start_over();
        made
    }

    fn start_over(&mut self) {
        let by_place = self.scan.plan.by_place;
        self.scan.leaves = Some(if by_place { 0 } else { FIRST_LEAVES });
        self.many = by_place;
        self.most = if by_place { MOST_ROOTS } else { FIRST_ROOTS };
        self.roots.clear();
        self.at = 0;
        self.gathering = false;
        self.batch.clear();
        self.row = 0;
    }

    /// Gathers roots; false where there are no more.
    fn gather(&mut self, cx: &mut Cx) -> Step<bool> {
        if !self.gathering {
            self.roots.clear();
            self.at = 0;
            self.gathering = true;
        }
        while self.roots.len() < self.most && !self.scan.is_read() && self.scan.more(cx)? {
            self.roots.append(&mut self.scan.tids);
            cx.tick()?;
        }
        self.roots.sort_unstable();
        self.gathering = false;
        self.most = MOST_ROOTS.min(self.most * 8);
        Ok(!self.roots.is_empty())
    }

    /// Reads the rows of the next page.
    fn read_page(&mut self, cx: &mut Cx) -> Step<()> {
        let left = &self.roots[self.at..];
        let block = left[0].block;
        let of_page = left.iter().take_while(|root| root.block == block).count();
        self.batch.clear();
        self.row = 0;
        let heap = &self.scan.decoder.table.heap;
        heap.fetch_ahead(left);
        heap.read_rows(&left[..of_page], cx.env.snapshot, &mut self.batch)?;
        self.at += of_page;
        Ok(())
    }
}

impl Operator for BitmapScanOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        let rel = self.scan.plan.rel;
        if cx.only_version(rel).is_some() {
            return self.scan.next(cx, row);
        }
        if self.scan.leaves.is_none() || cx.env.snapshot.reads().is_some() {
            // Each row that is looked at is noted; until the end, though that may end before it.
            self.scan.leaves = None;
            return self.scan.next(cx, row);
        }
        if !self.many {
            if self.scan.next(cx, row)? {
                return Ok(true);
            }
            self.many = true;
        }
        loop {
            while self.row < self.batch.len() {
                let tid = self.batch.tid(self.row);
                let root = self.batch.root(self.row);
                *cx.found = Some(Found { rel, tid, root });
                let bytes = self.batch.row(self.row);
                let shown = self.scan.decoder.take(tid, bytes, cx, row)?;
                self.row += 1;
                if shown {
                    return Ok(true);
                }
                cx.tick()?;
            }
            let is_there = !self.gathering && self.at < self.roots.len();
            if !is_there && !self.gather(cx)? {
                return Ok(false);
            }
            self.read_page(cx)?;
            cx.tick()?;
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.scan.rewind(cx);
        self.start_over();
    }

    fn reset(&mut self) -> bool {
        self.start_over();
        self.roots.shrink_to(FIRST_ROOTS);
        self.batch = TupleBatch::new();
        self.scan.reset()
    }
}
