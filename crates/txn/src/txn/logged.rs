//! A commit between its record and its end: it cannot be taken back, and not everybody sees it yet.

use std::sync::Arc;

use throng_observe::{Structure, sampled, stop_point};
use throng_types::{Lsn, Result, Xid};

use super::Txn;
use crate::active::{Form, IdPurpose};
use crate::session::{CancelReason, SessionEntry};

/// Files and locks that are given back between two turns: some hundred microseconds.
pub(super) const PIECE: usize = 256;

/// A transaction whose commit record is in the log. Dropped, it is committed for all to see.
pub(super) struct Logged {
    pub txn: Option<Txn>,
    pub xid: Xid,
}

impl Logged {
    /// Ends a commit whose record ends at `lsn`, for `session`. With `sync`, once it is on disk.
    ///
    /// # Errors
    /// That the log has failed.
    #[inline]
    pub async fn reach_disk(self, session: &Arc<SessionEntry>, lsn: Lsn, sync: bool) -> Result<()> {
        let core = session.core();
        stop_point!("txn.commit.logged", self.xid.0);
        if !sync {
            core.wal.request_flush(lsn);
            return Ok(());
        }
        let undecided = self.unless_seen_early();
        // With nobody else to serve, doing it is quicker than to have it done.
        if throng_observe::serves_one_session() {
            core.wal.flush_here();
        }
        let flushed = core.wal.flush(lsn).await;
        let Some(logged) = undecided else {
            return flushed.inspect_err(|_| session.cancel_flag().raise(CancelReason::Terminate));
        };
        match flushed {
            Ok(()) => {
                logged.end_in_turns().await;
                Ok(())
            }
            Err(e) => {
                // The session ends: nobody knows what became of its transaction.
                session.cancel_flag().raise(CancelReason::Terminate);
                logged.leave_undecided();
                Err(e)
            }
        }
    }

    /// Commits for all to see, unless that must wait for the disk.
    pub fn unless_seen_early(mut self) -> Option<Logged> {
        let txn = self.txn.as_mut()?;
        let has_actions = !txn.progress.get_mut().actions.is_empty();
        (has_actions || txn.serial.get().is_some()).then_some(self)
    }

    /// The log has failed: the transaction neither commits nor rolls back before the restart
    /// decides.
    pub fn leave_undecided(mut self) {
        if let Some(mut txn) = self.txn.take() {
            // Its locks stay too: nobody may act on either outcome.
            txn.over = true;
        }
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        if let Some(mut txn) = self.commit_for_all() {
            txn.leave();
        }
    }
}

impl Logged {
    /// Commits for all to see, and gives back what the transaction holds with the core given to
    /// others in between: thousands of locks take their time. Dropped meanwhile, it is done at
    /// once.
    pub async fn end_in_turns(mut self) {
        let Some(mut txn) = self.commit_for_all() else {
            return;
        };
        while !txn.session.unlock_some(0, PIECE) {
            tokio::task::yield_now().await;
        }
        txn.leave();
    }

    /// The transaction, which is committed for all to see and still holds what it held.
    fn commit_for_all(&mut self) -> Option<Txn> {
        let mut txn = self.txn.take()?;
        let session = txn.session.clone();
        let core = session.core();
        let progress = txn.progress.get_mut();
        let (mut xids, row_lockers) = (
            std::mem::take(&mut progress.subs),
            std::mem::take(&mut progress.row_lockers),
        );
        let subs = xids.len();
        xids.push(self.xid);
        let ending = sampled(Structure::TxnEnd);
        let csn = core.running.end(session.place, IdPurpose::Top, &xids, || {
            core.status.commit(self.xid, &xids[..subs], || {
                let csn = core.clock.tick();
                if let Some(member) = txn.serial.get() {
                    core.serial.note_csn(member, csn);
                }
                csn
            })
        });
        drop(ending);
        txn.settle(csn, xids, &row_lockers);
        Some(txn)
    }
}
