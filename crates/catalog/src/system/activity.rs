//! What happens now: sessions, locks, prepared statements, settings, and what tables were used for.

use throng_observe::{Counter, counter};
use throng_types::numeric::Numeric;
use throng_types::{Array, Datum, Oid, oid};

use super::view::{role_name, schema_name};
use super::{Rows, SessionInfo, SystemState, relation::text_array, row};
use crate::Catalog;
use throng_values::io::network::inet_value;

fn moment(at: Option<i64>) -> Datum {
    at.map_or(Datum::Null, Datum::TimestampTz)
}

/// A transaction id as `xid` has it: 32 bits.
fn xid(id: Option<u64>) -> Datum {
    id.map_or(Datum::Null, |id| Datum::Oid(id as u32))
}

/// Other users' queries are for superusers and their own kind only.
fn may_see(catalog: &Catalog, state: &dyn SystemState, session: &SessionInfo) -> bool {
    let reader = state.current_user();
    session.user == reader || catalog.role(reader).is_some_and(|r| r.superuser)
}

pub(super) fn pg_stat_activity(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let row_of = |s: SessionInfo| {
        let sender = s.backend_type == "walsender";
        let client = s.backend_type == "client backend" || sender;
        let database = catalog.database_by_name(&s.database);
        let (id, name) = match database.filter(|_| !sender) {
            Some(d) => (d.oid.into(), d.name.as_str().into()),
            None => (Datum::Null, Datum::Null),
        };
        let (user, user_name) = match client {
            true => (s.user.into(), role_name(catalog, s.user)),
            false => (Datum::Null, Datum::Null),
        };
        let shown = may_see(catalog, state, &s);
        let seen = |value: Datum| if shown { value } else { Datum::Null };
        let query = if shown {
            s.query.as_str()
        } else {
            "<insufficient privilege>"
        };
        row![
            id,
            name,
            s.pid,
            Datum::Null,
            user,
            user_name,
            s.application_name,
            seen(inet_value(s.client_addr.as_deref())),
            Datum::Null,
            seen(if client {
                s.client_port.into()
            } else {
                Datum::Null
            }),
            seen(Datum::TimestampTz(s.backend_start)),
            seen(moment(s.xact_start)),
            seen(moment(s.query_start)),
            seen(moment(s.state_change)),
            seen(s.wait_event_type.into()),
            seen(s.wait_event.into()),
            seen(s.state.into()),
            xid(s.xid),
            Datum::Null,
            Datum::Null,
            query,
            s.backend_type,
        ]
    };
    state.sessions().into_iter().map(row_of).collect()
}

/// The sessions of clients, as the views about their connections list them.
fn clients(state: &dyn SystemState) -> impl Iterator<Item = SessionInfo> {
    let sessions = state.sessions().into_iter();
    sessions.filter(|s| s.backend_type == "client backend")
}

pub(super) fn pg_stat_ssl(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let row_of = |s: SessionInfo| {
        let shown = may_see(catalog, state, &s);
        let used = shown.then_some(s.encryption.is_some());
        let seen = s.encryption.filter(|_| shown);
        let (version, cipher, bits) = match seen {
            Some(e) => (e.version.into(), e.cipher.into(), e.bits.into()),
            None => (Datum::Null, Datum::Null, Datum::Null),
        };
        // No client shows a certificate.
        row![
            s.pid,
            used,
            version,
            cipher,
            bits,
            Datum::Null,
            Datum::Null,
            Datum::Null,
        ]
    };
    clients(state).map(row_of).collect()
}

pub(super) fn pg_stat_gssapi(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let row_of = |s: SessionInfo| {
        let never = may_see(catalog, state, &s).then_some(false);
        row![s.pid, never, Datum::Null, never, never]
    };
    clients(state).map(row_of).collect()
}

pub(super) fn pg_locks(_: &Catalog, state: &dyn SystemState) -> Rows {
    let locks = state.locks().into_iter();
    locks
        .map(|l| {
            let virtual_id = (l.lock_type == "virtualxid").then(|| l.virtual_transaction.clone());
            row![
                l.lock_type,
                l.database,
                l.relation,
                l.page,
                l.tuple,
                virtual_id,
                xid(l.transaction),
                l.class.map(Oid),
                l.object.map(Oid),
                l.part,
                l.virtual_transaction,
                // A prepared transaction's are no session's.
                (l.pid != 0).then_some(l.pid),
                l.mode,
                l.granted,
                l.fast_path,
                moment(l.wait_start),
            ]
        })
        .collect()
}

fn oids(items: &[Oid]) -> Datum {
    let items = items.iter().map(|o| Datum::from(*o)).collect();
    Datum::array(Array::from_items(oid::REGTYPE, items))
}

pub(super) fn pg_cursors(_: &Catalog, state: &dyn SystemState) -> Rows {
    let cursors = state.cursors().into_iter();
    cursors
        .map(|c| {
            row![
                c.name,
                c.statement,
                c.holdable,
                c.binary,
                c.scrollable,
                Datum::TimestampTz(c.creation_time),
            ]
        })
        .collect()
}

pub(super) fn pg_prepared_statements(_: &Catalog, state: &dyn SystemState) -> Rows {
    let prepared = state.prepared().into_iter();
    prepared
        .map(|p| {
            row![
                p.name,
                p.statement,
                Datum::TimestampTz(p.prepare_time),
                oids(&p.parameter_types),
                p.result_types.map_or(Datum::Null, |types| oids(&types)),
                p.from_sql,
                Datum::Null,
                Datum::Null,
            ]
        })
        .collect()
}

