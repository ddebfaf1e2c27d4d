//! `citext`: text that is compared, sought and cut without regard to case.

use std::cmp::Ordering;

use super::{Extension, ExtensionType, Native, operator, rows, scalar};
use crate::func::aggregate::empty;
use crate::func::aggregate::other::{max_combine, max_step, min_combine, min_step, value_finish};
use crate::func::aggregate::table::{aggregates, undo};
use crate::func::compare::compare;
use crate::func::{
    AggKind, Aggregate, Body, Cast, CastContext, EvalContext, EvalFn, EvalResult, EvalStop,
    Operator, SetIterator, Strategy, functions_named, operators_named,
};
use throng_types::base::lower_case;
use throng_types::sqltype::made::CITEXT;
use throng_types::{Datum, Error, Oid, Result, oid::*};

pub(super) static EXTENSION: Extension = Extension {
    name: "citext",
    version: "1.8",
    comment: "data type for case-insensitive character strings",
    functions: FUNCTIONS,
    types: &[ExtensionType {
        oid: CITEXT,
        name: "citext",
    }],
    operators: OPERATORS,
    casts: CASTS,
    aggregates: AGGREGATES,
    ..Extension::PLAIN
};

const NUMBER: u32 = 0;

const fn compared(
    number: u32,
    name: &'static str,
    code: &'static str,
    related: (u32, u32),
    strategy: Strategy,
    eval: EvalFn,
) -> Operator {
    let types = (CITEXT, CITEXT, BOOL);
    operator((NUMBER, number), name, types, code, related, eval).orders(strategy)
}

const fn matched(
    number: u32,
    name: &'static str,
    right: Oid,
    code: &'static str,
    negator: u32,
    eval: EvalFn,
) -> Operator {
    let types = (CITEXT, right, BOOL);
    operator((NUMBER, number), name, types, code, (0, negator), eval)
}

const fn by_bytes(
    number: u32,
    name: &'static str,
    code: &'static str,
    related: (u32, u32),
    eval: EvalFn,
) -> Operator {
    let types = (CITEXT, CITEXT, BOOL);
    operator((NUMBER, number), name, types, code, related, eval)
}

static OPERATORS: &[Operator] = &[
    operator(
        (NUMBER, 1),
        "<>",
        (CITEXT, CITEXT, BOOL),
        "citext_ne",
        (1, 2),
        ne,
    ),
    compared(2, "=", "citext_eq", (2, 1), Strategy::Equal, eq),
    compared(3, ">", "citext_gt", (5, 6), Strategy::Greater, gt),
    compared(4, ">=", "citext_ge", (6, 5), Strategy::GreaterEqual, ge),
    compared(5, "<", "citext_lt", (3, 4), Strategy::Less, lt),
    compared(6, "<=", "citext_le", (4, 3), Strategy::LessEqual, le),
    matched(7, "!~", CITEXT, "texticregexne", 8, not_regex),
    matched(8, "~", CITEXT, "texticregexeq", 7, regex),
    matched(9, "!~*", CITEXT, "texticregexne", 10, not_regex),
    matched(10, "~*", CITEXT, "texticregexeq", 9, regex),
    matched(11, "!~~", CITEXT, "texticnlike", 12, not_like),
    matched(12, "~~", CITEXT, "texticlike", 11, like),
    matched(13, "!~~*", CITEXT, "texticnlike", 14, not_like),
    matched(14, "~~*", CITEXT, "texticlike", 13, like),
    matched(15, "!~", TEXT, "texticregexne", 16, not_regex),
    matched(16, "~", TEXT, "texticregexeq", 15, regex),
    matched(17, "!~*", TEXT, "texticregexne", 18, not_regex),
    matched(18, "~*", TEXT, "texticregexeq", 17, regex),
    matched(19, "!~~", TEXT, "texticnlike", 20, not_like),
    matched(20, "~~", TEXT, "texticlike", 19, like),
    matched(21, "!~~*", TEXT, "texticnlike", 22, not_like),
    matched(22, "~~*", TEXT, "texticlike", 21, like),
    by_bytes(23, "~>~", "citext_pattern_gt", (25, 26), gt),
    by_bytes(24, "~>=~", "citext_pattern_ge", (26, 25), ge),
    by_bytes(25, "~<~", "citext_pattern_lt", (23, 24), lt),
    by_bytes(26, "~<=~", "citext_pattern_le", (24, 23), le),
];

