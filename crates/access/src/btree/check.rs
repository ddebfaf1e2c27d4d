//! Verifying a tree: everything the module's page calls an invariant, from the bytes alone.
//!
//! The tree is walked in order from the root with the bounds that the separators set, so that each
//! page is held against what leads to it and each leaf against the one before it. Bytes may be
//! anything; what cannot be read is reported and its subtree left out.

use std::cmp::Ordering;

use throng_buffer::{Interrupt, Pool, retry_blocking};
use throng_types::page::{KIND_BTREE_META, KIND_FREE, KIND_NEW, OFF_KIND, PAGE_SIZE};
use throng_types::{BlockNo, PageId};

use super::edit::Bytes;
use super::node::*;
use super::space::{MAGIC, OFF_FREE, OFF_FREE_COUNT, OFF_MAGIC, OFF_VERSION, VERSION};
use super::{BTree, META, ROOT};
use crate::heap::page::PageBytes;
use crate::offline::{Fault, Pages};

/// What a tree consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    pub entries: u64,
    pub leaves: u64,
    /// Of these, leaves without an entry.
    pub empty_leaves: u64,
    pub inner: u64,
    pub free: u64,
    /// Pages of zeros: the file grew and nothing came of it.
    pub unused: u64,
    /// Levels, the leaves' included.
    pub depth: u64,
    /// Bytes of leaves that are in use, of [`CAPACITY`] each.
    pub leaf_bytes: u64,
}

/// Checks an index file that nobody is using.
pub fn check(pages: &Pages<'_>, faults: &mut Vec<Fault>) {
    let read = |block| pages.read(block);
    Checker::new(pages.blocks(), &read, faults).run();
}

impl BTree {
    /// Checks the tree as it is in memory, and counts it. Only while nobody changes it; waits for
    /// pages on this thread.
    pub fn check(&self) -> (Census, Vec<Fault>) {
        let mut faults = Vec::new();
        let blocks = match self.pool.blocks(self.file) {
            Ok(blocks) => blocks,
            Err(error) => return (Census::default(), vec![Fault::of_file(error)]),
        };
        let read = |block| {
            read_shared(&self.pool, self.page_id(block)).map_err(|error| Fault::at(block, error))
        };
        let census = Checker::new(blocks, &read, &mut faults).run();
        (census, faults)
    }
}

fn read_shared(pool: &Pool, page: PageId) -> throng_types::Result<Box<Bytes>> {
    retry_blocking(|| Ok::<_, Interrupt>(Box::new(*pool.shared(page)?)))
}

struct Checker<'a> {
    blocks: BlockNo,
    read: &'a dyn Fn(BlockNo) -> Result<Box<Bytes>, Fault>,
    faults: &'a mut Vec<Fault>,
    seen: Vec<bool>,
    census: Census,
    /// The leaf before: its block, and the right link it has. `None` when it is not known.
    previous: Option<(BlockNo, BlockNo)>,
}

/// Between which keys a page's lie: from `low` to below `high`, `None` above everything.
#[derive(Clone, Copy)]
struct Bounds<'k> {
    low: &'k [u8],
    high: Option<&'k [u8]>,
}

