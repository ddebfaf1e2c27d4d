//! Vectors whose room a thread's sessions take turns with: the one given back last is taken first,
//! and still in the core's cache.

use std::cell::RefCell;

/// At most `most` of them are kept, each with room for at most `largest` elements.
pub struct VectorPool<T> {
    kept: RefCell<Vec<Vec<T>>>,
    most: usize,
    largest: usize,
}

impl<T> VectorPool<T> {
    pub const fn new(most: usize, largest: usize) -> VectorPool<T> {
        VectorPool {
            kept: RefCell::new(Vec::new()),
            most,
            largest,
        }
    }

    /// One without content.
    pub fn take(&self) -> Vec<T> {
        self.kept.borrow_mut().pop().unwrap_or_default()
    }

    /// Its content goes.
    pub fn give_back(&self, mut room: Vec<T>) {
        // Before the others are looked at: what it holds may give back rooms of its own.
        room.clear();
        let mut kept = self.kept.borrow_mut();
        if kept.len() < self.most && (1..=self.largest).contains(&room.capacity()) {
            kept.push(room);
        }
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_is_the_next_and_no_more_are_kept_than_said() {
        let rooms = VectorPool::new(2, 100);
        assert_eq!(rooms.take().capacity(), 0);
        let with = |room: usize| {
            let mut vector = Vec::with_capacity(room);
            vector.push(1_u8);
            vector
        };
        for room in [0, 10, 101, 20, 30] {
            rooms.give_back(with(room));
        }
        let (first, second) = (rooms.take(), rooms.take());
        assert_eq!((first.len(), second.len()), (0, 0));
        assert!(first.capacity() >= 10 && second.capacity() >= 1);
        assert_eq!(rooms.take().capacity(), 0);
    }
}
