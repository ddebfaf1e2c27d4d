//! Loom models of the frame's protocols: every interleaving of a few threads over one or two
//! frames.
//!
//! Page bytes are plain memory to loom, so a page's content is stood for by two of loom's atomics a
//! frame, written and read as the page's words are: relaxed.

use std::future::poll_fn;
use std::sync::Arc;

use loom::thread;
use throng_sync::atomic::{AtomicU64, Ordering};
use throng_sync::{Nodes, block_on};
use throng_types::{FileId, PageId};

use crate::frames::{Entrance, FrameNo, Frames, FreeFrame};
use crate::growth::{ExtendLock, Extension, Grow, GrowthLock, Victims, grow};
use crate::request::{Begun, Registry};

const UNUSED: Entrance = Entrance {
    referenced: false,
    pins: 0,
};

fn page(block: u32) -> PageId {
    PageId::new(FileId(1), block)
}

/// One frame, two words of content for it, and a disk with one value.
struct World {
    frames: Arc<Frames>,
    content: [AtomicU64; 2],
    disk: AtomicU64,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            frames: Arc::new(Frames::new(1, Nodes::one()).expect("memory for one frame")),
            content: [AtomicU64::new(0), AtomicU64::new(0)],
            disk: AtomicU64::new(0),
        })
    }

    fn set(&self, value: u64) {
        self.content
            .iter()
            .for_each(|word| word.store(value, Ordering::Relaxed));
    }

    fn get(&self) -> [u64; 2] {
        [
            self.content[0].load(Ordering::Relaxed),
            self.content[1].load(Ordering::Relaxed),
        ]
    }

    /// Page `block`, whose content is its number.
    fn publish(&self, free: FreeFrame, block: u32, entrance: Entrance) -> FrameNo {
        self.frames
            .publish(free, page(block), entrance, |_| self.set(block.into()))
    }

    fn with_page_one(entrance: Entrance) -> Arc<World> {
        let world = World::new();
        let free = world.frames.stock.take(0).expect("a new frame is free");
        world.publish(free, 1, entrance);
        world
    }

    /// Evicts whatever is in the frame and brings page `block` in.
    fn replace(&self, block: u32) -> bool {
        let Some(free) = self.frames.claim(0) else {
            return false;
        };
        self.publish(free, block, UNUSED);
        true
    }
}

#[test]
fn loom_an_optimistic_read_is_of_one_page_or_thrown_away() {
    loom::model(|| {
        let world = World::with_page_one(UNUSED);
        let evictor = {
            let world = world.clone();
            thread::spawn(move || world.replace(2))
        };
        if let Some(number) = world.frames.find(page(1)) {
            let frame = world.frames.at(number);
            if let Some(version) = frame.latch.optimistic()
                && frame.holds(page(1))
            {
                let seen = world.get();
                if frame.latch.validate(version) {
                    assert_eq!(seen, [1, 1]);
                }
            }
        }
        assert!(
            evictor.join().unwrap(),
            "an optimistic reader keeps nobody out"
        );
        assert_eq!(world.frames.find(page(2)), Some(0));
        assert_eq!(world.frames.find(page(1)), None);
    });
}

#[test]
fn loom_a_guard_keeps_its_page() {
    loom::model(|| {
        let world = World::with_page_one(UNUSED);
        let evictor = {
            let world = world.clone();
            thread::spawn(move || world.replace(2))
        };
        if let Some(number) = world.frames.find(page(1)) {
            let frame = world.frames.at(number);
            frame.latch.shared();
            if frame.holds(page(1)) {
                assert_eq!(world.get(), [1, 1]);
            }
            frame.latch.unlock_shared();
        }
        evictor.join().unwrap();
    });
}

#[test]
fn loom_a_pinned_page_is_not_claimed() {
    loom::model(|| {
        let world = World::with_page_one(Entrance {
            referenced: false,
            pins: 1,
        });
        let unpinned = Arc::new(AtomicU64::new(0));
        let evictor = {
            let (world, unpinned) = (world.clone(), unpinned.clone());
            thread::spawn(move || {
                if world.replace(2) {
                    assert_eq!(
                        unpinned.load(Ordering::Relaxed),
                        1,
                        "taken under its holder"
                    );
                }
            })
        };
        // The holder of the pin comes for its page: it must be there.
        let number = world.frames.find(page(1)).expect("a pinned page stays");
        let frame = world.frames.at(number);
        frame.latch.shared();
        assert!(frame.holds(page(1)));
        frame.latch.unlock_shared();
        unpinned.store(1, Ordering::Relaxed);
        world.frames.unpin(number);
        evictor.join().unwrap();
    });
}

