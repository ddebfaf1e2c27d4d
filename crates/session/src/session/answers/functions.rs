//! Functions that the session answers: privileges, sizes, signals, advisory locks, sleep, server
//! facts.
//!
//! What describes catalog objects as SQL is in [`crate::session::answers::describe`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use throng_buffer::Wait;
use throng_catalog::system::{listed, operator_class, routine};
use throng_catalog::{Relation, SchemaDef, TEMPORARY_PREFIX, TypeDef, builtin};
use throng_observe::{Object, WaitEvent};
use throng_txn::{CancelReason, LockMode, LockScope, LockTag};
use throng_types::error::state;
use throng_types::page::PAGE_SIZE;
use throng_types::sqltype::{made, type_info};
use throng_types::{Array, Datum, Error, FileId, Oid, Record, Result, oid};
use throng_values::func::{EvalHost, EvalResult, EvalStop, ObjectKind};
use throng_values::io::network::inet_value;
use throng_values::io::scalar::wide_number;
use throng_values::io::snapshot::TransactionSnapshot;
use throng_values::settings::SERVER_VERSION;
use throng_values::text_search::configuration::{Configuration, DEFAULT_PARSER};
use throng_values::text_search::dictionary::{Dictionary, SIMPLE_TEMPLATE, SNOWBALL_TEMPLATE};

use crate::database::Database;
use crate::session::answers::eval_host::SessionHost;
use crate::session::answers::system::block_count;
use throng_exec::run::Suspension;
use throng_exec::run::effects::Effect;
use throng_exec::sequence::Counter;

fn int(value: &Datum) -> i64 {
    value.as_i64().unwrap_or_default()
}

pub(super) fn text(value: &Datum) -> &str {
    value.as_str().unwrap_or_default()
}

fn object(value: &Datum) -> Oid {
    Oid(int(value) as u32)
}

/// The longest pause: a year; PostgreSQL's callers that want more loop.
const LONGEST_SLEEP: f64 = 365.0 * 24.0 * 3600.0;

