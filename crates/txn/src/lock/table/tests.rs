//! The table against a model that does everything the slow and obvious way.

use std::sync::Arc;

use proptest::prelude::*;
use throng_types::Oid;

use super::super::wait::WaitNode;
use super::super::{LockMode, LockTag};
use super::LockTable;

const TAG: LockTag = LockTag::Relation(Oid(1));
const PIDS: u32 = 5;

/// One lock: who holds which modes, and who waits, in order.
#[derive(Default)]
struct Model {
    held: Vec<(u32, LockMode)>,
    queue: Vec<(u32, LockMode)>,
}

impl Model {
    fn holds_against(&self, pid: u32, mode: LockMode) -> bool {
        self.held
            .iter()
            .any(|&(p, m)| p != pid && m.conflicts(mode))
    }

    fn request(&mut self, pid: u32, mode: LockMode) -> bool {
        let mine: Vec<LockMode> = self
            .held
            .iter()
            .filter(|h| h.0 == pid)
            .map(|h| h.1)
            .collect();
        let before = self
            .queue
            .iter()
            .position(|w| mine.iter().any(|m| m.conflicts(w.1)))
            .unwrap_or(self.queue.len());
        let blocked_by_queue = self.queue[..before].iter().any(|w| w.1.conflicts(mode));
        if !blocked_by_queue && !self.holds_against(pid, mode) {
            self.held.push((pid, mode));
            return true;
        }
        self.queue.insert(before, (pid, mode));
        false
    }

    /// Grants what can be granted, front to back, until nothing more can.
    fn serve(&mut self) {
        while let Some(at) = (0..self.queue.len()).find(|&i| {
            let (pid, mode) = self.queue[i];
            !self.queue[..i].iter().any(|w| w.1.conflicts(mode)) && !self.holds_against(pid, mode)
        }) {
            let granted = self.queue.remove(at);
            self.held.push(granted);
        }
    }
}

/// A session of the test: at most one wait at a time, as sessions have.
#[derive(Default)]
struct Client {
    held: Vec<LockMode>,
    waiting: Option<Arc<WaitNode>>,
}

