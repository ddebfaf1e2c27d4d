//! Latches whose waits are seen, with who held them.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::event::WaitEvent;
use crate::object::{Holder, Object};
use crate::slots;
use crate::wait::blocking;
use throng_sync::{Latch, thread_index};

/// Who last had a latch exclusively: for the reports of those who wait for it.
///
/// Written by the one who enters, right after, so on a line that this core owns already if the cell
/// lies beside the latch. Not cleared by the one who leaves.
#[derive(Debug, Default)]
pub struct HolderCell(AtomicU32);

impl HolderCell {
    pub const fn new() -> HolderCell {
        HolderCell(AtomicU32::new(0))
    }

    /// The calling thread has it now.
    #[inline]
    pub fn note(&self) {
        // Relaxed: a report's hint. MAX_THREADS fits.
        self.0.store(thread_index() as u32 + 1, Ordering::Relaxed);
    }

    /// Who runs on the thread that noted itself last, if it is another.
    pub fn holder(&self) -> Holder {
        match self.0.load(Ordering::Relaxed).checked_sub(1) {
            Some(index) if index as usize != thread_index() => slots::who_runs_on(index as usize),
            _ => Holder::NONE,
        }
    }
}

/// Entering a latch with its object's name: nothing is recorded, and no clock read, unless it has
/// to wait.
pub trait LatchExt {
    /// [`Latch::shared`], recording a wait as [`WaitEvent::LatchShared`] on `object`.
    fn shared_seen(&self, object: Object, holder: &HolderCell);
    /// [`Latch::exclusive`], recording a wait as [`WaitEvent::LatchExclusive`] on `object`. The
    /// caller, who knows whether it keeps the latch, notes itself as the holder.
    fn exclusive_seen(&self, object: Object, holder: &HolderCell);
}

impl LatchExt for Latch {
    #[inline]
    fn shared_seen(&self, object: Object, holder: &HolderCell) {
        if !self.try_shared() {
            wait_shared(self, object, holder);
        }
    }
    #[inline]
    fn exclusive_seen(&self, object: Object, holder: &HolderCell) {
        if !self.try_exclusive() {
            wait_exclusive(self, object, holder);
        }
    }
}

/// Nobody in particular while it is shared: whoever had it exclusively has gone.
fn holder_now(latch: &Latch, holder: &HolderCell) -> Holder {
    match latch.is_exclusive() {
        true => holder.holder(),
        false => Holder::NONE,
    }
}

#[cold]
fn wait_shared(latch: &Latch, object: Object, holder: &HolderCell) {
    let _waiting = blocking(WaitEvent::LatchShared, object).held_by(holder_now(latch, holder));
    latch.shared();
}

#[cold]
fn wait_exclusive(latch: &Latch, object: Object, holder: &HolderCell) {
    let _waiting = blocking(WaitEvent::LatchExclusive, object).held_by(holder_now(latch, holder));
    latch.exclusive();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::{WaitRow, waits};

    #[test]
    fn only_a_latch_that_has_to_be_waited_for_is_recorded() {
        let recorded = |object| -> Vec<WaitRow> {
            waits().into_iter().filter(|w| w.object == object).collect()
        };
        let (free, held) = (Object::page(0x91_0000_0001), Object::page(0x91_0000_0002));
        let (latch, cell) = (Latch::new(), HolderCell::new());
        latch.shared_seen(free, &cell);
        latch.unlock_shared();
        latch.exclusive_seen(free, &cell);
        cell.note();
        assert!(recorded(free).is_empty());
        assert_eq!(cell.holder(), Holder::NONE, "oneself is nobody to wait for");
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                latch.shared_seen(held, &cell);
                latch.unlock_shared();
            });
            // Held until the other has been seen trying, or surely will find it held.
            while !latch.is_wanted() {
                std::thread::yield_now();
            }
            latch.unlock_exclusive();
            reader.join().unwrap();
        });
        let rows = recorded(held);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].event, rows[0].count), (WaitEvent::LatchShared, 1));
        assert_eq!(rows[0].holder.thread_index(), Some(thread_index()));
    }
}
