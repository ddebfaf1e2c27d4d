//! What is left of serializable transactions that committed long ago, while one from before them
//! runs on.

use std::collections::BTreeMap;

use throng_types::{Csn, Xid};

use super::Seq;

/// Commits kept one by one. Of older ones the worst is assumed.
const MOST: usize = if cfg!(test) { 6 } else { 1 << 16 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OldPivot {
    pub xid: Option<Xid>,
    /// The first commit among those it had an edge to that had committed before it.
    pub first_out: Option<Seq>,
}

/// By commit. Bounded: past [`MOST`] the older half is only known to have been there.
#[derive(Default)]
pub(super) struct OldPivots {
    pivots: BTreeMap<Csn, OldPivot>,
    /// Of commits from the first up to the second nothing is known but that there were some.
    unknown: Option<(Csn, Csn)>,
}

impl OldPivots {
    pub fn add(&mut self, csn: Csn, xid: Option<Xid>, first_out: Option<Seq>) {
        self.pivots.insert(csn, OldPivot { xid, first_out });
        if self.pivots.len() <= MOST {
            return;
        }
        let from = self.pivots.keys().next().copied();
        let middle = self.pivots.keys().nth(MOST / 2).copied();
        if let (Some(from), Some(middle)) = (from, middle) {
            let from = self.unknown.map_or(from, |(first, _)| first.min(from));
            self.unknown = Some((from, middle));
            self.pivots = self.pivots.split_off(&Csn(middle.0 + 1));
        }
    }

    pub fn get(&self, csn: Csn) -> Option<OldPivot> {
        let is_unknown = self
            .unknown
            .is_some_and(|(from, to)| from <= csn && csn <= to);
        let worst = OldPivot {
            xid: None,
            first_out: Some(0),
        };
        let kept = self.pivots.get(&csn).copied();
        kept.or(is_unknown.then_some(worst))
    }

    /// Commits up to this one are seen by everybody who runs.
    pub fn forget(&mut self, csn: Csn) {
        if self.pivots.keys().next().is_some_and(|first| *first <= csn) {
            self.pivots = self.pivots.split_off(&Csn(csn.0 + 1));
        }
        self.unknown = self.unknown.filter(|(_, to)| *to > csn);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn old_commits_take_bounded_room_and_are_feared_when_forgotten() {
        let mut old = OldPivots::default();
        for csn in 1..=20 {
            old.add(Csn(csn * 2), Some(Xid(csn)), None);
            assert!(old.pivots.len() <= MOST);
        }
        assert_eq!(old.get(Csn(40)).and_then(|p| p.first_out), None);
        assert_eq!(old.get(Csn(40)).and_then(|p| p.xid), Some(Xid(20)));
        assert_eq!(old.get(Csn(2)).and_then(|p| p.first_out), Some(0));
        assert_eq!(old.get(Csn(42)), None);
        old.forget(Csn(38));
        assert_eq!(old.get(Csn(38)), None);
        assert!(old.get(Csn(40)).is_some());
    }
}
