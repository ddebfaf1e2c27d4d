//! Latches whose waits are seen.

use crate::event::WaitEvent;
use crate::wait::waiting;
use throng_sync::Latch;

/// Entering a latch with its object's name: nothing is recorded, and no clock read, unless it has to wait.
pub trait LatchExt {
    /// [`Latch::shared`], recording a wait as [`WaitEvent::LatchShared`] on `object`.
    fn shared_seen(&self, object: u64);
    /// [`Latch::exclusive`], recording a wait as [`WaitEvent::LatchExclusive`] on `object`.
    fn exclusive_seen(&self, object: u64);
}

impl LatchExt for Latch {
    #[inline]
    fn shared_seen(&self, object: u64) {
        if !self.try_shared() {
            wait_shared(self, object);
        }
    }
    #[inline]
    fn exclusive_seen(&self, object: u64) {
        if !self.try_exclusive() {
            wait_exclusive(self, object);
        }
    }
}

#[cold]
fn wait_shared(latch: &Latch, object: u64) {
    let _waiting = waiting(WaitEvent::LatchShared, object);
    latch.shared();
}

#[cold]
fn wait_exclusive(latch: &Latch, object: u64) {
    let _waiting = waiting(WaitEvent::LatchExclusive, object);
    latch.exclusive();
}
