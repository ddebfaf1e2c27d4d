//! Sessions that send the log, and commits that wait for who takes it.

use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use throng_exec::placement::Placement;
use throng_observe::{Object, WaitEvent, waited};
use throng_txn::{ReplicationLevel, Standby, StandbyPosition, SynchronousStandbys, TxnSystem};
use throng_types::error::state;
use throng_types::{Error, Lsn, Result};
use throng_values::settings::{Id, standbys};

use crate::archive;
use crate::engine::{Engine, GivenSettings, open_disk, pool_config, wal_config};
use crate::senders::{SenderState, SenderStatus};
use crate::session::{Login, Session, now};

/// What a session that sends the log is called among the server's.
pub(crate) const WAL_SENDER: &str = "walsender";

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
        if let Some(status) = self.engine.senders.lock().get_mut(&self.pid) {
            change(status);
        }
    }

    /// The client has said how far it is: commits may be waiting for that.
    pub fn confirm(&self) {
        let replication = self.engine.sys.synchronous_replication();
        if replication.is_on() {
            replication.update(&self.engine.standbys());
        }
    }
}

impl Drop for WalSender {
    fn drop(&mut self) {
        self.engine.senders.lock().remove(&self.pid);
    }
}

impl Engine {
    /// Clients that follow the log as it comes.
    fn standbys(&self) -> Vec<StandbyPosition> {
        let senders = self.senders.list().into_iter();
        // Who says nothing of its disk cannot confirm anything.
        let streaming = senders.filter(|(_, status)| {
            status.state == SenderState::Streaming && status.flushed > Lsn::ZERO
        });
        let positions = streaming.map(|(_, status)| StandbyPosition {
            name: status.name,
            written: status.written,
            flushed: status.flushed,
            applied: status.applied,
        });
        positions.collect()
    }

    /// Whom commits wait for, as the settings say now.
    pub(crate) fn choose_standbys(&self, names: &str) {
        // What cannot be read was refused when it was set.
        let names = standbys::parse(names).unwrap_or_default();
        let wanted = names.map(|names| SynchronousStandbys {
            by_priority: names.by_priority,
            count: names.count,
            names: names.names,
        });
        let replication = self.sys.synchronous_replication();
        replication.configure(wanted);
        replication.update(&self.standbys());
    }

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
    /// Waits until enough standbys have what has just been committed. Who gives up is told that it
    /// is committed here all the same.
    pub(crate) async fn wait_for_standbys(&self, level: ReplicationLevel) {
        let system = &self.engine.sys;
        let replication = system.synchronous_replication();
        if !replication.is_on() {
            return;
        }
        let lsn = system.wal().flushed();
        let entry = self.entry();
        let flag = entry.cancel_flag();
        let cancelled = std::future::poll_fn(|cx| {
            flag.register(cx.waker());
            match flag.check() {
                Err(_) => Poll::Ready(()),
                Ok(()) => Poll::Pending,
            }
        });
        let confirmed = waited(
            WaitEvent::SyncRep,
            Object::lsn(lsn.0),
            replication.wait(lsn, level),
        );
        let (confirmed, cancelled) = (std::pin::pin!(confirmed), std::pin::pin!(cancelled));
        tokio::select! {
            biased;
            () = confirmed => {}
            () = cancelled => {
                let message = match flag.is_terminated() {
                    true => "canceling the wait for synchronous replication and terminating connection \
                             due to administrator command",
                    false => "canceling wait for synchronous replication due to user request",
                };
                self.warn(Error::new(state::WARNING, message).detail(
                    "The transaction has already committed locally, but might not have been \
                     replicated to the standby.",
                ));
            }
        }
    }

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
        let name = login.application_name.clone();
        let session = Session::begun(engine.clone(), login, admission, WAL_SENDER)?;
        let pid = session.pid() as u32;
        let mut senders = engine.senders.lock();
        if senders.len() as i64 >= most {
            let message = format!(
                "number of requested standby connections exceeds \"max_wal_senders\" (currently {most})"
            );
            return Err(Error::new(state::TOO_MANY_CONNECTIONS, message));
        }
        let status = SenderStatus {
            name,
            ..SenderStatus::default()
        };
        senders.insert(pid, status);
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