impl<'a> Checker<'a> {
    fn new(
        blocks: BlockNo,
        read: &'a dyn Fn(BlockNo) -> Result<Box<Bytes>, Fault>,
        faults: &'a mut Vec<Fault>,
    ) -> Checker<'a> {
        let seen = vec![false; blocks as usize];
        Checker {
            blocks,
            read,
            faults,
            seen,
            census: Census::default(),
            previous: None,
        }
    }

    fn fault(&mut self, block: BlockNo, what: impl std::fmt::Display) {
        self.faults.push(Fault::at(block, what));
    }

    fn run(mut self) -> Census {
        if self.blocks <= ROOT {
            self.faults.push(Fault::of_file(format!(
                "index of {} blocks has no root",
                self.blocks
            )));
            return self.census;
        }
        self.check_tree();
        self.check_free_list();
        self.check_rest();
        self.census
    }

    /// Reads a page that nothing else has led to.
    fn visit(&mut self, block: BlockNo, from: BlockNo) -> Option<Box<Bytes>> {
        match self.seen.get_mut(block as usize) {
            None => {
                self.fault(
                    from,
                    format!(
                        "leads to block {block}, beyond the file's {} blocks",
                        self.blocks
                    ),
                );
                return None;
            }
            Some(seen) if *seen => {
                self.fault(
                    from,
                    format!("leads to block {block}, which something else leads to as well"),
                );
                return None;
            }
            Some(seen) => *seen = true,
        }
        match (self.read)(block) {
            Ok(page) => Some(page),
            Err(fault) => {
                self.faults.push(fault);
                None
            }
        }
    }

    fn check_tree(&mut self) {
        self.seen[META as usize] = true;
        let root = self.visit(ROOT, META);
        if let Some(root) = root {
            let level = Node::read(&*root).level();
            self.census.depth = u64::from(level) + 1;
            self.previous = Some((0, 0));
            self.check_node(
                ROOT,
                &root,
                level,
                Bounds {
                    low: &[],
                    high: None,
                },
            );
        }
        if let Some((block, right)) = self.previous.filter(|(_, right)| *right != 0) {
            self.fault(block, format!("last leaf has right link {right}"));
        }
    }

    fn check_node(&mut self, block: BlockNo, page: &Bytes, level: u16, bounds: Bounds<'_>) {
        let node = Node::read(page);
        if !node.is_leaf() && !node.is_inner() {
            return self.lost(
                block,
                format!("page of kind {} in the tree", page[OFF_KIND]),
            );
        }
        if node.level() != level || node.is_leaf() != (level == 0) {
            return self.lost(
                block,
                format!("page of level {} where {level} is expected", node.level()),
            );
        }
        if let Err(what) = check_layout(&node, page) {
            return self.lost(block, what);
        }
        self.check_order(block, &node, bounds);
        if node.is_leaf() {
            self.check_leaf(block, &node, bounds);
        } else {
            self.check_children(block, &node, level, bounds);
        }
    }

    /// A subtree cannot be looked into, so neither is it known which leaf comes before the next
    /// one.
    fn lost(&mut self, block: BlockNo, what: String) {
        self.previous = None;
        self.fault(block, what);
    }

    fn check_order(&mut self, block: BlockNo, node: &Node<'_, Bytes>, bounds: Bounds<'_>) {
        let (mut last, mut key) = (bounds.low.to_vec(), Vec::new());
        for i in node.first_key()..node.count() {
            node.key_into(i, &mut key);
            let first = i == node.first_key();
            // The lower bound belongs to the range: a leaf's first key may be equal to it, but no
            // separator is.
            let ordered = match last.cmp(&key) {
                Ordering::Less => true,
                Ordering::Equal => first && node.is_leaf(),
                Ordering::Greater => false,
            };
            if !ordered {
                let before = if first {
                    "its lower bound".to_string()
                } else {
                    format!("slot {}", i - 1)
                };
                self.fault(block, format!("key of slot {i} is not above {before}"));
            }
            if bounds.high.is_some_and(|high| key.as_slice() >= high) {
                self.fault(
                    block,
                    format!("key of slot {i} is not below its upper bound"),
                );
            }
            if node.is_leaf() && key.len() < TID {
                self.fault(block, format!("entry of slot {i} has no tid"));
            }
            std::mem::swap(&mut last, &mut key);
        }
    }

    fn check_leaf(&mut self, block: BlockNo, node: &Node<'_, Bytes>, bounds: Bounds<'_>) {
        self.census.leaves += 1;
        self.census.entries += node.count() as u64;
        self.census.empty_leaves += u64::from(node.count() == 0);
        self.census.leaf_bytes += node.used() as u64;
        let mut high = Vec::new();
        let high = node.high_into(&mut high).then_some(&high[..]);
        if high != bounds.high {
            self.fault(block, "high key is not what the pages above say");
        }
        // The first leaf comes after "block 0", which leads nowhere.
        match self.previous {
            Some((before, right)) if before != 0 && right != block => {
                self.fault(
                    before,
                    format!("right link is {right}, but the next leaf is block {block}"),
                );
            }
            _ => {}
        }
        self.previous = Some((block, node.right()));
    }

    fn check_children(
        &mut self,
        block: BlockNo,
        node: &Node<'_, Bytes>,
        level: u16,
        bounds: Bounds<'_>,
    ) {
        self.census.inner += 1;
        if node.count() == 0 || level == 0 {
            return self.lost(block, "inner page without children".into());
        }
        if node.right() != 0 || node.high().is_some() {
            self.fault(block, "inner page with a right link or a high key");
        }
        let (mut low, mut high) = (bounds.low.to_vec(), Vec::new());
        for i in 0..node.count() {
            let last = i + 1 == node.count();
            if !last {
                node.key_into(i + 1, &mut high);
            }
            let range = Bounds {
                low: &low,
                high: if last { bounds.high } else { Some(&high) },
            };
            let child = node.child(i);
            match self.visit(child, block) {
                Some(page) => self.check_node(child, &page, level - 1, range),
                None => self.previous = None,
            }
            std::mem::swap(&mut low, &mut high);
        }
    }

    fn check_free_list(&mut self) {
        let meta = match (self.read)(META) {
            Ok(meta) => meta,
            Err(fault) => return self.faults.push(fault),
        };
        if meta[OFF_KIND] != KIND_BTREE_META
            || meta.u32(OFF_MAGIC) != MAGIC
            || meta.u32(OFF_VERSION) != VERSION
        {
            return self.fault(META, "not the meta page of an index of this version");
        }
        let (mut from, mut block) = (META, meta.u32(OFF_FREE));
        while block != 0 {
            let Some(page) = self.visit(block, from) else {
                return;
            };
            if page[OFF_KIND] != KIND_FREE {
                return self.fault(
                    block,
                    format!("page of kind {} on the free list", page[OFF_KIND]),
                );
            }
            self.census.free += 1;
            (from, block) = (block, page.u32(OFF_RIGHT));
        }
        let count = meta.u32(OFF_FREE_COUNT);
        if u64::from(count) != self.census.free {
            self.fault(
                META,
                format!(
                    "says that {count} pages are free, but {} are listed",
                    self.census.free
                ),
            );
        }
    }

    /// What nothing led to.
    fn check_rest(&mut self) {
        let whole = self.faults.is_empty();
        for block in 0..self.blocks {
            if self.seen[block as usize] {
                continue;
            }
            match (self.read)(block) {
                Ok(page) if page[OFF_KIND] == KIND_NEW => self.census.unused += 1,
                // With a subtree left out above, what is lost says nothing of itself.
                Ok(page) if whole => {
                    let kind = page[OFF_KIND];
                    self.fault(
                        block,
                        format!("page of kind {kind} is neither in the tree nor free"),
                    );
                }
                Ok(_) => {}
                Err(fault) => self.faults.push(fault),
            }
        }
    }
}

