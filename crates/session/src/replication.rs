//! What the engine knows of clients that take its log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use throng_exec::placement::Placement;
use throng_txn::{Standby, TxnSystem};
use throng_types::error::state;
use throng_types::{Error, Lsn, Result};
use throng_values::settings::Id;

use crate::archive;
use crate::engine::{Engine, GivenSettings, open_disk, pool_config, wal_config};
use crate::session::{Login, Session, now};

/// What a session that sends the log is called among the server's.
pub(crate) const WAL_SENDER: &str = "walsender";

/// How far a client is, as it last said: `pg_stat_replication`.
#[derive(Clone, Debug, Default)]
pub struct SenderStatus {
    pub state: SenderState,
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

/// One of them, for as long as it is there.
pub struct WalSender {
    engine: Arc<Engine>,
    pid: u32,
}

impl WalSender {
    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn update(&self, change: impl FnOnce(&mut SenderStatus)) {
        if let Some(status) = self.engine.senders.0.lock().get_mut(&self.pid) {
            change(status);
        }
    }
}

impl Drop for WalSender {
    fn drop(&mut self) {
        self.engine.senders.0.lock().remove(&self.pid);
    }
}

impl WalSenders {
    pub(crate) fn list(&self) -> Vec<(u32, SenderStatus)> {
        let senders = self.0.lock();
        senders
            .iter()
            .map(|(pid, status)| (*pid, status.clone()))
            .collect()
    }
}

impl Engine {
    pub fn system(&self) -> &Arc<TxnSystem> {
        &self.sys
    }

    pub fn data_directory(&self) -> &Path {
        &self.data
    }

    /// A server-wide setting that is a number, in its own unit.
    pub fn number(&self, id: Id) -> i64 {
        self.settings().int(id)
    }

    /// The database of a session that belongs to none.
    pub fn first_database(&self) -> String {
        let first = self.databases.first();
        let catalog = first.catalog();
        let def = catalog.database(first.oid);
        def.map_or_else(String::new, |def| def.name.clone())
    }
}

impl Session {
    /// A session that sends the log, and itself as such.
    ///
    /// # Errors
    /// 42501 for a role without REPLICATION, 53300 beyond `max_wal_senders`.
    pub fn wal_sender(engine: Arc<Engine>, login: Login) -> Result<(Session, WalSender)> {
        let role = engine.shared().role_by_name(&login.user).cloned();
        if role.is_none_or(|role| !role.superuser && !role.replication) {
            return Err(Error::new(
                state::INSUFFICIENT_PRIVILEGE,
                "permission denied to start WAL sender",
            )
            .detail("Only roles with the REPLICATION attribute may start a WAL sender process."));
        }
        let most = engine.number(Id::MaxWalSenders);
        let admission = engine.admit()?;
        let session = Session::begun(engine.clone(), login, admission, WAL_SENDER)?;
        let pid = session.pid() as u32;
        let mut senders = engine.senders.0.lock();
        if senders.len() as i64 >= most {
            let message = format!(
                "number of requested standby connections exceeds \"max_wal_senders\" (currently {most})"
            );
            return Err(Error::new(state::TOO_MANY_CONNECTIONS, message));
        }
        senders.insert(pid, SenderStatus::default());
        drop(senders);
        Ok((session, WalSender { engine, pid }))
    }
}

/// Opens a data directory that follows another server, as the settings say.
///
/// # Errors
/// F0000 for settings that are none; XX001, 58030 and 53100 from storage.
pub fn open_standby(
    data: &Path,
    settings: &GivenSettings,
    pool_bytes: usize,
    cores: &[usize],
) -> Result<Standby> {
    archive::adopt_streamed_log(data)?;
    let settings = settings.settings()?;
    let disk = open_disk(data, &settings, Box::new(|_| {}))?;
    let nodes = Placement::new(&settings, cores)?.nodes();
    let pool = pool_config(&settings, pool_bytes, nodes);
    let between = Duration::from_secs(settings.int(Id::CheckpointTimeout) as u64);
    Standby::open(disk, pool, wal_config(&settings), between)
}

/// The moment now as the protocol tells it.
pub fn clock() -> i64 {
    now()
}
