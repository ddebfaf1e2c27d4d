//! Which plans run here: those that mean the same wherever and in whatever order their rows are
//! made.
//!
//! Scans of whole tables, one after another for parents, filters, projections, hash joins,
//! grouping, DISTINCT, sorting, LIMIT and UNION. Not: subqueries in expressions, values from an
//! enclosing operator, volatile functions and those that ask the session or the catalog, row locks,
//! system columns that are read from the tuple's header, types without a stored form.

use throng_bind::expr::{AggCall, Expr, SortKey, system};
use throng_bind::query::SetOp;
use throng_plan::{AggStrategy, Node, Plan, PlannedStatement, SeqScan, StatementTag};
use throng_types::sqltype::{element_of, made};
use throng_types::{Oid, SqlType, key, oid};
use throng_values::func::{Body, CastMethod, Volatility};

use crate::column::{self, Kind};

pub fn accepts(plan: &PlannedStatement) -> bool {
    plan.tag == StatementTag::Select && plan.subplans.is_empty() && node(&plan.root)
}

/// Whether a plan can run here with all below it.
pub fn node(plan: &Plan) -> bool {
    if column::kinds(&plan.types).is_none() {
        return false;
    }
    match &plan.node {
        Node::SeqScan(scan) => seq_scan(scan),
        Node::Filter {
            input, condition, ..
        } => expr(condition) && node(input),
        Node::Project { input, exprs } => all(exprs) && node(input),
        Node::HashJoin(join) => {
            keys(&join.left_keys)
                && keys(&join.right_keys)
                && all(&join.on)
                && all(&join.filter)
                && node(&join.left)
                && node(&join.right)
        }
        Node::Sort { input, keys } => sort_keys(keys) && node(input),
        Node::Limit {
            input,
            limit,
            offset,
            ties,
        } => ties.is_empty() && all(limit) && all(offset) && node(input),
        Node::Aggregate(aggregate) => {
            aggregate.strategy != AggStrategy::Sorted
                && aggregate.sets.is_empty()
                && keys(&aggregate.group)
                && aggregate.aggs.iter().all(agg)
                && all(&aggregate.having)
                && node(&aggregate.input)
        }
        Node::Distinct {
            input, keys: exprs, ..
        } => keys(exprs) && distinct_by(input, exprs).is_some() && node(input),
        Node::SetOp {
            op: SetOp::Union,
            all,
            left,
            right,
        } => (*all || plan.types.iter().all(|t| orderable(*t))) && node(left) && node(right),
        Node::Materialize { input } => node(input),
        Node::Append(append) => {
            let bounds = append.pruning.iter().flat_map(|p| &p.values);
            all(bounds) && append.inputs.iter().all(|input| node(&input.plan))
        }
        _ => false,
    }
}

fn seq_scan(scan: &SeqScan) -> bool {
    let known = |c: &i16| *c > 0 || matches!(*c, system::CTID | system::TABLEOID);
    scan.place.is_none()
        && scan.sample.is_none()
        && scan.columns.iter().all(known)
        && all(&scan.filter)
        && scan
            .table
            .columns
            .iter()
            .all(|c| throng_types::row::Phys::of(c.ty.oid).is_some())
}

/// How the first row of each key is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistinctBy {
    /// Rows of one key come together, the wanted one first.
    Neighbours,
    /// The key is the whole row.
    Groups,
}

pub fn distinct_by(input: &Plan, exprs: &[Expr]) -> Option<DistinctBy> {
    if let Node::Sort { keys, .. } = &input.node {
        // Each of the leading sort keys is one of the expressions, and none of these is missing.
        let leading = keys
            .iter()
            .take_while(|k| exprs.contains(&k.expr))
            .collect::<Vec<_>>();
        let together = exprs.iter().all(|e| leading.iter().any(|k| k.expr == *e));
        return together.then_some(DistinctBy::Neighbours);
    }
    is_whole_row(exprs, &input.types).then_some(DistinctBy::Groups)
}

/// Whether `exprs` are just the input's columns, each once or more: then DISTINCT is grouping.
fn is_whole_row(exprs: &[Expr], types: &[SqlType]) -> bool {
    let slot = |e: &Expr| match e {
        Expr::Slot(at, _) => Some(*at as usize),
        _ => None,
    };
    exprs.iter().all(|e| slot(e).is_some())
        && (0..types.len()).all(|i| exprs.iter().any(|e| slot(e) == Some(i)))
}

