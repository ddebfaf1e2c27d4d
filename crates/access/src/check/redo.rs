//! Redo equals do: the pages that the log makes are those that the server made.
//!
//! A page is followed from an image of it in the log on, record by record, until the record that
//! its LSN on disk names: there both are the same, byte for byte but for what [`comparable`] takes
//! out. Pages whose last image the log no longer has, or that were written before it, cannot be
//! compared.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use throng_buffer::page_is_intact;
use throng_disk::RelFiles;
use throng_types::page::{
    self, HEADER, KIND_BTREE_LEAF, KIND_HEAP, OFF_CHECKSUM, OFF_KIND, OFF_LSN, OFF_UPPER, PAGE_SIZE,
};
use throng_types::{FileId, Lsn, PageId, Result};
use throng_wal::{Edit, Ops, Reader, Record};

use super::Fault;
use crate::btree::node;
use crate::heap::page::{OFF_VAIN, PageBytes, slot_count, tuple};
use crate::heap::tuple::{HINTS, OFF_FLAGS};

type Bytes = [u8; PAGE_SIZE];

/// A page without what redo need not make: hints, bytes that hold nothing, the checksum.
pub fn comparable(page: &Bytes) -> Box<Bytes> {
    let mut kept = Box::new(*page);
    kept[OFF_CHECKSUM..OFF_CHECKSUM + 4].fill(0);
    kept[page::hole(page)].fill(0);
    if page[OFF_KIND] == KIND_HEAP {
        // Between the tuples lies what is left of others.
        let upper = usize::from(page.u16(OFF_UPPER)).min(PAGE_SIZE);
        kept[upper..].fill(0);
        kept[OFF_VAIN..HEADER].fill(0);
        for slot in 1..=slot_count(page) {
            if let Some((at, len, _)) = tuple(page, slot)
                && let Some(bytes) = page.get(at..at + len)
            {
                kept[at..at + len].copy_from_slice(bytes);
                kept[at + OFF_FLAGS] &= !(HINTS as u8);
            }
        }
    }
    if page[OFF_KIND] == KIND_BTREE_LEAF {
        node::unmark_all(&mut kept);
    }
    kept
}

/// The first byte in which two pages differ that should be the same.
pub fn first_difference(a: &Bytes, b: &Bytes) -> Option<usize> {
    let (a, b) = (comparable(a), comparable(b));
    (0..PAGE_SIZE).find(|&at| a[at] != b[at])
}

/// What comparing found.
#[derive(Debug, Default)]
pub struct Compared {
    /// Pages that were compared.
    pub pages: u64,
    pub faults: Vec<(FileId, Fault)>,
}

/// A page on its way from an image in the log to what is on disk.
struct Followed {
    made: Bytes,
    on_disk: Box<Bytes>,
}

/// Compares the pages on disk with what the log makes of them. Changes nothing.
///
/// # Errors
/// When the log cannot be read.
pub fn compare(files: &RelFiles, mut log: Reader) -> Result<Compared> {
    let mut compared = Compared::default();
    let mut followed: HashMap<PageId, Followed, FixedState> = HashMap::default();
    while let Some(entry) = log.next()? {
        match entry.record {
            Record::Pages { edits, .. } => {
                for Edit { page, ops } in edits {
                    if is_image(ops)
                        && let Some(on_disk) = on_disk(files, page)
                    {
                        let made = [0; PAGE_SIZE];
                        followed.insert(page, Followed { made, on_disk });
                    }
                    let Some(here) = followed.get_mut(&page) else {
                        continue;
                    };
                    throng_wal::apply(&mut here.made, ops);
                    here.made[OFF_LSN..OFF_LSN + 8].copy_from_slice(&entry.end.0.to_le_bytes());
                    let wanted = lsn(&here.on_disk);
                    if wanted > entry.end {
                        continue;
                    }
                    let what = match wanted == entry.end {
                        true => {
                            compared.pages += 1;
                            difference(here)
                        }
                        // Written before the image was made.
                        false if is_image(ops) => None,
                        false => Some(format!(
                            "the log has no record that ends at its LSN {wanted}"
                        )),
                    };
                    let fault = what.map(|what| (page.file(), Fault::at(page.block(), what)));
                    compared.faults.extend(fault);
                    followed.remove(&page);
                }
            }
            Record::FileTruncate { file, blocks } => {
                followed.retain(|page, _| page.file() != file || page.block() < blocks);
            }
            _ => {}
        }
    }
    let end = log.end();
    for (page, here) in followed {
        let lsn = lsn(&here.on_disk);
        let what = match lsn > end {
            true => format!("its LSN {lsn} lies beyond the end of the log at {end}"),
            false => format!("the log has no record that ends at its LSN {lsn}"),
        };
        let fault = Fault::at(page.block(), what);
        compared.faults.push((page.file(), fault));
    }
    compared
        .faults
        .sort_by_key(|(file, fault)| (*file, fault.block));
    Ok(compared)
}

fn difference(here: &Followed) -> Option<String> {
    let at = first_difference(&here.made, &here.on_disk)?;
    Some(format!(
        "differs from what the log makes of it, first at byte {at} ({} on disk, {} by redo)",
        here.on_disk[at], here.made[at]
    ))
}

fn is_image(ops: Ops<'_>) -> bool {
    matches!(ops.clone().next(), Some(throng_wal::PageOp::Image { .. }))
}

fn lsn(page: &Bytes) -> Lsn {
    Lsn(page.u64(OFF_LSN))
}

/// The page, if it is there and whole: a crash may leave one that recovery heals.
fn on_disk(files: &RelFiles, page: PageId) -> Option<Box<Bytes>> {
    let mut bytes = Box::new([0; PAGE_SIZE]);
    files.read_page(page, &mut bytes).ok()?;
    page_is_intact(page, &bytes).then_some(bytes)
}
