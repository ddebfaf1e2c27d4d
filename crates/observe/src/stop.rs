//! Named places in the code where a test can hold a thread, count it, or make it fail.
//!
//! ```
//! use throng_observe::{stop, stop_point};
//! # if !stop::ENABLED { return; }
//! fn work() {
//!     stop_point!("doc.before_work");
//! }
//! let stop = stop::arm("doc.before_work").block();
//! let worker = std::thread::spawn(work);
//! stop.wait_until_held(1); // the worker is there, and nowhere else
//! stop.release();
//! worker.join().unwrap();
//! ```
//!
//! In builds without `debug_assertions` a stop point compiles to nothing ([`ENABLED`] is false). In
//! those with, one that nobody armed costs a load. A stop point must stand where a thread may
//! block: never under a spinlock, and never where holding the thread would hold what the test
//! itself needs.
//!
//! Names are `room.place`. Tests of one process that arm the same name take turns; to keep clear of
//! the other tests that merely pass by, give the point an object (`stop_point!("buffer.evict",
//! page.raw())`) and arm it [`for that object`](Arm::object).

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Whether stop points exist in this build.
pub const ENABLED: bool = cfg!(debug_assertions);

/// How many are armed: what a passing thread looks at first.
static ARMED: AtomicUsize = AtomicUsize::new(0);
static POINTS: Mutex<Option<HashMap<&'static str, Arc<Point>>>> = Mutex::new(None);
/// Told when a name is free again.
static DISARMED: Condvar = Condvar::new();

/// A test that waits this long for a thread to come waits for ever: it fails with the name instead.
const PATIENCE: Duration = Duration::from_secs(30);

type Action = dyn Fn(u64) -> io::Result<()> + Send + Sync;

struct Point {
    object: Option<u64>,
    block: bool,
    action: Option<Box<Action>>,
    state: Mutex<ArmedPoints>,
    changed: Condvar,
}

#[derive(Default)]
struct ArmedPoints {
    hits: u64,
    held: u64,
    open: bool,
}

/// A stop point being prepared. [`block`](Arm::block), [`count`](Arm::count) or [`run`](Arm::run)
/// arms it.
#[must_use = "nothing is armed yet"]
pub struct Arm {
    name: &'static str,
    object: Option<u64>,
}

/// An armed stop point; disarmed, and whoever it holds released, when dropped.
#[must_use = "the stop point is disarmed when this is dropped"]
pub struct FailPoint {
    name: &'static str,
    point: Arc<Point>,
}

/// Begins to arm the stop point `name`.
pub fn arm(name: &'static str) -> Arm {
    Arm { name, object: None }
}

impl Arm {
    /// Only for threads that pass with this object.
    pub fn object(mut self, object: u64) -> Arm {
        self.object = Some(object);
        self
    }
    /// Holds every thread that comes until released.
    pub fn block(self) -> FailPoint {
        self.finish(true, None)
    }
    /// Counts the threads that come.
    pub fn count(self) -> FailPoint {
        self.finish(false, None)
    }
    /// Runs `action` with the point's object in every thread that comes; where the point can fail
    /// ([`stop_point_io!`](crate::stop_point_io)) its error is the point's.
    pub fn run(self, action: impl Fn(u64) -> io::Result<()> + Send + Sync + 'static) -> FailPoint {
        self.finish(false, Some(Box::new(action)))
    }

    fn finish(self, block: bool, action: Option<Box<Action>>) -> FailPoint {
        if !ENABLED {
            panic!("stop points exist only in builds with debug_assertions");
        }
        let point = Arc::new(Point {
            object: self.object,
            block,
            action,
            state: Mutex::new(ArmedPoints::default()),
            changed: Condvar::new(),
        });
        let mut points = DISARMED
            .wait_while(lock(&POINTS), |points| {
                points
                    .as_ref()
                    .is_some_and(|points| points.contains_key(self.name))
            })
            .unwrap_or_else(PoisonError::into_inner);
        points
            .get_or_insert_default()
            .insert(self.name, point.clone());
        ARMED.fetch_add(1, Ordering::SeqCst);
        FailPoint {
            name: self.name,
            point,
        }
    }
}

impl FailPoint {
    /// How many threads have come so far.
    pub fn hits(&self) -> u64 {
        lock(&self.point.state).hits
    }

    /// Waits until `n` threads have come. Panics after half a minute.
    pub fn wait_until_hit(&self, n: u64) {
        self.wait(n, |state| state.hits);
    }

