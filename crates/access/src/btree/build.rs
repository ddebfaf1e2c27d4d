//! Building a tree from sorted entries, bottom up: each level has one page under construction, and
//! a page that is full is written and never touched again.
//!
//! ```text
//!  level 2                                   [ p q …            ← under construction
//!  level 1              [ a b c ] = p   [ d e f ] = q   [ g …   ← under construction
//!  level 0   [..]=a  [..]=b  [..]=c  …                    [ …   ← under construction
//! ```
//! The page on top is the root when all is done; it goes to the root's block last, in one record,
//! so that the index is empty until then.

use std::ops::Range;

use throng_buffer::{AccessStrategy, Mtr, Ring, Try, retry_blocking};
use throng_types::{BlockNo, Error, Result, Tid, Xid};

use super::edit::{self, Keys, Shape};
use super::node;
use super::{BTree, MtrPage, ROOT};
use crate::admit::admit_write;

/// Per cent of a page that is filled, as PostgreSQL's for leaves and for inner pages.
const LEAF_FILL: usize = 90;
const INNER_FILL: usize = 70;
/// The file grows by as many blocks as are in use, but not by more than this at a time.
const MAX_GROWTH: BlockNo = 64;

/// Takes entries in order and makes a tree of them.
///
/// The index is new and empty, and nobody else uses it before [`Builder::finish`] is through. A
/// builder that is given up leaves an index that is still empty, and its pages to nobody.
pub struct Builder {
    tree: BTree,
    xid: Xid,
    ring: Ring,
    /// The page under construction on each level, leaves first.
    levels: Vec<Level>,
    /// The lowest level that [`Builder::finish`] has not done with.
    finishing: usize,
    entries: u64,
    /// Per cent of a leaf that is filled.
    leaf_fill: usize,
    last: Vec<u8>,
    entry: Vec<u8>,
    /// Blocks that the file has grown by and no page has taken.
    spare: Range<BlockNo>,
    used: BlockNo,
}

#[derive(Default)]
struct Level {
    keys: Keys,
    /// Where the page's range begins: its key in its parent.
    low: Vec<u8>,
    /// Its block, and the one of the page after it, once they are known.
    block: Option<BlockNo>,
    next: Option<BlockNo>,
    /// It is written, but its parent has not heard of it.
    written: bool,
}

impl BTree {
    /// A builder for this index, which is empty.
    pub fn builder(&self, xid: Xid) -> Builder {
        Builder {
            tree: self.clone(),
            xid,
            ring: Ring::new(AccessStrategy::BulkWrite),
            levels: vec![Level::default()],
            finishing: 0,
            entries: 0,
            leaf_fill: LEAF_FILL,
            last: Vec::new(),
            entry: Vec::new(),
            spare: 0..0,
            used: 0,
        }
    }

    /// Builds this index, which is empty, from entries in order, waiting on this thread. Returns
    /// how many there were.
    pub fn bulk_build<K: AsRef<[u8]>>(
        &self,
        sorted: impl IntoIterator<Item = (K, Tid)>,
        xid: Xid,
    ) -> Result<u64> {
        let mut builder = self.builder(xid);
        for (key, tid) in sorted {
            retry_blocking(|| builder.push(key.as_ref(), tid))?;
        }
        retry_blocking(|| builder.finish())
    }
}

impl Builder {
    /// The same, but that leaves are filled to `percent`.
    pub fn filling(mut self, percent: usize) -> Builder {
        self.leaf_fill = percent;
        self
    }

    /// Adds an entry, which is above all before it. Interrupted, it is to be called again with the
    /// same one.
    ///
    /// # Errors
    /// 54000 for a key that is too long, XX000 for one out of order.
    pub fn push(&mut self, key: &[u8], tid: Tid) -> Try<()> {
        self.tree.check_size(key)?;
        node::entry_into(key, tid, &mut self.entry);
        if self.entries > 0 && self.last >= self.entry {
            return Err(Error::internal("entries for an index are not in order").into());
        }
        if self.is_full(0, &self.entry) {
            admit_write(&self.tree.pool)?;
            let separator = node::separator(&self.last, &self.entry).to_vec();
            self.close(0, separator)?;
        }
        self.levels[0].keys.push(&self.entry, 0);
        std::mem::swap(&mut self.last, &mut self.entry);
        self.entries += 1;
        Ok(())
    }

