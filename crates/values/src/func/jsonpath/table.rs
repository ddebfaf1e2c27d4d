//! The functions and operators that walk a path over a `jsonb`.

use super::{Answer, Value, Variables, path, run};
use crate::func::json::jsonb;
use crate::func::{EvalContext, EvalResult, EvalStop, Function, Operator, SetIterator};
use throng_types::error::state;
use throng_types::jsonb::Json;
use throng_types::oid::*;
use throng_types::{Datum, Error, Jsonb, Oid, Result};

fn is_silent(args: &[Datum]) -> bool {
    args.get(3).is_some_and(Datum::is_true)
}

/// A call's walk: document, path, perhaps variables.
fn walk<T>(
    ctx: &EvalContext<'_>,
    args: &[Datum],
    use_zone: bool,
    answer: Answer,
    use_found: impl FnOnce(Result<bool>, &[Value<'_>]) -> Result<T>,
) -> Result<T> {
    let Datum::Text(written) = &args[1] else {
        return Err(Error::internal("a jsonpath is kept as text"));
    };
    let path = path(written)?;
    let document = jsonb(&args[0]);
    let variables = match args.get(2) {
        Some(variables) => Variables::Object(jsonb(variables).root()),
        None => Variables::Passed(&[]),
    };
    if let Variables::Object(object) = variables
        && !object.is_object()
    {
        let message = "\"vars\" argument is not an object";
        let detail = "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.";
        return Err(Error::new(state::INVALID_PARAMETER_VALUE, message).detail(detail));
    }
    run(ctx, &path, document, variables, use_zone, answer, use_found)
}

/// The values, those before an error included where errors are passed over.
fn values<T>(
    ctx: &EvalContext<'_>,
    args: &[Datum],
    use_zone: bool,
    use_found: impl FnOnce(&[Value<'_>]) -> Result<T>,
) -> Result<T> {
    let silent = is_silent(args);
    walk(
        ctx,
        args,
        use_zone,
        Answer::Values,
        |ended, found| match ended {
            Err(e) if !silent => Err(e),
            _ => use_found(found),
        },
    )
}

/// `silent`: unknown where there is an error.
fn exists_if(ctx: &EvalContext<'_>, args: &[Datum], use_zone: bool, silent: bool) -> EvalResult {
    let exists = walk(
        ctx,
        args,
        use_zone,
        Answer::Exists,
        |exists, _| match exists {
            Ok(exists) => Ok(exists.into()),
            Err(_) if silent => Ok(Datum::Null),
            Err(e) => Err(e),
        },
    )?;
    Ok(exists)
}
fn exists_as(ctx: &EvalContext<'_>, args: &[Datum], use_zone: bool) -> EvalResult {
    exists_if(ctx, args, use_zone, is_silent(args))
}

/// A single truth value or null; None for what is neither.
fn truth(found: &[Value<'_>]) -> Option<Datum> {
    match found {
        [single] => match single.scalar() {
            Value::Bool(truth) => Some(truth.into()),
            Value::Null => Some(Datum::Null),
            _ => None,
        },
        _ => None,
    }
}

fn match_as(ctx: &EvalContext<'_>, args: &[Datum], use_zone: bool) -> EvalResult {
    let silent = is_silent(args);
    let result = values(ctx, args, use_zone, |found| match truth(found) {
        Some(truth) => Ok(truth),
        None if silent => Ok(Datum::Null),
        None => Err(Error::new(
            state::SINGLETON_SQL_JSON_ITEM_REQUIRED,
            "single boolean result is expected",
        )),
    })?;
    Ok(result)
}

fn own(value: &Value<'_>) -> Result<Datum> {
    value.to_jsonb().map(Datum::Jsonb)
}

fn query_as(
    ctx: &EvalContext<'_>,
    args: &[Datum],
    use_zone: bool,
) -> Result<SetIterator, EvalStop> {
    let rows = values(ctx, args, use_zone, |found| {
        found.iter().map(own).collect::<Result<Vec<_>>>()
    })?;
    Ok(Box::new(rows.into_iter().map(Ok)))
}

/// The values in one array.
pub fn array(found: &[Value<'_>]) -> Result<Jsonb> {
    Json::Array(found.iter().map(Value::to_json).collect()).encode()
}

fn query_array_as(ctx: &EvalContext<'_>, args: &[Datum], use_zone: bool) -> EvalResult {
    Ok(Datum::Jsonb(values(ctx, args, use_zone, array)?))
}

fn query_first_as(ctx: &EvalContext<'_>, args: &[Datum], use_zone: bool) -> EvalResult {
    let first = values(ctx, args, use_zone, |found| {
        found.first().map(own).transpose()
    })?;
    Ok(first.unwrap_or(Datum::Null))
}

/// Both forms of a function: without and with use of the session's time zone.
macro_rules! both {
    ($($plain:ident $zoned:ident $as:ident -> $ret:ty;)*) => { $(
        fn $plain(ctx: &EvalContext<'_>, args: &[Datum]) -> $ret {
            $as(ctx, args, false)
        }
        fn $zoned(ctx: &EvalContext<'_>, args: &[Datum]) -> $ret {
            $as(ctx, args, true)
        }
    )* };
}
both! {
    exists exists_tz exists_as -> EvalResult;
    matches matches_tz match_as -> EvalResult;
    query query_tz query_as -> Result<SetIterator, EvalStop>;
    query_array query_array_tz query_array_as -> EvalResult;
    query_first query_first_tz query_first_as -> EvalResult;
}

/// The operators pass errors over.
fn exists_silently(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    exists_if(ctx, args, false, true)
}
fn matches_silently(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let result = walk(ctx, args, false, Answer::Values, |_, found| {
        Ok(truth(found).unwrap_or(Datum::Null))
    })?;
    Ok(result)
}

const TWO: &[Oid] = &[JSONB, JSONPATH];
const FOUR: &[Oid] = &[JSONB, JSONPATH, JSONB, BOOL];

pub static FUNCTIONS: &[Function] = &[
    Function::new(4005, "jsonb_path_exists", FOUR, BOOL, exists).defaults(2),
    Function::new(4007, "jsonb_path_query_array", FOUR, JSONB, query_array).defaults(2),
    Function::new(4008, "jsonb_path_query_first", FOUR, JSONB, query_first).defaults(2),
    Function::new(4009, "jsonb_path_match", FOUR, BOOL, matches).defaults(2),
    Function::new(4010, "jsonb_path_exists_opr", TWO, BOOL, exists_silently),
    Function::new(4011, "jsonb_path_match_opr", TWO, BOOL, matches_silently),
    Function::new(1177, "jsonb_path_exists_tz", FOUR, BOOL, exists_tz)
        .defaults(2)
        .stable(),
    Function::new(
        1180,
        "jsonb_path_query_array_tz",
        FOUR,
        JSONB,
        query_array_tz,
    )
    .defaults(2)
    .stable(),
    Function::new(
        2023,
        "jsonb_path_query_first_tz",
        FOUR,
        JSONB,
        query_first_tz,
    )
    .defaults(2)
    .stable(),
    Function::new(2030, "jsonb_path_match_tz", FOUR, BOOL, matches_tz)
        .defaults(2)
        .stable(),
];

/// Those that return rows.
pub static SETS: &[Function] = &[
    Function::set(4006, "jsonb_path_query", FOUR, JSONB, query).defaults(2),
    Function::set(1179, "jsonb_path_query_tz", FOUR, JSONB, query_tz)
        .defaults(2)
        .stable(),
];

pub static OPERATORS: &[Operator] = &[
    Operator::new(
        4012,
        "@?",
        JSONB,
        JSONPATH,
        BOOL,
        (4010, "jsonb_path_exists_opr"),
        exists_silently,
    ),
    Operator::new(
        4013,
        "@@",
        JSONB,
        JSONPATH,
        BOOL,
        (4011, "jsonb_path_match_opr"),
        matches_silently,
    ),
];
