//! VACUUM, ANALYZE and CLUSTER: which tables are gone over, and whether the role may.

use throng_types::error::{Severity, state};
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::binder::ddl::table::no_position;
use crate::command::{Command, Maintained};
use throng_catalog::{Relation, TableDef};
use throng_syntax::parse::ast;
use throng_values::acl::right;

impl Binder<'_> {
    /// The tables that VACUUM or ANALYZE goes over: those named with their children, or all. None
    /// where nothing is left.
    pub(in crate::binder) fn maintained(
        &mut self,
        named: &[ast::Maintained],
        verb: &str,
    ) -> Result<Option<Vec<Maintained>>> {
        let mut found = Vec::new();
        if named.is_empty() {
            let own = self.ctx.temporary_schema;
            for table in self.catalog().tables() {
                let temporary = table.persistence.is_temporary();
                let others = temporary && Some(table.schema) != own;
                if !others && self.may_maintain(&Relation::Table(table.clone()), verb) {
                    found.push(Maintained {
                        table: table.oid,
                        name: None,
                        child_of: None,
                        columns: Vec::new(),
                    });
                }
            }
            return Ok(Some(found));
        }
        for one in named {
            self.named(one, verb, &mut found)?;
        }
        Ok((!found.is_empty()).then_some(found))
    }

    fn named(
        &mut self,
        one: &ast::Maintained,
        verb: &str,
        found: &mut Vec<Maintained>,
    ) -> Result<()> {
        let relation = self.relation(&one.name).map_err(no_position)?;
        let allowed = self.may_maintain(&relation, verb);
        let table = match &relation {
            Relation::Table(table) => table.clone(),
            // A system catalog is made anew for each statement: there is nothing to clean.
            Relation::Virtual(table) if table.relkind() == b'r' => return Ok(()),
            _ if !allowed => return Ok(()),
            other => {
                let message = format!(
                    "skipping \"{}\" --- cannot {verb} non-tables or special system tables",
                    other.name()
                );
                self.skipped(Error::new(state::WARNING, message));
                return Ok(());
            }
        };
        has_columns(&table, &one.columns)?;
        if verb == "vacuum" && one.only && table.is_partitioned() {
            let message = format!(
                "VACUUM ONLY of partitioned table \"{}\" has no effect",
                table.name
            );
            self.skipped(Error::new(state::WARNING, message));
        }
        if allowed {
            found.push(Maintained {
                table: table.oid,
                name: Some(table.name.clone()),
                child_of: None,
                columns: one.columns.clone(),
            });
        }
        if one.only {
            return Ok(());
        }
        for child in self.catalog().descendants(table.oid) {
            let relation = self.catalog().relation(child);
            if child != table.oid && relation.is_some_and(|r| self.may_maintain(&r, verb)) {
                found.push(Maintained {
                    table: child,
                    name: None,
                    child_of: Some(table.oid),
                    columns: one.columns.clone(),
                });
            }
        }
        Ok(())
    }

    fn skipped(&mut self, warning: Error) {
        self.notices.push(warning.severity(Severity::Warning));
    }

    /// By the right to it, or as the database's owner.
    pub(in crate::binder) fn has_maintain(&self, relation: &Relation) -> bool {
        let catalog = self.catalog();
        let database = catalog.current_database();
        let owner = database.is_some_and(|d| catalog.acts_as(self.user, d.owner));
        catalog.is_superuser(self.user)
            || owner
            || catalog.relation_rights(self.user, relation, right::MAINTAIN) != 0
    }

    /// Whether the role may; a warning if not.
    fn may_maintain(&mut self, relation: &Relation, verb: &str) -> bool {
        if self.has_maintain(relation) {
            return true;
        }
        let message = format!(
            "permission denied to {verb} \"{}\", skipping it",
            relation.name()
        );
        self.skipped(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
        false
    }

    pub(in crate::binder) fn cluster(
        &mut self,
        table: Option<&ast::Name>,
        index: Option<&str>,
    ) -> Result<Command> {
        let Some(name) = table else {
            return Ok(Command::ClusterAll);
        };
        let relation = self.relation(name).map_err(no_position)?;
        let Relation::Table(table) = &relation else {
            if let Relation::Virtual(_) = relation {
                return Err(Error::unsupported("CLUSTER of a system catalog"));
            }
            let message = format!("\"{}\" is not a table or materialized view", name.last());
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        };
        crate::binder::ddl::privilege::any_right(
            self.catalog(),
            self.user,
            &relation,
            right::MAINTAIN,
        )?;
        let index = self.index_to_cluster(table, index)?;
        Ok(Command::Cluster {
            table: table.oid,
            index,
        })
    }

    /// The index of that name, or the one that the table was clustered by before.
    pub(in crate::binder) fn index_to_cluster(
        &self,
        table: &TableDef,
        name: Option<&str>,
    ) -> Result<Oid> {
        let Some(name) = name else {
            let indexes = self.catalog().indexes_of(table.oid);
            let marked = indexes.iter().find(|index| index.clustered);
            return marked.map(|index| index.oid).ok_or_else(|| {
                let message = format!(
                    "there is no previously clustered index for table \"{}\"",
                    table.name
                );
                Error::new(state::UNDEFINED_OBJECT, message)
            });
        };
        match self.catalog().relation_in(table.schema, name) {
            Some(Relation::Index(index)) if index.table == table.oid => Ok(index.oid),
            Some(_) => {
                let message = format!("\"{name}\" is not an index for table \"{}\"", table.name);
                Err(Error::new(state::WRONG_OBJECT_TYPE, message))
            }
            None => {
                let message = format!(
                    "index \"{name}\" for table \"{}\" does not exist",
                    table.name
                );
                Err(Error::new(state::UNDEFINED_OBJECT, message))
            }
        }
    }
}

/// The columns of a column list are there, and each once.
fn has_columns(table: &TableDef, columns: &[String]) -> Result<()> {
    for (i, name) in columns.iter().enumerate() {
        if !table.columns.iter().any(|c| !c.dropped && c.name == *name) {
            let message = format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            );
            return Err(Error::new(state::UNDEFINED_COLUMN, message));
        }
        if columns[..i].contains(name) {
            let message = format!(
                "column \"{name}\" of relation \"{}\" appears more than once",
                table.name
            );
            return Err(Error::new(state::DUPLICATE_COLUMN, message));
        }
    }
    Ok(())
}
