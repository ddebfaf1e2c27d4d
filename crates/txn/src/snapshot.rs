//! What a statement sees.
//!
//! ```text
//!   commits    …  7    8    9    10   11   12  …          snapshot with csn 10
//!                 sees them    ──────┘ │
//!                                      └ does not: committed after it was taken
//!
//!   a version's life            xmin commits         xmax commits
//!   ─────────────────────────────────●───────────────────●──────────────────►
//!     snapshot here: not yet         │  here: seen       │  here: gone
//!
//!   my own transaction          command 3 wrote it   command 5 deleted it
//!   ─────────────────────────────────●───────────────────●──────────────────►
//!     as commands up to 3 see it: not│  4 and 5: seen    │  from 6 on: gone
//! ```
//!
//! A snapshot is one number read once (see [`crate::clock`]) and the command's own number; under
//! the forms of [`crate::active`] that keep lists, the set of who ran beside it. While one is
//! held, no version it may see is taken away: its session's slot holds the horizon back. Nor are
//! those that came after, for who changes a row follows it to its newest version; of who [only
//! reads](Snapshot::only_read) those go that no other snapshot shows.
//!
//! Who waits long for a row and needs nothing more of what its snapshot shows lets go of it
//! ([`Snapshot::let_go`]): else a crowd that waits for one row keeps all its versions. Before it
//! looks at rows again it takes the present moment ([`Snapshot::renew`]).

use std::sync::Arc;
use throng_sync::atomic::{AtomicBool, AtomicU64, Ordering};

use throng_access::{TupleHeader, Visibility};
use throng_observe::{Structure, sampled};
use throng_types::{Cid, Csn, Xid};

use crate::active::RunningSet;
use crate::session::{Core, SessionEntry};
use crate::ssi::{Member, Writer};
use crate::status::Standing;

/// What one command of one transaction sees. Cloned and sent to other threads freely; while any
/// copy lives, what it sees stays.
pub struct Snapshot {
    session: Arc<SessionEntry>,
    /// Changed by [`renew`](Self::renew) alone, by the statement whose snapshot it is, while no
    /// other thread has a copy.
    csn: AtomicU64,
    /// Whether what it sees stays.
    held: AtomicBool,
    /// Whether rows may be followed from the versions that it shows to those after them, which
    /// therefore stay as well.
    follows: AtomicBool,
    cid: Cid,
    /// The own transaction, [`Xid::NONE`] while it has written nothing.
    top: Xid,
    /// Who ran, if the server goes by that and not by `csn`.
    running: Option<Arc<RunningSet>>,
    /// A serializable transaction's reads are followed.
    serial: Option<Arc<Member>>,
}

/// How a snapshot finds what a transaction did.
pub(crate) enum Seen {
    /// It has happened.
    Yes,
    /// It was rolled back, or is to come: a later command of the own transaction does it.
    Never,
    /// Another transaction does it, or did it after the snapshot was taken.
    NotYet(Writer),
}

impl Snapshot {
    /// A new one, of this moment.
    pub(crate) fn take(session: &Arc<SessionEntry>, top: Xid, cid: Cid) -> Snapshot {
        let _sampled = sampled(Structure::Snapshot);
        let (csn, running) = session.snapshots.lock().take(session);
        Snapshot {
            session: session.clone(),
            csn: AtomicU64::new(csn.0),
            held: AtomicBool::new(true),
            follows: AtomicBool::new(true),
            cid,
            top,
            running,
            serial: None,
        }
    }

    /// Whether it can be let go: not under the forms that keep lists, nor where its reads are
    /// followed.
    pub(crate) fn may_go(&self) -> bool {
        self.running.is_none() && self.serial.is_none()
    }

    /// What it sees may be taken away from here on; it is not to be read with before it is renewed.
    pub(crate) fn let_go(&self) {
        if self.held.swap(false, Ordering::Relaxed) {
            let mut live = self.session.snapshots.lock();
            live.give_up(self.csn(), self.follows(), None, &self.session);
        }
    }

    /// From here on it is read with, and nothing else: what others replace does not stay for it.
    /// Not for a transaction that may lock or change rows by it. Under the forms that keep lists,
    /// and where its reads are followed, nothing changes.
    pub fn only_read(&self) {
        if self.may_go() && self.is_held() && self.follows.swap(false, Ordering::Relaxed) {
            let mut live = self.session.snapshots.lock();
            live.only_read(self.csn(), &self.session);
        }
    }

    /// One that was let go is of this moment.
    pub(crate) fn renew(&self) {
        if !self.held.swap(true, Ordering::Relaxed) {
            let (csn, _) = self.session.snapshots.lock().take(&self.session);
            self.csn.store(csn.0, Ordering::Relaxed);
            self.follows.store(true, Ordering::Relaxed);
        }
    }

    /// Is of this moment, whatever it was of before, where it [may](Self::may_go): for who looks at
    /// many rows, none of which need be of one moment with another.
    pub fn move_on(&self) {
        if self.may_go() {
            self.let_go();
            self.renew();
        }
    }

