//! Aggregate calls: with DISTINCT, ORDER BY, FILTER, WITHIN GROUP.

use throng_types::error::state;
use throng_types::sqltype::type_name;
use throng_types::{Error, Result, SqlType};

use crate::binder::query::scope::Scope;
use crate::binder::{Binder, Clause, at};
use crate::tree::aggregate::AggFunction;
use crate::tree::expr::{AggCall, Expr, IN_ORDER, RelId, SortKey, Var, sort_by_arguments};
use throng_syntax::parse::ast::{self, Pos};
use throng_values::func::{AggKind, Callee, CastContext};

impl Binder<'_> {
    /// `f(…)` where `f` is an aggregate, its arguments bound.
    pub(in crate::binder) fn aggregate(
        &mut self,
        call: &ast::Call,
        agg: AggFunction,
        args: Vec<Expr>,
        ty: SqlType,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        if !agg.is_plain() {
            let message = format!(
                "WITHIN GROUP is required for ordered-set aggregate {}",
                agg.name()
            );
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(pos + 1));
        }
        if args.is_empty() && !call.star {
            let message = format!(
                "{}(*) must be used to call a parameterless aggregate function",
                agg.name()
            );
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(pos + 1));
        }
        let filter = self.call_filter(call, scope)?;
        let mut order = self.in_clause(Clause::Aggregate, |b| {
            call.order
                .iter()
                .map(|key| {
                    let expr = b.expr(&key.expr, scope)?;
                    let expr = b.settle(expr, key.expr.pos)?;
                    b.check_sortable(&expr, key.expr.pos)?;
                    Ok(SortKey {
                        expr,
                        descending: key.descending,
                        nulls_first: key.nulls_first.unwrap_or(key.descending),
                    })
                })
                .collect::<Result<Vec<_>>>()
        })?;
        if call.distinct {
            if args.is_empty() {
                let message = "DISTINCT specified, but no argument given";
                return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
            }
            // The argument may have been cast to what the aggregate takes; its order is then that
            // of the cast.
            let sorts = |key: &mut SortKey| {
                let arg = args
                    .iter()
                    .find(|arg| strip_implicit(arg) == strip_implicit(&key.expr));
                if let Some(arg) = arg {
                    key.expr = arg.clone();
                }
                arg.is_some()
            };
            let stranger = order.iter_mut().map(sorts).position(|sorts| !sorts);
            if let Some(at) = stranger {
                let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
                return Err(Error::new(state::INVALID_COLUMN_REFERENCE, message)
                    .position(call.order[at].expr.pos + 1));
            }
            // PostgreSQL finds what is distinct by sorting, and that shows.
            if IN_ORDER.contains(&agg.name()) {
                sort_by_arguments(&mut order, &args);
            }
        }
        let agg = AggCall {
            agg,
            direct: vec![],
            args,
            distinct: call.distinct,
            order,
            filter,
            ty,
        };
        self.own_aggregate(agg, pos)
    }

    /// `f(…) WITHIN GROUP (ORDER BY …)`
    pub(in crate::binder) fn ordered_set(
        &mut self,
        call: &ast::Call,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let name = call.name.last();
        let wrong =
            |message: String| Err(Error::new(state::WRONG_OBJECT_TYPE, message).position(pos + 1));
        if self.clause == Clause::Aggregate {
            self.check_aggregate_place(pos)?;
        }
        let bound = self.in_clause(Clause::Aggregate, |b| {
            let asts = call.args.iter().chain(call.order.iter().map(|k| &k.expr));
            asts.map(|a| Ok((b.expr(a, scope)?, a.pos)))
                .collect::<Result<Vec<_>>>()
        })?;
        let types: Vec<_> = bound.iter().map(|(e, _)| e.type_oid()).collect();
        let undefined = |hint: String| {
            let list: Vec<_> = types.iter().map(|t| type_name(*t)).collect();
            let message = format!("function {}({}) does not exist", call.name, list.join(", "));
            Err(Error::new(state::UNDEFINED_FUNCTION, message)
                .hint(hint)
                .position(pos + 1))
        };
        let (found, def) = self.resolve_ordered_set(call, &types, pos)?;
        if let Some(def) = def {
            return self.own_ordered_set(call, def, &found, bound, pos, scope);
        }
        let agg = match found.callee {
            Callee::Aggregate(agg) => agg,
            Callee::Window(_) => {
                return wrong(format!("window function {name} cannot have WITHIN GROUP"));
            }
            Callee::Scalar(_) | Callee::Set(_) | Callee::Routine(_) => {
                return wrong(format!(
                    "WITHIN GROUP specified, but {name} is not an aggregate function"
                ));
            }
        };
        let (direct, order) = (call.args.len(), call.order.len());
        let mut wanted = found.arg_types;
        match agg.kind {
            AggKind::Plain => {
                return wrong(format!(
                    "{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
                ));
            }
            AggKind::OrderedSet { direct: takes, .. } => {
                if usize::from(takes) != direct {
                    let plural = if takes == 1 { "" } else { "s" };
                    return undefined(format!(
                        "There is an ordered-set aggregate {name}, but it requires {takes} direct argument{plural}, not {direct}."
                    ));
                }
            }
            AggKind::Hypothetical(_) => {
                if direct != order {
                    return undefined(format!(
                        "To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here {direct}) must match the number of ordering columns (here {order})."
                    ));
                }
                for i in 0..direct {
                    let pair = [bound[direct + i].0.ty(), bound[i].0.ty()];
                    let common = self
                        .common_type(&pair, "WITHIN GROUP")
                        .map_err(|e| at(e, bound[i].1))?;
                    (wanted[i], wanted[direct + i]) = (common.oid, common.oid);
                }
            }
        }
        if call.over.is_some() {
            let message = format!("OVER is not supported for ordered-set aggregate {name}");
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message).position(pos + 1));
        }
        let mut values = Vec::with_capacity(bound.len());
        for ((expr, pos), ty) in bound.into_iter().zip(&wanted) {
            let cast = self.try_coerce(expr, SqlType::plain(*ty), CastContext::Implicit, pos)?;
            values.push(cast.ok_or_else(|| Error::internal("an argument that was resolved"))?);
        }
        let args = values.split_off(direct);
        let agg = AggCall {
            agg: AggFunction::BuiltIn(agg),
            direct: values,
            args,
            distinct: false,
            order: vec![],
            filter: None,
            ty: SqlType::plain(found.ret),
        };
        self.within_group(call, agg, pos, scope)
    }

    /// The call of an ordered-set aggregate, with the order of its arguments.
    pub(in crate::binder) fn within_group(
        &mut self,
        call: &ast::Call,
        mut agg: AggCall,
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        for (expr, key) in agg.args.iter().zip(&call.order) {
            self.check_sortable(expr, key.expr.pos)?;
            agg.order.push(SortKey {
                expr: expr.clone(),
                descending: key.descending,
                nulls_first: key.nulls_first.unwrap_or(key.descending),
            });
        }
        agg.filter = self.call_filter(call, scope)?;
        self.own_aggregate(agg, pos)
    }

    /// Gives an aggregate to the query that it belongs to: the innermost one of whose columns it
    /// speaks, this one if of none.
    fn own_aggregate(&mut self, agg: AggCall, pos: Pos) -> Result<Expr> {
        let ty = agg.ty;
        // Direct arguments have no say in it.
        let mut rels: Vec<RelId> = Vec::new();
        let order = agg.order.iter().map(|k| &k.expr);
        for e in agg.args.iter().chain(order).chain(&agg.filter) {
            e.for_each_var(&mut |var| rels.push(var.rel));
        }
        let mut direct: Vec<RelId> = Vec::new();
        for e in &agg.direct {
            e.for_each_var(&mut |var| direct.push(var.rel));
        }
        let expr = Expr::Aggregate(Box::new(agg));
        let owner = self
            .levels
            .iter()
            .rposition(|level| rels.iter().any(|rel| level.rels.contains(rel)));
        let own = owner.is_none_or(|owner| owner + 1 == self.levels.len());
        if own {
            self.check_aggregate_place(pos)?;
            if let Some(level) = self.levels.last_mut() {
                level.aggregate.get_or_insert(pos);
            }
            let known = |rel: &RelId| self.levels.iter().any(|l| l.rels.contains(rel));
            return match rels.is_empty() || rels.iter().any(known) {
                true => Ok(expr),
                false => {
                    Err(Error::unsupported("an aggregate of this outer statement")
                        .position(pos + 1))
                }
            };
        }
        let owner = owner.unwrap_or_default();
        let mut lower = self.levels[owner + 1..].iter();
        if lower.any(|level| direct.iter().any(|rel| level.rels.contains(rel))) {
            let message = "outer-level aggregate cannot contain a lower-level variable in its direct arguments";
            return Err(Error::new(state::GROUPING_ERROR, message).position(pos + 1));
        }
        let level = &mut self.levels[owner];
        level.aggregate.get_or_insert(pos);
        if !level.clause.allows_aggregates() {
            return Err(misplaced(level.clause, pos));
        }
        let mut nested = false;
        expr.for_each_var(&mut |var| nested |= var.rel == level.output);
        if nested {
            return Err(misplaced(Clause::Aggregate, pos));
        }
        let at = match level.lifted.iter().position(|e| *e == expr) {
            Some(at) => at,
            None => {
                level.lifted.push(expr);
                level.lifted.len() - 1
            }
        };
        Ok(Expr::Var(Var {
            rel: level.output,
            column: at as i16 + 1,
            ty,
        }))
    }

    pub(in crate::binder) fn check_aggregate_place(&self, pos: Pos) -> Result<()> {
        if self.clause.allows_aggregates() {
            return Ok(());
        }
        Err(misplaced(self.clause, pos))
    }

    pub(in crate::binder) fn call_filter(
        &mut self,
        call: &ast::Call,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        let Some(ast) = &call.filter else {
            return Ok(None);
        };
        let filter = self.in_clause(Clause::Other("FILTER"), |b| {
            let bound = b.expr(ast, scope)?;
            b.condition(bound, "FILTER", ast.pos)
        })?;
        Ok(Some(filter))
    }
}

pub(in crate::binder) fn misplaced(clause: Clause, pos: Pos) -> Error {
    let message = match clause {
        Clause::Aggregate => "aggregate function calls cannot be nested".to_string(),
        clause => format!("aggregate functions are not allowed in {}", clause.name()),
    };
    Error::new(state::GROUPING_ERROR, message).position(pos + 1)
}

/// What is under the casts that nobody wrote.
fn strip_implicit(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast {
            arg,
            context: CastContext::Implicit,
            ..
        } => strip_implicit(arg),
        _ => expr,
    }
}
