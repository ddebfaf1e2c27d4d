//! Casts of `jsonb` to what is in it.

use super::super::cast::conversion::{
    numeric_float4, numeric_float8, numeric_int2, numeric_int4, numeric_int8,
};
use super::super::{EvalContext, EvalResult};
use super::{invalid, json, jsonb};
use crate::io::json::parse_jsonb;
use throng_types::jsonb::View;
use throng_types::{Datum, Error};

#[cold]
fn not_a(view: &View<'_>, ty: &str) -> Error {
    let kind = match view {
        View::Null => "null",
        View::Bool(_) => "boolean",
        View::Number(_) => "numeric",
        View::String(_) => "string",
        View::Array(_) => "array",
        View::Object(_) => "object",
    };
    invalid(format!("cannot cast jsonb {kind} to type {ty}"))
}

fn number(value: &Datum, ty: &str) -> EvalResult {
    match jsonb(value).root().view() {
        View::Null => Ok(Datum::Null),
        View::Number(number) => Ok(Datum::Numeric(number)),
        other => Err(not_a(&other, ty).into()),
    }
}

pub fn to_bool(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    match jsonb(&args[0]).root().view() {
        View::Null => Ok(Datum::Null),
        View::Bool(v) => Ok(v.into()),
        other => Err(not_a(&other, "boolean").into()),
    }
}
pub fn to_numeric(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    number(&args[0], "numeric")
}

macro_rules! narrowed {
    ($($name:ident $ty:literal $by:ident;)*) => { $(
        pub fn $name(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            match number(&args[0], $ty)? {
                Datum::Null => Ok(Datum::Null),
                number => $by(ctx, &[number]),
            }
        }
    )* };
}
narrowed! {
    to_int2 "smallint" numeric_int2;
    to_int4 "integer" numeric_int4;
    to_int8 "bigint" numeric_int8;
    to_float4 "real" numeric_float4;
    to_float8 "double precision" numeric_float8;
}

pub fn json_to_jsonb(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Jsonb(parse_jsonb(json(&args[0]))?))
}
pub fn jsonb_to_json(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Json(jsonb(&args[0]).root().to_text().into()))
}
