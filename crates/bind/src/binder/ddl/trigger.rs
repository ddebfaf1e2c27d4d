//! CREATE, ALTER, DROP and COMMENT of triggers, and what their conditions mean.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Datum, Error, Oid, Result, oid};

use crate::binder::ddl::privilege::any_right;
use crate::binder::ddl::view::{STORED_PATH, objects_of, stored_context};
use crate::binder::dml::row_names;
use crate::binder::query::scope::{Names, Scope};
use crate::binder::renamed::with_stored_style;
use crate::binder::{BindContext, Binder, Clause};
use crate::command::{Ddl, EnableTriggers, Target, TargetKind};
use crate::deparse::{self, Style};
use crate::tree::expr::{Expr, RelId, system};
use crate::tree::query::walk::QueryPartMut;
use throng_catalog::system::trigger::of_keys;
use throng_catalog::{
    Catalog, Deferral, Relation, TableDef, TriggerCondition, TriggerConstraint, TriggerDef, fires,
};
use throng_syntax::parse::ast::{self, TriggerChange};
use throng_values::acl::right;
use throng_values::func::EvalContext;

/// Suppresses updates that change nothing; it is the system's own.
pub const SUPPRESS: Oid = Oid(1291);

const WHEN: Clause = Clause::Other("trigger WHEN conditions");

fn invalid(message: &str) -> Error {
    Error::new(state::INVALID_OBJECT_DEFINITION, message)
}

fn no_triggers(relation: &Relation, what: &str) -> Error {
    let message = format!("relation \"{}\" cannot have triggers", relation.name());
    let detail = format!("This operation is not supported for {what}.");
    Error::new(state::WRONG_OBJECT_TYPE, message).detail(detail)
}

fn unsupported(message: &str) -> Error {
    Error::new(state::FEATURE_NOT_SUPPORTED, message)
}

/// A condition over a row that was and one that is.
struct Condition {
    expr: Expr,
    old: RelId,
    new: RelId,
}

/// The columns of a table or view, as one table has them.
pub fn columns_of(relation: &Relation) -> Option<Arc<TableDef>> {
    match relation {
        Relation::Table(table) => Some(table.clone()),
        Relation::View(view) => {
            let columns = view.columns_of_table();
            Some(Arc::new(TableDef {
                oid: view.oid,
                name: view.name.clone(),
                schema: view.schema,
                ..TableDef::of_columns(columns)
            }))
        }
        _ => None,
    }
}

/// A trigger's condition over the old row by `Slot(attnum - 1)` and the new one behind it; none
/// where it has none.
pub fn trigger_condition(
    trigger: &TriggerDef,
    table: &Arc<TableDef>,
    catalog: &Catalog,
    eval: EvalContext<'_>,
) -> Result<Option<Expr>> {
    let Some(when) = &trigger.when else {
        return Ok(None);
    };
    let ctx = stored_context(catalog, eval);
    let mut binder = Binder::new(&ctx);
    let bound = binder.stored_condition(&when.text, table)?;
    let (old, new) = (bound.old, bound.new);
    let expr = binder.over_stored(bound.expr, table, old)?;
    let mut expr = binder.over_stored(expr, table, new)?;
    let width = table.columns.len() as u32;
    let mut elsewhere = false;
    expr.walk_mut(&mut |part| {
        if let QueryPartMut::Expr(e) = part
            && let Expr::Var(var) = e
        {
            let start = if var.rel == new { width } else { 0 };
            match u32::try_from(var.column) {
                Ok(attnum) if attnum > 0 => *e = Expr::Slot(start + attnum - 1, var.ty),
                _ if var.column == system::TABLEOID => {
                    *e = Expr::Const(Datum::Oid(table.oid.0), var.ty);
                }
                _ => elsewhere = true,
            }
        }
    });
    match elsewhere {
        true => Err(Error::unsupported(
            "this system column in a trigger's WHEN condition",
        )),
        false => Ok(Some(expr)),
    }
}

