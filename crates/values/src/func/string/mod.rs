//! Strings: lengths, parts, positions, padding, case. Positions count characters from 1.

pub(super) mod bytes;
pub(super) mod charset;
pub mod collate;
pub(super) mod format;
pub mod length;
pub mod like;
pub(super) mod unicode;

use super::number::{int, integer_out_of_range};
use super::{EvalContext, EvalResult, Function, Operator};
use crate::io::to_text;
use length::{buffer_fits, fits};
use memchr::memmem;
use throng_types::base::{lower_case, lower_letter};
use throng_types::error::state;
use throng_types::{Datum, Error, Result, SqlType, Text, oid::*};

/// The argument's characters.
#[inline]
pub fn text(value: &Datum) -> &str {
    match value {
        Datum::Text(s) => s,
        _ => unreachable!("not a string: {value:?}"),
    }
}
/// A value as its type prints it.
pub fn printed(ctx: &EvalContext<'_>, value: &Datum) -> String {
    to_text(ctx, value, SqlType::plain(value.natural_type()))
}

#[cold]
pub fn negative_length() -> Error {
    Error::new(
        state::SUBSTRING_ERROR,
        "negative substring length not allowed",
    )
}

/// Where the character so numbered (from 0) starts; the string's end beyond it.
fn offset(s: &str, characters: i64) -> usize {
    let Ok(n) = usize::try_from(characters) else {
        return 0;
    };
    if s.is_ascii() {
        return n.min(s.len());
    }
    s.char_indices().nth(n).map_or(s.len(), |(i, _)| i)
}

/// From `start` (1 is the first) so many units, clipped to what is there: as offsets from 0, the
/// end open where None.
pub fn clipped(start: i64, len: Option<i64>) -> Result<(i64, Option<i64>)> {
    let end = match len {
        Some(len) if len < 0 => return Err(negative_length()),
        Some(len) => Some((start + len - 1).max(0)),
        None => None,
    };
    Ok(((start - 1).max(0), end))
}
fn slice(s: &str, start: i64, len: Option<i64>) -> Result<&str> {
    let (from, to) = clipped(start, len)?;
    let tail = &s[offset(s, from)..];
    Ok(match to {
        Some(to) => &tail[..offset(tail, (to - from).max(0))],
        None => tail,
    })
}
fn text_substr(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(slice(text(&args[0]), int(&args[1]), args.get(2).map(int))?.into())
}

fn textcat(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = (text(&args[0]), text(&args[1]));
    fits(a.len() + b.len())?;
    let mut joined = String::with_capacity(a.len() + b.len());
    joined.push_str(a);
    joined.push_str(b);
    Ok(joined.into())
}
/// A value as `::text` makes it: a boolean is spelled out.
fn cast_to_text(ctx: &EvalContext<'_>, value: &Datum) -> String {
    match value {
        Datum::Bool(v) => v.to_string(),
        value => printed(ctx, value),
    }
}
fn textanycat(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((text(&args[0]).to_string() + &cast_to_text(ctx, &args[1])).into())
}
fn anytextcat(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((cast_to_text(ctx, &args[0]) + text(&args[1])).into())
}
fn concat(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let shown = args
        .iter()
        .filter(|a| !a.is_null())
        .map(|a| printed(ctx, a));
    Ok(shown.collect::<String>().into())
}
fn concat_ws(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let shown: Vec<String> = args[1..]
        .iter()
        .filter(|a| !a.is_null())
        .map(|a| printed(ctx, a))
        .collect();
    let separator = text(&args[0]);
    let between = separator.len().saturating_mul(shown.len());
    buffer_fits(
        shown
            .iter()
            .map(String::len)
            .sum::<usize>()
            .saturating_add(between),
    )?;
    Ok(shown.join(separator).into())
}

fn length(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((text(&args[0]).chars().count() as i32).into())
}
/// Trailing blanks of `char(n)` do not count.
fn padded_length(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((text(&args[0]).trim_end_matches(' ').chars().count() as i32).into())
}
fn octet_length(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((text(&args[0]).len() as i32).into())
}
fn bit_length(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((text(&args[0]).len() as i32 * 8).into())
}