/// Who holds page 2 waits for page 3, in whose frame meanwhile somebody has put page 1, and waits
/// for page 2: the order of pages is kept by both.
#[test]
fn loom_nobody_sleeps_for_a_page_that_he_did_not_ask_for() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let frames = Arc::new(Frames::new(2, Nodes::one()).expect("memory for two frames"));
        let free = || frames.stock.take(0).expect("two are free");
        let contested = frames.publish(free(), page(3), UNUSED, |_| ());
        let middle = frames.publish(free(), page(2), UNUSED, |_| ());
        let evictor = {
            let frames = frames.clone();
            thread::spawn(move || {
                let Some(free) = frames.claim(contested) else {
                    return;
                };
                frames.publish_latched(free, page(1), UNUSED, |_| ());
                assert!(frames.latch_exclusive(middle, page(2)));
                frames.at(middle).latch.unlock_exclusive();
                frames.at(contested).latch.unlock_exclusive();
            })
        };
        assert!(frames.latch_exclusive(middle, page(2)));
        if frames.latch_exclusive(contested, page(3)) {
            assert!(frames.at(contested).holds(page(3)));
            frames.at(contested).latch.unlock_exclusive();
        }
        frames.at(middle).latch.unlock_exclusive();
        evictor.join().unwrap();
    });
}

#[test]
fn loom_a_pin_for_a_moment_neither_keeps_nor_doubles_a_discarded_frame() {
    loom::model(|| {
        let world = World::with_page_one(Entrance {
            referenced: false,
            pins: 1,
        });
        let late = {
            let world = world.clone();
            thread::spawn(move || {
                if world.frames.latch_exclusive(0, page(1)) {
                    world.frames.at(0).latch.unlock_exclusive();
                }
            })
        };
        let holder = {
            let world = world.clone();
            thread::spawn(move || world.frames.unpin(0))
        };
        assert!(world.frames.discard(0, page(1)));
        late.join().unwrap();
        holder.join().unwrap();
        assert!(world.frames.stock.take(0).is_some(), "the frame is lost");
        assert!(
            world.frames.stock.take(0).is_none(),
            "the frame is there twice"
        );
    });
}

#[test]
fn loom_a_discarded_frame_is_freed_once_by_the_last_pin_or_by_who_discards() {
    loom::model(|| {
        let world = World::with_page_one(Entrance {
            referenced: false,
            pins: 1,
        });
        let holder = {
            let world = world.clone();
            thread::spawn(move || world.frames.unpin(0))
        };
        assert!(world.frames.discard(0, page(1)));
        holder.join().unwrap();
        assert!(world.frames.stock.take(0).is_some(), "the frame is lost");
        assert!(
            world.frames.stock.take(0).is_none(),
            "the frame is there twice"
        );
        assert_eq!(world.frames.find(page(1)), None);
    });
}

/// Steps 1 to 6 of a write; whether there was something to write.
fn write_out(world: &World, succeeds: bool) -> bool {
    let frame = world.frames.at(0);
    if !frame.latch.try_shared() {
        return false;
    }
    if !frame.begin_write() {
        frame.latch.unlock_shared();
        return false;
    }
    let copy = world.get();
    frame.latch.unlock_shared();
    assert_eq!(copy[0], copy[1], "a torn copy");
    if succeeds {
        world.disk.store(copy[0], Ordering::Relaxed);
    }
    frame.end_write(succeeds);
    true
}

fn change(world: &World, value: u64) {
    let frame = world.frames.at(0);
    frame.latch.exclusive();
    assert!(frame.holds(page(1)));
    world.set(value);
    frame.mark_dirty();
    frame.latch.unlock_exclusive();
}

#[test]
fn loom_a_change_is_written_before_its_frame_is_taken() {
    loom::model(|| {
        let world = World::with_page_one(Entrance {
            referenced: false,
            pins: 1,
        });
        change(&world, 5);
        let changer = {
            let world = world.clone();
            thread::spawn(move || {
                change(&world, 6);
                world.frames.unpin(0);
            })
        };
        write_out(&world, true);
        if let Some(free) = world.frames.claim(0) {
            assert_eq!(world.disk.load(Ordering::Relaxed), 6, "a change was lost");
            world.frames.stock.put(free);
        }
        changer.join().unwrap();
        // Whatever happened so far, one more round leaves nothing unwritten.
        write_out(&world, true);
        if world.frames.find(page(1)).is_some() {
            assert!(world.frames.claim(0).is_some());
        }
        assert_eq!(world.disk.load(Ordering::Relaxed), 6);
    });
}