    /// Whether what it sees stays.
    fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    fn follows(&self) -> bool {
        self.follows.load(Ordering::Relaxed)
    }

    /// The same moment, as a later command of the same transaction sees it.
    pub(crate) fn for_command(&self, top: Xid, cid: Cid) -> Snapshot {
        let mut snapshot = self.clone();
        (snapshot.top, snapshot.cid) = (top, cid);
        snapshot
    }

    /// Commits up to this are seen; under the forms that keep lists, perhaps some after it too.
    #[inline]
    pub fn csn(&self) -> Csn {
        Csn(self.csn.load(Ordering::Relaxed))
    }
    pub fn cid(&self) -> Cid {
        self.cid
    }

    /// Its reads are those of a serializable transaction.
    pub(crate) fn followed(self, serial: Option<Arc<Member>>) -> Snapshot {
        let mut snapshot = self;
        snapshot.serial = serial;
        snapshot
    }

    /// The serializable transaction that its reads are told to, and what sessions share.
    #[inline]
    pub(crate) fn followed_by(&self) -> Option<(&Core, &Arc<Member>)> {
        let member = self.serial.as_ref()?;
        Some((self.session.core(), member))
    }

    /// Whether `xid` is the transaction whose snapshot this is.
    pub(crate) fn is_own(&self, xid: Xid) -> bool {
        matches!(self.session.core().status.standing(xid), Standing::InProgress { top } if top == self.top)
    }

    /// As [`Snapshot::sees`], telling apart why not.
    pub(crate) fn looks_at(&self, xid: Xid, cid: Cid) -> Seen {
        if self.sees(xid, cid) {
            return Seen::Yes;
        }
        match self.session.core().status.standing(xid) {
            Standing::Committed(csn) => Seen::NotYet(Writer::Committed(csn)),
            Standing::InProgress { top } if top != self.top => Seen::NotYet(Writer::Running(top)),
            Standing::InProgress { .. } | Standing::Aborted => Seen::Never,
        }
    }

    /// Whether what `xid` did in its command `cid` has happened, as far as this snapshot goes.
    #[inline]
    pub(crate) fn sees(&self, xid: Xid, cid: Cid) -> bool {
        match self.session.core().status.standing(xid) {
            Standing::Committed(csn) => {
                let seen = match &self.running {
                    None => csn <= self.csn(),
                    Some(set) => !set.contains(xid),
                };
                if seen {
                    self.session.has_seen(csn);
                }
                seen
            }
            Standing::InProgress { top } => top == self.top && cid < self.cid,
            Standing::Aborted => false,
        }
    }
}

impl Visibility for Snapshot {
    #[inline]
    fn visible(&self, t: &TupleHeader) -> bool {
        if t.xmin_aborted() || t.xmax_seen_by_all() {
            return false;
        }
        let made = t.xmin_seen_by_all() || self.sees(t.xmin, t.cmin);
        made && (t.xmax_is_void() || !self.sees(t.xmax, t.cmax))
    }

    fn is_gone(&self, t: &TupleHeader) -> bool {
        if t.xmin_aborted() || t.xmax_seen_by_all() {
            return true;
        }
        let core = self.session.core();
        if !t.xmin_seen_by_all() && core.status.standing(t.xmin) == Standing::Aborted {
            return true;
        }
        !t.xmax_is_void()
            && matches!(core.status.standing(t.xmax), Standing::Committed(csn) if core.is_past(csn))
    }

    fn is_settled(&self, t: &TupleHeader) -> bool {
        let core = self.session.core();
        let horizon = core.clock.horizon();
        // Whether what the transaction did has happened for everybody; None where that is not yet
        // the same for all.
        let happened = |xid: Xid| match core.status.standing(xid) {
            Standing::Committed(csn) => (csn <= horizon).then_some(true),
            Standing::Aborted => Some(false),
            Standing::InProgress { .. } => None,
        };
        if t.xmin_aborted() {
            return true;
        }
        match t.xmin_seen_by_all() || happened(t.xmin) == Some(true) {
            true => t.xmax_seen_by_all() || t.xmax_is_void() || happened(t.xmax).is_some(),
            false => happened(t.xmin) == Some(false),
        }
    }
}

impl Clone for Snapshot {
    fn clone(&self) -> Snapshot {
        let held = self.is_held();
        if held {
            let mut live = self.session.snapshots.lock();
            live.hold(self.csn(), self.follows());
        }
        Snapshot {
            session: self.session.clone(),
            csn: AtomicU64::new(self.csn().0),
            held: AtomicBool::new(held),
            follows: AtomicBool::new(self.follows()),
            cid: self.cid,
            top: self.top,
            running: self.running.clone(),
            serial: self.serial.clone(),
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if self.is_held() {
            let (follows, running) = (self.follows(), self.running.take());
            let mut live = self.session.snapshots.lock();
            live.give_up(self.csn(), follows, running, &self.session);
        }
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Snapshot({}, cid {}, xid {})",
            self.csn(),
            self.cid,
            self.top
        )
    }
}
