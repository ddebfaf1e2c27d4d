//! Arrays, vectors and records as text.

use super::{input_plain, output_text};
use crate::eval::EvalContext;
use crate::io::scalar::{is_space, write_int};
use throng_types::datum::Dim;
use throng_types::error::state;
use throng_types::sqltype::{delimiter, element_of};
use throng_types::{Array, Datum, Error, Oid, Record, Result, SqlType, oid};

/// Nesting that an array may have.
const MAX_DIMS: usize = 6;

#[cold]
fn malformed(text: &str, detail: &str) -> Error {
    Error::new(
        state::INVALID_TEXT_REPRESENTATION,
        format!("malformed array literal: \"{text}\""),
    )
    .detail(detail)
}

/// `{…}`, perhaps with bounds before: `[0:1]={…}`.
pub fn parse(ctx: &EvalContext<'_>, text: &str, element: Oid) -> Result<Datum> {
    let mut reader = Reader {
        ctx,
        text,
        rest: text.trim_start_matches(is_space),
        element,
        delimiter: delimiter(element),
        items: vec![],
        dims: vec![],
    };
    let bounds = reader.bounds()?;
    if !reader.rest.starts_with('{') {
        return Err(malformed(
            text,
            if bounds.is_empty() {
                "Array value must start with \"{\" or dimension information."
            } else {
                "Array contents must start with \"{\"."
            },
        ));
    }
    reader.level(0)?;
    if !reader.rest.trim_matches(is_space).is_empty() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    let Reader {
        items, dims: lens, ..
    } = reader;
    let mut dims: Vec<Dim> = lens.iter().map(|&len| Dim { len, lower: 1 }).collect();
    if items.is_empty() {
        dims.clear();
    }
    if !bounds.is_empty() {
        if bounds.len() != dims.len() || bounds.iter().zip(&dims).any(|(b, d)| b.len != d.len) {
            return Err(malformed(
                text,
                "Specified array dimensions do not match array contents.",
            ));
        }
        dims = bounds;
    }
    Ok(Datum::array(Array {
        element,
        dims,
        items,
    }))
}

