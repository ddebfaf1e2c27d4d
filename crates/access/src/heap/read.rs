//! Reading: one row by its root, one version by its tid, a page of rows, and how a row stands now.

use throng_buffer::{PageRef, Ring, Try};
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, Lsn, Tid, Xid};

use super::page::{self, MAX_SLOTS, PageBytes, Slot};
use super::tuple::{TUPLE_HEADER, TupleHeader};
use super::{Heap, Liveness};
use crate::{TxContext, Visibility, XidStatus};

/// Rows copied out of pages, in one arena: their bytes one after another, or the pages that are
/// full of them whole.
#[derive(Default)]
pub struct TupleBatch {
    arena: Vec<u8>,
    rows: Vec<RowAt>,
}

/// One row of a [`TupleBatch`].
#[derive(Clone, Copy, Debug)]
pub struct RowAt {
    /// The version.
    pub tid: Tid,
    /// The slot on the same page that index entries name.
    root: u16,
    start: u32,
    len: u16,
}

impl RowAt {
    /// What index entries of this row name.
    pub fn root(&self) -> Tid {
        Tid::new(self.tid.block, self.root)
    }
}

impl TupleBatch {
    pub fn new() -> TupleBatch {
        TupleBatch::default()
    }
    pub fn clear(&mut self) {
        self.arena.clear();
        self.rows.clear();
    }
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// Bytes that its rows keep.
    pub fn bytes(&self) -> usize {
        self.arena.len()
    }
    pub fn rows(&self) -> &[RowAt] {
        &self.rows
    }
    pub fn tid(&self, i: usize) -> Tid {
        self.rows[i].tid
    }
    pub fn root(&self, i: usize) -> Tid {
        self.rows[i].root()
    }
    /// The row's bytes, without the tuple's header.
    pub fn row(&self, i: usize) -> &[u8] {
        let at = &self.rows[i];
        &self.arena[at.start as usize..][..at.len.into()]
    }
    pub fn iter(&self) -> impl Iterator<Item = (Tid, &[u8])> {
        (0..self.len()).map(|i| (self.tid(i), self.row(i)))
    }
    /// Puts the rows from the `first` on in the order in which they lie on their page: chains are
    /// walked by their roots, and an update's version lies behind what was there before it.
    fn in_place_order(&mut self, first: usize) {
        let rows = self.rows.get_mut(first..).unwrap_or_default();
        if !rows.is_sorted_by_key(|row| row.tid.slot) {
            rows.sort_unstable_by_key(|row| row.tid.slot);
        }
    }
    /// Copies the rows from the `first` on, whose places are yet those on their page: one by one,
    /// or with the page around them where they are most of it.
    fn copy(&mut self, first: usize, page: &[u8; PAGE_SIZE]) {
        let TupleBatch { arena, rows } = self;
        let rows = rows.get_mut(first..).unwrap_or_default();
        let bytes: usize = rows.iter().map(|row| usize::from(row.len)).sum();
        if 2 * bytes > PAGE_SIZE {
            let base = arena.len() as u32;
            arena.extend_from_slice(page);
            rows.iter_mut().for_each(|row| row.start += base);
            return;
        }
        for row in rows {
            let start = row.start as usize;
            row.start = arena.len() as u32;
            arena.extend_from_slice(&page[start..][..row.len.into()]);
        }
    }
}

/// One version of a chain.
#[derive(Clone, Copy)]
pub(super) struct Version {
    pub slot: u16,
    /// Where the tuple is on the page, and its size with its header.
    pub at: usize,
    pub len: usize,
    pub header: TupleHeader,
}

/// Walks a HOT chain from a root slot, oldest version first.
///
/// Ends where the next tuple was not made by whoever replaced the last one (the slot has been given
/// to another row), and after as many steps as a page has slots, so that a torn page cannot hold
/// it.
pub(super) struct Chain<'a, P> {
    page: &'a P,
    block: BlockNo,
    slot: u16,
    /// The `xmax` of the version before, which the next one's `xmin` must be.
    made_by: Option<Xid>,
    left: u16,
}

