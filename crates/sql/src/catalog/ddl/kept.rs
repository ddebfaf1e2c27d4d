//! Defaults and CHECKs after something that they name got another name: their texts are written anew.

use std::sync::Arc;

use throng_types::{Error, Oid, Result};

use super::Run;
use crate::bind::{self, Kept};
use crate::catalog::{Catalog, ConstraintDef, ConstraintKind, Object, TableDef};

impl Run<'_> {
    /// After an object got another name or schema. Columns' names are followed where columns are renamed.
    pub(super) fn rewrite_kept(&mut self, before: &Catalog, object: Oid) -> Result<()> {
        let name = match before.object(object) {
            Some(Object::Type(def)) => def.name.clone(),
            Some(Object::Routine(def)) => def.name.clone(),
            Some(Object::Schema(def)) => def.name.clone(),
            Some(Object::Table(def)) => def.name.clone(),
            Some(Object::Sequence(def)) => def.name.clone(),
            _ => return Ok(()),
        };
        self.rewrite_naming(before, &name)
    }

    /// Writes anew what holds a name, if only by chance: a text that means the same comes out the same.
    pub(super) fn rewrite_naming(&mut self, before: &Catalog, name: &str) -> Result<()> {
        for old in before.tables() {
            if self.catalog().table(old.oid).is_some() {
                self.rewrite_defaults(before, old, name)?;
                self.rewrite_checks(before, old, name)?;
                self.rewrite_conditions(before, old, name)?;
            }
        }
        Ok(())
    }

    fn rewrite_defaults(
        &mut self,
        before: &Catalog,
        old: &Arc<TableDef>,
        name: &str,
    ) -> Result<()> {
        let mut table = (*self.table(old.oid)?).clone();
        let mut changed = false;
        for (was, column) in old.columns.iter().zip(&mut table.columns) {
            let Some(text) = was.default.as_ref().filter(|text| text.contains(name)) else {
                continue;
            };
            let kept = (&**text, Kept::Default(was));
            let again = bind::kept_again(kept, old, before, self.edit.catalog(), self.host.eval());
            let again = again.map_err(|e| lost(&e))?;
            changed |= column.default.as_ref() != Some(&again);
            column.default = Some(again);
        }
        if changed {
            self.edit.put(table);
        }
        Ok(())
    }

    fn rewrite_checks(&mut self, before: &Catalog, old: &Arc<TableDef>, name: &str) -> Result<()> {
        for constraint in before.constraints_of(old.oid) {
            let ConstraintKind::Check { expr, columns } = &constraint.kind else {
                continue;
            };
            let Some(now) = self.catalog().constraint(constraint.oid).cloned() else {
                continue;
            };
            // What was renamed in the text already stays as it is.
            let same = matches!(&now.kind, ConstraintKind::Check { expr: e, .. } if e == expr);
            if !same || !expr.contains(name) {
                continue;
            }
            let kept = (&**expr, Kept::Check);
            let again = bind::kept_again(kept, old, before, self.catalog(), self.host.eval());
            let kind = ConstraintKind::Check {
                expr: again.map_err(|e| lost(&e))?,
                columns: columns.clone(),
            };
            self.edit.put(ConstraintDef {
                kind,
                ..(*now).clone()
            });
        }
        Ok(())
    }
}

/// The text cannot be read: it names what is not found from everywhere.
fn lost(error: &Error) -> Error {
    Error::unsupported(format!(
        "renaming what a default or a check constraint may name, which cannot be read ({})",
        error.message()
    ))
}
