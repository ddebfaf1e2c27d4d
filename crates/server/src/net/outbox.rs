//! Replies of sessions that are ready together leave together.
//!
//! ```text
//!   turn of a loop:  session 1 ─► session 2 ─► session 3 ─► sender
//!                       │ posts      │ posts      │ posts      └─ writes all three
//! ```
//! Who reads for many connections is then woken once and finds all replies, where else each one
//! wakes him for itself. The sender is a task of the loop like the sessions: the first reply of a
//! turn wakes it, so it runs when those that were ready then have run. Several leave by [one
//! call](super::ring) where the kernel lets them.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use throng_sync::{VectorPool, WakerSlot};

use super::plain::PlainSocket;
use super::ring::Ring;

/// Buffers kept for the next replies; one that has grown past [`LARGEST_KEPT`] is given back.
const MOST_KEPT: usize = 64;
const LARGEST_KEPT: usize = 16 << 10;

/// What a loop's sessions have to send at the end of its turn.
pub struct Outbox {
    sockets: RefCell<Vec<Rc<PlainSocket>>>,
    /// None where each reply takes a call of its own.
    ring: RefCell<Option<Ring>>,
    buffers: VectorPool<u8>,
    sender: WakerSlot,
}

impl Outbox {
    /// For the calling thread's loop.
    pub fn new(ring: Option<Ring>) -> Outbox {
        Outbox {
            sockets: RefCell::default(),
            ring: RefCell::new(ring),
            buffers: VectorPool::new(MOST_KEPT, LARGEST_KEPT),
            sender: WakerSlot::new(),
        }
    }

    pub fn add(&self, socket: Rc<PlainSocket>) {
        let mut sockets = self.sockets.borrow_mut();
        if sockets.is_empty() {
            self.sender.wake();
        }
        sockets.push(socket);
    }

    /// A buffer without content.
    pub fn buffer(&self) -> Vec<u8> {
        self.buffers.take()
    }

    /// The sender: to be run by a task of the loop, for ever.
    pub async fn send(&self) {
        poll_fn(|cx| {
            self.sender.register(cx.waker());
            self.leave();
            Poll::Pending
        })
        .await
    }

    /// Sends what is there.
    pub fn leave(&self) {
        let mut sockets = self.sockets.take();
        if sockets.len() > 1 {
            self.leave_together(&sockets);
        }
        // What was not sent yet goes by calls of its own.
        for socket in sockets.drain(..) {
            if let Some(buffer) = socket.leave() {
                self.buffers.give_back(buffer);
            }
        }
        // Nobody has posted meanwhile: the list's room is kept.
        *self.sockets.borrow_mut() = sockets;
    }

    fn leave_together(&self, sockets: &[Rc<PlainSocket>]) {
        let mut ring = self.ring.borrow_mut();
        let Some(able) = ring.as_mut() else { return };
        if let Err(e) = able.send(sockets) {
            tracing::warn!(error = %e, "io_uring takes no more: from now on each reply leaves by a call of its own");
            *ring = None;
        }
    }
}
