//! Quoting, `format()`, Unicode escapes and identifiers taken apart.

use crate::func::string::length::buffer_fits;
use crate::func::string::{printed, text};
use crate::func::{EvalContext, EvalResult, Function};
use throng_types::error::state;
use throng_types::lexical::unicode::{Fault, unescape};
use throng_types::lexical::{quote_ident as quoted_ident, quote_literal as quoted_literal};
use throng_types::{Array, Datum, Error, Result, oid::*};

fn quote_ident(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(quoted_ident(text(&args[0])).into())
}
fn quote_literal(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(quoted_literal(&printed(ctx, &args[0])).into())
}
fn quote_nullable(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if args[0].is_null() {
        Ok("NULL".into())
    } else {
        quote_literal(ctx, args)
    }
}

#[cold]
fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}
#[cold]
fn bad_specifier(message: impl Into<String>) -> Error {
    invalid(message).hint("For a single \"%\" use \"%%\".")
}

/// The arguments of `format`, taken in turn or by number (from 1).
struct Arguments<'a> {
    args: &'a [Datum],
    /// The one used last.
    last: usize,
}

impl Arguments<'_> {
    fn take(&mut self, number: Option<usize>) -> Result<&Datum> {
        self.last = number.unwrap_or(self.last + 1);
        self.args
            .get(self.last - 1)
            .ok_or_else(|| invalid("too few arguments for format()"))
    }
}

/// What stands between `%` and the letter.
struct Specifier {
    argument: Option<usize>,
    width: i64,
    left: bool,
    kind: char,
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn digits(rest: &mut Rest<'_>) -> Result<Option<i64>> {
    let mut number: Option<i64> = None;
    while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
        let next = number.unwrap_or(0) * 10 + i64::from(digit);
        if next > i64::from(i32::MAX) {
            return Err(Error::new(
                state::NUMERIC_VALUE_OUT_OF_RANGE,
                "number is out of range",
            ));
        }
        number = Some(next);
        rest.next();
    }
    Ok(number)
}
fn argument_number(number: i64) -> Result<usize> {
    if number == 0 {
        let message = "format specifies argument 0, but arguments are numbered from 1";
        return Err(invalid(message));
    }
    Ok(number as usize)
}

/// `[n$][-][width | * | *n$]letter`
fn specifier(rest: &mut Rest<'_>, arguments: &mut Arguments<'_>) -> Result<Specifier> {
    let mut found = Specifier {
        argument: None,
        width: 0,
        left: false,
        kind: ' ',
    };
    let mut number = digits(rest)?;
    if let (Some(n), Some('$')) = (number, rest.peek()) {
        found.argument = Some(argument_number(n)?);
        rest.next();
        number = None;
    }
    if number.is_none() {
        while rest.next_if_eq(&'-').is_some() {
            found.left = true;
        }
        if rest.next_if_eq(&'*').is_some() {
            let from = digits(rest)?;
            let from = match (from, from.is_some() && rest.next_if_eq(&'$').is_some()) {
                (Some(n), true) => Some(argument_number(n)?),
                (Some(_), false) => {
                    return Err(invalid("width argument position must be ended by \"$\""));
                }
                _ => None,
            };
            let width = match arguments.take(from)? {
                Datum::Null => 0,
                Datum::Text(s) => crate::io::scalar::parse_int::<i32>(s, INT4)?.into(),
                value => value.as_i64().unwrap_or(0),
            };
            found.left |= width < 0;
            number = Some(width.abs());
        } else {
            number = digits(rest)?;
        }
    }
    found.width = number.unwrap_or(0);
    found.kind = rest
        .next()
        .ok_or_else(|| bad_specifier("unterminated format() type specifier"))?;
    Ok(found)
}

