//! A session's temporary relations: tables and sequences in a schema of its own, which goes when
//! the session does.
//!
//! They are relations like others, logged and visible in the catalogs; only the search path makes
//! them the session's own. What a server that died left behind is removed by the next start.

use std::cell::Cell;
use std::sync::Arc;

use throng_bind::command::{Ddl, Target, TargetKind};
use throng_catalog::{Catalog, OnCommit, Persistence, TEMPORARY_PREFIX};
use throng_types::{Oid, Result};

use crate::engine::Engine;
use crate::session::Session;

/// A session's own schema.
pub(in crate::session) struct Temporary {
    pub name: String,
    /// Whether the session has ever made it.
    used: Cell<bool>,
    /// As it was last published; plans depend on it.
    published: Cell<Oid>,
}

impl Temporary {
    pub fn new(pid: i32) -> Temporary {
        Temporary {
            name: format!("{TEMPORARY_PREFIX}{pid}"),
            used: Cell::new(false),
            published: Cell::new(Oid::NONE),
        }
    }

    /// The schema, if the catalog has it.
    pub fn schema(&self, catalog: &Catalog) -> Option<Oid> {
        if !self.used.get() {
            return None;
        }
        catalog.schema_by_name(&self.name).map(|schema| schema.oid)
    }

    /// A definition was carried out that may have made it.
    pub fn note(&self, catalog: &Catalog) {
        self.used
            .set(self.used.get() || catalog.schema_by_name(&self.name).is_some());
    }

    /// The session sees another published catalog.
    pub fn catalog_published(&self, catalog: &Catalog) {
        self.published
            .set(self.schema(catalog).unwrap_or(Oid::NONE));
    }

    pub fn published(&self) -> Oid {
        self.published.get()
    }
}

fn drop_all_of(schema: Oid) -> Ddl {
    Ddl::Drop {
        targets: vec![Target {
            kind: TargetKind::Schema,
            oid: schema,
        }],
        cascade: true,
    }
}

impl Session {
    /// The schemas in which unqualified names are sought.
    pub(in crate::session) fn search_path(&self, catalog: &Catalog) -> Vec<Oid> {
        let setting = self.path_setting();
        let temporary = self.temporary.schema(catalog);
        catalog.search_path(&setting, &self.role().name, temporary)
    }

    /// Their names, as the setting has them.
    pub(in crate::session) fn path_setting(&self) -> Vec<String> {
        let mut setting = self.settings.borrow().search_path();
        setting.splice(0..0, self.schema_first.clone());
        setting
    }

    /// Whether a definition makes a temporary relation.
    pub(in crate::session) fn makes_temporary(&self, ddl: &Ddl, catalog: &Catalog) -> bool {
        let schema = match ddl {
            Ddl::CreateTable(create) => create.schema,
            Ddl::CreateView(create) => create.view.schema,
            Ddl::CreateSequence { sequence, .. } => sequence.schema,
            _ => return false,
        };
        // One without a schema makes the temporary one.
        schema == Oid::NONE || self.temporary.schema(catalog) == Some(schema)
    }

    /// The session's temporary schema. Most sessions have none and do not even look at the catalog
    /// for it.
    fn own_schema(&self) -> Option<Oid> {
        if !self.temporary.used.get() {
            return None;
        }
        let catalog = self.catalog();
        self.temporary.schema(&catalog)
    }

    /// What ON COMMIT says of the session's tables, done in the transaction that is about to
    /// commit.
    pub(in crate::session) async fn temporary_on_commit(&mut self) -> Result<()> {
        let Some(schema) = self.own_schema() else {
            return Ok(());
        };
        let catalog = self.catalog();
        let pool = &self.engine.store.pool;
        let (mut emptied, mut dropped) = (Vec::new(), Vec::new());
        let tables = catalog.on_commit(schema).into_iter();
        for table in tables.filter_map(|oid| catalog.table(oid)) {
            match table.persistence {
                Persistence::Temporary(OnCommit::Drop) => dropped.push(Target {
                    kind: TargetKind::Table,
                    oid: table.oid,
                }),
                Persistence::Temporary(OnCommit::DeleteRows)
                    if pool.blocks(table.file).unwrap_or(0) > 0 =>
                {
                    emptied.push(table.oid);
                }
                _ => {}
            }
        }
        if !dropped.is_empty() {
            let drop = Ddl::Drop {
                targets: dropped,
                cascade: true,
            };
            self.define(&drop).await?;
        }
        if !emptied.is_empty() {
            let truncate = Ddl::Truncate {
                only: Vec::new(),
                tables: emptied,
                restart_identity: false,
                cascade: false,
            };
            self.define(&truncate).await?;
        }
        Ok(())
    }

    /// DISCARD TEMP.
    pub(in crate::session) async fn discard_temporary(&mut self) -> Result<()> {
        if let Some(schema) = self.own_schema() {
            self.define(&drop_all_of(schema)).await?;
        }
        Ok(())
    }

    /// In a transaction of its own.
    async fn drop_schema(&mut self, schema: Oid) -> Result<()> {
        self.begin_if_idle();
        self.define(&drop_all_of(schema)).await?;
        self.commit().await
    }

    /// The session ends, and is in no transaction.
    pub(in crate::session) async fn drop_temporary(&mut self) {
        /// Others may grant rights on what goes, comment on it or look at its rows at the same
        /// time.
        const ATTEMPTS: usize = 5;
        for attempt in 1..=ATTEMPTS {
            let Some(schema) = self.own_schema() else {
                return;
            };
            let Err(e) = self.drop_schema(schema).await else {
                return;
            };
            self.rollback().await;
            if attempt == ATTEMPTS {
                tracing::warn!(schema = self.temporary.name, error = %e, "temporary relations not removed");
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Removes the temporary relations of sessions that a server did not live to end. To be called
/// before there are others.
///
/// # Errors
/// What keeps a session from beginning, or a schema from being dropped.
pub async fn drop_leftovers(engine: &Arc<Engine>) -> Result<()> {
    for database in engine.databases.all() {
        let catalog = database.catalog();
        let left = catalog.schemas().into_iter();
        let left: Vec<Oid> = left
            .filter(|schema| schema.name.starts_with(TEMPORARY_PREFIX))
            .map(|schema| schema.oid)
            .collect();
        if left.is_empty() {
            continue;
        }
        let mut session = Session::worker(engine.clone(), catalog.current_database_name().into())?;
        for schema in left {
            session.drop_schema(schema).await?;
        }
        session.close().await;
    }
    Ok(())
}
