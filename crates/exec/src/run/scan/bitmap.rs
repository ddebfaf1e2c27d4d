//! Scans of what several look-ups find together, page by page of the table.

use std::rc::Rc;

use throng_access::{Fetched, TupleBatch};
use throng_buffer::Ring;
use throng_plan::{Bitmap, BitmapScan, LookUpBy};
use throng_types::{BlockNo, Error, Result, Tid};

use super::index::key_ranges;
use super::tid_set::{TidSet, United};
use super::{Cx, Decoder, Found, Index, OnlyVersion, Operator, Row, Step, Table, eval, follow};

/// The rows that a bitmap finds. All conditions are asked of each: the bitmap may find too many.
pub struct CombinedScanOp {
    plan: &'static BitmapScan,
    /// Of the look-ups, in their order.
    indexes: Vec<Rc<Index>>,
    decoder: Decoder,
    /// None before it is known what is looked for.
    set: Option<TidSet>,
    is_prepared: bool,
    /// What is found next is here or behind it; None: nothing is.
    from: Option<Tid>,
    /// Roots that were found and whose rows are still to be read.
    roots: Vec<Tid>,
    at: usize,
    /// Where everything is found: the pages that are left.
    whole: Option<WholeTable>,
    /// The rows of the page in hand.
    batch: TupleBatch,
    row: usize,
    bytes: Vec<u8>,
    only: OnlyVersion,
}

struct WholeTable {
    block: BlockNo,
    end: BlockNo,
    ring: Option<Ring>,
}

/// Roots that are looked for before their rows are read.
const AHEAD: usize = 256;

impl CombinedScanOp {
    pub fn new(plan: &'static BitmapScan, cx: &Cx) -> Result<CombinedScanOp> {
        let table = Table::of(&plan.table, cx.env.store, &cx.eval)?;
        let mut indexes = Vec::new();
        plan.bitmap.look_ups(&mut |look_up| {
            indexes.push(Index::of(&look_up.index, &plan.table, cx.env.store));
        });
        Ok(CombinedScanOp {
            plan,
            indexes,
            decoder: Decoder::new(table, &plan.columns, &plan.filter),
            set: None,
            is_prepared: false,
            from: Some(Tid::default()),
            roots: Vec::new(),
            at: 0,
            whole: None,
            batch: TupleBatch::new(),
            row: 0,
            bytes: Vec::new(),
            only: OnlyVersion::default(),
        })
    }

    /// Finds out what is to be read.
    fn begin(&mut self, cx: &mut Cx) -> Step<()> {
        let set = match &mut self.set {
            Some(set) => set,
            None => {
                let set = set_of(&self.plan.bitmap, &mut self.indexes.iter(), cx)?;
                self.set.insert(set)
            }
        };
        set.prepare(cx)?;
        if matches!(set, TidSet::Everything) {
            let heap = &self.decoder.table.heap;
            if let Some(reads) = cx.env.snapshot.reads() {
                reads.relation(heap.file());
            }
            self.whole = Some(WholeTable {
                block: 0,
                end: heap.blocks()?,
                ring: None,
            });
        }
        self.is_prepared = true;
        Ok(())
    }

    /// Finds some more roots; false where there are none.
    fn find(&mut self, cx: &mut Cx) -> Step<bool> {
        if self.at >= self.roots.len() {
            self.roots.clear();
            self.at = 0;
        }
        let Some(set) = &mut self.set else {
            return Ok(false);
        };
        while let Some(from) = self.from.filter(|_| self.roots.len() < AHEAD) {
            let found = set.seek(from, cx)?;
            self.from = found.and_then(after);
            self.roots.extend(found);
        }
        Ok(!self.roots.is_empty())
    }

    /// Reads the rows of the next page; false where there is none.
    fn read_page(&mut self, cx: &mut Cx) -> Step<bool> {
        let heap = &self.decoder.table.heap;
        if let Some(whole) = &mut self.whole {
            if whole.block >= whole.end {
                return Ok(false);
            }
            let end = whole.end;
            let ring = whole
                .ring
                .get_or_insert_with(|| Ring::for_scan(heap.pool(), end));
            self.batch.clear();
            self.row = 0;
            follow::scan_page(heap, whole.block, cx.env.snapshot, ring, &mut self.batch)?;
            whole.block += 1;
            return Ok(true);
        }
        if self.at >= self.roots.len() && !self.find(cx)? {
            return Ok(false);
        }
        let heap = &self.decoder.table.heap;
        let left = &self.roots[self.at..];
        let block = left[0].block;
        let of_page = left.iter().take_while(|root| root.block == block).count();
        self.batch.clear();
        self.row = 0;
        heap.fetch_ahead(left);
        heap.read_rows(&left[..of_page], cx.env.snapshot, &mut self.batch)?;
        self.at += of_page;
        Ok(true)
    }

