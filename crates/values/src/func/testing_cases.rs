//! Cases with PostgreSQL's answers.
//!
//! A case is a line of fields parted by tabs: `op` or `fn` or `cast`, the name (for a cast: the
//! target type), the argument types, the arguments as text, and the answer: `=text`, `NULL`, or `E`
//! with SQLSTATE and message. Answers were taken from PostgreSQL 18. For an aggregate (`agg`) every
//! argument is a row. A line `set`, a name and a value changes a format for the lines after it.

use super::aggregate::AggState;
use super::testing::{TestHost, with_context};
use super::*;
use crate::io::{
    ByteaOutput, DateStyle, FormatSettings, IntervalStyle, Zone, input_binary, input_text,
    output_binary, to_text, typmod,
};
use throng_types::sqltype::{type_by_name, type_name};
use throng_types::{Datum, Error, Oid, SqlType, oid};

/// The value of a call, its arguments given as text with their types; resolved as the binder would.
pub fn evaluate(
    ctx: &EvalContext<'_>,
    kind: &str,
    name: &str,
    types: &[SqlType],
    args: &[&str],
) -> Result<(Datum, SqlType), Error> {
    let mut values = Vec::new();
    for (i, text) in args.iter().enumerate() {
        let ty = if kind == "agg" { types[0] } else { types[i] };
        values.push(if *text == "NULL" {
            Datum::Null
        } else {
            input_text(ctx, text, ty)?
        });
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
            let value = resolved
                .operator
                .call(ctx, &values)
                .map_err(EvalStop::into_error)?;
            Ok((value, SqlType::plain(resolved.ret)))
        }
        "fn" => {
            let resolved = resolve_function(name, &oids)?;
            coerce(&mut values, &resolved.arg_types)?;
            let (Callee::Scalar(f), ret) = (resolved.callee, resolved.ret) else {
                panic!("{name} is not a scalar function");
            };
            Ok((
                f.call(ctx, &values).map_err(EvalStop::into_error)?,
                SqlType::plain(ret),
            ))
        }
        "agg" => {
            let resolved = resolve_function(name, &oids)?;
            let Callee::Aggregate(a) = resolved.callee else {
                panic!("{name} is no aggregate")
            };
            let whole = gather(ctx, a, &values)?;
            // Computed in two parts, an exact type gives the same.
            let exact = !matches!(oids[0], oid::FLOAT4 | oid::FLOAT8);
            if exact && name != "string_agg" {
                let (first, second) = values.split_at(values.len() / 2);
                let parts = |state: &mut AggState| -> Result<(), EvalStop> {
                    *state = step_all(ctx, a, first)?;
                    (a.combine)(ctx, state, step_all(ctx, a, second)?)
                };
                let mut state = (a.init)();
                parts(&mut state).map_err(EvalStop::into_error)?;
                let combined = (a.finish)(ctx, state).map_err(EvalStop::into_error)?;
                assert_eq!(combined, whole, "{name} in parts");
            }
            Ok((whole, SqlType::plain(resolved.ret)))
        }
        "cast" => {
            let to = type_by_name(name)
                .unwrap_or_else(|| panic!("no type {name}"))
                .oid;
            let cast = find_cast(oids[0], to, CastContext::Explicit)
                .unwrap_or_else(|| panic!("no cast from {} to {name}", oids[0]));
            let value = cast.apply(ctx, &values[0]).map_err(EvalStop::into_error)?;
            Ok((value, SqlType::plain(to)))
        }
        "bin" => {
            // Its binary form in hexadecimal, which must read back as the same value.
            let mut bytes = Vec::new();
            output_binary(ctx, &values[0], types[0], &mut bytes)?;
            let back = input_binary(ctx, &bytes, types[0])?;
            let shown = |d: &Datum| to_text(ctx, d, types[0]);
            assert_eq!(shown(&back), shown(&values[0]));
            let mut hex = Vec::new();
            crate::io::scalar::write_hex(&bytes, &mut hex);
            Ok((String::from_utf8(hex).expect("ASCII").into(), SqlType::TEXT))
        }
        "mod" | "store" => {
            let to = modified(name);
            let value = match find_cast(oids[0], to.oid, CastContext::Explicit) {
                Some(cast) => cast.apply(ctx, &values[0]).map_err(EvalStop::into_error)?,
                None => values[0].clone(),
            };
            Ok((
                typmod::apply(value, to, kind == "mod")?,
                SqlType::plain(to.oid),
            ))
        }
        _ => panic!("{kind} is no kind of case"),
    }
}

/// `numeric(5,2)`, `interval day to second(3)`.
fn modified(name: &str) -> SqlType {
    use throng_types::sqltype::interval_field::*;
    let (plain, numbers) = match name.split_once('(') {
        Some((plain, rest)) => (plain.trim(), rest.trim_end_matches(')')),
        None => (name, ""),
    };
    let numbers: Vec<i32> = numbers.split(',').filter_map(|n| n.parse().ok()).collect();
    if let Some(fields) = plain.strip_prefix("interval") {
        let all = [
            ("year", YEAR),
            ("month", MONTH),
            ("day", DAY),
            ("hour", HOUR),
            ("minute", MINUTE),
            ("second", SECOND),
        ];
        let at = |w: &str| all.iter().position(|(n, _)| *n == w).expect("a field");
        let range = match fields.trim().split_once(" to ") {
            _ if fields.is_empty() => FULL_RANGE,
            Some((from, to)) => all[at(from)..=at(to)].iter().fold(0, |r, (_, bit)| r | bit),
            None => all[at(fields.trim())].1,
        };
        let precision = numbers.first().copied().unwrap_or(FULL_PRECISION);
        return SqlType::new(oid::INTERVAL, SqlType::interval_modifier(range, precision));
    }
    let oid = type_by_name(plain)
        .unwrap_or_else(|| panic!("no type {plain}"))
        .oid;
    let typmod = match (oid, &numbers[..]) {
        (oid::NUMERIC, [p]) => SqlType::numeric_modifier(*p, 0),
        (oid::NUMERIC, [p, s]) => SqlType::numeric_modifier(*p, *s),
        (oid::VARCHAR | oid::BPCHAR, [n]) => SqlType::string_modifier(*n),
        (_, [n]) => *n,
        _ => -1,
    };
    SqlType::new(oid, typmod)
}

