//! `pg_catalog`, `information_schema` and `throng`: virtual relations, computed from a [`Catalog`]
//! and the running system when they are read.
//!
//! Definitions are constants with PostgreSQL's oids and column types, where it has the thing;
//! queries bind and plan over them as over any table.

mod activity;
mod attribute;
mod columns;
mod constraint;
pub mod definition;
pub mod domain;
pub mod extension;
mod info_constraint;
mod info_privilege;
mod info_relation;
mod info_routine;
mod io_statistic;
pub mod listed;
pub mod named;
pub mod operator_class;
mod part;
pub mod partition;
mod policy;
mod range;
mod relation;
mod replication;
mod role;
pub mod routine;
pub mod routine_text;
pub mod sql_routine;
mod statistic;
#[cfg(test)]
mod tests;
mod text_search;
pub mod trigger;
mod types;
mod user_operator;
pub mod user_routine;
mod view;
mod waiting;
mod zone;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use foldhash::fast::FixedState;
use throng_types::error::state;
use throng_types::{Datum, Error, Lsn, Oid, Result, SqlType};

use super::{Catalog, IndexDef, PolicyCondition, TableDef, ViewDef, builtin};
pub use domain::shown_check;
pub use part::{Key, Left};
pub use waiting::{HolderInfo, StallInfo, StructureInfo, WaitInfo, WaitingInfo};

/// The rows of a virtual relation.
pub type Rows = Vec<Vec<Datum>>;

/// A virtual relation.
pub struct VirtualTable {
    pub oid: Oid,
    pub schema: Oid,
    pub name: &'static str,
    pub columns: &'static [(&'static str, SqlType)],
    /// The rows, in the order of `columns`.
    pub rows: fn(&Catalog, &dyn SystemState) -> Rows,
}

impl PartialEq for VirtualTable {
    fn eq(&self, other: &VirtualTable) -> bool {
        self.oid == other.oid
    }
}

impl std::fmt::Debug for VirtualTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl VirtualTable {
    /// Catalogs of PostgreSQL's own are tables there, the rest are views.
    pub fn relkind(&self) -> u8 {
        match self.oid.0 {
            0..12000 => b'r',
            _ => b'v',
        }
    }
    /// Whether a column is NOT NULL, which those of PostgreSQL's catalogs are unless they are known
    /// not to be.
    pub fn is_never_null(&self, column: &str) -> bool {
        let nullable = columns::NULLABLE;
        let own = nullable.iter().find(|(table, _)| *table == self.name);
        self.schema == builtin::PG_CATALOG
            && self.relkind() == b'r'
            && own.is_none_or(|(_, columns)| !columns.contains(&column))
    }
    /// XX000 of a view of something that there is not here, as `pg_numa_available()` tells.
    pub fn must_be_readable(&self) -> Result<()> {
        match self.name {
            "pg_shmem_allocations_numa" => Err(Error::new(
                state::INTERNAL_ERROR,
                "libnuma initialization failed or NUMA is not supported on this platform",
            )),
            _ => Ok(()),
        }
    }
}

