//! Values of many parts are thrown away beside the event loops: some nanoseconds for each part add
//! up.

use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};

use crate::interrupt;

/// Items that are thrown away in about a millisecond.
pub(crate) const MANY: usize = 256 << 10;

/// Things that may wait to be thrown away: their memory is not free before.
const WAITING: usize = 4;

type Thing = Box<dyn Send>;

/// Drops a thing of many parts, on a thread of its own where others wait for this one.
#[cold]
pub fn dispose(thing: impl Send + 'static) {
    if !interrupt::is_shared() {
        return;
    }
    static DISPOSER: OnceLock<Option<SyncSender<Thing>>> = OnceLock::new();
    let disposer = DISPOSER.get_or_init(|| {
        let (give, given) = sync_channel::<Thing>(WAITING);
        let thread = std::thread::Builder::new().name("dispose".into());
        thread.spawn(move || given.iter().for_each(drop)).ok()?;
        Some(give)
    });
    if let Some(disposer) = disposer {
        // Where it has too much to do already, the thing comes back and is dropped here.
        let _ = disposer.try_send(Box::new(thing));
    }
}