fn all<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> bool {
    exprs.into_iter().all(expr)
}

/// Has values whose ordered keys say all about equality and order.
fn orderable(ty: SqlType) -> bool {
    key::supported(element_of(ty.oid).unwrap_or(ty.oid))
}

fn keys(exprs: &[Expr]) -> bool {
    exprs
        .iter()
        .all(|e| expr(e) && orderable(e.ty()) && Kind::of(e.ty()).is_some())
}

fn sort_keys(keys: &[SortKey]) -> bool {
    keys.iter()
        .all(|k| expr(&k.expr) && orderable(k.expr.ty()) && Kind::of(k.expr.ty()).is_some())
}

fn agg(call: &AggCall) -> bool {
    let Some(agg) = call.agg.built_in() else {
        return false;
    };
    agg.kind.is_plain()
        && all(&call.args)
        && call.args.iter().all(|a| Kind::of(a.ty()).is_some())
        && call
            .args
            .iter()
            .all(|a| !names_objects(a.ty().oid) || !reads_text(agg.name))
        && (!call.distinct || call.args.iter().all(|a| orderable(a.ty())))
        && sort_keys(&call.order)
        && all(&call.filter)
}

fn expr(e: &Expr) -> bool {
    !e.any(&mut |e| !alone(e))
}

/// Whether this node, its operands apart, can be evaluated away from the session.
fn alone(e: &Expr) -> bool {
    match e {
        Expr::Call { func, args, .. } => {
            matches!(func.body, Body::Scalar(_))
                && match func.volatility {
                    Volatility::Immutable => true,
                    Volatility::Stable => asks_only_time_and_format(func.name),
                    Volatility::Volatile => false,
                }
                && args.iter().all(|a| !names_objects(a.ty().oid))
        }
        Expr::Op { op, .. } => op.volatility != Volatility::Volatile,
        Expr::Cast { arg, cast, to, .. } => {
            // Text read as a `reg*` type, and the other way round, looks in the catalog.
            let looks = cast.is_some_and(|c| !matches!(c.method, CastMethod::Binary))
                && (names_objects(arg.ty().oid) || names_objects(to.oid));
            !looks
        }
        // What users made is for the rows' own operators.
        Expr::ToDomain(..)
        | Expr::Field { .. }
        | Expr::Items { .. }
        | Expr::Replace { .. }
        | Expr::SetCall { .. }
        | Expr::Routine(_)
        | Expr::SetRoutine(_)
        | Expr::Variadic(_)
        | Expr::Outer(..)
        | Expr::SubPlan(_)
        | Expr::Var(_)
        | Expr::Aggregate(_)
        | Expr::Window(_)
        | Expr::Grouping(_)
        | Expr::Subquery(_) => false,
        _ => true,
    }
}

/// Stable functions that need no more of the session than a job carries: its clock, its formats,
/// its names.
fn asks_only_time_and_format(name: &str) -> bool {
    const KNOWN: &[&str] = &[
        "now",
        "transaction_timestamp",
        "statement_timestamp",
        "date_trunc",
        "date_part",
        "extract",
        "to_char",
        "to_timestamp",
        "to_date",
        "timezone",
        "timestamptz",
        "timestamp",
        "date",
        "time",
        "timetz",
        "age",
        "make_timestamptz",
        "generate_series",
        "concat",
        "concat_ws",
        "format",
        "quote_literal",
        "quote_nullable",
        "text",
        "current_user",
        "session_user",
        "current_database",
        "pg_backend_pid",
    ];
    KNOWN.contains(&name)
}

/// Aggregates that make text of what they are given.
fn reads_text(aggregate: &str) -> bool {
    aggregate.starts_with("json")
}

/// Types whose text form is the catalog's to tell.
fn names_objects(ty: Oid) -> bool {
    made::is_made(ty)
        || matches!(
            element_of(ty).unwrap_or(ty),
            oid::REGCLASS
                | oid::REGTYPE
                | oid::REGPROC
                | oid::REGPROCEDURE
                | oid::REGOPER
                | oid::REGOPERATOR
                | oid::REGNAMESPACE
                | oid::REGROLE
                | oid::REGCOLLATION
                | oid::REGCONFIG
                | oid::REGDICTIONARY
        )
}
