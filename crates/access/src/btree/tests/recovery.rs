//! What a crash leaves: the tree that redo makes of the log.

use throng_types::PageId;
use throng_types::page::PAGE_SIZE;
use throng_wal::Reader;

use super::*;

/// Redoes everything that `world` has logged on an empty disk, whose log goes on where that one
/// ends, and calls `look` after each record, with how many there were.
pub(super) fn replay(world: &World, mut look: impl FnMut(usize, &BTree)) -> (SimDisk, BTree) {
    let end = world.wal.inserted();
    world.wal.flush_blocking(end).unwrap();
    let mut reader = Reader::new(
        Arc::new(world.disk.clone()),
        log_config().segment_size,
        &Arc::default(),
        Wal::FIRST,
    );
    let disk = SimDisk::new();
    let wal = Wal::open(Arc::new(disk.clone()), log_config(), end).unwrap();
    let pool = pool_on(&disk, wal, 256);
    let mut tree = BTree::open(pool.clone(), FILE);
    tree.limit = world.tree.limit;
    let mut records = 0;
    while let Some(entry) = reader.next().unwrap() {
        crate::redo::apply(&pool, entry.end, &entry.record).unwrap();
        records += 1;
        look(records, &tree);
    }
    assert_same_pages(world, &pool);
    (disk, tree)
}

/// Redo has made what was done, page by page.
fn assert_same_pages(world: &World, redone: &Pool) {
    let page = |pool: &Pool, block| {
        retry_blocking(|| Ok(Box::new(*pool.shared(PageId::new(FILE, block))?))).unwrap()
    };
    let blocks = world.pool.blocks(FILE).unwrap();
    let theirs = redone.blocks(FILE).unwrap();
    for block in 0..blocks {
        let mine = page(&world.pool, block);
        // A page that was added and never used is not in the log.
        let redone = match block < theirs {
            true => page(redone, block),
            false => Box::new([0; PAGE_SIZE]),
        };
        let differs = crate::check::first_difference(&mine, &redone);
        assert_eq!(differs, None, "page {block} differs after redo");
    }
}

/// Work that splits, merges, frees and reuses pages.
fn work(world: &World, seed: u64, ops: usize) -> Model {
    let (tree, mut rng, mut model) = (&world.tree, Rng(seed), Model::new());
    for op in 0..ops {
        let key = (rng.below(3_000) as u64).to_be_bytes();
        let tid = Tid::new(rng.below(5) as u32, 1);
        if op % 2_000 < 1_500 {
            insert(tree, &key, tid);
            model.insert(entry(&key, tid));
        } else if let Some(gone) = model.range(key.to_vec()..).next().cloned() {
            let (key, tid) = split_entry(&gone);
            assert!(delete(tree, key, tid));
            model.remove(&gone);
        }
        if op % 2_000 == 1_999 {
            vacuum(tree, &|tid| tid.block > 1);
            model.retain(|entry| tid_of(entry).block <= 1);
        }
    }
    model
}

/// Every record ends a change: after each of them the tree is sound, whatever was on its way.
#[test]
fn the_tree_is_sound_after_every_record() {
    let world = World::new(Limit(130), 256);
    let model = work(&world, 1, 5_500);
    let mut most = 0;
    let (_, tree) = replay(&world, |records, tree| {
        if records < 200 || records.is_multiple_of(7) {
            let (census, faults) = tree.check();
            assert_eq!(faults, [], "after {records} records");
            most = most.max(census.depth);
        }
    });
    assert!(most >= 4, "the work made {most} levels");
    let (before, after) = (compare(&world.tree, &model), compare(&tree, &model));
    assert_eq!(before, after);
}

/// A tree that was redone can be used on, and its pages survive being written and read.
#[test]
fn life_goes_on_after_redo() {
    let world = World::new(Limit(400), 64);
    let mut model = work(&world, 2, 4_500);
    let (disk, tree) = replay(&world, |_, _| {});
    for n in 0..2_000u64 {
        let (key, tid) = ((n * 37 % 5_000).to_be_bytes(), Tid::new(9, 1));
        insert(&tree, &key, tid);
        model.insert(entry(&key, tid));
    }
    compare(&tree, &model);
    let lsn = tree.pool.wal().inserted();
    tree.pool.flush_for_checkpoint(&mut |_, _| {}).unwrap();
    let files = RelFiles::new(Arc::new(disk.clone())).unwrap();
    let faults = crate::check::check_file(&files, FILE, crate::check::FileKind::BTree, &|_| false);
    assert_eq!(faults, []);
    let wal = Wal::open(Arc::new(SimDisk::new()), log_config(), lsn).unwrap();
    let reopened = BTree::open(pool_on(&disk, wal, 64), FILE);
    compare(&reopened, &model);
}

