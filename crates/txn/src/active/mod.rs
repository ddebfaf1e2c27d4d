//! How a snapshot learns which transactions run: three forms behind one trait, one of them chosen
//! at start.
//!
//! ```text
//!   form       a snapshot                                an end                          costs grow with
//!   csn        reads one number                          takes the next number           nothing
//!   bitmap     copies a bit for each id that may run     clears its bit                  ids since the oldest that runs
//!   walk       asks every session, latch held shared     the latch, held exclusively     sessions, idle ones too
//! ```
//!
//! `walk` is PostgreSQL's ProcArray as it was when KingbaseES found it in the way
//! (`GetSnapshotData` and `ProcArrayEndTransaction` in `procarray.c`), `bitmap` what KingbaseES put
//! in its place, `csn` (see [`crate::clock`]) what this server does. A snapshot of the first two is
//! a set of ids: those that ran when it was taken are not seen, however they end. The clock's
//! numbers are given out under all three, because the horizon and the hints on pages go by them.
//!
//! What every form owes:
//! * an end is one moment: a snapshot has all ids of a transaction still running, or none;
//! * the order of ends is the same for everybody: who sees a transaction also sees all that ended
//!   before it began to;
//! * an id never counts as ended before [`Form::end`] is called with it, from the moment it is
//!   given out;
//! * a set taken after its session published the clock's number S counts every commit up to S as
//!   ended, so what the horizon allows to be taken away is never in the set's sight.

mod bitmap;
mod walk;

use std::fmt;
use std::str::FromStr;

use throng_types::Xid;

use bitmap::Bitmap;
use walk::Walk;

/// The setting `lab_snapshot`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SnapshotForm {
    Walk,
    Bitmap,
    #[default]
    Csn,
}

impl SnapshotForm {
    pub const ALL: [SnapshotForm; 3] =
        [SnapshotForm::Walk, SnapshotForm::Bitmap, SnapshotForm::Csn];

    /// As the setting spells it.
    pub const fn name(self) -> &'static str {
        match self {
            SnapshotForm::Walk => "walk",
            SnapshotForm::Bitmap => "bitmap",
            SnapshotForm::Csn => "csn",
        }
    }
}

impl fmt::Display for SnapshotForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SnapshotForm {
    type Err = ();
    fn from_str(name: &str) -> Result<SnapshotForm, ()> {
        SnapshotForm::ALL
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or(())
    }
}

/// A session's number in a form.
pub(crate) type SessionIndex = u32;

/// What an id is given out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdPurpose {
    Top,
    Sub,
}

/// One way of knowing which transactions run.
pub(crate) trait Form {
    /// A session comes.
    fn enter(&self) -> SessionIndex;

    /// A session goes.
    fn leave(&self, place: SessionIndex);

    /// Has `give` give out an id, which runs from then on.
    fn begin(&self, place: SessionIndex, part: IdPurpose, give: impl FnOnce() -> Xid) -> Xid;

    /// Ends `xids`, all of them at one moment, and the transaction too if `part` is its top.
    /// `stand` stores how they stand: who takes a snapshot after that moment finds it stored, or
    /// about to be.
    fn end<R>(
        &self,
        place: SessionIndex,
        part: IdPurpose,
        xids: &[Xid],
        stand: impl FnOnce() -> R,
    ) -> R;

    /// The transaction of one session is another's from now on; it runs all the while.
    fn hand_over(&self, _from: SessionIndex, _to: SessionIndex) {}

    /// Fills `set` with what runs now. `next` tells the first id not given out.
    fn look(&self, set: &mut RunningSet, next: impl Fn() -> Xid);

    /// Gives back memory that no snapshot to come will look at. One caller at a time.
    fn tidy(&self) {}
}

/// The default: nobody is asked which transactions run, so nothing is kept.
pub(crate) struct ByNumber;

impl Form for ByNumber {
    #[inline]
    fn enter(&self) -> SessionIndex {
        0
    }
    #[inline]
    fn leave(&self, _: SessionIndex) {}
    #[inline]
    fn begin(&self, _: SessionIndex, _: IdPurpose, give: impl FnOnce() -> Xid) -> Xid {
        give()
    }
    #[inline]
    fn end<R>(&self, _: SessionIndex, _: IdPurpose, _: &[Xid], stand: impl FnOnce() -> R) -> R {
        stand()
    }
    #[inline]
    fn look(&self, _: &mut RunningSet, _: impl Fn() -> Xid) {}
}

/// The form chosen at start.
pub(crate) enum ActiveTransactions {
    ByNumber(ByNumber),
    Listed(Listed),
}

/// A form whose snapshots are sets.
pub(crate) enum Listed {
    Walk(Box<Walk>),
    Bitmap(Box<Bitmap>),
}

