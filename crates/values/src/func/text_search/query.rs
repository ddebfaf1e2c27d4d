//! What is done with a `tsquery`.

use super::super::{EvalContext, EvalResult};
use super::{from_query, query};
use crate::io::text_search::write_query;
use crate::text_search::query::{MAX_DISTANCE, bad_distance};
use std::collections::BTreeSet;
use throng_types::text_search::{Node, TsQuery};
use throng_types::{Datum, Result, stack};

pub fn and(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(from_query(&TsQuery::joined(
        &query(&args[0]),
        &query(&args[1]),
        Node::And,
    )))
}

pub fn or(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(from_query(&TsQuery::joined(
        &query(&args[0]),
        &query(&args[1]),
        Node::Or,
    )))
}

pub fn not(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut negated = query(&args[0]);
    if let Some(root) = negated.root() {
        negated.push(Node::Not(root));
    }
    Ok(from_query(&negated))
}

pub fn phrase(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let distance = match args.get(2) {
        Some(Datum::Int4(distance)) => u16::try_from(*distance)
            .ok()
            .filter(|distance| *distance <= MAX_DISTANCE)
            .ok_or_else(bad_distance)?,
        _ => 1,
    };
    let join = |left, right| Node::Phrase(left, right, distance);
    Ok(from_query(&TsQuery::joined(
        &query(&args[0]),
        &query(&args[1]),
        join,
    )))
}

pub fn node_count(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((query(&args[0]).len() as i32).into())
}

/// The query without what an index cannot answer, as text.
pub fn tree(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let whole = query(&args[0]);
    let Some(root) = whole.root() else {
        return Ok(Datum::text(""));
    };
    let mut answerable = TsQuery::default();
    let mut out = Vec::new();
    match without_negations(&whole, root, &mut answerable)? {
        Some(_) => write_query(&answerable, &mut out),
        None => out.push(b'T'),
    }
    Ok(Datum::text(String::from_utf8_lossy(&out)))
}

/// The part that does not hold where nothing is; None where that part is all there is.
fn without_negations(from: &TsQuery, at: u32, to: &mut TsQuery) -> Result<Option<u32>> {
    stack::check()?;
    let (left, right) = match *from.node(at) {
        Node::Operand(ref operand) => {
            return Ok(Some(to.push(Node::Operand(operand.clone()))));
        }
        Node::Not(_) => return Ok(None),
        Node::And(left, right) | Node::Or(left, right) | Node::Phrase(left, right, _) => {
            (left, right)
        }
    };
    let kept = to.len();
    let left = without_negations(from, left, to)?;
    let right = without_negations(from, right, to)?;
    Ok(match (left, right, from.node(at)) {
        (Some(left), Some(right), Node::Or(..)) => Some(to.push(Node::Or(left, right))),
        (Some(left), Some(right), Node::Phrase(_, _, distance)) => {
            Some(to.push(Node::Phrase(left, right, *distance)))
        }
        (Some(left), Some(right), _) => Some(to.push(Node::And(left, right))),
        (_, _, Node::Or(..)) => {
            // What was taken of the other side is no part of the answer.
            to.truncate(kept);
            None
        }
        (left, right, _) => left.or(right),
    })
}

/// Whether each lexeme of one query is in the other.
fn contains_all(whole: &TsQuery, part: &TsQuery) -> bool {
    let there: BTreeSet<&str> = whole.operands().map(|o| o.lexeme.as_str()).collect();
    part.operands()
        .all(|operand| there.contains(operand.lexeme.as_str()))
}

pub fn contains(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(contains_all(&query(&args[0]), &query(&args[1])).into())
}

pub fn contained(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(contains_all(&query(&args[1]), &query(&args[0])).into())
}
