//! Recording a wait that is over, on the calling thread.

use crate::event::WaitEvent;
use crate::histogram::add;
use crate::key::Key;
use crate::object::{Holder, Object};
use crate::slots;
use std::sync::atomic::Ordering;

/// Records a wait of `nanos` for `event` on `object`, on the calling thread.
#[inline]
pub fn record_wait(event: WaitEvent, object: impl Into<Object>, nanos: u64) {
    record_held(event, object.into(), nanos, Holder::NONE);
}

/// As [`record_wait`], for something that `holder` had.
#[inline]
pub(crate) fn record_held(event: WaitEvent, object: Object, nanos: u64, holder: Holder) {
    if !slots::is_tracking() {
        return;
    }
    let slot = slots::mine_current();
    let background = slot.is_background();
    let cell = &slot.waits[usize::from(background)][event as usize];
    add(&cell.nanos, nanos);
    cell.histogram.record(nanos);
    if nanos > cell.longest.load(Ordering::Relaxed) {
        cell.longest.store(nanos, Ordering::Relaxed);
    }
    if event.has_objects() {
        let object = if event.is_of_single_pages() {
            object
        } else {
            object.gathered()
        };
        let key = Key {
            event,
            background,
            object,
        };
        slot.objects.record(key, nanos, holder);
    }
}
