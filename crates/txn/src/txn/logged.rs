//! A commit between its record and its end: it cannot be taken back, and not everybody sees it yet.

use throng_observe::{Structure, sampled};
use throng_types::Xid;

use super::Txn;
use crate::active::{Form, IdPurpose};

/// Files and locks that are given back between two turns: some hundred microseconds.
pub(super) const PIECE: usize = 256;

/// A transaction whose commit record is in the log. Dropped, it is committed for all to see.
pub(super) struct Logged {
    pub txn: Option<Txn>,
    pub xid: Xid,
}

impl Logged {
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
