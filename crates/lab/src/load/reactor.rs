//! Many connections on one thread: an epoll loop that polls one future a client.
//!
//! A load generator shares its cores with the server it measures, so what matters is what a round
//! trip costs here: one `write`, one `read`, and a share of one `epoll_wait` that brings all
//! clients that are ready. There are no wakers, queues or locks: an event names a task, the task is
//! polled, that is all.
//!
//! ```text
//!            ┌────────────── epoll_wait ◄─────────────┐
//!   event ───► task's readiness |= bits ─► poll task ─┤
//!   timer ───────────────────────────────► poll task ─┘
//! ```
//!
//! Invariants: a task owns at most one registered socket at a time; sockets are registered once,
//! edge-triggered, so a steady state makes no `epoll_ctl`: for reading, and for writing only from
//! the first write on that found no room, since a Unix-domain socket that is watched for writing
//! wakes its watcher with every message that the other end reads; a task waits for its socket or a
//! timer and for nothing else (another future would never be polled again).

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::time::Timespec;

/// One client's whole life.
pub type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Events taken from the kernel at once: more clients than this take several turns, none starves.
const EVENTS: usize = 512;

/// What a socket is watched for while nobody waits to write.
const READING: EventFlags = EventFlags::IN
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);

/// What a task's socket is known to be ready for.
///
/// ```text
/// bit 0  READ    a read may bring something; cleared by a read that found the socket empty
/// bit 1  WRITE   a write may be taken; cleared by whoever found the socket full and waits
/// bit 2  ENDED   the peer is gone: reads and writes no longer block, and no further event will come
/// ```
#[derive(Clone, Copy)]
struct Readiness(u8);

impl Readiness {
    const NONE: Readiness = Readiness(0);
    const READ: u8 = 1;
    const WRITE: u8 = 1 << 1;
    const ENDED: u8 = 1 << 2;

    fn of(flags: EventFlags) -> Readiness {
        let ended = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        let bit = |any: EventFlags, bit: u8| if flags.intersects(any) { bit } else { 0 };
        Readiness(
            bit(EventFlags::IN, Readiness::READ)
                | bit(EventFlags::OUT, Readiness::WRITE)
                | bit(ended, Readiness::ENDED),
        )
    }

    fn allows(self, direction: u8) -> bool {
        self.0 & (direction | Readiness::ENDED) != 0
    }
}

struct Inner {
    epoll: OwnedFd,
    ready: RefCell<Vec<Readiness>>,
    timers: RefCell<BinaryHeap<Reverse<(Instant, usize)>>>,
    /// The task that is being polled.
    current: Cell<usize>,
}

/// What a task does its waiting through. Cheap to clone; stays on its thread.
#[derive(Clone)]
pub struct Reactor(Rc<Inner>);

impl Reactor {
    pub fn new() -> io::Result<Reactor> {
        Ok(Reactor(Rc::new(Inner {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            ready: RefCell::new(Vec::new()),
            timers: RefCell::new(BinaryHeap::new()),
            current: Cell::new(0),
        })))
    }

    /// Makes `socket` the one that the current task waits for. Closing it takes it out again.
    pub fn register(&self, socket: impl AsFd) -> io::Result<()> {
        let task = self.0.current.get();
        self.0.ready.borrow_mut()[task] = Readiness::NONE;
        let data = EventData::new_u64(task as u64);
        Ok(epoll::add(&self.0.epoll, socket, data, READING)?)
    }

    /// Until the task's socket may be read.
    pub async fn readable(&self) {
        self.ready_for(Readiness::READ).await;
    }

    /// Until the task's socket, which was found full, may be written.
    pub async fn writable(&self, socket: impl AsFd) -> io::Result<()> {
        self.clear(Readiness::WRITE);
        let data = EventData::new_u64(self.0.current.get() as u64);
        epoll::modify(&self.0.epoll, &socket, data, READING | EventFlags::OUT)?;
        self.ready_for(Readiness::WRITE).await;
        Ok(epoll::modify(&self.0.epoll, &socket, data, READING)?)
    }

    /// The last read left nothing in the socket.
    pub fn drained(&self) {
        self.clear(Readiness::READ);
    }

    fn clear(&self, direction: u8) {
        self.0.ready.borrow_mut()[self.0.current.get()].0 &= !direction;
    }

