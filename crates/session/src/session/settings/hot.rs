//! What every statement asks of the settings, read when one of them has changed: a session has
//! hundreds, each on a cache line of its own.

use std::time::Duration;

use throng_bind::command::Isolation;
use throng_txn::ReplicationLevel;
use throng_values::settings::{Id, SessionSettings};

use crate::session::transaction::parse_isolation;
use crate::session::{Session, statement::custom_plan};

#[derive(Clone, Copy)]
pub(in crate::session) struct HotSettings {
    /// Of which version of the settings it is.
    version: u64,
    /// `None`: there is no limit.
    pub statement_timeout: Option<Duration>,
    pub transaction_timeout: Option<Duration>,
    pub idle_in_transaction_timeout: Option<Duration>,
    pub idle_session_timeout: Option<Duration>,
    /// `None`: it is not looked.
    pub client_check_interval: Option<Duration>,
    /// Whether the log is told of statements.
    pub logs: bool,
    /// `work_mem` in bytes.
    pub work_mem: usize,
    pub analytics_above_cost: f64,
    /// How transactions begin.
    pub isolation: Isolation,
    pub read_only: bool,
    pub deferrable: bool,
    /// Whether a commit is answered when it is on disk.
    pub synchronous_commit: bool,
    /// How far standbys must be with it, where there are some that commits wait for.
    pub waits_for_standbys: Option<ReplicationLevel>,
    /// Whether prepared statements are planned anew for each of their parameters' values.
    pub custom_plans: bool,
}

impl HotSettings {
    pub fn of(settings: &SessionSettings) -> HotSettings {
        let timeout = |id| match settings.int(id) {
            ms if ms > 0 => Some(Duration::from_millis(ms as u64)),
            _ => None,
        };
        HotSettings {
            version: settings.version(),
            statement_timeout: timeout(Id::StatementTimeout),
            transaction_timeout: timeout(Id::TransactionTimeout),
            idle_in_transaction_timeout: timeout(Id::IdleInTransactionSessionTimeout),
            idle_session_timeout: timeout(Id::IdleSessionTimeout),
            client_check_interval: timeout(Id::ClientConnectionCheckInterval),
            logs: crate::session::settings::log::is_on(settings),
            work_mem: settings.int(Id::WorkMem) as usize * 1024,
            analytics_above_cost: settings.int(Id::AnalyticsAboveCost) as f64,
            isolation: parse_isolation(settings.text(Id::DefaultTransactionIsolation)),
            read_only: settings.bool(Id::DefaultTransactionReadOnly),
            deferrable: settings.bool(Id::DefaultTransactionDeferrable),
            synchronous_commit: settings.text(Id::SynchronousCommit) != "off",
            waits_for_standbys: match settings.text(Id::SynchronousCommit) {
                "remote_write" => Some(ReplicationLevel::Written),
                "on" => Some(ReplicationLevel::Flushed),
                "remote_apply" => Some(ReplicationLevel::Applied),
                _ => None,
            },
            custom_plans: custom_plan::is_forced(settings),
        }
    }
}

impl Session {
    #[inline]
    pub(in crate::session) fn hot_settings(&self) -> HotSettings {
        let settings = self.settings.borrow();
        if self.hot_settings.get().version != settings.version() {
            self.hot_settings.set(HotSettings::of(&settings));
        }
        self.hot_settings.get()
    }

    /// `work_mem` in bytes.
    pub(in crate::session) fn work_mem(&self) -> usize {
        self.hot_settings().work_mem
    }
}
