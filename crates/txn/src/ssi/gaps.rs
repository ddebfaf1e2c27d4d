//! Which stretches of an index's keys have been read, and by whom.
//!
//! ```text
//!   keys      a        f        m        t
//!   reader 1  ├─────────────────┤
//!   reader 2           ├─────────────────┤
//!   kept as   a: {1}   f: {1 2} m: {2}   t: {}
//! ```
//!
//! The key space is cut wherever a stretch begins or ends; each piece has the readers of all of it.
//! So whoever is about to put a key into the index finds its readers with one look-up, however the
//! pages of the index are cut. A stretch goes from a key up to another, which is not in it; `None`
//! stands above every key.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::holders::Holders;
use super::{Id, Seq};

/// A stretch of keys: from the first up to the second, which is not in it.
pub(crate) type Gap = (Vec<u8>, Option<Vec<u8>>);

#[derive(Default)]
pub(super) struct Gaps {
    /// From each key up to the next one; nobody has read what is below the first.
    pieces: BTreeMap<Vec<u8>, Holders>,
}

impl Gaps {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    pub fn add(&mut self, (start, end): &Gap, id: Id) {
        self.change(start, end.as_deref(), |holders| holders.add(id));
    }

    pub fn remove(&mut self, (start, end): &Gap, id: Id) {
        self.change(start, end.as_deref(), |holders| holders.remove(id));
        self.join(start, end.as_deref());
    }

    /// What `id` has read was read by somebody who committed at `seq`.
    pub fn summarise(&mut self, (start, end): &Gap, id: Id, seq: Seq) {
        self.change(start, end.as_deref(), |holders| holders.summarise(id, seq));
        self.join(start, end.as_deref());
    }

    /// Forgets the summarised readers up to `through`.
    pub fn forget_old(&mut self, through: Seq) {
        for holders in self.pieces.values_mut() {
            holders.forget_old(through);
        }
        self.join(&[], None);
    }

    /// All who have read a part of what lies from `start` up to `end`.
    pub fn overlapping(&self, start: &[u8], end: Option<&[u8]>, found: &mut Holders) {
        if is_empty(start, end) {
            return;
        }
        let before = self
            .pieces
            .range::<[u8], _>((Bound::Unbounded, Bound::Included(start)))
            .next_back();
        let within = self
            .pieces
            .range::<[u8], _>((Bound::Excluded(start), upper(end)));
        for (_, holders) in before.into_iter().chain(within) {
            found.add_all(holders);
        }
    }

    pub fn all(&self, found: &mut Holders) {
        for holders in self.pieces.values() {
            found.add_all(holders);
        }
    }

    fn change(&mut self, start: &[u8], end: Option<&[u8]>, mut to: impl FnMut(&mut Holders)) {
        if is_empty(start, end) {
            return;
        }
        self.cut(start);
        if let Some(end) = end {
            self.cut(end);
        }
        let pieces = self
            .pieces
            .range_mut::<[u8], _>((Bound::Included(start), upper(end)));
        for (_, holders) in pieces {
            to(holders);
        }
    }

    /// Makes a piece begin at `key`.
    fn cut(&mut self, key: &[u8]) {
        if self.pieces.contains_key(key) {
            return;
        }
        let before = self
            .pieces
            .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key)))
            .next_back();
        let holders = before.map_or_else(Holders::default, |(_, holders)| holders.clone());
        self.pieces.insert(key.to_vec(), holders);
    }

    /// Joins neighbours from `start` to `end` that have the same readers.
    fn join(&mut self, start: &[u8], end: Option<&[u8]>) {
        if is_empty(start, end) {
            return;
        }
        let mut before = self
            .pieces
            .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(start)))
            .next_back()
            .map_or_else(Holders::default, |(_, holders)| holders.clone());
        let upper = end.map_or(Bound::Unbounded, Bound::Included);
        let mut joined = Vec::new();
        for (key, holders) in self
            .pieces
            .range::<[u8], _>((Bound::Included(start), upper))
        {
            if *holders == before {
                joined.push(key.clone());
            } else {
                before = holders.clone();
            }
        }
        for key in joined {
            self.pieces.remove(&key);
        }
    }
}

fn is_empty(start: &[u8], end: Option<&[u8]>) -> bool {
    end.is_some_and(|end| end <= start)
}

fn upper(end: Option<&[u8]>) -> Bound<&[u8]> {
    end.map_or(Bound::Unbounded, Bound::Excluded)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn readers(gaps: &Gaps, key: u8) -> Vec<Id> {
        let mut found = Holders::default();
        gaps.overlapping(&[key], Some(&[key, 0]), &mut found);
        let mut ids = found.ids().to_vec();
        ids.sort_unstable();
        ids
    }

    proptest! {
        #[test]
        fn a_key_has_the_readers_of_all_stretches_it_lies_in(
            stretches in prop::collection::vec((0u8..20, 0u8..22, any::<bool>()), 0..12),
        ) {
            let mut gaps = Gaps::default();
            let mut model: Vec<(Gap, Id)> = Vec::new();
            for (id, (start, end, stays)) in stretches.into_iter().enumerate() {
                let gap: Gap = (vec![start], (end < 21).then(|| vec![end]));
                gaps.add(&gap, id as Id);
                if stays {
                    model.push((gap, id as Id));
                } else {
                    gaps.remove(&gap, id as Id);
                }
                for key in 0..22u8 {
                    let expected: Vec<Id> = model
                        .iter()
                        .filter(|((start, end), _)| {
                            start[0] <= key && end.as_ref().is_none_or(|end| key < end[0])
                        })
                        .map(|(_, id)| *id)
                        .collect();
                    prop_assert_eq!(readers(&gaps, key), expected);
                }
            }
            for (gap, id) in model {
                gaps.remove(&gap, id);
            }
            prop_assert!(gaps.is_empty());
        }
    }

    #[test]
    fn summarised_readers_stay_until_nobody_overlaps_them() {
        let mut gaps = Gaps::default();
        let gap = (vec![1], Some(vec![5]));
        gaps.add(&gap, 7);
        gaps.summarise(&gap, 7, 40);
        let mut found = Holders::default();
        gaps.overlapping(&[3], Some(&[4]), &mut found);
        assert_eq!((found.ids(), found.old()), (&[][..], 40));
        gaps.forget_old(39);
        assert!(!gaps.is_empty());
        gaps.forget_old(40);
        assert!(gaps.is_empty());
    }
}