impl<'a, P: PageBytes> Chain<'a, P> {
    #[inline]
    pub fn new(page: &'a P, root: Tid) -> Chain<'a, P> {
        let mut chain = Chain {
            page,
            block: root.block,
            slot: 0,
            made_by: None,
            left: MAX_SLOTS,
        };
        if !page::is_heap(page) {
            return chain;
        }
        chain.slot = match page::slot(page, root.slot) {
            Slot::Redirect(target) => target,
            // A heap-only tuple is nobody's root: the entry that led here is older than the slot's
            // use.
            Slot::Normal { off, .. } if !TupleHeader::read(page, off.into()).is_heap_only() => {
                root.slot
            }
            _ => 0,
        };
        chain
    }
}

impl<P: PageBytes> Iterator for Chain<'_, P> {
    type Item = Version;

    #[inline]
    fn next(&mut self) -> Option<Version> {
        let slot = self.slot;
        let (at, len, header) = page::tuple(self.page, slot)?;
        if self.left == 0 || self.made_by.is_some_and(|xid| header.xmin != xid) {
            return None;
        }
        self.left -= 1;
        self.slot = 0;
        if header.is_hot_updated() && !header.xmax_is_void() && header.next.block == self.block {
            self.slot = header.next.slot;
            self.made_by = Some(header.xmax);
        }
        Some(Version {
            slot,
            at,
            len,
            header,
        })
    }
}

/// What an index entry leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The version that is shown.
    Version(Tid),
    /// None that is shown.
    Nothing,
    /// Nobody sees a version there, now or later, by commits that are on disk: the entry may be
    /// marked.
    Dead,
}

impl Heap {
    /// The row that an index entry leads to, as `vis` shows it: its bytes into `out`, its version's
    /// tid returned.
    ///
    /// Writes nothing that other cores read.
    pub fn fetch(
        &self,
        root: Tid,
        vis: &(impl Visibility + ?Sized),
        out: &mut Vec<u8>,
    ) -> Try<Option<Tid>> {
        let fetched = self.fetch_first(root, vis, PAGE_SIZE, out)?;
        Ok(match fetched {
            Fetched::Version(tid) => Some(tid),
            Fetched::Nothing | Fetched::Dead => None,
        })
    }