#[test]
fn loom_a_checkpoint_never_takes_an_unwritten_page_for_written() {
    for succeeds in [true, false] {
        loom::model(move || {
            let world = World::with_page_one(UNUSED);
            change(&world, 5);
            let writer = {
                let world = world.clone();
                thread::spawn(move || write_out(&world, succeeds))
            };
            if !world.frames.at(0).owes_write() {
                assert_eq!(
                    world.disk.load(Ordering::Relaxed),
                    5,
                    "the checkpoint missed a page"
                );
            }
            writer.join().unwrap();
            assert_eq!(world.frames.at(0).owes_write(), !succeeds);
        });
    }
}

#[test]
fn loom_sessions_that_miss_the_same_page_share_one_read() {
    loom::model(|| {
        let world = World::new();
        let registry = Arc::new(Registry::new(world.frames.clone()));
        let reads = Arc::new(AtomicU64::new(0));
        let session = {
            let (world, registry, reads) = (world.clone(), registry.clone(), reads.clone());
            move || {
                let resident = || world.frames.find(page(1)).is_some();
                let request = match registry.begin(page(1), false, resident) {
                    Begun::Resident => return,
                    Begun::Mine(request) => {
                        reads.fetch_add(1, Ordering::Relaxed);
                        let free = world.frames.stock.take(0).expect("one read, one frame");
                        let entrance = Entrance {
                            referenced: true,
                            pins: 1,
                        };
                        let number = world.publish(free, 1, entrance);
                        registry.finish(&request, Ok(number));
                        request
                    }
                    Begun::Joined(request) => request,
                };
                let mut slot = None;
                block_on(poll_fn(|context| request.poll(&mut slot, context))).unwrap();
                assert_eq!(
                    world.frames.find(page(1)),
                    Some(0),
                    "the page waited for is there"
                );
                assert!(
                    world.frames.claim(0).is_none(),
                    "and stays while it is held"
                );
            }
        };
        let other = thread::spawn(session.clone());
        session();
        other.join().unwrap();
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        drop(session);
        // Both requests are gone, and their pin with them; the clock's bit is all that is left.
        assert!(world.frames.at(0).pass());
        assert!(world.frames.claim(0).is_some());
    });
}

/// Two sessions need the only frame, which comes back meanwhile; each gives it on when it has had
/// it.
#[test]
fn loom_whoever_waits_for_a_frame_gets_it() {
    loom::model(|| {
        let frames = Arc::new(Frames::new(1, Nodes::one()).expect("memory for one frame"));
        let session = {
            let frames = frames.clone();
            move || {
                let stock = &frames.stock;
                let free = loop {
                    let seen = stock.epoch();
                    if let Some(free) = stock.take(0) {
                        break free;
                    }
                    block_on(poll_fn(|context| stock.poll_refilled(seen, context)));
                };
                stock.put(free);
            }
        };
        let free = frames.stock.take(0).expect("the only one");
        let other = thread::spawn(session.clone());
        frames.stock.put(free);
        session();
        other.join().unwrap();
        assert!(!frames.stock.is_waited_for());
    });
}

/// A file of up to two blocks under two threads that each need one, and its two frames.
struct GrowingFile {
    frames: Frames,
    /// One word of content a frame; what a frame's last page left there is not zero.
    content: [AtomicU64; 2],
    /// Changes under `lock` only.
    length: AtomicU64,
    lock: GrowthLock,
    /// Blocks whose number is offered to whoever is late, plus one; 0 for none.
    offered: AtomicU64,
    extensions: AtomicU64,
}

impl GrowingFile {
    fn new() -> Arc<GrowingFile> {
        Arc::new(GrowingFile {
            frames: Frames::new(2, Nodes::one()).expect("memory for two frames"),
            content: [AtomicU64::new(7), AtomicU64::new(7)],
            length: AtomicU64::new(0),
            lock: GrowthLock::default(),
            offered: AtomicU64::new(0),
            extensions: AtomicU64::new(0),
        })
    }

