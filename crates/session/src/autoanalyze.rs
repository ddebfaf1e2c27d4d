//! ANALYZE that nobody asks for: of tables of which much has changed since the last one.
//!
//! It runs on the cleaner's thread, a session of its own for each round in which there is something
//! to do. It takes only locks that are free, pauses as the cleaner does, and gives way to whoever
//! waits for a lock that it has: the table is then left for the next round. Temporary tables are
//! their session's own, and partitioned ones are analyzed by hand, as in PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use throng_catalog::Catalog;
use throng_observe::accounted;
use throng_types::{Oid, Result};
use throng_values::settings::ServerSettings;

use crate::engine::Engine;
use crate::maintenance::{Threshold, is_enabled};
use crate::session::Session;

/// So much work, then a pause; and whether to stop.
#[derive(Clone, Copy)]
pub(crate) struct Pace<'a> {
    pub limit: u32,
    pub delay: Duration,
    pub stop: &'a dyn Fn() -> bool,
}

/// The tables of which enough has changed.
fn due(engine: &Engine, catalog: &Catalog, settings: &ServerSettings) -> Vec<Oid> {
    let is_due = |table: &&Arc<throng_catalog::TableDef>| {
        if table.is_partitioned() || table.persistence.is_temporary() || !is_enabled(table) {
            return false;
        }
        let counts = engine.store.relations.rel(table.file).counts();
        let changed = engine.maintenance.changed(table, &counts);
        let known = catalog.stats_of(table.oid).map_or(0.0, |stats| stats.rows);
        Threshold::to_analyze(settings, table).is_passed(changed, known)
    };
    let tables = catalog.tables();
    let due = tables.iter().filter(|table| is_due(table));
    due.map(|table| table.oid).collect()
}

/// Looks at every table that is due. What goes wrong with one is logged.
pub(crate) fn round(engine: &Arc<Engine>, pace: Pace<'_>) {
    let catalogs: Vec<Arc<Catalog>> = engine.databases.all().iter().map(|d| d.catalog()).collect();
    let is_there = |table| {
        catalogs
            .iter()
            .any(|catalog| catalog.table(table).is_some())
    };
    engine.maintenance.forget_unless(is_there);
    let settings = engine.settings();
    for catalog in &catalogs {
        let due = due(engine, catalog, &settings);
        let database = catalog.current_database_name();
        if !due.is_empty()
            && let Err(error) = analyze(engine, database, due, pace)
        {
            tracing::info!(%error, database, "automatic ANALYZE was given up");
        }
    }
}

fn analyze(engine: &Arc<Engine>, database: &str, due: Vec<Oid>, pace: Pace<'_>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let mut session = Session::worker(engine.clone(), database.to_owned())?;
    let waits = session.waits();
    runtime.block_on(accounted(waits, async {
        for table in due {
            if (pace.stop)() {
                break;
            }
            if let Err(error) = session.analyze_by_itself(table, pace).await {
                tracing::info!(%error, table = table.0, "automatic ANALYZE was given up");
            }
        }
        session.close().await;
    }));
    Ok(())
}
