//! Names of NOT NULL constraints, which are one of a kind in their schema where nobody says
//! otherwise.
//!
//! A name is kept only where it is not the one that the table and the column make, so those of
//! others are found by taking a name apart at its underscores.

use throng_types::{Oid, Result};

use super::Run;
use throng_catalog::object_name::object_name;
use throng_catalog::{Relation, TableDef};

const SUFFIX: &str = "_not_null";

impl Run<'_> {
    /// Numbers the names of NOT NULL constraints that `before` had not and that another table's
    /// have.
    pub(super) fn settle_not_null_names(
        &mut self,
        oid: Oid,
        before: Option<&TableDef>,
    ) -> Result<()> {
        let mut table = (*self.table(oid)?).clone();
        if table.persistence.is_temporary() {
            return Ok(());
        }
        let was_there = |at: usize| {
            before.is_some_and(|t| t.columns.get(at).is_some_and(|c| c.not_null && !c.dropped))
        };
        let columns = table.columns.iter().enumerate();
        let new: Vec<usize> = columns
            .filter(|(_, c)| c.not_null && !c.dropped && c.not_null_name.is_none())
            .map(|(at, _)| at)
            .filter(|at| !was_there(*at))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut changed = false;
        for at in new {
            let column = table.columns[at].name.clone();
            let taken = |name: &str| {
                let catalog = self.catalog();
                catalog.keeps_not_null_name(table.schema, name, oid)
                    || self.makes_name(&table, name)
            };
            let made = object_name(&table.name, &column, "not_null");
            if !taken(&made) {
                continue;
            }
            let numbered =
                (1..).map(|n| object_name(&table.name, &column, &format!("not_null{n}")));
            table.columns[at].not_null_name = numbered.into_iter().find(|name| !taken(name));
            changed = true;
        }
        if changed {
            self.put_table(table);
        }
        Ok(())
    }

    /// Whether another table of its schema has a column whose NOT NULL has this name without being
    /// given one.
    fn makes_name(&self, table: &TableDef, name: &str) -> bool {
        let Some(stem) = name.strip_suffix(SUFFIX) else {
            return false;
        };
        stem.match_indices('_').any(|(at, _)| {
            let (other, column) = (&stem[..at], &stem[at + 1..]);
            match self.catalog().relation_in(table.schema, other) {
                Some(Relation::Table(other)) if other.oid != table.oid => other
                    .live_columns()
                    .any(|(_, c)| c.name == column && c.not_null && c.not_null_name.is_none()),
                _ => false,
            }
        })
    }
}
