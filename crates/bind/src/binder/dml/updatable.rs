//! What a statement writes to: a table, or through a view that is no more than some rows and
//! columns of one.
//!
//! A view is written through by writing to its table: its columns are names for expressions over
//! the table's row, its condition is one more condition of an UPDATE or DELETE, and WITH CHECK
//! OPTION one more check of the new row. A view over a view is one over the other's table, by
//! putting expressions in the place of columns.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Result, SqlType, oid};

use crate::binder::Binder;
use crate::binder::ddl::privilege::Link;
use crate::binder::ddl::trigger::columns_of;
use crate::binder::dml::row_names;
use crate::binder::query::scope::{NamedColumn, NamedTable, Names, renamed};
use crate::tree::expr::{Expr, RelId};
use crate::tree::query::walk::QueryPartMut;
use crate::tree::query::{Body, Check, CheckOf, Distinct, FromItem, Query, Rel, RelKind};
use throng_catalog::{CheckOption, Relation, TableDef, ViewDef, ViewDefault, fires};
use throng_syntax::parse::ast::{self, Pos};
use throng_values::func::RelColumn;

/// What is done to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::binder) enum Verb {
    Insert,
    Update,
    Delete,
    Merge,
}

pub(in crate::binder) struct WriteTarget {
    pub table: Arc<TableDef>,
    /// The table with the defaults of the views over it.
    pub given: Arc<TableDef>,
    /// The row that is there (of an INSERT: the new one).
    pub rel: RelId,
    /// A view over it says ONLY.
    pub only: bool,
    pub names: Names,
    /// What may be written to, by name and attribute number; none: a column that is computed.
    columns: Vec<(String, Option<u16>)>,
    view: Option<(Arc<ViewDef>, Verb)>,
    /// The condition of the views.
    pub filter: Option<Expr>,
    /// Conditions of views that hide rows: see [`BoundQuery::security`].
    ///
    /// [`BoundQuery::security`]: crate::tree::query::BoundQuery::security
    pub barrier: Vec<Expr>,
    /// What the views ask of a new row.
    pub checks: Vec<Check>,
    /// What is written to, from what was named down to the table.
    pub links: Vec<Link>,
    /// A view's columns over the table's row.
    pub exprs: Vec<Expr>,
    /// It is a view whose INSTEAD OF triggers do what is to be done: `table` has its columns, and
    /// these are its rows.
    pub instead: Option<FromItem>,
}

/// A view that is rows and columns of one table.
struct Simple {
    table: Arc<TableDef>,
    rel: RelId,
    only: bool,
    /// The columns over the table's row.
    exprs: Vec<Expr>,
    filter: Option<Expr>,
    /// What a view with `security_barrier` and those below it ask.
    barrier: Vec<Expr>,
    /// Conditions on new rows, those of inner views first.
    checks: Vec<Check>,
    /// The views' own defaults, by the table's columns.
    defaults: Vec<ViewDefault>,
}

const MANY: &str =
    "Views that do not select from a single table or view are not automatically updatable.";
const NO_COLUMNS: &str = "Views that have no updatable columns are not automatically updatable.";

impl WriteTarget {
    /// What is done to it is MERGE's.
    pub fn merges(&mut self) {
        if let Some((_, verb)) = &mut self.view {
            *verb = Verb::Merge;
        }
    }

    /// Whether a view was named.
    pub fn is_view(&self) -> bool {
        self.view.is_some() || self.instead.is_some()
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        let view = self.view.as_ref();
        view.map_or(&self.table.name, |(view, _)| &view.name)
    }

    /// The row that an INSERT proposes where another is in its way.
    pub fn excluded(&self, rel: RelId) -> Names {
        if !self.is_view() {
            return row_names(&self.table, "excluded", rel);
        }
        let mut names = renamed(&self.names, self.rel, rel);
        for table in &mut names.tables {
            "excluded".clone_into(&mut table.name);
        }
        names
    }

    /// The table's column that a name stands for; Some(None) where it stands for something
    /// computed.
    pub fn stored(&self, name: &str) -> Option<Option<u16>> {
        let found = self.columns.iter().find(|(n, _)| n == name);
        found.map(|(_, attnum)| *attnum)
    }

    /// The columns in order, of an INSERT that names none.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// A column to be written.
    pub fn column(&self, name: &str, pos: Pos) -> Result<u16> {
        let found = self.columns.iter().find(|(n, _)| n == name);
        let relation = self.name();
        match (found, &self.view) {
            (Some((_, Some(attnum))), _) => Ok(*attnum),
            (Some((_, None)), Some((view, verb))) => {
                let message = match verb {
                    Verb::Insert => "insert into",
                    Verb::Merge => "merge into",
                    Verb::Update | Verb::Delete => "update",
                };
                let message = format!(
                    "cannot {message} column \"{name}\" of view \"{}\"",
                    view.name
                );
                Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).detail(
                    "View columns that are not columns of their base relation are not updatable.",
                ))
            }
            _ => {
                let message =
                    format!("column \"{name}\" of relation \"{relation}\" does not exist");
                Err(Error::new(state::UNDEFINED_COLUMN, message).position(pos + 1))
            }
        }
    }
}

