//! Which pages of the file are in the tree: the meta page and the list of free pages.
//!
//! ```text
//!  meta page (block 0)                          free page
//!  byte  size                                   byte  size
//!     0   24  page header, kind meta               0   24  page header, kind free
//!    24    4  magic "TBT1"                        24    4  next free page, 0 for none
//!    28    4  layout version, 1
//!    32    4  first free page, 0 for none
//!    36    4  free pages
//! ```
//! Block 1 is the root, for good. A page of zeros is one that the file grew by and that no record
//! reached: it belongs to nobody, and vacuum finds it.
//!
//! The meta page is latched after every page of the tree, and a page of the list after the meta
//! page.

use throng_buffer::{ExclusiveGuard, Mtr, Try};
use throng_types::BlockNo;
use throng_types::page::{KIND_BTREE_META, KIND_FREE, KIND_NEW, OFF_KIND};

use super::edit::{Bytes, PageEdit, empty_page};
use super::node::{OFF_RIGHT, SLOTS};
use super::{BTree, META, MtrPage};
use crate::heap::page::PageBytes;

pub const MAGIC: u32 = u32::from_le_bytes(*b"TBT1");
pub const VERSION: u32 = 1;
pub const OFF_MAGIC: usize = 24;
pub const OFF_VERSION: usize = 28;
pub const OFF_FREE: usize = 32;
pub const OFF_FREE_COUNT: usize = 36;

const _: () = assert!(OFF_FREE_COUNT + 4 <= SLOTS && OFF_FREE_COUNT == OFF_FREE + 4);

/// Pages set aside for a split, exclusively latched and not yet changed.
pub(super) struct Allocation<'p> {
    /// The meta page and what its free list will be, when pages came from there.
    meta: Option<(ExclusiveGuard<'p>, FreeList)>,
    pages: Vec<ExclusiveGuard<'p>>,
}

#[derive(Clone, Copy)]
struct FreeList {
    first: BlockNo,
    count: u32,
}

impl FreeList {
    fn read(meta: &Bytes) -> FreeList {
        FreeList {
            first: meta.u32(OFF_FREE),
            count: meta.u32(OFF_FREE_COUNT),
        }
    }
    fn write(self, meta: &mut impl PageEdit) {
        let mut both = [0; 8];
        both[..4].copy_from_slice(&self.first.to_le_bytes());
        both[4..].copy_from_slice(&self.count.to_le_bytes());
        meta.write(OFF_FREE, &both);
    }
}

impl<'p> Allocation<'p> {
    /// Puts the pages under the mini-transaction, emptied: their numbers in it and their blocks.
    pub fn enter(self, mtr: &mut Mtr<'p>) -> Vec<(usize, BlockNo)> {
        if let Some((meta, list)) = self.meta {
            let meta = mtr.add(meta);
            list.write(&mut MtrPage::new(mtr, meta));
        }
        let enter = |page: ExclusiveGuard<'p>| {
            let block = page.page_id().block();
            (mtr.add(page), block)
        };
        self.pages.into_iter().map(enter).collect()
    }
}

impl BTree {
    /// Latches `n` pages that are in no tree: free ones first, then new ones at the file's end.
    pub(super) fn allocate(&self, n: usize) -> Try<Allocation<'_>> {
        let mut allocation = Allocation {
            meta: None,
            pages: Vec::with_capacity(n),
        };
        if self
            .pool
            .read(self.page_id(META), |page| page.u32(OFF_FREE))?
            != 0
        {
            let meta = self.latch_exclusive(META)?;
            let mut list = FreeList::read(&meta);
            while list.first != 0 && allocation.pages.len() < n {
                let page = self.latch_exclusive(list.first)?;
                if page[OFF_KIND] != KIND_FREE {
                    return Err(self.corrupted(page.page_id()));
                }
                list = FreeList {
                    first: page.u32(OFF_RIGHT),
                    count: list.count.saturating_sub(1),
                };
                allocation.pages.push(page);
            }
            allocation.meta = Some((meta, list));
        }
        while allocation.pages.len() < n {
            allocation.pages.push(self.pool.new_page(self.file)?);
        }
        Ok(allocation)
    }

    /// Puts pages that a mini-transaction has taken out of the tree on the free list, whose meta
    /// page it has.
    pub(super) fn free_pages(&self, mtr: &mut Mtr<'_>, meta: usize, pages: &[usize]) {
        let mut list = FreeList::read(mtr.page(meta));
        for &page in pages {
            let block = mtr.page_id(page).block();
            let mut image = empty_page(KIND_FREE);
            image.write(OFF_RIGHT, &list.first.to_le_bytes());
            super::edit::install(&mut MtrPage::new(mtr, page), &image);
            list = FreeList {
                first: block,
                count: list.count + 1,
            };
        }
        list.write(&mut MtrPage::new(mtr, meta));
    }

    /// Puts a page of zeros that nobody owns on the free list. An allocation that is under way
    /// holds its page's latch.
    pub(super) fn adopt(&self, block: BlockNo) -> Try<bool> {
        if self
            .pool
            .read(self.page_id(block), |page| page.u8(OFF_KIND))?
            != KIND_NEW
        {
            return Ok(false);
        }
        let Some(page) = self.pool.try_exclusive(self.page_id(block))? else {
            return Ok(false);
        };
        if page[OFF_KIND] != KIND_NEW {
            return Ok(false);
        }
        // Against the order: the page is in nobody's hands, so nobody who holds the meta page waits
        // for it.
        let meta = self.latch_exclusive(META)?;
        let mut mtr = Mtr::new(&self.pool, throng_types::Xid::NONE);
        let (page, meta) = (mtr.add(page), mtr.add(meta));
        self.free_pages(&mut mtr, meta, &[page]);
        mtr.commit();
        Ok(true)
    }
}

/// A new index's meta page.
pub(super) fn meta_page() -> Box<Bytes> {
    let mut page = empty_page(KIND_BTREE_META);
    page.write(OFF_MAGIC, &MAGIC.to_le_bytes());
    page.write(OFF_VERSION, &VERSION.to_le_bytes());
    page
}
