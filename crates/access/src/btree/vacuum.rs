//! Taking dead entries out, leaf by leaf, and pages that are left empty.
//!
//! # How an empty leaf goes
//!
//! The *fork* is the lowest page on the way to the leaf that has another child too. Below it the
//! way is a chain of pages with one child each, ending at the leaf: all of it is empty. What
//! happens depends on where the fork's neighbouring child is.
//!
//! ```text
//!  neighbour left of the chain             neighbour right of it
//!
//!        fork: … s | c …                        fork: c | s …
//!              /     \                                /     \
//!            (S)     (C)                             C       S
//!            /  \      \                              \     /  \
//!          (..)  L      leaf                         leaf  R   ..
//!
//!  The chain is freed; L, the last leaf          The chain's pages take what the pages at S's left edge hold, and those
//!  under S, takes the leaf's high key             are freed: so the leaf left of the chain, which no page here leads
//!  and right link.                                to, keeps a right link that is good.
//! ```
//! Either way only pages under the fork change, and the fork keeps a child; the whole is one
//! mini-transaction. All pages are latched in preorder; the fork only if it has not changed since
//! it was found. When anything is not as it was then, the leaf stays for the next pass.

use throng_buffer::{ExclusiveGuard, Mtr, Try};
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, Tid, Xid};

use super::edit::{self, Bytes, Keys, Shape};
use super::node::Node;
use super::tree::{Goal, Leaf, Step};
use super::{BTree, META, MtrPage, ROOT};
use crate::admit::admit_write;

/// What vacuum has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vacuumed {
    pub entries_removed: u64,
    pub entries_left: u64,
    pub leaves: u64,
    pub pages_freed: u64,
    /// Pages of zeros that a crash or an interrupted split has left, now free.
    pub pages_found: u64,
}

/// A pass over an index. Holds nothing of the tree between steps, and steps may be hours apart.
pub struct Vacuum {
    tree: BTree,
    phase: Phase,
    so_far: Vacuumed,
    /// Blocks that were leaves when they were visited, one bit each.
    visited: Vec<u64>,
    high: Vec<u8>,
    slots: Vec<usize>,
}

enum Phase {
    /// Leaves are still to be visited from this key on.
    Leaves(Vec<u8>),
    /// Other pages are still to be looked at from this block on: one of zeros may be nobody's.
    Others(BlockNo),
    Done,
}

/// Pages other than leaves that one step looks at, at most.
const OTHERS: usize = 16;

impl BTree {
    pub fn vacuum(&self) -> Vacuum {
        Vacuum {
            tree: self.clone(),
            phase: Phase::Leaves(Vec::new()),
            so_far: Vacuumed::default(),
            visited: Vec::new(),
            high: Vec::new(),
            slots: Vec::new(),
        }
    }
}

impl Vacuum {
    pub fn so_far(&self) -> Vacuumed {
        self.so_far
    }

    /// Visits one leaf and takes out the entries that `dead` names, or, after the last one, looks
    /// at a few other pages. False when there is no more to do. Interrupted, it is to be called
    /// again.
    ///
    /// `dead` is called under the leaf's latch, so it must touch no page and wait for nothing;
    /// possibly more than once for an entry, and possibly for tids that are none.
    pub fn step(&mut self, dead: &dyn Fn(Tid) -> bool) -> Try<bool> {
        match &mut self.phase {
            Phase::Leaves(from) => {
                let from = std::mem::take(from);
                let visited = self.visit_leaf(&from, dead);
                self.phase = match visited {
                    Ok(true) => Phase::Leaves(std::mem::replace(&mut self.high, from)),
                    Ok(false) => Phase::Others(ROOT + 1),
                    Err(_) => Phase::Leaves(from),
                };
                visited.map(|_| true)
            }
            Phase::Others(from) => {
                let next = self
                    .tree
                    .adopt_some(*from, &self.visited, &mut self.so_far)?;
                self.phase = next.map_or(Phase::Done, Phase::Others);
                Ok(next.is_some())
            }
            Phase::Done => Ok(false),
        }
    }