    /// As [`Heap::fetch`], for who needs no more of the row than its first `most` bytes, so that
    /// cold memory is not read for nothing, and marks entries of dead rows.
    pub fn fetch_first(
        &self,
        root: Tid,
        vis: &(impl Visibility + ?Sized),
        most: usize,
        out: &mut Vec<u8>,
    ) -> Try<Fetched> {
        let near = page::slot_offset(root.slot.max(1));
        self.pool
            .read_near(self.page_id(root.block), near, |page: &PageRef<'_>| {
                out.clear();
                vis.again();
                let mut chain = Chain::new(page, root);
                let Some(seen) = chain.find(|version| vis.visible(&version.header)) else {
                    return match is_gone(page, root, vis) {
                        true => Fetched::Dead,
                        false => Fetched::Nothing,
                    };
                };
                page.append_to(
                    seen.at + TUPLE_HEADER,
                    seen.len.saturating_sub(TUPLE_HEADER).min(most),
                    out,
                );
                Fetched::Version(Tid::new(root.block, seen.slot))
            })
    }

    /// Exactly this version's bytes, if it is the one that `vis` shows.
    pub fn fetch_version(
        &self,
        tid: Tid,
        vis: &(impl Visibility + ?Sized),
        out: &mut Vec<u8>,
    ) -> Try<bool> {
        let header = self.read_version(tid, out)?;
        Ok(header.is_some_and(|header| vis.visible(&header)))
    }

    /// This version's bytes and header, whoever may see it; `None` when there is no tuple there.
    pub fn read_version(&self, tid: Tid, out: &mut Vec<u8>) -> Try<Option<TupleHeader>> {
        self.pool
            .read(self.page_id(tid.block), |page: &PageRef<'_>| {
                out.clear();
                if !page::is_heap(page) {
                    return None;
                }
                let (at, len, header) = page::tuple(page, tid.slot)?;
                page.append_to(at + TUPLE_HEADER, len.saturating_sub(TUPLE_HEADER), out);
                Some(header)
            })
    }

    /// The slot that index entries name for the version `tid`: the root of its chain, itself if it
    /// begins one.
    pub fn root_of(&self, tid: Tid) -> Try<Tid> {
        let page = self.pool.shared(self.page_id(tid.block))?;
        let heap_only =
            page::tuple(&*page, tid.slot).is_some_and(|(_, _, header)| header.is_heap_only());
        if !page::is_heap(&*page) || !heap_only {
            return Ok(tid);
        }
        let mut roots = (1..=page::slot_count(&*page)).map(|slot| Tid::new(tid.block, slot));
        let root =
            roots.find(|root| Chain::new(&*page, *root).any(|version| version.slot == tid.slot));
        Ok(root.unwrap_or(tid))
    }

    /// Whether a tid leads to any version, or may again: its slot is in use.
    pub fn has_slot(&self, tid: Tid) -> Try<bool> {
        self.pool
            .read(self.page_id(tid.block), |page: &PageRef<'_>| {
                page::is_heap(page)
                    && (1..=page::slot_count(page)).contains(&tid.slot)
                    && !matches!(page::slot(page, tid.slot), Slot::Unused | Slot::Dead)
            })
    }

    /// Appends every row of the block that `vis` shows, in the order in which they lie there. A
    /// block that holds no rows adds none. `ring` is the scan's own ([`Ring::for_scan`]), for all
    /// of its blocks.
    pub fn scan_page(
        &self,
        block: BlockNo,
        vis: &(impl Visibility + ?Sized),
        ring: &mut Ring,
        batch: &mut TupleBatch,
    ) -> Try<()> {
        let page = self.pool.shared_with(self.page_id(block), ring)?;
        scan(&page, block, vis, batch);
        Ok(())
    }

    /// Has rows that are read soon brought into the core's cache, where `roots` are read one after
    /// the other from the first on. Four waits for memory lead to a row on a page of its own, one
    /// after the other; so many rows are on their way at once, each some steps before the next.
    #[inline]
    pub fn fetch_ahead(&self, roots: &[Tid]) {
        // How many rows before its turn what is fetched.
        const ROW: usize = 4;
        const PAGE: usize = 8;
        const BUCKET: usize = 12;
        let Some(row) = roots.get(ROW) else { return };
        let page = self.page_id(row.block);
        let at = page::slot_offset(row.slot.max(1));
        if let Some(word) = self.pool.glance(page, at) {
            let raw = (word >> (at % 8 * 8)) as u32;
            if let Slot::Normal { off, .. } = Slot::decode(raw) {
                self.pool.fetch_page_ahead(page, off.into());
            }
        }
        if let Some(root) = roots.get(PAGE) {
            let at = page::slot_offset(root.slot.max(1));
            self.pool.fetch_page_ahead(self.page_id(root.block), at);
        }
        if let Some(root) = roots.get(BUCKET) {
            self.pool.fetch_bucket_ahead(self.page_id(root.block));
        }
    }

    /// Appends the rows under some roots of one block, which are in order, that `vis` shows, in the
    /// order in which they lie there.
    pub fn read_rows(
        &self,
        roots: &[Tid],
        vis: &(impl Visibility + ?Sized),
        batch: &mut TupleBatch,
    ) -> Try<()> {
        if let Some(first) = roots.first() {
            let page = self.pool.shared(self.page_id(first.block))?;
            let slots = roots.iter().map(|root| root.slot);
            take_rows(&page, first.block, slots, vis, batch);
        }
        Ok(())
    }

    /// As [`Heap::scan_page`]; where what it found is what everybody finds there until the page
    /// changes, the page's LSN, which every change moves on.
    pub fn scan_settled(
        &self,
        block: BlockNo,
        vis: &(impl Visibility + ?Sized),
        ring: &mut Ring,
        batch: &mut TupleBatch,
    ) -> Try<Option<Lsn>> {
        let page = self.pool.shared_with(self.page_id(block), ring)?;
        scan(&page, block, vis, batch);
        Ok(is_settled(&page, vis).then(|| page.lsn()))
    }

    /// The LSN of a block's page: whether it has changed since [`Heap::scan_settled`].
    pub fn page_lsn(&self, block: BlockNo, ring: &mut Ring) -> Try<Lsn> {
        Ok(self.pool.shared_with(self.page_id(block), ring)?.lsn())
    }

    /// How the row under a root stands, uncommitted changes included: what a unique index must know
    /// before it lets a key in.
    pub fn liveness(&self, root: Tid, ctx: &dyn TxContext) -> Try<Liveness> {
        let page = self.pool.shared(self.page_id(root.block))?;
        for Version { slot, header, .. } in Chain::new(&*page, root) {
            match maker(&header, ctx) {
                Ended::No(xid) => return Ok(Liveness::InProgress(xid)),
                Ended::Undone => continue,
                Ended::Done => {}
            }
            match ender(&header, ctx) {
                Ended::No(xid) => return Ok(Liveness::InProgress(xid)),
                Ended::Undone => return Ok(Liveness::Live(Tid::new(root.block, slot))),
                Ended::Done => {}
            }
        }
        Ok(Liveness::Dead)
    }

    /// Whether no version under this root is or will be visible to anybody: the index entry may go.
    pub fn is_dead(&self, root: Tid, ctx: &dyn TxContext) -> Try<bool> {
        let page = self.pool.shared(self.page_id(root.block))?;
        Ok(Chain::new(&*page, root)
            .all(|version| super::prune::is_dead_to_all(&version.header, ctx)))
    }
}

