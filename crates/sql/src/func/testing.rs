//! What tests of functions stand on: a host without a server, and cases with PostgreSQL's answers.
//!
//! A case is a line of fields parted by tabs: `op` or `fn` or `cast`, the name (for a cast: the target type), the argument types, the
//! arguments as text, and the answer: `=text`, `NULL`, or `E` with SQLSTATE and message. Answers were taken from PostgreSQL 18.
//! A line `set`, a name and a value changes a format for the lines after it.

use super::*;
use crate::io::{
    ByteaOutput, DateFormat, DateOrder, DateStyle, FormatSettings, IntervalStyle, Zone, input_text,
    to_text,
};
use throng_types::sqltype::type_by_name;
use throng_types::{Datum, Error, Oid, SqlType, oid};

/// Knows one moment (2024-02-29 12:34:56.5 UTC), one user, no objects.
pub struct TestHost;

pub const NOW: i64 = 762_525_296_500_000;

impl Host for TestHost {
    fn transaction_timestamp(&self) -> i64 {
        NOW
    }
    fn statement_timestamp(&self) -> i64 {
        NOW
    }
    fn current_user(&self) -> String {
        "postgres".into()
    }
    fn session_user(&self) -> String {
        "postgres".into()
    }
    fn current_database(&self) -> String {
        "postgres".into()
    }
    fn current_schemas(&self, implicit: bool) -> Vec<String> {
        let all = ["pg_catalog", "public"];
        all[usize::from(!implicit)..].iter().map(|s| s.to_string()).collect()
    }
    fn backend_pid(&self) -> i32 {
        4711
    }
    fn show_setting(&self, name: &str) -> Option<String> {
        (name == "work_mem").then(|| "4MB".into())
    }
    fn set_setting(&self, _: &str, value: Option<&str>, _: bool) -> Result<String, EvalStop> {
        Ok(value.unwrap_or("").into())
    }
    fn transaction_id(&self, _: bool) -> Result<Option<u64>, EvalStop> {
        Ok(Some(3))
    }
    fn nextval(&self, _: Oid) -> Result<i64, EvalStop> {
        Ok(1)
    }
    fn currval(&self, _: Oid) -> Result<i64, EvalStop> {
        Ok(1)
    }
    fn lastval(&self) -> Result<i64, EvalStop> {
        Ok(1)
    }
    fn setval(&self, _: Oid, value: i64, _: bool) -> Result<i64, EvalStop> {
        Ok(value)
    }
    fn object_oid(&self, _: ObjectKind, name: &str) -> Result<Oid, EvalStop> {
        let message = format!("relation \"{name}\" does not exist");
        Err(Error::new(throng_types::error::state::UNDEFINED_TABLE, message).into())
    }
    fn object_name(&self, _: ObjectKind, _: Oid) -> Option<String> {
        None
    }
    fn system_function(&self, name: &str, _: &[Datum]) -> EvalResult {
        Err(Error::unsupported(name).into())
    }
}

