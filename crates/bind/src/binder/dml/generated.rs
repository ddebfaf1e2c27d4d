//! Generated columns: what their expressions may be, and where they are computed.
//!
//! ```text
//! GENERATED … STORED    the row as it will be ─► the column's value, after everything else and before NOT NULL and CHECK
//! GENERATED … VIRTUAL   a variable of the column ─► the expression over the same row, in the whole bound statement at once
//! ```
//! A view's query keeps the variables: what the columns are computed by is known where the view is
//! read.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::sqltype::{made, type_name};
use throng_types::{Datum, Error, Oid, Result, SqlState, SqlType, oid};

use crate::binder::ddl::table::no_position;
use crate::binder::ddl::view::{STORED_PATH, stored_context};
use crate::binder::dml::row_names;
use crate::binder::query::scope::Scope;
use crate::binder::renamed::with_stored_style;
use crate::binder::{BindContext, Binder, Clause, slots_of_row};
use crate::deparse::{self, Style};
use crate::fold::is_immutable_cast;
use crate::tree::expr::{Expr, RelId, Var, system};
use crate::tree::query::walk::QueryPartMut;
use crate::tree::query::{
    Body, BoundQuery, Check, CheckOf, CteBody, FromItem, JoinKind, QueryKind,
};
use throng_catalog::{Catalog, ColumnDef, Generated, TableDef};
use throng_syntax::parse::{self, ast};
use throng_values::func::{CastContext, EvalContext, Volatility};

/// What makes a table's row whole whose columns were set one by one, over it by `Slot(attnum - 1)`:
/// its columns of domains as the domains have them, then those that are computed.
pub fn completion(ctx: &BindContext<'_>, table: &Arc<TableDef>) -> Result<Vec<(u16, Expr)>> {
    let mut binder = Binder::new(ctx);
    let rel = binder.new_rel();
    let all: Vec<u16> = table.live_columns().map(|(attnum, _)| attnum).collect();
    let mut values = binder.domain_columns(table, &all, rel)?;
    values.extend(binder.stored_columns(table, rel)?);
    let slots = |(attnum, value)| (attnum, slots_of_row(value));
    Ok(values.into_iter().map(slots).collect())
}

/// The columns that a table's own rows compute when they are written, over them by `Slot(attnum -
/// 1)`.
pub(crate) fn stored_values(
    table: &Arc<TableDef>,
    catalog: &Catalog,
    eval: EvalContext<'_>,
) -> Result<Vec<(u16, Expr)>> {
    if !table.live_columns().any(|(_, c)| c.is_stored()) {
        return Ok(Vec::new());
    }
    let ctx = stored_context(catalog, eval);
    let mut binder = Binder::new(&ctx);
    let rel = binder.new_rel();
    let values = binder.stored_columns(table, rel)?;
    let slots = |(attnum, value)| (attnum, slots_of_row(value));
    Ok(values.into_iter().map(slots).collect())
}

/// For a child's column that is stored where its parent's is not, or the other way round.
pub(crate) fn other_kind(
    code: SqlState,
    column: &str,
    parent: &Generated,
    child: &Generated,
) -> Error {
    let kind = |generated: &Generated| match generated.stored {
        true => "STORED",
        false => "VIRTUAL",
    };
    let message = format!("column \"{column}\" inherits from generated column of different kind");
    Error::new(code, message).detail(format!(
        "Parent column is {}, child column is {}.",
        kind(parent),
        kind(child)
    ))
}

/// A generation expression as a session with this search path would write it; `pretty`: without
/// needless parentheses.
pub fn generation_shown(
    table: &Arc<TableDef>,
    column: &ColumnDef,
    catalog: &Catalog,
    search_path: &[Oid],
    pretty: bool,
    eval: EvalContext<'_>,
) -> Result<String> {
    let Some(generated) = &column.generated else {
        return Err(Error::internal("a column that is not generated"));
    };
    let ctx = stored_context(catalog, eval);
    let mut binder = Binder::defining(&ctx);
    let rel = binder.new_rel();
    let ast = parse::parse_expr(&generated.expr)?;
    let names = row_names(table, &table.name, rel);
    let bound = binder.in_clause(CLAUSE, |b| b.expr(&ast, &Scope::within(&names, None)))?;
    let style = Style {
        kept: false,
        catalog,
        search_path,
        pretty,
        eval,
    };
    Ok(deparse::row_expr(&bound, table, rel, &style))
}

