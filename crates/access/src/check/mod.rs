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

use throng_disk::RelFiles;
use throng_types::page::{
    KIND_BTREE_META, KIND_HEAP, KIND_NEW, KIND_OVERFLOW, KIND_SEQUENCE, OFF_KIND,
};
use throng_types::{FileId, Xid};

use crate::btree;
pub use crate::offline::{Fault, Pages};

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
    let pages = match Pages::of(files, file) {
        Ok(pages) => pages,
        Err(fault) => return vec![fault],
    };
    let mut faults = Vec::new();
    let kind = if kind == FileKind::Unknown {
        guess(&pages)
    } else {
        kind
    };
    match kind {
        FileKind::BTree => btree::check::check(&pages, &mut faults),
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
