//! Set-returning functions inside the expressions of a select list.
//!
//! ```text
//! SELECT a, 1 + f(g(a)), h(a) FROM t
//!   ─►   Project a, 1 + s1, s2  over  ProjectSet a, f(s0), h(a)  over  ProjectSet a, g(a)  over  t
//! ```
//! Those that stand at one depth run side by side; those in another's arguments below it.

use throng_types::Result;

use super::{Columns, Plan, Planner};
use throng_bind::expr::{Expr, RelId, Var};

/// Whether sets stand elsewhere than at the top of expressions, with arguments of their own.
pub(super) fn are_nested(exprs: &[Expr]) -> bool {
    let inside = |e: &Expr| {
        let mut found = false;
        e.for_each_child(&mut |child| found |= child.any(&mut |e| e.is_set()));
        found
    };
    exprs.iter().any(inside)
}

/// Puts a column of `rel` in the place of each outermost set below (or at) `e`, and the set into
/// `sets`.
fn take_out(e: &mut Expr, rel: RelId, sets: &mut Vec<Expr>) {
    if !e.is_set() {
        return e.for_each_child_mut(&mut |child| take_out(child, rel, sets));
    }
    let ty = e.ty();
    let column = match sets.iter().position(|set| set == e) {
        Some(at) if !throng_bind::fold::is_volatile(e) => at as i16 + 1,
        _ => {
            sets.push(e.clone());
            sets.len() as i16
        }
    };
    *e = Expr::Var(Var { rel, column, ty });
}

impl Planner<'_> {
    /// The plan that gives `exprs`, whose sets are computed by plans below it.
    pub(super) fn nested_sets(
        &mut self,
        input: Plan,
        mut exprs: Vec<Expr>,
        columns: &Columns,
    ) -> Result<Plan> {
        let rel = self.new_rel();
        let mut sets = Vec::new();
        let all_are_sets = exprs
            .iter()
            .all(|e| e.is_set() || !e.any(&mut |e| e.is_set()));
        if all_are_sets {
            // Only their arguments hold others.
            for set in exprs.iter_mut().filter(|e| e.is_set()) {
                set.for_each_child_mut(&mut |arg| take_out(arg, rel, &mut sets));
            }
        } else {
            exprs.iter_mut().for_each(|e| take_out(e, rel, &mut sets));
        }
        // What else is read of the input comes along.
        let mut below: Vec<Expr> = Vec::new();
        let mut places = Columns::default();
        for expr in &exprs {
            expr.for_each_var(&mut |var| {
                let known = columns.get(var.rel, var.column).is_some();
                let kept = places.get(var.rel, var.column).is_some();
                if var.rel != rel && known && !kept {
                    places.push(Some((var.rel, var.column)));
                    below.push(Expr::Var(var.clone()));
                }
            });
        }
        for (set, column) in sets.into_iter().zip(1..) {
            places.push(Some((rel, column)));
            below.push(set);
        }
        let plan = self.targets(input, below, columns)?;
        self.targets(plan, exprs, &places)
    }
}