impl ActiveTransactions {
    /// `next`: the first id that will be given out. `running`: the ids below that run, which
    /// are to [begin](Form::begin) yet.
    pub(crate) fn new(form: SnapshotForm, next: Xid, running: &[Xid]) -> ActiveTransactions {
        match form {
            SnapshotForm::Csn => ActiveTransactions::ByNumber(ByNumber),
            SnapshotForm::Walk => {
                ActiveTransactions::Listed(Listed::Walk(Box::new(Walk::new(next))))
            }
            SnapshotForm::Bitmap => {
                let bitmap = Bitmap::new(running.iter().copied().min().unwrap_or(next));
                bitmap.have_ended(next, running);
                ActiveTransactions::Listed(Listed::Bitmap(Box::new(bitmap)))
            }
        }
    }

    /// The form, if a snapshot needs a set.
    #[inline]
    pub(crate) fn listed(&self) -> Option<&Listed> {
        match self {
            ActiveTransactions::ByNumber(_) => None,
            ActiveTransactions::Listed(listed) => Some(listed),
        }
    }
}

/// Hands a call to the form there is: a branch that always goes the same way.
macro_rules! to_form {
    ($self:ident, $form:ident => $call:expr) => {
        match $self {
            ActiveTransactions::ByNumber($form) => $call,
            ActiveTransactions::Listed(listed) => to_listed!(listed, $form => $call),
        }
    };
}

macro_rules! to_listed {
    ($self:ident, $form:ident => $call:expr) => {
        match $self {
            Listed::Walk($form) => $call,
            Listed::Bitmap($form) => $call,
        }
    };
}

impl Form for ActiveTransactions {
    fn enter(&self) -> SessionIndex {
        to_form!(self, form => form.enter())
    }
    fn leave(&self, place: SessionIndex) {
        to_form!(self, form => form.leave(place));
    }
    #[inline]
    fn begin(&self, place: SessionIndex, part: IdPurpose, give: impl FnOnce() -> Xid) -> Xid {
        to_form!(self, form => form.begin(place, part, give))
    }
    #[inline]
    fn end<R>(
        &self,
        place: SessionIndex,
        part: IdPurpose,
        xids: &[Xid],
        stand: impl FnOnce() -> R,
    ) -> R {
        to_form!(self, form => form.end(place, part, xids, stand))
    }
    fn hand_over(&self, from: SessionIndex, to: SessionIndex) {
        to_form!(self, form => form.hand_over(from, to));
    }
    fn look(&self, set: &mut RunningSet, next: impl Fn() -> Xid) {
        to_form!(self, form => form.look(set, next));
    }
    fn tidy(&self) {
        to_form!(self, form => form.tidy());
    }
}

impl Listed {
    pub(crate) fn look(&self, set: &mut RunningSet, next: impl Fn() -> Xid) {
        to_listed!(self, form => form.look(set, next));
    }
}

/// The ids that ran when a snapshot was taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunningSet {
    /// Ids below have ended.
    from: u64,
    /// Ids from here on had not been given out, or count as if.
    to: u64,
    members: Members,
}

#[derive(Clone, Debug)]
enum Members {
    /// In no order.
    List(Vec<u64>),
    /// A bit for each id from `from` rounded down to a word's first.
    Bits(Vec<u64>),
}

impl Default for Members {
    fn default() -> Members {
        Members::List(Vec::new())
    }
}

/// Ids that share a word of bits.
const WORD: u64 = 64;

impl RunningSet {
    /// Whether `xid` had not ended.
    #[inline]
    pub(crate) fn contains(&self, xid: Xid) -> bool {
        let xid = xid.0;
        if xid < self.from {
            return false;
        }
        if xid >= self.to {
            return true;
        }
        match &self.members {
            Members::List(list) => list.contains(&xid),
            Members::Bits(words) => {
                let word = (xid / WORD - self.from / WORD) as usize;
                words[word] >> (xid % WORD) & 1 == 1
            }
        }
    }

    /// Empties the set into a list, whose room is used again.
    fn restart_list(&mut self) -> &mut Vec<u64> {
        if !matches!(self.members, Members::List(_)) {
            self.members = Members::List(Vec::new());
        }
        let Members::List(list) = &mut self.members else {
            unreachable!("just made one")
        };
        list.clear();
        list
    }

    /// The same for bits.
    fn restart_bits(&mut self) -> &mut Vec<u64> {
        if !matches!(self.members, Members::Bits(_)) {
            self.members = Members::Bits(Vec::new());
        }
        let Members::Bits(words) = &mut self.members else {
            unreachable!("just made them")
        };
        words.clear();
        words
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

#[cfg(all(test, loom))]
mod loom_tests;
