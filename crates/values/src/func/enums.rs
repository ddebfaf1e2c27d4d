//! Enums: the first, the last and the range of their values. Comparison is with all others; input
//! and output are in `io`.
//!
//! These ask of their argument only what type it is, NULL or not, so the binder adds the type as a
//! last argument.

use super::{EvalContext, EvalResult, Function, UserType};
use std::sync::Arc;
use throng_types::error::state;
use throng_types::{Array, Datum, EnumValue, Error, Oid, Result, oid::*};

/// Whether the binder adds the type.
pub fn takes_type(function: &Function) -> bool {
    FUNCTIONS.iter().any(|f| f.oid == function.oid)
}

fn definition(ctx: &EvalContext<'_>, args: &[Datum]) -> Result<Arc<dyn UserType>> {
    let ty = match args.last() {
        Some(Datum::Oid(ty)) => Oid(*ty),
        _ => return Err(Error::internal("an enum function was not told its type")),
    };
    ctx.host
        .user_type(ty)
        .ok_or_else(|| Error::internal(format!("there is no enum {}", ty.0)))
}

#[cold]
fn no_values(ty: Oid) -> Error {
    let name = throng_types::sqltype::type_name(ty);
    Error::new(
        state::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("enum {name} contains no values"),
    )
}

/// The value at one end of the type's order.
fn end(
    ctx: &EvalContext<'_>,
    args: &[Datum],
    of: impl FnOnce(&[f64]) -> Option<&f64>,
) -> EvalResult {
    let def = definition(ctx, args)?;
    let (ty, places) = (def.oid(), def.places());
    let place = *of(&places).ok_or_else(|| no_values(ty))?;
    Ok(Datum::Enum(EnumValue { ty, place }))
}

fn first(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    end(ctx, args, <[f64]>::first)
}
fn last(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    end(ctx, args, <[f64]>::last)
}

/// The values between two, both included; NULL leaves an end open.
fn range(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let def = definition(ctx, args)?;
    let (from, to) = match args {
        [from, to, _] => (from, to),
        _ => (&Datum::Null, &Datum::Null),
    };
    let inside = |place: &f64| {
        let above = match from {
            Datum::Enum(from) => *place >= from.place,
            _ => true,
        };
        let below = match to {
            Datum::Enum(to) => *place <= to.place,
            _ => true,
        };
        above && below
    };
    let ty = def.oid();
    let places = def.places().into_iter().filter(inside);
    let items = places.map(|place| Datum::Enum(EnumValue { ty, place }));
    Ok(Datum::array(Array::from_items(ty, items.collect())))
}

fn compare(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((super::compare::compare(&args[0], &args[1]) as i32).into())
}

/// The comparison has no need of the type.
pub static COMPARISONS: &[Function] = &[Function::new(
    3514,
    "enum_cmp",
    &[ANYENUM, ANYENUM],
    INT4,
    compare,
)];

pub static FUNCTIONS: &[Function] = &[
    Function::new(3528, "enum_first", &[ANYENUM], ANYENUM, first)
        .stable()
        .lenient(),
    Function::new(3529, "enum_last", &[ANYENUM], ANYENUM, last)
        .stable()
        .lenient(),
    Function::new(3530, "enum_range", &[ANYENUM, ANYENUM], ANYARRAY, range)
        .stable()
        .lenient(),
    Function::new(3531, "enum_range", &[ANYENUM], ANYARRAY, range)
        .stable()
        .lenient(),
];
