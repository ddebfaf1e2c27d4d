//! Which block of a relation has room.
//!
//! One byte a block, in memory only: the room there in units of 32 bytes, rounded down. What it
//! says is a hint: a block may have less (someone was faster) or more (nobody told). An inserter
//! *claims* a block by taking its byte to 0, so that no two inserters come to the same page, and
//! gives what is left back when it moves on. Nothing is written at shutdown; after a start the last
//! blocks are assumed to have room, and pruning and vacuum report the others.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use throng_sync::lock::RwLock;
use throng_types::BlockNo;

/// Bytes that one step of the map stands for: 255 of them are the largest tuple.
const UNIT: usize = 32;
const _: () = assert!(255 * UNIT == super::page::MAX_TUPLE);

/// Blocks a chunk describes. Small under test, so that maps have many chunks.
const CHUNK: usize = if cfg!(test) { 8 } else { 4096 };

/// All orderings are relaxed: the bytes publish nothing, whoever goes to a block looks at it under
/// its latch.
struct Chunk {
    /// At least the largest byte of the chunk, but for a race that at worst hides room until it is
    /// reported again.
    best: AtomicU8,
    room: [AtomicU8; CHUNK],
}

impl Chunk {
    fn new() -> Chunk {
        Chunk {
            best: AtomicU8::new(0),
            room: [const { AtomicU8::new(0) }; CHUNK],
        }
    }

    /// Searches from `start` on, all round.
    fn claim(&self, units: u8, start: usize) -> Option<usize> {
        let best = self.best.load(Relaxed);
        if best < units {
            return None;
        }
        let mut most = 0;
        for i in (start..CHUNK).chain(0..start) {
            let room = self.room[i].load(Relaxed);
            if room >= units
                && self.room[i]
                    .compare_exchange(room, 0, Relaxed, Relaxed)
                    .is_ok()
            {
                return Some(i);
            }
            most = most.max(room);
        }
        // Nobody has raised the bound while we looked, or the exchange fails and it stays.
        let _ = self.best.compare_exchange(best, most, Relaxed, Relaxed);
        None
    }
}

/// The map of one relation. It grows with what is reported.
#[derive(Default)]
pub struct SpaceMap {
    chunks: RwLock<Vec<Chunk>>,
}

impl SpaceMap {
    pub fn new() -> SpaceMap {
        SpaceMap::default()
    }

    /// Takes a block that is thought to have `bytes` of room out of the map. Room of a whole page
    /// is asked for with any number from [`super::page::MAX_TUPLE`] up. `cursor` is where the
    /// searcher's last search ended.
    pub fn claim(&self, bytes: usize, cursor: &AtomicU32) -> Option<BlockNo> {
        let units = bytes.div_ceil(UNIT).clamp(1, 255) as u8;
        let chunks = self.chunks.read();
        let last = cursor.load(Relaxed) as usize;
        // A file that was cut may have left the cursor behind its end.
        let first = (last / CHUNK).min(chunks.len());
        for at in (first..chunks.len()).chain(0..first) {
            let start = if at == last / CHUNK { last % CHUNK } else { 0 };
            if let Some(within) = chunks[at].claim(units, start) {
                let block = (at * CHUNK + within) as BlockNo;
                cursor.store(block, Relaxed);
                return Some(block);
            }
        }
        None
    }

    /// Reports a block's room, which also ends a claim.
    pub fn set(&self, block: BlockNo, bytes: usize) {
        let (at, within) = (block as usize / CHUNK, block as usize % CHUNK);
        let units = (bytes / UNIT).min(255) as u8;
        if let Some(chunk) = self.chunks.read().get(at) {
            chunk.room[within].store(units, Relaxed);
            chunk.best.fetch_max(units, Relaxed);
            return;
        }
        if units == 0 {
            return;
        }
        {
            let mut chunks = self.chunks.write();
            while chunks.len() <= at {
                chunks.push(Chunk::new());
            }
        }
        self.set(block, bytes);
    }

    /// What the map says of a block.
    #[cfg(test)]
    pub fn room(&self, block: BlockNo) -> usize {
        let (at, within) = (block as usize / CHUNK, block as usize % CHUNK);
        self.chunks.read().get(at).map_or(0, |chunk| {
            usize::from(chunk.room[within].load(Relaxed)) * UNIT
        })
    }

    /// Forgets blocks from `first` on: the file ends there now.
    pub fn truncate(&self, first: BlockNo) {
        let chunks = self.chunks.read();
        let from = first as usize / CHUNK;
        for (at, chunk) in chunks.iter().enumerate().skip(from) {
            let within = if at == from {
                first as usize % CHUNK
            } else {
                0
            };
            chunk.room[within..]
                .iter()
                .for_each(|room| room.store(0, Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Op {
        Set(BlockNo, usize),
        Claim(usize),
        Truncate(BlockNo),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0..40u32, 0..9000usize).prop_map(|(b, r)| Op::Set(b, r)),
            (0..9000usize).prop_map(Op::Claim),
            (0..40u32).prop_map(Op::Truncate),
        ]
    }

    proptest! {
        #[test]
        fn does_as_an_array_would(ops in prop::collection::vec(op(), 1..200)) {
            let map = SpaceMap::new();
            let cursor = AtomicU32::new(0);
            let mut model = [0usize; 40];
            for op in ops {
                match op {
                    Op::Set(block, bytes) => {
                        map.set(block, bytes);
                        model[block as usize] = (bytes / UNIT).min(255);
                    }
                    Op::Claim(bytes) => {
                        let units = bytes.div_ceil(UNIT).clamp(1, 255);
                        match map.claim(bytes, &cursor) {
                            Some(block) => {
                                prop_assert!(model[block as usize] >= units);
                                model[block as usize] = 0;
                            }
                            None => prop_assert!(model.iter().all(|&room| room < units)),
                        }
                    }
                    Op::Truncate(first) => {
                        map.truncate(first);
                        model[first as usize..].fill(0);
                    }
                }
                for (block, &room) in model.iter().enumerate() {
                    prop_assert_eq!(map.room(block as BlockNo), room * UNIT);
                }
            }
        }
    }
}