const CASTS: &[Cast] = &[
    Cast::by(CITEXT, TEXT, CastContext::Implicit, 0, to_text),
    Cast::by(CITEXT, VARCHAR, CastContext::Implicit, 0, to_text),
    Cast::by(CITEXT, BPCHAR, CastContext::Assignment, 0, to_text),
    Cast::by(TEXT, CITEXT, CastContext::Assignment, 0, from_text),
    Cast::by(VARCHAR, CITEXT, CastContext::Assignment, 0, from_text),
    Cast::by(BPCHAR, CITEXT, CastContext::Assignment, 0, from_padded),
    Cast::by(BOOL, CITEXT, CastContext::Assignment, 0, from_bool),
];

aggregates! {
    1_073_676_488 max(CITEXT) CITEXT empty max_step max_combine value_finish;
    1_073_676_489 min(CITEXT) CITEXT empty min_step min_combine value_finish;
}

const FUNCTIONS: &[Native] = &[
    scalar(
        "citext(character) returns citext immutable strict",
        from_padded,
    ),
    scalar("citext(boolean) returns citext immutable strict", from_bool),
    scalar(
        "citext_eq(citext, citext) returns boolean immutable strict",
        eq,
    ),
    scalar(
        "citext_ne(citext, citext) returns boolean immutable strict",
        ne,
    ),
    scalar(
        "citext_lt(citext, citext) returns boolean immutable strict",
        lt,
    ),
    scalar(
        "citext_le(citext, citext) returns boolean immutable strict",
        le,
    ),
    scalar(
        "citext_gt(citext, citext) returns boolean immutable strict",
        gt,
    ),
    scalar(
        "citext_ge(citext, citext) returns boolean immutable strict",
        ge,
    ),
    scalar(
        "citext_cmp(citext, citext) returns integer immutable strict",
        cmp,
    ),
    scalar("citext_hash(citext) returns integer immutable strict", hash),
    scalar(
        "citext_hash_extended(citext, bigint) returns bigint immutable strict",
        hash_extended,
    ),
    scalar(
        "citext_smaller(citext, citext) returns citext immutable strict",
        smaller,
    ),
    scalar(
        "citext_larger(citext, citext) returns citext immutable strict",
        larger,
    ),
    scalar(
        "texticlike(citext, citext) returns boolean immutable strict",
        like,
    ),
    scalar(
        "texticnlike(citext, citext) returns boolean immutable strict",
        not_like,
    ),
    scalar(
        "texticregexeq(citext, citext) returns boolean immutable strict",
        regex,
    ),
    scalar(
        "texticregexne(citext, citext) returns boolean immutable strict",
        not_regex,
    ),
    scalar(
        "texticlike(citext, text) returns boolean immutable strict",
        like,
    ),
    scalar(
        "texticnlike(citext, text) returns boolean immutable strict",
        not_like,
    ),
    scalar(
        "texticregexeq(citext, text) returns boolean immutable strict",
        regex,
    ),
    scalar(
        "texticregexne(citext, text) returns boolean immutable strict",
        not_regex,
    ),
    scalar(
        "regexp_match(string citext, pattern citext) returns text[] immutable strict cost 100",
        |ctx, args| with_flags(ctx, "regexp_match", args, 2),
    ),
    scalar(
        "regexp_match(string citext, pattern citext, flags text) returns text[] immutable strict \
         cost 100",
        |ctx, args| with_flags(ctx, "regexp_match", args, 2),
    ),
    rows(
        "regexp_matches(string citext, pattern citext) returns setof text[] immutable strict \
         cost 100 rows 1",
        |ctx, args| rows_with_flags(ctx, "regexp_matches", args),
    ),
    rows(
        "regexp_matches(string citext, pattern citext, flags text) returns setof text[] \
         immutable strict cost 100 rows 10",
        |ctx, args| rows_with_flags(ctx, "regexp_matches", args),
    ),
    scalar(
        "regexp_replace(string citext, pattern citext, replacement text) returns text immutable \
         strict cost 100",
        |ctx, args| with_flags(ctx, "regexp_replace", args, 3),
    ),
    scalar(
        "regexp_replace(string citext, pattern citext, replacement text, flags text) returns text \
         immutable strict cost 100",
        |ctx, args| with_flags(ctx, "regexp_replace", args, 3),
    ),
    scalar(
        "regexp_split_to_array(string citext, pattern citext) returns text[] immutable strict \
         cost 100",
        |ctx, args| with_flags(ctx, "regexp_split_to_array", args, 2),
    ),
    scalar(
        "regexp_split_to_array(string citext, pattern citext, flags text) returns text[] \
         immutable strict cost 100",
        |ctx, args| with_flags(ctx, "regexp_split_to_array", args, 2),
    ),
    rows(
        "regexp_split_to_table(string citext, pattern citext) returns setof text immutable strict \
         cost 100",
        |ctx, args| rows_with_flags(ctx, "regexp_split_to_table", args),
    ),
    rows(
        "regexp_split_to_table(string citext, pattern citext, flags text) returns setof text \
         immutable strict cost 100",
        |ctx, args| rows_with_flags(ctx, "regexp_split_to_table", args),
    ),
    scalar(
        "strpos(citext, citext) returns integer immutable strict cost 100",
        strpos,
    ),
    scalar(
        "replace(citext, citext, citext) returns text immutable strict cost 100",
        replace,
    ),
    scalar(
        "split_part(citext, citext, integer) returns text immutable strict cost 100",
        split_part,
    ),
    scalar(
        "translate(citext, citext, text) returns text immutable strict cost 100",
        translate,
    ),
    scalar(
        "citext_pattern_lt(citext, citext) returns boolean immutable strict",
        lt,
    ),
    scalar(
        "citext_pattern_le(citext, citext) returns boolean immutable strict",
        le,
    ),
    scalar(
        "citext_pattern_gt(citext, citext) returns boolean immutable strict",
        gt,
    ),
    scalar(
        "citext_pattern_ge(citext, citext) returns boolean immutable strict",
        ge,
    ),
    scalar(
        "citext_pattern_cmp(citext, citext) returns integer immutable strict",
        cmp,
    ),
];

