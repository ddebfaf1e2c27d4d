//! Who waits for the log to be flushed: futures, in one list a thread.
//!
//! A flush that makes fifty sessions of one event loop go on costs the flusher one wake-up: it
//! wakes the first of the list and leaves it the *baton*. Whoever next completes or goes away on
//! that list while the baton is out wakes all the others, which on the loop's own thread costs next
//! to nothing.
//!
//! | list | means | next |
//! |---|---|---|
//! | baton in | nobody owes the others a wake-up | out, when a flush makes more than one ready |
//! | baton out | a woken waiter will wake the others that are ready | in, by the next to complete or be dropped |
//!
//! If the next flush finds the baton still out (its loop is busy, or the future was leaked), it
//! wakes everyone who is ready itself. So no waiter depends on another for longer than one flush.
//!
//! No wake-up is lost: a waiter enters its list and then looks at the condition once more, both
//! under the list's lock; the flusher makes the condition true and then takes the lock.

use std::collections::VecDeque;
use std::task::Waker;
use throng_sync::lock::Mutex;
use throng_sync::{PerThread, thread_index, threads_high_water};
use throng_types::Lsn;

pub(crate) struct FlushWaiters {
    lists: PerThread<Mutex<List>>,
}

#[derive(Default)]
struct List {
    /// By LSN, ascending.
    waiters: VecDeque<Waiter>,
    baton_out: bool,
    next_id: u64,
}

struct Waiter {
    lsn: Lsn,
    id: u64,
    waker: Waker,
}

/// A place in a list.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    list: usize,
    id: u64,
}

impl FlushWaiters {
    pub fn new() -> FlushWaiters {
        FlushWaiters {
            lists: PerThread::new(|_| Mutex::default()),
        }
    }

    /// Enters the calling thread's list, unless `over` (asked under the list's lock) says that
    /// there is nothing to wait for.
    pub fn enter(&self, lsn: Lsn, waker: &Waker, over: impl FnOnce() -> bool) -> Option<Ticket> {
        let index = thread_index();
        let mut list = self.lists.get(index).lock();
        if over() {
            return None;
        }
        let id = list.next_id;
        list.next_id += 1;
        // Later waiters mostly have later LSNs.
        let at = list
            .waiters
            .iter()
            .rposition(|w| w.lsn <= lsn)
            .map_or(0, |i| i + 1);
        list.waiters.insert(
            at,
            Waiter {
                lsn,
                id,
                waker: waker.clone(),
            },
        );
        Some(Ticket { list: index, id })
    }

    /// The task behind a ticket was polled again and still waits. False if the ticket is no longer
    /// listed.
    pub fn renew(&self, ticket: Ticket, waker: &Waker) -> bool {
        let mut list = self.lists.get(ticket.list).lock();
        let Some(waiter) = list.waiters.iter_mut().find(|w| w.id == ticket.id) else {
            return false;
        };
        if !waiter.waker.will_wake(waker) {
            waiter.waker = waker.clone();
        }
        true
    }

    /// The waiter goes on, or goes away. Passes the baton on if it is out.
    pub fn leave(&self, ticket: Ticket, flushed: impl Fn() -> Lsn) {
        let lists = self.lists.get(ticket.list);
        let mut list = lists.lock();
        if let Some(at) = list.waiters.iter().position(|w| w.id == ticket.id) {
            list.waiters.remove(at);
        }
        if !list.baton_out {
            return;
        }
        list.baton_out = false;
        let flushed = flushed();
        while let Some(waker) = list.take_ready(flushed) {
            // Not under the lock: a waker may run anything.
            drop(list);
            waker.wake();
            list = lists.lock();
        }
    }