impl Binder<'_> {
    /// The target of an INSERT, UPDATE, DELETE or MERGE.
    pub(in crate::binder) fn write_target(
        &mut self,
        name: &ast::Name,
        alias: Option<&str>,
        verb: Verb,
    ) -> Result<WriteTarget> {
        if self.transition_table(name).is_some() {
            let message = format!(
                "relation \"{}\" cannot be the target of a modifying statement",
                name.last()
            );
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
        if let Some(Relation::View(view)) = self.find_relation(name)? {
            return self.view_target(&view, alias, verb);
        }
        let table = self.target_table(name)?;
        let rel = self.new_rel();
        self.note_computed(rel, &table);
        let mut names = row_names(&table, alias.unwrap_or(&table.name), rel);
        for named in names.tables.iter_mut().filter(|_| alias.is_none()) {
            named.schema = self.schema_name(table.schema);
        }
        let links = vec![self.target_link(&table)];
        let columns = table
            .live_columns()
            .map(|(attnum, c)| (c.name.clone(), Some(attnum)))
            .collect();
        Ok(WriteTarget {
            given: table.clone(),
            table,
            rel,
            only: false,
            names,
            columns,
            view: None,
            filter: None,
            barrier: vec![],
            checks: vec![],
            links,
            exprs: vec![],
            instead: None,
        })
    }

    /// A view with INSTEAD OF triggers for what is done to it.
    fn instead_target(&mut self, view: &Arc<ViewDef>, alias: Option<&str>) -> Result<WriteTarget> {
        let relation = Relation::View(view.clone());
        let table = columns_of(&relation).ok_or_else(|| Error::internal("no view"))?;
        let mut query = self.view_rows(view)?;
        let links = self.view_links(view, &query);
        // The rows are the view's, whatever it is made of.
        let none = Expr::Const(throng_types::Datum::Int8(0), SqlType::plain(oid::INT8));
        query.offset.get_or_insert(none);
        let rel = self.new_rel();
        let name = alias.unwrap_or(&view.name);
        let mut names = row_names(&table, name, rel);
        for named in names.tables.iter_mut().filter(|_| alias.is_none()) {
            named.schema = self.schema_name(view.schema);
        }
        let columns = view.columns.iter().map(|c| RelColumn {
            name: c.name.clone(),
            ty: c.ty,
        });
        let rows = FromItem::Rel(Box::new(Rel {
            aliased: alias.is_some(),
            ..Rel::subquery(rel, name, query, columns.collect())
        }));
        let columns = table.live_columns();
        Ok(WriteTarget {
            columns: columns
                .map(|(attnum, c)| (c.name.clone(), Some(attnum)))
                .collect(),
            given: table.clone(),
            table,
            rel,
            only: true,
            names,
            view: None,
            filter: None,
            barrier: vec![],
            checks: vec![],
            links: links.into_iter().take(1).collect(),
            exprs: vec![],
            instead: Some(rows),
        })
    }

    /// Whether a view has INSTEAD OF triggers on an event.
    pub(in crate::binder) fn acts_instead(&self, view: &ViewDef, verb: Verb) -> bool {
        let events = match verb {
            Verb::Insert => fires::INSERT,
            Verb::Update => fires::UPDATE,
            Verb::Delete => fires::DELETE,
            Verb::Merge => fires::INSERT | fires::UPDATE | fires::DELETE,
        };
        let triggers = self.catalog().triggers_of(view.oid).iter();
        triggers
            .into_iter()
            .any(|t| t.is_instead() && t.is_on(events))
    }

    /// 0A000 for a view over one whose INSTEAD OF triggers would be passed by.
    fn nothing_acts_below(&self, query: &Query, verb: Verb) -> Result<()> {
        if let Body::Select(select) = &query.body
            && let [FromItem::Rel(rel)] = &select.from[..]
            && let RelKind::View { view, query } = &rel.kind
        {
            if self.acts_instead(view, verb) {
                return Err(Error::unsupported(
                    "writing through a view over a view with INSTEAD OF triggers",
                ));
            }
            return self.nothing_acts_below(query, verb);
        }
        Ok(())
    }

    fn view_target(
        &mut self,
        view: &Arc<ViewDef>,
        alias: Option<&str>,
        verb: Verb,
    ) -> Result<WriteTarget> {
        if self.acts_instead(view, verb) {
            return self.instead_target(view, alias);
        }
        // It is written to, not read: what is read of it is noted once that is known.
        let place = self.accesses.len();
        let query = self.view_rows(view)?;
        self.nothing_acts_below(&query, verb)?;
        let links = self.view_links(view, &query);
        self.forget_reads(place, &links);
        let simple = simple(view, query, false)?.map_err(|why| not_updatable(view, verb, why))?;
        self.forget_security(simple.rel);
        let columns: Vec<(String, Option<u16>)> = view
            .columns
            .iter()
            .zip(&simple.exprs)
            .map(|(c, expr)| (c.name.clone(), written(expr, simple.rel)))
            .collect();
        if verb != Verb::Delete && columns.iter().all(|(_, attnum)| attnum.is_none()) {
            return Err(not_updatable(view, verb, NO_COLUMNS));
        }
        let named = view.columns.iter().zip(&simple.exprs);
        let visible: Vec<NamedColumn> = named
            .map(|(c, expr)| NamedColumn {
                name: c.name.clone(),
                expr: expr.clone(),
            })
            .collect();
        let names = Names {
            tables: vec![NamedTable {
                name: alias.unwrap_or(&view.name).to_owned(),
                schema: self.schema_name(view.schema).filter(|_| alias.is_none()),
                rel: None,
                columns: visible.clone(),
                table: None,
                catalog: false,
                function: false,
                row_type: None,
                nullable: false,
            }],
            columns: visible,
        };
        Ok(WriteTarget {
            given: with_defaults(&simple.table, simple.defaults),
            table: simple.table,
            rel: simple.rel,
            only: simple.only,
            names,
            columns,
            view: Some((view.clone(), verb)),
            filter: simple.filter,
            barrier: simple.barrier,
            checks: simple.checks,
            links,
            exprs: simple.exprs,
            instead: None,
        })
    }

    /// WITH CHECK OPTION is for views that can be written through.
    pub(in crate::binder) fn check_option_allowed(&mut self, view: &ViewDef) -> Result<()> {
        let view = Arc::new(view.clone());
        let why = match self.updatable_columns(&view)? {
            Ok(columns) if columns.contains(&true) => return Ok(()),
            Ok(_) => NO_COLUMNS,
            Err(why) => why,
        };
        let message = "WITH CHECK OPTION is supported only on automatically updatable views";
        Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).hint(why))
    }

    /// Which columns of a view can be written to; or why none.
    pub(in crate::binder) fn updatable_columns(
        &mut self,
        view: &Arc<ViewDef>,
    ) -> Result<std::result::Result<Vec<bool>, &'static str>> {
        let definition = std::mem::replace(&mut self.definition, true);
        let query = self.view_rows(view);
        self.definition = definition;
        Ok(simple(view, query?, false)?.map(|simple| {
            let columns = simple.exprs.iter();
            columns.map(|e| written(e, simple.rel).is_some()).collect()
        }))
    }
}

