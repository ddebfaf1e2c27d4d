//! COPY's text and CSV formats, one record at a time.

use memchr::memchr2;
use throng_bind::command::{ColumnSet, CopyOptions};
use throng_types::Result;

use super::{FieldKind, Fields, bad_format};

fn is_in(set: &ColumnSet, column: u16) -> bool {
    match set {
        ColumnSet::None => false,
        ColumnSet::All => true,
        ColumnSet::Some(columns) => columns.contains(&column),
    }
}

/// What a field's raw text stands for.
fn kind(options: &CopyOptions, raw: &[u8]) -> FieldKind {
    if raw == options.null.as_bytes() {
        FieldKind::Null
    } else if options
        .default
        .as_ref()
        .is_some_and(|d| raw == d.as_bytes())
    {
        FieldKind::Default
    } else {
        FieldKind::Value
    }
}

/// Text format: fields between delimiters, backslash escapes.
pub fn parse(options: &CopyOptions, record: &[u8], fields: &mut Fields) -> Result<()> {
    fields.clear();
    let mut start = 0;
    loop {
        let rest = &record[start..];
        let plain = memchr2(options.delimiter, b'\\', rest).unwrap_or(rest.len());
        let mut at = start + plain;
        if record.get(at) == Some(&b'\\') {
            let undone = fields.undone.len();
            at = undo_escapes(options, record, start, fields);
            fields.undone(undone, kind(options, &record[start..at]));
        } else {
            fields.plain(start, at, kind(options, &record[start..at]));
        }
        if at >= record.len() {
            return fields.check_text();
        }
        start = at + 1;
    }
}

/// Undoes the escapes of the field that begins at `at`; where it ends.
fn undo_escapes(options: &CopyOptions, record: &[u8], mut at: usize, fields: &mut Fields) -> usize {
    loop {
        let rest = &record[at..];
        let plain = memchr2(options.delimiter, b'\\', rest).unwrap_or(rest.len());
        fields.undone.extend_from_slice(&rest[..plain]);
        at += plain;
        if record.get(at) != Some(&b'\\') {
            return at;
        }
        at += 1;
        unescape(record, &mut at, fields);
    }
}

/// Undoes the escape whose backslash has been passed. At the end of the record it means nothing.
fn unescape(record: &[u8], at: &mut usize, fields: &mut Fields) {
    let Some(&b) = record.get(*at) else { return };
    *at += 1;
    let digits = |at: usize, most: usize, radix: u32| {
        record[at..]
            .iter()
            .take(most)
            .take_while(|b| (**b as char).is_digit(radix))
            .fold((0u32, 0), |(value, n), b| {
                (
                    value * radix + (*b as char).to_digit(radix).unwrap_or(0),
                    n + 1,
                )
            })
    };
    let byte = match b {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'0'..=b'7' => {
            let (value, n) = digits(*at - 1, 3, 8);
            *at += n - 1;
            fields.numbered(value as u8)
        }
        b'x' => match digits(*at, 2, 16) {
            (_, 0) => b'x',
            (value, n) => {
                *at += n;
                fields.numbered(value as u8)
            }
        },
        other => other,
    };
    fields.undone.push(byte);
}

/// CSV: fields between delimiters, quotes around what needs them.
pub fn parse_csv(options: &CopyOptions, record: &[u8], fields: &mut Fields) -> Result<()> {
    fields.clear();
    let mut start = 0;
    loop {
        let rest = &record[start..];
        let plain = memchr2(options.delimiter, options.quote, rest).unwrap_or(rest.len());
        let mut at = start + plain;
        // FORCE_NULL and FORCE_NOT_NULL name positions in the file, counted from 1.
        let column = fields.len() as u16 + 1;
        if record.get(at) == Some(&options.quote) {
            let undone = fields.undone.len();
            at = undo_quotes(options, record, start, fields)?;
            let kind = match kind(options, &fields.undone[undone..]) {
                FieldKind::Null if is_in(&options.force_null, column) => FieldKind::Null,
                _ => FieldKind::Value,
            };
            fields.undone(undone, kind);
        } else {
            let kind = match kind(options, &record[start..at]) {
                FieldKind::Null if is_in(&options.force_not_null, column) => FieldKind::Value,
                other => other,
            };
            fields.plain(start, at, kind);
        }
        if at >= record.len() {
            return Ok(());
        }
        start = at + 1;
    }
}

/// Undoes the quotes of the field that begins at `at`; where it ends.
fn undo_quotes(
    options: &CopyOptions,
    record: &[u8],
    mut at: usize,
    fields: &mut Fields,
) -> Result<usize> {
    let (quote, escape) = (options.quote, options.escape);
    let mut in_quotes = false;
    loop {
        match record.get(at) {
            None if in_quotes => return Err(bad_format("unterminated CSV quoted field")),
            None => return Ok(at),
            Some(&b) if in_quotes => {
                at += 1;
                let next = record.get(at).copied();
                if b == escape && next.is_some_and(|n| n == quote || n == escape) {
                    fields.undone.extend(next);
                    at += 1;
                } else if b == quote {
                    in_quotes = false;
                } else {
                    let rest = &record[at - 1..];
                    let plain = memchr2(escape, quote, &rest[1..]);
                    let plain = plain.map_or(rest.len(), |n| n + 1);
                    fields.undone.extend_from_slice(&rest[..plain]);
                    at += plain - 1;
                }
            }
            Some(&b) if b == options.delimiter => return Ok(at),
            Some(&b) if b == quote => {
                in_quotes = true;
                at += 1;
            }
            Some(_) => {
                let rest = &record[at..];
                let plain = memchr2(options.delimiter, quote, rest).unwrap_or(rest.len());
                fields.undone.extend_from_slice(&rest[..plain]);
                at += plain;
            }
        }
    }
}