    /// One of the file's two users: gets a block to itself, and finds its page zero.
    fn take_block(&self, how: Extension, pages: usize) -> u32 {
        let mut step = Step {
            file: self,
            pages,
            free: Vec::new(),
            frames: Vec::new(),
            first: 0,
        };
        let lock = || match self.lock.try_lock() {
            Some(growing) => (growing, self.length.load(Ordering::Relaxed) > 0),
            None => (self.lock.lock(), true),
        };
        let block = match grow(how, lock, &mut step).expect("there are frames") {
            Some(found) => found,
            None => step.first,
        };
        let number = self.frames.find(page(block)).expect("a new page is found");
        let frame = self.frames.at(number);
        frame.latch.exclusive();
        assert!(frame.holds(page(block)));
        let content = &self.content[number as usize];
        assert_eq!(content.load(Ordering::Relaxed), 0, "not zeroed, or shared");
        content.store(1, Ordering::Relaxed);
        frame.latch.unlock_exclusive();
        block
    }
}

struct Step<'f> {
    file: &'f GrowingFile,
    pages: usize,
    free: Vec<FreeFrame>,
    frames: Vec<FrameNo>,
    first: u32,
}

impl Grow for Step<'_> {
    type Found = u32;
    type Stop = ();

    fn find_frames(&mut self, _: Victims) -> Result<(), ()> {
        let stock = &self.file.frames.stock;
        // The other may have taken both, and will give one back.
        while self.free.is_empty() {
            stock.take_many(0, self.pages, &mut self.free);
            if self.free.is_empty() {
                thread::yield_now();
            }
        }
        Ok(())
    }
    fn zero(&mut self) {
        let found = self.free.iter().map(FreeFrame::number);
        for frame in found.chain(self.frames.iter().copied()) {
            self.file.content[frame as usize].store(0, Ordering::Relaxed);
        }
    }
    fn look_again(&mut self) -> Result<Option<u32>, ()> {
        let offered = self.file.offered.swap(0, Ordering::Relaxed);
        Ok((offered > 0).then(|| offered as u32 - 1))
    }
    fn publish(&mut self) -> Result<(), ()> {
        self.first = self.file.length.load(Ordering::Relaxed) as u32;
        for (block, free) in (self.first..).zip(self.free.drain(..)) {
            let frames = &self.file.frames;
            self.frames
                .push(frames.publish_latched(free, page(block), UNUSED, |_| ()));
        }
        Ok(())
    }
    fn lengthen(&mut self) -> Result<(), ()> {
        let length = u64::from(self.first) + self.frames.len() as u64;
        self.file.length.store(length, Ordering::Release);
        self.file.extensions.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn offer(&mut self) {
        if self.frames.len() > 1 {
            let second = u64::from(self.first) + 1;
            self.file.offered.store(second + 1, Ordering::Relaxed);
        }
    }
    fn open(&mut self) {
        for &frame in &self.frames {
            self.file.frames.at(frame).latch.unlock_exclusive();
        }
    }
    fn give_back(&mut self) {
        self.file.frames.stock.put_all(self.free.drain(..));
    }
}

/// Two threads make one file longer; each gets a block of its own whose page is zero. With `pages`
/// 2 it grows once.
fn model_of_growth(lock: ExtendLock, victims: Victims, pages: usize) {
    loom::model(move || {
        let how = Extension {
            lock,
            victims,
            bulk: pages as u32,
        };
        let file = GrowingFile::new();
        let other = {
            let file = file.clone();
            thread::spawn(move || file.take_block(how, pages))
        };
        let mine = file.take_block(how, pages);
        let theirs = other.join().unwrap();
        assert_ne!(mine, theirs, "one block for two");
        assert_eq!(mine + theirs, 1);
        assert_eq!(file.length.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn loom_narrow_extensions_give_each_its_block() {
    model_of_growth(ExtendLock::Narrow, Victims::Outside, 1);
    model_of_growth(ExtendLock::Narrow, Victims::Inside, 1);
}

#[test]
fn loom_wide_extensions_give_each_its_block() {
    model_of_growth(ExtendLock::Wide, Victims::Outside, 1);
    model_of_growth(ExtendLock::Wide, Victims::Inside, 1);
}

#[test]
fn loom_who_is_late_finds_what_a_bulk_extension_offers() {
    for lock in [ExtendLock::Narrow, ExtendLock::Wide] {
        // Inside: frames are taken by who extends, and by nobody who then does not.
        model_of_growth(lock, Victims::Inside, 2);
    }
}
