//! What an expression could tell of rows that its reader must not see: by an error, a notice, or
//! how long it takes. It must not see a row before row security and the conditions of
//! `security_barrier` views have.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use throng_types::SqlType;

use crate::tree::expr::{Expr, RelId, Subquery, SubqueryKind, Var};
use crate::tree::query::walk::QueryPart;
use throng_values::func::cast::CastMethod;
use throng_values::func::leakproof::is_leakproof;
use throng_values::func::{Cast, Operator};

/// Whether a function that is not leakproof is given something of a row.
pub fn leaks(expr: &Expr) -> bool {
    expr.any(&mut |part| is_leaky(part) && speaks_of_rows(part))
}

fn speaks_of_rows(expr: &Expr) -> bool {
    let mut speaks = false;
    expr.for_each_var(&mut |_| speaks = true);
    speaks
}

fn tells(op: &Operator) -> bool {
    !is_leakproof(op.code)
}

/// Whether a node by itself may tell something of its operands.
fn is_leaky(expr: &Expr) -> bool {
    match expr {
        Expr::Const(..)
        | Expr::Var(_)
        | Expr::Slot(..)
        | Expr::Param(..)
        | Expr::Outer(..)
        | Expr::CaseOperand(_)
        | Expr::Case { .. }
        | Expr::Coalesce(..)
        | Expr::Array(..)
        | Expr::Row(..)
        | Expr::Variadic(_)
        | Expr::Field { .. }
        | Expr::Items { .. }
        | Expr::Subscript { .. }
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsBool { .. }
        | Expr::Once(_)
        // The function behind it is asked.
        | Expr::Own(_) => false,
        Expr::Op { op, .. } | Expr::ArrayCompare { op, .. } => tells(op),
        Expr::IsDistinct { equal, .. } | Expr::NullIf { equal, .. } => tells(equal),
        Expr::Call { func, .. } => !is_leakproof(func.oid),
        Expr::Routine(call) => !call.def.leakproof,
        Expr::Cast { arg, cast, to, .. } => cast.is_some_and(cast_tells) || cuts(arg.ty(), *to),
        Expr::Subquery(sub) => !stands_alone(sub),
        _ => true,
    }
}

fn cast_tells(cast: &Cast) -> bool {
    !matches!(cast.method, CastMethod::Binary) && !is_leakproof(cast.function)
}

/// Whether a value may not fit the length that it is cast to.
fn cuts(from: SqlType, to: SqlType) -> bool {
    to.typmod >= 0 && from.typmod != to.typmod
}

/// A query that is asked once, whatever the row.
fn stands_alone(sub: &Subquery) -> bool {
    if !matches!(sub.kind, SubqueryKind::Exists | SubqueryKind::Scalar) {
        return false;
    }
    let mut own: HashSet<RelId, FixedState> = HashSet::default();
    let mut vars: Vec<&Var> = Vec::new();
    sub.query.walk(true, &mut |part| match part {
        QueryPart::Query(query) => {
            own.insert(query.output);
        }
        QueryPart::Rel(rel) => {
            own.insert(rel.id);
        }
        QueryPart::Expr(Expr::Var(var)) => vars.push(var),
        QueryPart::Expr(_) => {}
    });
    vars.into_iter().all(|var| own.contains(&var.rel))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_types::oid;
    use throng_values::func::operators_named;

    fn column(number: i16) -> Expr {
        Expr::Var(Var {
            rel: RelId(0),
            column: number,
            ty: SqlType::INT4,
        })
    }

    fn over(name: &str, left: Expr, right: Expr) -> Expr {
        let of_int4 = |op: &&&Operator| (op.left, op.right) == (oid::INT4, oid::INT4);
        let op = operators_named(name).iter().find(of_int4);
        let op = op.expect("an operator of integers");
        let ty = SqlType::plain(op.ret);
        let args = vec![left, right];
        Expr::Op { op, args, ty }
    }

    #[test]
    fn what_may_fail_over_a_row_leaks() {
        assert!(!leaks(&over("=", column(1), Expr::int4(1))));
        assert!(!leaks(&over("<", column(1), column(2))));
        let quotient = over("/", Expr::int4(1), column(1));
        assert!(leaks(&over("=", quotient.clone(), Expr::int4(1))));
        assert!(leaks(&Expr::Not(Box::new(over("=", column(2), quotient)))));
    }

    #[test]
    fn what_sees_no_row_does_not() {
        let constant = over("/", Expr::int4(1), Expr::int4(0));
        assert!(!leaks(&over("=", column(1), constant)));
        assert!(!leaks(&Expr::IsNull(Box::new(column(1)))));
    }
}
