//! Which of a relation's blocks an inserter goes to next, split per core or shared by all.
//!
//! ```text
//!            split                                        shared
//!  1. the core's own list of fresh blocks                    –
//!  2. the map, from where this core last found room       the map, from where anybody last found room
//!  3. another core's list                                    –
//! ```
//! When the file has grown, who has made it grow keeps its share of the new blocks in its own list,
//! and the rest goes into the map for those who wait (PolarDB's change, see
//! `docs/design/extension.md`). A list holds whole empty blocks, which the map does not know of. Nobody makes the file longer
//! while another's list has a block.

use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use throng_sync::{CachePadded, Spinlock};
use throng_types::BlockNo;

use super::page::MAX_TUPLE;
use super::space::SpaceMap;

/// Who shares what is known of free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FreeSpaceForm {
    /// All cores search one map from one place.
    Shared,
    /// Each core has a list of its own, and its own place in the map.
    #[default]
    Split,
}

impl FreeSpaceForm {
    pub const ALL: [FreeSpaceForm; 2] = [FreeSpaceForm::Shared, FreeSpaceForm::Split];

    /// As the setting `lab_free_space` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            FreeSpaceForm::Shared => "shared",
            FreeSpaceForm::Split => "split",
        }
    }
}

impl FromStr for FreeSpaceForm {
    type Err = ();
    fn from_str(name: &str) -> Result<FreeSpaceForm, ()> {
        FreeSpaceForm::ALL
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or(())
    }
}

/// One core's part.
#[derive(Default)]
struct CoreShare {
    /// Where the last search of the map ended.
    cursor: AtomicU32,
    /// Blocks in `fresh`: a copy for those who only want to know.
    count: AtomicU32,
    /// Empty blocks that nobody else knows of, the next one last.
    fresh: Spinlock<Vec<BlockNo>>,
}

impl CoreShare {
    fn pop(&self) -> Option<BlockNo> {
        if self.count.load(Relaxed) == 0 {
            return None;
        }
        let mut fresh = self.fresh.lock();
        let taken = fresh.pop();
        self.count.store(fresh.len() as u32, Relaxed);
        taken
    }

    /// Takes the blocks from the range's end on; they are handed out from its beginning.
    fn add(&self, blocks: Range<BlockNo>) {
        let mut fresh = self.fresh.lock();
        fresh.extend(blocks.rev());
        self.count.store(fresh.len() as u32, Relaxed);
    }

    fn truncate(&self, first: BlockNo) {
        let mut fresh = self.fresh.lock();
        fresh.retain(|&block| block < first);
        self.count.store(fresh.len() as u32, Relaxed);
    }
}

/// The free space of one relation.
pub struct FreeSpace {
    map: SpaceMap,
    form: FreeSpaceForm,
    /// One when shared.
    parts: Box<[CachePadded<CoreShare>]>,
}

impl FreeSpace {
    /// For so many cores.
    pub fn new(form: FreeSpaceForm, cores: usize) -> FreeSpace {
        let parts = match form {
            FreeSpaceForm::Shared => 1,
            FreeSpaceForm::Split => cores.max(1),
        };
        FreeSpace {
            map: SpaceMap::new(),
            form,
            parts: (0..parts).map(|_| CachePadded::default()).collect(),
        }
    }

    fn part(&self, core: usize) -> &CoreShare {
        &self.parts[core % self.parts.len()]
    }

    /// Takes a block that is thought to have `bytes` of room, for a thread of `core`. Room of a
    /// whole page is asked for with any number from [`MAX_TUPLE`] up.
    pub fn claim(&self, core: usize, bytes: usize) -> Option<BlockNo> {
        let mine = self.part(core);
        mine.pop()
            .or_else(|| self.map.claim(bytes, &mine.cursor))
            .or_else(|| self.parts.iter().find_map(|part| part.pop()))
    }

    /// Reports a block's room, which also ends a claim.
    pub fn set(&self, block: BlockNo, bytes: usize) {
        self.map.set(block, bytes);
    }

    /// Takes the blocks the file has grown by: a share for `core`, shares for as many `others` as
    /// are waiting.
    pub fn offer(&self, core: usize, blocks: Range<BlockNo>, others: u32) {
        let own = match self.form {
            FreeSpaceForm::Shared => 0,
            FreeSpaceForm::Split => (blocks.len() as u32).div_ceil(others + 1),
        };
        let border = blocks.start + own;
        (border..blocks.end).for_each(|block| self.map.set(block, MAX_TUPLE));
        if own > 0 {
            self.part(core).add(blocks.start..border);
        }
    }

    /// Forgets blocks from `first` on: the file ends there now.
    pub fn truncate(&self, first: BlockNo) {
        self.map.truncate(first);
        self.parts.iter().for_each(|part| part.truncate(first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn drain(space: &FreeSpace, core: usize) -> Vec<BlockNo> {
        std::iter::from_fn(|| space.claim(core, MAX_TUPLE)).collect()
    }

    #[test]
    fn what_is_offered_is_claimed_once_by_whichever_core_comes() {
        for form in FreeSpaceForm::ALL {
            for others in [0, 1, 7, 100] {
                let space = FreeSpace::new(form, 4);
                space.offer(1, 10..42, others);
                let mut all = drain(&space, 3);
                all.sort_unstable();
                assert_eq!(all, (10..42).collect::<Vec<_>>(), "{form:?} {others}");
                assert_eq!(space.claim(1, 1), None);
            }
        }
    }

    #[test]
    fn the_one_who_extends_keeps_a_share_and_the_waiting_find_theirs_in_the_map() {
        let space = FreeSpace::new(FreeSpaceForm::Split, 4);
        space.offer(0, 0..12, 2);
        // Its own first, from the beginning; another core meets the map's.
        assert_eq!(space.claim(0, 1), Some(0));
        assert!((4..12).contains(&space.claim(1, 1).unwrap()));
        let mut rest = drain(&space, 0);
        assert_eq!(rest[..3], [1, 2, 3]);
        rest.sort_unstable();
        assert_eq!(rest.len(), 10);
    }

    #[test]
    fn a_cut_file_has_no_blocks_behind_its_end() {
        for form in FreeSpaceForm::ALL {
            let space = FreeSpace::new(form, 2);
            space.offer(0, 0..20, 1);
            space.set(30, MAX_TUPLE);
            space.truncate(7);
            let left: BTreeSet<_> = drain(&space, 1).into_iter().collect();
            assert_eq!(left, (0..7).collect(), "{form:?}");
        }
    }

    #[test]
    fn cores_that_search_one_map_meet_no_block_twice() {
        for form in FreeSpaceForm::ALL {
            let space = FreeSpace::new(form, 4);
            (0..400).for_each(|block| space.set(block, MAX_TUPLE));
            space.offer(2, 400..500, 1);
            let space = &space;
            let mut all: Vec<BlockNo> = std::thread::scope(|scope| {
                let claimers: Vec<_> = (0..4)
                    .map(|core| scope.spawn(move || drain(space, core)))
                    .collect();
                claimers
                    .into_iter()
                    .flat_map(|claimer| claimer.join().expect("a claimer does not panic"))
                    .collect()
            });
            all.sort_unstable();
            assert_eq!(all, (0..500).collect::<Vec<_>>(), "{form:?}");
        }
    }
}
