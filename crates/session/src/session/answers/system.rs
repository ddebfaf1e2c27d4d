//! The running system as `pg_stat_activity`, `pg_locks` and the other virtual relations show it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use throng_bind::binder;
use throng_catalog::system::{
    ArchiverInfo, CursorInfo, DatabaseActivity, EncryptionInfo, LockInfo, Maintained, PreparedInfo,
    PreparedTransactionInfo, SessionInfo, SettingInfo, SlotInfo, StallInfo, StructureInfo,
    SystemState, TableActivity, WaitInfo, WaitingInfo, WalSenderInfo,
};
use throng_catalog::{Catalog, IndexDef, PolicyCondition, Relation, TableDef, ViewDef};
use throng_txn::{ArchivedFile, LockMode, LockTag, ReadLock, ReadTarget, SessionStatus};
use throng_types::{FileId, Lsn, Oid};
use throng_values::io::datetime::{from_unix, parse_timestamptz};
use throng_values::settings::value::raw;
use throng_values::settings::{INERT, Id, Kind, Setting, Source, Unit, is_private};

use crate::session::answers::eval_host::SessionHost;
use throng_exec::sequence;
use throng_exec::store::Store;

/// A limit of a setting, as C's `%g` prints it.
fn bound(value: f64) -> String {
    if value.abs() < 1e6 {
        return value.to_string();
    }
    let text = format!("{value:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}e+{exponent:0>2}")
}

/// What `pg_settings` shows of a setting's definition.
fn setting_info(setting: &Setting) -> SettingInfo {
    let (unit, min_val, max_val, enum_vals) = match &setting.kind {
        Kind::Int { min, max, unit } => {
            let unit = unit.name().map(str::to_owned);
            (unit, Some(min.to_string()), Some(max.to_string()), None)
        }
        Kind::Pause { min, max } => {
            let unit = Unit::Milliseconds.name().map(str::to_owned);
            (unit, Some(min.to_string()), Some(max.to_string()), None)
        }
        Kind::Real { min, max } => (None, Some(bound(*min)), Some(bound(*max)), None),
        Kind::Enum(words) => (
            None,
            None,
            None,
            Some(words.iter().map(|w| (*w).to_owned()).collect()),
        ),
        Kind::Bool | Kind::Text(_) | Kind::Parts(_) | Kind::Charset => (None, None, None, None),
    };
    SettingInfo {
        name: setting.name.to_owned(),
        unit,
        category: setting.category.to_owned(),
        short_desc: setting.description.to_owned(),
        context: setting.context.name().to_owned(),
        var_type: setting.kind.type_name().to_owned(),
        min_val,
        max_val,
        enum_vals,
        boot_val: Some(setting.default.to_owned()),
        ..SettingInfo::default()
    }
}

/// Blocks of a file; none where it cannot be told.
pub(in crate::session) fn block_count(store: &Store, file: FileId) -> u32 {
    store.pool.blocks(file).unwrap_or(0)
}

