//! The wait that goes on now.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::event::WaitEvent;
use crate::key::Key;
use crate::object::{Holder, Object};

/// A wait that is not over yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresentWait {
    pub event: WaitEvent,
    pub object: Object,
    /// On the clock of [`now_nanos`](crate::now_nanos); 0 while waits are not tracked.
    pub since: u64,
    pub holder: Holder,
}

/// Where one thread, or one session's task, says what it waits for. Plain stores by it, read by any
/// thread.
///
/// The numbers belong together, so they have a sequence number that is odd while they change, as in
/// [`table`](crate::table).
pub(crate) struct Present {
    sequence: AtomicU64,
    /// Zero: nothing.
    key: [AtomicU64; 2],
    since: AtomicU64,
    holder: AtomicU64,
}

impl Present {
    pub(crate) const fn new() -> Present {
        Present {
            sequence: AtomicU64::new(0),
            key: [const { AtomicU64::new(0) }; 2],
            since: AtomicU64::new(0),
            holder: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn set(&self, wait: PresentWait) {
        let key = Key {
            event: wait.event,
            background: false,
            object: wait.object,
        };
        let before = self.sequence.load(Ordering::Relaxed);
        self.sequence
            .store(before.wrapping_add(1), Ordering::Relaxed);
        // Release: whoever sees any of what follows sees the odd number as well.
        fence(Ordering::Release);
        for (place, word) in self.key.iter().zip(key.to_words()) {
            place.store(word, Ordering::Relaxed);
        }
        self.since.store(wait.since, Ordering::Relaxed);
        self.holder.store(wait.holder.raw(), Ordering::Relaxed);
        self.sequence
            .store(before.wrapping_add(2), Ordering::Release);
    }

    #[inline]
    pub(crate) fn clear(&self) {
        // One word that says "nothing": no reader can take that for half of something.
        self.key[0].store(0, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<PresentWait> {
        /// Changes are as rare as waits: more than one between two looks is unlikely, and then
        /// nothing is lost but this row.
        const LOOKS: usize = 100;
        (0..LOOKS)
            .find_map(|_| {
                // Acquire: what is read next is not older than this number.
                let before = self.sequence.load(Ordering::Acquire);
                let words = [0, 1].map(|i: usize| self.key[i].load(Ordering::Relaxed));
                let since = self.since.load(Ordering::Relaxed);
                let holder = Holder::from_raw(self.holder.load(Ordering::Relaxed));
                // Acquire: nor newer than the next.
                fence(Ordering::Acquire);
                let whole =
                    before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before;
                whole.then_some((words, since, holder))
            })
            .and_then(|(words, since, holder)| {
                let key = Key::from_words(words)?;
                Some(PresentWait {
                    event: key.event,
                    object: key.object,
                    since,
                    holder,
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_waited_for_until_it_is_over() {
        let present = Present::new();
        assert_eq!(present.get(), None);
        let wait = PresentWait {
            event: WaitEvent::LockTuple,
            object: Object::tuple(3, 4),
            since: 5,
            holder: Holder::session(6),
        };
        present.set(wait);
        assert_eq!(present.get(), Some(wait));
        present.clear();
        assert_eq!(present.get(), None);
    }
}
