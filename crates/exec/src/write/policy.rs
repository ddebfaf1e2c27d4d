//! What row security asks of rows that are written.

use throng_bind::query::{Arrival, CheckExpr, CheckOf};
use throng_plan::Node;
use throng_types::{Datum, Result};

use super::{Context, RowOf, evaluate, row};
use crate::run::Step;
use crate::run::build::Execution;
use crate::run::context::Cx;
use crate::run::eval::eval;

/// The first of these checks that does not hold, as what is said then.
fn refusal<'c>(
    checks: impl IntoIterator<Item = &'c CheckExpr>,
    row: &[Datum],
    cx: &mut Cx,
) -> Step<Option<String>> {
    for check in checks {
        if eval(&check.expr, row, cx)? != Datum::Bool(true) {
            return Ok(Some(check.name.clone()));
        }
    }
    Ok(None)
}

/// 42501 for a new row that policies of the table that the statement names refuse. `row`: as its
/// own table has it.
pub(super) async fn check(
    execution: &mut Execution,
    cx: &Context<'_>,
    (of, arrival): (RowOf, Arrival),
    own: &[Datum],
) -> Result<()> {
    let refused = evaluate(execution, cx, |plan, cx| {
        let (checks, width) = match &plan.node {
            Node::Insert(node) => (&node.checks, node.table.columns.len()),
            Node::Update(node) => (&node.checks, node.table.columns.len()),
            Node::Merge(node) => (&node.checks, node.table.columns.len()),
            _ => return Ok(None),
        };
        let is = |check: &&CheckExpr| check.of == CheckOf::Policy(arrival);
        if !checks.iter().any(|check| is(&check)) {
            return Ok(None);
        }
        let asked = checks.iter().filter(is);
        match of.leaf(plan) {
            None => refusal(asked, own, cx),
            Some(leaf) => refusal(asked, &leaf.row_of_top(own, width), cx),
        }
    });
    match refused.await? {
        None => Ok(()),
        Some(message) => Err(row::refused(&message)),
    }
}

/// 42501 for the row that ON CONFLICT has found. `both`: that row, its system columns, then the
/// proposed one.
pub(super) async fn check_in_the_way(
    execution: &mut Execution,
    cx: &Context<'_>,
    both: &[Datum],
) -> Result<()> {
    let refused = evaluate(execution, cx, |plan, cx| match &plan.node {
        Node::Insert(node) => {
            let update = node.on_conflict.as_ref().and_then(|c| c.update.as_ref());
            let guards = update.map_or(&[][..], |update| &update.guards);
            refusal(guards, both, cx)
        }
        _ => Ok(None),
    });
    match refused.await? {
        None => Ok(()),
        Some(message) => Err(row::refused(&message)),
    }
}

/// 42501 for a row that MERGE is about to change by the action at `place`.
pub(super) async fn check_merged(
    execution: &mut Execution,
    cx: &Context<'_>,
    place: usize,
    input: &[Datum],
) -> Result<()> {
    let refused = evaluate(execution, cx, |plan, cx| {
        let guards = match &plan.node {
            Node::Merge(node) => &node.actions[place].guards,
            _ => return Ok(None),
        };
        for guard in guards {
            if eval(&guard.expr, input, cx)? != Datum::Bool(true) {
                return Ok(Some(guard.name.clone()));
            }
        }
        Ok(None)
    });
    match refused.await? {
        None => Ok(()),
        Some(message) => Err(row::refused(&message)),
    }
}