fn scan(
    page: &[u8; PAGE_SIZE],
    block: BlockNo,
    vis: &(impl Visibility + ?Sized),
    batch: &mut TupleBatch,
) {
    let slots = match page::is_heap(page) {
        true => page::slot_count(page),
        false => 0,
    };
    take_rows(page, block, 1..=slots, vis, batch);
}

/// Appends the rows under the roots in these slots that `vis` shows.
#[inline]
fn take_rows(
    page: &[u8; PAGE_SIZE],
    block: BlockNo,
    roots: impl Iterator<Item = u16>,
    vis: &(impl Visibility + ?Sized),
    batch: &mut TupleBatch,
) {
    vis.again();
    let first = batch.len();
    for root in roots {
        let mut chain = Chain::new(page, Tid::new(block, root));
        let Some(seen) = chain.find(|version| vis.visible(&version.header)) else {
            continue;
        };
        let start = seen.at + TUPLE_HEADER;
        // A row that is not whole on its page is damaged, and is found to be when it is read.
        let row = page.get(start..seen.at + seen.len).unwrap_or_default();
        batch.rows.push(RowAt {
            tid: Tid::new(block, seen.slot),
            root,
            start: start.min(PAGE_SIZE) as u32,
            len: row.len() as u16,
        });
    }
    batch.copy(first, page);
    batch.in_place_order(first);
}

/// Whether what an entry named `root` for is gone for all.
fn is_gone<P: PageBytes>(page: &P, root: Tid, vis: &(impl Visibility + ?Sized)) -> bool {
    if !page::is_heap(page) {
        return false;
    }
    match page::slot(page, root.slot) {
        // Pruning went by the commit that ended the last version, which was on disk.
        Slot::Dead => true,
        Slot::Unused => false,
        Slot::Normal { .. } | Slot::Redirect(_) => {
            let mut versions = Chain::new(page, root).peekable();
            versions.peek().is_some() && versions.all(|version| vis.is_gone(&version.header))
        }
    }
}

/// Whether each version on the page is there for all, or gone for all.
fn is_settled(page: &[u8; PAGE_SIZE], vis: &(impl Visibility + ?Sized)) -> bool {
    let slots = match page::is_heap(page) {
        true => page::slot_count(page),
        false => 0,
    };
    (1..=slots)
        .filter_map(|slot| page::tuple(page, slot))
        .all(|(_, _, header)| vis.is_settled(&header))
}

/// Whether something that a transaction did to a version counts.
pub(super) enum Ended {
    /// Not decided: this other transaction runs.
    No(Xid),
    /// It was rolled back, or never happened.
    Undone,
    /// Committed, or my own.
    Done,
}

fn ended(xid: Xid, ctx: &dyn TxContext) -> Ended {
    if ctx.is_mine(xid) {
        return Ended::Done;
    }
    match ctx.status(xid) {
        XidStatus::InProgress => Ended::No(xid),
        XidStatus::Aborted => Ended::Undone,
        XidStatus::Committed(_) => Ended::Done,
    }
}

/// How the making of a version ended.
pub(super) fn maker(header: &TupleHeader, ctx: &dyn TxContext) -> Ended {
    if header.xmin_seen_by_all() {
        Ended::Done
    } else if header.xmin_aborted() {
        Ended::Undone
    } else {
        ended(header.xmin, ctx)
    }
}

/// How the replacing or deleting of a version ended.
pub(super) fn ender(header: &TupleHeader, ctx: &dyn TxContext) -> Ended {
    if header.xmax_is_void() {
        Ended::Undone
    } else if header.xmax_seen_by_all() {
        Ended::Done
    } else {
        ended(header.xmax, ctx)
    }
}
