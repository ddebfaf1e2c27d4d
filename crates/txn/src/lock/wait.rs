//! What a session waits for: a place in a queue.

use throng_sync::atomic::{AtomicBool, Ordering};

use throng_observe::{Object, WaitEvent};
use throng_sync::WakerSlot;
use throng_types::{FileId, Tid, Xid};

use super::{LockMode, LockTag, ModeMask};
use crate::timer::now_micros;

/// A place in a queue.
pub(crate) struct WaitNode {
    pub(crate) pid: u32,
    pub(crate) mode: LockMode,
    /// When the wait began, in microseconds since 1970.
    pub(crate) since: i64,
    /// Its session holds the lock already and asks for more of it.
    pub(crate) asks_for_more: bool,
    /// Who comes later need not wait for it.
    pub(crate) lets_past: bool,
    granted: AtomicBool,
    pub(crate) waker: WakerSlot,
}

impl WaitNode {
    pub(crate) fn new(pid: u32, mode: LockMode) -> WaitNode {
        WaitNode {
            pid,
            mode,
            since: now_micros(),
            asks_for_more: false,
            lets_past: false,
            granted: AtomicBool::new(false),
            waker: WakerSlot::new(),
        }
    }

    /// The same, for a session that holds the lock already or not.
    pub(crate) fn of_holder(self, holds: bool) -> WaitNode {
        WaitNode {
            asks_for_more: holds,
            ..self
        }
    }

    pub(crate) fn letting_past(self, lets_past: bool) -> WaitNode {
        WaitNode { lets_past, ..self }
    }

    /// The mode that those behind it in the queue have to mind.
    pub(crate) fn in_the_way(&self) -> ModeMask {
        match self.lets_past {
            true => 0,
            false => self.mode.bit(),
        }
    }

    /// Said with the queue's lock held; [`WaitNode::wake`] follows once it is free.
    pub(crate) fn grant(&self) {
        // Release: what the one who grants did before is seen by the one who waited.
        self.granted.store(true, Ordering::Release);
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    pub(crate) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }
}

/// What a session waits for, as others see it.
#[derive(Clone)]
pub(crate) enum WaitOn {
    Lock {
        tag: LockTag,
        node: std::sync::Arc<WaitNode>,
    },
    /// That those who hold it let go, not the lock itself.
    Holders {
        tag: LockTag,
        node: std::sync::Arc<WaitNode>,
    },
    Xid {
        xid: Xid,
        node: std::sync::Arc<WaitNode>,
        /// The row because of which it matters: its file and its chain's root.
        row: Option<(FileId, Tid)>,
    },
}

impl WaitOn {
    pub(crate) fn node(&self) -> &std::sync::Arc<WaitNode> {
        match self {
            WaitOn::Lock { node, .. } | WaitOn::Holders { node, .. } | WaitOn::Xid { node, .. } => {
                node
            }
        }
    }

    /// A transaction is waited for because of a row: that is what it is counted under, where it is
    /// known.
    pub(crate) fn event(&self) -> (WaitEvent, Object) {
        match *self {
            WaitOn::Lock { tag, .. } | WaitOn::Holders { tag, .. } => match tag {
                LockTag::Relation(oid) => (WaitEvent::LockRelation, Object::relation(oid.0)),
                LockTag::Object { class, object } => {
                    (WaitEvent::LockObject, Object::catalog(class.0, object.0))
                }
                LockTag::Tuple { file, tid } => {
                    (WaitEvent::LockTuple, Object::tuple(file.0, tid.to_u64()))
                }
                LockTag::Advisory { key, .. } => (WaitEvent::LockAdvisory, Object::advisory(key)),
                LockTag::AdvisoryPair { keys: (a, b), .. } => {
                    (WaitEvent::LockAdvisory, Object::advisory_pair(a, b))
                }
                LockTag::Transaction(xid) => {
                    (WaitEvent::LockTransaction, Object::transaction(xid.0))
                }
            },
            WaitOn::Xid {
                row: Some((file, tid)),
                ..
            } => (
                WaitEvent::LockTransaction,
                Object::tuple(file.0, tid.to_u64()),
            ),
            WaitOn::Xid { xid, row: None, .. } => {
                (WaitEvent::LockTransaction, Object::transaction(xid.0))
            }
        }
    }
}