/// A trigger's condition as a session with this search path would write it.
pub fn trigger_condition_shown(
    trigger: &TriggerDef,
    relation: &Relation,
    catalog: &Catalog,
    search_path: &[Oid],
    pretty: bool,
    eval: EvalContext<'_>,
) -> Result<Option<String>> {
    let (Some(when), Some(table)) = (&trigger.when, columns_of(relation)) else {
        return Ok(None);
    };
    let ctx = stored_context(catalog, eval);
    let bound = Binder::new(&ctx).stored_condition(&when.text, &table)?;
    let style = Style {
        kept: false,
        catalog,
        search_path,
        pretty,
        eval,
    };
    Ok(Some(text_of(&bound, &table, &style)))
}

/// A kept condition as it has to be after something it names got another name in `renamed`.
pub fn trigger_condition_again(
    text: &str,
    table: &Arc<TableDef>,
    catalog: &Catalog,
    renamed: &Catalog,
    eval: EvalContext<'_>,
) -> Result<String> {
    let ctx = stored_context(catalog, eval);
    let bound = Binder::new(&ctx).stored_condition(text, table)?;
    Ok(kept_text(&bound, table, renamed, eval))
}

fn text_of(condition: &Condition, table: &TableDef, style: &Style<'_>) -> String {
    let entries = [(condition.old, "old"), (condition.new, "new")];
    deparse::trigger_condition(&condition.expr, table, entries, style)
}

fn kept_text(
    condition: &Condition,
    table: &TableDef,
    catalog: &Catalog,
    eval: EvalContext<'_>,
) -> String {
    with_stored_style(catalog, eval, |style| text_of(condition, table, style))
}

