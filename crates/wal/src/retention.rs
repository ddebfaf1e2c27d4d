//! Who still needs the log: a checkpoint gives back what lies before its redo point, but for what
//! somebody holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use throng_sync::lock::Mutex;
use throng_types::Lsn;

/// The positions from which on holders need the log.
#[derive(Default)]
pub(crate) struct Retention(Mutex<Holds>);

#[derive(Default)]
struct Holds {
    next: u64,
    from: BTreeMap<u64, Lsn>,
}

impl Retention {
    /// Recycles what lies before the least position that somebody needs, `lsn` at most. Who begins
    /// to hold some of it meanwhile waits.
    pub fn recycle<T>(&self, lsn: Lsn, recycle: impl FnOnce(Lsn) -> T) -> T {
        let holds = self.0.lock();
        recycle(holds.from.values().copied().fold(lsn, Lsn::min))
    }
}

/// The log is kept from a position on, as long as this is there.
pub struct WalHold {
    of: Arc<Retention>,
    number: u64,
}

impl WalHold {
    pub(crate) fn new(of: &Arc<Retention>, from: Lsn) -> WalHold {
        let mut holds = of.0.lock();
        holds.next += 1;
        let number = holds.next;
        holds.from.insert(number, from);
        WalHold {
            of: of.clone(),
            number,
        }
    }

    /// From here on it is needed, and no more of what lies before.
    pub fn advance(&self, to: Lsn) {
        if let Some(from) = self.of.0.lock().from.get_mut(&self.number) {
            *from = (*from).max(to);
        }
    }

    pub fn from(&self) -> Lsn {
        let holds = self.of.0.lock();
        holds.from.get(&self.number).copied().unwrap_or(Lsn::MAX)
    }
}

impl Drop for WalHold {
    fn drop(&mut self) {
        self.of.0.lock().from.remove(&self.number);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_least_hold_counts() {
        let retention = Arc::new(Retention::default());
        let least = |lsn| retention.recycle(lsn, |least| least);
        assert_eq!(least(Lsn(50)), Lsn(50));
        let (one, other) = (
            WalHold::new(&retention, Lsn(10)),
            WalHold::new(&retention, Lsn(20)),
        );
        assert_eq!(least(Lsn(50)), Lsn(10));
        one.advance(Lsn(30));
        one.advance(Lsn(5));
        assert_eq!((one.from(), least(Lsn(50))), (Lsn(30), Lsn(20)));
        drop(other);
        assert_eq!(least(Lsn(50)), Lsn(30));
        drop(one);
        assert_eq!(least(Lsn(50)), Lsn(50));
    }
}
