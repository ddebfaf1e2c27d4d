//! Verifying a heap file.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use throng_types::page::{
    HEADER, KIND_HEAP, KIND_NEW, KIND_OVERFLOW, OFF_FLAGS, OFF_KIND, OFF_LOWER, OFF_SPECIAL,
    OFF_UPPER, PAGE_SIZE,
};
use throng_types::{BlockNo, Tid, Xid};

use super::{Fault, Pages};
use crate::heap::large::{self, Chunk};
use crate::heap::page::{self, ALIGN, FREE_SLOTS, MAX_SLOTS, PRUNABLE, PageBytes, SLOT, Slot};
use crate::heap::tuple::{ALL_FLAGS, TUPLE_HEADER, TupleHeader};

type Chunks = HashMap<BlockNo, Chunk, FixedState>;

pub(super) fn check(pages: &Pages<'_>, rolled_back: &dyn Fn(Xid) -> bool, faults: &mut Vec<Fault>) {
    let mut chunks = Chunks::default();
    for block in 0..pages.blocks() {
        let page = match pages.read(block) {
            Ok(page) => page,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        match page[OFF_KIND] {
            KIND_NEW => {}
            KIND_HEAP => check_page(&page, block, faults),
            KIND_OVERFLOW => match Chunk::read(&*page) {
                Some(chunk) if chunk.len <= large::CHUNK && !chunk.xmin.is_none() => {
                    chunks.insert(block, chunk);
                }
                _ => faults.push(Fault::at(block, "overflow page with impossible fields")),
            },
            kind => faults.push(Fault::at(block, format!("page of kind {kind} in a heap"))),
        }
    }
    check_large(chunks, rolled_back, faults);
}

/// Checks one heap page by itself.
pub(crate) fn check_page(page: &[u8; PAGE_SIZE], block: BlockNo, faults: &mut Vec<Fault>) {
    let mut fault = |what: String| faults.push(Fault::at(block, what));
    let (lower, upper) = (
        usize::from(page.u16(OFF_LOWER)),
        usize::from(page.u16(OFF_UPPER)),
    );
    let special = usize::from(page.u16(OFF_SPECIAL));
    if lower < HEADER || lower > upper || upper > PAGE_SIZE || special != PAGE_SIZE {
        return fault(format!(
            "header with lower {lower}, upper {upper}, special {special}"
        ));
    }
    let count = (lower - HEADER) / SLOT;
    if !(lower - HEADER).is_multiple_of(SLOT) || count > MAX_SLOTS.into() {
        return fault(format!("header with room for {count} slots"));
    }
    let flags = page.u8(OFF_FLAGS);
    if flags & !(PRUNABLE | FREE_SLOTS) != 0 {
        fault(format!("unknown page flags {flags:#04x}"));
    }
    let count = count as u16;
    let mut taken: Vec<(usize, usize, u16)> = Vec::new();
    for n in 1..=count {
        match page::slot(page, n) {
            Slot::Unused if flags & FREE_SLOTS == 0 => {
                fault(format!(
                    "slot {n} is unused, and the page does not say that it has unused slots"
                ));
            }
            Slot::Unused | Slot::Dead => {}
            Slot::Normal { off, len } => {
                let (off, len) = (usize::from(off), usize::from(len));
                if off < upper
                    || !off.is_multiple_of(ALIGN)
                    || len < TUPLE_HEADER
                    || off + len > PAGE_SIZE
                {
                    fault(format!("slot {n} names {len} bytes at {off}"));
                    continue;
                }
                taken.push((off, off + len, n));
                let header = TupleHeader::read(page, off);
                if header.xmin.is_none() || header.flags & !ALL_FLAGS != 0 {
                    fault(format!(
                        "tuple {n} has xmin {} and flags {:#06x}",
                        header.xmin, header.flags
                    ));
                }
                if header.is_hot_updated() && (header.xmax.is_none() || header.next.block != block)
                {
                    fault(format!(
                        "tuple {n} has its next version on this page, but names {}",
                        header.next
                    ));
                }
            }
            Slot::Redirect(target) => {
                let found = page::tuple(page, target).filter(|(.., header)| header.is_heap_only());
                if target > count || found.is_none() {
                    fault(format!(
                        "slot {n} redirects to slot {target}, which is no heap-only tuple"
                    ));
                }
            }
        }
    }
    taken.sort_unstable();
    for pair in taken.windows(2) {
        if pair[0].1 > pair[1].0 {
            fault(format!("tuples {} and {} overlap", pair[0].2, pair[1].2));
        }
    }
    check_chains(page, block, count, faults);
}

/// Every chain ends, and no version hangs on two roots.
fn check_chains(page: &[u8; PAGE_SIZE], block: BlockNo, count: u16, faults: &mut Vec<Fault>) {
    let mut root_of = [0u16; MAX_SLOTS as usize + 1];
    for root in 1..=count {
        for version in crate::heap::chain(page, Tid::new(block, root)) {
            let owner = &mut root_of[usize::from(version)];
            if *owner == root {
                faults.push(Fault::at(
                    block,
                    format!("the chain of slot {root} comes back to slot {version}"),
                ));
                break;
            }
            if *owner != 0 {
                faults.push(Fault::at(
                    block,
                    format!("tuple {version} hangs on slots {owner} and {root}"),
                ));
                break;
            }
            *owner = root;
        }
    }
}

/// Every value that a committed transaction stored and nobody dropped is whole, and no page is left
/// over.
fn check_large(mut chunks: Chunks, rolled_back: &dyn Fn(Xid) -> bool, faults: &mut Vec<Fault>) {
    let mut heads: Vec<BlockNo> = chunks
        .iter()
        .filter(|(_, c)| c.index == 0)
        .map(|(&block, _)| block)
        .collect();
    heads.sort_unstable();
    for head in heads {
        let Some(first) = chunks.remove(&head) else {
            continue;
        };
        let (mut at, mut total, mut last) = (first, first.len, 0);
        while let Some(next) = at.next {
            let follows =
                |c: &Chunk| c.xmin == first.xmin && c.total == first.total && c.index > last;
            let Some(chunk) = chunks.get(&next).copied().filter(follows) else {
                break;
            };
            chunks.remove(&next);
            total += chunk.len;
            last = chunk.index;
            at = chunk;
        }
        let whole = at.next.is_none() && total == first.total as usize;
        // One being freed has lost pages in its middle.
        if !whole && first.xmax.is_none() && !rolled_back(first.xmin) {
            faults.push(Fault::at(
                head,
                format!("large value of {} bytes has {total}", first.total),
            ));
        }
    }
    let mut left: Vec<(BlockNo, Chunk)> = chunks.into_iter().collect();
    left.sort_unstable_by_key(|&(block, _)| block);
    for (block, chunk) in left
        .into_iter()
        .filter(|(_, chunk)| !rolled_back(chunk.xmin))
    {
        let what = format!(
            "chunk {} of a large value that has no first page",
            chunk.index
        );
        faults.push(Fault::at(block, what));
    }
}
