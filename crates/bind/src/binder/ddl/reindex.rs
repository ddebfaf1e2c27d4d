//! REINDEX: which indexes are meant, and who may make them anew.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::command::Command;
use throng_catalog::{Relation, TableDef};
use throng_syntax::parse::ast::{self, ObjectKind};

impl Binder<'_> {
    pub(in crate::binder) fn reindex(
        &mut self,
        kind: ObjectKind,
        name: &ast::Name,
        concurrently: bool,
    ) -> Result<Command> {
        let (indexes, alone) = match kind {
            ObjectKind::Index => self.index_to_reindex(name)?,
            ObjectKind::Table => self.table_to_reindex(name, concurrently)?,
            ObjectKind::Schema => {
                let schema = self.schema(name.last())?;
                if let Some(def) = self.catalog().schema(schema) {
                    self.must_own(def.owner, "schema", &def.name)?;
                }
                let within = |table: &TableDef| table.schema == schema;
                (self.indexes_where(&within), Some("REINDEX SCHEMA"))
            }
            _ => {
                let current = self.ctx.eval.host.current_database();
                if name.parts.last().is_some_and(|name| *name != current) {
                    let message = "can only reindex the currently open database";
                    return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
                }
                // Those of tables that are somebody else's are passed over.
                let own = |table: &TableDef| self.may_reindex(table);
                (self.indexes_where(&own), Some("REINDEX DATABASE"))
            }
        };
        Ok(Command::Reindex {
            indexes,
            concurrently,
            alone: match concurrently {
                true => Some("REINDEX CONCURRENTLY"),
                false => alone,
            },
        })
    }

    fn to_reindex(&self, name: &ast::Name) -> Result<Relation> {
        self.relation(name).map_err(|mut e| {
            e.fields_mut().position = None;
            e
        })
    }

    fn may_reindex(&self, table: &TableDef) -> bool {
        let relation = self.catalog().relation(table.oid);
        relation.is_some_and(|relation| self.has_maintain(&relation))
    }

    /// Those of a table and of what lies below it that have entries.
    fn indexes_below(&self, table: &TableDef) -> Vec<Oid> {
        let catalog = self.catalog();
        let below = match table.is_partitioned() {
            true => catalog.descendants(table.oid),
            false => vec![table.oid],
        };
        let stored = below
            .into_iter()
            .filter(|oid| catalog.table(*oid).is_some_and(|t| !t.is_partitioned()));
        stored
            .flat_map(|oid| catalog.indexes_of(oid).iter().map(|i| i.oid))
            .collect()
    }

    fn indexes_where(&self, wanted: &dyn Fn(&TableDef) -> bool) -> Vec<Oid> {
        let mut tables: Vec<Arc<TableDef>> = self.catalog().tables().into_iter().cloned().collect();
        tables.retain(|table| !table.is_partitioned() && wanted(table));
        tables.sort_by_key(|table| table.oid);
        let indexes = tables.iter().flat_map(|table| self.indexes_below(table));
        indexes.collect()
    }

    fn index_to_reindex(&self, name: &ast::Name) -> Result<(Vec<Oid>, Option<&'static str>)> {
        let Relation::Index(index) = self.to_reindex(name)? else {
            let message = format!("\"{}\" is not an index", name.last());
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        };
        let catalog = self.catalog();
        let Some(table) = catalog.table(index.table) else {
            return Ok((Vec::new(), None));
        };
        if !self.may_reindex(table) {
            let message = format!("permission denied for index {}", index.name);
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
        }
        if !table.is_partitioned() {
            return Ok((vec![index.oid], None));
        }
        let mut family = vec![index.oid];
        let mut stored = Vec::new();
        for at in self.indexes_below(table) {
            stored.extend(catalog.index(at));
        }
        // An index's parent may be one of a partition that is partitioned itself.
        let mut grown = true;
        while grown {
            let parts = catalog.indexes().into_iter();
            let more: Vec<Oid> = parts
                .filter(|i| i.parent.is_some_and(|p| family.contains(&p)))
                .map(|i| i.oid)
                .filter(|oid| !family.contains(oid))
                .collect();
            grown = !more.is_empty();
            family.extend(more);
        }
        let parts = stored.iter().map(|i| i.oid);
        let parts = parts.filter(|oid| family.contains(oid)).collect();
        Ok((parts, Some("REINDEX INDEX")))
    }

    fn table_to_reindex(
        &mut self,
        name: &ast::Name,
        concurrently: bool,
    ) -> Result<(Vec<Oid>, Option<&'static str>)> {
        let Relation::Table(table) = self.to_reindex(name)? else {
            let message = format!("\"{}\" is not a table or materialized view", name.last());
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        };
        if !self.may_reindex(&table) {
            let message = format!("permission denied for table {}", table.name);
            return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
        }
        let found = self.indexes_below(&table);
        if table.is_partitioned() {
            return Ok((found, Some("REINDEX TABLE")));
        }
        if found.is_empty() {
            let how = match concurrently {
                true => "indexes that can be reindexed concurrently",
                false => "indexes to reindex",
            };
            let message = format!("table \"{}\" has no {how}", table.name);
            self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
        }
        Ok((found, None))
    }
}