/// Bulk building is logged as well, and shows nothing before its last record.
#[test]
fn a_build_is_redone() {
    let world = World::new(Limit(300), 128);
    let model: Model = (0..2_000u32)
        .map(|n| entry(&n.to_be_bytes(), Tid::new(n, 1)))
        .collect();
    world
        .tree
        .bulk_build(model.iter().map(|entry| split_entry(entry)), Xid(3))
        .unwrap();
    let mut last = 0;
    let (_, tree) = replay(&world, |_, tree| {
        // Pages that are written and not yet reached are not faults of the tree that there is.
        let entries = scan(tree, KeyRange::all(), Direction::Forward, usize::MAX).len();
        assert!(entries == 0 || entries == 2_000);
        assert!(entries >= last);
        last = entries;
    });
    compare(&tree, &model);
}

/// Faults that the check must find, each made by changing one thing in a sound tree.
#[test]
fn the_check_finds_what_is_broken() {
    use super::super::node::*;
    use throng_types::page::{OFF_KIND, OFF_UPPER};

    let world = World::new(Limit(300), 128);
    work(&world, 3, 800);
    let blocks = world.pool.blocks(FILE).unwrap();
    let read = |block: u32| {
        retry_blocking(|| Ok(Box::new(*world.pool.shared(world.tree.page_id(block))?))).unwrap()
    };
    let of = |wanted: fn(&Node<'_, Bytes>) -> bool| {
        (2..blocks)
            .find(|block| wanted(&Node::read(&*read(*block))))
            .expect("there is such a page")
    };
    let leaf = of(|node| node.is_leaf() && node.count() > 2 && node.high().is_some());
    let inner = of(|node| node.is_inner() && node.count() > 2);
    let faults_with = |block: u32, change: &dyn Fn(&mut Bytes)| {
        let sound = read(block);
        let mut broken = sound.clone();
        change(&mut broken);
        world
            .pool
            .install(world.tree.page_id(block), &broken, Lsn(1))
            .unwrap();
        let (_, faults) = world.tree.check();
        world
            .pool
            .install(world.tree.page_id(block), &sound, Lsn(1))
            .unwrap();
        faults
            .iter()
            .map(|fault| fault.to_string())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let swap_slots = |page: &mut Bytes| {
        let (a, b) = (SLOTS + SLOT, SLOTS + 2 * SLOT);
        let first: [u8; SLOT] = page[a..b].try_into().unwrap();
        page.copy_within(b..b + SLOT, a);
        page[b..b + SLOT].copy_from_slice(&first);
    };
    type Case = (&'static str, BlockNo, Box<dyn Fn(&mut Bytes)>);
    let cases: Vec<Case> = vec![
        ("not above slot", leaf, Box::new(swap_slots)),
        ("not above slot", inner, Box::new(swap_slots)),
        ("right link is", leaf, Box::new(|page| page[OFF_RIGHT] ^= 1)),
        (
            "page of level 7",
            leaf,
            Box::new(|page| page[OFF_LEVEL] = 7),
        ),
        ("page of kind 1", leaf, Box::new(|page| page[OFF_KIND] = 1)),
        (
            "make no sense",
            leaf,
            Box::new(|page| page[OFF_UPPER + 1] = 0x7F),
        ),
        ("garbage", leaf, Box::new(|page| page[OFF_GARBAGE] ^= 1)),
        (
            "high key is not",
            leaf,
            Box::new(|page| {
                let (off, _) = Node::read(page).high().unwrap();
                page[off] ^= 1;
            }),
        ),
        (
            "leads to",
            inner,
            Box::new(|page| {
                let child = Node::read(page).child(0);
                edit::set_child(page, 1, child);
            }),
        ),
        (
            "says that",
            META,
            Box::new(|page| page[space::OFF_FREE_COUNT] ^= 3),
        ),
        (
            "not the meta page",
            META,
            Box::new(|page| page[space::OFF_MAGIC] ^= 3),
        ),
    ];
    for (expected, block, change) in cases {
        let found = faults_with(block, &change);
        assert!(
            found.contains(expected),
            "looking for {expected:?}: {found}"
        );
    }
    assert_eq!(world.tree.check().1, []);
}

/// The file grew and the crash came before the record: vacuum finds such pages, and they are used
/// again.
#[test]
fn pages_of_nobody_are_found() {
    let world = World::new(Limit(300), 128);
    let model = work(&world, 4, 800);
    for _ in 0..3 {
        drop(retry_blocking(|| world.pool.new_page(FILE)).unwrap());
    }
    assert_eq!(world.tree.check().0.unused, 3);
    let before = vacuum(&world.tree, &|_| false);
    assert_eq!(
        (before.pages_found, before.entries_left),
        (3, model.len() as u64)
    );
    let census = compare(&world.tree, &model);
    assert_eq!(census.unused, 0);
    assert!(census.free >= 3);
}
