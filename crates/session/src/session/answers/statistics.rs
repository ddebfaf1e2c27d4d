//! `pg_stat_get_*`: what the statistics views show, one value at a time. Counters that are not kept
//! are NULL.

use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use throng_catalog::builtin;
use throng_catalog::system::{SystemState, TableActivity};
use throng_types::error::state;
use throng_types::oid::{BOOL, INT8, OID};
use throng_types::{Array, Datum, Error, Oid, Record, oid};
use throng_values::func::EvalResult;

use crate::session::answers::eval_host::SessionHost;
use throng_values::io::datetime::from_unix;

impl SessionHost<'_> {
    /// The value of `pg_stat_get_` and this.
    pub(in crate::session) fn statistic(&self, name: &str, object: Oid) -> Datum {
        match name.strip_prefix("db_") {
            Some(name) => self.database_statistic(name, object),
            None => table_statistic(name, &self.table_activity(object)),
        }
    }

    fn database_statistic(&self, name: &str, database: Oid) -> Datum {
        let activity = self.database_activity(database);
        match name {
            "xact_commit" => (activity.committed as i64).into(),
            "xact_rollback" => (activity.rolled_back as i64).into(),
            "numbackends" => {
                let found = self.catalog.databases().into_iter();
                let name = found.filter(|d| d.oid == database).map(|d| &d.name).next();
                let sessions = self.sessions().into_iter();
                let of_it = sessions
                    .filter(|s| s.backend_type == "client backend")
                    .filter(|s| Some(&s.database) == name);
                (of_it.count() as i32).into()
            }
            // Conflicts with recovery: nothing is replayed.
            conflict if conflict.starts_with("conflict_") => 0i64.into(),
            _ => Datum::Null,
        }
    }

    /// The log's files, as `pg_ls_waldir` lists them: name, size, when it was last written to.
    pub(in crate::session) fn log_files(&self) -> EvalResult {
        let role = self.session.role();
        if !role.superuser && !self.catalog.acts_as(role.oid, builtin::PG_MONITOR) {
            let message = "permission denied for function pg_ls_waldir";
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message).into());
        }
        let directory = Path::new(&self.session.show("data_directory")?).join("wal");
        let entries = std::fs::read_dir(&directory).map_err(|e| unreadable(&directory, &e))?;
        let mut rows = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| unreadable(&directory, &e))?;
            // A file that is taken away meanwhile is not there.
            let Ok(facts) = entry.metadata() else {
                continue;
            };
            if !facts.is_file() {
                continue;
            }
            let written = facts.modified().ok();
            let since = written.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let moment = since.map(|d| from_unix(d.as_micros() as i64));
            rows.push(Datum::Record(Arc::new(Record {
                types: [oid::TEXT, oid::INT8, oid::TIMESTAMPTZ].into(),
                names: None,
                values: vec![
                    entry.file_name().to_string_lossy().into_owned().into(),
                    (facts.len() as i64).into(),
                    moment.map_or(Datum::Null, Datum::TimestampTz),
                ],
            })));
        }
        Ok(Datum::array(Array::from_items(oid::RECORD, rows)))
    }

    /// What a sequence is made of.
    pub(in crate::session) fn sequence_parameters(&self, sequence: Oid) -> EvalResult {
        let Some(def) = self.catalog.sequence(sequence) else {
            let (code, message) = match self.catalog.relation(sequence) {
                None => {
                    let message = format!("relation with OID {sequence} does not exist");
                    (state::UNDEFINED_TABLE, message)
                }
                Some(_) => {
                    let message = format!("cache lookup failed for sequence {sequence}");
                    (state::INTERNAL_ERROR, message)
                }
            };
            return Err(Error::new(code, message).into());
        };
        Ok(Datum::Record(Arc::new(Record {
            types: [INT8, INT8, INT8, INT8, BOOL, INT8, OID].into(),
            names: None,
            values: vec![
                def.start.into(),
                def.min.into(),
                def.max.into(),
                def.increment.into(),
                def.cycle.into(),
                def.cache.into(),
                def.ty.into(),
            ],
        })))
    }
}

fn unreadable(directory: &Path, e: &std::io::Error) -> Error {
    let message = format!("could not open directory \"{}\": {e}", directory.display());
    Error::new(state::IO_ERROR, message)
}

fn table_statistic(name: &str, activity: &TableActivity) -> Datum {
    let count = |n: u64| Datum::Int8(n as i64);
    let [vacuum, autovacuum, analyze, autoanalyze] = &activity.maintained;
    let maintained = match name {
        _ if name.contains("autovacuum") => autovacuum,
        _ if name.contains("autoanalyze") => autoanalyze,
        _ if name.contains("vacuum") => vacuum,
        _ => analyze,
    };
    match name {
        "tuples_inserted" => count(activity.inserted),
        "tuples_updated" => count(activity.updated),
        "tuples_hot_updated" => count(activity.hot_updated),
        "tuples_deleted" => count(activity.deleted),
        "live_tuples" => count(activity.live_rows),
        "dead_tuples" => count(activity.dead_rows),
        "mod_since_analyze" => count(activity.changed_since_analyze),
        "vacuum_count" | "autovacuum_count" | "analyze_count" | "autoanalyze_count" => {
            count(maintained.count)
        }
        "last_vacuum_time"
        | "last_autovacuum_time"
        | "last_analyze_time"
        | "last_autoanalyze_time" => maintained.last.map_or(Datum::Null, Datum::TimestampTz),
        "total_vacuum_time"
        | "total_autovacuum_time"
        | "total_analyze_time"
        | "total_autoanalyze_time" => Datum::Float8(maintained.milliseconds),
        _ => Datum::Null,
    }
}
