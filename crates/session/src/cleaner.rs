//! The background cleaner: takes away what updates and deletes leave behind, before anybody asks
//! for it.
//!
//! It looks at every table's counters each `autovacuum_naptime` and cleans those that PostgreSQL's
//! rule says are worth it (`autovacuum_vacuum_threshold`, `autovacuum_vacuum_scale_factor`),
//! pausing by `autovacuum_vacuum_cost_delay` and `autovacuum_vacuum_cost_limit`. A table that
//! somebody redefines is left for the next round. Then come the tables of which so much has changed
//! that they are to be analyzed anew ([`autoanalyze`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_access::btree::BTree;
use throng_catalog::{Catalog, TableDef, builtin};
use throng_observe::{Object, WaitEvent, background, waiting};
use throng_sync::Parker;
use throng_txn::vacuum::{Cleaned, CostDelay, vacuum_table};
use throng_txn::{Isolation, LockMode, LockTag, SessionInfo};
use throng_types::Result;
use throng_values::settings::Id;

use crate::autoanalyze::{self, Pace};
use crate::database::Database;
use crate::engine::Engine;
use crate::maintenance::{By, Threshold, is_enabled};
use crate::session::now;

/// The cleaner's thread.
pub struct Cleaner {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    parker: Parker,
}

impl Cleaner {
    pub fn start(engine: &Arc<Engine>) -> Result<Cleaner> {
        let shared = Arc::new(Shared::default());
        let (for_thread, engine) = (shared.clone(), Arc::downgrade(engine));
        let thread = std::thread::Builder::new()
            .name("cleaner".to_owned())
            .stack_size(throng_types::stack::SIZE)
            .spawn(move || {
                let _background = background("cleaner");
                run(&for_thread, &engine);
            })?;
        Ok(Cleaner { shared, thread })
    }

    pub fn stop(self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.parker.unpark();
        // A cleaner that has panicked has said so.
        let _ = self.thread.join();
    }
}

fn run(shared: &Shared, engine: &Weak<Engine>) {
    loop {
        let Some(engine) = engine.upgrade() else {
            return;
        };
        let nap = Duration::from_secs(engine.settings().int(Id::AutovacuumNaptime) as u64);
        let enabled = engine.settings().bool(Id::Autovacuum);
        if enabled && let Err(e) = round(shared, &engine) {
            tracing::error!(error = %e, "the background cleaner met an error");
        }
        drop(engine);
        if shared.stop.load(Ordering::Acquire) {
            return;
        }
        {
            let _idle = waiting(WaitEvent::CleanerIdle, Object::NONE);
            shared.parker.park_timeout(nap);
        }
        if shared.stop.load(Ordering::Acquire) {
            return;
        }
    }
}

fn round(shared: &Shared, engine: &Arc<Engine>) -> Result<()> {
    let settings = engine.settings();
    let limit = match settings.int(Id::AutovacuumVacuumCostLimit) {
        limit @ 1.. => limit,
        _ => settings.int(Id::VacuumCostLimit),
    } as u32;
    let delay = match settings.real(Id::AutovacuumVacuumCostDelay) {
        delay @ 0.0.. => delay,
        _ => settings.real(Id::VacuumCostDelay),
    };
    let delay = Duration::from_secs_f64(delay / 1000.0);
    let stop = || shared.stop.load(Ordering::Acquire);
    for database in engine.databases.all() {
        clean_definitions(engine, &database, &mut CostDelay::new(limit, delay, stop))?;
        let catalog = database.catalog();
        for table in catalog.tables() {
            let counts = engine.store.relations.rel(table.file).counts();
            let threshold = Threshold::to_vacuum(&settings, table);
            if !is_enabled(table) || !counts.wants_cleaning(threshold.rows, threshold.scale) {
                continue;
            }
            let mut pacing = CostDelay::new(limit, delay, stop);
            clean_if_free(engine, &database, table, &mut pacing)?;
            if stop() {
                return Ok(());
            }
        }
    }
    let pace = Pace {
        limit,
        delay,
        stop: &stop,
    };
    autoanalyze::round(engine, pace);
    Ok(())
}

/// What works on a database's things, as the list of sessions has it.
fn worker(engine: &Engine, catalog: &Catalog) -> throng_txn::Session {
    engine.sys.register(SessionInfo {
        backend_type: "autovacuum worker",
        database: catalog.current_database_name().to_owned(),
        ..SessionInfo::default()
    })
}

/// Cleans the heap of a database's definitions, which no table names, unless the database is about
/// to change or go.
fn clean_definitions<F: FnMut() -> bool>(
    engine: &Engine,
    database: &Database,
    pacing: &mut CostDelay<F>,
) -> Result<()> {
    let settings = engine.settings();
    let rows = settings.int(Id::AutovacuumVacuumThreshold).max(0) as u64;
    let scale = settings.real(Id::AutovacuumVacuumScaleFactor);
    let heap = engine.store.relations.heap(database.definitions);
    let counts = engine.store.relations.rel(database.definitions).counts();
    if !counts.wants_cleaning(rows, scale) {
        return Ok(());
    }
    let session = worker(engine, &database.catalog());
    let txn = session.begin(Isolation::ReadCommitted);
    let tag = LockTag::Object {
        class: builtin::class::DATABASE,
        object: database.oid,
    };
    let mode = LockMode::ShareUpdateExclusive;
    if txn.try_lock(tag, mode) && engine.databases.by_oid(database.oid).is_some() {
        engine.sys.advance_horizon(true)?;
        vacuum_table(&engine.sys.cleaner_context(), &heap, &[], pacing)?;
        database.places.forget_freed(&heap)?;
    }
    txn.abort();
    Ok(())
}

/// Cleans a table unless somebody has it locked against that.
fn clean_if_free<F: FnMut() -> bool>(
    engine: &Engine,
    database: &Database,
    table: &TableDef,
    pacing: &mut CostDelay<F>,
) -> Result<()> {
    let session = worker(engine, &database.catalog());
    let txn = session.begin(Isolation::ReadCommitted);
    let tag = LockTag::Relation(table.oid);
    if txn.try_lock(tag, LockMode::ShareUpdateExclusive) {
        // The table may have been dropped or given a new file before the lock was ours.
        let current = database.catalog();
        if current
            .table(table.oid)
            .is_some_and(|now| now.file == table.file)
        {
            session.entry().statement_began(
                &format!("autovacuum: VACUUM {}", table.name),
                throng_txn::now_micros(),
            );
            let began = now();
            let cleaned = clean(engine, &current, table, pacing)?;
            if !cleaned.stopped {
                engine
                    .maintenance
                    .vacuumed(table.oid, By::Background, began);
            }
        }
    }
    txn.abort();
    Ok(())
}

/// Cleans a table and its indexes on this thread; the caller holds it locked.
pub fn clean<F: FnMut() -> bool>(
    engine: &Engine,
    catalog: &Catalog,
    table: &TableDef,
    pacing: &mut CostDelay<F>,
) -> Result<Cleaned> {
    let store = &engine.store;
    let heap = store.relations.heap(table.file);
    let trees: Vec<BTree> = catalog
        .indexes_of(table.oid)
        .iter()
        .map(|index| BTree::open(store.pool.clone(), index.file))
        .collect();
    engine.sys.advance_horizon(true)?;
    vacuum_table(&engine.sys.cleaner_context(), &heap, &trees, pacing)
}
