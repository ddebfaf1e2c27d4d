//! Verifying relation files offline: what `throng check` runs.
//!
//! `redo` compares pages with what the log makes of them. The rest looks at everything that one
//! page, or one file, can say of itself: checksums, headers, slots, chains, values stored out of
//! line, and the order within indexes. It reads through [`RelFiles`] and changes nothing, so no
//! server may have the files open.

mod heap;
mod redo;

pub use redo::{Compared, comparable, compare, first_difference};

#[cfg(test)]
pub(crate) use heap::check_page as check_heap_page;

use std::fmt;

use throng_buffer::page_is_intact;
use throng_disk::RelFiles;
use throng_types::page::{
    KIND_BTREE_META, KIND_HEAP, KIND_NEW, KIND_OVERFLOW, KIND_SEQUENCE, OFF_KIND, PAGE_SIZE,
};
use throng_types::{BlockNo, FileId, PageId, Xid};

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// `None` when it is about the file as a whole.
    pub block: Option<BlockNo>,
    pub what: String,
}

impl Fault {
    pub fn at(block: BlockNo, what: impl fmt::Display) -> Fault {
        Fault {
            block: Some(block),
            what: what.to_string(),
        }
    }
    pub fn of_file(what: impl fmt::Display) -> Fault {
        Fault {
            block: None,
            what: what.to_string(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            Some(block) => write!(f, "block {block}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// The pages of one file.
pub struct Pages<'a> {
    files: &'a RelFiles,
    file: FileId,
    blocks: BlockNo,
}

impl Pages<'_> {
    pub fn file(&self) -> FileId {
        self.file
    }
    pub fn blocks(&self) -> BlockNo {
        self.blocks
    }
    /// One page, its checksum verified.
    pub fn read(&self, block: BlockNo) -> Result<Box<[u8; PAGE_SIZE]>, Fault> {
        let id = PageId::new(self.file, block);
        let mut page = Box::new([0; PAGE_SIZE]);
        self.files
            .read_page(id, &mut page)
            .map_err(|e| Fault::at(block, e))?;
        if !page_is_intact(id, &page) {
            return Err(Fault::at(block, "checksum does not match"));
        }
        Ok(page)
    }
}

/// What a file holds, as the catalog says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Heap,
    BTree,
    Sequence,
    /// Go by the first page that is not empty.
    Unknown,
}

/// Checks one file; an empty answer is a clean bill.
///
/// `rolled_back` tells which transactions did not commit: what they stored out of line need not be
/// whole.
pub fn check_file(
    files: &RelFiles,
    file: FileId,
    kind: FileKind,
    rolled_back: &dyn Fn(Xid) -> bool,
) -> Vec<Fault> {
    let blocks = match files.blocks(file) {
        Ok(blocks) => blocks,
        Err(e) => return vec![Fault::of_file(e)],
    };
    let pages = Pages {
        files,
        file,
        blocks,
    };
    let mut faults = Vec::new();
    let kind = if kind == FileKind::Unknown {
        guess(&pages)
    } else {
        kind
    };
    match kind {
        FileKind::BTree => crate::btree::check::check(&pages, &mut faults),
        FileKind::Sequence => check_sequence(&pages, &mut faults),
        FileKind::Heap | FileKind::Unknown => heap::check(&pages, rolled_back, &mut faults),
    }
    faults
}

fn guess(pages: &Pages<'_>) -> FileKind {
    for block in 0..pages.blocks() {
        // A page that cannot be read is reported by whichever check follows.
        let Ok(page) = pages.read(block) else {
            continue;
        };
        match page[OFF_KIND] {
            KIND_NEW => continue,
            KIND_BTREE_META => return FileKind::BTree,
            KIND_SEQUENCE => return FileKind::Sequence,
            KIND_HEAP | KIND_OVERFLOW => return FileKind::Heap,
            _ => return FileKind::Unknown,
        }
    }
    FileKind::Unknown
}

/// A sequence is one page, whose content is its owner's.
fn check_sequence(pages: &Pages<'_>, faults: &mut Vec<Fault>) {
    for block in 0..pages.blocks() {
        match pages.read(block) {
            Ok(page) if matches!(page[OFF_KIND], KIND_SEQUENCE | KIND_NEW) => {}
            Ok(page) => faults.push(Fault::at(
                block,
                format!("page of kind {} in a sequence", page[OFF_KIND]),
            )),
            Err(fault) => faults.push(fault),
        }
    }
}
