//! Values of composite types as text: `(1,"a b",)`.

use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Record, Result, Text};

use super::{input_text, scalar};
use crate::eval::EvalContext;

#[cold]
fn malformed(text: &str, detail: &str) -> Error {
    let message = format!("malformed record literal: \"{text}\"");
    Error::new(state::INVALID_TEXT_REPRESENTATION, message).detail(detail)
}

/// Reads a value of a composite type: its fields in order, nothing for NULL.
pub fn parse(ctx: &EvalContext<'_>, text: &str, ty: Oid) -> Result<Datum> {
    let Some(def) = ctx.host.user_type(ty) else {
        return Err(Error::internal("a composite type that is not there"));
    };
    let mut rest = text.trim_start_matches(scalar::is_space);
    rest = rest
        .strip_prefix('(')
        .ok_or_else(|| malformed(text, "Missing left parenthesis."))?;
    let (mut types, mut names, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for field in def.fields().unwrap_or_default() {
        if !values.is_empty() {
            rest = rest
                .strip_prefix(',')
                .ok_or_else(|| malformed(text, "Too few columns."))?;
        }
        let value = match item(&mut rest, text)? {
            None => Datum::Null,
            Some(item) => input_text(ctx, &item, field.ty)?,
        };
        if let Some(domain) = field.domain {
            ctx.host.check_in_domain(domain, &value)?;
        }
        values.push(value);
        types.push(field.ty.oid);
        names.push(Text::new(field.name));
    }
    rest = rest
        .strip_prefix(')')
        .ok_or_else(|| malformed(text, "Too many columns."))?;
    if !rest.trim_start_matches(scalar::is_space).is_empty() {
        return Err(malformed(text, "Junk after right parenthesis."));
    }
    let record = Record {
        types: types.into(),
        names: Some(names.into()),
        values,
    };
    Ok(Datum::Record(record.into()))
}

/// One field's text, quotes and backslashes taken away; None where there is none at all.
fn item(rest: &mut &str, text: &str) -> Result<Option<String>> {
    if rest.starts_with([',', ')']) {
        return Ok(None);
    }
    let mut out = String::new();
    let mut quoted = false;
    let mut chars = rest.char_indices().peekable();
    loop {
        let Some((at, c)) = chars.next() else {
            return Err(malformed(text, "Unexpected end of input."));
        };
        match c {
            ',' | ')' if !quoted => {
                *rest = &rest[at..];
                return Ok(Some(out));
            }
            '\\' => match chars.next() {
                Some((_, escaped)) => out.push(escaped),
                None => return Err(malformed(text, "Unexpected end of input.")),
            },
            '"' if !quoted => quoted = true,
            '"' if chars.peek().is_some_and(|(_, c)| *c == '"') => {
                chars.next();
                out.push('"');
            }
            '"' => quoted = false,
            c => out.push(c),
        }
    }
}
