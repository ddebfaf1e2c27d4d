//! Enums: the first, the last and the range of their values. Comparison is with all others; input
//! and output are in `io`.
//!
//! These ask of their argument only what type it is, NULL or not, so the binder adds the type as a
//! last argument.

use super::{EvalContext, EvalResult, Function};
use crate::catalog::{EnumLabel, TypeDef};
use std::sync::Arc;
use throng_types::error::state;
use throng_types::{Array, Datum, EnumValue, Error, Oid, Result, oid::*};

/// Whether the binder adds the type.
pub fn takes_type(function: &Function) -> bool {
    FUNCTIONS.iter().any(|f| f.oid == function.oid)
}

fn definition(ctx: &EvalContext<'_>, args: &[Datum]) -> Result<Arc<TypeDef>> {
    let ty = match args.last() {
        Some(Datum::Oid(ty)) => Oid(*ty),
        _ => return Err(Error::internal("an enum function was not told its type")),
    };
    ctx.host
        .made_type(ty)
        .ok_or_else(|| Error::internal(format!("there is no enum {}", ty.0)))
}

fn value(def: &TypeDef, label: &EnumLabel) -> Datum {
    Datum::Enum(EnumValue {
        ty: def.oid,
        place: label.place,
    })
}

#[cold]
fn no_values(def: &TypeDef) -> Error {
    let name = throng_types::sqltype::type_name(def.oid);
    Error::new(
        state::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("enum {name} contains no values"),
    )
}

fn first(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let def = definition(ctx, args)?;
    let label = def.labels.first().ok_or_else(|| no_values(&def))?;
    Ok(value(&def, label))
}
fn last(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let def = definition(ctx, args)?;
    let label = def.labels.last().ok_or_else(|| no_values(&def))?;
    Ok(value(&def, label))
}

/// The values between two, both included; NULL leaves an end open.
fn range(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let def = definition(ctx, args)?;
    let (from, to) = match args {
        [from, to, _] => (from, to),
        _ => (&Datum::Null, &Datum::Null),
    };
    let inside = |label: &&EnumLabel| {
        let above = match from {
            Datum::Enum(from) => label.place >= from.place,
            _ => true,
        };
        let below = match to {
            Datum::Enum(to) => label.place <= to.place,
            _ => true,
        };
        above && below
    };
    let labels = def.labels.iter().filter(inside);
    let items = labels.map(|l| value(&def, l)).collect();
    Ok(Datum::array(Array::from_items(def.oid, items)))
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
