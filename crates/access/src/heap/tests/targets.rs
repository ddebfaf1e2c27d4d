//! Which page a row goes to, by the thread that brings it.

use std::sync::atomic::AtomicUsize;

use super::*;

/// Inserts the rows in order, each by the next of so many threads. Says where they came to, and
/// from which shard.
fn insert_in_turn(
    world: &World,
    txns: &Txns,
    threads: usize,
    rows: &[Vec<u8>],
) -> (Vec<Tid>, Vec<usize>) {
    let (turn, inserted) = (&AtomicUsize::new(0), &Mutex::new(Vec::new()));
    std::thread::scope(|s| {
        for thread in 0..threads {
            s.spawn(move || {
                for at in (thread..rows.len()).step_by(threads) {
                    while turn.load(Ordering::Acquire) != at {
                        std::thread::yield_now();
                    }
                    let ctx = txns.begin();
                    let tid = retry_blocking(|| world.heap.insert(&ctx, &rows[at]));
                    let shard = world.heap.rel.shard_index();
                    inserted.lock().push((tid.expect("there is room"), shard));
                    ctx.commit();
                    turn.store(at + 1, Ordering::Release);
                }
            });
        }
    });
    inserted.lock().drain(..).unzip()
}

#[test]
fn a_few_rows_of_many_threads_share_one_page() {
    let (world, txns) = (World::new(64), Txns::new());
    let rows: Vec<Vec<u8>> = (0..40).map(|n| vec![n; 20]).collect();
    let (tids, _) = insert_in_turn(&world, &txns, 9, &rows);
    let in_order: Vec<Tid> = (1..=40).map(|slot| Tid::new(0, slot)).collect();
    assert_eq!(tids, in_order);
    assert_eq!(world.blocks(), 1);
}

#[test]
fn a_row_for_which_the_shared_page_is_too_full_takes_another() {
    let (world, txns) = (World::new(64), Txns::new());
    let rows: Vec<Vec<u8>> = [6000, 5000, 100, 100, 100].map(|len| vec![1; len]).to_vec();
    let (tids, _) = insert_in_turn(&world, &txns, 5, &rows);
    assert_eq!(tids[..2], [Tid::new(0, 1), Tid::new(1, 1)]);
    assert!(tids[2..].iter().all(|tid| tid.block < 2), "{tids:?}");
    assert_eq!(world.blocks(), 2);
}

#[test]
fn threads_part_when_there_are_pages_enough() {
    let (world, txns) = (World::new(512), Txns::new());
    let rows = vec![vec![1; 500]; 4000];
    let (tids, shards) = insert_in_turn(&world, &txns, 4, &rows);
    let inserted = tids.iter().zip(shards).skip(rows.len() / 2);
    let mut inserter = HashMap::new();
    for (tid, shard) in inserted {
        let first = *inserter.entry(tid.block).or_insert(shard);
        assert_eq!(shard, first, "{tid:?}");
    }
}

#[test]
fn nobody_waits_for_a_page_to_share() {
    let (world, txns) = (World::new(64), Txns::new());
    insert_in_turn(&world, &txns, 1, &[vec![1; 20]]);
    let ctx = txns.begin();
    let shared = || {
        let attempt = || {
            Ok(world
                .heap
                .shared_page(&ctx, 20)?
                .map(|(page, _)| page.page_id().block()))
        };
        retry_blocking(attempt).expect("the page is in memory")
    };
    assert_eq!(shared(), Some(0));
    let reader = retry_blocking(|| world.pool.shared(PageId::new(FILE, 0)));
    assert_eq!(shared(), None);
    drop(reader);
    assert_eq!(shared(), Some(0));
    ctx.abort();
}