const CLAUSE: Clause = Clause::Other("column generation expressions");

#[cold]
pub(in crate::binder) fn wrong_value(message: String, name: &str) -> Error {
    Error::new(state::GENERATED_ALWAYS, message)
        .detail(format!("Column \"{name}\" is a generated column."))
}

/// The text of an expression over a table's row as a definition keeps it: one that means the same
/// on any search path.
pub(in crate::binder) fn kept_text(
    expr: &Expr,
    table: &TableDef,
    rel: RelId,
    catalog: &Catalog,
    eval: EvalContext<'_>,
) -> String {
    with_stored_style(catalog, eval, |style| {
        deparse::row_expr(expr, table, rel, style)
    })
}

impl Binder<'_> {
    /// Notes an entry whose columns may be computed, or of domains.
    pub(in crate::binder) fn note_computed(&mut self, rel: RelId, table: &Arc<TableDef>) {
        self.note_virtual(rel, table);
        self.note_domains(rel, table);
    }

    /// Notes an entry some of whose columns are computed when they are read.
    pub(in crate::binder) fn note_virtual(&mut self, rel: RelId, table: &Arc<TableDef>) {
        if table.has_virtual() {
            self.computed.push((rel, table.clone()));
        }
    }

    /// Checks a generation expression; what the catalog keeps of it, and its value over the row by
    /// `Slot(attnum - 1)`.
    pub(in crate::binder) fn generation(
        &mut self,
        table: &TableDef,
        column: &ColumnDef,
        source: &ast::Source,
        stored: bool,
    ) -> Result<(Generated, Expr)> {
        let shared = Arc::new(table.clone());
        let rel = self.new_rel();
        let names = row_names(&shared, &table.name, rel);
        let scope = Scope::within(&names, None);
        let pos = source.expr.pos;
        let seen = std::mem::take(&mut self.seen);
        let bound = self.in_clause(CLAUSE, |b| b.expr(&source.expr, &scope));
        let seen = std::mem::replace(&mut self.seen, seen);
        let bound = bound?;
        if bound.any(&mut |e| matches!(e, Expr::Subquery(_))) {
            let message = "cannot use subquery in column generation expression";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1));
        }
        for (_, attnum, at) in seen.iter().filter(|(of, ..)| *of == rel) {
            check_reference(table, *attnum).map_err(|e| crate::binder::at(e, *at))?;
        }
        let mut plain = bound.clone();
        crate::inline::inline_in(&mut plain);
        if plain.any(&mut is_mutable) {
            let message = "generation expression is not immutable";
            return Err(Error::new(state::INVALID_OBJECT_DEFINITION, message));
        }
        check_virtual_type(column, stored)?;
        if !stored && bound.any(&mut |e| matches!(e, Expr::Routine(_))) {
            let message = "generation expression uses user-defined function";
            let detail = "Virtual generated columns that make use of user-defined functions are not yet supported.";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message)
                .detail(detail)
                .position(pos + 1));
        }
        let from = bound.type_oid();
        let coerced = self.try_coerce(bound.clone(), column.ty, CastContext::Assignment, pos)?;
        let Some(written) = coerced else {
            let message = format!(
                "column \"{}\" is of type {} but default expression is of type {}",
                column.name,
                type_name(column.ty.oid),
                type_name(from)
            );
            return Err(Error::new(state::DATATYPE_MISMATCH, message)
                .hint("You will need to rewrite or cast the expression."));
        };
        let mut columns: Vec<u16> = Vec::new();
        bound.for_each_var(&mut |var| columns.extend(u16::try_from(var.column).ok()));
        columns.sort_unstable();
        columns.dedup();
        let value = self.in_domain(written.clone(), column.domain)?;
        let text_of = self.as_written(|b| {
            let bound = b.in_clause(CLAUSE, |b| b.expr(&source.expr, &scope))?;
            b.try_coerce(bound, column.ty, CastContext::Assignment, pos)
        });
        let text_of = text_of?.unwrap_or(written);
        let mut generated = Generated {
            expr: kept_text(&text_of, table, rel, self.catalog(), self.ctx.eval),
            columns,
            stored,
        };
        // A text that would be read as something else is not kept.
        let again = self.generated_value(&shared, column, &generated, rel);
        if !again.is_ok_and(|again| again == value) {
            generated.expr = source.text.clone();
        }
        Ok((generated, slots_of_row(own_oid(value, table.oid))))
    }

    /// A generated column's value over the row of an entry.
    fn generated_value(
        &mut self,
        table: &Arc<TableDef>,
        column: &ColumnDef,
        generated: &Generated,
        rel: RelId,
    ) -> Result<Expr> {
        let ast = parse::parse_expr(&generated.expr)?;
        let names = row_names(table, &table.name, rel);
        let scope = Scope::within(&names, None);
        let seen = std::mem::take(&mut self.seen);
        let path = std::mem::replace(&mut self.search_path, STORED_PATH.to_vec());
        let bound = self.in_clause(CLAUSE, |b| {
            let bound = b.expr(&ast, &scope)?;
            b.assign_to(bound, column, ast.pos)
        });
        self.search_path = path;
        self.seen = seen;
        bound.map_err(no_position)
    }

    /// The columns that are computed when a row is written, over the row.
    pub(in crate::binder) fn stored_columns(
        &mut self,
        table: &Arc<TableDef>,
        rel: RelId,
    ) -> Result<Vec<(u16, Expr)>> {
        let mut values = Vec::new();
        for (attnum, column) in table.live_columns() {
            if let Some(generated) = column.generated.as_ref().filter(|g| g.stored) {
                let value = self.generated_value(table, column, generated, rel)?;
                values.push((attnum, own_oid(value, table.oid)));
            }
        }
        Ok(values)
    }

    /// Those of these columns that are of domains, as the domains have them.
    pub(in crate::binder) fn domain_columns(
        &mut self,
        table: &TableDef,
        columns: &[u16],
        rel: RelId,
    ) -> Result<Vec<(u16, Expr)>> {
        let mut values = Vec::new();
        for &attnum in columns {
            let column = table.column(attnum);
            if column.domain.is_some() && column.generated.is_none() {
                let var = Expr::Var(Var {
                    rel,
                    column: attnum as i16,
                    ty: column.ty,
                });
                values.push((attnum, self.in_domain(var, column.domain)?));
            }
        }
        Ok(values)
    }

    /// The columns that are computed when a row is read.
    fn virtual_columns(
        &mut self,
        table: &Arc<TableDef>,
        rel: RelId,
    ) -> Result<Vec<(RelId, i16, Expr)>> {
        let mut values = Vec::new();
        for (attnum, column) in table.live_columns() {
            if let Some(generated) = column.generated.as_ref().filter(|g| !g.stored) {
                let value = self.generated_value(table, column, generated, rel)?;
                values.push((rel, attnum as i16, value));
            }
        }
        Ok(values)
    }

    /// An expression over a table's row, with that of each virtual column in the place of the
    /// column.
    pub(in crate::binder) fn over_stored(
        &mut self,
        mut expr: Expr,
        table: &Arc<TableDef>,
        rel: RelId,
    ) -> Result<Expr> {
        if table.has_virtual() && table.oid != Oid::NONE {
            let values = self.virtual_columns(table, rel)?;
            expr.walk_mut(&mut |part| replace(part, &values));
        }
        Ok(own_oid(expr, table.oid))
    }

    /// NOT NULL of columns that rows do not hold, under the row's entry.
    pub(in crate::binder) fn virtual_not_nulls(&self, table: &TableDef, rel: RelId) -> Vec<Check> {
        let columns = table.live_columns();
        columns
            .filter(|(_, c)| c.not_null && c.is_virtual())
            .map(|(attnum, c)| {
                let column = attnum as i16;
                let var = Expr::Var(Var {
                    rel,
                    column,
                    ty: c.ty,
                });
                Check {
                    name: c.name.clone(),
                    expr: Expr::IsNotNull(Box::new(var)),
                    of: CheckOf::NotNull(attnum),
                }
            })
            .collect()
    }

    /// The value of a virtual column over the row by `Slot(attnum - 1)`; none of others.
    pub(in crate::binder) fn virtual_value(
        &mut self,
        table: &TableDef,
        attnum: u16,
    ) -> Result<Option<Expr>> {
        let column = table.column(attnum);
        let Some(generated) = column.generated.as_ref().filter(|g| !g.stored) else {
            return Ok(None);
        };
        let rel = self.new_rel();
        let value = self.generated_value(&Arc::new(table.clone()), column, generated, rel)?;
        Ok(Some(slots_of_row(own_oid(value, table.oid))))
    }

    /// Puts the expressions of virtual columns in the place of the columns throughout a statement.
    pub(in crate::binder) fn compute_virtual(&mut self, bound: &mut BoundQuery) -> Result<()> {
        let computed = std::mem::take(&mut self.computed);
        if computed.is_empty() || self.defining {
            return Ok(());
        }
        let mut nullable = Vec::new();
        each_query(bound, &mut |kind| nullable_entries(kind, &mut nullable));
        bound.walk_mut(&mut |part| {
            if let QueryPartMut::Query(query) = part
                && let Body::Select(select) = &query.body
            {
                select
                    .from
                    .iter()
                    .for_each(|i| nullable_side(i, &mut nullable));
            }
        });
        let mut values = Vec::new();
        for (rel, table) in computed {
            let mut of_table = self.virtual_columns(&table, rel)?;
            if nullable.contains(&rel) {
                of_table
                    .iter_mut()
                    .for_each(|(_, _, value)| if_there(value, rel));
            }
            values.append(&mut of_table);
        }
        bound.walk_mut(&mut |part| replace(part, &values));
        Ok(())
    }
}

