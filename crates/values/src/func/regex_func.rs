//! Functions and operators of regular expressions.
//!
//! Matches follow one another as PostgreSQL counts them: after an empty one the search goes on a
//! character further, and an empty match may stand right behind another match.

use super::number::int;
use super::string::length::{buffer_fits, fits, gather};
use super::string::like::bad_escape;
use super::string::text;
use super::{EvalContext, EvalResult, EvalStop, Function, Operator, SetIterator};
use crate::regex::{Match, Options, Regex, compile};
use throng_types::error::{SqlState, state};
use throng_types::{Array, Datum, Error, Result, oid::*};

const INVALID_USE_OF_ESCAPE: SqlState = SqlState::new("2200C");

#[cold]
fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

/// Option letters read, and whether `g` is among them.
fn parse_options(letters: &str) -> Result<(Options, bool)> {
    let (mut options, mut all) = (Options::default(), false);
    for letter in letters.chars() {
        if letter == 'g' {
            all = true;
        } else if !options.set(letter) {
            return Err(invalid(format!(
                "invalid regular expression option: \"{letter}\""
            )));
        }
    }
    Ok((options, all))
}

/// The expression of a function that does not take `g`.
fn single(function: &str, pattern: &str, letters: Option<&Datum>) -> Result<Regex> {
    let (options, all) = parse_options(letters.map_or("", text))?;
    if all {
        let error = invalid(format!(
            "{function}() does not support the \"global\" option"
        ));
        return Err(match function {
            "regexp_match" => error.hint("Use the regexp_matches function instead."),
            _ => error,
        });
    }
    compile(pattern, options)
}

/// An integer argument with its least value, 1 where it is not given.
fn parameter(name: &str, value: Option<&Datum>, least: i64, default: i64) -> Result<i64> {
    let value = value.map_or(default, int);
    if value < least {
        return Err(invalid(format!(
            "invalid value for parameter \"{name}\": {value}"
        )));
    }
    Ok(value)
}
/// The byte where the character so numbered (from 1) starts; None beyond the end.
fn start_byte(s: &str, start: i64) -> Option<usize> {
    s.char_indices()
        .map(|(i, _)| i)
        .chain([s.len()])
        .nth(start as usize - 1)
}

/// Every match from a byte on.
fn matches<'s>(
    regex: &'s Regex,
    s: &'s str,
    from: usize,
) -> impl Iterator<Item = Result<Match>> + 's {
    let mut next = Some(from);
    std::iter::from_fn(move || {
        let found = match regex.match_at(s, next?) {
            Ok(found) => found?,
            Err(error) => {
                next = None;
                return Some(Err(error));
            }
        };
        let end = found.end();
        next = match found.start() == end {
            false => Some(end),
            true => s[end..].chars().next().map(|c| end + c.len_utf8()),
        };
        Some(Ok(found))
    })
}

/// What a group of a match kept.
fn part<'s>(s: &'s str, found: &Match, group: usize) -> Option<&'s str> {
    found.get(group).map(|(start, end)| &s[start..end])
}

/// The groups of a match, or all of it where the expression has none.
fn groups(s: &str, found: &Match) -> Datum {
    let groups = usize::from(found.groups() > 1)..found.groups();
    let items = groups.map(|group| part(s, found, group).into()).collect();
    Datum::array(Array::from_items(TEXT, items))
}

macro_rules! tests {
    ($($name:ident: $ignore_case:literal $wanted:literal;)*) => { $(
        fn $name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            let options = Options { ignore_case: $ignore_case, ..Options::default() };
            let regex = compile(text(&args[1]), options)?;
            Ok((regex.is_match(text(&args[0]))? == $wanted).into())
        }
    )* };
}
tests! {
    textregexeq: false true;
    textregexne: false false;
    texticregexeq: true true;
    texticregexne: true false;
}