/// What a value says, be it `text` or `citext`.
fn said(value: &Datum) -> &str {
    match value {
        Datum::Base(value) => std::str::from_utf8(&value.bytes).unwrap_or_default(),
        Datum::Text(text) => text.as_str(),
        _ => "",
    }
}

fn citext(text: &str) -> Datum {
    Datum::base(CITEXT, text.as_bytes())
}

fn to_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(said(&args[0]).into())
}
fn from_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(citext(said(&args[0])))
}
fn from_padded(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(citext(said(&args[0]).trim_end_matches(' ')))
}
fn from_bool(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(citext(match args[0] {
        Datum::Bool(true) => "true",
        _ => "false",
    }))
}

fn order(args: &[Datum]) -> Ordering {
    compare(&args[0], &args[1])
}
fn eq(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(order(args).is_eq().into())
}
fn ne(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(order(args).is_ne().into())
}
fn lt(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(order(args).is_lt().into())
}
fn le(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(order(args).is_le().into())
}
fn gt(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(order(args).is_gt().into())
}
fn ge(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(order(args).is_ge().into())
}
fn cmp(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((order(args) as i32).into())
}
fn smaller(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(args[usize::from(order(args).is_ge())].clone())
}
fn larger(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(args[usize::from(order(args).is_le())].clone())
}