impl SystemState for SessionHost<'_> {
    fn current_user(&self) -> Oid {
        self.session.current_role_oid()
    }

    fn kept_text(&self, relation: Oid, text: &str) -> String {
        self.shown_text(text, relation, false)
    }

    fn sessions(&self) -> Vec<SessionInfo> {
        self.session
            .engine
            .sys
            .sessions()
            .into_iter()
            .map(session_row)
            .collect()
    }

    fn oldest_xid(&self) -> u64 {
        // First the next one: who begins meanwhile is not before it.
        let next = self.session.engine.sys.next_xid().0;
        let running = self.sessions().into_iter().filter_map(|s| s.xid);
        running.fold(next, u64::min)
    }

    fn locks(&self) -> Vec<LockInfo> {
        let sys = &self.session.engine.sys;
        let ids: HashMap<u32, (u32, u32)> = sys.virtual_transactions().into_iter().collect();
        let own = ids.iter().filter(|(_, (_, number))| *number != 0);
        let prepared = sys.prepared_holders();
        let own = own.filter(|(pid, _)| !prepared.contains_key(pid));
        let own = own.map(|(pid, id)| LockInfo {
            lock_type: "virtualxid".to_owned(),
            virtual_transaction: virtual_name(*id),
            pid: *pid as i32,
            mode: LockMode::Exclusive.name().to_owned(),
            granted: true,
            fast_path: true,
            ..LockInfo::default()
        });
        let locks = sys.locks().into_iter();
        let locks = locks.map(|lock| {
            let id = ids.get(&lock.pid).copied().unwrap_or_default();
            let pid = match prepared.contains_key(&lock.pid) {
                true => 0,
                false => lock.pid,
            };
            self.lock_row(throng_txn::LockInfo { pid, ..lock }, virtual_name(id))
        });
        let reads = self.read_locks(&ids).into_iter();
        locks.chain(reads).chain(own).collect()
    }

    fn settings(&self) -> Vec<SettingInfo> {
        let settings = self.session.settings.borrow();
        let server = self.session.engine.settings();
        let sees_all = self.session.may_see_all_settings();
        let known = settings.all().zip(Id::ALL);
        let known = known.filter(|((setting, ..), _)| sees_all || !is_private(setting.name));
        let known = known.map(|((setting, value, source), id)| SettingInfo {
            setting: match id {
                // These are the transaction's, which knows them.
                Id::TransactionIsolation | Id::TransactionReadOnly | Id::TransactionDeferrable => {
                    self.session.show(setting.name).unwrap_or_default()
                }
                _ => raw(value),
            },
            source: source.name().to_owned(),
            reset_val: Some(raw(server.get(*id))),
            ..setting_info(setting)
        });
        let inert = INERT.iter().filter(|inert| inert.is_listed());
        let inert = inert.map(|inert| {
            let value = settings.inert_value(inert);
            let source = match value == inert.setting.default {
                true => Source::Default,
                false => Source::Session,
            };
            SettingInfo {
                setting: value,
                source: source.name().to_owned(),
                reset_val: Some(inert.setting.default.to_owned()),
                ..setting_info(&inert.setting)
            }
        });
        known.chain(inert).collect()
    }

    fn prepared(&self) -> Vec<PreparedInfo> {
        let prepared = self.session.prepared.borrow();
        let named = prepared.iter().filter(|(name, _)| !name.is_empty());
        let mut rows: Vec<PreparedInfo> = named
            .map(|(name, prepared)| PreparedInfo {
                name: name.clone(),
                statement: prepared.known().sql.to_string(),
                prepare_time: prepared.made_at,
                parameter_types: prepared.known().params.iter().map(|t| t.oid).collect(),
                result_types: prepared.known().columns.as_ref().map(|shape| {
                    let fields = shape.fields.iter();
                    fields.map(|field| field.ty.oid).collect()
                }),
                from_sql: prepared.from_sql,
            })
            .collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        rows
    }

    fn prepared_transactions(&self) -> Vec<PreparedTransactionInfo> {
        let prepared = self.session.engine.sys.prepared().into_iter();
        prepared
            .map(|info| PreparedTransactionInfo {
                transaction: info.xid.0,
                gid: info.gid,
                prepared: from_unix(info.at),
                owner: info.owner,
                database: info.database,
            })
            .collect()
    }

    fn cursors(&self) -> Vec<CursorInfo> {
        let portals = self.session.portals.borrow();
        let declared = portals.cursors().into_iter();
        declared
            .map(|(name, portal)| CursorInfo {
                name: name.to_owned(),
                statement: portal.sql.to_string(),
                holdable: portal.kind.hold,
                binary: portal.kind.binary,
                scrollable: portal.kind.scroll,
                creation_time: portal.made_at,
            })
            .collect()
    }

    fn relation_size(&self, oid: Oid) -> (u32, f64) {
        let store = &self.session.engine.store;
        match self.catalog.relation(oid) {
            Some(Relation::Table(def)) => {
                let pages = block_count(store, def.file);
                // What was counted since the start, or what ANALYZE found.
                let counted = store.relations.rel(def.file).counts().live.max(0) as f64;
                let analyzed = self.catalog.stats_of(oid).map_or(0.0, |stats| stats.rows);
                (pages, if counted > 0.0 { counted } else { analyzed })
            }
            Some(Relation::Index(def)) => (block_count(store, def.file), 0.0),
            Some(Relation::Sequence(_)) => (1, 1.0),
            Some(Relation::View(_) | Relation::Virtual(_)) | None => (0, 0.0),
        }
    }

    fn view_definition(&self, view: &ViewDef) -> Option<String> {
        self.definition_of(view, false)
    }

    fn index_as_seen(&self, index: &IndexDef) -> Option<IndexDef> {
        self.index_as_seen(index, false)
    }

    fn policy_text(&self, table: &Arc<TableDef>, condition: &PolicyCondition) -> String {
        self.policy_shown(table, condition, false)
    }

    fn updatable_columns(&self, view: &Arc<ViewDef>) -> Vec<bool> {
        binder::updatable_columns(view, self.catalog, self.eval()).unwrap_or_default()
    }

    fn sequence_value(&self, oid: Oid) -> Option<i64> {
        let def = self.catalog.sequence(oid)?;
        // A page that is not in memory is not waited for here: it is that of a sequence nobody
        // uses.
        let counter = sequence::state(&self.session.engine.store, def.file);
        counter.ok()?.last()
    }

    fn database_activity(&self, oid: Oid) -> DatabaseActivity {
        let database = self.session.engine.databases.by_oid(oid);
        database.map_or_else(DatabaseActivity::default, |d| d.activity())
    }

    fn table_activity(&self, oid: Oid) -> TableActivity {
        let Some(def) = self.catalog.table(oid) else {
            return TableActivity::default();
        };
        let counts = self.session.engine.store.relations.rel(def.file).counts();
        let record = self.session.engine.maintenance.of(oid);
        let done = |done: crate::maintenance::Done| Maintained {
            last: done.last,
            count: done.count,
            milliseconds: done.milliseconds,
        };
        TableActivity {
            inserted: counts.inserted,
            updated: counts.updated,
            hot_updated: counts.hot_updated,
            deleted: counts.deleted,
            live_rows: counts.live.max(0) as u64,
            dead_rows: counts.dead.max(0) as u64,
            changed_since_analyze: self.session.engine.maintenance.changed(def, &counts),
            maintained: [
                done(record.vacuum),
                done(record.autovacuum),
                done(record.analyze),
                done(record.autoanalyze),
            ],
        }
    }

    fn waits(&self) -> Vec<WaitInfo> {
        self.wait_rows()
    }

    fn waiting_now(&self) -> Vec<WaitingInfo> {
        self.waiting_rows()
    }

    fn structures(&self) -> Vec<StructureInfo> {
        self.structure_rows()
    }

    fn stalls(&self) -> Vec<StallInfo> {
        self.stall_rows()
    }

    fn wal_senders(&self) -> Vec<WalSenderInfo> {
        let position = |lsn: Lsn| (lsn != Lsn::ZERO).then_some(lsn);
        let wanted = self.session.engine.sys.synchronous_replication().standbys();
        let senders = self.session.engine.senders.list().into_iter();
        let senders = senders.map(|(pid, status)| {
            let priority = wanted
                .as_ref()
                .map_or(0, |wanted| wanted.priority(&status.name));
            (pid, status, priority)
        });
        let senders: Vec<_> = senders.collect();
        // The first ones by their priority are those that count.
        let mut places: Vec<usize> = senders.iter().map(|(_, _, at)| *at).collect();
        places.retain(|at| *at > 0);
        places.sort_unstable();
        let last = wanted
            .as_ref()
            .and_then(|wanted| places.get(wanted.count - 1).or(places.last()));
        let sync_state = |at: usize| match &wanted {
            Some(_) if at == 0 => "async",
            Some(wanted) if !wanted.by_priority => "quorum",
            Some(_) if last.is_some_and(|last| at <= *last) => "sync",
            Some(_) => "potential",
            None => "async",
        };
        let infos = senders
            .into_iter()
            .map(|(pid, status, priority)| WalSenderInfo {
                pid: pid as i32,
                state: status.state.name(),
                priority: priority as i32,
                sync_state: sync_state(priority),
                sent: position(status.sent),
                written: position(status.written),
                flushed: position(status.flushed),
                applied: position(status.applied),
                reply_time: status.reply_time,
            });
        infos.collect()
    }

    fn replication_slots(&self) -> Vec<SlotInfo> {
        let system = &self.session.engine.sys;
        let most = system
            .config()
            .max_slot_wal_keep_size
            .load(Ordering::Relaxed);
        let inserted = system.wal().inserted();
        let slots = system.replication_slots().list().into_iter();
        let infos = slots.map(|slot| {
            let kept = slot.restart.map(|lsn| inserted.0.saturating_sub(lsn.0));
            SlotInfo {
                safe_size: kept
                    .filter(|_| most != u64::MAX)
                    .map(|kept| most as i64 - kept as i64),
                name: slot.name,
                temporary: slot.temporary,
                active_pid: slot.active_pid.map(|pid| pid as i32),
                restart: slot.restart,
                lost: slot.lost,
            }
        });
        infos.collect()
    }

    fn archiver(&self) -> ArchiverInfo {
        let status = self.session.engine.sys.archiver_status();
        let status = status.unwrap_or_default();
        let file = |file: ArchivedFile| (file.name, from_unix(file.time));
        ArchiverInfo {
            archived: status.archived,
            last_archived: status.last_archived.map(file),
            failed: status.failed,
            last_failed: status.last_failed.map(file),
        }
    }

    fn now(&self) -> i64 {
        self.session.transaction_time()
    }

    fn moment(&self, text: &str) -> Option<i64> {
        parse_timestamptz(&self.eval(), text).ok()
    }
}