    /// Waits until `n` threads are held here. Panics after half a minute.
    pub fn wait_until_held(&self, n: u64) {
        self.wait(n, |state| state.held);
    }

    /// Lets those held go on, and later ones pass.
    pub fn release(&self) {
        lock(&self.point.state).open = true;
        self.point.changed.notify_all();
    }

    fn wait(&self, n: u64, what: impl Fn(&ArmedPoints) -> u64) {
        let (state, timeout) = self
            .point
            .changed
            .wait_timeout_while(lock(&self.point.state), PATIENCE, |state| what(state) < n)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(
            !timeout.timed_out(),
            "only {} of {n} threads came to stop point {}",
            what(&state),
            self.name
        );
    }
}

impl Drop for FailPoint {
    fn drop(&mut self) {
        if let Some(points) = lock(&POINTS).as_mut() {
            points.remove(self.name);
        }
        ARMED.fetch_sub(1, Ordering::SeqCst);
        DISARMED.notify_all();
        self.release();
    }
}

/// A thread has come to `name`. Called by the macros.
#[inline]
pub fn hit(name: &str, object: u64) -> io::Result<()> {
    if ARMED.load(Ordering::Relaxed) == 0 {
        Ok(())
    } else {
        hit_armed(name, object)
    }
}

#[cold]
fn hit_armed(name: &str, object: u64) -> io::Result<()> {
    let point = lock(&POINTS)
        .as_ref()
        .and_then(|points| points.get(name).cloned());
    let Some(point) = point.filter(|p| p.object.is_none_or(|only| only == object)) else {
        return Ok(());
    };
    let mut state = lock(&point.state);
    state.hits += 1;
    if point.block && !state.open {
        state.held += 1;
        point.changed.notify_all();
        state = point
            .changed
            .wait_while(state, |state| !state.open)
            .unwrap_or_else(PoisonError::into_inner);
        state.held -= 1;
    }
    point.changed.notify_all();
    drop(state);
    point
        .action
        .as_ref()
        .map_or(Ok(()), |action| action(object))
}

/// A test that failed while it held a lock here must not fail the others.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place where a test can hold or count threads: `stop_point!("room.place")`, or with a `u64`
/// that says what the thread is working on: `stop_point!("room.place", object)`. An injected error
/// is not looked at.
#[macro_export]
macro_rules! stop_point {
    ($name:literal) => {
        $crate::stop_point!($name, 0)
    };
    ($name:literal, $object:expr) => {
        if $crate::stop::ENABLED {
            let _ = $crate::stop::hit($name, $object);
        }
    };
}

/// As [`stop_point!`], and an `io::Result<()>` that a test can make an error.
#[macro_export]
macro_rules! stop_point_io {
    ($name:literal) => {
        $crate::stop_point_io!($name, 0)
    };
    ($name:literal, $object:expr) => {
        if $crate::stop::ENABLED {
            $crate::stop::hit($name, $object)
        } else {
            ::std::io::Result::Ok(())
        }
    };
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_blocked_thread_goes_on_when_released() {
        let stop = arm("test.block").block();
        let threads: Vec<_> = (0..3)
            .map(|_| thread::spawn(|| stop_point!("test.block")))
            .collect();
        stop.wait_until_held(3);
        assert!(threads.iter().all(|thread| !thread.is_finished()));
        stop.release();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(stop.hits(), 3);
    }

    #[test]
    fn only_the_armed_object_stops() {
        let stop = arm("test.object").object(5).count();
        stop_point!("test.object", 4);
        stop_point!("test.object", 5);
        stop_point!("test.other");
        assert_eq!(stop.hits(), 1);
    }

    #[test]
    fn errors_are_injected_until_disarmed() {
        fn work() -> io::Result<u32> {
            stop_point_io!("test.error", 9)?;
            Ok(1)
        }
        assert_eq!(work().unwrap(), 1);
        let stop = arm("test.error").run(|object| Err(io::Error::other(format!("no {object}"))));
        assert_eq!(work().unwrap_err().to_string(), "no 9");
        stop.wait_until_hit(1);
        drop(stop);
        assert_eq!(work().unwrap(), 1);
    }

    #[test]
    fn arming_the_same_name_takes_turns() {
        let first = arm("test.turns").count();
        let second = thread::spawn(|| arm("test.turns").count().hits());
        stop_point!("test.turns");
        assert_eq!(first.hits(), 1);
        drop(first);
        assert_eq!(second.join().unwrap(), 0);
    }
}
