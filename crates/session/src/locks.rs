//! Locks as messages name them, and the log's lines about waits for them.

use std::sync::Weak;

use throng_catalog::{Catalog, builtin};
use throng_txn::{LockReporter, LockTag, SessionEntry};

use crate::engine::Engine;

/// Knows the catalog and the log.
pub(crate) struct Reporter(pub(crate) Weak<Engine>);

impl LockReporter for Reporter {
    /// As PostgreSQL's `DescribeLockTag` does.
    fn describe(&self, tag: &LockTag) -> String {
        let engine = self.0.upgrade();
        let first = builtin::DATABASE;
        match *tag {
            LockTag::Relation(oid) => {
                let has = |catalog: &Catalog| catalog.object(oid).is_some();
                let found = engine.and_then(|engine| engine.databases.holding(first, has));
                format!("relation {oid} of database {}", found.unwrap_or(first))
            }
            LockTag::Object { class, object } => {
                format!("object {object} of class {class} of database {first}")
            }
            LockTag::Tuple { file, tid } => {
                let found = engine.and_then(|engine| engine.databases.table_of_file(first, file));
                match found {
                    Some((database, oid)) => {
                        format!("tuple {tid} of relation {oid} of database {database}")
                    }
                    // A rewritten table's old file.
                    None => tag.to_string(),
                }
            }
            LockTag::Advisory { database, key } => {
                let (high, low) = ((key as u64) >> 32, key as u32);
                format!("advisory lock [{database},{high},{low},1]")
            }
            LockTag::AdvisoryPair {
                database,
                keys: (a, b),
            } => {
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