    /// The next row for a serializable transaction, which notes each that it looks at.
    fn next_noted(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            if self.at >= self.roots.len() && !self.find(cx)? {
                return Ok(false);
            }
            let root = self.roots[self.at];
            let heap = &self.decoder.table.heap;
            let most = self.decoder.reach;
            let found = follow::fetch(heap, root, cx.env.snapshot, most, &mut self.bytes)?;
            let mut shown = false;
            if let Fetched::Version(tid) = found {
                let rel = self.plan.rel;
                *cx.found = Some(Found { rel, tid, root });
                shown = self.decoder.take(tid, &self.bytes, cx, row)?;
            }
            self.at += 1;
            if shown {
                return Ok(true);
            }
            cx.tick()?;
        }
    }
}

/// The place behind one; none behind the last.
fn after(tid: Tid) -> Option<Tid> {
    let Tid { block, slot } = tid;
    match slot.checked_add(1) {
        Some(slot) => Some(Tid { block, slot }),
        None => Some(Tid {
            block: block.checked_add(1)?,
            slot: 0,
        }),
    }
}

fn set_of(
    bitmap: &'static Bitmap,
    indexes: &mut std::slice::Iter<'_, Rc<Index>>,
    cx: &mut Cx,
) -> Step<TidSet> {
    let mut all = |parts: &'static [Bitmap], cx: &mut Cx| {
        let parts = parts.iter();
        let sets = parts.map(|part| set_of(part, indexes, cx));
        sets.collect::<Step<Vec<TidSet>>>()
    };
    Ok(match bitmap {
        Bitmap::And(parts) => TidSet::All(all(parts, cx)?),
        Bitmap::Or(parts) => TidSet::Any(United::new(all(parts, cx)?)),
        Bitmap::LookUp(look_up) => {
            let index = indexes
                .next()
                .ok_or_else(|| Error::internal("a look-up without its index"))?;
            match &look_up.by {
                LookUpBy::Spans(spans) => {
                    TidSet::of_ranges(key_ranges(spans, index, cx)?, &index.tree)
                }
                LookUpBy::Keys(matches) => {
                    let classes = index.inverted.as_deref().unwrap_or_default();
                    let mut sets = Vec::with_capacity(matches.len());
                    for matching in matches {
                        let class = classes
                            .get(usize::from(matching.column))
                            .ok_or_else(|| Error::internal("a key column without its class"))?;
                        let query = eval(&matching.query, &[], cx)?;
                        if query.is_null() {
                            return Ok(TidSet::Nothing);
                        }
                        let search = (class.extract_query)(&query, matching.strategy, &cx.eval)?;
                        sets.push(TidSet::of(
                            search.simplified(),
                            matching.column,
                            &index.tree,
                        ));
                    }
                    TidSet::All(sets)
                }
            }
        }
    })
}

impl Operator for CombinedScanOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        let rel = self.plan.rel;
        if let Some(version) = cx.only_version(rel) {
            return match version {
                Some(tid) => self.only.next(tid, &mut self.decoder, None, cx, row),
                None => Ok(false),
            };
        }
        if !self.is_prepared {
            self.begin(cx)?;
        }
        if self.whole.is_none() && cx.env.snapshot.reads().is_some() {
            return self.next_noted(cx, row);
        }
        loop {
            while self.row < self.batch.len() {
                let tid = self.batch.tid(self.row);
                let root = self.batch.root(self.row);
                *cx.found = Some(Found { rel, tid, root });
                let bytes = self.batch.row(self.row);
                let shown = self.decoder.take(tid, bytes, cx, row)?;
                self.row += 1;
                if shown {
                    return Ok(true);
                }
                cx.tick()?;
            }
            if !self.read_page(cx)? {
                return Ok(false);
            }
            cx.tick()?;
        }
    }

    fn rewind(&mut self, _: &mut Cx) {
        self.set = None;
        self.is_prepared = false;
        self.from = Some(Tid::default());
        self.roots.clear();
        self.at = 0;
        self.whole = None;
        self.batch.clear();
        self.row = 0;
        self.only = OnlyVersion::default();
    }
}
