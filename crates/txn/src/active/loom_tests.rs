//! Whatever the order of steps, ends have one order for everybody.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

use super::bitmap::Bitmap;
use super::walk::Walk;
use super::*;

struct World<F> {
    form: F,
    next: AtomicU64,
}

impl<F: Form> World<F> {
    fn new(form: F) -> World<F> {
        World {
            form,
            next: AtomicU64::new(3),
        }
    }
    fn begin(&self, place: SessionIndex, part: IdPurpose) -> Xid {
        let give = || Xid(self.next.fetch_add(1, Ordering::Relaxed));
        self.form.begin(place, part, give)
    }
    fn look(&self) -> RunningSet {
        let mut set = RunningSet::default();
        self.form
            .look(&mut set, || Xid(self.next.load(Ordering::Relaxed)));
        set
    }
}

fn check(body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(body);
}

/// One thread ends a transaction of two ids, then begins and ends another; a third transaction runs
/// on.
fn a_snapshot_among_ends<F: Form + Send + Sync + 'static>(make: fn(Xid) -> F) {
    check(move || {
        let world = Arc::new(World::new(make(Xid(3))));
        let (a, b) = (world.form.enter(), world.form.enter());
        let first = [
            world.begin(a, IdPurpose::Top),
            world.begin(a, IdPurpose::Sub),
        ];
        let bystander = world.begin(b, IdPurpose::Top);
        let stands = Arc::new(AtomicU64::new(0));
        let writer = {
            let (world, stands) = (world.clone(), stands.clone());
            loom::thread::spawn(move || {
                let stand = || stands.fetch_add(1, Ordering::Relaxed);
                world.form.end(a, IdPurpose::Top, &first, stand);
                let second = world.begin(a, IdPurpose::Top);
                world.form.end(a, IdPurpose::Top, &[second], stand);
                second
            })
        };
        let set = world.look();
        let seen = first.map(|xid| !set.contains(xid));
        assert_eq!(seen[0], seen[1], "half a transaction is seen");
        assert!(set.contains(bystander), "a running transaction is seen");
        if seen[0] {
            assert!(
                stands.load(Ordering::Relaxed) > 0,
                "seen before it is known how it stands"
            );
        }
        let second = writer.join().unwrap();
        assert!(
            set.contains(second) || seen[0],
            "the second is seen and the first is not"
        );
        let after = world.look();
        assert!(!after.contains(first[0]) && !after.contains(second) && after.contains(bystander));
    });
}

#[test]
fn loom_a_walk_among_ends() {
    a_snapshot_among_ends(Walk::new);
}

#[test]
fn loom_a_copy_of_bits_among_ends() {
    a_snapshot_among_ends(Bitmap::new);
}

/// Two transactions end on two threads, the second having seen that the first did.
fn a_snapshot_among_two<F: Form + Send + Sync + 'static>(make: fn(Xid) -> F) {
    check(move || {
        let world = Arc::new(World::new(make(Xid(3))));
        let (a, b) = (world.form.enter(), world.form.enter());
        let (early, late) = (
            world.begin(a, IdPurpose::Top),
            world.begin(b, IdPurpose::Top),
        );
        let early_stands = Arc::new(AtomicU64::new(0));
        let first = {
            let (world, stands) = (world.clone(), early_stands.clone());
            loom::thread::spawn(move || {
                world.form.end(a, IdPurpose::Top, &[early], || {
                    stands.store(1, Ordering::Release)
                });
            })
        };
        let second = {
            let (world, stands) = (world.clone(), early_stands.clone());
            loom::thread::spawn(move || {
                // As a writer that finds the row's last change committed does: by the status, once
                // it is no longer running.
                let saw = !world.look().contains(early) && stands.load(Ordering::Acquire) == 1;
                world.form.end(b, IdPurpose::Top, &[late], || ());
                saw
            })
        };
        let set = world.look();
        first.join().unwrap();
        if second.join().unwrap() {
            assert!(
                set.contains(late) || !set.contains(early),
                "seen what came after, and not what came before"
            );
        }
    });
}

#[test]
fn loom_a_walk_among_two() {
    a_snapshot_among_two(Walk::new);
}

#[test]
fn loom_a_copy_of_bits_among_two() {
    a_snapshot_among_two(Bitmap::new);
}

/// Chunks are given back and used again while a snapshot copies.
#[test]
fn loom_a_copy_of_bits_while_chunks_are_given_back() {
    check(|| {
        let world = Arc::new(World::new(Bitmap::new(Xid(62))));
        world.next.store(62, Ordering::Relaxed);
        // The last two of the first chunk have ended, the first of the second has not.
        for _ in 0..2 {
            let xid = world.begin(0, IdPurpose::Top);
            world.form.end(0, IdPurpose::Top, &[xid], || ());
        }
        let last = world.begin(0, IdPurpose::Top);
        let tidier = {
            let world = world.clone();
            loom::thread::spawn(move || {
                world.form.tidy();
                // The chunk that is made now has the words of the one given back.
                world.next.store(128, Ordering::Relaxed);
                world.begin(0, IdPurpose::Top)
            })
        };
        let set = world.look();
        assert!(set.contains(last), "a running transaction is seen");
        assert!(!set.contains(Xid(last.0 - 1)), "an ended one is not");
        let new = tidier.join().unwrap();
        assert!(set.contains(new), "an id given out meanwhile runs");
    });
}
