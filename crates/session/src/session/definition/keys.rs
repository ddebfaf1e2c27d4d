//! Index keys gathered for sorting.

use throng_types::Tid;

/// Index keys gathered for sorting: their bytes in one arena.
#[derive(Default)]
pub(in crate::session) struct Keys {
    arena: Vec<u8>,
    entries: Vec<KeyAt>,
}

#[derive(Clone, Copy)]
struct KeyAt {
    start: u64,
    len: u16,
    any_null: bool,
    tid: Tid,
}

impl Keys {
    pub(in crate::session) fn push(&mut self, key: &[u8], tid: Tid, any_null: bool) {
        let start = self.arena.len() as u64;
        self.arena.extend_from_slice(key);
        self.entries.push(KeyAt {
            start,
            len: key.len() as u16,
            any_null,
            tid,
        });
    }

    /// Bytes that they take.
    pub(in crate::session) fn size(&self) -> usize {
        self.arena.len() + self.entries.len() * size_of::<KeyAt>()
    }

    fn key(&self, at: &KeyAt) -> &[u8] {
        &self.arena[at.start as usize..][..at.len.into()]
    }

    pub(in crate::session) fn sorted(mut self) -> Keys {
        let _computing = throng_sync::Computing::begin();
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|a, b| (self.key(a), a.tid).cmp(&(self.key(b), b.tid)));
        self.entries = entries;
        self
    }

    /// The row that has the key of the one before it.
    pub(in crate::session) fn first_duplicate(&self, nulls_too: bool) -> Option<Tid> {
        let same = |pair: &&[KeyAt]| {
            self.key(&pair[0]) == self.key(&pair[1]) && (nulls_too || !pair[1].any_null)
        };
        self.entries.windows(2).find(same).map(|pair| pair[1].tid)
    }

    pub(in crate::session) fn iter(&self) -> impl Iterator<Item = (&[u8], Tid)> {
        self.entries.iter().map(|at| (self.key(at), at.tid))
    }
}
