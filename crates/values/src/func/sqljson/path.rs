//! JSON_EXISTS, JSON_VALUE and JSON_QUERY.

use super::populate::populate;
use super::{Behavior, JsonPathOp, PathSpec, Wrapper};
use crate::func::jsonpath::{self, Answer, Moment, Value, Variables};
use crate::func::{CastContext, EvalContext, EvalResult, find_cast};
use crate::io::json::parse_jsonb;
use crate::io::jsonpath::{Path, path};
use crate::io::{input_text, scalar, to_text};
use throng_types::error::{SqlState, state};
use throng_types::sqltype::format_type;
use throng_types::{Datum, Error, Jsonb, Result, SqlType, Text, oid};

/// What a path came to: a value, nothing, or a failure that ON ERROR is for.
enum Came {
    To(Datum),
    Empty,
    Failed(Error),
}

/// Arguments: the document, the path, values passed, defaults.
pub fn call(ctx: &EvalContext<'_>, spec: &PathSpec, args: &[Datum]) -> EvalResult {
    let (Datum::Jsonb(document), Datum::Text(written)) = (&args[0], &args[1]) else {
        return Ok(Datum::Null);
    };
    let path = path(written)?;
    let passed = passed(ctx, &spec.passing, &args[2..])?;
    Ok(find(ctx, spec, document, &path, &passed, args)?)
}

/// Values that PASSING gives, by their names.
pub fn passed<'a>(
    ctx: &EvalContext<'_>,
    names: &[String],
    args: &'a [Datum],
) -> Result<Vec<(Text, Value<'a>)>> {
    let named = names.iter().zip(args);
    named
        .map(|(name, value)| Ok((name.as_str().into(), variable(ctx, value)?)))
        .collect()
}

fn variable<'a>(ctx: &EvalContext<'_>, value: &'a Datum) -> Result<Value<'a>> {
    Ok(match value {
        Datum::Null => Value::Null,
        Datum::Bool(v) => Value::Bool(*v),
        Datum::Int2(_)
        | Datum::Int4(_)
        | Datum::Int8(_)
        | Datum::Float4(_)
        | Datum::Float8(_)
        | Datum::Numeric(_) => {
            let text = to_text(ctx, value, SqlType::plain(value.natural_type()));
            Value::Number(scalar::parse_numeric(&text)?)
        }
        Datum::Text(text) => Value::String(text.clone()),
        Datum::Date(_)
        | Datum::Time(_)
        | Datum::TimeTz(_)
        | Datum::Timestamp(_)
        | Datum::TimestampTz(_) => Value::Moment(Box::new(Moment {
            value: value.clone(),
            // PostgreSQL shows what is passed in UTC.
            east: 0,
        })),
        Datum::Jsonb(value) => Value::Part(value.root()),
        other => {
            return Err(Error::new(
                state::INVALID_PARAMETER_VALUE,
                format!(
                    "could not convert value of type {} to jsonpath",
                    format_type(SqlType::plain(other.natural_type()))
                ),
            ));
        }
    })
}