/// The statement and those in its WITH that write.
fn each_query(bound: &BoundQuery, f: &mut dyn FnMut(&QueryKind)) {
    f(&bound.kind);
    for cte in &bound.ctes {
        if let CteBody::Write(kind) = &cte.body {
            f(kind);
        }
    }
}

fn nullable_entries(kind: &QueryKind, nullable: &mut Vec<RelId>) {
    let items = match kind {
        QueryKind::Update(update) => &update.from,
        QueryKind::Delete(delete) => &delete.from,
        QueryKind::Merge(merge) => {
            nullable.push(merge.new);
            &merge.from
        }
        QueryKind::Insert(insert) => {
            nullable.push(insert.old);
            return;
        }
        QueryKind::Select(_) => return,
    };
    items.iter().for_each(|i| nullable_side(i, nullable));
}

/// Adds the entries that may have no row in a join's result.
fn nullable_side(item: &FromItem, nullable: &mut Vec<RelId>) {
    let FromItem::Join {
        kind, left, right, ..
    } = item
    else {
        return;
    };
    if matches!(kind, JoinKind::Right | JoinKind::Full) {
        left.rels(nullable);
    }
    if matches!(kind, JoinKind::Left | JoinKind::Full) {
        right.rels(nullable);
    }
    nullable_side(left, nullable);
    nullable_side(right, nullable);
}

