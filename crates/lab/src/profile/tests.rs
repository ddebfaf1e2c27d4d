use super::*;
use std::hint::black_box;

fn profile(folded: &[(&str, u64)]) -> Profile {
    Profile {
        off_cpu: false,
        total: folded.iter().map(|(_, weight)| weight).sum(),
        lost: 0,
        folded: (folded.iter())
            .map(|(s, w)| ((*s).to_owned(), *w))
            .collect(),
    }
}

#[test]
fn shares_and_the_hottest() {
    let profile = profile(&[
        ("core;a;throng_sync::spin::lock", 30),
        ("core;a;b", 60),
        ("io;b", 10),
    ]);
    assert_eq!(profile.share(&["throng_sync::spin"]), Some(0.3));
    assert_eq!(profile.share(&["nowhere"]), Some(0.0));
    let hottest = profile.hottest(1);
    assert_eq!((hottest[0].function.as_str(), hottest[0].share), ("b", 0.7));
    assert_eq!(self::profile(&[]).share(&["a"]), None);
}

#[test]
fn off_the_core_the_caller_of_the_kernel_is_named() {
    let mut profile = profile(&[
        ("core;a;epoll_wait;syscall;do_wait_[k];schedule_[k]", 9),
        ("io;b;[ready, no core free]", 1),
    ]);
    profile.off_cpu = true;
    let names: Vec<String> = profile
        .hottest(9)
        .into_iter()
        .map(|hot| hot.function)
        .collect();
    assert_eq!(names, ["epoll_wait", "[ready, no core free]"]);
}

#[test]
fn time_off_the_core_is_that_between_leaving_and_coming_back() {
    let mut tally = Tally::default();
    let (pid, tid) = (std::process::id(), u32::MAX);
    let left = |nanos| Record::Stack {
        pid,
        tid,
        nanos,
        stack: Box::new([1]),
    };
    for record in [
        Record::Resumed { tid, nanos: 5 },
        left(10),
        Record::Stopped {
            tid,
            nanos: 10,
            ready: false,
        },
        Record::Resumed { tid, nanos: 110 },
        left(200),
        Record::Stopped {
            tid,
            nanos: 200,
            ready: true,
        },
        Record::Resumed { tid, nanos: 207 },
        left(300),
    ] {
        tally.take(record, Mode::OffCpu);
    }
    let profile = tally.named(HashMap::new(), &KernelSymbols::none(), Mode::OffCpu);
    assert_eq!(profile.total, 107);
    let ready = profile
        .folded
        .iter()
        .find(|(stack, _)| stack.contains("ready"));
    assert_eq!(ready.map(|(_, weight)| *weight), Some(7));
}

#[inline(never)]
fn burn_here(until: &AtomicBool) {
    let mut n = 0_u64;
    while !until.load(Ordering::Relaxed) {
        n = black_box(n.wrapping_mul(31).wrapping_add(1));
    }
}

/// Where the kernel permits it, a thread that computes is found computing; where not, it is said in
/// words.
#[test]
fn a_busy_thread_is_seen() {
    let recorder = match Recorder::start(&[std::process::id()], Mode::OnCpu { hertz: HERTZ }) {
        Ok(recorder) => recorder,
        Err(e) => {
            assert!(e.to_string().contains("performance events"), "{e}");
            return;
        }
    };
    let done = Arc::new(AtomicBool::new(false));
    // Started after the recorder, so it is seen only if events are inherited.
    let busy = std::thread::spawn({
        let done = Arc::clone(&done);
        move || burn_here(&done)
    });
    std::thread::sleep(Duration::from_millis(200));
    done.store(true, Ordering::Relaxed);
    busy.join().expect("no panic");
    let profile = recorder.stop().expect("a profile");
    assert!(profile.total > 0, "no sample in 200 ms");
    let share = profile.share(&["burn_here"]).expect("samples");
    assert!(share > 0.0, "{:?}", profile.hottest(5));
}