    /// Visits the leaf that covers `from`; false when it is the last. Its high key is then in
    /// `self.high`.
    fn visit_leaf(&mut self, from: &[u8], dead: &dyn Fn(Tid) -> bool) -> Try<bool> {
        let Vacuum {
            tree,
            high,
            slots,
            visited,
            so_far,
            ..
        } = self;
        let (block, mut left, mut more) = tree.read_leaf(
            Goal::Covering(from),
            None,
            |Leaf { node, block, .. }| {
                slots.clear();
                slots.extend((0..node.count()).filter(|at| dead(node.tid(*at))));
                (block, node.count(), node.high_into(high))
            },
        )?;
        if !slots.is_empty() {
            admit_write(&tree.pool)?;
            let leaf = tree.leaf_exclusive(from)?;
            let node = Node::read(&*leaf);
            slots.clear();
            slots.extend((0..node.count()).filter(|at| dead(node.tid(*at))));
            left = node.count() - slots.len();
            // It may have been split since: what went to the right is the next step's.
            more = node.high_into(high);
            if !slots.is_empty() {
                let mut mtr = Mtr::new(&tree.pool, Xid::NONE);
                let page = mtr.add(leaf);
                edit::remove(&mut MtrPage::new(&mut mtr, page), slots);
                mtr.commit();
            }
            // Counted here, since what follows may be interrupted.
            so_far.entries_removed += slots.len() as u64;
        }
        if left == 0 {
            admit_write(&tree.pool)?;
            so_far.pages_freed += tree.remove_leaf(from)?;
        }
        so_far.entries_left += left as u64;
        so_far.leaves += 1;
        let word = block as usize / 64;
        visited.resize(visited.len().max(word + 1), 0);
        visited[word] |= 1 << (block % 64);
        Ok(more)
    }
}

impl BTree {
    /// Looks at a few of the blocks that were not visited as leaves, from `from` on, and puts those
    /// of zeros on the free list. Returns where to go on.
    fn adopt_some(
        &self,
        from: BlockNo,
        visited: &[u64],
        so_far: &mut Vacuumed,
    ) -> Try<Option<BlockNo>> {
        let unvisited = |block: &BlockNo| {
            visited
                .get(*block as usize / 64)
                .is_none_or(|word| word >> (block % 64) & 1 == 0)
        };
        let mut others = (from..self.blocks()?).filter(unvisited);
        for block in others.by_ref().take(OTHERS) {
            admit_write(&self.pool)?;
            if self.adopt(block)? {
                so_far.pages_found += 1;
            }
        }
        Ok(others.next())
    }
}

/// Where an empty leaf hangs: the fork and which of its children leads there.
struct Fork<'p> {
    page: ExclusiveGuard<'p>,
    slot: usize,
}

impl BTree {
    /// Takes the leaf that covers `key` out of the tree if it is empty and not the only one.
    /// Returns how many pages were freed: none, too, when something was in the way.
    fn remove_leaf(&self, key: &[u8]) -> Try<u64> {
        let Some(fork) = self.find_fork(key)? else {
            return Ok(0);
        };
        if fork.slot > 0 {
            self.merge_left(fork)
        } else {
            self.merge_right(fork)
        }
    }