    fn ready_for(&self, direction: u8) -> impl Future<Output = ()> + '_ {
        poll_fn(
            move |_| match self.0.ready.borrow()[self.0.current.get()].allows(direction) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            },
        )
    }

    pub async fn sleep_until(&self, when: Instant) {
        let mut set = false;
        poll_fn(|_| {
            if Instant::now() >= when {
                return Poll::Ready(());
            }
            if !set {
                set = true;
                let timer = Reverse((when, self.0.current.get()));
                self.0.timers.borrow_mut().push(timer);
            }
            Poll::Pending
        })
        .await;
    }

    pub async fn sleep(&self, time: Duration) {
        self.sleep_until(Instant::now() + time).await;
    }

    /// Polls the tasks until all have ended, or until `deadline`: those that are left are then
    /// dropped, their sockets closed, and their number returned.
    pub fn run(&self, tasks: Vec<Task<'_>>, deadline: Option<Instant>) -> io::Result<usize> {
        let mut crowd = Crowd {
            reactor: &self.0,
            living: tasks.len(),
            tasks: tasks.into_iter().map(Some).collect(),
        };
        *self.0.ready.borrow_mut() = vec![Readiness::NONE; crowd.tasks.len()];
        self.0.timers.borrow_mut().clear();
        for task in 0..crowd.tasks.len() {
            crowd.poll(task);
        }
        let mut events = [MaybeUninit::<Event>::uninit(); EVENTS];
        while crowd.living > 0 {
            let now = Instant::now();
            if deadline.is_some_and(|d| now >= d) {
                break;
            }
            crowd.fire_timers(now);
            if crowd.living == 0 {
                break;
            }
            let next = self.0.timers.borrow().peek().map(|t| t.0.0);
            let until = [deadline, next].into_iter().flatten().min();
            let timeout = until.map(|at| timespec(at.saturating_duration_since(Instant::now())));
            let came = match epoll::wait(&self.0.epoll, &mut events, timeout.as_ref()) {
                Ok((came, _)) => came,
                Err(rustix::io::Errno::INTR) => continue,
                Err(e) => return Err(e.into()),
            };
            for event in came {
                let task = event.data.u64() as usize;
                let flags = event.flags;
                self.0.ready.borrow_mut()[task].0 |= Readiness::of(flags).0;
                crowd.poll(task);
            }
        }
        Ok(crowd.living)
    }
}

/// Runs one future on a reactor of its own.
pub fn block_on<T>(work: impl AsyncFnOnce(Reactor) -> T) -> io::Result<T> {
    let reactor = Reactor::new()?;
    let mut result = None;
    let task: Task<'_> = Box::pin(async {
        result = Some(work(reactor.clone()).await);
    });
    reactor.run(vec![task], None)?;
    Ok(result.expect("without a deadline a run ends when its tasks have"))
}

/// The tasks of one run.
struct Crowd<'r, 'a> {
    reactor: &'r Inner,
    tasks: Vec<Option<Task<'a>>>,
    living: usize,
}

impl Crowd<'_, '_> {
    #[inline]
    fn poll(&mut self, index: usize) {
        // An event for a task that has ended was on its way before its socket was closed.
        let Some(task) = &mut self.tasks[index] else {
            return;
        };
        self.reactor.current.set(index);
        if task
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
        {
            self.tasks[index] = None;
            self.living -= 1;
        }
    }

    fn fire_timers(&mut self, now: Instant) {
        loop {
            let due = {
                let mut timers = self.reactor.timers.borrow_mut();
                match timers.peek() {
                    Some(Reverse((when, _))) if *when <= now => timers.pop(),
                    _ => None,
                }
            };
            match due {
                Some(Reverse((_, task))) => self.poll(task),
                None => return,
            }
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn timers_fire_in_order() {
        let reactor = Reactor::new().expect("epoll");
        let order = RefCell::new(Vec::new());
        let tasks = [30u64, 10, 20].map(|ms| -> Task<'_> {
            let (reactor, order) = (reactor.clone(), &order);
            Box::pin(async move {
                reactor.sleep(Duration::from_millis(ms)).await;
                order.borrow_mut().push(ms);
            })
        });
        assert_eq!(reactor.run(tasks.into(), None).expect("runs"), 0);
        assert_eq!(*order.borrow(), [10, 20, 30]);
    }

    #[test]
    fn whoever_never_ends_is_dropped_at_the_deadline() {
        let reactor = Reactor::new().expect("epoll");
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let waiting: Task<'_> = Box::pin(async {
            reactor.register(&ours).expect("registered");
            reactor.readable().await;
        });
        let deadline = Instant::now() + Duration::from_millis(20);
        assert_eq!(reactor.run(vec![waiting], Some(deadline)).expect("runs"), 1);
    }

    #[test]
    fn two_tasks_talk_through_sockets() {
        let reactor = Reactor::new().expect("epoll");
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let heard = Cell::new(0);
        let asking: Task<'_> = Box::pin(async {
            ours.set_nonblocking(true).expect("set");
            reactor.register(&ours).expect("registered");
            for round in 0..100u8 {
                (&ours).write_all(&[round]).expect("written");
                let mut byte = [0; 8];
                loop {
                    reactor.readable().await;
                    match (&ours).read(&mut byte) {
                        Ok(n) => {
                            assert_eq!((n, byte[0]), (1, round));
                            reactor.drained();
                            break;
                        }
                        Err(_) => reactor.drained(),
                    }
                }
                heard.set(heard.get() + 1);
            }
        });
        let answering: Task<'_> = Box::pin(async {
            theirs.set_nonblocking(true).expect("set");
            reactor.register(&theirs).expect("registered");
            let mut byte = [0; 8];
            for _ in 0..100 {
                loop {
                    reactor.readable().await;
                    match (&theirs).read(&mut byte) {
                        Ok(n) => {
                            reactor.drained();
                            (&theirs).write_all(&byte[..n]).expect("written");
                            break;
                        }
                        Err(_) => reactor.drained(),
                    }
                }
            }
        });
        let deadline = Instant::now() + Duration::from_secs(10);
        let left = reactor.run(vec![asking, answering], Some(deadline));
        assert_eq!((left.expect("runs"), heard.get()), (0, 100));
    }
}