fn regexp_like(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let regex = single("regexp_like", text(&args[1]), args.get(2))?;
    Ok(regex.is_match(text(&args[0]))?.into())
}
fn regexp_match(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let regex = single("regexp_match", text(&args[1]), args.get(2))?;
    let s = text(&args[0]);
    let found = regex.match_at(s, 0)?;
    Ok(found.map_or(Datum::Null, |found| groups(s, &found)))
}
fn regexp_matches(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let (options, all) = parse_options(args.get(2).map_or("", text))?;
    let regex = compile(text(&args[1]), options)?;
    let count = if all { usize::MAX } else { 1 };
    let s = text(&args[0]);
    let mut rows = Vec::new();
    for found in matches(&regex, s, 0).take(count) {
        gather(&mut rows, groups(s, &found?))?;
    }
    Ok(Box::new(rows.into_iter().map(Ok)))
}
/// `substring(text from pattern)`: the first group where there is one.
fn textregexsubstr(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let regex = compile(text(&args[1]), Options::default())?;
    let s = text(&args[0]);
    let found = regex.match_at(s, 0)?;
    let part = found.and_then(|f| part(s, &f, usize::from(f.groups() > 1)));
    Ok(part.into())
}
fn substring_similar(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let pattern = similar_to_escape(ctx, &args[1..])?;
    textregexsubstr(ctx, &[args[0].clone(), pattern])
}

fn regexp_count(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let start = parameter("start", args.get(2), 1, 1)?;
    let regex = single("regexp_count", text(&args[1]), args.get(3))?;
    let s = text(&args[0]);
    let mut count = 0i32;
    if let Some(from) = start_byte(s, start) {
        for found in matches(&regex, s, from) {
            found?;
            count += 1;
        }
    }
    Ok(count.into())
}

/// The n-th match of `(text, pattern, start, n)` and the number of the group wanted, as byte
/// offsets.
fn nth_match(
    function: &str,
    args: &[Datum],
    flags: Option<&Datum>,
    group: Option<&Datum>,
) -> Result<Option<(usize, usize)>> {
    let start = parameter("start", args.get(2), 1, 1)?;
    let n = parameter("n", args.get(3), 1, 1)?;
    let group = parameter("subexpr", group, 0, 0)?;
    let regex = single(function, text(&args[1]), flags)?;
    let s = text(&args[0]);
    let Some(from) = start_byte(s, start) else {
        return Ok(None);
    };
    let found = matches(&regex, s, from).nth(n as usize - 1).transpose()?;
    Ok(found.and_then(|f| f.get(group as usize)))
}
fn regexp_substr(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let found = nth_match("regexp_substr", args, args.get(4), args.get(5))?;
    Ok(found.map(|(start, end)| &text(&args[0])[start..end]).into())
}
fn regexp_instr(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let end_option = parameter("endoption", args.get(4), 0, 0)?;
    if end_option > 1 {
        let message = format!("invalid value for parameter \"endoption\": {end_option}");
        return Err(invalid(message).into());
    }
    let found = nth_match("regexp_instr", args, args.get(5), args.get(6))?;
    let at = found.map(|(start, end)| if end_option == 1 { end } else { start });
    Ok(at
        .map_or(0, |at| text(&args[0])[..at].chars().count() as i32 + 1)
        .into())
}

/// The parts between matches. Empty matches part characters, but not at either end nor behind
/// another match.
fn split(function: &str, args: &[Datum]) -> Result<Vec<Datum>> {
    let regex = single(function, text(&args[1]), args.get(2))?;
    let s = text(&args[0]);
    let (mut parts, mut from, mut last_end) = (Vec::new(), 0, 0);
    for found in matches(&regex, s, 0) {
        let found = found?;
        if found.start() < s.len() && found.end() > last_end {
            let part = &s[from..found.start()];
            fits(part.len())?;
            gather(&mut parts, Datum::text(part))?;
            from = found.end();
        }
        last_end = found.end();
    }
    fits(s.len() - from)?;
    gather(&mut parts, Datum::text(&s[from..]))?;
    Ok(parts)
}
fn regexp_split_to_array(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::array(Array::from_items(
        TEXT,
        split("regexp_split_to_array", args)?,
    )))
}
fn regexp_split_to_table(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    Ok(Box::new(
        split("regexp_split_to_table", args)?.into_iter().map(Ok),
    ))
}

