//! Commits that wait for standbys: an answer comes when enough of them have the commit's record.
//!
//! ```text
//!   commit ──► own disk ──► wait(lsn) ──────────────────────────────► answer
//!                              ▲
//!   standby ── "I have it up to …" ──► update ──► confirmed = what enough have
//! ```
//! The commit is visible on the primary before: it cannot be taken back. Who gives up waiting is
//! told so, and knows that it is committed here.

use std::sync::Arc;
use std::task::{Poll, Waker};

use throng_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use throng_sync::lock::Mutex;
use throng_types::Lsn;

/// How far a standby must be with a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicationLevel {
    /// `remote_write`: it has received it.
    Written,
    /// `on`: it has it on disk.
    Flushed,
    /// `remote_apply`: it has redone it.
    Applied,
}

/// `synchronous_standby_names`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SynchronousStandbys {
    /// The first so many of the names that are there; else any so many of them.
    pub by_priority: bool,
    pub count: usize,
    /// In small letters; `*` is any.
    pub names: Vec<String>,
}

/// A standby and how far it is.
#[derive(Clone, Debug)]
pub struct StandbyPosition {
    pub name: String,
    pub written: Lsn,
    pub flushed: Lsn,
    pub applied: Lsn,
}

impl StandbyPosition {
    fn at(&self, level: usize) -> Lsn {
        [self.written, self.flushed, self.applied][level]
    }
}

impl SynchronousStandbys {
    /// A standby's place among the names, from 1; 0: it is none of them.
    pub fn priority(&self, name: &str) -> usize {
        let matches = |wanted: &String| wanted == "*" || name.eq_ignore_ascii_case(wanted);
        self.names.iter().position(matches).map_or(0, |at| at + 1)
    }

    /// What enough standbys have; [`Lsn::ZERO`] where there are not enough.
    fn confirmed(&self, standbys: &[StandbyPosition], level: usize) -> Lsn {
        let mut chosen: Vec<(usize, Lsn)> = standbys
            .iter()
            .map(|standby| (self.priority(&standby.name), standby.at(level)))
            .filter(|(priority, _)| *priority > 0)
            .collect();
        if chosen.len() < self.count {
            return Lsn::ZERO;
        }
        match self.by_priority {
            // All of the first ones must have it.
            true => {
                chosen.sort_by_key(|(priority, _)| *priority);
                chosen.truncate(self.count);
                chosen.iter().map(|(_, lsn)| *lsn).min().unwrap_or(Lsn::MAX)
            }
            false => {
                chosen.sort_by_key(|(_, lsn)| std::cmp::Reverse(*lsn));
                self.count
                    .checked_sub(1)
                    .map_or(Lsn::MAX, |last| chosen[last].1)
            }
        }
    }
}

/// Who waits for standbys.
#[derive(Default)]
pub struct SynchronousReplication {
    is_on: AtomicBool,
    wanted: Mutex<Option<Arc<SynchronousStandbys>>>,
    /// By level.
    confirmed: [AtomicU64; 3],
    waiting: Mutex<Vec<(Lsn, ReplicationLevel, Waker)>>,
}

impl SynchronousReplication {
    /// `None`: nobody is waited for, and who waits goes on.
    pub fn configure(&self, wanted: Option<SynchronousStandbys>) {
        let wanted = wanted.map(Arc::new);
        let changed = {
            let mut now = self.wanted.lock();
            let changed = *now != wanted;
            self.is_on.store(wanted.is_some(), Ordering::Release);
            *now = wanted;
            changed
        };
        if changed {
            // What others have confirmed says nothing of these.
            self.confirmed
                .iter()
                .for_each(|at| at.store(0, Ordering::Release));
            self.wake(|_, _| true);
        }
    }

    pub fn standbys(&self) -> Option<Arc<SynchronousStandbys>> {
        self.wanted.lock().clone()
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// How far the standbys are that there are now.
    pub fn update(&self, standbys: &[StandbyPosition]) {
        let Some(wanted) = self.standbys() else {
            return;
        };
        for (level, confirmed) in self.confirmed.iter().enumerate() {
            // It does not go back where a standby is lost: what was confirmed is on its disk.
            let now = wanted.confirmed(standbys, level);
            confirmed.fetch_max(now.0, Ordering::AcqRel);
        }
        self.wake(|lsn, level| lsn <= self.confirmed(level));
    }

    fn confirmed(&self, level: ReplicationLevel) -> Lsn {
        Lsn(self.confirmed[level as usize].load(Ordering::Acquire))
    }

    fn wake(&self, due: impl Fn(Lsn, ReplicationLevel) -> bool) {
        let woken = {
            let mut waiting = self.waiting.lock();
            let (due, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut *waiting)
                .into_iter()
                .partition(|(lsn, level, _)| due(*lsn, *level));
            *waiting = rest;
            due
        };
        woken.into_iter().for_each(|(_, _, waker)| waker.wake());
    }

    /// Waits until enough standbys have the log up to `lsn`. Holds no thread; may be dropped at any
    /// time.
    pub async fn wait(&self, lsn: Lsn, level: ReplicationLevel) {
        std::future::poll_fn(|cx| {
            let is_done = || !self.is_on() || lsn <= self.confirmed(level);
            if is_done() {
                return Poll::Ready(());
            }
            self.waiting.lock().push((lsn, level, cx.waker().clone()));
            // Confirmed between the look and the list.
            match is_done() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn standby(name: &str, written: u64, flushed: u64) -> StandbyPosition {
        StandbyPosition {
            name: name.to_owned(),
            written: Lsn(written),
            flushed: Lsn(flushed),
            applied: Lsn(flushed / 2),
        }
    }

    fn names(by_priority: bool, count: usize, names: &[&str]) -> SynchronousStandbys {
        SynchronousStandbys {
            by_priority,
            count,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn what_enough_have_is_confirmed() {
        let there = [
            standby("A", 30, 10),
            standby("b", 20, 20),
            standby("c", 40, 30),
        ];
        let flushed = |by_priority, count, wanted: &[&str]| {
            names(by_priority, count, wanted).confirmed(&there, 1).0
        };
        assert_eq!(flushed(true, 1, &["a", "b"]), 10);
        assert_eq!(flushed(true, 2, &["c", "b", "a"]), 20);
        assert_eq!(flushed(true, 1, &["gone", "c"]), 30);
        assert_eq!(flushed(false, 1, &["a", "b", "c"]), 30);
        assert_eq!(flushed(false, 2, &["*"]), 20);
        assert_eq!(flushed(false, 3, &["a", "b"]), 0, "there are not so many");
        assert_eq!(names(false, 2, &["*"]).confirmed(&there, 0), Lsn(30));
    }

    #[tokio::test]
    async fn a_commit_waits_for_its_level() {
        let sync = SynchronousReplication::default();
        sync.wait(Lsn(100), ReplicationLevel::Applied).await;
        sync.configure(Some(names(false, 1, &["*"])));
        let confirm = async {
            tokio::task::yield_now().await;
            sync.update(&[standby("x", 100, 99)]);
            tokio::task::yield_now().await;
            sync.update(&[standby("x", 100, 100)]);
            tokio::task::yield_now().await;
            sync.update(&[]);
        };
        tokio::join!(sync.wait(Lsn(100), ReplicationLevel::Flushed), confirm);
        // Who waits in vain goes on when nobody is waited for any more.
        let give_up = async {
            tokio::task::yield_now().await;
            sync.configure(None);
        };
        tokio::join!(sync.wait(Lsn(500), ReplicationLevel::Applied), give_up);
    }
}