/// As [`lower_letter`], the other way.
fn upper_char(c: char) -> char {
    let mut counterparts = c.to_uppercase();
    match (counterparts.next(), counterparts.next(), c) {
        (Some(one), None, _) => one,
        // Greek letters with an iota below, whose full mapping writes it behind.
        (.., '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}') => {
            char::from_u32(c as u32 + 8).unwrap_or(c)
        }
        (.., '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}') => char::from_u32(c as u32 + 9).unwrap_or(c),
        _ => c,
    }
}
fn lower(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(lower_case(text(&args[0])).into())
}
fn upper(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let s = text(&args[0]);
    if s.is_ascii() {
        return Ok(s.to_ascii_uppercase().into());
    }
    Ok(s.chars().map(upper_char).collect::<String>().into())
}
fn initcap(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut in_word = false;
    let case = |c: char| {
        let cased = match in_word {
            true => lower_letter(c),
            false => upper_char(c),
        };
        in_word = c.is_alphanumeric();
        cased
    };
    Ok(text(&args[0]).chars().map(case).collect::<String>().into())
}

fn position(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let s = text(&args[0]);
    let found = memmem::find(s.as_bytes(), text(&args[1]).as_bytes());
    Ok(found
        .map_or(0, |at| s[..at].chars().count() as i32 + 1)
        .into())
}
fn starts_with(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(text(&args[0]).starts_with(text(&args[1])).into())
}

/// Characters to trim: blanks unless told.
fn trim_set(args: &[Datum]) -> impl Fn(char) -> bool + '_ {
    let set = args.get(1).map_or(" ", text);
    move |c| set.contains(c)
}
fn btrim(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(text(&args[0]).trim_matches(trim_set(args)).into())
}
fn ltrim(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(text(&args[0]).trim_start_matches(trim_set(args)).into())
}
fn rtrim(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(text(&args[0]).trim_end_matches(trim_set(args)).into())
}

/// The string cut to the length wanted, and the padding it lacks.
fn padding(args: &[Datum]) -> Result<(&str, String)> {
    let len = int(&args[1]).max(0);
    // PostgreSQL asks for four bytes a character.
    fits(len as usize * 4)?;
    let s = text(&args[0]);
    let cut = &s[..offset(s, len)];
    let missing = len as usize - cut.chars().count();
    let fill = args.get(2).map_or(" ", text);
    let each = fill.chars().count();
    if each == 0 {
        return Ok((cut, String::new()));
    }
    let mut pad = fill.repeat(missing / each);
    pad.push_str(&fill[..offset(fill, (missing % each) as i64)]);
    Ok((cut, pad))
}
fn lpad(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (cut, pad) = padding(args)?;
    Ok((pad + cut).into())
}
fn rpad(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (cut, pad) = padding(args)?;
    Ok((cut.to_string() + &pad).into())
}

fn left(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (s, n) = (text(&args[0]), int(&args[1]));
    let n = if n < 0 {
        s.chars().count() as i64 + n
    } else {
        n
    };
    Ok(s[..offset(s, n)].into())
}
fn right(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (s, n) = (text(&args[0]), int(&args[1]));
    let skipped = if n == i64::from(i32::MIN) {
        // It has no counterpart: PostgreSQL skips nothing.
        0
    } else if n < 0 {
        -n
    } else {
        (s.chars().count() as i64 - n).max(0)
    };
    Ok(s[offset(s, skipped)..].into())
}

