//! The databases of an engine: each has its definitions, what is published of them, and a heap that
//! they are kept in.
//!
//! ```text
//! Databases ──┬─ postgres ── its definitions, and what all databases share (roles, memberships, the databases)
//!             ├─ template1 ─ its definitions │ the same shared ones, in memory
//!             └─ …
//! ```
//! A session sees one catalog: its database's own objects and the shared ones. A change of a shared
//! object is written to the heap of the first database and published in every catalog. Everything
//! below definitions (pages, transactions, locks, the log) knows nothing of databases: numbers of
//! objects and files are given out for all of them.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;

use throng_catalog::system::DatabaseActivity;
use throng_catalog::{Catalog, CatalogEdit, Change, DatabaseDef, Object, ObjectKind};
use throng_observe::add;
use throng_sync::PerThread;
use throng_types::{FileId, Oid, Result};

use crate::notify::Notifier;
use crate::objects::Places;

/// A catalog with changed definitions.
pub(crate) fn with_changes<'c>(
    catalog: &Catalog,
    changes: impl IntoIterator<Item = &'c Change>,
) -> Result<Catalog> {
    let mut edit = CatalogEdit::new(catalog);
    for change in changes {
        match change {
            Change::Put { kind, json, .. } => edit.put(Object::from_json(kind.tag(), json)?),
            Change::Delete { oid, .. } => edit.delete(*oid),
        }
    }
    Ok(edit.finish().0)
}

/// Definitions as a transaction has changed them.
#[derive(Clone)]
pub(crate) struct Own<C> {
    pub catalog: C,
    /// The version of the published catalog that they are changes of.
    pub over: u64,
}

/// Whether a catalog has what these changes made. The numbers of statistics may come out of their
/// text rounded.
fn has_changes(catalog: &Catalog, changes: &[Change]) -> bool {
    let mut seen = HashSet::new();
    let mut last = changes.iter().rev().filter(|c| seen.insert(c.oid()));
    last.all(|change| {
        let object = catalog.object(change.oid());
        match change {
            Change::Put { kind, .. } if *kind == ObjectKind::Stats => object.is_some(),
            Change::Put { json, .. } => object.is_some_and(|o| o.to_json() == *json),
            Change::Delete { .. } => object.is_none(),
        }
    })
}

/// Transactions that a thread has ended.
#[derive(Default)]
struct Ended {
    committed: AtomicU64,
    rolled_back: AtomicU64,
}

/// One database.
pub(crate) struct Database {
    pub oid: Oid,
    /// The heap of its definitions.
    pub definitions: FileId,
    pub places: Places,
    /// LISTEN hears what is said in the same database.
    pub notifier: Arc<Notifier>,
    catalog: RwLock<Arc<Catalog>>,
    /// The published catalog's version: one load tells a session whether the catalog it has is the
    /// current one.
    version: AtomicU64,
    ended: PerThread<Ended>,
    /// Nobody may enter.
    closed: AtomicBool,
}

impl Database {
    /// `temporary`: the directory for what does not outlive the server.
    pub fn new(
        oid: Oid,
        definitions: FileId,
        places: Places,
        temporary: &Path,
        objects: impl IntoIterator<Item = Object>,
    ) -> Database {
        let catalog = Catalog::load(oid, objects);
        Database {
            oid,
            definitions,
            places,
            notifier: Arc::new(Notifier::new(temporary)),
            version: AtomicU64::new(catalog.version()),
            catalog: RwLock::new(Arc::new(catalog)),
            ended: PerThread::default(),
            closed: AtomicBool::new(false),
        }
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.read().clone()
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn publish<'c>(&self, changes: impl IntoIterator<Item = &'c Change>) -> Result<()> {
        let mut current = self.catalog.write();
        let catalog = with_changes(&current, changes)?;
        self.replace(&mut current, Arc::new(catalog));
        Ok(())
    }

    /// The same where the transaction's own definitions are at hand: they are taken as they are
    /// unless others have published meanwhile, so that it takes no longer the more they are.
    fn publish_own(&self, changes: &[Change], own: Option<Own<Arc<Catalog>>>) -> Result<()> {
        let mut current = self.catalog.write();
        let catalog = match own {
            Some(own) if own.over == current.version() => own.catalog,
            _ => Arc::new(with_changes(&current, changes)?),
        };
        debug_assert!(has_changes(&catalog, changes));
        self.replace(&mut current, catalog);
        Ok(())
    }

    fn replace(&self, current: &mut Arc<Catalog>, catalog: Arc<Catalog>) {
        let version = catalog.version();
        *current = catalog;
        self.version.store(version, Ordering::Release);
    }

    /// Counts a transaction that the calling thread has ended.
    pub fn count_ended(&self, committed: bool) {
        let ended = self.ended.mine();
        match committed {
            true => add(&ended.committed, 1),
            false => add(&ended.rolled_back, 1),
        }
    }