/// Runs `f` in UTC with default formats.
pub fn with_context<R>(f: impl FnOnce(&EvalContext<'_>) -> R) -> R {
    let format = FormatSettings::default();
    f(&EvalContext { host: &TestHost, format: &format })
}

/// The value of a call, its arguments given as text with their types; resolved as the binder would.
pub fn evaluate(
    ctx: &EvalContext<'_>,
    kind: &str,
    name: &str,
    types: &[SqlType],
    args: &[&str],
) -> Result<(Datum, SqlType), Error> {
    let mut values = Vec::new();
    for (text, ty) in args.iter().zip(types) {
        values.push(if *text == "NULL" { Datum::Null } else { input_text(ctx, text, *ty)? });
    }
    let oids: Vec<Oid> = types.iter().map(|t| t.oid).collect();
    let coerce = |values: &mut Vec<Datum>, to: &[Oid]| -> Result<(), Error> {
        for ((value, from), to) in values.iter_mut().zip(&oids).zip(to) {
            if from != to {
                let cast = find_cast(*from, *to, CastContext::Implicit).expect("resolution saw it");
                *value = cast.apply(ctx, value).map_err(EvalStop::into_error)?;
            }
        }
        Ok(())
    };
    match kind {
        "op" => {
            let left = (oids.len() == 2).then(|| oids[0]);
            let resolved = resolve_operator(name, left, oids[oids.len() - 1])?;
            let wanted = [resolved.left, resolved.right];
            coerce(&mut values, &wanted[2 - oids.len()..])?;
            let value = resolved.operator.call(ctx, &values).map_err(EvalStop::into_error)?;
            Ok((value, SqlType::plain(resolved.ret)))
        }
        "fn" => {
            let resolved = resolve_function(name, &oids)?;
            coerce(&mut values, &resolved.arg_types)?;
            let (Callee::Scalar(f), ret) = (resolved.callee, resolved.ret) else {
                panic!("{name} is not a scalar function");
            };
            Ok((f.call(ctx, &values).map_err(EvalStop::into_error)?, SqlType::plain(ret)))
        }
        "cast" => {
            let to = type_by_name(name).unwrap_or_else(|| panic!("no type {name}")).oid;
            let cast = find_cast(oids[0], to, CastContext::Explicit)
                .unwrap_or_else(|| panic!("no cast from {} to {name}", oids[0]));
            let value = cast.apply(ctx, &values[0]).map_err(EvalStop::into_error)?;
            Ok((value, SqlType::plain(to)))
        }
        _ => panic!("{kind} is no kind of case"),
    }
}

fn set(format: &mut FormatSettings, name: &str, value: &str) {
    match name {
        "TimeZone" => format.time_zone = Zone::by_name(value).expect("a zone"),
        "IntervalStyle" => {
            format.interval_style = match value {
                "postgres" => IntervalStyle::Postgres,
                "postgres_verbose" => IntervalStyle::PostgresVerbose,
                "sql_standard" => IntervalStyle::SqlStandard,
                _ => IntervalStyle::Iso8601,
            }
        }
        "DateStyle" => {
            let (style, order) = value.split_once(", ").expect("format and order");
            format.date_style = DateStyle {
                format: match style {
                    "ISO" => DateFormat::Iso,
                    "SQL" => DateFormat::Sql,
                    "German" => DateFormat::German,
                    _ => DateFormat::Postgres,
                },
                order: match order {
                    "YMD" => DateOrder::Ymd,
                    "DMY" => DateOrder::Dmy,
                    _ => DateOrder::Mdy,
                },
            }
        }
        "extra_float_digits" => format.extra_float_digits = value.parse().expect("a number"),
        "bytea_output" => format.bytea_output = ByteaOutput::Escape,
        _ => panic!("{name} is no format"),
    }
}

/// Runs a file of cases; gives those whose answer differs.
pub fn differences(cases: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut format = FormatSettings::default();
    for line in cases.lines().filter(|l| !l.is_empty()) {
        let fields: Vec<&str> = line.split('\t').collect();
        if fields[0] == "set" {
            set(&mut format, fields[1], fields[2]);
            continue;
        }
        let types: Vec<SqlType> = fields[2]
            .split(',')
            .map(|t| SqlType::plain(type_by_name(t).unwrap_or_else(|| panic!("no type {t}")).oid))
            .collect();
        let (args, expected) = (&fields[3..fields.len() - 1], fields[fields.len() - 1]);
        let ctx = &EvalContext { host: &TestHost, format: &format };
        let got = {
            match evaluate(ctx, fields[0], fields[1], &types, args) {
                Ok((Datum::Null, _)) => "NULL".to_string(),
                Ok((value, ty)) => {
                    // `text` of a boolean is spelled out.
                    let cast = find_cast(ty.oid, oid::TEXT, CastContext::Assignment);
                    let shown = match cast {
                        Some(cast) => cast.apply(ctx, &value).map_err(EvalStop::into_error),
                        None => Ok(value),
                    };
                    match shown {
                        Ok(shown) => format!("={}", to_text(ctx, &shown, SqlType::TEXT)),
                        Err(e) => format!("E{} {e}", e.code().as_str()),
                    }
                }
                Err(e) => format!("E{} {e}", e.code().as_str()),
            }
        };
        if got != expected {
            wrong.push(format!("{line}   but got {got}"));
        }
    }
    wrong
}