fn session_row(status: SessionStatus) -> SessionInfo {
    let event = status.wait.map(|wait| wait.event);
    SessionInfo {
        pid: status.pid as i32,
        database: status.info.database,
        user: Oid(status.info.user_oid),
        application_name: status.info.application_name,
        client_addr: status.info.client_addr,
        client_port: status.info.client_port.map_or(-1, i32::from),
        backend_start: from_unix(status.backend_start),
        xact_start: status.xact_start.map(from_unix),
        query_start: status.query_start.map(from_unix),
        state_change: Some(from_unix(status.state_change)),
        wait_event_type: event.map(|e| e.class().name().to_owned()),
        wait_event: event.map(|e| e.name().to_owned()),
        state: Some(status.state.name().to_owned()),
        xid: status.xid.map(|xid| xid.0),
        query: status.query,
        backend_type: status.info.backend_type.to_owned(),
        encryption: status.info.encryption.map(|e| EncryptionInfo {
            version: e.version,
            cipher: e.cipher,
            bits: e.bits,
        }),
    }
}

/// A virtual transaction's id as `pg_locks` spells it.
fn virtual_name((session, transaction): (u32, u32)) -> String {
    format!("{session}/{transaction}")
}

impl SessionHost<'_> {
    /// What serializable transactions have read.
    fn read_locks(&self, ids: &HashMap<u32, (u32, u32)>) -> Vec<LockInfo> {
        let locks = self.session.engine.sys.read_locks();
        if locks.is_empty() {
            return Vec::new();
        }
        let mut relations: HashMap<FileId, Oid> = HashMap::new();
        for table in self.catalog.tables() {
            relations.insert(table.file, table.oid);
            let indexes = self.catalog.indexes_of(table.oid);
            relations.extend(indexes.iter().map(|index| (index.file, index.oid)));
        }
        let row = |lock: ReadLock| {
            let (lock_type, page, tuple) = match lock.target {
                ReadTarget::Relation => ("relation", None, None),
                ReadTarget::Page(block) => ("page", Some(block as i32), None),
                ReadTarget::Row(tid) => ("tuple", Some(tid.block as i32), Some(tid.slot as i16)),
                // A stretch of keys, which PostgreSQL takes by whole pages.
                ReadTarget::Gap => ("page", None, None),
            };
            LockInfo {
                lock_type: lock_type.to_owned(),
                database: Some(self.session.database.oid),
                relation: relations.get(&lock.file).copied(),
                page,
                tuple,
                virtual_transaction: virtual_name(ids.get(&lock.pid).copied().unwrap_or_default()),
                pid: lock.pid as i32,
                mode: "SIReadLock".to_owned(),
                granted: true,
                ..LockInfo::default()
            }
        };
        locks.into_iter().map(row).collect()
    }

    fn lock_row(&self, lock: throng_txn::LockInfo, virtual_transaction: String) -> LockInfo {
        let mut row = LockInfo {
            lock_type: lock.tag.kind().to_owned(),
            virtual_transaction,
            pid: lock.pid as i32,
            mode: lock.mode.name().to_owned(),
            granted: lock.granted,
            fast_path: lock.fast_path,
            wait_start: lock.wait_start.map(from_unix),
            ..LockInfo::default()
        };
        let databases = &self.session.engine.databases;
        let own = self.session.database.oid;
        // What is not found anywhere is the system's, which every database has.
        let of_relation = |oid: Oid| {
            let has = |catalog: &Catalog| catalog.object(oid).is_some();
            databases.holding(own, has).unwrap_or(own)
        };
        match lock.tag {
            LockTag::Relation(oid) => {
                row.database = Some(of_relation(oid));
                row.relation = Some(oid);
            }
            LockTag::Object { class, object } => {
                row.database = Some(own);
                row.class = Some(class.0);
                row.object = Some(object.0);
                row.part = Some(0);
            }
            LockTag::Tuple { file, tid } => {
                let found = databases.table_of_file(own, file);
                row.database = Some(found.map_or(own, |(database, _)| database));
                row.relation = found.map(|(_, table)| table);
                row.page = Some(tid.block as i32);
                row.tuple = Some(tid.slot as i16);
            }
            LockTag::Advisory { database, key } => {
                row.database = Some(database);
                row.class = Some((key as u64 >> 32) as u32);
                row.object = Some(key as u32);
                row.part = Some(1);
            }
            LockTag::AdvisoryPair {
                database,
                keys: (a, b),
            } => {
                row.database = Some(database);
                row.class = Some(a as u32);
                row.object = Some(b as u32);
                row.part = Some(2);
            }
            LockTag::Transaction(xid) => row.transaction = Some(xid.0),
        }
        row
    }
}