/// Appends a replacement: `\1` to `\9` are groups, `\&` is the match, `\\` a backslash.
fn append_replacement(replacement: &str, s: &str, found: &Match, out: &mut String) {
    let mut rest = replacement.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let group = |i: usize| part(s, found, i).unwrap_or_default();
        match rest.next() {
            Some('&') => out.push_str(group(0)),
            Some(digit @ '1'..='9') => out.push_str(group(digit as usize - '0' as usize)),
            Some('\\') | None => out.push('\\'),
            Some(c) => out.extend(['\\', c]),
        }
    }
}
/// Replaces the n-th match, or all where `n` is 0.
fn replaced(s: &str, regex: &Regex, replacement: &str, start: i64, n: i64) -> Result<String> {
    let Some(from) = start_byte(s, start) else {
        return Ok(s.into());
    };
    let mut out = String::with_capacity(s.len());
    let mut copied = 0;
    for (i, found) in (1..).zip(matches(regex, s, from)) {
        let found = found?;
        if n != 0 && i != n {
            continue;
        }
        out.push_str(&s[copied..found.start()]);
        append_replacement(replacement, s, &found, &mut out);
        buffer_fits(out.len())?;
        copied = found.end();
        if n != 0 {
            break;
        }
    }
    out.push_str(&s[copied..]);
    Ok(out)
}
fn regexp_replace(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (options, all) = parse_options(args.get(3).map_or("", text))?;
    let regex = compile(text(&args[1]), options)?;
    let n = i64::from(!all);
    Ok(replaced(text(&args[0]), &regex, text(&args[2]), 1, n)?.into())
}
fn regexp_replace_from(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let start = parameter("start", args.get(3), 1, 1)?;
    let n = parameter("n", args.get(4), 0, 1)?;
    let (options, all) = parse_options(args.get(5).map_or("", text))?;
    let n = if all && args.len() < 5 { 0 } else { n };
    let regex = compile(text(&args[1]), options)?;
    Ok(replaced(text(&args[0]), &regex, text(&args[2]), start, n)?.into())
}