/// NULL where the entry has no row.
fn if_there(value: &mut Expr, rel: RelId) {
    let ty = value.ty();
    let place = Expr::Var(Var {
        rel,
        column: system::CTID,
        ty: SqlType::TID,
    });
    let whole = std::mem::replace(value, Expr::null(ty));
    *value = Expr::Case {
        operand: None,
        whens: vec![(Expr::IsNull(Box::new(place)), Expr::null(ty))],
        default: Box::new(whole),
        ty,
    };
}

fn value_of<'v>(expr: &Expr, values: &'v [(RelId, i16, Expr)]) -> Option<&'v Expr> {
    let Expr::Var(var) = expr else { return None };
    let mut values = values.iter();
    let found = values.find(|(rel, column, _)| (*rel, *column) == (var.rel, var.column));
    found.map(|(.., value)| value)
}

fn replace(part: QueryPartMut<'_>, values: &[(RelId, i16, Expr)]) {
    match part {
        QueryPartMut::Expr(expr) => {
            if let Some(value) = value_of(expr, values) {
                *expr = value.clone();
            }
        }
        // A WITH asks for variables, not for what is made of them.
        QueryPartMut::Query(query)
            if query.outside.iter().any(|e| value_of(e, values).is_some()) =>
        {
            let mut outside: Vec<Expr> = Vec::new();
            for asked in std::mem::take(&mut query.outside) {
                match value_of(&asked, values) {
                    None => outside.push(asked),
                    Some(value) => {
                        value.for_each_var(&mut |var| outside.push(Expr::Var(var.clone())));
                    }
                }
            }
            query.outside = outside;
        }
        _ => {}
    }
}