/// Whether everything that the header and the slots name lies where it may, and nothing twice.
pub(super) fn check_layout(node: &Node<'_, Bytes>, page: &Bytes) -> Result<(), String> {
    let (lower, upper) = (node.lower(), node.upper());
    if lower < SLOTS || lower > upper || upper > PAGE_SIZE || !(lower - SLOTS).is_multiple_of(SLOT)
    {
        return Err(format!("bounds {lower} and {upper} make no sense"));
    }
    let high = (page.u16(OFF_HIGH), page.u16(OFF_HIGH + 2));
    let prefix = node.prefix_rest();
    let mut parts = vec![("prefix".to_string(), prefix.0, prefix.1)];
    parts.push(("high key".to_string(), high.0.into(), high.1.into()));
    for i in 0..node.count() {
        let slot = node.slot(i);
        parts.push((
            format!("cell of slot {i}"),
            slot.off.into(),
            node.cell_len(slot),
        ));
    }
    parts.retain(|(_, _, len)| *len > 0);
    parts.sort_by_key(|(_, off, _)| *off);
    let mut end = upper;
    for (name, off, len) in &parts {
        if *off < end {
            return Err(format!("{name} lies over what is before it"));
        }
        end = off + len;
        if end > PAGE_SIZE {
            return Err(format!("{name} leaves the page"));
        }
    }
    let named: usize = parts.iter().map(|(_, _, len)| len).sum();
    if named + node.garbage() != PAGE_SIZE - upper {
        return Err(format!(
            "{} bytes of garbage do not account for what is not named",
            node.garbage()
        ));
    }
    Ok(())
}
