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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::snapshot;

    #[test]
    fn only_a_latch_that_has_to_be_waited_for_is_recorded() {
        let recorded = |event| {
            snapshot()
                .iter()
                .find(|totals| totals.event == event)
                .map_or(0, |totals| totals.count)
        };
        let latch = Latch::new();
        latch.shared_seen(1);
        latch.unlock_shared();
        latch.exclusive_seen(1);
        assert_eq!(recorded(WaitEvent::LatchShared), 0);
        assert_eq!(recorded(WaitEvent::LatchExclusive), 0);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                latch.shared_seen(2);
                latch.unlock_shared();
            });
            // Held until the other has been seen trying, or surely will find it held.
            while !latch.is_wanted() {
                std::thread::yield_now();
            }
            latch.unlock_exclusive();
            reader.join().unwrap();
        });
        assert_eq!(recorded(WaitEvent::LatchShared), 1);
    }
}