/// What virtual relations need to know of the running system.
pub trait SystemState {
    /// The role whose session asks.
    fn current_user(&self) -> Oid;
    /// Rows of `pg_stat_activity`, one for each session.
    fn sessions(&self) -> Vec<SessionInfo>;
    /// Rows of `pg_locks`.
    fn locks(&self) -> Vec<LockInfo>;
    /// Settings as `pg_settings` shows them.
    fn settings(&self) -> Vec<SettingInfo>;
    /// The session's prepared statements.
    fn prepared(&self) -> Vec<PreparedInfo>;
    /// Transactions that wait to be told how they end.
    fn prepared_transactions(&self) -> Vec<PreparedTransactionInfo> {
        Vec::new()
    }
    /// The session's cursors.
    fn cursors(&self) -> Vec<CursorInfo> {
        Vec::new()
    }
    /// A text kept with a relation, such as a column's default, as the session would write it.
    fn kept_text(&self, _relation: Oid, text: &str) -> String {
        text.to_owned()
    }
    /// Blocks of a relation's file now, and estimated rows.
    fn relation_size(&self, oid: Oid) -> (u32, f64);
    /// A sequence's last value, None before its first use.
    fn sequence_value(&self, oid: Oid) -> Option<i64>;
    /// Activity counters of a database.
    fn database_activity(&self, oid: Oid) -> DatabaseActivity;
    /// Activity counters of a table.
    fn table_activity(&self, oid: Oid) -> TableActivity;
    /// Rows of `throng.waits`, the greatest hold-up first.
    fn waits(&self) -> Vec<WaitInfo>;
    /// Rows of `throng.waiting_now`, the longest wait first.
    fn waiting_now(&self) -> Vec<WaitingInfo>;
    /// Rows of `throng.structures`, the one with most time first.
    fn structures(&self) -> Vec<StructureInfo>;
    /// Rows of `throng.stalls`: those that go on, then the latest.
    fn stalls(&self) -> Vec<StallInfo> {
        Vec::new()
    }
    /// Sessions that send the log.
    fn wal_senders(&self) -> Vec<WalSenderInfo> {
        Vec::new()
    }
    /// For whom the log is kept.
    fn replication_slots(&self) -> Vec<SlotInfo> {
        Vec::new()
    }
    /// What became of the log's segments.
    fn archiver(&self) -> ArchiverInfo {
        ArchiverInfo::default()
    }
    /// The transactions before this one have ended: nothing has to ask how.
    fn oldest_xid(&self) -> u64;
    /// When the transaction began. Microseconds since 2000-01-01 UTC, as everywhere here.
    fn now(&self) -> i64;
    /// The moment a timestamptz in text form stands for; None where it is not one.
    fn moment(&self, text: &str) -> Option<i64>;
    /// A view's query as SQL, its names as the session finds them.
    fn view_definition(&self, view: &ViewDef) -> Option<String>;
    /// An index as the session would write it; none where that is as it is kept.
    fn index_as_seen(&self, index: &IndexDef) -> Option<IndexDef>;
    /// A policy's condition as the session would write it.
    fn policy_text(&self, _table: &Arc<TableDef>, condition: &PolicyCondition) -> String {
        condition.text.clone()
    }
    /// Which of a view's columns can be written to; none where no row of it can.
    fn updatable_columns(&self, view: &Arc<ViewDef>) -> Vec<bool>;
}

/// A session that sends the log.
#[derive(Clone, Debug)]
pub struct WalSenderInfo {
    pub pid: i32,
    pub state: &'static str,
    /// Its place among the standbys that commits wait for, from 1; 0: it is none.
    pub priority: i32,
    pub sync_state: &'static str,
    pub sent: Option<Lsn>,
    pub written: Option<Lsn>,
    pub flushed: Option<Lsn>,
    pub applied: Option<Lsn>,
    pub reply_time: Option<i64>,
}

/// A row of `pg_replication_slots`.
#[derive(Clone, Debug)]
pub struct SlotInfo {
    pub name: String,
    pub temporary: bool,
    pub active_pid: Option<i32>,
    pub restart: Option<Lsn>,
    /// Bytes of log that may still come before it is given up.
    pub safe_size: Option<i64>,
    pub lost: bool,
}

/// The row of `pg_stat_archiver`; files with the moment of the attempt.
#[derive(Clone, Debug, Default)]
pub struct ArchiverInfo {
    pub archived: u64,
    pub last_archived: Option<(String, i64)>,
    pub failed: u64,
    pub last_failed: Option<(String, i64)>,
}

/// A session as `pg_stat_activity` shows it. Times are microseconds since 2000-01-01 UTC.
#[derive(Clone, Debug, Default)]
pub struct SessionInfo {
    pub pid: i32,
    /// Empty for what works for all of them.
    pub database: String,
    pub user: Oid,
    pub application_name: String,
    /// None: a Unix socket.
    pub client_addr: Option<String>,
    pub client_port: i32,
    pub backend_start: i64,
    pub xact_start: Option<i64>,
    pub query_start: Option<i64>,
    pub state_change: Option<i64>,
    pub wait_event_type: Option<String>,
    pub wait_event: Option<String>,
    /// `active`, `idle`, `idle in transaction`, `idle in transaction (aborted)`.
    pub state: Option<String>,
    pub xid: Option<u64>,
    pub query: String,
    pub backend_type: String,
    pub encryption: Option<EncryptionInfo>,
}

/// How a session's connection is encrypted, as `pg_stat_ssl` shows it.
#[derive(Clone, Debug)]
pub struct EncryptionInfo {
    pub version: &'static str,
    pub cipher: String,
    pub bits: i32,
}

/// A lock held or awaited.
#[derive(Clone, Debug, Default)]
pub struct LockInfo {
    /// `relation`, `transactionid`, `tuple`, `advisory`, ….
    pub lock_type: String,
    /// Transactions are the server's, everything else is a database's.
    pub database: Option<Oid>,
    pub relation: Option<Oid>,
    pub page: Option<i32>,
    pub tuple: Option<i16>,
    pub transaction: Option<u64>,
    pub virtual_transaction: String,
    pub pid: i32,
    pub mode: String,
    pub granted: bool,
    pub fast_path: bool,
    /// The object's catalog and oid; for advisory locks the key's halves.
    pub class: Option<u32>,
    pub object: Option<u32>,
    /// Advisory locks: 1 for one number of 64 bits, 2 for two of 32. Other objects: 0.
    pub part: Option<i16>,
    pub wait_start: Option<i64>,
}

