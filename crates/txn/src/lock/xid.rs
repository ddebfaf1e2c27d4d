//! Waiting for a transaction (or subtransaction) to end.
//!
//! A transaction that nobody waits for pays one load at its end. The two sides meet like this:
//!
//! ```text
//!   who waits                              who ends
//!   1 count += 1, in the partition         1 status = committed or aborted
//!     ── both SeqCst ──                      ── both SeqCst ──
//!   2 still running? then sleep            2 count > 0? then wake them
//! ```

use std::sync::Arc;
use throng_sync::atomic::{AtomicU32, Ordering, fence};

use foldhash::fast::RandomState;
use throng_sync::CachePadded;
use throng_sync::lock::Mutex;
use throng_types::Xid;

use super::wait::WaitNode;

const PARTITIONS: usize = if cfg!(test) { 2 } else { 128 };
type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

#[derive(Default)]
struct Partition {
    /// Waiters in `waiting`.
    count: AtomicU32,
    waiting: Mutex<HashMap<Xid, Vec<Arc<WaitNode>>>>,
}

pub(crate) struct XidWaits {
    partitions: Box<[CachePadded<Partition>]>,
}

impl XidWaits {
    pub(crate) fn new() -> XidWaits {
        XidWaits {
            partitions: (0..PARTITIONS).map(|_| CachePadded::default()).collect(),
        }
    }

    fn partition(&self, xid: Xid) -> &Partition {
        &self.partitions[xid.0 as usize % PARTITIONS]
    }

    /// Adds a waiter. It must then look at the transaction's status once more before it sleeps.
    pub(crate) fn add(&self, xid: Xid, node: Arc<WaitNode>) {
        let partition = self.partition(xid);
        let mut waiting = partition.waiting.lock();
        partition.count.fetch_add(1, Ordering::SeqCst);
        waiting.entry(xid).or_default().push(node);
        drop(waiting);
        fence(Ordering::SeqCst);
    }

    /// Takes a waiter back, if it is still there.
    pub(crate) fn remove(&self, xid: Xid, node: &Arc<WaitNode>) {
        let partition = self.partition(xid);
        let mut waiting = partition.waiting.lock();
        let Some(nodes) = waiting.get_mut(&xid) else {
            return;
        };
        let before = nodes.len();
        nodes.retain(|n| !Arc::ptr_eq(n, node));
        partition
            .count
            .fetch_sub((before - nodes.len()) as u32, Ordering::Relaxed);
        if nodes.is_empty() {
            waiting.remove(&xid);
        }
    }

    /// Who waits for `xid`, longest first.
    pub(crate) fn queue(&self, xid: Xid) -> Vec<u32> {
        let waiting = self.partition(xid).waiting.lock();
        let nodes = waiting.get(&xid).into_iter().flatten();
        nodes.map(|node| node.pid).collect()
    }

    /// Wakes everyone who waits for `xid`. To be called after its status is stored.
    #[inline]
    pub(crate) fn ended(&self, xid: Xid) {
        fence(Ordering::SeqCst);
        if self.partition(xid).count.load(Ordering::SeqCst) != 0 {
            self.wake(xid);
        }
    }

    #[cold]
    fn wake(&self, xid: Xid) {
        let partition = self.partition(xid);
        let nodes = {
            let mut waiting = partition.waiting.lock();
            let nodes = waiting.remove(&xid).unwrap_or_default();
            partition
                .count
                .fetch_sub(nodes.len() as u32, Ordering::Relaxed);
            nodes
        };
        for node in nodes {
            node.grant();
            node.wake();
        }
    }
}