fn replace(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (s, from) = (text(&args[0]), text(&args[1]));
    if from.is_empty() || !s.contains(from) {
        return Ok(args[0].clone());
    }
    let to = text(&args[2]);
    if to.len() > from.len() {
        let more = (to.len() - from.len()).saturating_mul(s.matches(from).count());
        buffer_fits(s.len().saturating_add(more))?;
    }
    Ok(s.replace(from, to).into())
}
fn translate(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (from, to) = (text(&args[1]), text(&args[2]));
    let map = |c: char| match from.chars().position(|f| f == c) {
        None => Some(c),
        Some(i) => to.chars().nth(i),
    };
    Ok(text(&args[0])
        .chars()
        .filter_map(map)
        .collect::<String>()
        .into())
}
fn split_part(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (s, separator, n) = (text(&args[0]), text(&args[1]), int(&args[2]));
    if n == 0 {
        let message = "field position must not be zero";
        return Err(Error::new(state::INVALID_PARAMETER_VALUE, message).into());
    }
    let index = n.unsigned_abs() as usize - 1;
    let part = if separator.is_empty() {
        (index == 0).then_some(s)
    } else if n > 0 {
        s.split(separator).nth(index)
    } else {
        // Separators that overlap are found from the left, whichever end is counted from.
        let parts = s.split(separator).count();
        let from_left = parts.checked_sub(index + 1);
        from_left.and_then(|at| s.split(separator).nth(at))
    };
    Ok(part.unwrap_or("").into())
}
fn repeat(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (s, n) = (text(&args[0]), int(&args[1]).max(0));
    fits((s.len() as u64).saturating_mul(n as u64).saturating_add(4) as usize)?;
    Ok(s.repeat(n as usize).into())
}
fn reverse(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(text(&args[0]).chars().rev().collect::<String>().into())
}
fn overlay(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (s, new, start) = (text(&args[0]), text(&args[1]), int(&args[2]));
    let len = args.get(3).map_or_else(|| new.chars().count() as i64, int);
    if start <= 0 {
        return Err(negative_length().into());
    }
    let after = i64::from(i32::try_from(start + len).map_err(|_| integer_out_of_range())?);
    let before = slice(s, 1, Some(start - 1))?;
    Ok([before, new, slice(s, after, None)?].concat().into())
}

fn ascii(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(text(&args[0])
        .chars()
        .next()
        .map_or(0, |c| u32::from(c) as i32)
        .into())
}
fn chr(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let code = int(&args[0]);
    let limit = |message: String| Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message).into());
    match code {
        ..0 => {
            let message = "character number must be positive";
            Err(Error::new(state::INVALID_PARAMETER_VALUE, message).into())
        }
        0 => limit("null character not permitted".into()),
        0x11_0000.. => limit(format!(
            "requested character too large for encoding: {code}"
        )),
        _ => match char::from_u32(code as u32) {
            Some(c) => Ok(Datum::Text(Text::from_iter([c]))),
            None => limit(format!(
                "requested character not valid for encoding: {code}"
            )),
        },
    }
}