    /// Everything up to `flushed` is done with: those who waited for it go on.
    pub fn wake(&self, flushed: Lsn) {
        for index in 0..threads_high_water() {
            let lists = self.lists.get(index);
            let mut list = lists.lock();
            let everyone = list.baton_out;
            while let Some(waker) = list.take_ready(flushed) {
                let more = list.is_ready(flushed);
                list.baton_out = more && !everyone;
                drop(list);
                waker.wake();
                if !everyone || !more {
                    break;
                }
                list = lists.lock();
            }
        }
    }
}

impl List {
    fn is_ready(&self, flushed: Lsn) -> bool {
        self.waiters.front().is_some_and(|w| w.lsn <= flushed)
    }
    fn take_ready(&mut self, flushed: Lsn) -> Option<Waker> {
        if self.is_ready(flushed) {
            self.waiters.pop_front().map(|w| w.waker)
        } else {
            None
        }
    }
}

/// Those who wait for room in the ring: few, and all woken whenever some was freed.
#[derive(Default)]
pub(crate) struct RoomWaiters(Mutex<Vec<Waker>>);

impl RoomWaiters {
    pub fn enter(&self, waker: &Waker) {
        self.0.lock().push(waker.clone());
    }

    pub fn wake(&self) {
        let wakers = std::mem::take(&mut *self.0.lock());
        wakers.into_iter().for_each(Waker::wake);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn setup(lsns: &[u64]) -> (FlushWaiters, Vec<(Arc<Count>, Ticket)>) {
        let waiters = FlushWaiters::new();
        let entered = lsns.iter().map(|&lsn| {
            let count = Arc::new(Count::default());
            let ticket = waiters
                .enter(Lsn(lsn), &count.clone().into(), || false)
                .unwrap();
            (count, ticket)
        });
        let entered = entered.collect();
        (waiters, entered)
    }

    fn woken(entered: &[(Arc<Count>, Ticket)]) -> Vec<usize> {
        entered
            .iter()
            .map(|(count, _)| count.0.load(Ordering::Relaxed))
            .collect()
    }

    #[test]
    fn a_flush_wakes_one_and_that_one_the_others() {
        let (waiters, entered) = setup(&[10, 30, 20, 25]);
        waiters.wake(Lsn(9));
        assert_eq!(woken(&entered), [0, 0, 0, 0]);
        waiters.wake(Lsn(25));
        assert_eq!(woken(&entered), [1, 0, 0, 0]);
        waiters.leave(entered[0].1, || Lsn(25));
        assert_eq!(woken(&entered), [1, 0, 1, 1]);
        waiters.leave(entered[2].1, || Lsn(25));
        waiters.wake(Lsn(30));
        assert_eq!(woken(&entered), [1, 1, 1, 1]);
    }

    #[test]
    fn a_cancelled_waiter_passes_the_baton() {
        let (waiters, entered) = setup(&[10, 10, 10]);
        waiters.wake(Lsn(10));
        // Not the one that was woken: it leaves its own place, and wakes who is left.
        waiters.leave(entered[1].1, || Lsn(10));
        assert_eq!(woken(&entered), [1, 0, 1]);
    }

    #[test]
    fn a_baton_that_stays_out_holds_nobody_up() {
        let (waiters, entered) = setup(&[10, 10, 10, 40]);
        waiters.wake(Lsn(10));
        assert_eq!(woken(&entered), [1, 0, 0, 0]);
        waiters.wake(Lsn(11));
        assert_eq!(woken(&entered), [1, 1, 1, 0]);
        waiters.wake(Lsn(40));
        assert_eq!(woken(&entered), [1, 1, 1, 1]);
    }

    #[test]
    fn who_comes_late_does_not_wait() {
        let waiters = FlushWaiters::new();
        assert!(waiters.enter(Lsn(5), Waker::noop(), || true).is_none());
        let ticket = waiters.enter(Lsn(5), Waker::noop(), || false).unwrap();
        assert!(waiters.renew(ticket, Waker::noop()));
        waiters.wake(Lsn(5));
        assert!(!waiters.renew(ticket, Waker::noop()));
    }
}
