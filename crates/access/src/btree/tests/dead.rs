//! Marks on the entries of dead rows.

use throng_types::page::PAGE_SIZE;

use super::node::Node;
use super::*;

/// Blocks from here on belong to dead rows: their entries are marked by readers and taken out by
/// vacuum.
pub(super) const DEAD: u32 = 1 << 20;

pub(super) fn dead(tid: Tid) -> bool {
    tid.block >= DEAD
}

/// Reads a range and marks what is dead there. Returns how many entries were given.
pub(super) fn read_marking(tree: &BTree, range: KeyRange, direction: Direction) -> usize {
    let mut cursor = tree.cursor(range, direction);
    let (mut tids, mut given) = (Vec::new(), 0);
    while retry_blocking(|| cursor.next(&mut tids)).unwrap() {
        given += tids.len();
        mark(tree, cursor.leaf().expect("a leaf was read"), &tids);
    }
    given
}

fn mark(tree: &BTree, leaf: LeafVersion, tids: &[Tid]) {
    let mut gone: Vec<Tid> = tids.iter().copied().filter(|tid| dead(*tid)).collect();
    tree.mark_dead(leaf, &mut gone);
}

fn all(tree: &BTree) -> Vec<Vec<u8>> {
    scan(tree, KeyRange::all(), Direction::Forward, usize::MAX)
}

/// Rows come and go one by one, as a queue's do: each is put in, found, and found dead the next
/// time.
#[test]
fn a_leaf_that_is_full_of_marked_entries_is_not_split() {
    let world = World::new(Limit(300), 64);
    let tree = &world.tree;
    for n in 0..2_000u32 {
        insert(tree, b"head", Tid::new(DEAD + n, 1));
        assert!(read_marking(tree, KeyRange::all(), Direction::Forward) <= 2);
    }
    let (census, faults) = tree.check();
    assert_eq!(faults, []);
    assert_eq!(census.leaves, 1);
    assert_eq!(get(tree, b"head"), []);
    assert_eq!(all(tree), Vec::<Vec<u8>>::new());
    // Vacuum finds what is marked.
    let done = vacuum(tree, &dead);
    assert_eq!(
        (done.entries_removed, done.entries_left),
        (census.entries, 0)
    );
}

/// The head of a queue whose entries lie on many leaves: its marked ones are passed over, in steps
/// of bounded length.
#[test]
fn marked_entries_are_passed_over() {
    let world = World::new(Limit(300), 256);
    let tree = &world.tree;
    for n in 0..3_000u32 {
        insert(tree, &n.to_be_bytes(), Tid::new(DEAD + n, 1));
    }
    insert(tree, &3_000u32.to_be_bytes(), Tid::new(7, 1));
    assert!(tree.check().0.leaves > 60);
    for direction in [Direction::Forward, Direction::Backward] {
        let given = read_marking(tree, KeyRange::all(), direction);
        assert_eq!(
            given,
            if direction == Direction::Forward {
                3_001
            } else {
                1
            }
        );
    }
    let mut cursor = tree.cursor(KeyRange::all(), Direction::Forward);
    let (mut tids, mut empty) = (Vec::new(), 0);
    while retry_blocking(|| cursor.next(&mut tids)).unwrap() && tids.is_empty() {
        empty += 1;
    }
    assert_eq!(tids, [Tid::new(7, 1)]);
    assert!(empty >= 3, "{empty} steps gave nothing");
    // The same for readers that note what they read.
    let mut cursor = tree.cursor(KeyRange::all(), Direction::Forward);
    let mut noted: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
    let mut note = |start: &[u8], end: Option<&[u8]>| {
        noted.push((start.to_vec(), end.map(<[u8]>::to_vec)));
    };
    while retry_blocking(|| cursor.next_noting(&mut tids, &mut note)).unwrap() && tids.is_empty() {}
    assert_eq!(tids, [Tid::new(7, 1)]);
    let is_whole = noted
        .windows(2)
        .all(|two| two[0].1.as_ref() == Some(&two[1].0));
    assert!(is_whole && noted[0].0.is_empty() && noted[noted.len() - 1].1.is_none());
}

/// What has changed since it was read is not marked: the row's slot may be another's.
#[test]
fn a_leaf_that_has_changed_is_not_marked() {
    let world = World::new(Limit::PAGE, 64);
    let tree = &world.tree;
    let gone = Tid::new(DEAD, 1);
    insert(tree, b"a", gone);
    let mut tids = Vec::new();
    let leaf = retry_blocking(|| tree.get(b"a", &mut tids)).unwrap();
    assert_eq!(tids, [gone]);
    assert!(delete(tree, b"a", gone));
    insert(tree, b"a", gone);
    mark(tree, leaf, &tids);
    assert_eq!(get(tree, b"a"), [gone]);
    // Marks are no change.
    insert(tree, b"b", Tid::new(DEAD, 2));
    let leaf = retry_blocking(|| tree.get(b"a", &mut tids)).unwrap();
    mark(tree, leaf, &tids);
    mark(tree, leaf, &[Tid::new(DEAD, 2)]);
    assert_eq!(all(tree), Vec::<Vec<u8>>::new());
    // An entry that is put in anew is there, here and after redo.
    insert(tree, b"b", Tid::new(DEAD, 2));
    assert_eq!(all(tree), [entry(b"b", Tid::new(DEAD, 2))]);
    let (_, redone) = super::recovery::replay(&world, |_, _| {});
    assert_eq!(
        all(&redone),
        [entry(b"a", gone), entry(b"b", Tid::new(DEAD, 2))],
        "marks are not in the log"
    );
}

