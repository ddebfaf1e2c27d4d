//! The lock table: who holds what, who waits for it, in which order.
//!
//! Split by the tag's hash, so that sessions that lock different things do not meet. A lock's state
//! lives as long as somebody holds it or waits for it. Waiters are served in order of arrival, with
//! PostgreSQL's one exception: who already holds the lock in a mode that an earlier waiter has to
//! wait for goes before that waiter (there would be a deadlock otherwise). Whoever releases grants:
//! a waiter wakes up holding the lock, and nobody can take it from under its nose.
//!
//! A watcher wants nothing but to see those go who held a lock when it came ([`LockTable::watch`]):
//! it stands in nobody's way.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::{FixedState, RandomState};
use throng_sync::CachePadded;
use throng_sync::lock::Mutex;

use super::wait::WaitNode;
use super::{LockInfo, LockMode, LockTag, ModeMask, modes};

/// Partitions of the table: far more than cores, so that two sessions seldom want one at once.
const PARTITIONS: usize = if cfg!(test) { 4 } else { 256 };
const _: () = assert!(PARTITIONS.is_power_of_two());

type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
type Partition = Mutex<HashMap<LockTag, LockState>>;

pub(crate) struct LockTable {
    partitions: Box<[CachePadded<Partition>]>,
    hasher: FixedState,
}

/// One lock: its holders and its queue.
#[derive(Default)]
struct LockState {
    holders: Vec<Holder>,
    /// How many hold each mode.
    counts: [u32; 9],
    queue: VecDeque<Arc<WaitNode>>,
    watchers: Vec<Watcher>,
}

/// Waits until these sessions have let go of what its mode excludes.
struct Watcher {
    node: Arc<WaitNode>,
    pids: Vec<u32>,
}

struct Holder {
    pid: u32,
    modes: ModeMask,
}

/// An edge of the waits-for graph: `pid` is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocker {
    pub(crate) pid: u32,
    /// It does not hold the lock, it is only before us in the queue.
    pub(crate) queued: bool,
}

impl LockState {
    fn held_by(&self, pid: u32) -> ModeMask {
        self.holders
            .iter()
            .find(|h| h.pid == pid)
            .map_or(0, |h| h.modes)
    }

    /// Whether somebody else holds a mode that excludes `mode`.
    fn is_blocked(&self, pid: u32, mode: LockMode) -> bool {
        let own = self.held_by(pid);
        modes(mode.conflict_mask()).any(|m| self.counts[m as usize] > u32::from(own & m.bit() != 0))
    }

    fn grant(&mut self, pid: u32, mask: ModeMask) {
        let at = match self.holders.iter().position(|h| h.pid == pid) {
            Some(at) => at,
            None => {
                self.holders.push(Holder { pid, modes: 0 });
                self.holders.len() - 1
            }
        };
        let holder = &mut self.holders[at];
        for mode in modes(mask & !holder.modes) {
            self.counts[mode as usize] += 1;
        }
        holder.modes |= mask;
    }

    fn ungrant(&mut self, pid: u32, mask: ModeMask) {
        let at = self
            .holders
            .iter()
            .position(|h| h.pid == pid)
            .expect("a lock released is held");
        let holder = &mut self.holders[at];
        assert_eq!(holder.modes & mask, mask, "a mode released is held");
        for mode in modes(mask) {
            self.counts[mode as usize] -= 1;
        }
        holder.modes &= !mask;
        if holder.modes == 0 {
            self.holders.swap_remove(at);
        }
    }

    /// Where in the queue a request belongs, and whether it need not queue at all.
    fn place(&self, pid: u32, mode: LockMode) -> (usize, bool) {
        let own = self.held_by(pid);
        let position = match own {
            0 => self.queue.len(),
            _ => self
                .queue
                .iter()
                .position(|w| w.mode.conflict_mask() & own != 0)
                .unwrap_or(self.queue.len()),
        };
        let ahead = self
            .queue
            .iter()
            .take(position)
            .fold(0, |mask, w| mask | w.in_the_way());
        (
            position,
            mode.conflict_mask() & ahead == 0 && !self.is_blocked(pid, mode),
        )
    }

    /// Grants to everyone in the queue who need not wait any longer.
    fn serve(&mut self, woken: &mut Vec<Arc<WaitNode>>) {
        let mut ahead: ModeMask = 0;
        let mut i = 0;
        while i < self.queue.len() {
            let (pid, mode) = (self.queue[i].pid, self.queue[i].mode);
            if mode.conflict_mask() & ahead == 0 && !self.is_blocked(pid, mode) {
                let node = self.queue.remove(i).expect("within the queue");
                self.grant(pid, mode.bit());
                node.grant();
                woken.push(node);
            } else {
                ahead |= self.queue[i].in_the_way();
                i += 1;
            }
        }
    }