/// The table as one that has these defaults. Those of columns whose values are the table's own do
/// not count.
fn with_defaults(table: &Arc<TableDef>, defaults: Vec<ViewDefault>) -> Arc<TableDef> {
    if defaults.is_empty() {
        return table.clone();
    }
    let mut given = (**table).clone();
    for own in defaults {
        let column = &mut given.columns[usize::from(own.attnum) - 1];
        if column.identity.is_none() && column.generated.is_none() {
            (column.default, column.sequence) = (own.text, own.sequence);
        }
    }
    Arc::new(given)
}

/// The table's column that an expression is.
fn written(expr: &Expr, rel: RelId) -> Option<u16> {
    match expr {
        Expr::Var(var) if var.rel == rel => u16::try_from(var.column).ok().filter(|n| *n > 0),
        _ => None,
    }
}

fn not_updatable(view: &ViewDef, verb: Verb, why: &str) -> Error {
    let (message, hint) = match verb {
        Verb::Insert => (
            format!("cannot insert into view \"{}\"", view.name),
            "To enable inserting into the view, provide an INSTEAD OF INSERT trigger or an unconditional ON INSERT DO INSTEAD rule.",
        ),
        Verb::Update => (
            format!("cannot update view \"{}\"", view.name),
            "To enable updating the view, provide an INSTEAD OF UPDATE trigger or an unconditional ON UPDATE DO INSTEAD rule.",
        ),
        Verb::Delete | Verb::Merge => (
            format!("cannot delete from view \"{}\"", view.name),
            "To enable deleting from the view, provide an INSTEAD OF DELETE trigger or an unconditional ON DELETE DO INSTEAD rule.",
        ),
    };
    Error::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .detail(why)
        .hint(hint)
}

