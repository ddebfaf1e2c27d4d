//! Entries of dead rows that an index scan has met.

use throng_access::btree::{BTree, LeafVersion};
use throng_types::Tid;

/// The rows of one leaf's entries that were found dead to everybody. Their entries are marked, so
/// that later readers pass them over.
#[derive(Default)]
pub struct DeadRows {
    leaf: Option<LeafVersion>,
    roots: Vec<Tid>,
}

impl DeadRows {
    /// So many are worth a latch before the leaf has been read to its end: a statement may end with
    /// any row, or change the leaf.
    const SOME: usize = 4;

    /// Entries of another leaf are in hand, or more of the same.
    pub fn of(&mut self, leaf: Option<LeafVersion>) {
        self.leaf = leaf;
        self.roots.clear();
    }

    #[cold]
    pub fn add(&mut self, root: Tid) {
        self.roots.push(root);
    }

    /// A row is given out.
    #[inline]
    pub fn pause(&mut self, tree: &BTree) {
        if self.roots.len() >= Self::SOME {
            self.mark(tree);
        }
    }

    /// Marks what was found.
    #[inline]
    pub fn mark(&mut self, tree: &BTree) {
        if !self.roots.is_empty() {
            if let Some(leaf) = self.leaf {
                tree.mark_dead(leaf, &mut self.roots);
            }
            self.roots.clear();
        }
    }

    pub fn forget(&mut self) {
        self.of(None);
    }
}