fn step_all(ctx: &EvalContext<'_>, a: &Aggregate, rows: &[Datum]) -> Result<AggState, EvalStop> {
    let mut state = (a.init)();
    for row in rows {
        (a.step)(ctx, &mut state, &[row.clone(), Datum::text(",")])?;
    }
    Ok(state)
}

fn gather(ctx: &EvalContext<'_>, a: &Aggregate, rows: &[Datum]) -> Result<Datum, Error> {
    let state = step_all(ctx, a, rows).map_err(EvalStop::into_error)?;
    (a.finish)(ctx, state).map_err(EvalStop::into_error)
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
        "DateStyle" => format.date_style = DateStyle::of(value),
        "extra_float_digits" => format.extra_float_digits = value.parse().expect("a number"),
        "bytea_output" => format.bytea_output = ByteaOutput::Escape,
        _ => panic!("{name} is no format"),
    }
}

/// Runs a file of cases about result types: `rop` and `rfn` with a name and argument types, `rct`
/// for the common type of the three (the last one first, as CASE takes its ELSE). Gives those whose
/// answer differs.
pub fn type_differences(cases: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in cases.lines().filter(|l| !l.is_empty()) {
        let fields: Vec<&str> = line.split('\t').collect();
        let named = |t: &str| type_by_name(t).unwrap_or_else(|| panic!("no type {t}")).oid;
        let types: Vec<Oid> = fields[2].split(',').map(named).collect();
        let found = match fields[0] {
            "rop" => {
                let left = (types.len() == 2).then(|| types[0]);
                resolve_operator(fields[1], left, types[types.len() - 1]).map(|r| r.ret)
            }
            "rfn" => resolve_function(fields[1], &types).map(|r| r.ret),
            "rct" => select_common_type(&[types[2], types[0], types[1]], fields[1]),
            other => panic!("{other} is no kind of case"),
        };
        let got = match found {
            Ok(ty) => format!("={}", type_name(ty)),
            Err(e) => format!("E{} {e}", e.code().as_str()),
        };
        if got != fields[3] {
            wrong.push(format!("{line}   but got {got}"));
        }
    }
    wrong
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
        let ctx = &EvalContext {
            host: &TestHost,
            format: &format,
        };
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

mod tests {
    use super::*;

    /// Every file of answers, by what it is about.
    #[test]
    fn answers_are_postgresqls() {
        let files = [
            include_str!("testdata/operators.tsv"),
            include_str!("testdata/functions.tsv"),
            include_str!("testdata/casts.tsv"),
            include_str!("testdata/numerics.tsv"),
            include_str!("testdata/floats.tsv"),
            include_str!("testdata/input.tsv"),
            include_str!("testdata/datetimes.tsv"),
            include_str!("testdata/intervals.tsv"),
            include_str!("testdata/aggregates.tsv"),
            include_str!("testdata/modifiers.tsv"),
            include_str!("testdata/binary.tsv"),
        ];
        let wrong: Vec<String> = files.iter().flat_map(|f| differences(f)).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn overloads_are_chosen_as_postgresql_does() {
        let wrong = type_differences(include_str!("testdata/types.tsv"));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn stored_strings_are_not_cut() {
        with_context(|ctx| {
            let store = |text| evaluate(ctx, "store", "varchar(5)", &[SqlType::TEXT], &[text]);
            assert_eq!(store("abc     ").unwrap().0, Datum::text("abc  "));
            let error = store("abcdef").unwrap_err();
            assert_eq!(error.code().as_str(), "22001");
            assert_eq!(
                error.message(),
                "value too long for type character varying(5)"
            );
            let store = |text| evaluate(ctx, "store", "bpchar(3)", &[SqlType::TEXT], &[text]);
            assert_eq!(store("a").unwrap().0, Datum::text("a  "));
            assert_eq!(
                store("abcd").unwrap_err().message(),
                "value too long for type character(3)"
            );
        });
    }

    #[test]
    fn oids_are_given_once() {
        let mut seen = std::collections::HashSet::new();
        for family in FAMILIES {
            for oid in family.functions.iter().map(|f| f.oid) {
                assert!(seen.insert(oid), "function {oid} is there twice");
            }
            for oid in family.aggregates.iter().map(|a| a.oid) {
                assert!(seen.insert(oid), "aggregate {oid} is there twice");
            }
        }
        let mut seen = std::collections::HashSet::new();
        for operator in FAMILIES.iter().flat_map(|f| f.operators) {
            assert!(
                seen.insert(operator.oid),
                "operator {} is there twice",
                operator.oid
            );
        }
        for operator in FAMILIES.iter().flat_map(|f| f.operators) {
            for related in [operator.commutator, operator.negator] {
                let known = related == Oid::NONE || operator_by_oid(related).is_some();
                assert!(known, "operator {} refers to {related}", operator.oid);
            }
        }
    }
}
