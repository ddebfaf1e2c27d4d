//! How fast commits become durable: `cargo run --release -p throng-wal --example commit_rate
//! [DIR]`.
//!
//! Committers are tasks dealt to a few threads, as sessions are to event loops. Each inserts what a
//! small transaction does (three page edits and a commit record) and waits for the flush. Prints,
//! for several numbers of committers, commits a second, commits a sync, and the latency as a
//! committer sees it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};
use throng_disk::{Disk, RealDisk};
use throng_observe::{Counter, counter};
use throng_types::{FileId, PageId, Xid};
use throng_wal::{RecordBuilder, Wal, WalConfig};

const THREADS: usize = 2;
const RUN: Duration = Duration::from_secs(2);

/// The tasks of one thread that are ready to go on. A wake-up from another thread costs an unpark,
/// as it costs an event loop a write to its eventfd.
struct Loop {
    ready: Mutex<VecDeque<usize>>,
    thread: Thread,
}

struct TaskWaker {
    home: Arc<Loop>,
    task: usize,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.home.ready.lock().unwrap().push_back(self.task);
        if self.home.thread.id() != std::thread::current().id() {
            self.home.thread.unpark();
        }
    }
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Runs the tasks to their ends.
fn run_loop(mut tasks: Vec<Option<Task>>) {
    let home = Arc::new(Loop {
        ready: Mutex::new((0..tasks.len()).collect()),
        thread: std::thread::current(),
    });
    let wakers: Vec<Waker> = (0..tasks.len())
        .map(|task| {
            Arc::new(TaskWaker {
                home: home.clone(),
                task,
            })
            .into()
        })
        .collect();
    let mut left = tasks.len();
    while left > 0 {
        let next = home.ready.lock().unwrap().pop_front();
        let Some(task) = next else {
            std::thread::park();
            continue;
        };
        let Some(future) = &mut tasks[task] else {
            continue;
        };
        if future
            .as_mut()
            .poll(&mut Context::from_waker(&wakers[task]))
            .is_ready()
        {
            tasks[task] = None;
            left -= 1;
        }
    }
}

#[derive(Default)]
struct Totals {
    commits: AtomicU64,
    nanos: AtomicU64,
}

async fn committer(wal: Arc<Wal>, number: u64, stop: Arc<AtomicBool>, totals: Arc<Totals>) {
    let mut record = RecordBuilder::new();
    let mut xid = number << 32;
    while !stop.load(Ordering::Relaxed) {
        xid += 1;
        for page in 0..3 {
            record.pages(Xid(xid));
            let page = record.add_page(PageId::new(FileId(page), number as u32));
            record.write(page, 24, &[1; 4]);
            record.write(page, 4000, &[2; 100]);
            wal.insert(&mut record);
        }
        record.commit(Xid(xid), &[], &[], wal.flushed(), 0);
        let end = wal.insert(&mut record);
        let start = Instant::now();
        wal.flush(end).await.expect("the log works");
        totals.commits.fetch_add(1, Ordering::Relaxed);
        totals
            .nanos
            .fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

fn measure(wal: &Arc<Wal>, committers: u64) {
    let stop = Arc::new(AtomicBool::new(false));
    let totals = Arc::new(Totals::default());
    let syncs = counter(Counter::WalSync);
    let start = Instant::now();
    std::thread::scope(|s| {
        for thread in 0..THREADS as u64 {
            let (stop, totals) = (stop.clone(), totals.clone());
            s.spawn(move || {
                let mine = (0..committers).filter(|n| n % THREADS as u64 == thread);
                let tasks = mine.map(|n| {
                    Some(Box::pin(committer(wal.clone(), n, stop.clone(), totals.clone())) as Task)
                });
                run_loop(tasks.collect());
            });
        }
        std::thread::sleep(RUN);
        stop.store(true, Ordering::Relaxed);
    });
    let commits = totals.commits.load(Ordering::Relaxed);
    let syncs = counter(Counter::WalSync) - syncs;
    println!(
        "{committers:>10} {:>12.0} {:>12.1} {:>14.0}",
        commits as f64 / start.elapsed().as_secs_f64(),
        commits as f64 / syncs as f64,
        totals.nanos.load(Ordering::Relaxed) as f64 / 1000.0 / commits as f64,
    );
}

fn main() {
    let dir = std::env::args()
        .nth(1)
        .map_or_else(std::env::temp_dir, Into::into);
    let dir = tempfile::tempdir_in(dir).expect("a directory to work in");
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(dir.path()).expect("an empty data directory"));
    let wal = Wal::open(disk, WalConfig::default(), Wal::FIRST).expect("the log opens");
    println!(
        "{:>10} {:>12} {:>12} {:>14}",
        "committers", "commits/s", "commits/sync", "latency (us)"
    );
    for committers in [1, 2, 10, 50, 100, 500, 1000] {
        measure(&wal, committers);
        wal.recycle_before(wal.flushed()).expect("old segments go");
    }
    wal.shutdown().expect("the log closes");
}