    /// Writes what is left, the root last. Interrupted, it is to be called again. Returns how many
    /// entries there are.
    pub fn finish(&mut self) -> Try<u64> {
        admit_write(&self.tree.pool)?;
        while self.finishing + 1 < self.levels.len() {
            let level = self.finishing;
            self.write(level, None)?;
            self.hand_up(level)?;
            self.finishing += 1;
        }
        while let Some(block) = self.spare.next() {
            if let Err(interrupt) = self.tree.adopt(block) {
                self.spare.start = block;
                return Err(interrupt);
            }
        }
        let root = self.tree.latch_exclusive(ROOT)?;
        let keys = &self.levels[self.finishing].keys;
        let shape = Shape {
            level: self.finishing as u16,
            right: 0,
            high: None,
            spare_prefix: 0,
        };
        let image = edit::image(keys, 0, keys.len(), shape);
        let mut mtr = Mtr::new(&self.tree.pool, self.xid);
        let root = mtr.add(root);
        edit::install(&mut MtrPage::new(&mut mtr, root), &image);
        mtr.commit();
        Ok(self.entries)
    }

    /// Whether the page under construction is to be closed before `key` is added.
    fn is_full(&self, level: usize, key: &[u8]) -> bool {
        let (keys, limit) = (&self.levels[level].keys, self.tree.limit.0);
        let inner = level > 0;
        if keys.len() < if inner { 2 } else { 1 } {
            return false;
        }
        let size = keys.size_with(key, inner);
        let fill = limit * if inner { INNER_FILL } else { self.leaf_fill } / 100;
        // A leaf's high key is at most one byte longer than its last key.
        let high = if inner { 0 } else { key.len() + 1 };
        size > fill || size + high > limit
    }

    /// Writes the page under construction; the next one begins at `separator`.
    fn close(&mut self, level: usize, separator: Vec<u8>) -> Try<()> {
        self.write(level, Some(&separator))?;
        self.hand_up(level)?;
        self.levels[level].low = separator;
        Ok(())
    }

    fn write(&mut self, level: usize, high: Option<&[u8]>) -> Try<()> {
        if self.levels[level].written {
            return Ok(());
        }
        let block = match self.levels[level].block {
            Some(block) => block,
            None => self.grow()?,
        };
        self.levels[level].block = Some(block);
        let leaf = level == 0;
        let high = high.filter(|_| leaf);
        let right = match self.levels[level].next {
            None if high.is_some() => self.grow()?,
            next => next.unwrap_or(0),
        };
        self.levels[level].next = (right != 0).then_some(right);
        let page = self
            .tree
            .pool
            .exclusive_with(self.tree.page_id(block), &mut self.ring)?;
        let keys = &self.levels[level].keys;
        let shape = Shape {
            level: level as u16,
            right,
            high,
            spare_prefix: 0,
        };
        let image = edit::image(keys, 0, keys.len(), shape);
        let mut mtr = Mtr::new(&self.tree.pool, self.xid);
        let page = mtr.add(page);
        edit::install(&mut MtrPage::new(&mut mtr, page), &image);
        mtr.commit();
        self.levels[level].written = true;
        Ok(())
    }

    /// Tells the level above of the page just written, and begins the next one.
    fn hand_up(&mut self, level: usize) -> Try<()> {
        if self.levels.len() == level + 1 {
            self.levels.push(Level::default());
        }
        let low = self.levels[level].low.clone();
        if self.is_full(level + 1, &low) {
            self.close(level + 1, low.clone())?;
        }
        let page = &mut self.levels[level];
        let block = page
            .block
            .take()
            .expect("a page that is written has a block");
        page.block = page.next.take();
        page.written = false;
        page.keys.clear();
        self.levels[level + 1].keys.push(&low, block);
        Ok(())
    }

    /// A block for a new page.
    fn grow(&mut self) -> Try<BlockNo> {
        if self.spare.is_empty() {
            let n = self.used.clamp(1, MAX_GROWTH);
            self.spare = self.tree.pool.extend(self.tree.file, n)?;
        }
        self.used += 1;
        Ok(self.spare.next().expect("the file has grown by some"))
    }
}