/// A pattern of SIMILAR TO as a regular expression. Two escaped double quotes part off what
/// `substring` gives.
fn similar_pattern(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut out = String::from("^(?:");
    let (mut quotes, mut escaped) = (0, false);
    let mut bracket: Option<usize> = None;
    for c in pattern.chars() {
        if escaped {
            escaped = false;
            if c == '"' && bracket.is_none() {
                quotes += 1;
                out.push_str(match quotes {
                    1 => "){1,1}?(",
                    2 => "){1,1}(?:",
                    _ => {
                        return Err(Error::new(
                            INVALID_USE_OF_ESCAPE,
                            "SQL regular expression may not contain more than two escape-double-quote separators",
                        ));
                    }
                });
            } else {
                out.extend(['\\', c]);
            }
        } else if Some(c) == escape {
            escaped = true;
        } else if let Some(inside) = &mut bracket {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            // A bracket that comes first does not close.
            if c == ']' && *inside > 0 {
                bracket = None;
            } else if c != '^' || *inside > 0 {
                *inside += 1;
            }
        } else {
            match c {
                '[' => {
                    bracket = Some(0);
                    out.push(c);
                }
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => out.extend(['\\', c]),
                c => out.push(c),
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}
fn similar_to_escape(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let escape = match args.get(1) {
        None => Some('\\'),
        Some(escape) => {
            let mut characters = text(escape).chars();
            match (characters.next(), characters.next()) {
                (escape, None) => escape,
                _ => return Err(bad_escape().into()),
            }
        }
    };
    Ok(similar_pattern(text(&args[0]), escape)?.into())
}

/// The same of old: without a character to escape with it is the backslash.
fn similar_escape(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    match args {
        [Datum::Null, ..] => Ok(Datum::Null),
        [pattern, Datum::Null] => similar_to_escape(ctx, std::slice::from_ref(pattern)),
        args => similar_to_escape(ctx, args),
    }
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(1623, "similar_escape", &[TEXT, TEXT], TEXT, similar_escape).lenient(),
    Function::new(
        1986,
        "similar_to_escape",
        &[TEXT, TEXT],
        TEXT,
        similar_to_escape,
    ),
    Function::new(1987, "similar_to_escape", &[TEXT], TEXT, similar_to_escape),
    Function::new(
        2284,
        "regexp_replace",
        &[TEXT, TEXT, TEXT],
        TEXT,
        regexp_replace,
    ),
    Function::new(
        2285,
        "regexp_replace",
        &[TEXT, TEXT, TEXT, TEXT],
        TEXT,
        regexp_replace,
    ),
    Function::new(
        6251,
        "regexp_replace",
        &[TEXT, TEXT, TEXT, INT4, INT4, TEXT],
        TEXT,
        regexp_replace_from,
    ),
    Function::new(
        6252,
        "regexp_replace",
        &[TEXT, TEXT, TEXT, INT4, INT4],
        TEXT,
        regexp_replace_from,
    ),
    Function::new(
        6253,
        "regexp_replace",
        &[TEXT, TEXT, TEXT, INT4],
        TEXT,
        regexp_replace_from,
    ),
    Function::new(
        3396,
        "regexp_match",
        &[TEXT, TEXT],
        TEXT_ARRAY,
        regexp_match,
    ),
    Function::new(
        3397,
        "regexp_match",
        &[TEXT, TEXT, TEXT],
        TEXT_ARRAY,
        regexp_match,
    ),
    Function::set(
        2763,
        "regexp_matches",
        &[TEXT, TEXT],
        TEXT_ARRAY,
        regexp_matches,
    ),
    Function::set(
        2764,
        "regexp_matches",
        &[TEXT, TEXT, TEXT],
        TEXT_ARRAY,
        regexp_matches,
    ),
    Function::new(6263, "regexp_like", &[TEXT, TEXT], BOOL, regexp_like),
    Function::new(6264, "regexp_like", &[TEXT, TEXT, TEXT], BOOL, regexp_like),
    Function::new(6254, "regexp_count", &[TEXT, TEXT], INT4, regexp_count),
    Function::new(
        6255,
        "regexp_count",
        &[TEXT, TEXT, INT4],
        INT4,
        regexp_count,
    ),
    Function::new(
        6256,
        "regexp_count",
        &[TEXT, TEXT, INT4, TEXT],
        INT4,
        regexp_count,
    ),
    Function::new(6265, "regexp_substr", &[TEXT, TEXT], TEXT, regexp_substr),
    Function::new(
        6266,
        "regexp_substr",
        &[TEXT, TEXT, INT4],
        TEXT,
        regexp_substr,
    ),
    Function::new(
        6267,
        "regexp_substr",
        &[TEXT, TEXT, INT4, INT4],
        TEXT,
        regexp_substr,
    ),
    Function::new(
        6268,
        "regexp_substr",
        &[TEXT, TEXT, INT4, INT4, TEXT],
        TEXT,
        regexp_substr,
    ),
    Function::new(
        6269,
        "regexp_substr",
        &[TEXT, TEXT, INT4, INT4, TEXT, INT4],
        TEXT,
        regexp_substr,
    ),
    Function::new(6257, "regexp_instr", &[TEXT, TEXT], INT4, regexp_instr),
    Function::new(
        6258,
        "regexp_instr",
        &[TEXT, TEXT, INT4],
        INT4,
        regexp_instr,
    ),
    Function::new(
        6259,
        "regexp_instr",
        &[TEXT, TEXT, INT4, INT4],
        INT4,
        regexp_instr,
    ),
    Function::new(
        6260,
        "regexp_instr",
        &[TEXT, TEXT, INT4, INT4, INT4],
        INT4,
        regexp_instr,
    ),
    Function::new(
        6261,
        "regexp_instr",
        &[TEXT, TEXT, INT4, INT4, INT4, TEXT],
        INT4,
        regexp_instr,
    ),
    Function::new(
        6262,
        "regexp_instr",
        &[TEXT, TEXT, INT4, INT4, INT4, TEXT, INT4],
        INT4,
        regexp_instr,
    ),
    Function::new(
        2767,
        "regexp_split_to_array",
        &[TEXT, TEXT],
        TEXT_ARRAY,
        regexp_split_to_array,
    ),
    Function::new(
        2768,
        "regexp_split_to_array",
        &[TEXT, TEXT, TEXT],
        TEXT_ARRAY,
        regexp_split_to_array,
    ),
    Function::set(
        2765,
        "regexp_split_to_table",
        &[TEXT, TEXT],
        TEXT,
        regexp_split_to_table,
    ),
    Function::set(
        2766,
        "regexp_split_to_table",
        &[TEXT, TEXT, TEXT],
        TEXT,
        regexp_split_to_table,
    ),
    Function::new(1254, "textregexeq", &[TEXT, TEXT], BOOL, textregexeq),
    Function::new(1256, "textregexne", &[TEXT, TEXT], BOOL, textregexne),
    Function::new(1238, "texticregexeq", &[TEXT, TEXT], BOOL, texticregexeq),
    Function::new(1239, "texticregexne", &[TEXT, TEXT], BOOL, texticregexne),
    Function::new(2073, "substring", &[TEXT, TEXT], TEXT, textregexsubstr),
    Function::new(
        2074,
        "substring",
        &[TEXT, TEXT, TEXT],
        TEXT,
        substring_similar,
    ),
];

pub static OPERATORS: &[Operator] = &[
    Operator::new(
        640,
        "!~",
        NAME,
        TEXT,
        BOOL,
        (1252, "nameregexne"),
        textregexne,
    )
    .related(0, 639),
    Operator::new(
        642,
        "!~",
        TEXT,
        TEXT,
        BOOL,
        (1256, "textregexne"),
        textregexne,
    )
    .related(0, 641),
    Operator::new(
        1056,
        "!~",
        BPCHAR,
        TEXT,
        BOOL,
        (1659, "bpcharregexne"),
        textregexne,
    )
    .related(0, 1055),
    Operator::new(
        1227,
        "!~*",
        NAME,
        TEXT,
        BOOL,
        (1241, "nameicregexne"),
        texticregexne,
    )
    .related(0, 1226),
    Operator::new(
        1229,
        "!~*",
        TEXT,
        TEXT,
        BOOL,
        (1239, "texticregexne"),
        texticregexne,
    )
    .related(0, 1228),
    Operator::new(
        1235,
        "!~*",
        BPCHAR,
        TEXT,
        BOOL,
        (1657, "bpcharicregexne"),
        texticregexne,
    )
    .related(0, 1234),
    Operator::new(639, "~", NAME, TEXT, BOOL, (79, "nameregexeq"), textregexeq).related(0, 640),
    Operator::new(
        641,
        "~",
        TEXT,
        TEXT,
        BOOL,
        (1254, "textregexeq"),
        textregexeq,
    )
    .related(0, 642),
    Operator::new(
        1055,
        "~",
        BPCHAR,
        TEXT,
        BOOL,
        (1658, "bpcharregexeq"),
        textregexeq,
    )
    .related(0, 1056),
    Operator::new(
        1226,
        "~*",
        NAME,
        TEXT,
        BOOL,
        (1240, "nameicregexeq"),
        texticregexeq,
    )
    .related(0, 1227),
    Operator::new(
        1228,
        "~*",
        TEXT,
        TEXT,
        BOOL,
        (1238, "texticregexeq"),
        texticregexeq,
    )
    .related(0, 1229),
    Operator::new(
        1234,
        "~*",
        BPCHAR,
        TEXT,
        BOOL,
        (1656, "bpcharicregexeq"),
        texticregexeq,
    )
    .related(0, 1235),
];