/// A marked entry is in no unique key's way, and nobody asks about it.
#[test]
fn marked_entries_are_not_asked_about() {
    let world = World::new(Limit::PAGE, 64);
    let tree = &world.tree;
    for slot in 1..=9 {
        insert(tree, b"k", Tid::new(DEAD, slot));
    }
    read_marking(tree, KeyRange::all(), Direction::Backward);
    let mut check = |tid: Tid| panic!("{tid:?} is asked about");
    let mut put =
        |tid| retry_blocking(|| tree.insert_unique(b"k", tid, Xid(5), &mut check)).unwrap();
    assert_eq!(put(Tid::new(1, 1)), Inserted::Done);
    assert_eq!(tree.check().0.entries, 1);
    let mut object = |tid| Ok(Conflict::Live(tid));
    let second = Tid::new(2, 1);
    let done = retry_blocking(|| tree.insert_unique(b"k", second, Xid(5), &mut object)).unwrap();
    assert_eq!(done, Inserted::Duplicate(Tid::new(1, 1)));
}

/// A slot tells where its cell is whether it is marked or not, for cells of every length.
#[test]
fn a_mark_leaves_the_entry_as_it_is() {
    let world = World::new(Limit::PAGE, 64);
    let keys: Vec<Vec<u8>> = [0, 1, 5, 300, MAX_KEY].map(|len| vec![b'x'; len]).into();
    for key in &keys {
        insert(&world.tree, key, Tid::new(DEAD, key.len() as u16));
    }
    let block = |tree: &BTree| {
        let mut tids = Vec::new();
        retry_blocking(|| tree.get(b"", &mut tids)).unwrap();
        let page = retry_blocking(|| tree.pool.shared(tree.page_id(ROOT))).unwrap();
        let mut copy = Box::new([0; PAGE_SIZE]);
        copy.copy_from_slice(&*page);
        copy
    };
    let before = block(&world.tree);
    read_marking(&world.tree, KeyRange::all(), Direction::Forward);
    let after = block(&world.tree);
    let (old, new) = (Node::read(&*before), Node::read(&*after));
    assert_eq!(new.count(), keys.len());
    for at in 0..new.count() {
        assert!(new.is_marked(at) && !old.is_marked(at));
        assert_eq!((new.key(at), new.slot(at)), (old.key(at), old.slot(at)));
    }
    assert_eq!(crate::check::first_difference(&before, &after), None);
    assert_eq!(new.marked().len(), keys.len());
}

/// Random work in which readers mark what they find dead: no live entry is ever missing, and redo
/// makes the same pages.
#[test]
fn the_living_are_found_among_marks() {
    for (limit, seed, ops) in [
        (Limit(150), 1, 6_000),
        (Limit(400), 2, 6_000),
        (Limit::PAGE, 3, 8_000),
    ] {
        let world = World::new(limit, 512);
        let (tree, mut rng, mut live) = (&world.tree, Rng(seed), Model::new());
        let key = |rng: &mut Rng| (rng.below(700) as u64).to_be_bytes();
        let mut marked = 0;
        for op in 0..ops {
            let key = key(&mut rng);
            match rng.below(20) {
                0..8 => {
                    let tid = Tid::new(rng.below(3) as u32, 1);
                    insert(tree, &key, tid);
                    live.insert(entry(&key, tid));
                    insert(tree, &key, Tid::new(DEAD + rng.below(50) as u32, 1));
                }
                8..11 => {
                    let tid = Tid::new(rng.below(3) as u32, 1);
                    assert_eq!(delete(tree, &key, tid), live.remove(&entry(&key, tid)));
                }
                11..13 => {
                    let tid = Tid::new(5, 1);
                    let present = live.iter().find(|entry| entry.starts_with(&key));
                    let present = present.map(|entry| tid_of(entry));
                    let expected = present.map_or(Inserted::Done, Inserted::Duplicate);
                    let mut check = |tid| {
                        Ok(if dead(tid) {
                            Conflict::Dead
                        } else {
                            Conflict::Live(tid)
                        })
                    };
                    let done = retry_blocking(|| tree.insert_unique(&key, tid, Xid(3), &mut check));
                    assert_eq!(done.unwrap(), expected);
                    live.insert(entry(&key, present.unwrap_or(tid)));
                }
                13..17 => {
                    let other = (rng.below(700) as u64).to_be_bytes();
                    let (low, high) = (key.min(other), key.max(other));
                    let range = KeyRange {
                        lower: std::ops::Bound::Included(low.to_vec()),
                        upper: std::ops::Bound::Excluded(high.to_vec()),
                    };
                    let backward = rng.below(2) == 0;
                    let direction =
                        [Direction::Forward, Direction::Backward][usize::from(backward)];
                    let mut found = scan(
                        tree,
                        range.clone(),
                        direction,
                        [3, usize::MAX][rng.below(2)],
                    );
                    if backward {
                        found.reverse();
                    }
                    found.retain(|entry| !dead(tid_of(entry)));
                    let expected: Vec<_> =
                        live.range(low.to_vec()..high.to_vec()).cloned().collect();
                    assert_eq!(found, expected);
                    let before = read_marking(tree, range.clone(), direction);
                    let after = read_marking(tree, range, direction);
                    assert_eq!(after, expected.len());
                    marked += before - after;
                }
                17 if op % 50 == 0 => {
                    vacuum(tree, &dead);
                }
                _ => {
                    let mut found = get(tree, &key);
                    found.retain(|tid| !dead(*tid));
                    let mine = live.iter().filter(|entry| entry.starts_with(&key));
                    assert_eq!(found, mine.map(|entry| tid_of(entry)).collect::<Vec<_>>());
                }
            }
        }
        assert!(marked > 1_000, "{marked} entries were marked");
        super::recovery::replay(&world, |_, _| {});
        vacuum(tree, &dead);
        compare(tree, &live);
    }
}