    /// What has been done in it since the server started.
    pub fn activity(&self) -> DatabaseActivity {
        let mut activity = DatabaseActivity::default();
        for ended in self.ended.iter() {
            activity.committed += ended.committed.load(Ordering::Relaxed);
            activity.rolled_back += ended.rolled_back.load(Ordering::Relaxed);
        }
        activity
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub fn set_closed(&self, closed: bool) {
        self.closed.store(closed, Ordering::SeqCst);
    }

    /// The files of everything that is in it, its definitions' among them.
    pub fn files(&self) -> Vec<FileId> {
        let catalog = self.catalog();
        let tables = catalog.tables().into_iter().filter(|t| t.has_rows());
        let tables = tables.map(|t| t.file);
        let indexes = catalog.indexes().into_iter().map(|i| i.file);
        let sequences = catalog.sequences().into_iter().map(|s| s.file);
        let mut files: Vec<FileId> = tables.chain(indexes).chain(sequences).collect();
        files.retain(|file| *file != FileId(0));
        files.push(self.definitions);
        files
    }
}

/// All databases of an engine.
pub(crate) struct Databases {
    by_oid: RwLock<BTreeMap<Oid, Arc<Database>>>,
    first: Arc<Database>,
}

impl Databases {
    /// The first one, and those that its catalog names, opened.
    ///
    /// # Errors
    /// What `open` gives.
    pub fn open(
        first: Database,
        open: impl Fn(&DatabaseDef) -> Result<(Places, Vec<Object>)>,
    ) -> Result<Databases> {
        let first = Arc::new(first);
        let databases = Databases {
            by_oid: RwLock::new(BTreeMap::from([(first.oid, first.clone())])),
            first,
        };
        for def in databases.first.catalog().databases() {
            if def.oid != databases.first.oid {
                let (places, own) = open(def)?;
                databases.add(def.oid, def.definitions, places, own);
            }
        }
        Ok(databases)
    }

    /// The one that what all databases share is kept in.
    pub fn first(&self) -> &Arc<Database> {
        &self.first
    }

    pub fn by_name(&self, name: &str) -> Option<Arc<Database>> {
        let oid = self.first.catalog().database_by_name(name)?.oid;
        self.by_oid(oid)
    }

    pub fn by_oid(&self, oid: Oid) -> Option<Arc<Database>> {
        self.by_oid.read().get(&oid).cloned()
    }

    pub fn all(&self) -> Vec<Arc<Database>> {
        self.by_oid.read().values().cloned().collect()
    }

    /// A new one with its own objects; nobody finds it before its definition is published.
    pub fn add(
        &self,
        oid: Oid,
        definitions: FileId,
        places: Places,
        own: impl IntoIterator<Item = Object>,
    ) {
        // What is shared is not published to some and not to others.
        let mut databases = self.by_oid.write();
        let shared = self.first.catalog();
        let objects = shared.shared_objects().cloned().chain(own);
        let temporary = self.first.notifier.directory();
        let database = Database::new(oid, definitions, places, temporary, objects);
        databases.insert(oid, Arc::new(database));
    }

    pub fn remove(&self, oid: Oid) {
        let removed = self.by_oid.write().remove(&oid);
        if let Some(database) = removed {
            // For whoever still has it: there is nothing in it any more.
            *database.catalog.write() = Arc::new(Catalog::load(oid, []));
        }
    }

    /// Makes a committed transaction's definitions everybody's whom they concern. To be called
    /// while its locks are held.
    ///
    /// # Errors
    /// XX001 for a definition that cannot be read.
    pub fn publish(
        &self,
        database: &Database,
        changes: &[Change],
        own: Option<Own<Arc<Catalog>>>,
    ) -> Result<()> {
        let databases = self.by_oid.read();
        database.publish_own(changes, own)?;
        let shared = || changes.iter().filter(|change| change.is_shared());
        if shared().next().is_none() {
            return Ok(());
        }
        for other in databases.values().filter(|other| other.oid != database.oid) {
            other.publish(shared())?;
        }
        for change in shared() {
            // Whoever was kept out while it was changed may come in.
            if let Change::Put { oid, kind, .. } = change
                && *kind == ObjectKind::Database
                && let Some(database) = databases.get(oid)
            {
                database.set_closed(false);
            }
        }
        Ok(())
    }

    /// The table whose heap a file is, and its database.
    pub fn table_of_file(&self, own: Oid, file: FileId) -> Option<(Oid, Oid)> {
        let table = |catalog: &Catalog| {
            let tables = catalog.tables();
            tables.iter().find(|t| t.file == file).map(|t| t.oid)
        };
        let database = self.holding(own, |catalog| table(catalog).is_some())?;
        Some((database, table(&self.by_oid(database)?.catalog())?))
    }

    /// The database that has something, the given one asked first.
    pub fn holding(&self, own: Oid, has: impl Fn(&Catalog) -> bool) -> Option<Oid> {
        let all = self.all();
        let (own, others): (Vec<_>, Vec<_>) = all.iter().partition(|d| d.oid == own);
        let mut asked = own.into_iter().chain(others);
        asked.find(|d| has(&d.catalog())).map(|d| d.oid)
    }
}