#[derive(Clone, Debug)]
enum Op {
    Acquire(u32, u8),
    TryAcquire(u32, u8),
    Release(u32, usize),
    GiveUp(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let pid = 0..PIDS;
    prop_oneof![
        4 => (pid.clone(), 0..8u8).prop_map(|(p, m)| Op::Acquire(p, m)),
        1 => (pid.clone(), 0..8u8).prop_map(|(p, m)| Op::TryAcquire(p, m)),
        4 => (pid.clone(), 0..8usize).prop_map(|(p, i)| Op::Release(p, i)),
        1 => pid.prop_map(Op::GiveUp),
    ]
}

/// Who was granted since the last look is a holder now.
fn collect(clients: &mut [Client]) {
    for client in clients {
        if client
            .waiting
            .as_ref()
            .is_some_and(|node| node.is_granted())
        {
            client
                .held
                .extend(client.waiting.take().map(|node| node.mode));
        }
    }
}

fn run(ops: &[Op]) {
    let table = LockTable::new();
    let mut model = Model::default();
    let mut clients: Vec<Client> = (0..PIDS).map(|_| Client::default()).collect();
    let end: Vec<Op> = (0..200)
        .flat_map(|_| (0..PIDS).map(|p| Op::Release(p, 0)))
        .collect();
    for op in ops.iter().chain(&end) {
        match *op {
            Op::Acquire(pid, mode) | Op::TryAcquire(pid, mode) => {
                let (mode, client) = (LockMode::ALL[mode as usize], &mut clients[pid as usize]);
                if client.waiting.is_some() || client.held.contains(&mode) {
                    continue;
                }
                if matches!(op, Op::TryAcquire(..)) {
                    let got = table.try_acquire(pid, TAG, mode);
                    let expected = model.request(pid, mode);
                    if !expected {
                        model.queue.retain(|w| w.0 != pid);
                    }
                    assert_eq!(got, expected, "{op:?}");
                    client.held.extend(got.then_some(mode));
                } else {
                    client.waiting = table.acquire(pid, TAG, mode, false);
                    assert_eq!(client.waiting.is_none(), model.request(pid, mode), "{op:?}");
                    client.held.extend(client.waiting.is_none().then_some(mode));
                }
            }
            Op::Release(pid, i) => {
                let client = &mut clients[pid as usize];
                if client.held.is_empty() || client.waiting.is_some() {
                    continue;
                }
                let mode = client.held.swap_remove(i % client.held.len());
                table.release(pid, TAG, mode.bit());
                model.held.retain(|&h| h != (pid, mode));
                model.serve();
            }
            Op::GiveUp(pid) => {
                let Some(node) = clients[pid as usize].waiting.take() else {
                    continue;
                };
                assert!(table.withdraw(TAG, &node), "it was in the queue");
                model.queue.retain(|w| w.0 != pid);
                model.serve();
            }
        }
        collect(&mut clients);
        compare(&model, &clients);
    }
    break_deadlocks(&table, &mut clients);
    assert!(table.is_empty(), "everybody has let go");
}

fn compare(model: &Model, clients: &[Client]) {
    for (pid, client) in (0..PIDS).zip(clients) {
        let mut expected: Vec<LockMode> = model
            .held
            .iter()
            .filter(|h| h.0 == pid)
            .map(|h| h.1)
            .collect();
        let mut held = client.held.clone();
        expected.sort();
        held.sort();
        assert_eq!(held, expected, "what {pid} holds");
        let waits = model.queue.iter().any(|w| w.0 == pid);
        assert_eq!(client.waiting.is_some(), waits, "whether {pid} waits");
    }
}

/// Sessions that wait for each other's upgrade stay at the end: let them give up, one after
/// another.
fn break_deadlocks(table: &LockTable, clients: &mut [Client]) {
    for pid in 0..clients.len() {
        collect(clients);
        if let Some(node) = clients[pid].waiting.take() {
            assert!(table.withdraw(TAG, &node));
        }
        collect(clients);
        for mode in clients[pid].held.drain(..) {
            table.release(pid as u32, TAG, mode.bit());
        }
    }
    for (pid, client) in clients.iter_mut().enumerate() {
        if let Some(node) = client.waiting.take().filter(|node| node.is_granted()) {
            table.release(pid as u32, TAG, node.mode.bit());
        }
        for mode in client.held.drain(..) {
            table.release(pid as u32, TAG, mode.bit());
        }
    }
}

proptest! {
    #[test]
    fn behaves_as_the_model_does(ops in prop::collection::vec(op(), 1..80)) {
        run(&ops);
    }
}

#[test]
fn a_holder_who_asks_for_more_goes_before_those_who_wait_for_it() {
    let table = LockTable::new();
    assert!(
        table
            .acquire(1, TAG, LockMode::AccessShare, false)
            .is_none()
    );
    let waiter = table
        .acquire(2, TAG, LockMode::AccessExclusive, false)
        .expect("has to wait");
    assert!(
        table
            .acquire(1, TAG, LockMode::RowExclusive, false)
            .is_none(),
        "no deadlock with the waiter"
    );
    table.release(1, TAG, LockMode::AccessShare.bit());
    assert!(!waiter.is_granted());
    table.release(1, TAG, LockMode::RowExclusive.bit());
    assert!(waiter.is_granted());
}

#[test]
fn one_who_only_waits_for_the_queue_can_be_let_past() {
    let table = LockTable::new();
    assert!(
        table
            .acquire(1, TAG, LockMode::AccessShare, false)
            .is_none()
    );
    let exclusive = table
        .acquire(2, TAG, LockMode::AccessExclusive, false)
        .expect("waits");
    let shared = table
        .acquire(3, TAG, LockMode::AccessShare, false)
        .expect("waits behind it");
    let blockers = table.blockers(TAG, &shared);
    assert!(
        blockers.iter().all(|b| b.queued && b.pid == 2),
        "{blockers:?}"
    );
    assert!(!table.jump_queue(TAG, &exclusive), "a holder is in its way");
    assert!(table.jump_queue(TAG, &shared) && shared.is_granted());
}

#[test]
fn who_lets_others_past_holds_nobody_up() {
    let table = LockTable::new();
    assert!(
        table
            .acquire(1, TAG, LockMode::AccessShare, false)
            .is_none()
    );
    let patient = table.acquire(2, TAG, LockMode::AccessExclusive, true);
    let patient = patient.expect("1 has it");
    assert!(
        table
            .acquire(3, TAG, LockMode::RowExclusive, false)
            .is_none(),
        "3 goes past 2"
    );
    table.release(1, TAG, LockMode::AccessShare.bit());
    assert!(!patient.is_granted());
    let late = table.acquire(4, TAG, LockMode::AccessExclusive, false);
    let late = late.expect("3 has it");
    table.release(3, TAG, LockMode::RowExclusive.bit());
    assert!(
        patient.is_granted() && !late.is_granted(),
        "2 came before 4"
    );
    table.release(2, TAG, LockMode::AccessExclusive.bit());
    assert!(late.is_granted());
}