/// The digits of a number in two's complement of its own width.
macro_rules! digits {
    ($($name:ident: $format:literal;)*) => { $(
        fn $name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            Ok(match args[0] {
                Datum::Int4(v) => format!($format, v),
                ref wide => format!($format, int(wide)),
            }
            .into())
        }
    )* };
}
digits! {
    to_hex: "{:x}";
    to_bin: "{:b}";
    to_oct: "{:o}";
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(1317, "length", &[TEXT], INT4, length),
    Function::new(1257, "textlen", &[TEXT], INT4, length),
    Function::new(1318, "length", &[BPCHAR], INT4, padded_length),
    Function::new(1372, "char_length", &[BPCHAR], INT4, padded_length),
    Function::new(1381, "char_length", &[TEXT], INT4, length),
    Function::new(1367, "character_length", &[BPCHAR], INT4, padded_length),
    Function::new(1369, "character_length", &[TEXT], INT4, length),
    Function::new(1374, "octet_length", &[TEXT], INT4, octet_length),
    Function::new(1375, "octet_length", &[BPCHAR], INT4, octet_length),
    Function::new(1811, "bit_length", &[TEXT], INT4, bit_length),
    Function::new(870, "lower", &[TEXT], TEXT, lower),
    // Under a locale of the C library's folding is lowering.
    Function::new(6412, "casefold", &[TEXT], TEXT, lower),
    Function::new(871, "upper", &[TEXT], TEXT, upper),
    Function::new(872, "initcap", &[TEXT], TEXT, initcap),
    Function::new(877, "substr", &[TEXT, INT4, INT4], TEXT, text_substr),
    Function::new(883, "substr", &[TEXT, INT4], TEXT, text_substr),
    Function::new(936, "substring", &[TEXT, INT4, INT4], TEXT, text_substr),
    Function::new(937, "substring", &[TEXT, INT4], TEXT, text_substr),
    Function::new(849, "position", &[TEXT, TEXT], INT4, position),
    Function::new(868, "strpos", &[TEXT, TEXT], INT4, position),
    Function::new(884, "btrim", &[TEXT, TEXT], TEXT, btrim),
    Function::new(885, "btrim", &[TEXT], TEXT, btrim),
    Function::new(875, "ltrim", &[TEXT, TEXT], TEXT, ltrim),
    Function::new(881, "ltrim", &[TEXT], TEXT, ltrim),
    Function::new(876, "rtrim", &[TEXT, TEXT], TEXT, rtrim),
    Function::new(882, "rtrim", &[TEXT], TEXT, rtrim),
    Function::new(873, "lpad", &[TEXT, INT4, TEXT], TEXT, lpad),
    Function::new(879, "lpad", &[TEXT, INT4], TEXT, lpad),
    Function::new(874, "rpad", &[TEXT, INT4, TEXT], TEXT, rpad),
    Function::new(880, "rpad", &[TEXT, INT4], TEXT, rpad),
    Function::new(2087, "replace", &[TEXT, TEXT, TEXT], TEXT, replace),
    Function::new(878, "translate", &[TEXT, TEXT, TEXT], TEXT, translate),
    Function::new(2088, "split_part", &[TEXT, TEXT, INT4], TEXT, split_part),
    Function::new(3060, "left", &[TEXT, INT4], TEXT, left),
    Function::new(3061, "right", &[TEXT, INT4], TEXT, right),
    Function::new(1622, "repeat", &[TEXT, INT4], TEXT, repeat),
    Function::new(3062, "reverse", &[TEXT], TEXT, reverse),
    Function::new(3058, "concat", &[ANY], TEXT, concat)
        .stable()
        .lenient()
        .variadic(ANY),
    Function::new(3059, "concat_ws", &[TEXT, ANY], TEXT, concat_ws)
        .stable()
        .lenient()
        .variadic(ANY),
    Function::new(1620, "ascii", &[TEXT], INT4, ascii),
    Function::new(1621, "chr", &[INT4], TEXT, chr),
    Function::new(2089, "to_hex", &[INT4], TEXT, to_hex),
    Function::new(2090, "to_hex", &[INT8], TEXT, to_hex),
    Function::new(6330, "to_bin", &[INT4], TEXT, to_bin),
    Function::new(6331, "to_bin", &[INT8], TEXT, to_bin),
    Function::new(6332, "to_oct", &[INT4], TEXT, to_oct),
    Function::new(6333, "to_oct", &[INT8], TEXT, to_oct),
    Function::new(3696, "starts_with", &[TEXT, TEXT], BOOL, starts_with),
    Function::new(1404, "overlay", &[TEXT, TEXT, INT4, INT4], TEXT, overlay),
    Function::new(1405, "overlay", &[TEXT, TEXT, INT4], TEXT, overlay),
    Function::new(1258, "textcat", &[TEXT, TEXT], TEXT, textcat),
];

pub static OPERATORS: &[Operator] = &[
    Operator::new(654, "||", TEXT, TEXT, TEXT, (1258, "textcat"), textcat),
    Operator::new(
        2779,
        "||",
        TEXT,
        ANYNONARRAY,
        TEXT,
        (2003, "textanycat"),
        textanycat,
    )
    .stable(),
    Operator::new(
        2780,
        "||",
        ANYNONARRAY,
        TEXT,
        TEXT,
        (2004, "anytextcat"),
        anytextcat,
    )
    .stable(),
    Operator::new(
        3877,
        "^@",
        TEXT,
        TEXT,
        BOOL,
        (3696, "starts_with"),
        starts_with,
    ),
];
