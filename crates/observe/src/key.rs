//! An event and its object in two words.
//!
//! ```text
//! first    63 … 56   55 … 48      47 … 40       39 … 32   31 … 0
//!         | event+1 | background | object kind |    0    | scope |     0: nothing
//! second  | the object's number                                  |
//! ```

use crate::event::WaitEvent;
use crate::object::{Object, ObjectKind};

/// What a wait is counted under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) event: WaitEvent,
    /// Waited for by a background thread rather than for a session.
    pub(crate) background: bool,
    pub(crate) object: Object,
}

const _: () = assert!(
    WaitEvent::COUNT < 255,
    "an event's number and one more fit a byte"
);

impl Key {
    pub(crate) fn to_words(self) -> [u64; 2] {
        let event = (self.event as u64 + 1) << 56;
        let background = u64::from(self.background) << 48;
        let kind = (self.object.kind as u64) << 40;
        [
            event | background | kind | u64::from(self.object.scope),
            self.object.number,
        ]
    }

    pub(crate) fn from_words(words: [u64; 2]) -> Option<Key> {
        let event = (words[0] >> 56).checked_sub(1)?;
        Some(Key {
            event: *WaitEvent::ALL.get(event as usize)?,
            background: words[0] >> 48 & 1 != 0,
            object: Object::new(
                ObjectKind::from_raw((words[0] >> 40) as u8),
                words[0] as u32,
                words[1],
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_back() {
        assert_eq!(Key::from_words([0, 5]), None);
        for &event in WaitEvent::ALL {
            for background in [false, true] {
                let object = Object::tuple(u32::MAX, u64::MAX - event as u64);
                let key = Key {
                    event,
                    background,
                    object,
                };
                assert_eq!(Key::from_words(key.to_words()), Some(key));
            }
        }
    }
}
