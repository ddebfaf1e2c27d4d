//! The pool against a plain map of pages: one thread, a pool much smaller than its data, every kind
//! of call.

use std::collections::HashMap;

use throng_buffer::{AccessStrategy, ExclusiveGuard, Mtr, PoolConfig, Ring, retry_blocking};
use throng_types::page::{OFF_CHECKSUM, OFF_LSN, PAGE_SIZE};
use throng_types::{BlockNo, FileId, PageId, Xid};

use crate::world::{Rng, World, page_of};

type Bytes = Box<[u8; PAGE_SIZE]>;

struct Model {
    world: World,
    files: HashMap<u32, Vec<Bytes>>,
    rng: Rng,
}

const FILES: u64 = 3;
const MAX_BLOCKS: usize = 40;

/// What the model knows of a page: everything but what the pool itself stamps on it.
fn comparable(page: &[u8; PAGE_SIZE]) -> &[u8] {
    &page[OFF_CHECKSUM + 4..]
}

impl Model {
    fn step(&mut self) {
        match self.rng.below(100) {
            0..30 => self.read(),
            30..65 => self.edit(),
            65..80 => self.grow(),
            80..85 => self.scan(),
            85..90 => self.prefetch(),
            90..95 => self.world.checkpoint().unwrap(),
            95..97 => self.truncate(),
            97..98 => self.drop_file(),
            _ => self.crash(),
        }
    }

    fn any_page(&mut self) -> Option<(u32, BlockNo)> {
        let file = self.rng.below(FILES) as u32;
        let blocks = self.files.get(&file)?.len() as u64;
        (blocks > 0).then(|| (file, self.rng.below(blocks) as BlockNo))
    }

    fn expected(&self, file: u32, block: BlockNo) -> &[u8; PAGE_SIZE] {
        &self.files[&file][block as usize]
    }

    fn read(&mut self) {
        let Some((file, block)) = self.any_page() else {
            return;
        };
        let page = page_of(file, block);
        let pool = &self.world.pool;
        let mut seen = Box::new([0; PAGE_SIZE]);
        if self.rng.below(2) == 0 {
            retry_blocking(|| pool.read(page, |bytes| bytes.copy_page(&mut seen))).unwrap();
        } else {
            seen.copy_from_slice(&*retry_blocking(|| pool.shared(page)).unwrap());
        }
        assert!(
            comparable(&seen) == comparable(self.expected(file, block)),
            "page {page} is not as it was left"
        );
    }

