//! Functions by other names: users' operators and casts.

use std::sync::Arc;

use throng_catalog::{CastDef, OperatorDef};
use throng_types::Oid;
use throng_values::func::CastContext;

use super::Expr;

/// A user's operator or cast, as one use of it.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnForm {
    pub written: Written,
    /// What it means.
    pub value: Expr,
}

/// How a function's call is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    Operator(Arc<OperatorDef>),
    Cast(Arc<CastDef>, CastContext),
}

impl OwnForm {
    /// The values that it is of, without what makes them arguments.
    pub fn operands(&self) -> &[Expr] {
        match &self.value {
            Expr::Routine(call) => &call.args,
            Expr::Call { args, .. } => args,
            value => std::slice::from_ref(value),
        }
    }

    /// A cast that was made without being written is as good as a written one.
    pub fn write_out(&mut self) {
        if let Written::Cast(_, context) = &mut self.written {
            *context = CastContext::Explicit;
        }
    }

    /// The definition's number.
    pub fn definition(&self) -> Oid {
        match &self.written {
            Written::Operator(def) => def.oid,
            Written::Cast(def, _) => def.oid,
        }
    }
}

/// An expression with users' casts as the calls that they are. Text that is kept says those: it
/// means the same when the cast has gone, and the function is what cannot go.
pub fn without_casts(mut expr: Expr) -> Expr {
    if let Expr::Own(form) = &mut expr
        && matches!(form.written, Written::Cast(..))
    {
        expr = std::mem::replace(&mut form.value, Expr::bool(true));
    }
    expr.for_each_child_mut(&mut |child| {
        *child = without_casts(std::mem::replace(child, Expr::bool(true)));
    });
    expr
}