impl Binder<'_> {
    pub(in crate::binder) fn trigger_statement(
        &mut self,
        statement: &ast::TriggerStatement,
    ) -> Result<Ddl> {
        match statement {
            ast::TriggerStatement::Create(create) => self.create_trigger(create),
            ast::TriggerStatement::Change(change) => self.change_trigger(change),
        }
    }

    fn create_trigger(&mut self, create: &ast::CreateTrigger) -> Result<Ddl> {
        let found = self.find_relation(&create.table)?;
        let relation = found.ok_or_else(|| {
            let message = format!("relation \"{}\" does not exist", create.table);
            Error::new(state::UNDEFINED_TABLE, message)
        })?;
        let table = self.may_have_trigger(&relation, create)?;
        let constraint = self.trigger_constraint(create)?;
        any_right(self.catalog(), self.user, &relation, right::TRIGGER)?;
        if let Some(other) = constraint.and_then(|c| c.other)
            && let Some(other) = self.catalog().relation(other)
        {
            any_right(self.catalog(), self.user, &other, right::TRIGGER)?;
        }
        if create.fires & fires::ROW != 0 && create.fires & fires::TRUNCATE != 0 {
            return Err(unsupported(
                "TRUNCATE FOR EACH ROW triggers are not supported",
            ));
        }
        check_instead_of(create)?;
        let (old_table, new_table) = self.transition_names(create, &relation)?;
        let when = match &create.when {
            Some(source) => Some(self.checked_condition(create, source, &table)?),
            None => None,
        };
        let function = self.trigger_function(&create.function)?;
        let replaced = self.replaced_trigger(create, &relation)?;
        let columns = self.trigger_columns(create, &table)?;
        let def = TriggerDef {
            oid: replaced.as_ref().map_or(Oid::NONE, |old| old.oid),
            name: create.name.clone(),
            table: relation.oid(),
            function,
            fires: create.fires,
            columns,
            when,
            args: create.args.clone(),
            old_table,
            new_table,
            constraint,
            enabled: Default::default(),
            parent: None,
        };
        Ok(Ddl::CreateTrigger {
            def: Box::new(def),
            old: replaced,
        })
    }

    /// The columns of a relation that can have such a trigger.
    fn may_have_trigger(
        &self,
        relation: &Relation,
        create: &ast::CreateTrigger,
    ) -> Result<Arc<TableDef>> {
        let wrong = |what: &str, detail: &str| {
            let message = format!("\"{}\" is {what}", relation.name());
            Err(Error::new(state::WRONG_OBJECT_TYPE, message).detail(detail))
        };
        let is = |bit: i16| create.fires & bit != 0;
        match relation {
            Relation::Table(table) if table.materialized.is_some() => {
                return Err(no_triggers(relation, "materialized views"));
            }
            Relation::Table(_) if is(fires::INSTEAD) => {
                return wrong("a table", "Tables cannot have INSTEAD OF triggers.");
            }
            Relation::Table(table)
                if table.is_partitioned() && is(fires::ROW) && !create.transitions.is_empty() =>
            {
                let message = format!("\"{}\" is a partitioned table", table.name);
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).detail(
                    "ROW triggers with transition tables are not supported on partitioned tables.",
                ));
            }
            Relation::View(_) if !is(fires::INSTEAD) && is(fires::ROW) => {
                let detail = "Views cannot have row-level BEFORE or AFTER triggers.";
                return wrong("a view", detail);
            }
            Relation::View(_) if is(fires::TRUNCATE) => {
                return wrong("a view", "Views cannot have TRUNCATE triggers.");
            }
            Relation::Virtual(table) => {
                let message = format!("permission denied: \"{}\" is a system catalog", table.name);
                return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
            }
            Relation::Index(_) => return Err(no_triggers(relation, "indexes")),
            Relation::Sequence(_) => return Err(no_triggers(relation, "sequences")),
            _ => {}
        }
        columns_of(relation).ok_or_else(|| Error::internal("a relation without columns"))
    }

    fn trigger_constraint(
        &mut self,
        create: &ast::CreateTrigger,
    ) -> Result<Option<TriggerConstraint>> {
        let Some((deferral, from)) = &create.constraint else {
            return Ok(None);
        };
        if *deferral == Deferral::Never {
            return Err(Error::unsupported(
                "a constraint trigger that is NOT ENFORCED",
            ));
        }
        let other = match from {
            Some(name) => {
                let found = self.find_relation(name)?;
                let message = format!("relation \"{name}\" does not exist");
                let found = found.ok_or_else(|| Error::new(state::UNDEFINED_TABLE, message))?;
                Some(found.oid())
            }
            None => None,
        };
        Ok(Some(TriggerConstraint {
            deferral: *deferral,
            other,
        }))
    }

    /// The names of REFERENCING, of the old and of the new rows.
    fn transition_names(
        &self,
        create: &ast::CreateTrigger,
        relation: &Relation,
    ) -> Result<(Option<String>, Option<String>)> {
        let is = |bit: i16| create.fires & bit != 0;
        let (mut old, mut new) = (None, None);
        for transition in &create.transitions {
            if !transition.table {
                let message = "ROW variable naming in the REFERENCING clause is not supported";
                let hint = "Use OLD TABLE or NEW TABLE for naming transition tables.";
                return Err(unsupported(message).hint(hint));
            }
            let detail = "Triggers on views cannot have transition tables.";
            match relation {
                Relation::View(view) => {
                    let message = format!("\"{}\" is a view", view.name);
                    return Err(Error::new(state::WRONG_OBJECT_TYPE, message).detail(detail));
                }
                Relation::Table(table) if is(fires::ROW) && !table.parents.is_empty() => {
                    return Err(unsupported(match table.bound {
                        Some(_) => {
                            "ROW triggers with transition tables are not supported on partitions"
                        }
                        None => {
                            "ROW triggers with transition tables are not supported on inheritance children"
                        }
                    }));
                }
                _ => {}
            }
            if is(fires::TIMING) {
                return Err(invalid(
                    "transition table name can only be specified for an AFTER trigger",
                ));
            }
            if is(fires::TRUNCATE) {
                return Err(invalid(
                    "TRUNCATE triggers with transition tables are not supported",
                ));
            }
            let events = create.fires & (fires::INSERT | fires::UPDATE | fires::DELETE);
            if events.count_ones() > 1 {
                return Err(unsupported(
                    "transition tables cannot be specified for triggers with more than one event",
                ));
            }
            if !create.columns.is_empty() {
                return Err(unsupported(
                    "transition tables cannot be specified for triggers with column lists",
                ));
            }
            let (slot, right_event, only, twice) = match transition.new {
                true => (
                    &mut new,
                    is(fires::INSERT | fires::UPDATE),
                    "NEW TABLE can only be specified for an INSERT or UPDATE trigger",
                    "NEW TABLE cannot be specified multiple times",
                ),
                false => (
                    &mut old,
                    is(fires::DELETE | fires::UPDATE),
                    "OLD TABLE can only be specified for a DELETE or UPDATE trigger",
                    "OLD TABLE cannot be specified multiple times",
                ),
            };
            if !right_event {
                return Err(invalid(only));
            }
            if slot.replace(transition.name.clone()).is_some() {
                return Err(invalid(twice));
            }
        }
        if old.is_some() && old == new {
            return Err(invalid(
                "OLD TABLE name and NEW TABLE name cannot be the same",
            ));
        }
        Ok((old, new))
    }

    fn condition_over(&mut self, ast: &ast::Expr, table: &Arc<TableDef>) -> Result<Condition> {
        let (old, new) = (self.new_rel(), self.new_rel());
        let mut names = Names::default();
        names.join(row_names(table, "old", old))?;
        names.join(row_names(table, "new", new))?;
        let scope = Scope::within(&names, None);
        let expr = self.in_clause(WHEN, |b| {
            let bound = b.expr(ast, &scope)?;
            b.condition(bound, "WHEN", ast.pos)
        })?;
        Ok(Condition { expr, old, new })
    }

    fn stored_condition(&mut self, text: &str, table: &Arc<TableDef>) -> Result<Condition> {
        let ast = throng_syntax::parse::parse_expr(text)?;
        self.condition_over(&ast, table)
    }

    fn checked_condition(
        &mut self,
        create: &ast::CreateTrigger,
        source: &ast::Source,
        table: &Arc<TableDef>,
    ) -> Result<TriggerCondition> {
        let pos = source.expr.pos;
        let seen = std::mem::take(&mut self.seen);
        let bound = self.condition_over(&source.expr, table);
        let seen = std::mem::replace(&mut self.seen, seen);
        let bound = bound?;
        if bound.expr.any(&mut |e| matches!(e, Expr::Subquery(_))) {
            let message = "cannot use subquery in trigger WHEN condition";
            return Err(unsupported(message).position(pos + 1));
        }
        for (rel, attnum, at) in &seen {
            check_reference(create, table, (*rel == bound.new, *attnum))
                .map_err(|e| crate::binder::at(e, *at))?;
        }
        // A whole row is whatever columns there are.
        let named = seen.iter().filter(|(_, attnum, _)| *attnum > 0);
        let mut columns: Vec<u16> = named.map(|(_, attnum, _)| *attnum as u16).collect();
        columns.sort_unstable();
        columns.dedup();
        let mut text = kept_text(&bound, table, self.catalog(), self.ctx.eval);
        // A text that would be read as something else is not kept.
        let ctx = BindContext {
            search_path: STORED_PATH,
            params: &[],
            ..*self.ctx
        };
        let mut again = Binder::new(&ctx);
        again.next_rel = bound.old.0;
        match again.stored_condition(&text, table) {
            Ok(again) if again.expr == bound.expr => {}
            _ => text.clone_from(&source.text),
        }
        Ok(TriggerCondition {
            text,
            columns,
            uses: objects_of(&bound.expr),
        })
    }

    /// The function that a trigger runs.
    fn trigger_function(&self, name: &ast::Name) -> Result<Oid> {
        let none = |def: &Arc<throng_catalog::RoutineDef>| def.inputs().next().is_none();
        let mut named = self.routines_named(name).into_iter().map(|(_, def)| def);
        let (function, ret) = match named.find(none) {
            Some(def) => {
                let rights = self
                    .catalog()
                    .routine_rights(self.user, &def, right::EXECUTE);
                if rights == 0 {
                    let message = format!("permission denied for function {name}");
                    return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
                }
                (def.oid, def.ret)
            }
            None => {
                let builtin = name.schema().is_none_or(|s| s == "pg_catalog");
                let found = throng_values::func::functions_named(name.last()).iter();
                let found = found.copied().find(|f| builtin && f.args.is_empty());
                let Some(found) = found else {
                    let message = format!("function {name}() does not exist");
                    return Err(Error::new(state::UNDEFINED_FUNCTION, message));
                };
                if found.ret == oid::TRIGGER && found.oid != SUPPRESS {
                    let message = format!("a trigger that executes {name}");
                    return Err(Error::unsupported(message));
                }
                (found.oid, found.ret)
            }
        };
        if ret != oid::TRIGGER {
            let message = format!(
                "function {name} must return type {}",
                type_name(oid::TRIGGER)
            );
            return Err(invalid(&message));
        }
        Ok(function)
    }

    fn replaced_trigger(
        &self,
        create: &ast::CreateTrigger,
        relation: &Relation,
    ) -> Result<Option<Arc<TriggerDef>>> {
        let Some(old) = self.catalog().trigger_by_name(relation.oid(), &create.name) else {
            return Ok(None);
        };
        let of = format!(
            "trigger \"{}\" for relation \"{}\"",
            create.name,
            relation.name()
        );
        let what = match old {
            _ if !create.or_replace => "already exists",
            old if old.parent.is_some() => "is an internal or a child trigger",
            old if old.constraint.is_some() => "is a constraint trigger",
            _ => return Ok(Some(old.clone())),
        };
        Err(Error::new(state::DUPLICATE_OBJECT, format!("{of} {what}")))
    }

    fn trigger_columns(&self, create: &ast::CreateTrigger, table: &TableDef) -> Result<Vec<u16>> {
        let mut columns = Vec::with_capacity(create.columns.len());
        for name in &create.columns {
            let Some(attnum) = table.attnum(name) else {
                let message = format!(
                    "column \"{name}\" of relation \"{}\" does not exist",
                    table.name
                );
                return Err(Error::new(state::UNDEFINED_COLUMN, message));
            };
            if columns.contains(&attnum) {
                let message = format!("column \"{name}\" specified more than once");
                return Err(Error::new(state::DUPLICATE_COLUMN, message));
            }
            columns.push(attnum);
        }
        Ok(columns)
    }

    fn change_trigger(&mut self, statement: &ast::ChangeTrigger) -> Result<Ddl> {
        let (tag, may_miss) = match &statement.change {
            TriggerChange::Drop { if_exists, .. } => ("DROP TRIGGER", *if_exists),
            TriggerChange::Rename(_) => ("ALTER TRIGGER", false),
            TriggerChange::Comment(_) => ("COMMENT", false),
        };
        let Some(relation) = self.trigger_relation(&statement.table, may_miss)? else {
            return Ok(Ddl::Nothing { tag });
        };
        let (catalog, table) = (self.catalog(), relation.oid());
        let Some(trigger) = catalog.trigger_by_name(table, &statement.name).cloned() else {
            let name = &statement.name;
            if may_miss {
                let message = format!(
                    "trigger \"{name}\" for relation \"{}\" does not exist, skipping",
                    statement.table
                );
                self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                return Ok(Ddl::Nothing { tag });
            }
            let message = format!(
                "trigger \"{name}\" for table \"{}\" does not exist",
                relation.name()
            );
            return Err(Error::new(state::UNDEFINED_OBJECT, message));
        };
        let owner = relation.owner(self.catalog());
        let what = match statement.change {
            TriggerChange::Rename(_) => relation.privilege_name(),
            _ => "relation",
        };
        self.must_own(owner, what, relation.name())?;
        let target = Target {
            kind: TargetKind::Trigger,
            oid: trigger.oid,
        };
        Ok(match &statement.change {
            TriggerChange::Drop { cascade, .. } => Ddl::Drop {
                targets: vec![target],
                cascade: *cascade,
            },
            TriggerChange::Rename(name) => {
                if let Some(parent) = trigger.parent {
                    let message = format!(
                        "cannot rename trigger \"{}\" on table \"{}\"",
                        trigger.name,
                        relation.name()
                    );
                    let above = self.catalog().trigger(parent).map(|t| t.table);
                    let above = above.and_then(|oid| self.catalog().table(oid));
                    return Err(unsupported(&message).hint(format!(
                        "Rename the trigger on the partitioned table \"{}\" instead.",
                        above.map_or("", |t| &t.name)
                    )));
                }
                Ddl::Rename {
                    target,
                    name: name.clone(),
                    only: false,
                    said: None,
                }
            }
            TriggerChange::Comment(text) => Ddl::Comment {
                target,
                text: text.clone(),
            },
        })
    }

    /// The relation whose trigger is meant; None (and a notice) where it is missing and may be.
    pub(super) fn trigger_relation(
        &mut self,
        name: &ast::Name,
        may_miss: bool,
    ) -> Result<Option<Relation>> {
        let missing_schema = name.schema().filter(|s| self.schema_named(s).is_none());
        let message = match missing_schema {
            Some(schema) => format!("schema \"{schema}\" does not exist"),
            None => match self.find_relation(name)? {
                Some(relation) => return Ok(Some(relation)),
                None => format!("relation \"{name}\" does not exist"),
            },
        };
        if may_miss {
            let message = format!("{message}, skipping");
            self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
            return Ok(None);
        }
        Err(Error::new(
            match missing_schema {
                Some(_) => state::INVALID_SCHEMA_NAME,
                None => state::UNDEFINED_TABLE,
            },
            message,
        ))
    }

    /// ALTER TABLE … ENABLE or DISABLE TRIGGER.
    pub(in crate::binder) fn enabled_triggers(
        &self,
        table: &TableDef,
        change: &ast::EnableTrigger,
    ) -> Result<EnableTriggers> {
        let name = match &change.which {
            ast::Triggers::Named(name) => {
                if self.catalog().trigger_by_name(table.oid, name).is_none() {
                    let message = format!(
                        "trigger \"{name}\" for table \"{}\" does not exist",
                        table.name
                    );
                    return Err(Error::new(state::UNDEFINED_OBJECT, message));
                }
                Some(name.clone())
            }
            ast::Triggers::All => {
                let catalog = self.catalog();
                if let Some(name) = of_keys(catalog, table)
                    && !catalog.is_superuser(self.user)
                {
                    let message = format!("permission denied: \"{name}\" is a system trigger");
                    return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
                }
                None
            }
            ast::Triggers::User => None,
        };
        Ok(EnableTriggers {
            name,
            enabled: change.enabled,
            keys: matches!(change.which, ast::Triggers::All),
            only: false,
        })
    }
}

