//! What is waited for, in words.

use std::collections::HashMap;

use throng_observe::{Object, ObjectKind, WaitEvent};
use throng_types::{FileId, Oid, PageId, Tid};

use crate::session::answers::eval_host::SessionHost;

/// Names of relations, by file and by oid.
pub(super) struct Names<'a> {
    host: &'a SessionHost<'a>,
    path: Vec<Oid>,
    by_file: HashMap<FileId, Oid>,
}

impl<'a> Names<'a> {
    pub fn new(host: &'a SessionHost<'a>) -> Names<'a> {
        let tables = host.catalog.tables();
        let indexes = host.catalog.indexes();
        let of_tables = tables.iter().map(|table| (table.file, table.oid));
        let of_indexes = indexes.iter().map(|index| (index.file, index.oid));
        Names {
            path: host.search_path(),
            by_file: of_tables.chain(of_indexes).collect(),
            host,
        }
    }

    /// None where the event has no object.
    pub fn of(&self, event: WaitEvent, object: Object) -> Option<String> {
        let number = object.number;
        Some(match object.kind {
            ObjectKind::None => return unnamed(event),
            ObjectKind::Number => number.to_string(),
            ObjectKind::Page => {
                let page = PageId::from_raw(number);
                format!("{}, block {}", self.file(page.file()), page.block())
            }
            ObjectKind::File => self.file(FileId(number as u32)),
            ObjectKind::Relation => self.relation(Oid(number as u32)),
            ObjectKind::Catalog => self.object(Oid(number as u32)),
            ObjectKind::Tuple => {
                let tid = Tid::from_u64(number);
                let file = self.file(FileId(object.scope));
                format!("row ({},{}) of {file}", tid.block, tid.slot)
            }
            ObjectKind::Transaction => format!("transaction {number}"),
            ObjectKind::Advisory => format!("advisory lock {}", number as i64),
            ObjectKind::AdvisoryPair => {
                let (a, b) = ((number >> 32) as i32, number as i32);
                format!("advisory lock ({a}, {b})")
            }
            ObjectKind::Lsn => log(),
            ObjectKind::Core => format!("core {number}"),
            ObjectKind::Lock => object.lock_name()?.to_owned(),
        })
    }

    fn file(&self, file: FileId) -> String {
        match self.by_file.get(&file) {
            Some(oid) => self.relation(*oid),
            None if self.host.is_of_definitions(file) => "the system catalog".to_owned(),
            // Dropped since, or made by a transaction that has not committed.
            None => format!("file base/{file}"),
        }
    }

    fn relation(&self, oid: Oid) -> String {
        let Some(relation) = self.host.catalog.relation(oid) else {
            return format!("relation {oid}");
        };
        let kind = relation.word();
        let name = self.host.catalog.display_name(&self.path, &relation);
        format!("{kind} {name}")
    }

    fn object(&self, oid: Oid) -> String {
        let catalog = self.host.catalog;
        if let Some(role) = catalog.role(oid) {
            return format!("role {}", role.name);
        }
        if let Some(database) = catalog.database(oid) {
            return format!("database {}", database.name);
        }
        match catalog.schema(oid) {
            Some(schema) => format!("schema {}", schema.name),
            None => format!("object {oid}"),
        }
    }
}

fn log() -> String {
    "the write-ahead log".to_owned()
}

/// Waits without an object: they have none, or it is one of many.
fn unnamed(event: WaitEvent) -> Option<String> {
    match event {
        WaitEvent::WalFlush
        | WaitEvent::WalInsert
        | WaitEvent::WalRead
        | WaitEvent::WalSync
        | WaitEvent::WalWrite
        | WaitEvent::CommitDelay => Some(log()),
        WaitEvent::LatchShared | WaitEvent::LatchExclusive => Some("other pages".to_owned()),
        WaitEvent::PageRead
        | WaitEvent::PageWrite
        | WaitEvent::PageArrival
        | WaitEvent::FreeFrame
        | WaitEvent::DataFlush
        | WaitEvent::DataSync
        | WaitEvent::Extend
        | WaitEvent::Truncate
        | WaitEvent::LockExtend
        | WaitEvent::LockRelation => Some("other relations".to_owned()),
        WaitEvent::LockTuple | WaitEvent::LockTransaction => Some("other rows".to_owned()),
        WaitEvent::LockAdvisory | WaitEvent::LockObject | WaitEvent::SpinLock => {
            Some("others".to_owned())
        }
        _ => None,
    }
}