    /// The lowest page above `key`'s leaf with more than one child, latched.
    fn find_fork(&self, key: &[u8]) -> Try<Option<Fork<'_>>> {
        let mut fork = None;
        let mut page = self.optimistic(ROOT)?;
        loop {
            match self.look(&page, Goal::Covering(key), None)? {
                Step::Changed => return Ok(None),
                Step::Leaf => break,
                Step::Down { child, .. } => {
                    let several = Node::read(page.page()).count() > 1;
                    let next = self.optimistic(child)?;
                    if !page.validate() {
                        return Ok(None);
                    }
                    let above = std::mem::replace(&mut page, next);
                    if several {
                        fork = Some(above);
                    }
                }
            }
        }
        let Some(page) = fork.and_then(|page| page.try_exclusive()) else {
            return Ok(None);
        };
        let slot = Node::read(&*page).child_covering(key);
        Ok(Some(Fork { page, slot }))
    }

    /// Latches the pages from `child` down to a leaf, at each the child that `slot` picks. Top
    /// first.
    fn latch_edge<'p>(
        &'p self,
        child: BlockNo,
        slot: impl Fn(&Node<'_, Bytes>) -> usize,
    ) -> Try<Vec<ExclusiveGuard<'p>>> {
        let mut edge = vec![self.latch_exclusive(child)?];
        loop {
            let last = &edge[edge.len() - 1];
            let node = Node::read(&**last);
            if node.is_leaf() {
                return Ok(edge);
            }
            if !node.is_inner() || node.count() == 0 || edge.len() > usize::from(u8::MAX) {
                return Err(self.corrupted(last.page_id()));
            }
            let child = node.child(slot(&node));
            edge.push(self.latch_exclusive(child)?);
        }
    }

    fn merge_left(&self, fork: Fork<'_>) -> Try<u64> {
        let node = Node::read(&*fork.page);
        let (left, child) = (node.child(fork.slot - 1), node.child(fork.slot));
        let neighbour = self
            .latch_edge(left, |node| node.count() - 1)?
            .pop()
            .expect("an edge ends at a leaf");
        let chain = self.latch_edge(child, |_| 0)?;
        if !is_empty_chain(&chain) {
            return Ok(0);
        }
        let leaf = Node::read(&**chain.last().expect("an edge ends at a leaf"));
        let (mut high, right) = (Vec::new(), leaf.right());
        let high = leaf.high_into(&mut high).then_some(&high[..]);
        // The neighbour may be too full for a longer high key; then the leaf stays, empty.
        let rebuilt = {
            let mut copy: Box<Bytes> = Box::new([0; PAGE_SIZE]);
            copy.copy_from_slice(&*neighbour);
            let node = Node::read(&*neighbour);
            if edit::cut(&mut *copy, self.limit, node.count(), high, right) {
                None
            } else {
                let keys = Keys::of(&node);
                if keys.size(0, keys.len(), false, high.map_or(0, <[u8]>::len)) > self.limit.0 {
                    return Ok(0);
                }
                Some(edit::image(
                    &keys,
                    0,
                    keys.len(),
                    Shape {
                        level: 0,
                        right,
                        high,
                        spare_prefix: 0,
                    },
                ))
            }
        };
        let meta = self.latch_exclusive(META)?;

        let mut mtr = Mtr::new(&self.pool, Xid::NONE);
        let (fork_page, neighbour) = (mtr.add(fork.page), mtr.add(neighbour));
        let freed: Vec<usize> = chain.into_iter().map(|page| mtr.add(page)).collect();
        let meta = mtr.add(meta);
        let mut target = MtrPage::new(&mut mtr, neighbour);
        match rebuilt {
            Some(image) => edit::install(&mut target, &image),
            None => {
                let keep = Node::read(edit::PageEdit::bytes(&target)).count();
                edit::cut(&mut target, self.limit, keep, high, right);
            }
        }
        edit::remove(&mut MtrPage::new(&mut mtr, fork_page), &[fork.slot]);
        self.free_pages(&mut mtr, meta, &freed);
        mtr.commit();
        Ok(freed.len() as u64)
    }

    fn merge_right(&self, fork: Fork<'_>) -> Try<u64> {
        let node = Node::read(&*fork.page);
        if node.count() < 2 {
            return Ok(0);
        }
        let (child, right) = (node.child(0), node.child(1));
        let chain = self.latch_edge(child, |_| 0)?;
        if !is_empty_chain(&chain) {
            return Ok(0);
        }
        let edge = self.latch_edge(right, |_| 0)?;
        if edge.len() != chain.len() {
            return Err(self.corrupted(fork.page.page_id()));
        }
        let meta = self.latch_exclusive(META)?;

        let below: Vec<BlockNo> = chain.iter().map(|page| page.page_id().block()).collect();
        let mut mtr = Mtr::new(&self.pool, Xid::NONE);
        let fork_page = mtr.add(fork.page);
        let chain: Vec<usize> = chain.into_iter().map(|page| mtr.add(page)).collect();
        let edge: Vec<usize> = edge.into_iter().map(|page| mtr.add(page)).collect();
        let meta = mtr.add(meta);
        for (i, (to, from)) in chain.iter().zip(&edge).enumerate() {
            let image: Box<Bytes> = Box::new(*mtr.page(*from));
            let mut target = MtrPage::new(&mut mtr, *to);
            edit::install(&mut target, &image);
            if let Some(child) = below.get(i + 1) {
                edit::set_child(&mut target, 0, *child);
            }
        }
        edit::remove(&mut MtrPage::new(&mut mtr, fork_page), &[1]);
        self.free_pages(&mut mtr, meta, &edge);
        mtr.commit();
        Ok(edge.len() as u64)
    }
}

/// Whether every page has only the one below it, and the leaf nothing.
fn is_empty_chain(chain: &[ExclusiveGuard<'_>]) -> bool {
    chain.iter().all(|page| {
        let node = Node::read(&**page);
        node.count() == usize::from(node.is_inner())
    })
}