impl SessionHost<'_> {
    pub(in crate::session) fn function(&self, name: &str, args: &[Datum]) -> EvalResult {
        if let Some(what) = name
            .strip_prefix("has_")
            .and_then(|n| n.strip_suffix("_privilege"))
        {
            return self.has_privilege(what, args);
        }
        if name.contains("advisory") {
            return self.advisory(name, args);
        }
        if name.ends_with("_is_visible") {
            return Ok(self.is_visible(name, object(&args[0])));
        }
        if let Some(what) = name.strip_prefix("pg_stat_get_") {
            return Ok(self.statistic(what, object(&args[0])));
        }
        if let Some(answer) = self.log_function(name, args) {
            return answer;
        }
        Ok(match name {
            "cursor_row" | "cursor_table" => return self.position(name, &args[0]),
            "version" => format!("PostgreSQL {SERVER_VERSION}").into(),
            "system_user" => Datum::Null,
            "inet_client_addr" => inet_value(self.client_address().as_deref()),
            "inet_client_port" => self.own_info(|info| info.client_port).map(i32::from).into(),
            "inet_server_addr" => {
                let addresses = self.session.show("listen_addresses")?;
                inet_value(self.client_address().map(|_| addresses).as_deref())
            }
            "inet_server_port" => {
                let port = self.session.show("port")?.parse::<i32>().ok();
                self.client_address().and(port).into()
            }
            "current_query" => self.session.handle.entry().status().query.into(),
            "pg_postmaster_start_time" => Datum::TimestampTz(self.session.engine.started),
            "pg_conf_load_time" => Datum::TimestampTz(self.session.engine.loaded()),
            "pg_my_temp_schema" => {
                let own = self.session.temporary.schema(self.catalog);
                Datum::Oid(own.map_or(0, |oid| oid.0))
            }
            "pg_is_other_temp_schema" => {
                let own = self.session.temporary.schema(self.catalog);
                let schema = self.catalog.schema(object(&args[0]));
                let temporary = |s: &SchemaDef| s.name.starts_with(TEMPORARY_PREFIX);
                schema
                    .is_some_and(|s| temporary(s) && Some(s.oid) != own)
                    .into()
            }
            "pg_notify" => {
                // Said again when its row is evaluated again, it is told once all the same.
                self.session.notify(text(&args[0]), text(&args[1]))?;
                Datum::VOID
            }
            "pg_listening_channels" => {
                let items = self.session.listening().into_iter().map(Datum::from);
                Datum::array(Array::from_items(oid::TEXT, items.collect()))
            }
            "pg_notification_queue_usage" => Datum::Float8(self.session.database.notifier.usage()),
            "pg_jit_available" => false.into(),
            "pg_trigger_depth" => self.session.trigger_depth().into(),
            // Counters are read where they are counted: none is kept back.
            "pg_stat_clear_snapshot" | "pg_stat_force_next_flush" => Datum::VOID,
            "next_xid" => (self.session.engine.sys.next_xid().0 as i64).into(),
            "pg_ls_waldir" => return self.log_files(),
            "pg_sequence_parameters" => return self.sequence_parameters(object(&args[0])),
            "pg_has_role" => self.has_role(args)?,

            "currtid2" => {
                let Datum::Tid(at) = args[1] else {
                    return Ok(Datum::Null);
                };
                Datum::Tid(self.latest_place(text(&args[0]), at)?)
            }
            "pg_relation_size" => self.relation_size(object(&args[0]), args.get(1).map(text)),
            "pg_table_size" => self.table_size(object(&args[0])).into(),
            "pg_indexes_size" => self.indexes_size(object(&args[0])).into(),
            "pg_total_relation_size" => self.total_size(object(&args[0])),
            "pg_database_size" => return self.database_size(&args[0]),
            // Everything is in the one that there is.
            "pg_tablespace_size" => {
                let databases = self.session.engine.databases.all();
                databases
                    .iter()
                    .map(|d| self.size_of(d))
                    .sum::<i64>()
                    .into()
            }
            "pg_relation_filenode" => self
                .file_of(object(&args[0]))
                .map(|file| Oid(file.0))
                .into(),
            "pg_relation_filepath" => self
                .file_of(object(&args[0]))
                .map(|file| format!("base/{file}"))
                .into(),
            "pg_sequence_last_value" => {
                let counter = self.counter(object(&args[0]))?;
                let counter = counter.ok_or_else(|| self.is_no_sequence(object(&args[0])))?;
                counter.last().into()
            }
            "pg_describe_object" | "pg_identify_object" | "pg_identify_object_as_address" => {
                return self.identify(name, args);
            }
            "pg_get_object_address" => return self.address(args),
            "pg_get_acl" => self.acl_of(args)?,
            "pg_basetype" => self.base_type(object(&args[0])).into(),
            "pg_filenode_relation" => self
                .relation_of_file(object(&args[0]), object(&args[1]))
                .into(),
            "pg_indexam_has_property" => {
                super::index_property::method_property(object(&args[0]), text(&args[1]))
            }
            "gin_clean_pending_list" => self.pages_cleaned(object(&args[0]))?,
            "pg_index_has_property" => self.index_property(object(&args[0]), None, text(&args[1])),
            "pg_index_column_has_property" => {
                self.index_property(object(&args[0]), Some(int(&args[1]) as i32), text(&args[2]))
            }
            "row_security_active" => self.row_security_active(&args[0])?.into(),
            "pg_get_sequence_data" => self.sequence_data(object(&args[0]))?,
            "sequence_row" => self.sequence_row(object(&args[0]))?,
            "pg_relation_is_updatable" => match self.catalog.table(object(&args[0])) {
                // PostgreSQL's bits for INSERT, UPDATE and DELETE.
                Some(_) => (4 | 8 | 16).into(),
                None => 0.into(),
            },
            "pg_column_is_updatable" => self.catalog.table(object(&args[0])).is_some().into(),

            "pg_current_snapshot" => self.current_snapshot()?,
            "pg_xact_status" | "txid_status" => {
                let xid = throng_types::Xid(match name {
                    "txid_status" => int(&args[0]) as u64,
                    _ => wide_number(int(&args[0])),
                });
                // No transaction's, and those of what was there from the start.
                match xid.0 {
                    0 => return Ok(Datum::Null),
                    1 | 2 => return Ok("committed".into()),
                    _ => {}
                }
                if xid >= self.session.engine.sys.next_xid() {
                    let message = format!("transaction ID {xid} is in the future");
                    return Err(Error::new(state::INVALID_PARAMETER_VALUE, message).into());
                }
                match self.session.handle.status(xid) {
                    throng_access::XidStatus::InProgress => "in progress".into(),
                    throng_access::XidStatus::Committed(_) => "committed".into(),
                    throng_access::XidStatus::Aborted => "aborted".into(),
                }
            }

            "throng_reset_waits" => self.reset_waits()?,

            "pg_cancel_backend" => self.signal(&args[0], CancelReason::UserRequest)?,
            "pg_terminate_backend" => self.signal(&args[0], CancelReason::Terminate)?,
            // By one of these, in the words of PostgreSQL's own tests of isolation.
            "pg_isolation_test_session_is_blocked" => {
                let mut blocking = self.pids_blocking(int(&args[0]) as u32);
                blocking.extend(self.pids_of_unsafe_snapshot(int(&args[0]) as u32));
                let interesting = match &args[1] {
                    Datum::Array(array) => array.items.as_slice(),
                    _ => &[],
                };
                let is_interesting = |pid: &i32| interesting.contains(&Datum::Int4(*pid));
                blocking.iter().any(is_interesting).into()
            }
            "pg_blocking_pids" => pid_array(self.pids_blocking(int(&args[0]) as u32)),
            "pg_safe_snapshot_blocking_pids" => {
                pid_array(self.pids_of_unsafe_snapshot(int(&args[0]) as u32))
            }
            "pg_sleep" => {
                let Datum::Float8(seconds) = args[0] else {
                    return Ok(Datum::Null);
                };
                return self.sleep(seconds);
            }
            "pg_sleep_until" => {
                let Datum::TimestampTz(at) = args[0] else {
                    return Ok(Datum::Null);
                };
                return self.sleep((at.saturating_sub(crate::session::now())) as f64 / 1e6);
            }
            _ => return self.describe(name, args),
        })
    }

    fn own_info<T>(&self, f: impl FnOnce(&throng_txn::SessionInfo) -> Option<T>) -> Option<T> {
        f(&self.session.handle.entry().status().info)
    }

    /// Where a sequence's counter stands; None where there is no such sequence.
    fn counter(&self, sequence: Oid) -> Result<Option<Counter>, EvalStop> {
        let Some(def) = self.catalog.sequence(sequence) else {
            return Ok(None);
        };
        let counter = throng_exec::sequence::state(&self.session.engine.store, def.file);
        Ok(Some(counter.map_err(Suspension::from)?))
    }

    /// 42809 for a relation of another kind.
    fn is_no_sequence(&self, relation: Oid) -> Error {
        let Some(found) = self.catalog.relation(relation) else {
            let message = format!("could not open relation with OID {relation}");
            return Error::new(state::INTERNAL_ERROR, message);
        };
        let kinds = match &found {
            Relation::Table(def) if def.is_partitioned() => "partitioned tables",
            Relation::Table(def) if def.is_materialized() => "materialized views",
            Relation::Table(_) => "tables",
            Relation::Index(def) => match self.catalog.table(def.table) {
                Some(table) if table.is_partitioned() => "partitioned indexes",
                _ => "indexes",
            },
            Relation::Virtual(def) if def.relkind() == b'r' => "tables",
            _ => "views",
        };
        let message = format!("cannot open relation \"{}\"", found.name());
        Error::new(state::WRONG_OBJECT_TYPE, message)
            .detail(format!("This operation is not supported for {kinds}."))
    }

    /// What `pg_dump` asks of a sequence: where its counter stands, and whether that value was
    /// given out.
    fn sequence_data(&self, sequence: Oid) -> EvalResult {
        let (value, called) = match self.counter(sequence)? {
            Some(counter) => (counter.value.into(), counter.called.into()),
            None => (Datum::Null, Datum::Null),
        };
        Ok(Datum::Record(Arc::new(Record {
            types: [oid::INT8, oid::BOOL].into(),
            names: Some(["last_value".into(), "is_called".into()].into()),
            values: vec![value, called],
        })))
    }

    /// A sequence, read as the table of one row that PostgreSQL keeps it in.
    fn sequence_row(&self, sequence: Oid) -> EvalResult {
        let Some(counter) = self.counter(sequence)? else {
            let message = format!("relation with OID {sequence} does not exist");
            return Err(Error::new(state::UNDEFINED_TABLE, message).into());
        };
        Ok(Datum::Record(Arc::new(Record {
            types: [oid::INT8, oid::INT8, oid::BOOL].into(),
            names: None,
            values: vec![
                counter.value.into(),
                counter.logged.into(),
                counter.called.into(),
            ],
        })))
    }

    /// Whether the type's name alone finds it.
    fn is_found(&self, def: &TypeDef) -> bool {
        let found = self.catalog.find_type(&self.search_path(), &def.name);
        found.is_some_and(|f| f.oid == def.oid)
    }

    fn is_visible(&self, name: &str, object: Oid) -> Datum {
        match name {
            "pg_table_is_visible" => match self.catalog.relation(object) {
                Some(relation) => self
                    .catalog
                    .is_visible(&self.search_path(), &relation)
                    .into(),
                None if self.is_built_in(name, object) => true.into(),
                None => {
                    let ty = made::composite_oid(object).and_then(|ty| self.catalog.made_type(ty));
                    ty.map(|def| self.is_found(def)).into()
                }
            },
            "pg_function_is_visible" if self.catalog.routine(object).is_some() => {
                let path = self.search_path();
                let def = self.catalog.routine(object);
                // Shown without its schema, it is seen.
                def.map(|def| {
                    let shown = self.catalog.routine_display(&path, def);
                    shown == throng_types::lexical::quote_ident(&def.name)
                })
                .into()
            }
            "pg_type_is_visible" if made::is_made(object) => {
                let element = throng_types::sqltype::element_of(object).unwrap_or(object);
                let rows_of = made::serial(element).and_then(|oid| self.catalog.relation(oid));
                if let Some(relation) = rows_of.filter(|_| made::is_composite(element)) {
                    let path = self.search_path();
                    return self.catalog.is_visible(&path, &relation).into();
                }
                let def = self.catalog.made_type(element);
                def.map(|def| self.is_found(def)).into()
            }
            "pg_opclass_is_visible" | "pg_opfamily_is_visible" => {
                let of_extension = operator_class::schema_of_extension_class(self.catalog, object);
                match of_extension {
                    Some(schema) => self.search_path().contains(&schema).into(),
                    None => self.is_built_in(name, object).then_some(true).into(),
                }
            }
            "pg_operator_is_visible" => self.operator_is_visible(object).into(),
            // What is built in lives in pg_catalog, which every path has.
            name => self.is_built_in(name, object).then_some(true).into(),
        }
    }

    /// Whether there is a built-in object of that oid, of the kind that a function of visibility
    /// asks for.
    fn is_built_in(&self, name: &str, object: Oid) -> bool {
        match name {
            "pg_table_is_visible" => listed::index(object).is_some(),
            "pg_function_is_visible" => routine::procedure(object).is_some(),
            "pg_type_is_visible" => type_info(object).is_some() && !made::is_made(object),
            "pg_opclass_is_visible" => operator_class::is_class(object),
            "pg_opfamily_is_visible" => operator_class::is_family(object),
            "pg_collation_is_visible" => self.object_name(ObjectKind::Collation, object).is_some(),
            "pg_ts_config_is_visible" => Configuration::by_oid(object).is_some(),
            "pg_ts_dict_is_visible" => Dictionary::by_oid(object).is_some(),
            "pg_ts_parser_is_visible" => object == DEFAULT_PARSER,
            "pg_ts_template_is_visible" => [SIMPLE_TEMPLATE, SNOWBALL_TEMPLATE].contains(&object),
            // There are no conversions.
            _ => false,
        }
    }

    // Sizes

    fn file_of(&self, relation: Oid) -> Option<FileId> {
        match self.catalog.relation(relation)? {
            Relation::Table(def) => Some(def.file),
            Relation::Index(def) => Some(def.file),
            Relation::Sequence(def) => Some(def.file),
            Relation::View(_) | Relation::Virtual(_) => None,
        }
    }

    fn file_size(&self, file: FileId) -> i64 {
        i64::from(block_count(&self.session.engine.store, file)) * PAGE_SIZE as i64
    }

    fn relation_size(&self, relation: Oid, fork: Option<&str>) -> Datum {
        let size = match (self.catalog.relation(relation), fork) {
            (None, _) => None,
            (Some(_), Some(fork)) if fork != "main" => Some(0),
            _ => Some(
                self.file_of(relation)
                    .map_or(0, |file| self.file_size(file)),
            ),
        };
        size.into()
    }

    fn table_size(&self, relation: Oid) -> Option<i64> {
        self.catalog.relation(relation)?;
        Some(
            self.file_of(relation)
                .map_or(0, |file| self.file_size(file)),
        )
    }

    fn indexes_size(&self, relation: Oid) -> Option<i64> {
        self.catalog.relation(relation)?;
        let indexes = self.catalog.indexes_of(relation).iter();
        Some(indexes.map(|index| self.file_size(index.file)).sum())
    }

    fn total_size(&self, relation: Oid) -> Datum {
        let table = self.table_size(relation);
        table
            .map(|size| size + self.indexes_size(relation).unwrap_or(0))
            .into()
    }

    fn database_size(&self, named: &Datum) -> EvalResult {
        let databases = &self.session.engine.databases;
        let found = match named {
            Datum::Text(name) => {
                let missing = || {
                    let message = format!("database \"{name}\" does not exist");
                    Error::new(state::INVALID_CATALOG_NAME, message)
                };
                Some(databases.by_name(name).ok_or_else(missing)?)
            }
            value => databases.by_oid(Oid(int(value) as u32)),
        };
        Ok(found.map(|database| self.size_of(&database)).into())
    }

    fn size_of(&self, database: &Database) -> i64 {
        let files = database.files().into_iter();
        files.map(|file| self.file_size(file)).sum()
    }

    /// Whether some database's definitions are kept in a file.
    pub(in crate::session) fn is_of_definitions(&self, file: FileId) -> bool {
        let databases = self.session.engine.databases.all();
        databases.iter().any(|d| d.definitions == file)
    }

    // Other sessions

    fn signal(&self, pid: &Datum, reason: CancelReason) -> Result<Datum> {
        let sys = &self.session.engine.sys;
        let pid = int(pid);
        let found = sys.sessions().into_iter().find(|s| i64::from(s.pid) == pid);
        let Some(target) = found else {
            let message = format!("PID {pid} is not a PostgreSQL backend process");
            self.session.warn(Error::new(state::WARNING, message));
            return Ok(false.into());
        };
        self.may_signal(Oid(target.info.user_oid), &reason)?;
        let told = sys.cancel(target.pid, reason);
        // Who means itself gets no answer any more.
        self.session.handle.cancel_flag().check()?;
        Ok(told.into())
    }

    /// 42501 where the role may not end what another's session does.
    fn may_signal(&self, of: Oid, reason: &CancelReason) -> Result<()> {
        let role = self.session.current_role_oid();
        let catalog = self.catalog;
        if catalog.is_superuser(role) {
            return Ok(());
        }
        let (what, verb, object, being, this) = match reason {
            CancelReason::Terminate => (
                "terminate process",
                "terminate",
                "processes",
                "process is being terminated",
                "terminate this process",
            ),
            _ => (
                "cancel query",
                "cancel",
                "queries",
                "query is being canceled",
                "cancel this query",
            ),
        };
        let detail = if catalog.is_superuser(of) {
            format!(
                "Only roles with the SUPERUSER attribute may {verb} {object} of roles with the SUPERUSER attribute."
            )
        } else if catalog.acts_as(role, of) || catalog.acts_as(role, builtin::PG_SIGNAL_BACKEND) {
            return Ok(());
        } else {
            format!(
                "Only roles with privileges of the role whose {being} or with privileges of the \"pg_signal_backend\" role may {this}."
            )
        };
        let message = format!("permission denied to {what}");
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message).detail(detail))
    }

    /// The sessions that keep this one from a lock: holders of it, and those before it in its
    /// queue.
    pub(in crate::session) fn pids_blocking(&self, pid: u32) -> Vec<i32> {
        let pids = self.session.engine.sys.blocking_pids(pid);
        pids.into_iter().map(|pid| pid as i32).collect()
    }

    fn client_address(&self) -> Option<String> {
        self.own_info(|info| info.client_addr.clone())
    }

    /// What the oldest snapshot that the session holds shows, which is the statement's unless there
    /// are cursors.
    fn current_snapshot(&self) -> Result<Datum> {
        let held = self.session.handle.entry().status().snapshot;
        let newest = self.session.transaction()?.txn.snapshot();
        let csn = held.unwrap_or(newest.csn());
        let (mut unseen, mut next) = self.session.engine.sys.unseen(csn)?;
        // What comes behind the last one that has ended is as good as not begun.
        while unseen.last().is_some_and(|last| last.0 + 1 == next.0) {
            next = unseen.pop().unwrap_or(next);
        }
        let snapshot = TransactionSnapshot {
            xmin: unseen.first().unwrap_or(&next).0,
            xmax: next.0,
            running: unseen.iter().map(|xid| xid.0).collect(),
        };
        Ok(Datum::base(oid::PG_SNAPSHOT, snapshot.stored()))
    }

    /// The sessions whose transactions keep this one from a safe snapshot.
    fn pids_of_unsafe_snapshot(&self, pid: u32) -> Vec<i32> {
        let pids = self.session.engine.sys.safe_snapshot_blocking_pids(pid);
        pids.into_iter().map(|pid| pid as i32).collect()
    }

    /// Superusers forget the waits of all.
    fn reset_waits(&self) -> Result<Datum> {
        if !self.session.is_superuser() {
            let message = "permission denied for function throng_reset_waits";
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
        }
        throng_observe::reset();
        Ok(Datum::VOID)
    }

    // Waiting

    fn sleep(&self, seconds: f64) -> EvalResult {
        let effects = &self.session.effects;
        let effect = effects.had_or(
            |e| matches!(e, Effect::Sleep { .. }),
            || {
                let seconds = if seconds > 0.0 {
                    seconds.min(LONGEST_SLEEP)
                } else {
                    0.0
                };
                Ok::<_, EvalStop>(Effect::Sleep {
                    until: Instant::now() + Duration::from_secs_f64(seconds),
                })
            },
        )?;
        let Effect::Sleep { until } = effect else {
            return Ok(Datum::VOID);
        };
        if Instant::now() >= until {
            return Ok(Datum::VOID);
        }
        let wait = Wait::for_future(WaitEvent::Sleep, Object::NONE, async move {
            tokio::time::sleep_until(until.into()).await;
            Ok(())
        });
        Err(Suspension::Wait(wait).into())
    }

    /// `pg_[try_]advisory_[xact_]lock[_shared]` and `pg_advisory_unlock[_shared|_all]`.
    fn advisory(&self, name: &str, args: &[Datum]) -> EvalResult {
        let entry = self.session.handle.entry();
        if name == "pg_advisory_unlock_all" {
            entry.release_session_locks();
            return Ok(Datum::VOID);
        }
        let database = self.session.database.oid;
        let tag = match args {
            [key] => LockTag::Advisory {
                database,
                key: int(key),
            },
            [a, b] => LockTag::AdvisoryPair {
                database,
                keys: (int(a) as i32, int(b) as i32),
            },
            _ => return Err(Error::internal("an advisory lock without a key").into()),
        };
        let mode = match name.ends_with("_shared") {
            true => LockMode::Share,
            false => LockMode::Exclusive,
        };
        if name.starts_with("pg_advisory_unlock") {
            let held = entry.unlock(tag, mode);
            if !held {
                let message = format!("you don't own a lock of type {}", mode.name());
                self.session.warn(Error::new(state::WARNING, message));
            }
            return Ok(held.into());
        }
        let scope = match name.contains("_xact_") {
            true => LockScope::Transaction,
            false => LockScope::Session,
        };
        let tries = name.starts_with("pg_try_");
        let effect = self.session.effects.had_or(
            |e| matches!(e, Effect::Lock { tag: t, mode: m, scope: s, .. } if (*t, *m, *s) == (tag, mode, scope)),
            || {
                let granted = Arc::new(AtomicBool::new(entry.try_lock(tag, mode, scope)));
                Ok::<_, EvalStop>(Effect::Lock { tag, mode, scope, granted })
            },
        )?;
        let Effect::Lock { granted, .. } = effect else {
            return Ok(Datum::VOID);
        };
        let is_granted = granted.load(Ordering::Acquire);
        if tries {
            return Ok(is_granted.into());
        }
        if is_granted {
            return Ok(Datum::VOID);
        }
        let entry = entry.clone();
        let wait = Wait::for_recorded(WaitEvent::LockAdvisory, Object::NONE, async move {
            entry
                .lock(tag, mode, scope, throng_txn::WaitPolicy::Block)
                .await?;
            granted.store(true, Ordering::Release);
            Ok(())
        });
        Err(Suspension::Wait(wait).into())
    }
}

fn pid_array(pids: Vec<i32>) -> Datum {
    let items = pids.into_iter().map(Datum::Int4).collect();
    Datum::array(Array::from_items(oid::INT4, items))
}