/// The view as rows and columns of one table, or why it is more. `cascaded`: a view over it checks
/// its condition, too.
fn simple(
    view: &ViewDef,
    query: Query,
    cascaded: bool,
) -> Result<std::result::Result<Simple, &'static str>> {
    if let Some(why) = more_than_rows(&query) {
        return Ok(Err(why));
    }
    let Body::Select(select) = query.body else {
        return Ok(Err(MANY));
    };
    let mut select = *select;
    let Some(FromItem::Rel(rel)) = select.from.pop() else {
        return Ok(Err(MANY));
    };
    let id = rel.id;
    let cascaded = cascaded || view.check == Some(CheckOption::Cascaded);
    let inner = match rel.kind {
        RelKind::Table(table) => Simple {
            table,
            rel: id,
            only: rel.only,
            exprs: vec![],
            filter: None,
            barrier: vec![],
            checks: vec![],
            defaults: vec![],
        },
        RelKind::View { view, query } => match simple(&view, *query, cascaded)? {
            Ok(inner) => inner,
            Err(why) => return Ok(Err(why)),
        },
        _ => return Ok(Err(MANY)),
    };
    let mut exprs: Vec<Expr> = select.targets.into_iter().map(|t| t.expr).collect();
    let mut filter = select.filter;
    if !inner.exprs.is_empty() {
        let mut through = |part: QueryPartMut<'_>| {
            if let QueryPartMut::Expr(e) = part
                && let Expr::Var(var) = e
                && var.rel == id
            {
                *e = inner.exprs[var.column as usize - 1].clone();
            }
        };
        exprs.iter_mut().for_each(|e| e.walk_mut(&mut through));
        filter.iter_mut().for_each(|e| e.walk_mut(&mut through));
    }
    let mut defaults = inner.defaults;
    for own in &view.defaults {
        let expr = exprs.get(usize::from(own.attnum) - 1);
        if let Some(attnum) = expr.and_then(|expr| written(expr, inner.rel)) {
            defaults.retain(|below| below.attnum != attnum);
            defaults.push(ViewDefault {
                attnum,
                ..own.clone()
            });
        }
    }
    let mut checks = inner.checks;
    if let (Some(filter), true) = (&filter, cascaded || view.check.is_some()) {
        checks.push(Check {
            name: view.name.clone(),
            // A row for which the condition is unknown is not seen in the view.
            expr: Expr::IsBool {
                arg: Box::new(filter.clone()),
                value: Some(true),
                negated: false,
            },
            of: CheckOf::View,
        });
    }
    let mut both: Vec<Expr> = [inner.filter, filter].into_iter().flatten().collect();
    let mut barrier = inner.barrier;
    if view.is_barrier() {
        barrier.append(&mut both);
    }
    Ok(Ok(Simple {
        table: inner.table,
        rel: inner.rel,
        only: inner.only,
        exprs,
        filter: Expr::all_of(both),
        barrier,
        checks,
        defaults,
    }))
}

/// Why a query is more than some rows and columns of what it reads.
fn more_than_rows(query: &Query) -> Option<&'static str> {
    const SETS: &str =
        "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.";
    let select = match &query.body {
        Body::Select(select) => select,
        Body::SetOp { .. } => return Some(SETS),
        Body::Values { .. } => return Some(MANY),
    };
    let some = |found: bool, why: &'static str| found.then_some(why);
    let any = |test: fn(&Expr) -> bool| {
        let mut test = |e: &Expr| test(e);
        select.targets.iter().any(|t| t.expr.any(&mut test))
    };
    some(
        select.distinct != Distinct::No,
        "Views containing DISTINCT are not automatically updatable.",
    )
    .or(some(
        !select.group_by.is_empty(),
        "Views containing GROUP BY are not automatically updatable.",
    ))
    .or(some(
        select.having.is_some(),
        "Views containing HAVING are not automatically updatable.",
    ))
    .or(some(
        !query.ctes.is_empty(),
        "Views containing WITH are not automatically updatable.",
    ))
    .or(some(
        query.limit.is_some() || query.offset.is_some(),
        "Views containing LIMIT or OFFSET are not automatically updatable.",
    ))
    .or(some(
        select.grouped,
        "Views that return aggregate functions are not automatically updatable.",
    ))
    .or(some(
        !select.windows.is_empty(),
        "Views that return window functions are not automatically updatable.",
    ))
    .or(some(
        any(|e| e.is_set()),
        "Views that return set-returning functions are not automatically updatable.",
    ))
    .or(some(select.from.len() != 1, MANY))
    .or(some(
        matches!(&select.from[..], [FromItem::Rel(rel)] if rel.sample.is_some()),
        "Views containing TABLESAMPLE are not automatically updatable.",
    ))
}
