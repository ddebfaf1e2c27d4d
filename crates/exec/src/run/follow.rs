//! Reading heaps such that a serializable transaction's reads are followed; anybody else's cost one
//! branch.

use throng_access::{Fetched, Heap, TupleBatch};
use throng_buffer::Ring;
use throng_txn::{Reads, Snapshot};
use throng_types::{BlockNo, Tid};

use super::Step;

/// The rows of a block that the snapshot shows. The whole table has been told of
/// ([`Reads::relation`]) before.
pub fn scan_page(
    heap: &Heap,
    block: BlockNo,
    snapshot: &Snapshot,
    ring: &mut Ring,
    batch: &mut TupleBatch,
) -> Step<()> {
    match snapshot.reads() {
        None => heap.scan_page(block, snapshot, ring, batch)?,
        Some(reads) => {
            let watch = reads.watch();
            heap.scan_page(block, &watch, ring, batch)?;
            watch.settle()?;
        }
    }
    Ok(())
}

/// The row that an index entry leads to, as the snapshot shows it: its first `most` bytes.
#[inline]
pub fn fetch(
    heap: &Heap,
    root: Tid,
    snapshot: &Snapshot,
    most: usize,
    bytes: &mut Vec<u8>,
) -> Step<Fetched> {
    match snapshot.reads() {
        None => Ok(heap.fetch_first(root, snapshot, most, bytes)?),
        Some(reads) => fetch_followed(heap, root, &reads, most, bytes),
    }
}

#[cold]
fn fetch_followed(
    heap: &Heap,
    root: Tid,
    reads: &Reads<'_>,
    most: usize,
    bytes: &mut Vec<u8>,
) -> Step<Fetched> {
    loop {
        let watch = reads.watch();
        let found = heap.fetch_first(root, &watch, most, bytes)?;
        // Once it is locked it is looked at again: who wrote it before that is seen now.
        let is_news = match found {
            Fetched::Version(tid) => !watch.saw_own() && reads.row(heap.file(), tid),
            Fetched::Nothing | Fetched::Dead => false,
        };
        if !is_news {
            watch.settle()?;
            return Ok(found);
        }
    }
}
