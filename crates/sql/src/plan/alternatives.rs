//! What a disjunction implies: `(a AND x) OR (a AND y)` is `a AND (x OR y)`, and where each arm limits one relation, that
//! relation can be limited before it is joined.

use super::join::rels_of;
use crate::expr::{Expr, RelId};

/// Takes out of the disjunctions among `conditions` what their arms have in common, and adds what they imply of each
/// relation in `local`.
pub(super) fn derive(conditions: &mut Vec<Expr>, local: &[RelId]) {
    let mut out = Vec::with_capacity(conditions.len());
    for condition in conditions.drain(..) {
        match condition {
            Expr::Or(arms) if !arms.iter().any(|arm| arm.any(&mut is_delicate)) => {
                factored(arms, local, &mut out);
            }
            other => out.push(other),
        }
    }
    *conditions = out;
}

/// What is not to be computed more often or elsewhere than it is written.
fn is_delicate(expr: &Expr) -> bool {
    matches!(expr, Expr::Subquery(_)) || super::fold::is_volatile(expr)
}

fn factored(arms: Vec<Expr>, local: &[RelId], out: &mut Vec<Expr>) {
    let mut arms: Vec<Vec<Expr>> = arms
        .into_iter()
        .map(|arm| {
            let mut parts = Vec::new();
            arm.conjuncts(&mut parts);
            parts
        })
        .collect();
    let common: Vec<Expr> = match arms.split_first() {
        Some((first, rest)) => first
            .iter()
            .filter(|part| rest.iter().all(|arm| arm.contains(part)))
            .cloned()
            .collect(),
        None => Vec::new(),
    };
    for arm in &mut arms {
        arm.retain(|part| !common.contains(part));
    }
    out.extend(common);
    // An arm of which nothing is left holds wherever the common part does.
    if arms.iter().any(Vec::is_empty) {
        return;
    }
    let mut about: Vec<RelId> = arms.iter().flatten().flat_map(rels_of).collect();
    about.retain(|rel| local.contains(rel));
    about.sort_unstable();
    about.dedup();
    if about.len() > 1 {
        for rel in about {
            let own = |arm: &Vec<Expr>| {
                let parts = arm.iter().filter(|part| rels_of(part) == [rel]);
                Expr::all_of(parts.cloned().collect())
            };
            if let Some(own) = arms.iter().map(own).collect::<Option<Vec<Expr>>>() {
                out.push(Expr::Or(own));
            }
        }
    }
    out.push(Expr::Or(
        arms.into_iter().filter_map(Expr::all_of).collect(),
    ));
}