    /// Lets the watchers go who have nobody left to wait for.
    fn relieve(&mut self, woken: &mut Vec<Arc<WaitNode>>) {
        let mut watchers = std::mem::take(&mut self.watchers);
        watchers.retain_mut(|watcher| {
            let conflicts = watcher.node.mode.conflict_mask();
            watcher
                .pids
                .retain(|pid| self.held_by(*pid) & conflicts != 0);
            let waits = !watcher.pids.is_empty();
            if !waits {
                watcher.node.grant();
                woken.push(watcher.node.clone());
            }
            waits
        });
        self.watchers = watchers;
    }

    fn is_unused(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty() && self.watchers.is_empty()
    }
}

impl LockTable {
    pub(crate) fn new() -> LockTable {
        LockTable {
            partitions: (0..PARTITIONS)
                .map(|_| CachePadded::new(Mutex::default()))
                .collect(),
            hasher: FixedState::default(),
        }
    }

    fn partition(&self, tag: &LockTag) -> &Partition {
        &self.partitions[self.hasher.hash_one(tag) as usize % PARTITIONS]
    }

    /// Takes the lock if it is free.
    pub(crate) fn try_acquire(&self, pid: u32, tag: LockTag, mode: LockMode) -> bool {
        let mut partition = self.partition(&tag).lock();
        match partition.entry(tag) {
            Entry::Vacant(entry) => {
                entry.insert(LockState::default()).grant(pid, mode.bit());
                true
            }
            Entry::Occupied(mut entry) => {
                let free = entry.get().place(pid, mode).1;
                if free {
                    entry.get_mut().grant(pid, mode.bit());
                }
                free
            }
        }
    }

    /// Takes the lock, or a place in its queue, in which others may be let past. `None`: taken.
    pub(crate) fn acquire(
        &self,
        pid: u32,
        tag: LockTag,
        mode: LockMode,
        lets_past: bool,
    ) -> Option<Arc<WaitNode>> {
        let mut partition = self.partition(&tag).lock();
        let state = partition.entry(tag).or_default();
        let (position, free) = state.place(pid, mode);
        if free {
            state.grant(pid, mode.bit());
            return None;
        }
        let holds = state.held_by(pid) != 0;
        let node = WaitNode::new(pid, mode).of_holder(holds);
        let node = Arc::new(node.letting_past(lets_past));
        state.queue.insert(position, node.clone());
        Some(node)
    }

    /// Waits for nothing but that everybody else who holds a mode that `mode` excludes gives it up.
    /// `None`: nobody does.
    pub(crate) fn watch(&self, pid: u32, tag: LockTag, mode: LockMode) -> Option<Arc<WaitNode>> {
        let mut partition = self.partition(&tag).lock();
        let state = partition.get_mut(&tag)?;
        let in_the_way = |h: &&Holder| h.pid != pid && h.modes & mode.conflict_mask() != 0;
        let pids: Vec<u32> = state
            .holders
            .iter()
            .filter(in_the_way)
            .map(|h| h.pid)
            .collect();
        if pids.is_empty() {
            return None;
        }
        let node = Arc::new(WaitNode::new(pid, mode));
        let watcher = Watcher {
            node: node.clone(),
            pids,
        };
        state.watchers.push(watcher);
        Some(node)
    }

    /// Takes a watcher back, if it still waits.
    pub(crate) fn unwatch(&self, tag: LockTag, node: &Arc<WaitNode>) {
        let mut partition = self.partition(&tag).lock();
        let Entry::Occupied(mut entry) = partition.entry(tag) else {
            return;
        };
        let watchers = &mut entry.get_mut().watchers;
        watchers.retain(|w| !Arc::ptr_eq(&w.node, node));
        if entry.get().is_unused() {
            entry.remove();
        }
    }

    /// Whom a watcher waits for.
    pub(crate) fn watched(&self, tag: LockTag, node: &Arc<WaitNode>) -> Vec<Blocker> {
        let partition = self.partition(&tag).lock();
        let watchers = partition.get(&tag).map_or(&[][..], |state| &state.watchers);
        let found = watchers.iter().find(|w| Arc::ptr_eq(&w.node, node));
        let pids = found.map_or(&[][..], |watcher| &watcher.pids);
        let blocker = |pid: &u32| Blocker {
            pid: *pid,
            queued: false,
        };
        pids.iter().map(blocker).collect()
    }

    /// What one session holds is another's from now on: nobody comes between.
    pub(crate) fn hand_over(&self, tag: LockTag, mask: ModeMask, from: u32, to: u32) {
        let mut partition = self.partition(&tag).lock();
        let Some(state) = partition.get_mut(&tag) else {
            panic!("{tag} is not locked")
        };
        state.ungrant(from, mask);
        state.grant(to, mask);
        let watched = state.watchers.iter_mut().flat_map(|w| &mut w.pids);
        watched
            .filter(|pid| **pid == from)
            .for_each(|pid| *pid = to);
    }

    /// Gives modes back and serves the queue.
    pub(crate) fn release(&self, pid: u32, tag: LockTag, mask: ModeMask) {
        self.change(tag, |state| state.ungrant(pid, mask));
    }

    /// Takes a waiter out of the queue. `false`: it holds the lock already.
    pub(crate) fn withdraw(&self, tag: LockTag, node: &Arc<WaitNode>) -> bool {
        self.change(tag, |state| {
            let at = state.queue.iter().position(|w| Arc::ptr_eq(w, node));
            at.map(|at| state.queue.remove(at)).is_some()
        })
    }

