//! Catalog objects written as SQL: `pg_get_indexdef` and its kin, comments.

use throng_sql::catalog::{
    ConstraintDef, ConstraintKind, FkAction, IndexColumn, IndexDef, Relation, TableDef,
    builtin,
};
use throng_sql::func::EvalResult;
use throng_sql::parse::quote_ident;
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result};

use super::host::SessionHost;

fn oid(value: &Datum) -> Oid {
    Oid(value.as_i64().unwrap_or_default() as u32)
}

fn number(value: &Datum) -> i64 {
    value.as_i64().unwrap_or_default()
}

impl SessionHost<'_> {
    pub(super) fn describe(&self, name: &str, args: &[Datum]) -> EvalResult {
        Ok(match name {
            "pg_get_userbyid" => match self.catalog.role(oid(&args[0])) {
                Some(role) => role.name.clone().into(),
                None => format!("unknown (OID={})", oid(&args[0])).into(),
            },
            // Stored expressions are kept as SQL already.
            "pg_get_expr" => args[0].clone(),
            "pg_get_indexdef" => {
                let column = args.get(1).map_or(0, number);
                self.catalog.index(oid(&args[0])).map(|def| self.index_def(def, column)).into()
            }
            "pg_get_constraintdef" => {
                self.catalog.constraint(oid(&args[0])).map(|def| self.constraint_def(def)).into()
            }
            "pg_get_serial_sequence" => self.serial_sequence(&args[0], &args[1])?.into(),
            "pg_get_replica_identity_index" => {
                self.catalog.primary_key(oid(&args[0])).map(|index| index.oid).into()
            }
            "obj_description" => {
                let class = match args.get(1).and_then(Datum::as_str) {
                    None | Some("pg_class") => builtin::class::RELATION,
                    Some("pg_namespace") => builtin::class::NAMESPACE,
                    Some("pg_constraint") => builtin::class::CONSTRAINT,
                    Some(_) => return Ok(Datum::Null),
                };
                self.comment(class, oid(&args[0]), 0)
            }
            "col_description" => {
                self.comment(builtin::class::RELATION, oid(&args[0]), number(&args[1]) as u16)
            }
            "shobj_description" => match args[1].as_str() {
                Some("pg_database") => self.comment(builtin::class::DATABASE, oid(&args[0]), 0),
                Some("pg_authid") => self.comment(builtin::class::ROLE, oid(&args[0]), 0),
                _ => Datum::Null,
            },
            "pg_get_function_result" | "pg_get_function_arguments"
            | "pg_get_function_identity_arguments" => self.signature(name, oid(&args[0])),
            // There are no views, rules, triggers, partitions, extended statistics or functions of users'.
            "pg_get_viewdef" | "pg_get_ruledef" | "pg_get_triggerdef" | "pg_get_functiondef"
            | "pg_get_function_arg_default" | "pg_get_partkeydef"
            | "pg_get_partition_constraintdef" | "pg_get_statisticsobjdef"
            | "pg_get_statisticsobjdef_columns" => Datum::Null,
            other => return Err(Error::unsupported(format!("function {other}()")).into()),
        })
    }

    fn comment(&self, class: Oid, object: Oid, column: u16) -> Datum {
        self.catalog.comment(class, object, column).map(|comment| comment.text.clone()).into()
    }

    fn signature(&self, what: &str, function: Oid) -> Datum {
        use throng_sql::func;
        let (args, ret) = match (func::function_by_oid(function), func::aggregate_by_oid(function)) {
            (Some(f), _) => (f.args, f.ret),
            (None, Some(a)) => (a.args, a.ret),
            (None, None) => return Datum::Null,
        };
        let name = |oid| throng_types::sqltype::type_name(oid);
        match what {
            "pg_get_function_result" => match func::function_by_oid(function) {
                Some(f) if f.returns_set() => format!("SETOF {}", name(ret)).into(),
                _ => name(ret).into(),
            },
            _ => args.iter().map(|a| name(*a)).collect::<Vec<_>>().join(", ").into(),
        }
    }

    /// Always with its schema, as PostgreSQL writes the tables of indexes.
    fn qualified(&self, schema: Oid, name: &str) -> String {
        match self.catalog.schema(schema) {
            Some(schema) => format!("{}.{}", quote_ident(&schema.name), quote_ident(name)),
            None => quote_ident(name),
        }
    }

    /// `column` 0: the whole statement; else that column alone.
    fn index_def(&self, def: &IndexDef, column: i64) -> String {
        let Some(table) = self.catalog.table(def.table) else { return String::new() };
        let named = |c: &IndexColumn| quote_ident(&table.column(c.attnum).name);
        if column > 0 {
            return def.columns.get(column as usize - 1).map(named).unwrap_or_default();
        }
        let columns: Vec<String> = def
            .columns
            .iter()
            .map(|c| {
                let mut text = named(c);
                if let Some(collation) = &table.column(c.attnum).collation {
                    text += &format!(" COLLATE {}", quote_ident(collation));
                }
                // NULLs come last going up and first going down unless it is said.
                text += match (c.descending, c.nulls_first) {
                    (false, false) => "",
                    (false, true) => " NULLS FIRST",
                    (true, true) => " DESC",
                    (true, false) => " DESC NULLS LAST",
                };
                text
            })
            .collect();
        let mut text = format!(
            "CREATE {}INDEX {} ON {} USING btree ({})",
            if def.unique { "UNIQUE " } else { "" },
            quote_ident(&def.name),
            self.qualified(table.schema, &table.name),
            columns.join(", ")
        );
        if def.nulls_not_distinct {
            text += " NULLS NOT DISTINCT";
        }
        if !def.options.is_empty() {
            let options: Vec<String> =
                def.options.iter().map(|(n, v)| format!("{n}='{v}'")).collect();
            text += &format!(" WITH ({})", options.join(", "));
        }
        text
    }

    fn constraint_def(&self, def: &ConstraintDef) -> String {
        let Some(table) = self.catalog.table(def.table) else { return String::new() };
        let mut text = match &def.kind {
            ConstraintKind::PrimaryKey { index } => {
                format!("PRIMARY KEY ({})", self.key_columns(*index, table))
            }
            ConstraintKind::Unique { index } => {
                let nulls = self.catalog.index(*index).is_some_and(|i| i.nulls_not_distinct);
                format!(
                    "UNIQUE {}({})",
                    if nulls { "NULLS NOT DISTINCT " } else { "" },
                    self.key_columns(*index, table)
                )
            }
            ConstraintKind::Check { expr, .. } => format!("CHECK ({expr})"),
            ConstraintKind::ForeignKey(fk) => {
                let names = |table: &TableDef, columns: &[u16]| {
                    let names = columns.iter().map(|n| quote_ident(&table.column(*n).name));
                    names.collect::<Vec<_>>().join(", ")
                };
                let Some(other) = self.catalog.table(fk.ref_table) else { return String::new() };
                let mut text = format!(
                    "FOREIGN KEY ({}) REFERENCES {}({})",
                    names(table, &fk.columns),
                    self.catalog
                        .display_name(&self.search_path(), &Relation::Table(other.clone())),
                    names(other, &fk.ref_columns)
                );
                if fk.match_full {
                    text += " MATCH FULL";
                }
                for (event, action) in [("UPDATE", fk.on_update), ("DELETE", fk.on_delete)] {
                    let action = match action {
                        FkAction::NoAction => continue,
                        FkAction::Restrict => "RESTRICT",
                        FkAction::Cascade => "CASCADE",
                        FkAction::SetNull => "SET NULL",
                        FkAction::SetDefault => "SET DEFAULT",
                    };
                    text += &format!(" ON {event} {action}");
                }
                text
            }
        };
        if !def.validated {
            text += " NOT VALID";
        }
        text
    }

    fn key_columns(&self, index: Oid, table: &TableDef) -> String {
        let columns = self.catalog.index(index).map_or(&[][..], |i| &i.columns);
        let names = columns.iter().map(|c| quote_ident(&table.column(c.attnum).name));
        names.collect::<Vec<_>>().join(", ")
    }

    fn serial_sequence(&self, table: &Datum, column: &Datum) -> Result<Option<String>> {
        let name = table.as_str().unwrap_or_default();
        let Relation::Table(def) = self.relation(name)? else {
            let message = format!("\"{name}\" is not a table");
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        };
        let column = column.as_str().unwrap_or_default();
        let attnum = def.attnum(column).ok_or_else(|| {
            let message = format!("column \"{column}\" of relation \"{}\" does not exist", def.name);
            Error::new(state::UNDEFINED_COLUMN, message)
        })?;
        let owned = self.catalog.sequences_of(def.oid).iter();
        let owned = owned.filter_map(|oid| self.catalog.sequence(*oid));
        let found = owned.into_iter().find(|s| s.owned_by == Some((def.oid, attnum)));
        Ok(found.map(|s| self.qualified(s.schema, &s.name)))
    }
}
