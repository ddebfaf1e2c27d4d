//! Queries: SELECT, VALUES, set operations, with ORDER BY, LIMIT and locking.

use throng_types::error::state;
use throng_types::sqltype::made;
use throng_types::{Error, Result, SqlType};

use crate::binder::query::scope::{CteReading, Names, Scope};
use crate::binder::{Binder, Clause, Level};
use crate::tree::expr::{Expr, RelId, SortKey, Var};
use crate::tree::query::{Body, Distinct, FromItem, Query, RelKind, Select, Target};
use throng_syntax::parse::ast::{self, Node, Pos};
use throng_values::func::CastContext;
use throng_values::func::RelColumn;

impl Binder<'_> {
    /// A query; `outer` is what it can see from where it stands.
    pub(in crate::binder) fn query(
        &mut self,
        ast: &ast::Query,
        outer: Option<&Scope<'_>>,
    ) -> Result<Query> {
        self.deeper(|b| {
            let seen = std::mem::take(&mut b.seen);
            let clause = b.clause;
            if let Some(level) = b.levels.last_mut() {
                level.clause = clause;
            }
            let result = b.query_with(ast, outer);
            b.seen = seen;
            result
        })
    }

    /// A subquery in an expression.
    pub(in crate::binder) fn subquery(
        &mut self,
        ast: &ast::Query,
        scope: &Scope<'_>,
    ) -> Result<Query> {
        self.query(ast, Some(scope))
    }

    fn query_with(&mut self, ast: &ast::Query, outer: Option<&Scope<'_>>) -> Result<Query> {
        let keep_untyped = std::mem::take(&mut self.keep_untyped);
        let ctes = self.bind_ctes(&ast.with, ast.recursive, outer)?;
        self.keep_untyped = keep_untyped;
        let scope = Scope::behind(&ctes, outer);
        let mut query = self.query_body(ast, &scope)?;
        let own = ctes.iter().filter_map(|cte| match cte.reading {
            CteReading::Result(index) => Some(index),
            _ => None,
        });
        let inner = std::mem::take(&mut query.ctes);
        query.ctes = own.chain(inner).collect();
        for index in &query.ctes {
            let outside = self.ctes[*index as usize].body.outside();
            query.outside.extend(outside);
        }
        Ok(query)
    }

    fn query_body(&mut self, ast: &ast::Query, scope: &Scope<'_>) -> Result<Query> {
        match &ast.body {
            ast::Body::Select(select) => self.select(ast, select, scope),
            ast::Body::Values(rows) => {
                let (rows, columns) = self.values(rows, scope)?;
                self.over_output(ast, Body::Values { rows, columns }, scope)
            }
            ast::Body::Nested(inner) => match with_clauses(ast, inner)? {
                Some(merged) => self.query(&merged, Some(scope)),
                None => self.query(inner, Some(scope)),
            },
            ast::Body::SetOp {
                op,
                all,
                left,
                right,
            } => {
                let body = self.set_operation(*op, *all, left, right, ast.pos, scope)?;
                self.over_output(ast, body, scope)
            }
        }
    }

    /// Clauses after VALUES and set operations see only the output's columns.
    fn over_output(&mut self, ast: &ast::Query, body: Body, scope: &Scope<'_>) -> Result<Query> {
        let output = self.new_rel();
        let targets = match &body {
            Body::Values { columns, .. } | Body::SetOp { columns, .. } => columns.clone(),
            Body::Select(select) => select.targets.clone(),
        };
        let order = self.order_over(&ast.order, &targets, |i| {
            let ty = targets[i].expr.ty();
            Expr::Var(Var {
                rel: output,
                column: i as i16 + 1,
                ty,
            })
        })?;
        let mut query = Query {
            body,
            order,
            limit: None,
            ties: false,
            offset: None,
            locks: vec![],
            output,
            ctes: vec![],
            outside: vec![],
        };
        self.limits(ast, &mut query, scope)?;
        self.no_locks(ast, "with UNION/INTERSECT/EXCEPT")?;
        Ok(query)
    }

    fn no_locks(&self, ast: &ast::Query, place: &str) -> Result<()> {
        let Some(lock) = ast.locks.first() else {
            return Ok(());
        };
        let message = format!("{} is not allowed {place}", lock_name(lock.strength));
        Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
    }

    /// ORDER BY by output name or number.
    fn order_over(
        &mut self,
        order: &[ast::OrderBy],
        targets: &[Target],
        key: impl Fn(usize) -> Expr,
    ) -> Result<Vec<SortKey>> {
        order
            .iter()
            .map(|item| {
                let pos = item.expr.pos;
                let index = match &item.expr.node {
                    Node::Integer(digits) => ordinal(digits, targets.len(), "ORDER BY", pos)?,
                    Node::Column(parts) if parts.len() == 1 => {
                        let found = targets.iter().position(|t| t.name == parts[0]);
                        found.ok_or_else(|| {
                            let message = format!("column \"{}\" does not exist", parts[0]);
                            Error::new(state::UNDEFINED_COLUMN, message).position(pos + 1)
                        })?
                    }
                    _ => {
                        return Err(Error::new(
                            state::FEATURE_NOT_SUPPORTED,
                            "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                        )
                        .detail("Only result column names can be used, not expressions or functions.")
                        .hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
                        .position(pos + 1));
                    }
                };
                let expr = key(index);
                self.check_sortable(&expr, pos)?;
                Ok(SortKey {
                    expr,
                    descending: item.descending,
                    nulls_first: item.nulls_first.unwrap_or(item.descending),
                })
            })
            .collect()
    }

    fn limits(&mut self, ast: &ast::Query, query: &mut Query, scope: &Scope<'_>) -> Result<()> {
        if ast.ties && matches!(&ast.limit, Some(limit) if limit.node == Node::Null) {
            let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
            return Err(Error::new(state::INVALID_ROW_COUNT_IN_LIMIT, message));
        }
        query.ties = ast.ties;
        query.limit = self.row_count(ast.limit.as_ref(), "LIMIT", scope)?;
        query.offset = self.row_count(ast.offset.as_ref(), "OFFSET", scope)?;
        Ok(())
    }

    fn row_count(
        &mut self,
        ast: Option<&ast::Expr>,
        what: &'static str,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        let Some(ast) = ast else { return Ok(None) };
        let bound = self.in_clause(Clause::Limit, |b| b.expr(ast, scope))?;
        self.check_var_free(&bound, what, ast.pos, scope)?;
        let from = bound.type_oid();
        let cast = self.try_coerce(bound, SqlType::INT8, CastContext::Assignment, ast.pos)?;
        let expr = cast.ok_or_else(|| {
            let message = format!(
                "argument of {what} must be type bigint, not type {}",
                throng_types::sqltype::type_name(from)
            );
            Error::new(state::DATATYPE_MISMATCH, message).position(ast.pos + 1)
        })?;
        Ok(Some(expr))
    }

    /// 42P10 for a column of the query itself, be it in a subquery, where there is no row yet.
    pub(in crate::binder) fn check_var_free(
        &self,
        bound: &Expr,
        what: &str,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<()> {
        let mut rels: Vec<RelId> = Vec::new();
        scope.names.tables.iter().for_each(|t| rels.extend(t.rel));
        let mut varies = false;
        bound.for_each_var(&mut |var| varies |= rels.contains(&var.rel));
        if !varies {
            return Ok(());
        }
        let message = format!("argument of {what} must not contain variables");
        Err(Error::new(state::INVALID_COLUMN_REFERENCE, message).position(pos + 1))
    }

    /// VALUES: rows of equal length, each column of one type.
    pub(in crate::binder) fn values(
        &mut self,
        rows: &[Vec<ast::Expr>],
        scope: &Scope<'_>,
    ) -> Result<(Vec<Vec<Expr>>, Vec<Target>)> {
        let mut columns: Option<Vec<Vec<(Expr, Pos)>>> = None;
        for row in rows {
            let items = self.in_clause(Clause::Values, |b| b.row_items(row, scope))?;
            let columns =
                columns.get_or_insert_with(|| vec![Vec::with_capacity(rows.len()); items.len()]);
            if items.len() != columns.len() {
                let message = "VALUES lists must all be the same length";
                return Err(Error::new(state::SYNTAX_ERROR, message).position(row[0].pos + 1));
            }
            for (column, item) in columns.iter_mut().zip(items) {
                column.push(item);
            }
        }
        let columns = columns.unwrap_or_default();
        let width = columns.len();
        let mut bound = vec![Vec::with_capacity(width); rows.len()];
        let mut targets = Vec::with_capacity(width);
        for (i, column) in columns.into_iter().enumerate() {
            let (exprs, ty) = self.unify(column, "VALUES")?;
            targets.push(Target {
                expr: Expr::null(ty),
                name: format!("column{}", i + 1),
            });
            exprs
                .into_iter()
                .zip(&mut bound)
                .for_each(|(e, row)| row.push(e));
        }
        Ok((bound, targets))
    }

    fn set_operation(
        &mut self,
        op: ast::SetOp,
        all: bool,
        left: &ast::Query,
        right: &ast::Query,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Body> {
        let name = match op {
            ast::SetOp::Union => "UNION",
            ast::SetOp::Intersect => "INTERSECT",
            ast::SetOp::Except => "EXCEPT",
        };
        let l = self.operand(left, scope)?;
        let r = self.operand(right, scope)?;
        let (lc, rc) = (l.columns(), r.columns());
        if lc.len() != rc.len() {
            let message = format!("each {name} query must have the same number of columns");
            let place = match &right.body {
                ast::Body::Select(s) => s.targets.first().map_or(right.pos, |t| t.expr.pos),
                _ => right.pos,
            };
            return Err(Error::new(state::SYNTAX_ERROR, message).position(place + 1));
        }
        let mut types = Vec::with_capacity(lc.len());
        for (a, b) in lc.iter().zip(&rc) {
            let ty = self
                .common_type(&[a.ty, b.ty], name)
                .map_err(|e| crate::binder::at(e, right.pos))?;
            types.push(ty);
        }
        let l = self.cast_columns(l, &types, pos)?;
        let r = self.cast_columns(r, &types, pos)?;
        let columns = lc
            .iter()
            .zip(&types)
            .map(|(c, ty)| Target {
                expr: Expr::null(*ty),
                name: c.name.clone(),
            })
            .collect();
        Ok(Body::SetOp {
            op,
            all,
            left: Box::new(l),
            right: Box::new(r),
            columns,
        })
    }

    /// One side of a set operation: the other side has a say in what its constants are.
    pub(in crate::binder) fn operand(
        &mut self,
        ast: &ast::Query,
        scope: &Scope<'_>,
    ) -> Result<Query> {
        self.query_untyped(ast, scope)
    }

    /// A query whose constants without a type keep none where it is a SELECT: whoever reads it says
    /// what they are.
    pub(in crate::binder) fn query_untyped(
        &mut self,
        ast: &ast::Query,
        scope: &Scope<'_>,
    ) -> Result<Query> {
        self.keep_untyped = ast.as_select().is_some();
        let query = self.query(ast, Some(scope));
        self.keep_untyped = false;
        query
    }

    /// The query with its output columns cast to these types.
    pub(in crate::binder) fn cast_columns(
        &mut self,
        query: Query,
        types: &[SqlType],
        pos: Pos,
    ) -> Result<Query> {
        self.cast_columns_for(query, types, CastContext::Implicit, pos)
    }

    pub(in crate::binder) fn cast_columns_for(
        &mut self,
        mut query: Query,
        types: &[SqlType],
        context: CastContext,
        pos: Pos,
    ) -> Result<Query> {
        let columns = query.columns();
        if columns.iter().zip(types).all(|(c, ty)| c.ty == *ty) {
            return Ok(query);
        }
        // Constants are cast where they stand; anything else from outside, so that ORDER BY and
        // DISTINCT inside keep their meaning.
        let simple = query.order.is_empty()
            && match &query.body {
                Body::Select(select) => select.distinct == Distinct::No,
                Body::Values { .. } => true,
                Body::SetOp { .. } => false,
            };
        if simple {
            match &mut query.body {
                Body::Select(select) => {
                    for (target, ty) in select.targets.iter_mut().zip(types) {
                        let expr = std::mem::replace(&mut target.expr, Expr::bool(true));
                        target.expr = self.coerce_for(expr, *ty, context, pos)?;
                    }
                }
                Body::Values { rows, columns } => {
                    for row in rows {
                        for (value, ty) in row.iter_mut().zip(types) {
                            let expr = std::mem::replace(value, Expr::bool(true));
                            *value = self.coerce_for(expr, *ty, context, pos)?;
                        }
                    }
                    columns
                        .iter_mut()
                        .zip(types)
                        .for_each(|(c, ty)| c.expr = Expr::null(*ty));
                }
                Body::SetOp { .. } => {}
            }
            return Ok(query);
        }
        let id = self.new_rel();
        let mut targets = output_targets(id, &columns);
        for (target, ty) in targets.iter_mut().zip(types) {
            let expr = std::mem::replace(&mut target.expr, Expr::bool(true));
            target.expr = self.coerce_for(expr, *ty, context, pos)?;
        }
        let rel = crate::tree::query::Rel::unnamed_subquery(id, query, columns);
        let select = Select::plain(vec![FromItem::Rel(Box::new(rel))], targets);
        let output = self.new_rel();
        Ok(Query {
            body: Body::Select(Box::new(select)),
            order: vec![],
            limit: None,
            ties: false,
            offset: None,
            locks: vec![],
            output,
            ctes: vec![],
            outside: vec![],
        })
    }

    fn select(
        &mut self,
        ast: &ast::Query,
        select: &ast::Select,
        outer: &Scope<'_>,
    ) -> Result<Query> {
        let outer_windows = std::mem::take(&mut self.windows);
        let depth = self.levels.len();
        let result = self.select_with(ast, select, outer);
        self.levels.truncate(depth);
        self.windows = outer_windows;
        result
    }

    fn select_with(
        &mut self,
        ast: &ast::Query,
        select: &ast::Select,
        outer: &Scope<'_>,
    ) -> Result<Query> {
        let keep_untyped = std::mem::take(&mut self.keep_untyped);
        let output = self.new_rel();
        self.levels.push(Level {
            rels: vec![],
            clause: Clause::From,
            lifted: vec![],
            output,
            aggregate: None,
        });
        let mut names = Names::default();
        let from = self.bind_from(&select.from, &mut names, outer)?;
        let scope = Scope::within(&names, Some(outer));
        if let Some(level) = self.levels.last_mut() {
            from.iter().for_each(|item| item.rels(&mut level.rels));
        }
        let filter = match &select.filter {
            Some(ast) => Some(self.in_clause(Clause::Where, |b| {
                let bound = b.expr(ast, &scope)?;
                b.condition(bound, "WHERE", ast.pos)
            })?),
            None => None,
        };
        let before_groups = self.seen.len();
        self.named_windows(&select.windows, &scope)?;
        let distinct = select.distinct.as_ref().is_some_and(Vec::is_empty);
        self.keep_untyped = keep_untyped && !distinct;
        let mut targets =
            self.in_clause(Clause::Targets, |b| b.targets(&select.targets, &scope))?;
        let places = std::mem::take(&mut self.target_places);
        if keep_untyped {
            self.settle_keys(ast, select, &mut targets)?;
        }
        let order = self.in_clause(Clause::OrderBy, |b| {
            b.order_by(&ast.order, &targets, &scope)
        })?;
        self.target_places = places;
        let (group_by, grouping_sets, grouping) =
            self.in_clause(Clause::GroupBy, |b| b.group_by(select, &targets, &scope))?;
        let having = match &select.having {
            Some(ast) => Some(self.in_clause(Clause::Having, |b| {
                let bound = b.expr(ast, &scope)?;
                b.condition(bound, "HAVING", ast.pos)
            })?),
            None => None,
        };
        let distinct = self.distinct(select, &targets, &order, ast, &scope)?;
        let windows = std::mem::take(&mut self.windows);
        let mut windows_aggregate = false;
        for window in &windows {
            window.for_each_expr(&mut |e| windows_aggregate |= has_aggregate(e));
        }
        let (lifted, aggregate) = match self.levels.pop() {
            Some(level) => (level.lifted, level.aggregate),
            None => (vec![], None),
        };
        let has_aggregate = windows_aggregate
            || !lifted.is_empty()
            || targets.iter().any(|t| has_aggregate(&t.expr))
            || order.iter().any(|k| has_aggregate(&k.expr))
            || having.is_some();
        if has_aggregate && from.iter().any(reads_last_step) {
            let message =
                "aggregate functions are not allowed in a recursive query's recursive term";
            let error = Error::new(state::INVALID_RECURSION, message);
            return Err(crate::binder::at(error, aggregate.unwrap_or(ast.pos)));
        }
        let grouped = has_aggregate || !select.group_by.is_empty();
        let mut bound = Select {
            from,
            filter,
            group_by,
            grouping_sets,
            grouping,
            grouped,
            having,
            windows,
            lifted,
            targets,
            distinct,
        };
        if grouped {
            self.check_grouping(&mut bound, &order, &names, before_groups)?;
        }
        let mut query = Query {
            body: Body::Select(Box::new(bound)),
            order,
            limit: None,
            ties: false,
            offset: None,
            locks: vec![],
            output,
            ctes: vec![],
            outside: vec![],
        };
        self.limits(ast, &mut query, &scope)?;
        self.locks(ast, &mut query, &names)?;
        Ok(query)
    }

    /// What is sorted, grouped or told apart by has a type: text, where nothing else says.
    fn settle_keys(
        &mut self,
        ast: &ast::Query,
        select: &ast::Select,
        targets: &mut [Target],
    ) -> Result<()> {
        let mut keys: Vec<&ast::Expr> = ast.order.iter().map(|item| &item.expr).collect();
        select
            .group_by
            .iter()
            .for_each(|item| item.exprs(&mut keys));
        keys.extend(select.distinct.iter().flatten());
        for key in keys {
            let place = match &key.node {
                Node::Integer(digits) => {
                    digits.parse::<usize>().ok().and_then(|n| n.checked_sub(1))
                }
                Node::Column(parts) if parts.len() == 1 => {
                    targets.iter().position(|t| t.name == parts[0])
                }
                _ => None,
            };
            if let Some(target) = place.and_then(|place| targets.get_mut(place)) {
                let expr = std::mem::replace(&mut target.expr, Expr::bool(true));
                target.expr = self.settle(expr, key.pos)?;
            }
        }
        Ok(())
    }

    /// The select list, `*` spread out, untyped constants made text.
    pub(in crate::binder) fn targets(
        &mut self,
        items: &[ast::SelectItem],
        scope: &Scope<'_>,
    ) -> Result<Vec<Target>> {
        let keep_untyped = std::mem::take(&mut self.keep_untyped);
        let mut targets = Vec::with_capacity(items.len());
        let mut places = Vec::with_capacity(items.len());
        for item in items {
            if let Node::Star(parts) = &item.expr.node {
                self.star(parts, item.expr.pos, scope, &mut targets)?;
                places.resize(targets.len(), item.expr.pos);
                continue;
            }
            if let Node::FieldStar(arg) = &item.expr.node {
                for (name, expr) in self.spread(arg, scope)? {
                    targets.push(Target { expr, name });
                }
                places.resize(targets.len(), item.expr.pos);
                continue;
            }
            let mut expr = self.expr(&item.expr, scope)?;
            if !keep_untyped {
                expr = self.settle(expr, item.expr.pos)?;
            }
            let name = match &item.alias {
                Some(alias) => alias.clone(),
                None => self.label_of(&item.expr),
            };
            targets.push(Target { expr, name });
            places.resize(targets.len(), item.expr.pos);
        }
        places.resize(targets.len(), 0);
        self.target_places = places;
        Ok(targets)
    }

    pub(in crate::binder) fn star(
        &mut self,
        parts: &[String],
        pos: Pos,
        scope: &Scope<'_>,
        targets: &mut Vec<Target>,
    ) -> Result<()> {
        if !parts.is_empty()
            && let Some(fields) = self.fields_of_named(parts)
            && self.named_table(None, &parts[0], pos, scope).is_err()
        {
            let target = |(name, expr)| Target { expr, name };
            targets.extend(fields.into_iter().map(target));
            return Ok(());
        }
        if !parts.is_empty()
            && let Some(row) = self.argument(parts)
            && made::is_composite(row.type_oid())
            && self.named_table(None, &parts[0], pos, scope).is_err()
        {
            let fields = self.fields_of(&row)?.into_iter();
            targets.extend(fields.map(|(name, expr)| Target { expr, name }));
            return Ok(());
        }
        let columns = match parts {
            [] => {
                if scope.names.tables.is_empty() && scope.names.columns.is_empty() {
                    let message = "SELECT * with no tables specified is not valid";
                    return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
                }
                scope.names.columns.clone()
            }
            [table] => self.named_table(None, table, pos, scope)?.columns.clone(),
            [schema, table] => self
                .named_table(Some(schema), table, pos, scope)?
                .columns
                .clone(),
            _ => {
                let message = "improper qualified name (too many dotted names)";
                return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
            }
        };
        for column in columns {
            if let Expr::Var(var) = &column.expr {
                self.seen.push((var.rel, var.column, pos));
            }
            targets.push(Target {
                expr: column.expr,
                name: column.name,
            });
        }
        Ok(())
    }
}

/// A query in parentheses with the clauses behind these, which are its own; none where there are
/// none.
fn with_clauses(around: &ast::Query, inner: &ast::Query) -> Result<Option<ast::Query>> {
    let bare = around.order.is_empty()
        && around.limit.is_none()
        && around.offset.is_none()
        && around.locks.is_empty();
    if bare {
        return Ok(None);
    }
    let mut merged = inner.clone();
    if let Some(first) = around.order.first() {
        if !inner.order.is_empty() {
            return Err(twice("ORDER BY", first.expr.pos));
        }
        merged.order.clone_from(&around.order);
    }
    if let Some(offset) = &around.offset {
        if inner.offset.is_some() {
            return Err(twice("OFFSET", offset.pos));
        }
        merged.offset.clone_from(&around.offset);
    }
    if let Some(limit) = &around.limit {
        if inner.limit.is_some() {
            return Err(twice("LIMIT", limit.pos));
        }
        merged.limit.clone_from(&around.limit);
        merged.ties = around.ties;
    }
    merged.locks.extend(around.locks.iter().cloned());
    Ok(Some(merged))
}

#[cold]
fn twice(clause: &str, pos: Pos) -> Error {
    let message = format!("multiple {clause} clauses not allowed");
    Error::new(state::SYNTAX_ERROR, message).position(pos + 1)
}

/// Whether a WITH query's own rows are among the items.
fn reads_last_step(item: &FromItem) -> bool {
    match item {
        FromItem::Rel(rel) => matches!(rel.kind, RelKind::WorkTable(_)),
        FromItem::Join { left, right, .. } => reads_last_step(left) || reads_last_step(right),
    }
}

pub(in crate::binder) fn lock_name(strength: ast::RowLockStrength) -> &'static str {
    match strength {
        ast::RowLockStrength::Update => "FOR UPDATE",
        ast::RowLockStrength::NoKeyUpdate => "FOR NO KEY UPDATE",
        ast::RowLockStrength::Share => "FOR SHARE",
        ast::RowLockStrength::KeyShare => "FOR KEY SHARE",
    }
}

/// One target for each column of an entry.
pub(in crate::binder) fn output_targets(id: RelId, columns: &[RelColumn]) -> Vec<Target> {
    columns
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let var = Var {
                rel: id,
                column: i as i16 + 1,
                ty: c.ty,
            };
            Target {
                expr: Expr::Var(var),
                name: c.name.clone(),
            }
        })
        .collect()
}

/// `ORDER BY 2`: the index of the second column.
pub(in crate::binder) fn ordinal(
    digits: &str,
    width: usize,
    what: &str,
    pos: Pos,
) -> Result<usize> {
    let index = digits
        .parse::<i64>()
        .ok()
        .filter(|n| (1..=width as i64).contains(n));
    index.map(|n| n as usize - 1).ok_or_else(|| {
        let message = format!("{what} position {digits} is not in select list");
        Error::new(state::INVALID_COLUMN_REFERENCE, message).position(pos + 1)
    })
}

pub(in crate::binder) fn has_window(expr: &Expr) -> bool {
    expr.any(&mut |e| matches!(e, Expr::Window(_)))
}

pub(in crate::binder) fn has_aggregate(expr: &Expr) -> bool {
    expr.any(&mut |e| matches!(e, Expr::Aggregate(_) | Expr::Grouping(_)))
}
