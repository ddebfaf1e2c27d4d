//! One thread, all calls, against a set.

use std::ops::Bound;

use super::*;

/// Key makers: what indexes in the wild look like, and what is nasty.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Counters,
    Duplicates,
    Strings,
    LongPrefixes,
}

fn key(shape: Shape, rng: &mut Rng) -> Vec<u8> {
    match shape {
        Shape::Counters => [&[1][..], &(rng.below(5000) as u64).to_be_bytes()].concat(),
        Shape::Duplicates => vec![b'k', rng.below(4) as u8],
        Shape::Strings => (0..rng.below(12))
            .map(|_| [0, 1, b'a', 255][rng.below(4)])
            .collect(),
        Shape::LongPrefixes => {
            let mut key = vec![[b'a', b'b'][rng.below(2)]; [3, 20, 24][rng.below(3)]];
            key.extend((0..rng.below(5)).map(|_| [0, b'b', 255][rng.below(3)]));
            key
        }
    }
}

fn tid(rng: &mut Rng) -> Tid {
    Tid::new(rng.below(300) as u32, 1 + rng.below(4) as u16)
}

fn bound(shape: Shape, rng: &mut Rng) -> Bound<Vec<u8>> {
    let mut key = key(shape, rng);
    if rng.below(3) == 0 {
        key.truncate(rng.below(key.len() + 1));
    }
    match rng.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

/// What a range says of an entry, from first principles: a bound stands for all that begins with
/// it.
fn within(entry: &[u8], range: &KeyRange) -> bool {
    let above = match &range.lower {
        Bound::Unbounded => true,
        Bound::Included(low) => entry >= low.as_slice(),
        Bound::Excluded(low) => entry > low.as_slice() && !entry.starts_with(low),
    };
    let below = match &range.upper {
        Bound::Unbounded => true,
        Bound::Included(high) => entry <= high.as_slice() || entry.starts_with(high),
        Bound::Excluded(high) => entry < high.as_slice(),
    };
    above && below
}

#[test]
fn a_union_has_the_keys_of_all_its_ranges_once() {
    let mut rng = Rng(9);
    for _ in 0..20_000 {
        let shape = [Shape::Strings, Shape::LongPrefixes][rng.below(2)];
        let ranges: Vec<KeyRange> = (0..rng.below(5))
            .map(|_| KeyRange {
                lower: bound(shape, &mut rng),
                upper: bound(shape, &mut rng),
            })
            .collect();
        let union = KeyRange::union(ranges.clone());
        for _ in 0..20 {
            let key = key(shape, &mut rng);
            let times = union.iter().filter(|range| within(&key, range)).count();
            let expected = ranges.iter().any(|range| within(&key, range));
            assert_eq!(times, usize::from(expected), "{key:?} in {ranges:?}");
        }
        let starts: Vec<_> = union.into_iter().map(KeyRange::half_open).collect();
        assert!(starts.is_sorted() && starts.iter().all(Option::is_some));
    }
}

/// Entries in order, offered as runs until all are in or refused.
fn insert_some(tree: &BTree, shape: Shape, rng: &mut Rng, model: &mut Model) {
    // Where no key begins another: else a tid's bytes may look like a key's.
    let prefix_free = matches!(shape, Shape::Counters | Shape::Duplicates);
    let unique = prefix_free && rng.below(2) == 0;
    let count = 1 + rng.below(30);
    let mut entries: Vec<Vec<u8>> = match shape {
        // Neighbours, which go into one gap.
        Shape::Counters if rng.below(2) == 0 => {
            let first = rng.below(5000) as u64;
            (first..first + count as u64)
                .map(|n| entry(&[&[1][..], &n.to_be_bytes()].concat(), tid(rng)))
                .collect()
        }
        _ => (0..count)
            .map(|_| entry(&key(shape, rng), tid(rng)))
            .collect(),
    };
    entries.sort();
    let mut left: Vec<(&[u8], Tid)> = entries.iter().map(|e| split_entry(e)).collect();
    while let Some(&(key, _)) = left.first() {
        let mut object = |tid| Ok(Conflict::Live(tid));
        let run = retry_blocking(|| {
            tree.insert_run(&left, Xid::NONE, unique.then_some(&mut object as Check<'_>))
        });
        let in_the_way = |model: &Model, key: &[u8]| {
            let next = model.range(key.to_vec()..).next()?;
            (unique && next.starts_with(key)).then(|| tid_of(next))
        };
        match run.unwrap() {
            Run::Added(count) => {
                assert!(count > 0);
                for (key, tid) in left.drain(..count) {
                    assert_eq!(in_the_way(model, key), None);
                    model.insert(entry(key, tid));
                }
            }
            Run::Duplicate(tid) => {
                assert_eq!(in_the_way(model, key), Some(tid));
                left.remove(0);
            }
            Run::Busy(xid) => panic!("{xid} is nobody"),
        }
    }
}

fn run(shape: Shape, seed: u64, ops: usize, limit: Limit, frames: usize) -> check::Census {
    let world = World::new(limit, frames);
    let tree = &world.tree;
    let mut rng = Rng(seed);
    let mut model = Model::new();
    let mut peak = check::Census::default();
    let batch = [usize::MAX, 1, 3][rng.below(3)];
    let mut again = tree
        .cursor(KeyRange::all(), Direction::Forward)
        .with_batch(batch);
    for op in 0..ops {
        // Phases that grow and phases that shrink.
        let growing = (op / 1_500) % 2 == 0;
        match rng.below(100) {
            0..60 if growing => {
                let (key, tid) = (key(shape, &mut rng), tid(&mut rng));
                insert(tree, &key, tid);
                model.insert(entry(&key, tid));
            }
            0..60 => {
                let Some(gone) = model.iter().nth(rng.below(model.len().max(1))).cloned() else {
                    continue;
                };
                let (key, tid) = split_entry(&gone);
                assert!(delete(tree, key, tid));
                assert!(!delete(tree, key, tid));
                model.remove(&gone);
            }
            60..75 => {
                let (key, tid) = (key(shape, &mut rng), tid(&mut rng));
                let present = model
                    .iter()
                    .find(|entry| entry.starts_with(&key))
                    .map(|entry| tid_of(entry));
                let mut check = |tid| Ok(Conflict::Live(tid));
                let done = retry_blocking(|| tree.insert_unique(&key, tid, Xid::NONE, &mut check))
                    .unwrap();
                assert_eq!(done, present.map_or(Inserted::Done, Inserted::Duplicate));
                if present.is_none() {
                    model.insert(entry(&key, tid));
                }
            }
            75..80 => insert_some(tree, shape, &mut rng, &mut model),
            80..85 => {
                let key = key(shape, &mut rng);
                let expected: Vec<Tid> = model
                    .iter()
                    .filter(|entry| entry.starts_with(&key))
                    .map(|entry| tid_of(entry))
                    .collect();
                assert_eq!(get(tree, &key), expected);
                // One cursor for all look-ups, wherever the last left it.
                again.seek(&key);
                let (mut some, mut found) = (Vec::new(), Vec::new());
                let enough = [1, usize::MAX][rng.below(2)];
                while found.len() < enough && retry_blocking(|| again.next(&mut some)).unwrap() {
                    found.append(&mut some);
                }
                assert!(found.len() >= enough.min(expected.len()));
                assert_eq!(found, expected[..found.len()]);
            }
            85..98 => {
                let range = KeyRange {
                    lower: bound(shape, &mut rng),
                    upper: bound(shape, &mut rng),
                };
                let mut expected: Vec<_> = model
                    .iter()
                    .filter(|entry| within(entry, &range))
                    .cloned()
                    .collect();
                let batch = [usize::MAX, 1, 3][rng.below(3)];
                assert_eq!(
                    scan(tree, range.clone(), Direction::Forward, batch),
                    expected,
                    "{range:?}"
                );
                expected.reverse();
                assert_eq!(
                    scan(tree, range.clone(), Direction::Backward, batch),
                    expected,
                    "{range:?}"
                );
            }
            _ => {
                let modulus = if growing {
                    100
                } else {
                    2 + rng.below(3) as u32
                };
                let dead = |tid: Tid| tid.block.is_multiple_of(modulus);
                let done = vacuum(tree, &dead);
                let before = model.len();
                model.retain(|entry| !dead(tid_of(entry)));
                assert_eq!(done.entries_removed, (before - model.len()) as u64);
                assert_eq!(done.entries_left, model.len() as u64);
            }
        }
        if op % 97 == 0 {
            let census = compare(tree, &model);
            peak.depth = peak.depth.max(census.depth);
            peak.leaves = peak.leaves.max(census.leaves);
        }
    }
    vacuum(tree, &|_| true);
    let last = compare(tree, &Model::new());
    assert!(
        last.leaves <= 2 + last.depth,
        "an emptied tree gives its pages back: {last:?}"
    );
    assert!(last.unused <= 2);
    peak
}

#[test]
fn small_pages() {
    for (shape, seed) in [
        (Shape::Counters, 1),
        (Shape::Duplicates, 2),
        (Shape::Strings, 3),
        (Shape::LongPrefixes, 4),
    ] {
        // As many frames as a look-up may need at once: it starts over when it had to wait.
        let peak = run(shape, seed, 9_000, Limit(150), 1024);
        assert!(peak.depth >= 3, "{shape:?} grew only {peak:?}");
    }
}

#[test]
fn whole_pages() {
    for (shape, seed) in [(Shape::Counters, 5), (Shape::Strings, 6)] {
        run(shape, seed, 4_000, Limit::PAGE, 64);
    }
}

#[test]
fn a_pool_smaller_than_the_tree() {
    run(Shape::Counters, 7, 3_000, Limit(300), 24);
}

/// Keys of the largest size, alike up to their last byte or not at all.
#[test]
fn the_largest_keys() {
    let world = World::new(Limit::PAGE, 256);
    let mut rng = Rng(8);
    let mut model = Model::new();
    for n in 0..400 {
        let mut key =
            vec![[b'a', b'b', b'c'][rng.below(3)]; [MAX_KEY, MAX_KEY - 3, 900][rng.below(3)]];
        let at = [0, key.len() - 1, rng.below(key.len())][rng.below(3)];
        key[at] = rng.below(256) as u8;
        let tid = Tid::new(rng.below(3) as u32, 1);
        insert(&world.tree, &key, tid);
        model.insert(entry(&key, tid));
        if n % 20 == 0 {
            compare(&world.tree, &model);
        }
    }
    compare(&world.tree, &model);
    let all = model.iter().rev().cloned().collect::<Vec<_>>();
    assert_eq!(
        scan(
            &world.tree,
            KeyRange::all(),
            Direction::Backward,
            usize::MAX
        ),
        all
    );
    vacuum(&world.tree, &|tid| tid.block == 1);
    model.retain(|entry| tid_of(entry).block != 1);
    compare(&world.tree, &model);
}

#[test]
fn a_key_too_large_is_an_error() {
    let world = World::new(Limit::PAGE, 32);
    let error = retry_blocking(|| {
        world
            .tree
            .insert(&[0; MAX_KEY + 1], Tid::new(0, 1), Xid::NONE)
    })
    .unwrap_err();
    assert_eq!(error.code(), state::PROGRAM_LIMIT_EXCEEDED);
    let error = key_too_large(3000, "i");
    assert_eq!(
        error.message(),
        "index row size 3000 exceeds btree version 4 maximum 2704 for index \"i\""
    );
}

/// How full leaves are, in per cent.
fn fill(world: &World, entries: u64) -> u64 {
    let (census, faults) = world.tree.check();
    assert_eq!(faults, []);
    assert_eq!(census.entries, entries);
    census.leaf_bytes * 100 / (census.leaves * node::CAPACITY as u64)
}

/// Ascending insertion leaves pages nearly full, and random insertion at least half full.
#[test]
fn pages_are_well_filled() {
    let ascending = World::new(Limit::PAGE, 512);
    let random = World::new(Limit::PAGE, 512);
    let mut rng = Rng(9);
    for n in 0..30_000u64 {
        insert(&ascending.tree, &n.to_be_bytes(), Tid::new(n as u32, 1));
        insert(
            &random.tree,
            &rng.next().to_be_bytes(),
            Tid::new(n as u32, 1),
        );
    }
    let fill = |world: &World| fill(world, 30_000);
    assert!(
        (88..=100).contains(&fill(&ascending)),
        "{}",
        fill(&ascending)
    );
    assert!((50..=85).contains(&fill(&random)), "{}", fill(&random));
    assert_eq!(retry_blocking(|| ascending.tree.extent()).unwrap().depth, 2);
}

/// So does insertion that ascends at many places: offered as runs, or one by one as their rows were
/// stored.
#[test]
fn pages_are_well_filled_by_many_tenants() {
    const TENANTS: usize = 16;
    const EACH: u64 = 8_000;
    let (runs, singles) = (World::new(Limit::PAGE, 512), World::new(Limit::PAGE, 512));
    let mut rng = Rng(11);
    let mut done = [0; TENANTS];
    while done.iter().any(|done| *done < EACH) {
        let tenant = rng.below(TENANTS);
        let (from, to) = (done[tenant], EACH.min(done[tenant] + 200));
        done[tenant] = to;
        let keys: Vec<[u8; 8]> = (from..to)
            .map(|n| ((tenant as u64) << 32 | n).to_be_bytes())
            .collect();
        let far = |rng: &mut Rng| Tid::new(rng.below(1 << 20) as u32, 1);
        let entries: Vec<(&[u8], Tid)> = keys.iter().map(|key| (&key[..], far(&mut rng))).collect();
        let mut left = &entries[..];
        while !left.is_empty() {
            match retry_blocking(|| runs.tree.insert_run(left, Xid::NONE, None)).unwrap() {
                Run::Added(count) => left = &left[count..],
                other => panic!("{other:?}"),
            }
        }
        for (n, key) in (from..).zip(&keys) {
            let block = tenant as u32 * 1000 + n as u32 / 60;
            insert(&singles.tree, key, Tid::new(block, 1 + n as u16 % 60));
        }
    }
    for world in [&runs, &singles] {
        let fill = fill(world, TENANTS as u64 * EACH);
        assert!((80..=100).contains(&fill), "{fill}");
    }
}

/// A queue: entries come at the right and go at the left. The file must stop growing.
#[test]
fn a_queue_reuses_its_pages() {
    let world = World::new(Limit(300), 256);
    let mut blocks = Vec::new();
    for round in 0..40u32 {
        for n in round * 500..(round + 1) * 500 {
            insert(&world.tree, &n.to_be_bytes(), Tid::new(n, 1));
        }
        vacuum(&world.tree, &|tid| tid.block < round * 500);
        blocks.push(retry_blocking(|| world.tree.extent()).unwrap().blocks);
    }
    assert!(blocks[39] <= blocks[3] + 8, "{blocks:?}");
    let (census, faults) = world.tree.check();
    assert_eq!(faults, []);
    assert!(census.empty_leaves < 4, "{census:?}");
}

#[test]
fn built_in_bulk() {
    for (limit, count) in [
        (Limit(300), 3_000u64),
        (Limit::PAGE, 50_000),
        (Limit::PAGE, 3),
        (Limit::PAGE, 0),
    ] {
        let world = World::new(limit, 128);
        let mut model: Model = (0..count)
            .map(|n| entry(&(n / 3 * 7).to_be_bytes(), Tid::new(n as u32, 1)))
            .collect();
        let sorted = model.clone();
        let built = world
            .tree
            .bulk_build(sorted.iter().map(|entry| split_entry(entry)), Xid::NONE)
            .unwrap();
        assert_eq!(built, count);
        let census = compare(&world.tree, &model);
        assert_eq!(census.unused, 0);
        if count > 10_000 {
            assert!(census.leaf_bytes * 100 / (census.leaves * node::CAPACITY as u64) >= 88);
        }
        // It is a tree like any other.
        let mut rng = Rng(10);
        for _ in 0..500 {
            let (key, tid) = (
                rng.next() % (count + 10) * 3,
                Tid::new(rng.below(9) as u32, 2),
            );
            insert(&world.tree, &key.to_be_bytes(), tid);
            model.insert(entry(&key.to_be_bytes(), tid));
        }
        compare(&world.tree, &model);
    }
}

#[test]
fn building_refuses_disorder() {
    let world = World::new(Limit::PAGE, 32);
    let twice = [(b"b", Tid::new(1, 1)), (b"a", Tid::new(1, 1))];
    let error = world.tree.bulk_build(twice, Xid::NONE).unwrap_err();
    assert_eq!(error.code(), state::INTERNAL_ERROR);
    compare(&world.tree, &Model::new());
}

/// Dead entries of a unique key are dropped on the way, live ones are kept.
#[test]
fn unique_insertion_forgets_the_dead() {
    let world = World::new(Limit(300), 64);
    for block in 0..8 {
        insert(&world.tree, b"k", Tid::new(block, 1));
    }
    let mut asked = Vec::new();
    let mut check = |tid: Tid| {
        asked.push(tid.block);
        Ok(if tid.block.is_multiple_of(2) {
            Conflict::Dead
        } else {
            Conflict::None
        })
    };
    let done = retry_blocking(|| {
        world
            .tree
            .insert_unique(b"k", Tid::new(9, 1), Xid(5), &mut check)
    })
    .unwrap();
    assert_eq!((done, asked), (Inserted::Done, (0..8).collect()));
    assert_eq!(
        get(&world.tree, b"k")
            .iter()
            .map(|tid| tid.block)
            .collect::<Vec<_>>(),
        [1, 3, 5, 7, 9]
    );
    let mut busy = |tid: Tid| {
        Ok(if tid.block == 5 {
            Conflict::Busy(Xid(7))
        } else {
            Conflict::None
        })
    };
    let done = retry_blocking(|| {
        world
            .tree
            .insert_unique(b"k", Tid::new(10, 1), Xid(5), &mut busy)
    })
    .unwrap();
    assert_eq!(done, Inserted::Busy(Xid(7)));
    assert_eq!(get(&world.tree, b"k").len(), 5);
}
