//! Taking dead entries out, leaf by leaf, and pages that are left empty.
//!
//! # How an empty leaf goes
//!
//! The *fork* is the lowest page on the way to the leaf that has another child too. Below it the way is a chain of pages with
//! one child each, ending at the leaf: all of it is empty. What happens depends on where the fork's neighbouring child is.
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
//! Either way only pages under the fork change, and the fork keeps a child; the whole is one mini-transaction. All pages
//! are latched in preorder; the fork only if it has not changed since it was found. When anything is not as it was then,
//! the leaf stays for the next pass.

use throng_buffer::{ExclusiveGuard, Mtr, Try};
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, Tid, Xid};

use super::edit::{self, Bytes, Keys, Shape};
use super::node::Node;
use super::tree::{Goal, Step};
use super::{BTree, META, MtrPage, ROOT};
use crate::admit::admit_write;

/// What vacuum has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vacuumed {
    pub entries_removed: u64,
    pub entries_left: u64,
    pub leaves: u64,
    pub pages_freed: u64,
}

/// A pass over an index. Holds nothing of the tree between steps, and steps may be hours apart.
pub struct Vacuum {
    tree: BTree,
    /// The key from which leaves are still to be visited.
    from: Vec<u8>,
    done: bool,
    so_far: Vacuumed,
    high: Vec<u8>,
}

impl BTree {
    pub fn vacuum(&self) -> Vacuum {
        let (from, high) = Default::default();
        Vacuum {
            tree: self.clone(),
            from,
            done: false,
            so_far: Vacuumed::default(),
            high,
        }
    }
}

impl Vacuum {
    pub fn so_far(&self) -> Vacuumed {
        self.so_far
    }

    /// Visits one leaf and takes out the entries that `dead` names. False when that was the last one.
    ///
    /// `dead` is called under no latch that it could mind, possibly more than once for an entry, and possibly for tids
    /// that are none.
    pub fn step(&mut self, dead: &dyn Fn(Tid) -> bool) -> Try<bool> {
        if self.done {
            return Ok(false);
        }
        let (tree, high) = (&self.tree, &mut self.high);
        let mut found = Vec::new();
        let (count, mut more) = tree.read_leaf(Goal::Covering(&self.from), None, |node, _| {
            found.clear();
            found.extend((0..node.count()).filter(|at| dead(node.tid(*at))));
            (node.count(), node.high_into(high))
        })?;
        if !found.is_empty() || count == 0 {
            admit_write(&tree.pool)?;
        }
        let mut left = count;
        let mut removed = 0;
        if !found.is_empty() {
            let leaf = tree.leaf_exclusive(&self.from)?;
            let node = Node::read(&*leaf);
            found.clear();
            found.extend((0..node.count()).filter(|at| dead(node.tid(*at))));
            (removed, left) = (found.len(), node.count() - found.len());
            // It may have been split since: what went to the right is the next step's.
            more = node.high_into(high);
            if removed > 0 {
                let mut mtr = Mtr::new(&tree.pool, Xid::NONE);
                let page = mtr.add(leaf);
                edit::remove(&mut MtrPage::new(&mut mtr, page), &found);
                mtr.commit();
            }
        }
        // What was removed is gone whatever happens below: count it now, and once.
        self.so_far.entries_removed += removed as u64;
        if left == 0 {
            self.so_far.pages_freed += tree.remove_leaf(&self.from)?;
        }
        self.so_far.entries_left += left as u64;
        self.so_far.leaves += 1;
        self.done = !more;
        std::mem::swap(&mut self.from, &mut self.high);
        Ok(more)
    }
}

/// Where an empty leaf hangs: the fork and which of its children leads there.
struct Fork<'p> {
    page: ExclusiveGuard<'p>,
    slot: usize,
}

impl BTree {
    /// Takes the leaf that covers `key` out of the tree if it is empty and not the only one. Returns how many pages
    /// were freed: none, too, when something was in the way.
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

    /// Latches the pages from `child` down to a leaf, at each the child that `slot` picks. Top first.
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
