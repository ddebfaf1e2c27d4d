//! How far the clients are that take the server's log.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};

use throng_types::Lsn;

/// How far a client is, as it last said: `pg_stat_replication`.
#[derive(Clone, Debug, Default)]
pub struct SenderStatus {
    pub state: SenderState,
    /// `application_name`, by which commits that wait know it.
    pub name: String,
    pub sent: Lsn,
    pub written: Lsn,
    pub flushed: Lsn,
    pub applied: Lsn,
    /// When it last said so, in microseconds since 2000 of its own clock.
    pub reply_time: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SenderState {
    #[default]
    Startup,
    Backup,
    Catchup,
    Streaming,
}

impl SenderState {
    pub const fn name(self) -> &'static str {
        match self {
            SenderState::Startup => "startup",
            SenderState::Backup => "backup",
            SenderState::Catchup => "catchup",
            SenderState::Streaming => "streaming",
        }
    }
}

/// The sessions that send the log, by their numbers.
#[derive(Default)]
pub(crate) struct WalSenders(Mutex<BTreeMap<u32, SenderStatus>>);

impl WalSenders {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, SenderStatus>> {
        self.0.lock()
    }

    pub(crate) fn list(&self) -> Vec<(u32, SenderStatus)> {
        let senders = self.0.lock();
        senders
            .iter()
            .map(|(pid, status)| (*pid, status.clone()))
            .collect()
    }
}
