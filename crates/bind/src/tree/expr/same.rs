//! Expressions that mean the same.

use throng_values::func::CastContext;

use super::Expr;

/// Whether two bound expressions are the same but for whether a cast was written or came by itself.
pub fn same_term(a: &Expr, b: &Expr) -> bool {
    fn plain(mut e: Expr) -> Expr {
        if let Expr::Cast { context, to, .. } = &mut e
            && to.typmod == -1
        {
            *context = CastContext::Explicit;
        }
        e.for_each_child_mut(&mut |child| {
            *child = plain(std::mem::replace(child, Expr::bool(true)));
        });
        e
    }
    a == b || plain(a.clone()) == plain(b.clone())
}
