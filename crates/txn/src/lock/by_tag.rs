//! What there is by lock: few entries most of the time, many at some.
//!
//! A point read locks one relation, and each read does: a few entries are looked at one after the
//! other, which is less work than hashing. Past [`FEW`] an index by hash is kept beside them.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

use foldhash::fast::RandomState;

use super::LockTag;

/// Up to so many entries are looked at one after the other.
const FEW: usize = 8;

/// Entries by tag. An entry's place is good until one is removed.
pub(crate) struct ByTag<T> {
    entries: Vec<(LockTag, T)>,
    /// Every entry's place, or nothing while there were never more than a few.
    places: HashMap<LockTag, usize, RandomState>,
}

impl<T> Default for ByTag<T> {
    fn default() -> ByTag<T> {
        ByTag {
            entries: Vec::new(),
            places: HashMap::default(),
        }
    }
}

impl<T: Default> ByTag<T> {
    #[inline]
    pub(crate) fn find(&self, tag: LockTag) -> Option<usize> {
        if self.places.is_empty() {
            self.entries.iter().position(|entry| entry.0 == tag)
        } else {
            self.places.get(&tag).copied()
        }
    }

    /// Adds an entry for a tag that has none.
    pub(crate) fn add(&mut self, tag: LockTag) -> usize {
        let at = self.entries.len();
        self.entries.push((tag, T::default()));
        if !self.places.is_empty() {
            self.places.insert(tag, at);
        } else if at == FEW {
            let tags = self.entries.iter().map(|entry| entry.0);
            self.places.extend(tags.zip(0..));
        }
        at
    }

    pub(crate) fn find_or_add(&mut self, tag: LockTag) -> usize {
        self.find(tag).unwrap_or_else(|| self.add(tag))
    }

    /// The last entry takes its place.
    pub(crate) fn remove(&mut self, at: usize) {
        let (tag, _) = self.entries.swap_remove(at);
        if !self.places.is_empty() {
            self.places.remove(&tag);
            if let Some(moved) = self.entries.get(at) {
                self.places.insert(moved.0, at);
            }
        }
    }

    pub(crate) fn tags(&self) -> impl Iterator<Item = LockTag> {
        self.entries.iter().map(|entry| entry.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<T> Index<usize> for ByTag<T> {
    type Output = T;
    fn index(&self, at: usize) -> &T {
        &self.entries[at].1
    }
}

impl<T> IndexMut<usize> for ByTag<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.entries[at].1
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use throng_types::Oid;

    proptest! {
        /// Against a map, growing past a few and back: what is put at a tag is found there.
        #[test]
        fn a_map(ops in prop::collection::vec((0..24u32, 0..3u32), 1..200)) {
            let mut entries = ByTag::<u32>::default();
            let mut model = BTreeMap::new();
            for (step, (number, op)) in (1..).zip(ops) {
                let tag = LockTag::Relation(Oid(number));
                if op == 0 {
                    let at = entries.find(tag);
                    prop_assert_eq!(at.map(|at| entries[at]), model.remove(&number));
                    if let Some(at) = at {
                        entries.remove(at);
                    }
                } else {
                    let at = entries.find_or_add(tag);
                    entries[at] = step;
                    model.insert(number, step);
                }
                prop_assert_eq!(entries.is_empty(), model.is_empty());
                let mut tags: Vec<LockTag> = entries.tags().collect();
                tags.sort_by_key(|tag| format!("{tag:?}"));
                let mut expected: Vec<LockTag> = model.keys().map(|&n| LockTag::Relation(Oid(n))).collect();
                expected.sort_by_key(|tag| format!("{tag:?}"));
                prop_assert_eq!(tags, expected);
                for (&number, &value) in &model {
                    let at = entries.find(LockTag::Relation(Oid(number)));
                    prop_assert_eq!(at.map(|at| entries[at]), Some(value));
                }
            }
        }
    }
}