    fn edit(&mut self) {
        let mut pages: Vec<PageId> = (0..1 + self.rng.below(3))
            .filter_map(|_| self.any_page())
            .map(|(file, block)| page_of(file, block))
            .collect();
        pages.sort_unstable();
        pages.dedup();
        let Model { world, files, rng } = self;
        let guards: Vec<ExclusiveGuard<'_>> = retry_blocking(|| {
            pages
                .iter()
                .map(|&page| world.pool.exclusive(page))
                .collect()
        })
        .unwrap();
        let mut mtr = Mtr::new(&world.pool, Xid(3));
        guards.into_iter().for_each(|guard| {
            mtr.add(guard);
        });
        for _ in 0..rng.below(8) {
            if pages.is_empty() {
                break;
            }
            let index = rng.below(pages.len() as u64) as usize;
            let blocks = files
                .get_mut(&pages[index].file().0)
                .expect("the page exists");
            let model = &mut blocks[pages[index].block() as usize];
            // Clear of the header: what lies between `lower` and `upper` is nobody's.
            let offset = 24 + rng.below(PAGE_SIZE as u64 - 24) as usize;
            let len = rng.below(300).min((PAGE_SIZE - offset) as u64) as usize;
            match rng.below(4) {
                0 => {
                    mtr.zero(index, offset, len);
                    model[offset..offset + len].fill(0);
                }
                1 => {
                    let to = 24 + rng.below((PAGE_SIZE - 24 - len) as u64 + 1) as usize;
                    mtr.move_within(index, offset, to, len);
                    model.copy_within(offset..offset + len, to);
                }
                2 if rng.below(4) == 0 => mtr.log_image(index),
                _ => {
                    let bytes: Vec<u8> = (0..len).map(|_| rng.next() as u8).collect();
                    mtr.write(index, offset, &bytes);
                    model[offset..offset + len].copy_from_slice(&bytes);
                }
            }
            assert!(comparable(mtr.page(index)) == comparable(model));
        }
        let lsn = mtr.commit();
        self.world.wal.flush_blocking(lsn).unwrap();
    }

    fn grow(&mut self) {
        let file = self.rng.below(FILES) as u32;
        if !self.files.contains_key(&file) {
            self.world.files.create(FileId(file)).unwrap();
            self.world.files.sync_names().unwrap();
            self.files.insert(file, Vec::new());
        }
        let pool = &self.world.pool;
        let blocks = self.files.get_mut(&file).expect("just made");
        if blocks.len() >= MAX_BLOCKS {
            return;
        }
        let wanted = 1 + self.rng.below(6) as u32;
        let made = retry_blocking(|| pool.extend(FileId(file), wanted)).unwrap();
        assert_eq!(made.start as usize, blocks.len());
        assert!(!made.is_empty() && made.len() <= wanted as usize);
        made.for_each(|_| blocks.push(Box::new([0; PAGE_SIZE])));
    }

    fn scan(&mut self) {
        let file = self.rng.below(FILES) as u32;
        let Some(blocks) = self.files.get(&file) else {
            return;
        };
        let mut ring = Ring::new(AccessStrategy::BulkRead);
        for (block, expected) in blocks.iter().enumerate() {
            let page = page_of(file, block as BlockNo);
            let guard = retry_blocking(|| self.world.pool.shared_with(page, &mut ring)).unwrap();
            assert!(comparable(&guard) == comparable(expected));
        }
    }

    fn prefetch(&mut self) {
        if let Some((file, block)) = self.any_page() {
            (block..block + 4).for_each(|block| self.world.pool.prefetch(page_of(file, block)));
        }
    }

    fn truncate(&mut self) {
        let Some((file, block)) = self.any_page() else {
            return;
        };
        self.world.pool.truncate(FileId(file), block).unwrap();
        self.files
            .get_mut(&file)
            .expect("it has pages")
            .truncate(block as usize);
        // The log has no word of it here: a checkpoint makes it lasting.
        self.world.checkpoint().unwrap();
    }

    fn drop_file(&mut self) {
        let file = self.rng.below(FILES) as u32;
        if self.files.remove(&file).is_some() {
            self.world.pool.drop_file(FileId(file)).unwrap();
            self.world.checkpoint().unwrap();
        }
    }

    /// Everything committed was flushed: all of it is there afterwards. Growth alone may be lost,
    /// and what a file had reserved ahead of its growth may be there, as zeros.
    fn crash(&mut self) {
        let image = self.world.disk.crash_image(self.rng.next());
        image.set_cached(self.rng.below(2) == 0);
        self.world = World::recover(image, PoolConfig::MIN_FRAMES);
        for (&file, blocks) in &mut self.files {
            let there = self.world.pool.blocks(FileId(file)).unwrap() as usize;
            let reserved = there.saturating_sub(blocks.len());
            assert!(reserved <= there / 32, "{reserved} blocks from nowhere");
            blocks.resize_with(blocks.len() + reserved, || Box::new([0; PAGE_SIZE]));
            assert!(
                blocks[there..]
                    .iter()
                    .all(|page| page.iter().all(|&byte| byte == 0)),
                "data was lost"
            );
            blocks.truncate(there);
        }
    }

    fn check_all(&mut self) {
        self.world.checkpoint().unwrap();
        for (&file, blocks) in &self.files {
            for (block, expected) in blocks.iter().enumerate() {
                let page = page_of(file, block as BlockNo);
                let guard = retry_blocking(|| self.world.pool.shared(page)).unwrap();
                assert!(comparable(&guard) == comparable(expected), "page {page}");
                let mut stored = Box::new([0; PAGE_SIZE]);
                self.world.files.read_page(page, &mut stored).unwrap();
                assert!(throng_buffer::page_is_intact(page, &stored));
                assert!(stored[OFF_LSN..OFF_LSN + 8] == guard[OFF_LSN..OFF_LSN + 8]);
            }
        }
    }
}

#[test]
fn the_pool_behaves_as_a_map_of_pages() {
    for seed in 0..12 {
        let world = World::new(PoolConfig::MIN_FRAMES);
        let mut model = Model {
            world,
            files: HashMap::new(),
            rng: Rng(seed),
        };
        (0..600).for_each(|_| model.step());
        model.check_all();
    }
}
