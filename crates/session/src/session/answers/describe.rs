//! Catalog objects written as SQL: `pg_get_indexdef` and its kin, comments.

use std::sync::Arc;

use throng_bind::binder;
use throng_catalog::system::{
    definition, domain, extension, listed, partition, routine, routine_text, user_routine,
};
use throng_catalog::{
    ColumnDef, ConstraintDef, ConstraintKind, Domain, DomainCheck, IndexDef, PolicyCondition,
    Relation, TableDef, ViewDef, builtin,
};
use throng_types::error::state;
use throng_types::{Array, Datum, Error, Oid, Record, Result};
use throng_values::func::EvalResult;

use crate::session::answers::eval_host::SessionHost;

fn oid(value: &Datum) -> Oid {
    Oid(value.as_i64().unwrap_or_default() as u32)
}

fn number(value: &Datum) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// What a row of `pg_partition_tree` is made of.
const TREE_TYPES: [Oid; 4] = [
    throng_types::oid::REGCLASS,
    throng_types::oid::REGCLASS,
    throng_types::oid::BOOL,
    throng_types::oid::INT4,
];

/// The catalog that comments are on objects of, and whether those have comments from the start.
fn commented_class(name: &str) -> (Oid, bool) {
    let class = match name {
        "pg_class" => builtin::class::RELATION,
        "pg_namespace" => builtin::class::NAMESPACE,
        "pg_constraint" => builtin::class::CONSTRAINT,
        "pg_type" => builtin::class::TYPE,
        "pg_proc" => builtin::class::PROCEDURE,
        "pg_trigger" => builtin::class::TRIGGER,
        "pg_policy" => builtin::class::POLICY,
        "pg_operator" => builtin::class::OPERATOR,
        "pg_cast" => builtin::class::CAST,
        "pg_opclass" => builtin::class::OPERATOR_CLASS,
        "pg_opfamily" => builtin::class::OPERATOR_FAMILY,
        "pg_am" => builtin::class::ACCESS_METHOD,
        "pg_collation" => builtin::class::COLLATION,
        "pg_extension" => return (builtin::class::EXTENSION, true),
        _ => return (builtin::class::LANGUAGE, true),
    };
    (class, false)
}

