//! One page against a list of what is on it.

use proptest::prelude::*;
use throng_buffer::Mtr;
use throng_types::page::HEADER;

use super::super::page;
use super::*;
use crate::heap::Change;
use crate::heap::page::{MAX_SLOTS, SLOT, aligned};
use crate::heap::tuple::TUPLE_HEADER;

#[derive(Clone, Debug)]
enum Op {
    Put(usize),
    Delete(usize),
    Prune,
    /// Dead slots are forgotten by the indexes.
    Free(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let len = prop_oneof![4 => 0..60usize, 2 => 60..500usize, 1 => 500..8200usize];
    prop_oneof![
        6 => len.prop_map(Op::Put),
        3 => (0..300usize).prop_map(Op::Delete),
        1 => Just(Op::Prune),
        2 => (0..300usize).prop_map(Op::Free),
    ]
}

/// What a slot holds.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    Row(Vec<u8>),
    /// Deleted, its bytes still on the page.
    Deleted(usize),
    Dead,
    Unused,
}

#[derive(Default)]
struct Model(Vec<Held>);

impl Model {
    /// Bytes that are free once what is deleted has gone.
    fn free(&self) -> usize {
        let size = |held: &Held| match held {
            Held::Row(row) => aligned(TUPLE_HEADER + row.len()),
            _ => 0,
        };
        PAGE_SIZE - HEADER - self.0.len() * SLOT - self.0.iter().map(size).sum::<usize>()
    }
    /// The slot for a tuple of `size` bytes when so many bytes are free.
    fn slot_within(&self, free: usize, size: usize) -> Option<u16> {
        match self.0.iter().position(|held| *held == Held::Unused) {
            _ if free < aligned(size) => None,
            Some(i) => Some(i as u16 + 1),
            None => {
                let slot = self.0.len() as u16 + 1;
                (slot <= MAX_SLOTS && free >= aligned(size) + SLOT).then_some(slot)
            }
        }
    }
    fn prune(&mut self) {
        for held in &mut self.0 {
            if let Held::Deleted(_) = held {
                *held = Held::Dead;
            }
        }
    }
    fn forget_unused_tail(&mut self) {
        while self.0.last() == Some(&Held::Unused) {
            self.0.pop();
        }
    }
}

fn run(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let (world, txns) = (World::new(16), Txns::new());
    let fresh = retry_blocking(|| world.pool.new_page(FILE).map(|page| page.page_id())).unwrap();
    let mut model = Model::default();
    let mut filler = 0u8;
    for op in ops {
        match op {
            Op::Put(len) => {
                let row = vec![filler; len];
                filler = filler.wrapping_add(1);
                let size = TUPLE_HEADER + len;
                if size > page::MAX_TUPLE {
                    continue;
                }
                let ctx = txns.begin();
                let guard = retry_blocking(|| world.pool.exclusive(fresh)).unwrap();
                let hole = if model.0.is_empty() {
                    PAGE_SIZE
                } else {
                    page::hole(&*guard)
                };
                let mut expected = model.slot_within(hole, size);
                if expected.is_none() {
                    model.prune();
                    expected = model.slot_within(model.free(), size);
                }
                let (guard, room) = world.heap.make_room(guard, &ctx, size, 0);
                prop_assert_eq!(room.as_ref().map(|room| room.slot), expected);
                let Some(room) = room else { continue };
                let slot = room.slot;
                let mut mtr = Mtr::new(&world.pool, ctx.xid);
                let i = mtr.add(guard);
                let header = TupleHeader::new(ctx.xid, Cid(0), 0);
                world.heap.put(&mut mtr, i, room, &header, &row);
                mtr.commit();
                ctx.commit();
                model.0.resize(model.0.len().max(slot.into()), Held::Unused);
                model.0[usize::from(slot) - 1] = Held::Row(row);
            }
            Op::Delete(i) => {
                let Some(Held::Row(row)) = model.0.get(i) else {
                    continue;
                };
                let len = row.len();
                let ctx = txns.begin();
                let tid = Tid::new(0, i as u16 + 1);
                let change = retry_blocking(|| world.heap.delete(&ctx, tid)).unwrap();
                prop_assert_eq!(change, Change::Done(()));
                ctx.commit();
                model.0[i] = Held::Deleted(len);
            }
            Op::Prune => {
                let ctx = txns.begin();
                retry_blocking(|| world.heap.prune(0, &ctx)).unwrap();
                ctx.commit();
                model.prune();
            }
            Op::Free(i) => {
                let was_dead = model.0.get(i) == Some(&Held::Dead);
                retry_blocking(|| world.heap.vacuum_finish(0, &[i as u16 + 1])).unwrap();
                if was_dead {
                    model.0[i] = Held::Unused;
                    model.forget_unused_tail();
                }
            }
        }
        let now = world.page(0);
        if !page::is_heap(&*now) {
            prop_assert!(model.0.is_empty());
            continue;
        }
        let mut faults = Vec::new();
        crate::check::check_heap_page(&now, 0, &mut faults);
        prop_assert!(faults.is_empty(), "{:?}", faults);
        prop_assert_eq!(usize::from(page::slot_count(&*now)), model.0.len());
        for (i, held) in model.0.iter().enumerate() {
            let found =
                page::tuple(&*now, i as u16 + 1).map(|(at, len, _)| now[at..at + len].to_vec());
            match held {
                Held::Row(row) => prop_assert_eq!(&found.unwrap()[TUPLE_HEADER..], &row[..]),
                Held::Deleted(len) => prop_assert_eq!(found.unwrap().len(), TUPLE_HEADER + len),
                Held::Dead | Held::Unused => prop_assert_eq!(found, None),
            }
        }
    }
    world.assert_redo_gives_the_same();
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn a_page_does_as_a_list_would(ops in prop::collection::vec(op(), 1..150)) {
        run(ops)?;
    }
}