fn format(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Some(pattern) = args[0].as_str() else {
        return Ok(Datum::Null);
    };
    let mut arguments = Arguments {
        args: &args[1..],
        last: 0,
    };
    let mut out = String::new();
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' || rest.next_if_eq(&'%').is_some() {
            out.push(c);
            continue;
        }
        let found = specifier(&mut rest, &mut arguments)?;
        if !matches!(found.kind, 's' | 'I' | 'L') {
            let message = format!("unrecognized format() type specifier \"{}\"", found.kind);
            return Err(bad_specifier(message).into());
        }
        let value = arguments.take(found.argument)?;
        let shown = match (found.kind, value) {
            ('s', Datum::Null) => String::new(),
            ('s', value) => printed(ctx, value),
            ('I', Datum::Null) => {
                return Err(Error::new(
                    state::NULL_VALUE_NOT_ALLOWED,
                    "null values cannot be formatted as an SQL identifier",
                )
                .into());
            }
            ('I', value) => quoted_ident(&printed(ctx, value)),
            (_, Datum::Null) => "NULL".into(),
            (_, value) => quoted_literal(&printed(ctx, value)),
        };
        let missing = (found.width as usize).saturating_sub(shown.chars().count());
        buffer_fits(out.len() + shown.len() + missing)?;
        let pad = " ".repeat(missing);
        let (before, after) = if found.left {
            ("", pad.as_str())
        } else {
            (pad.as_str(), "")
        };
        out.extend([before, &shown, after]);
    }
    Ok(out.into())
}

/// Characters by their numbers: see [`unescape`].
fn unistr(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let shown = unescape(text(&args[0]), true).map_err(|(fault, _)| match fault {
        Fault::Escape => Error::new(state::SYNTAX_ERROR, "invalid Unicode escape")
            .hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX."),
        Fault::Pair => Error::new(state::SYNTAX_ERROR, "invalid Unicode surrogate pair"),
        Fault::Value(code) => invalid(format!("invalid Unicode code point: {code:04X}")),
    })?;
    Ok(shown.into())
}

/// The parts of a qualified name; `strict` lets nothing follow.
fn parse_ident(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let whole = text(&args[0]);
    let strict = args.get(1).is_none_or(Datum::is_true);
    let refuse = |detail: Option<&str>| {
        let error = invalid(format!("string is not a valid identifier: \"{whole}\""));
        detail.map_or(error.clone(), |d| error.detail(d))
    };
    let mut parts = Vec::new();
    let mut rest = whole.trim_start();
    let mut after_dot = false;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut left = quoted;
            loop {
                let Some(end) = left.find('"') else {
                    return Err(refuse(Some("String has unclosed double quotes.")).into());
                };
                name.push_str(&left[..end]);
                left = &left[end + 1..];
                match left.strip_prefix('"') {
                    Some(more) => {
                        name.push('"');
                        left = more;
                    }
                    None => break,
                }
            }
            if name.is_empty() {
                return Err(refuse(Some("Quoted identifier must not be empty.")).into());
            }
            parts.push(Datum::from(name));
            rest = left;
        } else {
            let start = |c: char| c == '_' || c.is_ascii_alphabetic() || !c.is_ascii();
            let more = |c: char| start(c) || c.is_ascii_digit() || c == '$';
            if !rest.starts_with(start) {
                let detail = match (after_dot, rest.starts_with('.')) {
                    (true, _) => Some("No valid identifier after \".\"."),
                    (_, true) => Some("No valid identifier before \".\"."),
                    _ => None,
                };
                return Err(refuse(detail).into());
            }
            let end = rest.find(|c| !more(c)).unwrap_or(rest.len());
            parts.push(rest[..end].to_ascii_lowercase().into());
            rest = &rest[end..];
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(more) => {
                after_dot = true;
                rest = more.trim_start();
            }
            None if rest.is_empty() || !strict => break,
            None => return Err(refuse(None).into()),
        }
    }
    Ok(Datum::array(Array::from_items(TEXT, parts)))
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(1282, "quote_ident", &[TEXT], TEXT, quote_ident),
    Function::new(1283, "quote_literal", &[TEXT], TEXT, quote_literal),
    Function::new(1285, "quote_literal", &[ANYELEMENT], TEXT, quote_literal).stable(),
    Function::new(1289, "quote_nullable", &[TEXT], TEXT, quote_nullable).lenient(),
    Function::new(1290, "quote_nullable", &[ANYELEMENT], TEXT, quote_nullable)
        .stable()
        .lenient(),
    Function::new(3539, "format", &[TEXT, ANY], TEXT, format)
        .stable()
        .lenient()
        .variadic(ANY),
    Function::new(3540, "format", &[TEXT], TEXT, format)
        .stable()
        .lenient(),
    Function::new(6198, "unistr", &[TEXT], TEXT, unistr),
    Function::new(1268, "parse_ident", &[TEXT, BOOL], TEXT_ARRAY, parse_ident).defaults(1),
];
