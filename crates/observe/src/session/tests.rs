use super::*;
use crate::object::ObjectKind;
use crate::wait::{Scope, blocking, waiting, waits};
use std::future::poll_fn;

/// Runs a task by hand: a waker that counts, on this thread.
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn spin_for(nanos: u64) {
    let began = now_nanos();
    while now_nanos() - began < nanos {
        std::hint::spin_loop();
    }
}

/// Runs a session on this thread, to its end.
fn run(pid: u32, task: impl Future<Output = ()>) {
    let waker = Waker::from(Arc::new(Count(AtomicU32::new(0))));
    let mut task = Box::pin(accounted(SessionWaits::new(pid), task));
    let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_ready());
}

fn run_another(nanos: u64) {
    run(70, async { spin_for(nanos) });
}

fn nanos_of(event: WaitEvent, object: Object) -> u64 {
    waits()
        .iter()
        .find(|w| w.event == event && w.object == object && w.scope == Scope::Sessions)
        .map_or(0, |w| w.nanos)
}

/// Takes the calling thread for a core's and gives a look at how long that was queued for since. A
/// thread that has ended leaves its numbers to the next one in its place, whatever that one's core.
fn core_queue(core: u32) -> impl Fn() -> u64 {
    slots::this_is_core(core as usize);
    let all = move || nanos_of(WaitEvent::CoreQueue, Object::core(core));
    let before = all();
    move || all() - before
}

const MS: u64 = 1_000_000;

/// Tries until a measurement was not disturbed by what else runs on the machine: the last one's
/// complaint stands.
fn undisturbed(measure: impl Fn(u32) -> Result<(), String>) {
    let disturbed = |at| measure(at).err();
    let complaints: Vec<String> = (0..20).map_while(disturbed).collect();
    assert!(complaints.len() < 20, "{complaints:?}");
}

#[test]
fn a_wait_ends_when_the_session_is_woken_and_the_rest_is_the_cores() {
    // A thread of its own, so that its core has a number that no other test uses.
    undisturbed(|at| std::thread::spawn(move || woken_wait(at)).join().unwrap());
}

fn woken_wait(at: u32) -> Result<(), String> {
    let core = 7200 + at;
    let queued = core_queue(core);
    let session = SessionWaits::new(71);
    let row = Object::tuple(70, u64::from(1 + at));
    let mut wait = None;
    let mut polls = 0;
    let task = poll_fn(|_| {
        polls += 1;
        if polls == 1 {
            wait = Some(waiting(WaitEvent::LockTuple, row).held_by(Holder::session(99)));
            return Poll::Pending;
        }
        wait = None;
        Poll::Ready(())
    });
    let mut task = Box::pin(accounted(session.clone(), task));
    let waker = Waker::from(Arc::new(Count(AtomicU32::new(0))));
    let mut context = Context::from_waker(&waker);
    assert!(task.as_mut().poll(&mut context).is_pending());

    let present = session.present().expect("it waits");
    assert_eq!((present.event, present.object), (WaitEvent::LockTuple, row));
    assert_eq!(present.holder.pid(), Some(99));
    spin_for(2 * MS);
    task.waker.as_ref().expect("polled").1.wake_by_ref();
    let present = session.present().expect("it is queued");
    assert_eq!(present.event, WaitEvent::CoreQueue);
    assert_eq!(present.object, Object::core(core));
    run_another(20 * MS);
    assert!(task.as_mut().poll(&mut context).is_ready());
    assert_eq!(session.present(), None);

    let waited = nanos_of(WaitEvent::LockTuple, row);
    assert!(waited >= 2 * MS, "{waited}");
    assert!(queued() >= 20 * MS);
    match waited < 18 * MS {
        true => Ok(()),
        false => Err(format!("{waited} ns waited")),
    }
}

#[test]
fn an_idle_core_is_no_queue() {
    undisturbed(|at| {
        std::thread::spawn(move || idle_core(7100 + at))
            .join()
            .unwrap()
    });
}