/// Calls the built-in function of these types.
fn call(ctx: &EvalContext<'_>, name: &str, types: &[Oid], args: &[Datum]) -> EvalResult {
    let mut all = functions_named(name).iter();
    match all.find(|f| f.args == types) {
        Some(function) => function.call(ctx, args),
        None => Err(Error::internal(format!("{name} is not built in")).into()),
    }
}

fn hash(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    call(
        ctx,
        "hashtext",
        &[TEXT],
        &[lower_case(said(&args[0])).into()],
    )
}
fn hash_extended(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let text = lower_case(said(&args[0])).into();
    let args = [text, args[1].clone()];
    call(ctx, "hashtextextended", &[TEXT, INT8], &args)
}

/// Applies the built-in operator over texts.
fn apply(ctx: &EvalContext<'_>, name: &str, args: &[Datum]) -> EvalResult {
    let mut all = operators_named(name).iter();
    let texts = [said(&args[0]).into(), said(&args[1]).into()];
    match all.find(|o| (o.left, o.right) == (TEXT, TEXT)) {
        Some(operator) => operator.call(ctx, &texts),
        None => Err(Error::internal(format!("{name} is not built in")).into()),
    }
}

fn like(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    apply(ctx, "~~*", args)
}
fn not_like(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    apply(ctx, "!~~*", args)
}
fn regex(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    apply(ctx, "~*", args)
}
fn not_regex(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    apply(ctx, "!~*", args)
}

/// The arguments as texts, with flags behind the first `count` that leave case aside unless the
/// caller's own say otherwise.
fn flagged(args: &[Datum], count: usize) -> Vec<Datum> {
    let mut texts: Vec<Datum> = args[..count].iter().map(|a| said(a).into()).collect();
    let own = args.get(count).map_or("", said);
    texts.push(match own.contains('c') {
        true => own.into(),
        false => format!("{own}i").into(),
    });
    texts
}

fn with_flags(ctx: &EvalContext<'_>, name: &str, args: &[Datum], count: usize) -> EvalResult {
    call(ctx, name, &[TEXT; 4][..=count], &flagged(args, count))
}

fn rows_with_flags(
    ctx: &EvalContext<'_>,
    name: &str,
    args: &[Datum],
) -> Result<SetIterator, EvalStop> {
    let mut all = functions_named(name).iter();
    match all.find(|f| f.args == [TEXT; 3]).map(|f| f.body) {
        Some(Body::Set(begin)) => begin(ctx, &flagged(args, 2)),
        _ => Err(Error::internal(format!("{name} is not built in")).into()),
    }
}

fn strpos(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let texts = [&args[0], &args[1]].map(|arg| lower_case(said(arg)).into());
    call(ctx, "strpos", &[TEXT, TEXT], &texts)
}

/// A text as the pattern that it matches alone.
fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_' {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

fn replace(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let pattern = literal(said(&args[1]));
    let replacement = said(&args[2]).replace('\\', "\\\\");
    if pattern.is_empty() {
        return Ok(said(&args[0]).into());
    }
    let texts = [
        said(&args[0]).into(),
        pattern.into(),
        replacement.into(),
        "gi".into(),
    ];
    call(ctx, "regexp_replace", &[TEXT; 4], &texts)
}

fn split_part(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let pattern = literal(said(&args[1]));
    let texts = [said(&args[0]).into(), pattern.into(), "i".into()];
    let parts = call(ctx, "regexp_split_to_array", &[TEXT; 3], &texts)?;
    let (Datum::Array(parts), Datum::Int4(at)) = (parts, &args[2]) else {
        return Ok(Datum::Null);
    };
    let place = usize::try_from(*at).ok().and_then(|at| at.checked_sub(1));
    let part = place.and_then(|place| parts.items.get(place)).cloned();
    Ok(part.unwrap_or(Datum::Null))
}

fn translate(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let types = [TEXT; 3];
    let (from, to) = (said(&args[1]), args[2].clone());
    let small = [said(&args[0]).into(), lower_case(from).into(), to.clone()];
    let once = call(ctx, "translate", &types, &small)?;
    let large = from.to_uppercase();
    call(ctx, "translate", &types, &[once, large.into(), to])
}