/// `tableoid` of a row being written is a constant.
fn own_oid(mut expr: Expr, table: Oid) -> Expr {
    expr.walk_mut(&mut |part| {
        if let QueryPartMut::Expr(expr) = part
            && matches!(expr, Expr::Var(var) if var.column == system::TABLEOID)
        {
            *expr = Expr::Const(Datum::Oid(table.0), SqlType::OID);
        }
    });
    expr
}

/// What a generation expression may not speak of; 0 is the whole row.
fn check_reference(table: &TableDef, attnum: i16) -> Result<()> {
    let wrong = |code, message: String| Err(Error::new(code, message));
    match attnum {
        system::TABLEOID => Ok(()),
        0 => wrong(
            state::INVALID_OBJECT_DEFINITION,
            "cannot use whole-row variable in column generation expression".into(),
        )
        .map_err(|e: Error| {
            e.detail("This would cause the generated column to depend on its own value.")
        }),
        ..0 => {
            let name = system_name(attnum);
            wrong(
                state::INVALID_COLUMN_REFERENCE,
                format!("cannot use system column \"{name}\" in column generation expression"),
            )
        }
        _ => {
            let column = table.column(attnum as u16);
            if column.generated.is_none() {
                return Ok(());
            }
            let message = format!(
                "cannot use generated column \"{}\" in column generation expression",
                column.name
            );
            Err(Error::new(state::INVALID_OBJECT_DEFINITION, message)
                .detail("A generated column cannot reference another generated column."))
        }
    }
}

fn system_name(attnum: i16) -> &'static str {
    match attnum {
        system::CTID => "ctid",
        system::XMIN => "xmin",
        system::CMIN => "cmin",
        system::XMAX => "xmax",
        system::CMAX => "cmax",
        _ => "tableoid",
    }
}

/// What is computed by whoever reads must not run what users made.
pub(in crate::binder) fn check_virtual_type(column: &ColumnDef, stored: bool) -> Result<()> {
    let name = &column.name;
    if !stored && column.domain.is_some() {
        let message = format!("virtual generated column \"{name}\" cannot have a domain type");
        return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    if stored || !made::is_made(column.ty.oid) {
        return Ok(());
    }
    let message = format!("virtual generated column \"{name}\" cannot have a user-defined type");
    Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).detail(
        "Virtual generated columns that make use of user-defined types are not yet supported.",
    ))
}

/// Whether this node by itself may give another value at another time.
pub(in crate::binder) fn is_mutable(expr: &Expr) -> bool {
    match expr {
        Expr::Call { func, .. } | Expr::SetCall { func, .. } => {
            func.volatility != Volatility::Immutable
        }
        Expr::Routine(call) | Expr::SetRoutine(call) => {
            call.def.volatility != Volatility::Immutable
        }
        // Joining text to something else is writing that as text.
        Expr::Op { op, args, .. } if op.name == "||" && op.volatility == Volatility::Stable => {
            let mut types = args.iter().map(Expr::type_oid);
            !types.all(|ty| is_immutable_cast(ty, oid::TEXT))
        }
        Expr::Op { op, .. } => op.volatility != Volatility::Immutable,
        Expr::Cast {
            cast: Some(cast), ..
        } => !is_immutable_cast(cast.from, cast.to),
        _ => false,
    }
}
