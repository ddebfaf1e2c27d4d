//! CREATE INDEX.

use throng_types::error::state;
use throng_types::{Error, Result};

use super::Binder;
use crate::catalog::{IndexColumn, Relation, TableDef};
use crate::command::{CreateIndex, Ddl};
use crate::parse::ast;

impl Binder<'_> {
    pub(super) fn create_index(&mut self, ast: &ast::CreateIndex) -> Result<Ddl> {
        let table = match self.relation(&ast.table) {
            Ok(Relation::Table(table)) => table,
            Ok(other) => {
                let message = format!("cannot create index on relation \"{}\"", other.name());
                let error = Error::new(state::WRONG_OBJECT_TYPE, message);
                return Err(match other {
                    Relation::View(_) => error.detail("This operation is not supported for views."),
                    _ => error,
                });
            }
            Err(mut e) => {
                e.fields_mut().position = None;
                return Err(e);
            }
        };
        self.must_own(table.owner, "table", &table.name)?;
        if ast.concurrently && table.is_partitioned() {
            let message = format!(
                "cannot create index on partitioned table \"{}\" concurrently",
                table.name
            );
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let mut columns = Vec::with_capacity(ast.columns.len());
        for column in &ast.columns {
            let attnum = table.attnum(&column.name).ok_or_else(|| {
                let message = format!("column \"{}\" does not exist", column.name);
                Error::new(state::UNDEFINED_COLUMN, message)
            })?;
            if table.column(attnum).is_virtual() {
                let message = "indexes on virtual generated columns are not supported";
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
            }
            check_indexable(&table, attnum)?;
            columns.push(IndexColumn {
                attnum,
                descending: column.descending,
                nulls_first: column.nulls_first.unwrap_or(column.descending),
            });
        }
        const MOST_KEYS: usize = 32;
        if columns.len() > MOST_KEYS {
            let message = format!("cannot use more than {MOST_KEYS} columns in an index");
            return Err(Error::new(state::TOO_MANY_COLUMNS, message));
        }
        Ok(Ddl::CreateIndex(CreateIndex {
            name: ast.name.clone(),
            table: table.oid,
            only: ast.only,
            columns,
            unique: ast.unique,
            nulls_not_distinct: ast.nulls_not_distinct,
            if_not_exists: ast.if_not_exists,
            concurrently: ast.concurrently,
            options: self.index_options(&ast.options)?,
        }))
    }
}

/// 42704 for a type without a B-tree order.
fn check_indexable(table: &TableDef, attnum: u16) -> Result<()> {
    let ty = table.column(attnum).ty.oid;
    if crate::func::resolve_operator("<", Some(ty), ty).is_ok() {
        return Ok(());
    }
    let message = format!(
        "data type {} has no default operator class for access method \"btree\"",
        throng_types::sqltype::type_name(ty)
    );
    Err(Error::new(state::UNDEFINED_OBJECT, message)
        .hint("You must specify an operator class for the index or define a default operator class for the data type."))
}
