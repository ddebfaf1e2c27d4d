//! Many threads at one tree.
//!
//! Each thread owns the keys that have its number, so it knows exactly what it must find, whatever
//! the others and the vacuum do meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::dead::{DEAD, dead};
use super::*;

/// So many neighbouring keys have one owner.
const GROUP: usize = 128;

fn key(number: usize, owner: u8) -> Vec<u8> {
    let (group, number) = ((number / GROUP) as u16, number as u32);
    [&group.to_be_bytes()[..], &[owner], &number.to_be_bytes()].concat()
}

/// One thread's share: changes and looks, in random order.
fn tenant(tree: &BTree, owner: u8, seed: u64, ops: usize, keys: usize) -> Model {
    let mut rng = Rng(seed);
    let mut mine = Model::new();
    for op in 0..ops {
        let key = key(rng.below(keys), owner);
        let tid = Tid::new(rng.below(3) as u32, 1);
        match rng.below(20) {
            0..9 if (op / 1_000) % 2 == 0 => {
                insert(tree, &key, tid);
                mine.insert(entry(&key, tid));
                // A row that came and went beside it.
                insert(tree, &key, Tid::new(DEAD + rng.below(50) as u32, 1));
            }
            0 => {
                // A whole stretch goes, and its pages with it.
                let number = rng.below(keys);
                let end = self::key((number + GROUP).min(keys), owner);
                let gone: Vec<_> = mine.range(self::key(number, owner)..end).cloned().collect();
                for entry in gone {
                    let (key, tid) = split_entry(&entry);
                    assert!(delete(tree, key, tid));
                    mine.remove(&entry);
                }
            }
            1..9 => assert_eq!(delete(tree, &key, tid), mine.remove(&entry(&key, tid))),
            9..16 => {
                let mut found = get(tree, &key);
                found.retain(|tid| !dead(*tid));
                let expected: Vec<Tid> = mine
                    .iter()
                    .filter(|entry| entry.starts_with(&key))
                    .map(|entry| tid_of(entry))
                    .collect();
                assert_eq!(found, expected);
            }
            _ => {
                let end = self::key(rng.below(keys), owner);
                let (low, high) = (key.clone().min(end.clone()), key.max(end));
                let range = KeyRange {
                    lower: std::ops::Bound::Included(low.clone()),
                    upper: std::ops::Bound::Excluded(high.clone()),
                };
                let backward = rng.below(2) == 0;
                let direction = if backward {
                    Direction::Backward
                } else {
                    Direction::Forward
                };
                let batch = [7, usize::MAX][rng.below(2)];
                let mut found = scan(tree, range.clone(), direction, batch);
                super::dead::read_marking(tree, range, direction);
                if backward {
                    found.reverse();
                }
                assert!(
                    found.is_sorted_by(|a, b| a < b),
                    "in order, and nothing twice"
                );
                found.retain(|entry| entry[2] == owner && !dead(tid_of(entry)));
                let expected: Vec<_> = mine.range(low..high).cloned().collect();
                assert_eq!(found, expected);
            }
        }
    }
    mine
}

fn crowd(limit: Limit, frames: usize, threads: u8, ops: usize, keys: usize) -> u64 {
    let world = World::new(limit, frames);
    let done = AtomicBool::new(false);
    let freed = AtomicU64::new(0);
    let mut model = Model::new();
    std::thread::scope(|scope| {
        let vacuums = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                freed.fetch_add(vacuum(&world.tree, &dead).pages_freed, Ordering::Relaxed);
            }
        });
        let tree = &world.tree;
        let tenants: Vec<_> = (0..threads)
            .map(|n| scope.spawn(move || tenant(tree, n, u64::from(n) + 40, ops, keys)))
            .collect();
        let outcomes: Vec<_> = tenants.into_iter().map(|tenant| tenant.join()).collect();
        done.store(true, Ordering::Relaxed);
        vacuums.join().unwrap();
        for outcome in outcomes {
            model.extend(outcome.unwrap());
        }
    });
    let last = vacuum(&world.tree, &dead).pages_freed;
    compare(&world.tree, &model);
    freed.into_inner() + last
}

#[test]
fn tenants_find_what_is_theirs_on_small_pages() {
    assert!(
        crowd(Limit(180), 512, 4, 8_000, 400) > 0,
        "pages were freed"
    );
}

#[test]
fn tenants_find_what_is_theirs_with_few_frames() {
    assert!(crowd(Limit(400), 48, 4, 3_000, 300) > 0, "pages were freed");
}

#[test]
fn tenants_find_what_is_theirs_on_whole_pages() {
    crowd(Limit::PAGE, 512, 4, 8_000, 3_000);
}

/// Of all who insert one key at once, one wins, also where dead entries with that key fill several
/// leaves.
#[test]
fn a_unique_key_has_one_winner() {
    const KEYS: usize = 60;
    let world = World::new(Limit(200), 512);
    for n in 0..KEYS {
        for block in 0..(n as u32 % 40) {
            insert(&world.tree, &key(n, 0), Tid::new(DEAD + 2 * block, 1));
        }
    }
    let forgettable = |tid: Tid| dead(tid) && tid.block.is_multiple_of(4);
    let wins: Vec<BTreeMap<usize, Tid>> = std::thread::scope(|scope| {
        let tree = &world.tree;
        let contender = |who: u32| {
            let mut won = BTreeMap::new();
            let mut rng = Rng(u64::from(who));
            for _ in 0..600 {
                let n = rng.below(KEYS);
                let tid = Tid::new(who, 1 + n as u16);
                let mut check = |tid: Tid| {
                    Ok(match tid {
                        tid if forgettable(tid) => Conflict::Dead,
                        tid if dead(tid) => Conflict::None,
                        tid => Conflict::Live(tid),
                    })
                };
                match retry_blocking(|| tree.insert_unique(&key(n, 0), tid, Xid::NONE, &mut check))
                    .unwrap()
                {
                    Inserted::Done => assert_eq!(won.insert(n, tid), None),
                    Inserted::Duplicate(other) => {
                        assert!(won.get(&n).is_none_or(|mine| *mine == other))
                    }
                    Inserted::Busy(_) => unreachable!("nobody is busy"),
                }
            }
            won
        };
        let contenders: Vec<_> = (0..4)
            .map(|who| scope.spawn(move || contender(who)))
            .collect();
        contenders
            .into_iter()
            .map(|contender| contender.join().unwrap())
            .collect()
    });
    let mut winners = BTreeMap::new();
    for (n, tid) in wins.into_iter().flatten() {
        assert_eq!(winners.insert(n, tid), None, "key {n} was won twice");
    }
    assert_eq!(winners.len(), KEYS);
    for (n, tid) in winners {
        let live: Vec<Tid> = get(&world.tree, &key(n, 0))
            .into_iter()
            .filter(|tid| !dead(*tid))
            .collect();
        assert_eq!(live, [tid]);
    }
    assert_eq!(world.tree.check().1, []);
}
