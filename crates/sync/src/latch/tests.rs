//! The latch's rules, one thread at a time, and a storm of threads over real futexes. (The interleavings are
//! the loom models' business.)

use super::*;
use std::sync::atomic::AtomicBool;
use std::thread;

#[test]
fn who_gets_in_beside_whom() {
    let latch = Latch::new();
    assert!(latch.try_shared());
    assert!(latch.try_shared());
    assert!(!latch.try_exclusive());
    latch.unlock_shared();
    latch.unlock_shared();
    assert!(latch.is_free());
    assert!(latch.try_exclusive());
    assert!(latch.is_exclusive());
    assert!(!latch.try_shared());
    assert!(!latch.try_exclusive());
    latch.downgrade();
    assert!(latch.try_shared());
    assert!(!latch.try_upgrade(), "two hold it shared");
    latch.unlock_shared();
    assert!(latch.try_upgrade());
    latch.unlock_exclusive();
    assert!(latch.is_free());
}

#[test]
fn versions_tell_of_writes_and_of_nothing_else() {
    let latch = Latch::new();
    let version = latch.optimistic().unwrap();
    latch.shared();
    assert!(latch.validate(version));
    assert_eq!(latch.optimistic(), Some(version));
    assert!(latch.try_upgrade());
    assert!(!latch.validate(version), "being written");
    assert_eq!(latch.optimistic(), None);
    latch.unlock_exclusive_unchanged();
    assert!(latch.validate(version));

    assert!(latch.exclusive_if(version));
    latch.unlock_exclusive();
    assert!(!latch.validate(version));
    assert!(!latch.exclusive_if(version));
    assert!(!latch.shared_if(version));
    let version = latch.optimistic().unwrap();
    assert!(latch.shared_if(version));
    latch.unlock_shared();
    latch.exclusive();
    latch.downgrade();
    assert!(!latch.validate(version), "a downgrade ends a write");
    latch.unlock_shared();
}

#[test]
fn the_version_wraps_within_its_field() {
    let latch = Latch {
        word: AtomicU64::new(VERSION),
        queue: WaitQueue::new(),
    };
    let last = latch.optimistic().unwrap();
    latch.exclusive();
    latch.unlock_exclusive();
    assert!(latch.is_free());
    assert!(!latch.validate(last));
    assert_eq!(latch.word.load(Ordering::Relaxed), 0);
}

#[test]
fn a_waiting_writer_keeps_new_readers_out_and_readers_it_kept_out_go_next() {
    let latch = Latch::new();
    latch.shared();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            latch.exclusive();
            latch.unlock_exclusive();
        });
        while latch.word.load(Ordering::Relaxed) & WRITERS == 0 {
            thread::yield_now();
        }
        assert!(!latch.try_shared());
        let reader = scope.spawn(|| {
            latch.shared();
            latch.unlock_shared();
        });
        while latch.word.load(Ordering::Relaxed) & READERS_WAIT == 0 {
            thread::yield_now();
        }
        assert!(!writer.is_finished() && !reader.is_finished());
        latch.unlock_shared();
        writer.join().unwrap();
        reader.join().unwrap();
    });
    assert!(latch.is_free());
}

#[test]
#[should_panic(expected = "not held shared")]
fn unlocking_what_is_not_held_shared_panics() {
    Latch::new().unlock_shared();
}

#[test]
#[should_panic(expected = "not held exclusively")]
fn unlocking_what_is_not_held_exclusively_panics() {
    Latch::new().unlock_exclusive();
}

#[test]
fn a_storm() {
    const WRITES: u64 = 20_000;
    let latch = Latch::new();
    let words: [AtomicU64; 4] = Default::default();
    let stop = AtomicBool::new(false);
    let read = || words.each_ref().map(|word| word.load(Ordering::Relaxed));
    let same = |read: [u64; 4]| assert!(read.iter().all(|&word| word == read[0]), "torn: {read:?}");
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|i| {
                let (latch, words) = (&latch, &words);
                scope.spawn(move || {
                    for n in 0..WRITES {
                        latch.exclusive();
                        for word in words {
                            word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                            if n % 512 == i {
                                // Be preempted at the worst moment.
                                thread::yield_now();
                            }
                        }
                        latch.unlock_exclusive();
                    }
                })
            })
            .collect();
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    latch.shared();
                    same(read());
                    latch.unlock_shared();
                    if let Some(version) = latch.optimistic() {
                        let seen = read();
                        if latch.validate(version) {
                            same(seen);
                        }
                    }
                }
            });
        }
        // Readers never pause: that the writers end at all says that they do not starve.
        for writer in writers {
            writer.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(read(), [3 * WRITES; 4]);
    assert!(latch.is_free());
}
