//! B+trees: ordered byte strings to tuple ids, on pages.
//!
//! ```text
//!            block 1: the root, always           inner: separators and children
//!           /         |        \
//!      inner        inner      inner
//!      /   \        /   \      /   \
//!   leaf → leaf → leaf → leaf → leaf → leaf      leaf: entries (key ++ tid), high key, right link
//! ```
//! Promises:
//!
//! * A look-up writes nothing to shared memory, an insertion nothing above its leaf unless the leaf
//!   is full (optimistic lock coupling: Leis, Scheibner, Kemper, Neumann, "The ART of Practical
//!   Synchronization", 2016).
//! * Every call is restartable: `Err(Interrupt::Wait)` means no latch held and nothing changed.
//! * A split or a page's deletion is one log record, whatever pages it takes: no crash leaves half
//!   of one.
//! * Readers mark the entries of rows that are dead to everybody; others skip them, and they go
//!   before a page is split ([`dead`]).
//!
//! Invariants, which [`check`] verifies:
//!
//! * Entries are unique: the tid is part of them. Key bytes order as `memcmp`; what they mean is
//!   the caller's business.
//! * A page's parent has exactly one separator for it, and its keys lie from that one up to the
//!   next. A leaf's high key is that next one, and its right link the leaf that begins there. Only
//!   leaves have either.
//! * All leaves are on level 0, and a child's level is one less than its parent's.
//! * Every page is the meta page, in the tree, on the free list, or all zeros.
//!
//! Latches are taken in *preorder* of the tree (a page before what is below it and before what is
//! right of that), then the meta page, then free pages. Whoever needs it otherwise only tries. So
//! nobody waits in a circle.
//!
//! A prefix of a key's bytes stands for all keys that begin with it. That is how an index on `(a,
//! b)` is searched by `a` alone: see [`KeyRange`].

mod build;
pub mod check;
mod dead;
mod edit;
pub mod node;
mod run;
mod scan;
mod space;
mod split;
#[cfg(test)]
mod tests;
mod tree;
mod unique;
mod vacuum;

use std::sync::Arc;

use throng_buffer::{ExclusiveGuard, Interrupt, Mtr, OptimisticPage, Pool, Try};
use throng_types::error::state;
use throng_types::page::KIND_BTREE_META;
use throng_types::{BlockNo, Error, FileId, PageId, Xid};

use crate::admit::admit_write;
pub use build::Builder;
pub use dead::LeafVersion;
use edit::{Bytes, Keys, Limit, PageEdit, Shape};
pub use node::{MAX_KEY, tid_bytes};
pub use run::Run;
pub use scan::{Cursor, Direction, Entries, KeyRange};
pub use unique::{Check, Conflict, Inserted};
pub use vacuum::{Vacuum, Vacuumed};

/// The meta page's block.
pub const META: BlockNo = 0;
/// The root's block, for as long as the tree lives.
pub const ROOT: BlockNo = 1;

/// One index. Cheap to make and to clone: it has no state but its file's.
#[derive(Clone)]
pub struct BTree {
    pool: Arc<Pool>,
    file: FileId,
    limit: Limit,
}

/// How big a tree is, at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Pages from the root to a leaf, both counted: what a look-up reads.
    pub depth: u32,
    /// Blocks of the file.
    pub blocks: BlockNo,
    /// Of these, pages waiting for use.
    pub free: u32,
}

impl BTree {
    /// The index in `file`, which [`BTree::create`] has made.
    pub fn open(pool: Arc<Pool>, file: FileId) -> BTree {
        BTree {
            pool,
            file,
            limit: Limit::PAGE,
        }
    }

    /// Makes an empty index in `file`, which exists and is empty. May be called again after an
    /// interrupted attempt.
    pub fn create(pool: Arc<Pool>, file: FileId, xid: Xid) -> Try<BTree> {
        let tree = BTree::open(pool, file);
        admit_write(&tree.pool)?;
        let mut pages = Vec::new();
        for block in [META, ROOT] {
            let there = tree.blocks()? > block;
            pages.push(if there {
                tree.latch_exclusive(block)?
            } else {
                tree.pool.new_page(file)?
            });
        }
        let mut mtr = Mtr::new(&tree.pool, xid);
        let shape = Shape {
            level: 0,
            right: 0,
            high: None,
            spare_prefix: 0,
        };
        let images = [
            space::meta_page(),
            edit::image(&Keys::default(), 0, 0, shape),
        ];
        for (page, image) in pages.into_iter().zip(images) {
            let page = mtr.add(page);
            edit::install(&mut MtrPage::new(&mut mtr, page), &image);
        }
        mtr.commit();
        Ok(tree)
    }

    pub fn file(&self) -> FileId {
        self.file
    }

    pub fn extent(&self) -> Try<Extent> {
        let (kind, free) = self.pool.read(self.page_id(META), |page| {
            (
                page.u8(throng_types::page::OFF_KIND),
                page.u32(space::OFF_FREE_COUNT),
            )
        })?;
        if kind != KIND_BTREE_META {
            return Err(self.corrupted(self.page_id(META)));
        }
        let level = self
            .pool
            .read(self.page_id(ROOT), |page| node::Node::read(page).level())?;
        Ok(Extent {
            depth: u32::from(level) + 1,
            blocks: self.blocks()?,
            free,
        })
    }

    fn page_id(&self, block: BlockNo) -> PageId {
        PageId::new(self.file, block)
    }
    fn blocks(&self) -> Try<BlockNo> {
        Ok(self.pool.blocks(self.file)?)
    }
    fn optimistic(&self, block: BlockNo) -> Try<OptimisticPage<'_>> {
        self.pool.read_with_version(self.page_id(block))
    }
    fn latch_exclusive(&self, block: BlockNo) -> Try<ExclusiveGuard<'_>> {
        self.pool.exclusive(self.page_id(block))
    }

    #[cold]
    fn corrupted(&self, page: PageId) -> Interrupt {
        let (file, block) = (page.file(), page.block());
        let message = format!("index file {file} is broken at block {block}");
        let hint = "REINDEX makes the index anew.";
        Interrupt::Error(Error::new(state::INDEX_CORRUPTED, message).hint(hint))
    }
}

/// The error for a key that no page can hold, with PostgreSQL's wording. `size` is in bytes.
#[cold]
pub fn key_too_large(size: usize, index: &str) -> Error {
    Error::new(
        state::PROGRAM_LIMIT_EXCEEDED,
        format!(
            "index row size {size} exceeds btree version 4 maximum {MAX_KEY} for index \"{index}\""
        ),
    )
    .hint("Values larger than 1/3 of a buffer page cannot be indexed.")
}

/// A page of a mini-transaction, as something to edit.
struct MtrPage<'m, 'p> {
    mtr: &'m mut Mtr<'p>,
    page: usize,
}

impl<'m, 'p> MtrPage<'m, 'p> {
    fn new(mtr: &'m mut Mtr<'p>, page: usize) -> MtrPage<'m, 'p> {
        MtrPage { mtr, page }
    }
}

impl PageEdit for MtrPage<'_, '_> {
    fn bytes(&self) -> &Bytes {
        self.mtr.page(self.page)
    }
    fn write(&mut self, off: usize, bytes: &[u8]) {
        self.mtr.write(self.page, off, bytes);
    }
    fn shift(&mut self, from: usize, to: usize, len: usize) {
        self.mtr.move_within(self.page, from, to, len);
    }
    fn rewritten(&mut self) {
        self.mtr.log_image(self.page);
    }
}