/// The value a path finds as `spec` has it. `args`: where defaults are found by their number.
pub fn find(
    ctx: &EvalContext<'_>,
    spec: &PathSpec,
    document: &Jsonb,
    path: &Path,
    passed: &[(Text, Value<'_>)],
    args: &[Datum],
) -> Result<Datum> {
    let answer = match spec.op {
        JsonPathOp::Exists => Answer::Exists,
        _ => Answer::Values,
    };
    let variables = Variables::Passed(passed);
    let came = jsonpath::run(
        ctx,
        path,
        document,
        variables,
        true,
        answer,
        |ended, found| match ended {
            Err(e) => Ok(Came::Failed(e)),
            Ok(exists) => Ok(match spec.op {
                JsonPathOp::Exists => truth(ctx, Some(exists), spec),
                JsonPathOp::Value => value(ctx, found, spec),
                JsonPathOp::Query => query(ctx, found, spec),
            }
            .unwrap_or_else(Came::Failed)),
        },
    )?;
    match came {
        Came::To(value) => Ok(value),
        Came::Empty => match spec.on_empty.unwrap_or(Behavior::Null) {
            Behavior::Error => Err(match &spec.column {
                Some(column) => Error::new(
                    state::NO_SQL_JSON_ITEM,
                    format!("no SQL/JSON item found for specified path of column \"{column}\""),
                ),
                None => Error::new(
                    state::NO_SQL_JSON_ITEM,
                    "no SQL/JSON item found for specified path",
                ),
            }),
            behavior => instead(ctx, behavior, "ON EMPTY", spec, args),
        },
        Came::Failed(e) => match spec.on_error.unwrap_or(Behavior::otherwise(spec.op)) {
            Behavior::Error => Err(e),
            behavior => instead(ctx, behavior, "ON ERROR", spec, args),
        },
    }
}

impl Behavior {
    /// What ON ERROR gives where nothing is written.
    pub fn otherwise(op: JsonPathOp) -> Behavior {
        match op {
            JsonPathOp::Exists => Behavior::False,
            _ => Behavior::Null,
        }
    }
}

fn truth(ctx: &EvalContext<'_>, truth: Option<bool>, spec: &PathSpec) -> Result<Came> {
    let ty = spec.ty();
    let Some(truth) = truth else {
        return Ok(Came::To(Datum::Null));
    };
    let value = Datum::Bool(truth);
    Ok(Came::To(
        match find_cast(oid::BOOL, ty.oid, CastContext::Explicit) {
            _ if ty.oid == oid::BOOL => value,
            Some(cast) => {
                let value = cast.apply(ctx, &value).map_err(|stop| stop.into_error())?;
                crate::io::typmod::apply(value, ty, false)?
            }
            None => input_text(ctx, if truth { "true" } else { "false" }, ty)?,
        },
    ))
}

/// An error that names the column where there is one.
#[cold]
fn several(spec: &PathSpec, code: SqlState, what: &str) -> Error {
    let message = match &spec.column {
        Some(column) => format!("JSON path expression for column \"{column}\" must return {what}"),
        None => format!(
            "JSON path expression in {} must return {what}",
            spec.op.name()
        ),
    };
    Error::new(code, message)
}

fn value(ctx: &EvalContext<'_>, found: &[Value<'_>], spec: &PathSpec) -> Result<Came> {
    const WHAT: &str = "single scalar item";
    let item = match found {
        [] => return Ok(Came::Empty),
        [item] => item.scalar(),
        _ => return Err(several(spec, state::MORE_THAN_ONE_SQL_JSON_ITEM, WHAT)),
    };
    let ty = spec.ty();
    let text = match &item {
        Value::Null => return Ok(Came::To(Datum::Null)),
        Value::Part(_) => return Err(several(spec, state::SQL_JSON_SCALAR_REQUIRED, WHAT)),
        _ if matches!(ty.oid, oid::JSON | oid::JSONB) => {
            let value = item.to_jsonb()?;
            return Ok(Came::To(match ty.oid {
                oid::JSONB => Datum::Jsonb(value),
                _ => Datum::Json(value.root().to_text().into()),
            }));
        }
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string().into(),
        Value::Bool(true) => Text::new_static("t"),
        Value::Bool(false) => Text::new_static("f"),
        Value::Moment(moment) => {
            let ty = SqlType::plain(moment.value.natural_type());
            to_text(ctx, &moment.value, ty).into()
        }
    };
    input_text(ctx, &text, ty).map(Came::To)
}

fn query(ctx: &EvalContext<'_>, found: &[Value<'_>], spec: &PathSpec) -> Result<Came> {
    let wraps = match spec.wrapper {
        Wrapper::Unspecified | Wrapper::Without => false,
        Wrapper::Conditional => found.len() > 1,
        Wrapper::Unconditional => !found.is_empty(),
    };
    let value = match found {
        all if wraps => jsonpath::array(all)?,
        [] => return Ok(Came::Empty),
        [single] => single.to_jsonb()?,
        _ => {
            let what = "single item when no wrapper is requested";
            return Err(several(spec, state::MORE_THAN_ONE_SQL_JSON_ITEM, what)
                .hint("Use the WITH WRAPPER clause to wrap SQL/JSON items into an array."));
        }
    };
    populate(ctx, &value, spec.ty(), spec.omit_quotes).map(Came::To)
}

/// What stands for a value that there is none of.
fn instead(
    ctx: &EvalContext<'_>,
    behavior: Behavior,
    clause: &str,
    spec: &PathSpec,
    args: &[Datum],
) -> Result<Datum> {
    let (what, result) = match behavior {
        Behavior::Null | Behavior::Unknown | Behavior::Error => return Ok(Datum::Null),
        Behavior::Default(at) => return Ok(args.get(at).cloned().unwrap_or_default()),
        Behavior::True => ("TRUE", truth(ctx, Some(true), spec)),
        Behavior::False => ("FALSE", truth(ctx, Some(false), spec)),
        Behavior::EmptyArray => ("EMPTY ARRAY", constant(ctx, "[]", spec)),
        Behavior::EmptyObject => ("EMPTY OBJECT", constant(ctx, "{}", spec)),
    };
    match result {
        Ok(Came::To(value)) => Ok(value),
        Ok(_) => Ok(Datum::Null),
        Err(e) => Err(Error::new(
            state::DATATYPE_MISMATCH,
            format!("could not coerce {clause} expression ({what}) to the RETURNING type"),
        )
        .detail(e.message())),
    }
}

fn constant(ctx: &EvalContext<'_>, text: &str, spec: &PathSpec) -> Result<Came> {
    populate(ctx, &parse_jsonb(text)?, spec.ty(), false).map(Came::To)
}