struct Reader<'a> {
    ctx: &'a EvalContext<'a>,
    text: &'a str,
    rest: &'a str,
    element: Oid,
    delimiter: u8,
    items: Vec<Datum>,
    dims: Vec<i32>,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches(is_space);
    }

    /// `[low:high]…=`
    fn bounds(&mut self) -> Result<Vec<Dim>> {
        let mut dims = Vec::new();
        let wrong = |text: &str| {
            malformed(
                text,
                "\"[\" must introduce explicitly-specified array dimensions.",
            )
        };
        while let Some(rest) = self.rest.strip_prefix('[') {
            let (inside, after) = rest
                .split_once(']')
                .ok_or_else(|| malformed(self.text, "Missing \"]\" after array dimensions."))?;
            let (low, high) = inside.split_once(':').unwrap_or(("1", inside));
            let (low, high): (i32, i32) = match (low.trim().parse(), high.trim().parse()) {
                (Ok(low), Ok(high)) => (low, high),
                _ => return Err(wrong(self.text)),
            };
            let len = i64::from(high) - i64::from(low) + 1;
            if len <= 0 {
                return Err(Error::new(
                    state::ARRAY_SUBSCRIPT_ERROR,
                    "upper bound cannot be less than lower bound",
                ));
            }
            dims.push(Dim {
                len: len as i32,
                lower: low,
            });
            self.rest = after.trim_start_matches(is_space);
        }
        if !dims.is_empty() {
            let after = self.rest.strip_prefix('=');
            self.rest = after
                .ok_or_else(|| malformed(self.text, "Missing \"=\" after array dimensions."))?
                .trim_start_matches(is_space);
        }
        Ok(dims)
    }

    /// One brace level; the depth tells which dimension.
    fn level(&mut self, depth: usize) -> Result<()> {
        if depth >= MAX_DIMS {
            return Err(Error::new(
                state::PROGRAM_LIMIT_EXCEEDED,
                format!("number of array dimensions exceeds the maximum allowed ({MAX_DIMS})"),
            ));
        }
        let uneven = |text: &str| {
            malformed(
                text,
                "Multidimensional arrays must have sub-arrays with matching dimensions.",
            )
        };
        self.rest = &self.rest[1..];
        let (mut count, mut nested) = (0i32, None);
        loop {
            self.skip_space();
            match self.rest.as_bytes().first() {
                None => return Err(malformed(self.text, "Unexpected end of input.")),
                Some(b'}') if count == 0 => break,
                Some(b'}') => {
                    return Err(malformed(self.text, "Unexpected \"}\" character."));
                }
                Some(b'{') => {
                    if nested.replace(true) == Some(false) {
                        return Err(uneven(self.text));
                    }
                    self.level(depth + 1)?;
                }
                Some(_) => {
                    if nested.replace(false) == Some(true) {
                        return Err(uneven(self.text));
                    }
                    self.item()?;
                }
            }
            count += 1;
            self.skip_space();
            match self.rest.as_bytes().first() {
                Some(b) if *b == self.delimiter => self.rest = &self.rest[1..],
                Some(b'}') => break,
                None => return Err(malformed(self.text, "Unexpected end of input.")),
                Some(b'{') => return Err(malformed(self.text, "Unexpected \"{\" character.")),
                Some(_) => return Err(malformed(self.text, "Unexpected array element.")),
            }
        }
        self.rest = &self.rest[1..];
        let deeper = nested == Some(true);
        // Inner levels close first, so their lengths arrive before ours.
        if self.dims.len() <= depth {
            self.dims.resize(depth + 1, -1);
        }
        if self.dims[depth] == -1 {
            self.dims[depth] = count;
        }
        if self.dims[depth] != count || (!deeper && self.dims.len() > depth + 1) {
            return Err(uneven(self.text));
        }
        Ok(())
    }

    fn item(&mut self) -> Result<()> {
        let (value, quoted) = if let Some(inside) = self.rest.strip_prefix('"') {
            let mut value = String::new();
            let mut chars = inside.char_indices();
            loop {
                match chars.next() {
                    Some((i, '"')) => {
                        self.rest = &inside[i + 1..];
                        break;
                    }
                    Some((_, '\\')) => match chars.next() {
                        Some((_, c)) => value.push(c),
                        None => return Err(malformed(self.text, "Unexpected end of input.")),
                    },
                    Some((_, c)) => value.push(c),
                    None => return Err(malformed(self.text, "Unexpected end of input.")),
                }
            }
            (value, true)
        } else {
            let mut value = String::new();
            // Up to here trailing blanks are the item's own: what was escaped.
            let mut keep = 0;
            let mut end = self.rest.len();
            let mut chars = self.rest.char_indices();
            while let Some((i, c)) = chars.next() {
                match c {
                    '}' | '{' => {
                        end = i;
                        break;
                    }
                    c if c == char::from(self.delimiter) => {
                        end = i;
                        break;
                    }
                    '"' => return Err(malformed(self.text, "Incorrectly quoted array element.")),
                    '\\' => match chars.next() {
                        Some((_, c)) => {
                            value.push(c);
                            keep = value.len();
                        }
                        None => return Err(malformed(self.text, "Unexpected end of input.")),
                    },
                    c => value.push(c),
                }
            }
            self.rest = &self.rest[end..];
            let trimmed = value.trim_end_matches(is_space).len().max(keep);
            value.truncate(trimmed);
            if value.is_empty() {
                let found = self.rest.chars().next().unwrap_or('}');
                return Err(malformed(
                    self.text,
                    &format!("Unexpected \"{found}\" character."),
                ));
            }
            (value, keep > 0)
        };
        self.items.push(if self.is_null(&value, quoted) {
            Datum::Null
        } else {
            input_plain(self.ctx, &value, self.element, -1)?
        });
        Ok(())
    }

    fn is_null(&self, value: &str, quoted: bool) -> bool {
        !quoted && self.ctx.format.array_nulls && value.eq_ignore_ascii_case("null")
    }
}

/// What follows a number without a space is where the next is looked for.
fn check_numbers(text: &str) -> Result<()> {
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let unsigned = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(super::invalid_syntax(oid::OID, rest));
        }
        rest = unsigned[digits..].trim_start_matches(is_space);
    }
    Ok(())
}