pub(super) fn pg_prepared_xacts(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let prepared = state.prepared_transactions().into_iter();
    prepared
        .map(|p| {
            let owner = catalog.role(p.owner).map(|role| role.name.clone());
            let database = catalog.database(p.database).map(|d| d.name.clone());
            row![
                xid(Some(p.transaction)),
                p.gid,
                Datum::TimestampTz(p.prepared),
                owner,
                database,
            ]
        })
        .collect()
}

pub(super) fn pg_settings(_: &Catalog, state: &dyn SystemState) -> Rows {
    let settings = state.settings().into_iter();
    settings
        .map(|s| {
            row![
                s.name,
                s.setting,
                s.unit,
                s.category,
                s.short_desc,
                Datum::Null,
                s.context,
                s.var_type,
                s.source,
                s.min_val,
                s.max_val,
                s.enum_vals.map_or(Datum::Null, text_array),
                s.boot_val,
                s.reset_val,
                Datum::Null,
                Datum::Null,
                false,
            ]
        })
        .collect()
}

/// Tables with what they were used for. Scans are not counted.
pub(super) fn pg_stat_user_tables(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let tables = catalog.tables().into_iter();
    tables
        .map(|t| {
            let activity = state.table_activity(t.oid);
            let count = |n: u64| Datum::Int8(n as i64);
            let mut row = row![
                t.oid,
                schema_name(catalog, t.schema),
                t.name.as_str(),
                Datum::Null,
                Datum::Null,
                Datum::Null,
                Datum::Null,
                Datum::Null,
                Datum::Null,
                count(activity.inserted),
                count(activity.updated),
                count(activity.deleted),
                count(activity.hot_updated),
                // Every update that is not heap-only may have gone to another page.
                Datum::Null,
                count(activity.live_rows),
                count(activity.dead_rows),
                count(activity.changed_since_analyze),
                Datum::Null,
            ];
            let maintained = activity.maintained;
            row.extend(maintained.map(|m| m.last.map_or(Datum::Null, Datum::TimestampTz)));
            row.extend(maintained.map(|m| count(m.count)));
            row.extend(maintained.map(|m| Datum::Float8(m.milliseconds)));
            row
        })
        .collect()
}

/// The system's own relations are computed: nothing of theirs is counted.
pub(super) fn pg_stat_all_tables(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    pg_stat_user_tables(catalog, state)
}

/// Indexes; their use is not counted.
pub(super) fn pg_stat_user_indexes(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let row_of = |index: &crate::IndexDef| {
        let table = catalog.table(index.table)?;
        Some(row![
            table.oid,
            index.oid,
            schema_name(catalog, table.schema),
            table.name.as_str(),
            index.name.as_str(),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
        ])
    };
    catalog
        .indexes()
        .into_iter()
        .filter_map(|i| row_of(i))
        .collect()
}

pub(super) fn pg_stat_all_indexes(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    pg_stat_user_indexes(catalog, state)
}

/// The databases with their sessions and transactions; their other counters are not kept.
pub(super) fn pg_stat_database(catalog: &Catalog, state: &dyn SystemState) -> Rows {
    let sessions = state.sessions();
    let clients = |database: &str| {
        let client =
            |s: &&SessionInfo| s.backend_type == "client backend" && s.database == database;
        sessions.iter().filter(client).count() as i32
    };
    let databases = catalog.databases().into_iter();
    databases
        .map(|d| {
            let done = state.database_activity(d.oid);
            let mut row = row![
                d.oid,
                d.name.as_str(),
                clients(&d.name),
                done.committed as i64,
                done.rolled_back as i64,
            ];
            row.resize(STAT_DATABASE_COLUMNS, Datum::Null);
            row
        })
        .collect()
}
const STAT_DATABASE_COLUMNS: usize = 30;

/// As an `int8`.
fn counted(which: Counter) -> i64 {
    counter(which) as i64
}

pub(super) fn pg_stat_archiver(_: &Catalog, state: &dyn SystemState) -> Rows {
    let archiver = state.archiver();
    let file = |file: Option<(String, i64)>| match file {
        Some((name, time)) => (name.into(), Datum::TimestampTz(time)),
        None => (Datum::Null, Datum::Null),
    };
    let (archived, archived_at) = file(archiver.last_archived);
    let (failed, failed_at) = file(archiver.last_failed);
    vec![row![
        archiver.archived as i64,
        archived,
        archived_at,
        archiver.failed as i64,
        failed,
        failed_at,
        Datum::Null,
    ]]
}

/// Pages written to make room, by the page writer or a session that found it too slow; it never
/// stops for having written much.
pub(super) fn pg_stat_bgwriter(_: &Catalog, _: &dyn SystemState) -> Rows {
    let written = counted(Counter::PageWrite) - counted(Counter::CheckpointWrite);
    let taken = counted(Counter::PageRead) + counted(Counter::PageExtend);
    vec![row![written, 0i64, taken, Datum::Null]]
}

/// How transactions stand is written with each checkpoint, but not counted.
pub(super) fn pg_stat_checkpointer(_: &Catalog, _: &dyn SystemState) -> Rows {
    vec![row![
        counted(Counter::CheckpointTimed),
        counted(Counter::CheckpointRequested),
        counted(Counter::CheckpointDone),
        0i64,
        0i64,
        0i64,
        counted(Counter::CheckpointWriteMs) as f64,
        counted(Counter::CheckpointSyncMs) as f64,
        counted(Counter::CheckpointWrite),
        Datum::Null,
        Datum::Null,
    ]]
}

/// How often the log's buffer was full is not counted.
pub(super) fn pg_stat_wal(_: &Catalog, _: &dyn SystemState) -> Rows {
    vec![row![
        counted(Counter::WalRecord),
        counted(Counter::WalPageImage),
        Numeric::from(counted(Counter::WalByte)),
        Datum::Null,
        Datum::Null,
    ]]
}
