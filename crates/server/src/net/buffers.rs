//! Room for bytes that a loop's sessions take turns with: what was given back last is taken first, and still in the core's cache.

use std::cell::RefCell;

pub struct Buffers {
    kept: RefCell<Vec<Vec<u8>>>,
    most: usize,
    largest: usize,
}

thread_local! {
    /// For what was read and is looked at: given back before its session waits for more.
    pub static READ: Buffers = const { Buffers::new(8, 64 << 10) };
}

impl Buffers {
    /// Keeps `most` buffers, none of more than `largest` bytes.
    pub const fn new(most: usize, largest: usize) -> Buffers {
        Buffers {
            kept: RefCell::new(Vec::new()),
            most,
            largest,
        }
    }

    /// A buffer without content.
    pub fn take(&self) -> Vec<u8> {
        self.kept.borrow_mut().pop().unwrap_or_default()
    }

    /// Its content goes.
    pub fn give_back(&self, mut buffer: Vec<u8>) {
        let mut kept = self.kept.borrow_mut();
        if kept.len() < self.most && (1..=self.largest).contains(&buffer.capacity()) {
            buffer.clear();
            kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_is_the_next_and_no_more_are_kept_than_said() {
        let buffers = Buffers::new(2, 100);
        assert_eq!(buffers.take().capacity(), 0);
        let with = |room: usize| {
            let mut buffer = Vec::with_capacity(room);
            buffer.push(1);
            buffer
        };
        for room in [0, 10, 101, 20, 30] {
            buffers.give_back(with(room));
        }
        let (first, second) = (buffers.take(), buffers.take());
        assert_eq!((first.len(), second.len()), (0, 0));
        assert!(first.capacity() >= 10 && second.capacity() >= 1);
        assert_eq!(buffers.take().capacity(), 0);
    }
}
