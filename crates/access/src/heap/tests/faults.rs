//! The check finds what is wrong: pages are damaged on the disk, one way at a time.

use super::*;
use crate::check::Fault;
use crate::heap::large::{CHUNK, LargeWrite};
use crate::heap::page::Slot;
use throng_buffer::page_checksum;
use throng_types::page::{OFF_CHECKSUM, OFF_FLAGS as PAGE_FLAGS, OFF_KIND, OFF_UPPER};

/// A table with a chain of two versions in slots 1 and 3, a row in slot 2, and a value of two pages
/// behind it.
fn table() -> World {
    let (world, txns) = (World::new(64), Txns::new());
    let ctx = Ctx {
        cid: Cid(1),
        ..txns.begin()
    };
    let first = retry_blocking(|| world.heap.insert(&ctx, b"a row")).unwrap();
    retry_blocking(|| world.heap.insert(&ctx, b"another")).unwrap();
    ctx.commit();
    let ctx = Ctx {
        cid: Cid(1),
        ..txns.begin()
    };
    let mode = RowLockMode::NoKeyUpdate;
    retry_blocking(|| {
        world
            .heap
            .update(&ctx, first, b"a row, changed", mode, true)
    })
    .unwrap();
    let mut progress = LargeWrite::default();
    let value = vec![1; CHUNK + 1];
    retry_blocking(|| world.heap.store_large(&ctx, &value, &mut progress)).unwrap();
    ctx.commit();
    world.check(&|_| false);
    world
}

/// The faults after `damage` to a block, whose checksum is put right again.
fn faults(block: BlockNo, damage: impl FnOnce(&mut [u8; PAGE_SIZE])) -> Vec<Fault> {
    let world = table();
    let id = PageId::new(FILE, block);
    let mut page = [0; PAGE_SIZE];
    world.files.read_page(id, &mut page).unwrap();
    damage(&mut page);
    let checksum = page_checksum(id, &page);
    page[OFF_CHECKSUM..OFF_CHECKSUM + 4].copy_from_slice(&checksum.to_le_bytes());
    world.files.write_pages(id, &[page]).unwrap();
    check_file(&world.files, FILE, FileKind::Heap, &|_| false)
}

fn set_slot(page: &mut [u8; PAGE_SIZE], n: u16, slot: Slot) {
    page[page::slot_offset(n)..][..4].copy_from_slice(&slot.encode().to_le_bytes());
}

fn assert_one(faults: &[Fault], block: BlockNo, what: &str) {
    let found = faults
        .iter()
        .any(|fault| fault.block == Some(block) && fault.what.contains(what));
    assert!(found, "{what:?} is not among {faults:?}");
}

#[test]
fn damage_to_a_page_is_named() {
    assert_eq!(faults(0, |_| {}), []);
    assert_one(
        &faults(0, |page| page[OFF_UPPER..OFF_UPPER + 2].fill(0)),
        0,
        "header with lower",
    );
    assert_one(
        &faults(0, |page| page[PAGE_FLAGS] = 0x80),
        0,
        "unknown page flags",
    );
    assert_one(&faults(0, |page| page[OFF_KIND] = 99), 0, "page of kind 99");
    assert_one(
        &faults(0, |page| set_slot(page, 2, Slot::Unused)),
        0,
        "slot 2 is unused",
    );
    let outside = Slot::Normal { off: 8184, len: 40 };
    assert_one(
        &faults(0, |page| set_slot(page, 2, outside)),
        0,
        "slot 2 names 40 bytes at 8184",
    );
    assert_one(
        &faults(0, |page| set_slot(page, 2, Slot::Redirect(1))),
        0,
        "redirects to slot 1",
    );
    assert_one(
        &faults(0, |page| set_slot(page, 2, Slot::Redirect(3))),
        0,
        "hangs on slots 1 and 2",
    );
    let overlap = |page: &mut [u8; PAGE_SIZE]| {
        let (at, len, _) = page::tuple(page, 1).unwrap();
        set_slot(
            page,
            2,
            Slot::Normal {
                off: at as u16,
                len: len as u16,
            },
        );
    };
    assert_one(&faults(0, overlap), 0, "overlap");
    let unmade = |page: &mut [u8; PAGE_SIZE]| {
        let (at, ..) = page::tuple(page, 2).unwrap();
        page[at..at + 8].fill(0);
    };
    assert_one(&faults(0, unmade), 0, "tuple 2 has xmin 0");
}

#[test]
fn a_chain_that_bites_its_tail_is_named() {
    let circle = |page: &mut [u8; PAGE_SIZE]| {
        let (second, _, mut header) = page::tuple(page, 3).unwrap();
        header.xmax = header.xmin;
        header.next = Tid::new(0, 3);
        header.flags |= super::super::tuple::HOT_UPDATED;
        page[second..second + 32].copy_from_slice(&header.to_bytes());
    };
    assert_one(&faults(0, circle), 0, "comes back to slot 3");
}

#[test]
fn a_large_value_that_has_lost_a_page_is_named() {
    let world = table();
    let chunks: Vec<BlockNo> = (0..world.blocks())
        .filter(|&block| world.page(block)[OFF_KIND] == 7)
        .collect();
    assert_eq!(chunks.len(), 2);
    let all: Vec<Fault> = chunks
        .iter()
        .flat_map(|&block| faults(block, |page| page.fill(0)))
        .collect();
    assert!(
        all.iter()
            .any(|fault| fault.what.contains("large value of 8137 bytes has 8136"))
    );
    assert!(
        all.iter()
            .any(|fault| fault.what.contains("has no first page"))
    );
}

#[test]
fn a_flipped_bit_is_named() {
    let world = table();
    let id = PageId::new(FILE, 0);
    let mut page = [0; PAGE_SIZE];
    world.files.read_page(id, &mut page).unwrap();
    page[8000] ^= 1;
    world.files.write_pages(id, &[page]).unwrap();
    let faults = check_file(&world.files, FILE, FileKind::Unknown, &|_| false);
    assert_one(&faults, 0, "checksum does not match");
}