impl SessionHost<'_> {
    pub(in crate::session) fn describe(&self, name: &str, args: &[Datum]) -> EvalResult {
        Ok(match name {
            "pg_get_userbyid" => match self.catalog.role(oid(&args[0])) {
                Some(role) => role.name.clone().into(),
                None => format!("unknown (OID={})", oid(&args[0])).into(),
            },
            // Stored expressions are kept as SQL already.
            "pg_get_expr" => match args[0].as_str() {
                Some(text) => {
                    let pretty = args.get(2).is_some_and(Datum::is_true);
                    self.shown_text(text, oid(&args[1]), pretty).into()
                }
                None => Datum::Null,
            },
            "pg_get_indexdef" => self.index_definition(oid(&args[0]), args.get(1), args.get(2)),
            "pg_get_constraintdef" => {
                let pretty = args.get(1).is_some_and(Datum::is_true);
                self.constraint_definition(oid(&args[0]), pretty)
            }
            "pg_relation_is_publishable" => self.catalog.table(oid(&args[0])).is_some().into(),
            "pg_get_serial_sequence" => self.serial_sequence(&args[0], &args[1])?.into(),
            "pg_get_replica_identity_index" => self
                .catalog
                .primary_key(oid(&args[0]))
                .map(|index| index.oid)
                .into(),
            "obj_description" => {
                let Some(catalog) = args.get(1).and_then(Datum::as_str) else {
                    return Ok(self.comment_of_any(oid(&args[0])));
                };
                let (class, built_in) = commented_class(catalog);
                match self.comment(class, oid(&args[0]), 0) {
                    Datum::Null if built_in => {
                        extension::description(catalog, oid(&args[0])).into()
                    }
                    comment => comment,
                }
            }
            "col_description" => self.comment(
                builtin::class::RELATION,
                oid(&args[0]),
                number(&args[1]) as u16,
            ),
            "shobj_description" => match args[1].as_str() {
                Some("pg_database") => self.comment(builtin::class::DATABASE, oid(&args[0]), 0),
                Some("pg_authid") => self.comment(builtin::class::ROLE, oid(&args[0]), 0),
                Some("pg_tablespace") => self.comment(builtin::class::TABLESPACE, oid(&args[0]), 0),
                _ => Datum::Null,
            },
            "pg_get_function_result"
            | "pg_get_function_arguments"
            | "pg_get_function_identity_arguments" => self.signature(name, oid(&args[0])),
            "pg_get_viewdef" => {
                let pretty = args
                    .get(1)
                    .is_some_and(|a| a.is_true() || a.as_i64().is_some());
                self.view_of(&args[0])?
                    .and_then(|view| self.definition_of(&view, pretty))
                    .into()
            }
            "pg_get_partkeydef" => {
                let table = self.catalog.table(oid(&args[0]));
                table
                    .and_then(|t| Some(partition::key_definition(t, t.partitioned.as_ref()?)))
                    .into()
            }
            "pg_get_partition_constraintdef" => {
                let table = self.catalog.table(oid(&args[0]));
                table
                    .and_then(|t| partition::constraint_definition(self.catalog, t))
                    .into()
            }
            "pg_partition_root" => self
                .lineage_of(oid(&args[0]))
                .last()
                .map(|oid| Datum::Oid(oid.0))
                .unwrap_or_default(),
            "pg_partition_ancestors" => {
                let items = self.lineage_of(oid(&args[0])).into_iter();
                let items = items.map(|oid| Datum::Oid(oid.0)).collect();
                Datum::array(Array::from_items(throng_types::oid::REGCLASS, items))
            }
            "pg_partition_tree" => self.partition_tree(oid(&args[0])),
            "pg_get_functiondef" | "pg_get_function_sqlbody" => {
                return self.routine_text(name, oid(&args[0]));
            }
            "pg_get_function_arg_default" => {
                let def = self.catalog.routine(oid(&args[0]));
                let place = usize::try_from(number(&args[1]) - 1).unwrap_or(usize::MAX);
                let arg = def.and_then(|def| def.args.get(place));
                arg.and_then(|a| a.default.clone()).into()
            }
            "pg_get_triggerdef" => {
                let pretty = args.get(1).is_some_and(Datum::is_true);
                match self.catalog.trigger(oid(&args[0])) {
                    Some(trigger) => self.trigger_definition(trigger, pretty)?.into(),
                    None => Datum::Null,
                }
            }
            // There are no rules or extended statistics.
            "pg_get_ruledef" | "pg_get_statisticsobjdef" | "pg_get_statisticsobjdef_columns" => {
                Datum::Null
            }
            other => return Err(Error::unsupported(format!("function {other}()")).into()),
        })
    }

    /// A table or an index of partitions, itself first, up to the one that is no partition; none
    /// for others.
    fn lineage_of(&self, relation: Oid) -> Vec<Oid> {
        let mut found = Vec::new();
        if let Some(table) = self.catalog.table(relation) {
            if table.is_partitioned() || table.bound.is_some() {
                found.push(relation);
                if table.detaching.is_none() {
                    found.extend(self.catalog.ancestors(table));
                }
            }
        } else if let Some(index) = self.catalog.index(relation) {
            let of_partitioned = self
                .catalog
                .table(index.table)
                .is_some_and(|t| t.is_partitioned());
            if of_partitioned || index.parent.is_some() {
                let mut at = Some(relation);
                while let Some(oid) = at {
                    found.push(oid);
                    at = self.catalog.index(oid).and_then(|i| i.parent);
                }
            }
        }
        found
    }

    /// Relation, parent, whether it is a leaf, level: as an array of rows.
    fn partition_tree(&self, relation: Oid) -> Datum {
        let mut rows = Vec::new();
        let lineage = self.lineage_of(relation);
        if !lineage.is_empty() {
            let mut next = vec![(relation, lineage.get(1).copied(), 0)];
            while !next.is_empty() {
                let mut below = Vec::new();
                for (oid, parent, level) in next {
                    let children = self.parts_of(oid);
                    let leaf = match self.catalog.index(oid) {
                        Some(index) => self.catalog.table(index.table),
                        None => self.catalog.table(oid),
                    };
                    let row = vec![
                        Datum::Oid(oid.0),
                        parent.map_or(Datum::Null, |p| Datum::Oid(p.0)),
                        leaf.is_none_or(|t| !t.is_partitioned()).into(),
                        Datum::Int4(level),
                    ];
                    rows.push(Datum::Record(Arc::new(Record {
                        types: TREE_TYPES.into(),
                        values: row,
                        names: None,
                    })));
                    below.extend(children.into_iter().map(|c| (c, Some(oid), level + 1)));
                }
                next = below;
            }
        }
        Datum::array(Array::from_items(throng_types::oid::RECORD, rows))
    }

    fn parts_of(&self, relation: Oid) -> Vec<Oid> {
        match self.catalog.index(relation) {
            None => self.catalog.children_of(relation).to_vec(),
            Some(index) => {
                let tables = self.catalog.children_of(index.table).iter();
                let indexes = tables.flat_map(|t| self.catalog.indexes_of(*t));
                let parts = indexes.filter(|i| i.parent == Some(relation));
                parts.map(|i| i.oid).collect()
            }
        }
    }

    /// A view given by its oid or its name; None where it is none.
    fn view_of(&self, view: &Datum) -> Result<Option<Arc<ViewDef>>> {
        let relation = match view.as_str() {
            Some(name) => Some(self.relation(name)?),
            None => self.catalog.relation(oid(view)),
        };
        Ok(match relation {
            Some(Relation::View(view)) => Some(view),
            Some(Relation::Table(table)) => table.as_view().map(Arc::new),
            _ => None,
        })
    }

    pub(in crate::session) fn definition_of(&self, view: &ViewDef, pretty: bool) -> Option<String> {
        let path = self.search_path();
        binder::view_definition(view, self.catalog, &path, pretty, self.eval()).ok()
    }

    /// `obj_description` of an object of whatever catalog.
    fn comment_of_any(&self, object: Oid) -> Datum {
        let found = |class: &Oid| self.catalog.comment(*class, object, 0);
        match builtin::class::ALL.iter().find_map(found) {
            Some(comment) => comment.text.as_str().into(),
            None => self.comment(builtin::class::RELATION, object, 0),
        }
    }

    /// What `pg_get_functiondef` and `pg_get_function_sqlbody` say.
    fn routine_text(&self, name: &str, object: Oid) -> EvalResult {
        let Some(def) = self.catalog.routine(object) else {
            return match routine::procedure(object) {
                Some(of) if of.kind == b'a' && name == "pg_get_functiondef" => {
                    let message = format!("\"{}\" is an aggregate function", of.name);
                    Err(Error::new(state::WRONG_OBJECT_TYPE, message).into())
                }
                Some(of) if name == "pg_get_functiondef" => Ok(routine_text::definition(of).into()),
                _ => Ok(Datum::Null),
            };
        };
        if def.aggregate().is_some() {
            let message = format!("\"{}\" is an aggregate function", def.name);
            return match name {
                "pg_get_function_sqlbody" => Ok(Datum::Null),
                _ => Err(Error::new(state::WRONG_OBJECT_TYPE, message).into()),
            };
        }
        let path = self.search_path();
        let body = binder::routine_body_text(def, self.catalog, &path, self.eval());
        Ok(match name {
            "pg_get_function_sqlbody" => body.into(),
            _ => user_routine::definition(self.catalog, &path, def, body.as_deref()).into(),
        })
    }

    fn comment(&self, class: Oid, object: Oid, column: u16) -> Datum {
        definition::comment(self.catalog, class, object, column).into()
    }

    /// The index as the session would write it; none where it is as it is kept.
    pub(in crate::session) fn index_as_seen(
        &self,
        index: &IndexDef,
        pretty: bool,
    ) -> Option<IndexDef> {
        if index.is_plain() && index.classes_of_extensions().next().is_none() {
            return None;
        }
        let table = self.catalog.table(index.table)?;
        let path = self.search_path();
        binder::index_shown(index, table, self.catalog, &path, pretty, self.eval()).ok()
    }

    /// The whole statement, or one key column where `column` is not 0.
    fn index_definition(
        &self,
        index: Oid,
        column: Option<&Datum>,
        pretty: Option<&Datum>,
    ) -> Datum {
        let Some(index) = self.catalog.index(index) else {
            return self.listed_index_definition(index, column.map_or(0, number));
        };
        let pretty = pretty.is_some_and(Datum::is_true);
        let shown = self.index_as_seen(index, pretty);
        let index = shown.as_ref().unwrap_or(index);
        match column.map_or(0, number) {
            0 => definition::index_definition(self.catalog, index, !pretty).into(),
            n => {
                let place = usize::try_from(n - 1).unwrap_or(usize::MAX);
                definition::index_column(self.catalog, index, place)
                    .unwrap_or_default()
                    .into()
            }
        }
    }

    /// The same of an index that a catalog is listed with.
    fn listed_index_definition(&self, index: Oid, column: i64) -> Datum {
        let Some(index) = listed::index(index) else {
            return Datum::Null;
        };
        if column == 0 {
            return index.definition(self.catalog).into();
        }
        let place = usize::try_from(column - 1).unwrap_or(usize::MAX);
        index.column(place).unwrap_or_default().into()
    }

    /// A policy's condition as the session would write it.
    pub(in crate::session) fn policy_shown(
        &self,
        table: &Arc<TableDef>,
        condition: &PolicyCondition,
        pretty: bool,
    ) -> String {
        let path = self.search_path();
        let shown = binder::policy_condition_shown(
            condition,
            table,
            self.catalog,
            &path,
            pretty,
            self.eval(),
        );
        shown.unwrap_or_else(|_| condition.text.clone())
    }

    /// What a column of a table is computed by, or gets by default, or the condition of a policy or
    /// a partial index, as the session would write it; any other text as it is.
    pub(in crate::session) fn shown_text(&self, text: &str, table: Oid, pretty: bool) -> String {
        let shown = || {
            // A view has defaults of its own.
            let table = &binder::columns_of(&self.catalog.relation(table)?)?;
            let (catalog, path) = (self.catalog, self.search_path());
            let is = |c: &ColumnDef| c.generated.as_ref().is_some_and(|g| g.expr == text);
            if let Some((_, column)) = table.live_columns().find(|(_, c)| is(c)) {
                return binder::generation_shown(
                    table,
                    column,
                    catalog,
                    &path,
                    pretty,
                    self.eval(),
                )
                .ok();
            }
            let mut conditions = catalog
                .policies_of(table.oid)
                .iter()
                .flat_map(|policy| policy.conditions());
            if let Some(condition) = conditions.find(|c| c.text == text) {
                return Some(self.policy_shown(table, condition, pretty));
            }
            let is = |c: &ColumnDef| c.default.as_deref() == Some(text);
            let of = match table.live_columns().find(|(_, c)| is(c)) {
                Some((_, column)) => binder::StoredKind::Default(column),
                None => {
                    let indexes = catalog.indexes_of(table.oid);
                    let is = |i: &IndexDef| i.terms.predicate.as_deref() == Some(text);
                    indexes.iter().find(|i| is(i))?;
                    binder::StoredKind::Check
                }
            };
            binder::kept_shown((text, of), table, catalog, &path, pretty, self.eval()).ok()
        };
        shown().unwrap_or_else(|| self.default_text(text))
    }

    /// A constraint with its condition as the session would write it.
    fn shown_constraint(&self, def: &ConstraintDef, pretty: bool) -> ConstraintDef {
        let mut shown = def.clone();
        if let (ConstraintKind::Check { expr, .. }, Some(table)) =
            (&mut shown.kind, self.catalog.table(def.table))
        {
            let (kept, path) = ((&**expr, binder::StoredKind::Check), self.search_path());
            let text = binder::kept_shown(kept, table, self.catalog, &path, pretty, self.eval());
            *expr = text.unwrap_or_else(|_| expr.clone());
        }
        shown
    }

    fn default_text(&self, text: &str) -> String {
        definition::shown_default(text, &|name| {
            let sequence = self.relation(name).ok()?;
            self.relation_name(sequence.oid())
        })
    }

    /// An exclusion constraint with its expressions as the session would write them.
    fn exclusion_definition(
        &self,
        def: &ConstraintDef,
        path: &[Oid],
        pretty: bool,
    ) -> Option<String> {
        let ConstraintKind::Exclusion { index } = def.kind else {
            return None;
        };
        let (index, table) = (self.catalog.index(index)?, self.catalog.table(def.table)?);
        let shown = binder::index_shown(index, table, self.catalog, path, pretty, self.eval());
        let text = match shown {
            Ok(shown) => definition::exclusion(table, &shown),
            Err(_) => definition::exclusion(table, index),
        };
        Some(text + def.deferral.sql())
    }

    fn constraint_definition(&self, constraint: Oid, pretty: bool) -> Datum {
        let path = self.search_path();
        let shown = |check: &DomainCheck, domain: &Domain| {
            let plain = || throng_catalog::system::shown_check(&check.expr);
            let shown =
                binder::check_shown(check, domain, self.catalog, &path, pretty, self.eval());
            shown.unwrap_or_else(|_| plain())
        };
        if let Some(text) = domain::constraint_definition(self.catalog, constraint, &shown) {
            return text.into();
        }
        let trigger = self.catalog.trigger(constraint);
        if let Some(of_trigger) = trigger.and_then(|trigger| trigger.constraint) {
            return format!("TRIGGER{}", of_trigger.deferral.sql()).into();
        }
        if let Some(def) = self.catalog.constraint(constraint) {
            if let Some(text) = self.exclusion_definition(def, &path, pretty) {
                return text.into();
            }
            let name_of = |table: Oid| self.relation_name(table).unwrap_or_default();
            let def = self.shown_constraint(def, pretty);
            return definition::constraint_definition(self.catalog, &def, &name_of).into();
        }
        if let Some(text) = listed::constraint_definition(constraint) {
            return text.into();
        }
        definition::not_null_column(self.catalog, constraint)
            .map(|(table, attnum)| definition::not_null_definition(table, attnum))
            .into()
    }

    fn signature(&self, what: &str, function: Oid) -> Datum {
        if let Some(def) = self.catalog.routine(function) {
            let path = self.search_path();
            return match what {
                "pg_get_function_result" => user_routine::result(self.catalog, &path, def).into(),
                what => {
                    let defaults = what == "pg_get_function_arguments";
                    user_routine::arguments(self.catalog, &path, def, defaults).into()
                }
            };
        }
        routine_text::signature(what, function).into()
    }

    fn serial_sequence(&self, table: &Datum, column: &Datum) -> Result<Option<String>> {
        let name = table.as_str().unwrap_or_default();
        let Relation::Table(def) = self.relation(name)? else {
            let message = format!("\"{name}\" is not a table");
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        };
        let column = column.as_str().unwrap_or_default();
        let attnum = def.attnum(column).ok_or_else(|| {
            let message = format!(
                "column \"{column}\" of relation \"{}\" does not exist",
                def.name
            );
            Error::new(state::UNDEFINED_COLUMN, message)
        })?;
        let owned = self.catalog.sequences_of(def.oid).iter();
        let owned = owned.filter_map(|oid| self.catalog.sequence(*oid));
        let found = owned
            .into_iter()
            .find(|s| s.owned_by == Some((def.oid, attnum)));
        Ok(found.map(|s| definition::qualified_name(self.catalog, s.schema, &s.name)))
    }
}
