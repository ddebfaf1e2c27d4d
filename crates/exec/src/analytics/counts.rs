//! What the operators of a job did, counted by threads that do not know of each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use throng_plan::Plan;

use crate::run::context::NodeCounters;

/// By the number of the plan's node.
#[derive(Debug)]
pub struct JobCounts {
    since: Instant,
    nodes: Vec<Node>,
}

/// Times are nanoseconds since the job was made.
#[derive(Debug)]
struct Node {
    rows: AtomicU64,
    /// The first time that a row was asked for; [`u64::MAX`] before.
    began: AtomicU64,
    /// The first row; [`u64::MAX`] before.
    first: AtomicU64,
    ended: AtomicU64,
}

impl JobCounts {
    pub fn of(plan: &Plan) -> JobCounts {
        let node = || Node {
            rows: AtomicU64::new(0),
            began: AtomicU64::new(u64::MAX),
            first: AtomicU64::new(u64::MAX),
            ended: AtomicU64::new(0),
        };
        JobCounts {
            since: Instant::now(),
            nodes: std::iter::repeat_with(node)
                .take(plan.highest_id() as usize + 1)
                .collect(),
        }
    }

    fn now(&self) -> u64 {
        self.since.elapsed().as_nanos() as u64
    }

    /// A thread begins to take the node's rows.
    pub fn begin(&self, id: u32) {
        if let Some(node) = self.nodes.get(id as usize) {
            node.began.fetch_min(self.now(), Ordering::Relaxed);
        }
    }

    /// A thread has taken so many more; none: it has had all of its own.
    pub fn add(&self, id: u32, rows: u64) {
        if let Some(node) = self.nodes.get(id as usize) {
            let now = self.now();
            if rows > 0 {
                node.rows.fetch_add(rows, Ordering::Relaxed);
                node.first.fetch_min(now, Ordering::Relaxed);
            }
            node.ended.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// Writes what was counted over `counters`, which are the whole statement's.
    pub fn tell(&self, counters: &mut [NodeCounters]) {
        for (node, counted) in self.nodes.iter().zip(counters) {
            let began = node.began.load(Ordering::Relaxed);
            if began == u64::MAX {
                continue;
            }
            let ended = node.ended.load(Ordering::Relaxed).max(began);
            *counted = NodeCounters {
                loops: 1,
                rows: node.rows.load(Ordering::Relaxed),
                nanos: ended - began,
                first_nanos: node.first.load(Ordering::Relaxed).clamp(began, ended) - began,
            };
        }
    }
}