/// Appends one field of a text record.
pub fn write_field(options: &CopyOptions, value: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(value) = value else {
        out.extend_from_slice(options.null.as_bytes());
        return;
    };
    let mut rest = value;
    let special = |b: &u8| *b < b' ' || *b == b'\\' || *b == options.delimiter;
    while let Some(at) = rest.iter().position(special) {
        out.extend_from_slice(&rest[..at]);
        let escaped = match rest[at] {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b => b,
        };
        let plain = escaped < b' ' && escaped != options.delimiter;
        if !plain {
            out.push(b'\\');
        }
        out.push(escaped);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Appends one field of a CSV record. `column`: its place in the record from 1; `alone`: it is the
/// only one.
pub fn write_csv_field(
    options: &CopyOptions,
    value: Option<&[u8]>,
    column: u16,
    alone: bool,
    out: &mut Vec<u8>,
) {
    let Some(value) = value else {
        out.extend_from_slice(options.null.as_bytes());
        return;
    };
    let (quote, escape) = (options.quote, options.escape);
    let special = |b: &u8| *b == options.delimiter || *b == quote || *b == b'\n' || *b == b'\r';
    let needs_quotes = is_in(&options.force_quote, column)
        || value == options.null.as_bytes()
        || (alone && value == b"\\.")
        || value.iter().any(special);
    if !needs_quotes {
        out.extend_from_slice(value);
        return;
    }
    out.push(quote);
    for &b in value {
        if b == quote || b == escape {
            out.push(escape);
        }
        out.push(b);
    }
    out.push(quote);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use throng_bind::command::{CopyFormat, CopyHeader, CopyVerbosity};

    /// PostgreSQL's defaults for a format.
    pub(crate) fn options(format: CopyFormat) -> CopyOptions {
        let csv = format == CopyFormat::Csv;
        CopyOptions {
            format,
            delimiter: if csv { b',' } else { b'\t' },
            null: if csv { "" } else { "\\N" }.into(),
            default: None,
            header: CopyHeader::No,
            quote: b'"',
            escape: b'"',
            force_quote: ColumnSet::None,
            force_not_null: ColumnSet::None,
            force_null: ColumnSet::None,
            freeze: false,
            ignore_errors: false,
            reject_limit: None,
            verbosity: CopyVerbosity::Default,
            encoding: None,
        }
    }

    fn read(format: CopyFormat, record: &[u8]) -> Vec<Option<String>> {
        let mut fields = Fields::default();
        super::super::parse_record(&options(format), record, &mut fields).expect("well formed");
        (0..fields.len())
            .map(|i| {
                let value = String::from_utf8_lossy(fields.bytes(i, record)).into_owned();
                (fields.kind(i) == FieldKind::Value).then_some(value)
            })
            .collect()
    }

    fn some(texts: &[&str]) -> Vec<Option<String>> {
        texts.iter().map(|t| Some((*t).to_owned())).collect()
    }

    #[test]
    fn text_escapes() {
        assert_eq!(
            read(CopyFormat::Text, b"a\\tb\t\\x41\\102\\\\\t"),
            some(&["a\tb", "AB\\", ""])
        );
        assert_eq!(
            read(CopyFormat::Text, b"\\N\t\\\\N"),
            [None, Some("\\N".into())]
        );
        assert_eq!(read(CopyFormat::Text, b""), some(&[""]));
        assert_eq!(read(CopyFormat::Text, b"a\\"), some(&["a"]));
        assert_eq!(read(CopyFormat::Text, b"\\303\\xa9"), some(&["é"]));
    }

    #[test]
    fn escaped_bytes_are_text() {
        for record in [&b"\\xff"[..], b"a\\0", b"\\xc3\t\\xa9"] {
            let mut fields = Fields::default();
            let error =
                parse(&options(CopyFormat::Text), record, &mut fields).expect_err("no text");
            assert_eq!(error.code().as_str(), "22021");
        }
    }

    #[test]
    fn csv_quotes() {
        assert_eq!(
            read(CopyFormat::Csv, b"a,\"b,\"\"c\"\"\",x\"y\"z"),
            some(&["a", "b,\"c\"", "xyz"])
        );
        assert_eq!(read(CopyFormat::Csv, b",\"\""), [None, Some(String::new())]);
    }

    #[test]
    fn what_is_written_reads_back() {
        let values: [&[u8]; 7] = [
            b"plain",
            b"tab\there",
            b"quote\"d",
            b"line\nbreak\r",
            b"\\.",
            b"\x01\x0b",
            b"",
        ];
        for format in [CopyFormat::Text, CopyFormat::Csv] {
            let options = options(format);
            let mut record = Vec::new();
            for (i, value) in values.iter().enumerate() {
                if i > 0 {
                    record.push(options.delimiter);
                }
                match format {
                    CopyFormat::Text => write_field(&options, Some(value), &mut record),
                    _ => write_csv_field(&options, Some(value), i as u16 + 1, false, &mut record),
                }
            }
            let expected: Vec<_> = values
                .iter()
                .map(|v| Some(String::from_utf8_lossy(v).into_owned()))
                .collect();
            assert_eq!(read(format, &record), expected);
        }
    }
}
