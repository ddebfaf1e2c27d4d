//! The latch's rules, one thread at a time, and a storm of threads over real futexes. (The
//! interleavings are the loom models' business.)

use super::*;
use std::sync::atomic::AtomicBool;
use std::thread;

/// Every form by its name, for rules that all of them keep.
macro_rules! each_form {
    ($($rule:ident),*) => {
        each_form!(cas: ByCas, $($rule),*);
        each_form!(spin: UnderSpin, $($rule),*);
        each_form!(add: ByAdd, $($rule),*);
        each_form!(chosen: Chosen, $($rule),*);
    };
    ($name:ident: $form:ident, $($rule:ident),*) => {
        mod $name {
            $(#[test] fn $rule() { super::$rule::<super::$form>() })*
        }
    };
}

each_form!(
    who_gets_in_beside_whom,
    versions_tell_of_writes_and_of_nothing_else,
    the_version_wraps_within_its_field,
    a_waiting_writer_keeps_new_readers_out_and_readers_it_kept_out_go_next,
    a_storm
);

#[test]
fn an_undone_add_leaves_the_writer_alone_and_wakes_it_when_it_kept_it_out() {
    let latch: Latch<ByAdd> = Latch::of();
    latch.exclusive();
    // An add in mid-air, as another thread's would be.
    latch.word.fetch_add(ONE_SHARED, Ordering::Relaxed);
    let version = latch.word.load(Ordering::Relaxed) & VERSION;
    latch.unlock_exclusive();
    assert_eq!(
        latch.word.load(Ordering::Relaxed),
        ONE_SHARED | (version + ONE_VERSION),
        "the count outlives the writer"
    );
    thread::scope(|scope| {
        let writer = scope.spawn(|| latch.exclusive());
        while latch.word.load(Ordering::Relaxed) & WRITERS == 0 {
            thread::yield_now();
        }
        assert!(!latch.try_shared(), "a writer waits");
        assert!(!writer.is_finished());
        latch.leave_shared(Ordering::Relaxed);
        writer.join().unwrap();
    });
    assert!(!latch.try_shared());
    assert_eq!(latch.word.load(Ordering::Relaxed) & SHARED, 0, "undone");
    latch.unlock_exclusive();
    assert!(latch.is_free());
}

fn who_gets_in_beside_whom<R: RawLatch>() {
    let latch: Latch<R> = Latch::of();
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

fn versions_tell_of_writes_and_of_nothing_else<R: RawLatch>() {
    let latch: Latch<R> = Latch::of();
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

fn the_version_wraps_within_its_field<R: RawLatch>() {
    let latch: Latch<R> = Latch::of();
    latch.word.store(VERSION, Ordering::Relaxed);
    let last = latch.optimistic().unwrap();
    latch.exclusive();
    latch.unlock_exclusive();
    assert!(latch.is_free());
    assert!(!latch.validate(last));
    assert_eq!(latch.word.load(Ordering::Relaxed), 0);
}

fn a_waiting_writer_keeps_new_readers_out_and_readers_it_kept_out_go_next<R: RawLatch>() {
    let latch: Latch<R> = Latch::of();
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

fn a_storm<R: RawLatch>() {
    const WRITES: u64 = if cfg!(miri) { 12 } else { 10_000 };
    let latch: Latch<R> = Latch::of();
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
                            if n % if cfg!(miri) { 4 } else { 512 } == i {
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
                    if cfg!(miri) {
                        // An interpreter's readers would have all of its time.
                        thread::yield_now();
                    }
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
