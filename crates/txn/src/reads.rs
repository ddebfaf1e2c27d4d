//! What a serializable transaction's reader does besides reading.
//!
//! ```text
//!   a table or all of an index   lock it, then read            Reads::relation
//!   a stretch of keys            lock it, then read it again   Reads::gap
//!   a row found by an index      lock it, then look again      Reads::row
//!   every version looked at      noted by the Watch: who made or ended what the snapshot does not show
//! ```

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use throng_access::{TupleHeader, Visibility};
use throng_types::{FileId, Result, Tid};

use crate::snapshot::{Seen, Snapshot};
use crate::ssi::{Member, Reason, Ssi, Writer};

/// A serializable transaction's reads, to be told of.
pub struct Reads<'a> {
    serial: &'a Ssi,
    member: &'a Arc<Member>,
    snapshot: &'a Snapshot,
}

impl Snapshot {
    /// Whom to tell of reads made with this snapshot: only serializable transactions have somebody.
    #[inline]
    pub fn reads(&self) -> Option<Reads<'_>> {
        let (core, member) = self.followed_by()?;
        let serial = &core.serial;
        // None: they need not be followed any more.
        serial.follows(member).then_some(Reads {
            serial,
            member,
            snapshot: self,
        })
    }
}

impl<'a> Reads<'a> {
    /// A table is going to be read, or an index whose keys are not told one by one.
    pub fn relation(&self, file: FileId) {
        self.serial.reads_relation(self.member, file);
    }

    /// A version has been read that was found by an index. Whether that is news: then it is to be
    /// read once more.
    pub fn row(&self, file: FileId, tid: Tid) -> bool {
        self.serial.reads_row(self.member, file, tid)
    }

    /// An index's keys from `start` up to `end` (`None`: to the last) have been read, and are to be
    /// read once more.
    pub fn gap(&self, file: FileId, start: &[u8], end: Option<&[u8]>) {
        let gap = (start.to_vec(), end.map(<[u8]>::to_vec));
        self.serial.reads_gap(self.member, file, gap);
    }

    /// What versions are looked at with instead of the snapshot.
    pub fn watch(&self) -> Watch<'a> {
        Watch {
            serial: self.serial,
            member: self.member,
            snapshot: self.snapshot,
            writers: RefCell::default(),
            looked: Cell::new(false),
            own: Cell::new(false),
        }
    }
}

/// A snapshot that notes whom it does not see. For one thread, and one page or chain after another.
pub struct Watch<'a> {
    serial: &'a Ssi,
    member: &'a Arc<Member>,
    snapshot: &'a Snapshot,
    writers: RefCell<Vec<Writer>>,
    looked: Cell<bool>,
    own: Cell<bool>,
}

impl Watch<'_> {
    /// Whether the version shown last is the transaction's own: nobody else can write it before the
    /// transaction ends.
    pub fn saw_own(&self) -> bool {
        self.own.get()
    }

    /// What was noted becomes edges. To be called with no page latched.
    ///
    /// # Errors
    /// 40001.
    pub fn settle(self) -> Result<()> {
        if self.looked.get() && self.member.is_doomed() {
            return Err(Reason::PivotDuringRead.into());
        }
        for writer in self.writers.take() {
            self.serial.conflict_out(self.member, writer)?;
        }
        Ok(())
    }

    fn note(&self, writer: Writer) {
        let mut writers = self.writers.borrow_mut();
        if !writers.contains(&writer) {
            writers.push(writer);
        }
    }

    /// Whether what a transaction did has happened.
    fn has_happened(&self, seen: Seen) -> bool {
        match seen {
            Seen::Yes => true,
            Seen::Never => false,
            Seen::NotYet(writer) => {
                self.note(writer);
                false
            }
        }
    }
}

impl Visibility for Watch<'_> {
    fn again(&self) {
        self.writers.borrow_mut().clear();
    }

    fn visible(&self, t: &TupleHeader) -> bool {
        self.looked.set(true);
        if t.xmin_aborted() || t.xmax_seen_by_all() {
            return false;
        }
        let made =
            t.xmin_seen_by_all() || self.has_happened(self.snapshot.looks_at(t.xmin, t.cmin));
        let shown = made
            && (t.xmax_is_void() || !self.has_happened(self.snapshot.looks_at(t.xmax, t.cmax)));
        self.own.set(shown && self.snapshot.is_own(t.xmin));
        shown
    }
    fn is_gone(&self, t: &TupleHeader) -> bool {
        self.snapshot.is_gone(t)
    }
}
