//! Before planning: calls of users' functions that are no more than an expression, or a query in
//! FROM, become that.
//!
//! ```text
//! SELECT twice(t.a) FROM t, above(3) u     twice(x): SELECT $1 * 2     above(x): SELECT * FROM u WHERE b > $1
//!   ─►   SELECT t.a * 2 FROM t, (SELECT * FROM u WHERE b > 3) u
//! ```
//! An argument that is used more than once must cost little and always be the same. Operators and
//! casts of users' own become the calls that they mean.

use crate::fold::is_volatile;
use crate::tree::expr::{Expr, ParamId, RoutineCall};
use crate::tree::query::walk::QueryPartMut;
use crate::tree::query::{BoundQuery, Rel, RelKind};
use throng_types::sqltype::made;

pub fn inline_routines(bound: &mut BoundQuery) {
    bound.walk_mut(&mut |part| match part {
        QueryPartMut::Expr(e) => inline_call(e),
        QueryPartMut::Rel(rel) => {
            native_rows(rel);
            let RelKind::Routine {
                call,
                inline,
                lateral,
                ..
            } = &mut rel.kind
            else {
                return;
            };
            let Some(mut query) = inline.take() else {
                return;
            };
            let args = std::mem::take(&mut call.args);
            // Arguments may hold parameters of the whole statement: those of the function are told
            // apart first.
            query.walk_mut(&mut |part| {
                if let QueryPartMut::Expr(e) = part
                    && let Expr::Param(at, ty) = e
                {
                    *e = Expr::Outer(ParamId(u32::from(*at)), *ty);
                }
            });
            query.walk_mut(&mut |part| {
                if let QueryPartMut::Expr(e) = part
                    && let Expr::Outer(at, _) = e
                    && let Some(arg) = args.get(at.0 as usize)
                {
                    *e = arg.clone();
                }
            });
            rel.kind = RelKind::Subquery {
                query,
                lateral: *lateral,
            };
        }
        QueryPartMut::Query(_) => {}
    });
}

/// The same of an expression that is no statement's.
pub fn inline_in(expr: &mut Expr) {
    expr.walk_mut(&mut |part| {
        if let QueryPartMut::Expr(e) = part {
            inline_call(e);
        }
    });
}

/// The rows of an extension's function in FROM.
fn native_rows(rel: &mut Rel) {
    let RelKind::Routine {
        call,
        ordinality,
        lateral,
        ..
    } = &mut rel.kind
    else {
        return;
    };
    if let Some(func) = call.def.native() {
        rel.kind = RelKind::Function {
            func,
            args: std::mem::take(&mut call.args),
            composite: made::is_composite(call.ty.oid) || !call.columns.is_empty(),
            ordinality: *ordinality,
            lateral: *lateral,
        };
    }
}

fn inline_call(e: &mut Expr) {
    if let Expr::SetRoutine(call) = e
        && let Some(func) = call.def.native()
    {
        let (args, ty) = (std::mem::take(&mut call.args), call.ty);
        *e = Expr::SetCall { func, args, ty };
    }
    // What it becomes may be such a call again.
    loop {
        match e {
            Expr::Own(form) => {
                *e = std::mem::replace(&mut form.value, Expr::bool(true));
            }
            Expr::Routine(call) => match value_of(call) {
                Some(value) => *e = value,
                None => return,
            },
            _ => return,
        }
    }
}

fn value_of(call: &RoutineCall) -> Option<Expr> {
    let inline = call.inline.as_ref()?;
    let mut uses = vec![0u32; call.args.len()];
    inline.any(&mut |e| {
        if let Expr::Param(at, _) = e {
            uses[usize::from(*at)] += 1;
        }
        false
    });
    let repeatable = |arg: &Expr| {
        const FEW: u32 = 10;
        let mut size = 0;
        let dear = arg.any(&mut |e| {
            size += 1;
            is_volatile(e) || matches!(e, Expr::Subquery(_) | Expr::Routine(_))
        });
        !dear && size <= FEW
    };
    let fits = uses
        .iter()
        .zip(&call.args)
        .all(|(n, arg)| *n <= 1 || repeatable(arg));
    fits.then(|| with_arguments(inline, &call.args))
}

fn with_arguments(expr: &Expr, args: &[Expr]) -> Expr {
    if let Expr::Param(at, _) = expr
        && let Some(arg) = args.get(usize::from(*at))
    {
        return arg.clone();
    }
    let mut expr = expr.clone();
    expr.for_each_child_mut(&mut |child| *child = with_arguments(child, args));
    expr
}
