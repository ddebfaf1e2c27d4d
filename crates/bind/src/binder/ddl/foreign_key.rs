//! Foreign keys as they are written.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::Binder;
use crate::binder::ddl::table::no_position;
use crate::command::NewConstraintKind;
use throng_catalog::{Relation, TableDef};
use throng_syntax::parse::ast::{self, Pos};

impl Binder<'_> {
    pub(in crate::binder) fn foreign_key(
        &mut self,
        columns: &[(String, Pos)],
        period: bool,
        references: &ast::References,
        table: &TableDef,
    ) -> Result<NewConstraintKind> {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in columns {
            if table.attnum(name).is_none() {
                let message = format!(
                    "column \"{name}\" referenced in foreign key constraint does not exist"
                );
                return Err(Error::new(state::UNDEFINED_COLUMN, message));
            }
            names.push(name.clone());
        }
        check_generated_key(&names, references, table)?;
        let this = self.refers_to_self(&references.table, table)?;
        let ref_table = match this {
            true => None,
            false => match self.relation(&references.table).map_err(no_position)? {
                Relation::Table(found) if !found.is_materialized() => {
                    let temporary = table.persistence.is_temporary();
                    let kind = match temporary {
                        true => "temporary",
                        false => "permanent",
                    };
                    if temporary != found.persistence.is_temporary() {
                        let message = format!(
                            "constraints on {kind} tables may reference only {kind} tables"
                        );
                        return Err(Error::new(state::INVALID_TABLE_DEFINITION, message));
                    }
                    self.may_reference(&found, references)?;
                    Some(found.oid)
                }
                other => {
                    let message =
                        format!("referenced relation \"{}\" is not a table", other.name());
                    return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
                }
            },
        };
        Ok(NewConstraintKind::ForeignKey {
            columns: names,
            ref_table,
            ref_columns: references.columns.clone(),
            on_update: references.on_update,
            on_delete: references.on_delete,
            match_full: references.match_full,
            periods: (period, references.period),
        })
    }

    /// Whether a written name means the table being made or changed.
    fn refers_to_self(&self, name: &ast::Name, table: &TableDef) -> Result<bool> {
        if name.last() != table.name {
            return Ok(false);
        }
        match name.schema() {
            Some(schema) => Ok(self.schema(schema)? == table.schema),
            None if table.oid == Oid::NONE => Ok(true),
            None => Ok(self
                .find_relation(name)?
                .is_some_and(|r| r.oid() == table.oid)),
        }
    }
}

/// A foreign key's actions cannot change what is computed.
fn check_generated_key(
    names: &[String],
    references: &ast::References,
    table: &TableDef,
) -> Result<()> {
    use throng_catalog::FkAction as A;
    let columns = names.iter().filter_map(|name| table.attnum(name));
    for column in columns.map(|attnum| table.column(attnum)) {
        let Some(generated) = &column.generated else {
            continue;
        };
        let changes = |action| matches!(action, A::SetNull | A::SetDefault);
        let on = match (references.on_update, references.on_delete) {
            (update, _) if changes(update) || update == A::Cascade => Some("UPDATE"),
            (_, delete) if changes(delete) => Some("DELETE"),
            _ => None,
        };
        if let Some(on) = on {
            let message = format!(
                "invalid ON {on} action for foreign key constraint containing generated column"
            );
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
        if !generated.stored {
            let message = "foreign key constraints on virtual generated columns are not supported";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
    }
    Ok(())
}
