//! Who holds SIREAD locks on one thing.

use super::{Id, Seq};

/// A few transactions by number, and the last commit among those that are not told apart any more
/// (0: there are none).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holders {
    /// Ascending.
    ids: Vec<Id>,
    old: Seq,
}

impl Holders {
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.old == 0
    }
    pub fn ids(&self) -> &[Id] {
        &self.ids
    }
    pub fn old(&self) -> Seq {
        self.old
    }
    /// Whether anybody but `me` is among them.
    pub fn has_others(&self, me: Id) -> bool {
        self.old != 0 || self.ids.iter().any(|id| *id != me)
    }
    pub fn add(&mut self, id: Id) {
        if let Err(at) = self.ids.binary_search(&id) {
            self.ids.insert(at, id);
        }
    }
    pub fn add_all(&mut self, others: &Holders) {
        others.ids.iter().for_each(|id| self.add(*id));
        self.old = self.old.max(others.old);
    }
    pub fn remove(&mut self, id: Id) {
        if let Ok(at) = self.ids.binary_search(&id) {
            self.ids.remove(at);
        }
    }
    /// `id`, which committed at `seq`, is not told apart from now on.
    pub fn summarise(&mut self, id: Id, seq: Seq) {
        self.remove(id);
        self.add_old(seq);
    }
    pub fn add_old(&mut self, seq: Seq) {
        self.old = self.old.max(seq);
    }
    pub fn forget_old(&mut self, through: Seq) {
        if self.old <= through {
            self.old = 0;
        }
    }
}