    /// Grants a waiter its lock before its turn, if only others in the queue are in its way.
    pub(crate) fn jump_queue(&self, tag: LockTag, node: &Arc<WaitNode>) -> bool {
        self.change(tag, |state| {
            let Some(at) = state.queue.iter().position(|w| Arc::ptr_eq(w, node)) else {
                return false;
            };
            if state.is_blocked(node.pid, node.mode) {
                return false;
            }
            state.queue.remove(at);
            state.grant(node.pid, node.mode.bit());
            node.grant();
            true
        })
    }

    fn change<R>(&self, tag: LockTag, change: impl FnOnce(&mut LockState) -> R) -> R {
        let mut woken = Vec::new();
        let result = {
            let mut partition = self.partition(&tag).lock();
            let Entry::Occupied(mut entry) = partition.entry(tag) else {
                panic!("{tag} is not locked")
            };
            let result = change(entry.get_mut());
            entry.get_mut().serve(&mut woken);
            entry.get_mut().relieve(&mut woken);
            if entry.get().is_unused() {
                entry.remove();
            }
            result
        };
        // With the partition free again: who wakes may want it.
        for node in woken {
            node.wake();
        }
        result
    }

    /// Moves a lock from a session's own words into the table, if `still_there` says it is ours to
    /// move.
    ///
    /// A mode that somebody's lock excludes was not held: who has that lock had moved all that was.
    /// Its owner is about to look whether he may have it, and finds that he may not.
    pub(crate) fn adopt(
        &self,
        pid: u32,
        tag: LockTag,
        mask: ModeMask,
        still_there: impl FnOnce() -> bool,
    ) {
        // With the partition held: the owner who finds its word gone comes here, and must find the
        // lock.
        let mut partition = self.partition(&tag).lock();
        if still_there() {
            let state = partition.entry(tag).or_default();
            let free = modes(mask).filter(|&mode| !state.is_blocked(pid, mode));
            let free = free.fold(0, |mask, mode| mask | mode.bit());
            // Nobody is left without a lock here: what excludes a mode is held.
            if free != 0 {
                state.grant(pid, free);
            }
        }
    }

    /// Whether the session holds the mode here.
    pub(crate) fn holds(&self, pid: u32, tag: LockTag, mode: LockMode) -> bool {
        let partition = self.partition(&tag).lock();
        let state = partition.get(&tag);
        state.is_some_and(|state| state.held_by(pid) & mode.bit() != 0)
    }

    /// Who keeps `node` waiting: holders first, then those before it in the queue.
    pub(crate) fn blockers(&self, tag: LockTag, node: &Arc<WaitNode>) -> Vec<Blocker> {
        let partition = self.partition(&tag).lock();
        let Some(state) = partition.get(&tag) else {
            return Vec::new();
        };
        let Some(at) = state.queue.iter().position(|w| Arc::ptr_eq(w, node)) else {
            return Vec::new();
        };
        let conflicts = node.mode.conflict_mask();
        let holding = state
            .holders
            .iter()
            .filter(|h| h.pid != node.pid && h.modes & conflicts != 0);
        let ahead = state
            .queue
            .iter()
            .take(at)
            .filter(|w| w.pid != node.pid && w.in_the_way() & conflicts != 0);
        let holding = holding.map(|h| Blocker {
            pid: h.pid,
            queued: false,
        });
        holding
            .chain(ahead.map(|w| Blocker {
                pid: w.pid,
                queued: true,
            }))
            .collect()
    }

    /// Who holds a lock (and does not wait for more of it), and who waits for it, in order.
    pub(crate) fn queue(&self, tag: LockTag) -> (Vec<u32>, Vec<u32>) {
        let partition = self.partition(&tag).lock();
        let Some(state) = partition.get(&tag) else {
            return Default::default();
        };
        let waiters: Vec<u32> = state.queue.iter().map(|node| node.pid).collect();
        let holders = state.holders.iter().map(|holder| holder.pid);
        let holders = holders.filter(|pid| !waiters.contains(pid)).collect();
        (holders, waiters)
    }

    /// Every lock held or waited for, one partition after another.
    pub(crate) fn list(&self, rows: &mut Vec<LockInfo>) {
        for partition in &self.partitions {
            for (&tag, state) in partition.lock().iter() {
                let held = state
                    .holders
                    .iter()
                    .flat_map(|h| modes(h.modes).map(|mode| (h.pid, mode)));
                rows.extend(held.map(|(pid, mode)| LockInfo {
                    tag,
                    pid,
                    mode,
                    granted: true,
                    fast_path: false,
                    wait_start: None,
                }));
                rows.extend(state.queue.iter().map(|w| LockInfo {
                    tag,
                    pid: w.pid,
                    mode: w.mode,
                    granted: false,
                    fast_path: false,
                    wait_start: Some(w.since),
                }));
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.partitions.iter().all(|p| p.lock().is_empty())
    }
}

#[cfg(test)]
mod tests;
