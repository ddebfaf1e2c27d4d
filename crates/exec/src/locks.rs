//! Locks as messages name them, and the log's lines about waits for them.

use std::sync::Weak;

use throng_sql::catalog::builtin;
use throng_txn::{LockReporter, LockTag, SessionEntry};

use crate::engine::Engine;

/// Knows the catalog and the log.
pub(crate) struct Reporter(pub(crate) Weak<Engine>);

impl LockReporter for Reporter {
    /// As PostgreSQL's `DescribeLockTag` does.
    fn describe(&self, tag: &LockTag) -> String {
        let database = builtin::DATABASE;
        match *tag {
            LockTag::Relation(oid) => format!("relation {oid} of database {database}"),
            LockTag::Object { class, object } => {
                format!("object {object} of class {class} of database {database}")
            }
            LockTag::Tuple { file, tid } => {
                let engine = self.0.upgrade();
                let catalog = engine.map(|engine| engine.catalog());
                let table = catalog.and_then(|catalog| {
                    let tables = catalog.tables();
                    tables.iter().find(|t| t.file == file).map(|t| t.oid)
                });
                match table {
                    Some(oid) => format!("tuple {tid} of relation {oid} of database {database}"),
                    // A rewritten table's old file.
                    None => tag.to_string(),
                }
            }
            LockTag::Advisory(key) => {
                let (high, low) = ((key as u64) >> 32, key as u32);
                format!("advisory lock [{database},{high},{low},1]")
            }
            LockTag::AdvisoryPair(a, b) => {
                format!("advisory lock [{database},{},{},2]", a as u32, b as u32)
            }
            LockTag::Transaction(xid) => format!("transaction {xid}"),
        }
    }

    fn log(&self, session: &SessionEntry, message: &str, detail: Option<&str>) {
        let statement = session.query();
        let detail = detail.unwrap_or_default();
        tracing::info!(pid = session.pid(), detail, statement, "{message}");
    }
}