/// What INSTEAD OF triggers cannot have.
fn check_instead_of(create: &ast::CreateTrigger) -> Result<()> {
    if create.fires & fires::INSTEAD == 0 {
        return Ok(());
    }
    let message = match create {
        _ if create.fires & fires::ROW == 0 => "INSTEAD OF triggers must be FOR EACH ROW",
        _ if create.when.is_some() => "INSTEAD OF triggers cannot have WHEN conditions",
        _ if !create.columns.is_empty() => "INSTEAD OF triggers cannot have column lists",
        _ => return Ok(()),
    };
    Err(unsupported(message))
}

/// Whether a condition may speak of a column of the new or the old row.
fn check_reference(
    create: &ast::CreateTrigger,
    table: &TableDef,
    (of_new, attnum): (bool, i16),
) -> Result<()> {
    let is = |bit: i16| create.fires & bit != 0;
    if !is(fires::ROW) {
        return Err(invalid(
            "statement trigger's WHEN condition cannot reference column values",
        ));
    }
    if !of_new {
        return match is(fires::INSERT) {
            true => Err(invalid(
                "INSERT trigger's WHEN condition cannot reference OLD values",
            )),
            false => Ok(()),
        };
    }
    if is(fires::DELETE) {
        return Err(invalid(
            "DELETE trigger's WHEN condition cannot reference NEW values",
        ));
    }
    if !is(fires::BEFORE) {
        return Ok(());
    }
    let generated = |detail: String| {
        let message = "BEFORE trigger's WHEN condition cannot reference NEW generated columns";
        Err(invalid(message).detail(detail))
    };
    match usize::try_from(attnum) {
        Err(_) => Err(unsupported(
            "BEFORE trigger's WHEN condition cannot reference NEW system columns",
        )),
        Ok(0) if table.live_columns().any(|(_, c)| c.generated.is_some()) => generated(
            "A whole-row reference is used and the table contains generated columns.".to_owned(),
        ),
        Ok(0) => Ok(()),
        Ok(at) => match table.columns.get(at - 1) {
            Some(column) if column.generated.is_some() => {
                generated(format!("Column \"{}\" is a generated column.", column.name))
            }
            _ => Ok(()),
        },
    }
}