fn idle_core(core: u32) -> Result<(), String> {
    let page = Object::file(core);
    let queued = core_queue(core);
    let mut wait = None;
    let task = poll_fn(|_| match wait.take() {
        None => {
            wait = Some(waiting(WaitEvent::PageRead, page));
            Poll::Pending
        }
        Some(_) => Poll::Ready(()),
    });
    let mut task = Box::pin(accounted(SessionWaits::new(74), task));
    let waker = Waker::from(Arc::new(Count(AtomicU32::new(0))));
    let mut context = Context::from_waker(&waker);
    assert!(task.as_mut().poll(&mut context).is_pending());
    task.waker.as_ref().expect("polled").1.wake_by_ref();
    // What the system takes to let this thread run.
    spin_for(20 * MS);
    assert!(task.as_mut().poll(&mut context).is_ready());
    // Others may take the core from this thread in between, for less than all of it.
    let queued = queued();
    let waited = nanos_of(WaitEvent::PageRead, page);
    match queued < 10 * MS && waited >= 10 * MS {
        true => Ok(()),
        false => Err(format!("{queued} ns queued, {waited} ns waited")),
    }
}

#[test]
fn a_core_that_is_blocked_makes_its_sessions_wait_for_what_blocks_it() {
    std::thread::spawn(|| {
        let queued = core_queue(7002);
        let session = SessionWaits::new(72);
        let mut task = Box::pin(accounted(session, poll_fn(|_| Poll::<()>::Pending)));
        let waker = Waker::from(Arc::new(Count(AtomicU32::new(0))));
        let mut context = Context::from_waker(&waker);
        assert!(task.as_mut().poll(&mut context).is_pending());
        task.waker.as_ref().expect("polled").1.wake_by_ref();
        // Another session of this thread waits for a latch.
        let page = Object::page(0x72_0000_0001);
        run(70, async {
            let wait = blocking(WaitEvent::LatchExclusive, page).held_by(Holder::session(5));
            spin_for(5 * MS);
            drop(wait);
        });
        assert!(task.as_mut().poll(&mut context).is_pending());

        let latch = waits()
            .into_iter()
            .find(|w| w.event == WaitEvent::LatchExclusive && w.object == page)
            .expect("recorded");
        assert_eq!((latch.count, latch.holder), (2, Holder::session(5)));
        assert!(latch.nanos >= 10 * MS, "{}", latch.nanos);
        assert!(queued() < 5 * MS);
    })
    .join()
    .unwrap();
}

#[test]
fn a_thread_that_blocks_shows_its_session_waiting() {
    std::thread::spawn(|| {
        let session = SessionWaits::new(73);
        let seen = session.clone();
        let task = poll_fn(move |_| {
            assert_eq!(seen.present(), None);
            let object = Object::lock("test.seen");
            assert_eq!(object.kind, ObjectKind::Lock);
            let wait = blocking(WaitEvent::SpinLock, object);
            let present = seen.present().expect("it waits");
            drop(wait);
            Poll::Ready(present.object == object && seen.present().is_none())
        });
        let mut task = Box::pin(accounted(session, task));
        let waker = Waker::from(Arc::new(Count(AtomicU32::new(0))));
        let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
        assert_eq!(polled, Poll::Ready(true));
    })
    .join()
    .unwrap();
}

#[test]
fn a_stall_tells_computing_from_being_kept_from_it() {
    let [computed, slept] = std::thread::spawn(|| {
        slots::this_is_core(7100);
        run(7101, async { spin_for(12 * MS) });
        run(7101, async {
            std::thread::sleep(std::time::Duration::from_millis(15))
        });
        let mut stalls = crate::stall::stalls();
        stalls.retain(|stall| stall.pid == 7101);
        [stalls[1].clone(), stalls[0].clone()]
    })
    .join()
    .unwrap();
    let used = |stall: &crate::stall::Stall| stall.used.expect("it has ended");
    // Spinning ends by the clock, so a busy machine may take of its time.
    assert!(used(&computed) > MS && used(&computed) <= computed.nanos);
    assert!(
        slept.nanos >= 15 * MS && used(&slept) < 10 * MS,
        "{slept:?}"
    );
}
