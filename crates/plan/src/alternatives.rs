//! What a disjunction implies: `(a AND x) OR (a AND y)` is `a AND (x OR y)`, and where each arm
//! limits one relation, that relation can be limited before it is joined.

use super::join::rels_of;
use throng_bind::expr::{Expr, RelId};

/// Takes out of the disjunctions among `conditions` what their arms have in common, and adds what
/// they imply of each relation in `local`.
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
    matches!(expr, Expr::Subquery(_)) || throng_bind::fold::is_volatile(expr)
}

/// What a disjunction among the conditions that [`derive`] has left implies of each relation: it is
/// among them too.
pub(super) fn implied_by(condition: &Expr, local: &[RelId]) -> Vec<Expr> {
    match condition {
        Expr::Or(arms) if !condition.any(&mut is_delicate) => implied(&parts(arms.clone()), local),
        _ => Vec::new(),
    }
}

fn implied(arms: &[Vec<Expr>], local: &[RelId]) -> Vec<Expr> {
    let mut about: Vec<RelId> = arms.iter().flatten().flat_map(rels_of).collect();
    about.retain(|rel| local.contains(rel));
    about.sort_unstable();
    about.dedup();
    if about.len() < 2 {
        return Vec::new();
    }
    let of = |rel: RelId| {
        let own = |arm: &Vec<Expr>| {
            let parts = arm.iter().filter(|part| rels_of(part) == [rel]);
            Expr::all_of(parts.cloned().collect())
        };
        Some(Expr::Or(arms.iter().map(own).collect::<Option<_>>()?))
    };
    about.into_iter().filter_map(of).collect()
}

fn parts(arms: Vec<Expr>) -> Vec<Vec<Expr>> {
    let parts = |arm: Expr| {
        let mut parts = Vec::new();
        arm.conjuncts(&mut parts);
        parts
    };
    arms.into_iter().map(parts).collect()
}

fn factored(arms: Vec<Expr>, local: &[RelId], out: &mut Vec<Expr>) {
    let mut arms = parts(arms);
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
    out.extend(implied(&arms, local));
    out.push(Expr::Or(
        arms.into_iter().filter_map(Expr::all_of).collect(),
    ));
}