/// `int2vector` and `oidvector`: numbers with spaces between.
pub fn parse_vector(ctx: &EvalContext<'_>, text: &str, ty: Oid) -> Result<Datum> {
    let element = element_of(ty).unwrap_or(oid::INT2);
    if ty == oid::OIDVECTOR {
        check_numbers(text)?;
    }
    let items: Result<Vec<Datum>> = text
        .split(is_space)
        .filter(|s| !s.is_empty())
        .map(|s| input_plain(ctx, s, element, -1))
        .collect();
    Ok(Datum::array(Array::vector(element, items?)))
}

/// Appends an array's text. A vector type is written with spaces only.
pub fn write(ctx: &EvalContext<'_>, array: &Array, ty: Oid, out: &mut Vec<u8>) {
    let element = SqlType::plain(array.element);
    if matches!(ty, oid::INT2VECTOR | oid::OIDVECTOR) {
        for (i, item) in array.items.iter().enumerate() {
            if i > 0 {
                out.push(b' ');
            }
            output_text(ctx, item, element, out);
        }
        return;
    }
    if array.items.is_empty() {
        out.extend_from_slice(b"{}");
        return;
    }
    if array.dims.iter().any(|d| d.lower != 1) {
        for dim in &array.dims {
            out.push(b'[');
            write_int(dim.lower.into(), out);
            out.push(b':');
            write_int(i64::from(dim.lower) + i64::from(dim.len) - 1, out);
            out.push(b']');
        }
        out.push(b'=');
    }
    let mut items = array.items.iter();
    write_level(ctx, &array.dims, &mut items, element, out);
}

fn write_level<'a>(
    ctx: &EvalContext<'_>,
    dims: &[Dim],
    items: &mut impl Iterator<Item = &'a Datum>,
    element: SqlType,
    out: &mut Vec<u8>,
) {
    let delimiter = delimiter(element.oid);
    out.push(b'{');
    for i in 0..dims[0].len {
        if i > 0 {
            out.push(delimiter);
        }
        if dims.len() > 1 {
            write_level(ctx, &dims[1..], items, element, out);
            continue;
        }
        match items.next() {
            None | Some(Datum::Null) => out.extend_from_slice(b"NULL"),
            Some(item) => {
                let start = out.len();
                output_text(ctx, item, element, out);
                quote_from(
                    out,
                    start,
                    |text| {
                        text.eq_ignore_ascii_case(b"null")
                            || text
                                .iter()
                                .any(|b| matches!(b, b'{' | b'}') || *b == delimiter)
                    },
                    false,
                );
            }
        }
    }
    out.push(b'}');
}

/// Puts what was written since `start` in quotes if it needs them. Records double what arrays
/// escape.
pub(super) fn quote_from(
    out: &mut Vec<u8>,
    start: usize,
    special: impl Fn(&[u8]) -> bool,
    doubled: bool,
) {
    let text = &out[start..];
    let plain = !text.is_empty()
        && !special(text)
        && !text
            .iter()
            .any(|&b| matches!(b, b'"' | b'\\') || is_space(b as char));
    if plain {
        return;
    }
    let mut quoted = Vec::with_capacity(text.len() + 2);
    quoted.push(b'"');
    for &b in text {
        if matches!(b, b'"' | b'\\') {
            quoted.push(if doubled { b } else { b'\\' });
        }
        quoted.push(b);
    }
    quoted.push(b'"');
    out.truncate(start);
    out.append(&mut quoted);
}

/// Appends `(a,b,c)`; NULL is nothing between commas.
pub fn write_record(ctx: &EvalContext<'_>, record: &Record, out: &mut Vec<u8>) {
    out.push(b'(');
    for (i, (value, ty)) in record.values.iter().zip(record.types.iter()).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if !value.is_null() {
            let start = out.len();
            output_text(ctx, value, SqlType::plain(*ty), out);
            quote_from(
                out,
                start,
                |t| t.iter().any(|b| matches!(b, b'(' | b')' | b',')),
                true,
            );
        }
    }
    out.push(b')');
}
