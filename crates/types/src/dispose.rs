//! Values of many items are thrown away beside the event loops: some nanoseconds for each item add
//! up.

use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};

use crate::{Datum, interrupt};

/// Items that are thrown away in about a millisecond.
pub(crate) const MANY: usize = 256 << 10;

/// Values that may wait to be thrown away: their memory is not free before.
const WAITING: usize = 4;

/// Drops the items, on a thread of its own where others wait for this one.
#[cold]
pub(crate) fn dispose(items: Vec<Datum>) {
    if !interrupt::is_shared() {
        return;
    }
    static DISPOSER: OnceLock<Option<SyncSender<Vec<Datum>>>> = OnceLock::new();
    let disposer = DISPOSER.get_or_init(|| {
        let (give, given) = sync_channel::<Vec<Datum>>(WAITING);
        let thread = std::thread::Builder::new().name("dispose".into());
        thread.spawn(move || given.iter().for_each(drop)).ok()?;
        Some(give)
    });
    if let Some(disposer) = disposer {
        // Where it has too much to do already, they come back and are dropped here.
        let _ = disposer.try_send(items);
    }
}