#[derive(Clone, Debug, Default)]
pub struct SettingInfo {
    pub name: String,
    pub setting: String,
    pub unit: Option<String>,
    pub category: String,
    pub short_desc: String,
    pub context: String,
    /// `bool`, `integer`, `real`, `string`, `enum`.
    pub var_type: String,
    pub source: String,
    pub min_val: Option<String>,
    pub max_val: Option<String>,
    pub enum_vals: Option<Vec<String>>,
    pub boot_val: Option<String>,
    pub reset_val: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct PreparedInfo {
    pub name: String,
    pub statement: String,
    pub prepare_time: i64,
    pub parameter_types: Vec<Oid>,
    /// None where it gives no rows.
    pub result_types: Option<Vec<Oid>>,
    pub from_sql: bool,
}

/// A row of `pg_prepared_xacts`.
#[derive(Clone, Debug, Default)]
pub struct PreparedTransactionInfo {
    pub transaction: u64,
    pub gid: String,
    pub prepared: i64,
    pub owner: Oid,
    pub database: Oid,
}

/// A row of `pg_cursors`.
#[derive(Clone, Debug)]
pub struct CursorInfo {
    pub name: String,
    pub statement: String,
    pub holdable: bool,
    pub binary: bool,
    pub scrollable: bool,
    pub creation_time: i64,
}

/// Transactions that have ended since the server started.
#[derive(Clone, Copy, Debug, Default)]
pub struct DatabaseActivity {
    pub committed: u64,
    pub rolled_back: u64,
}

/// Counters since the server started.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableActivity {
    pub inserted: u64,
    pub updated: u64,
    pub hot_updated: u64,
    pub deleted: u64,
    pub live_rows: u64,
    pub dead_rows: u64,
    pub changed_since_analyze: u64,
    /// By VACUUM, by the cleaner, by ANALYZE, and by the ANALYZE that nobody asks for.
    pub maintained: [Maintained; 4],
}

/// What was done to a table one way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Maintained {
    /// Microseconds since 2000-01-01 UTC.
    pub last: Option<i64>,
    pub count: u64,
    pub milliseconds: f64,
}

/// Relations as `oid name in module { column: TYPE, … }`: the module's function of the relation's
/// name makes the rows. Without a module there is none of the thing here, and never a row.
macro_rules! relations {
    ($schema:ident; $($oid:literal $name:ident $(in $module:ident)? {
        $($column:ident: $ty:ident),* $(,)?
    })*) => {
        pub(super) static TABLES: &[$crate::VirtualTable] = &[
            $($crate::VirtualTable {
                oid: throng_types::Oid($oid),
                schema: $crate::builtin::$schema,
                name: stringify!($name),
                columns: &[
                    $((
                        stringify!($column),
                        throng_types::SqlType::plain(throng_types::oid::$ty),
                    ),)*
                ],
                rows: $crate::system::relations!(@rows $name $($module)?),
            },)*
        ];
    };
    (@rows $name:ident $module:ident) => { $crate::system::$module::$name };
    (@rows $name:ident) => { $crate::system::none };
}
use relations;

/// Rows of what there is none of.
fn none(_: &Catalog, _: &dyn SystemState) -> Rows {
    Rows::new()
}

/// One row, its values in column order; anything a [`Datum`] is made from.
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$(throng_types::Datum::from($value)),*] };
}
use row;

static TABLES: LazyLock<Vec<&'static VirtualTable>> =
    LazyLock::new(|| columns::lists().into_iter().flatten().collect());

static BY_NAME: LazyLock<HashMap<(Oid, &'static str), &'static VirtualTable, FixedState>> =
    LazyLock::new(|| TABLES.iter().map(|t| ((t.schema, t.name), *t)).collect());

static BY_OID: LazyLock<HashMap<Oid, &'static VirtualTable, FixedState>> =
    LazyLock::new(|| TABLES.iter().map(|t| (t.oid, *t)).collect());

/// Every virtual relation.
pub fn all() -> &'static [&'static VirtualTable] {
    &TABLES
}

pub fn find(schema: Oid, name: &str) -> Option<&'static VirtualTable> {
    if !builtin::RELATION_SCHEMAS.contains(&schema) {
        return None;
    }
    BY_NAME.get(&(schema, name)).copied()
}

pub fn by_oid(oid: Oid) -> Option<&'static VirtualTable> {
    BY_OID.get(&oid).copied()
}
