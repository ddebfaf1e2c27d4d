//! Marks on the entries of dead rows.
//!
//! ```text
//!   reader     row behind an entry dead to everybody ─► mark (one bit of the slot)
//!   readers    skip marked entries: no heap page is fetched for them
//!   insert     leaf to be split or rebuilt ─► marked entries go first
//!   vacuum     takes entries out, marked or not
//! ```
//! As PostgreSQL's `LP_DEAD` bits and simple deletion (`nbtree/README`, "On-the-Fly Deletion Of
//! Index Tuples").
//!
//! * A mark is a hint: not logged, lost with the frame or when the leaf is rebuilt. Where a page's
//!   image carries one into the log, it is as good after a crash: it rests on commits that were on
//!   disk when it was set.
//! * A mark is true for as long as the entry stays. The row's slot is not used again before all of
//!   its entries have gone, and entries go by logged changes alone. So a reader marks under the
//!   latch, and only while the leaf's LSN is the one at which it read the entries.
//! * A mark is set at once or not at all: nobody waits for a latch or a page in order to set one.

use throng_buffer::Try;
use throng_types::{BlockNo, Lsn, Tid, Xid};

use super::BTree;
use super::node::{MARK_BIT, MARK_BYTE, Node, SLOT, SLOTS};
use super::tree::Leaf;

/// A leaf as a reader has found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafVersion {
    block: BlockNo,
    lsn: Lsn,
}

impl LeafVersion {
    pub(super) fn of(leaf: &Leaf<'_>) -> LeafVersion {
        LeafVersion {
            block: leaf.block,
            lsn: leaf.node.lsn(),
        }
    }
}

impl BTree {
    /// Marks the entries of `dead` rows on a leaf, if it has not changed since they were read
    /// there. Each is dead to everybody, by commits that are on disk. The tids are put in order.
    pub fn mark_dead(&self, leaf: LeafVersion, dead: &mut [Tid]) {
        // Neither a page that is not in memory nor one that is in use is worth waiting for.
        let Ok(Some(mut page)) = self.pool.try_exclusive(self.page_id(leaf.block)) else {
            return;
        };
        let node = Node::read(&*page);
        if page.lsn() != leaf.lsn || !node.is_leaf() {
            return;
        }
        dead.sort_unstable();
        let slots: Vec<usize> = (0..node.count())
            .filter(|&at| !node.is_marked(at) && dead.binary_search(&node.tid(at)).is_ok())
            .collect();
        for at in slots {
            page.hint(SLOTS + SLOT * at + MARK_BYTE, MARK_BIT);
        }
    }

    /// Takes the marked entries off the leaf where `entry` belongs; false when there are none.
    pub(super) fn forget_marked(&self, entry: &[u8], xid: Xid) -> Try<bool> {
        let leaf = self.leaf_exclusive(entry)?;
        let marked = Node::read(&*leaf).marked();
        drop(self.forget(leaf, &marked, xid));
        Ok(!marked.is_empty())
    }
}
