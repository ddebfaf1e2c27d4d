//! Parameters of COM_STMT_EXECUTE and the rows of results, text and binary (MySQL's internals
//! documentation, "Binary Protocol Value", "Column Definition").
//!
//! ```text
//! execute   statement u32 | cursor u8 = 0 | 1 u32 | NULL bits | 1 u8 | a type u16 each | a value each
//! row       text: a length and text each, or NULL      binary: 0 u8 | NULL bits from the third on | a value each
//! ```

use std::io::Write;

use super::packet::{NULL, Reader, malformed};
use crate::load::rows::Rows;
use crate::load::sql::{Arg, Sql, push_quoted};
use crate::load::trouble::{Result, Trouble};

/// Among a column's flags.
const UNSIGNED: u16 = 1 << 5;
/// A table cannot have more, so no result of ours does.
pub const MOST_COLUMNS: u64 = 4096;

/// Types as they are numbered (enum_field_types).
mod kind {
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const VARCHAR: u8 = 15;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
}

/// What follows COM_STMT_EXECUTE. Types are sent each time: the server keeps none that a NULL could
/// spoil.
pub fn execute(statement: u32, sql: &Sql, args: &[Arg<'_>], out: &mut Vec<u8>) {
    out.extend_from_slice(&statement.to_le_bytes());
    out.push(0);
    out.extend_from_slice(&1u32.to_le_bytes());
    let count = sql.order().len();
    if count == 0 {
        return;
    }
    let nulls = out.len();
    out.resize(nulls + count.div_ceil(8), 0);
    for (place, param) in sql.order().enumerate() {
        if args[param] == Arg::Null {
            out[nulls + place / 8] |= 1 << (place % 8);
        }
    }
    out.push(1);
    for param in sql.order() {
        out.extend_from_slice(&kind_of(&args[param]).to_le_bytes());
    }
    for param in sql.order() {
        value(&args[param], out);
    }
}

fn kind_of(arg: &Arg<'_>) -> u16 {
    u16::from(match arg {
        Arg::Int(_) => kind::LONGLONG,
        Arg::Cents(_) | Arg::Rate(_) => kind::NEWDECIMAL,
        Arg::Float(_) => kind::DOUBLE,
        Arg::Text(_) => kind::VAR_STRING,
        Arg::Null => kind::NULL,
    })
}

fn value(arg: &Arg<'_>, out: &mut Vec<u8>) {
    match arg {
        Arg::Int(n) => out.extend_from_slice(&n.to_le_bytes()),
        Arg::Float(x) => out.extend_from_slice(&x.to_le_bytes()),
        Arg::Null => {}
        Arg::Cents(_) | Arg::Rate(_) => {
            let start = out.len();
            out.push(0);
            arg.write(out);
            // A number of 64 bits has at most 21 signs.
            out[start] = (out.len() - start - 1) as u8;
        }
        Arg::Text(text) => {
            push_number(out, text.len());
            out.extend_from_slice(text.as_bytes());
        }
    }
}

/// The rows that lines of COPY's text form are, as an INSERT lists them, each with a comma behind
/// it. Numbers go as strings too, which the server turns into what the columns are.
pub fn insert_rows(lines: &[u8], out: &mut Vec<u8>) {
    for line in lines.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        out.push(b'(');
        for field in line.split(|b| *b == b'\t') {
            match field {
                b"\\N" => out.extend_from_slice(b"null"),
                text => push_quoted(out, text),
            }
            out.push(b',');
        }
        out.pop();
        out.extend_from_slice(b"),");
    }
}

/// A length-encoded integer.
fn push_number(out: &mut Vec<u8>, number: usize) {
    let bytes = (number as u64).to_le_bytes();
    match number {
        0..0xfb => out.push(bytes[0]),
        0xfb..0x1_0000 => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..0x100_0000 => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

/// What of a column definition tells how its values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    kind: u8,
    is_unsigned: bool,
}

impl Column {
    /// The column and its name.
    pub fn read(body: &[u8]) -> Result<(Column, &[u8])> {
        let mut reader = Reader(body);
        // Catalog, schema, table, original table.
        for _ in 0..4 {
            reader.string()?;
        }
        let name = reader.string()?;
        // The original name; then the length of what follows, character set, length.
        reader.string()?;
        reader.number()?;
        reader.bytes(2 + 4)?;
        let column = Column {
            kind: reader.u8()?,
            is_unsigned: reader.u16()? & UNSIGNED != 0,
        };
        Ok((column, name))
    }
}

/// Takes a row of a text result.
pub fn text_row(body: &[u8], columns: &[Column], rows: &mut Rows) -> Result<()> {
    let mut reader = Reader(body);
    rows.begin_row(columns.len());
    for _ in columns {
        if let Some((&NULL, rest)) = reader.0.split_first() {
            reader.0 = rest;
            rows.null();
            continue;
        }
        let text = reader.string()?;
        rows.cell(|out| out.extend_from_slice(text))?;
    }
    ended(reader)
}

/// Takes a row of a binary result.
pub fn binary_row(body: &[u8], columns: &[Column], rows: &mut Rows) -> Result<()> {
    let mut reader = Reader(body);
    reader.u8()?;
    let nulls = reader.bytes((columns.len() + 2).div_ceil(8))?;
    rows.begin_row(columns.len());
    for (place, column) in columns.iter().enumerate() {
        let bit = place + 2;
        match nulls[bit / 8] >> (bit % 8) & 1 {
            1 => rows.null(),
            _ => cell(&mut reader, *column, rows)?,
        }
    }
    ended(reader)
}

fn ended(reader: Reader<'_>) -> Result<()> {
    match reader.0.is_empty() {
        true => Ok(()),
        false => Err(malformed()),
    }
}

/// A binary value, as the text that it would have been.
fn cell(reader: &mut Reader<'_>, column: Column, rows: &mut Rows) -> Result<()> {
    use kind::*;
    let signed = !column.is_unsigned;
    let number: i64 = match column.kind {
        TINY if signed => reader.array().map(i8::from_le_bytes)?.into(),
        TINY => reader.u8()?.into(),
        SHORT if signed => reader.array().map(i16::from_le_bytes)?.into(),
        SHORT | YEAR => reader.u16()?.into(),
        LONG | INT24 if signed => reader.array().map(i32::from_le_bytes)?.into(),
        LONG | INT24 => reader.u32()?.into(),
        LONGLONG if signed => reader.array().map(i64::from_le_bytes)?,
        LONGLONG => {
            let number = reader.array().map(u64::from_le_bytes)?;
            return written(rows, format_args!("{number}"));
        }
        FLOAT => {
            let number = reader.array().map(f32::from_le_bytes)?;
            return written(rows, format_args!("{number}"));
        }
        DOUBLE => {
            let number = reader.array().map(f64::from_le_bytes)?;
            return written(rows, format_args!("{number}"));
        }
        TIMESTAMP | DATE | DATETIME => return time(reader, column, rows),
        DECIMAL | VARCHAR | NEWDECIMAL | ENUM | SET | TINY_BLOB..=BLOB | VAR_STRING | STRING => {
            let text = reader.string()?;
            return rows.cell(|out| out.extend_from_slice(text));
        }
        other => {
            return Err(Trouble::broken(format!(
                "a value of type {other}, which is not read here"
            )));
        }
    };
    rows.cell(|out| Arg::Int(number).write(out))
}

/// A date of 0 or 4 bytes, with seconds of 7, with millionths of 11; what is left out is zero.
fn time(reader: &mut Reader<'_>, column: Column, rows: &mut Rows) -> Result<()> {
    let length = usize::from(reader.u8()?);
    let sent = reader.bytes(length)?;
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(malformed());
    }
    let mut bytes = [0; 11];
    bytes[..length].copy_from_slice(sent);
    let [low, high, month, day, hour, minute, second, millionths @ ..] = bytes;
    let year = u16::from_le_bytes([low, high]);
    let millionths = u32::from_le_bytes(millionths);
    rows.cell(|out| {
        let _ = write!(out, "{year:04}-{month:02}-{day:02}");
        if column.kind != kind::DATE {
            let _ = write!(out, " {hour:02}:{minute:02}:{second:02}");
        }
        if millionths != 0 {
            let _ = write!(out, ".{millionths:06}");
        }
    })
}

/// The text of a value that is no integer of 64 bits.
fn written(rows: &mut Rows, text: std::fmt::Arguments<'_>) -> Result<()> {
    rows.cell(|out| out.write_fmt(text).expect("a vector takes everything"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::load::dialect::Dialect;
    use crate::load::sql::Book;

    fn column(kind: u8) -> Column {
        Column {
            kind,
            is_unsigned: false,
        }
    }

    /// The texts of a binary row of one column each.
    fn read(columns: &[Column], body: &[u8]) -> Result<Vec<Option<String>>> {
        let mut rows = Rows::default();
        binary_row(body, columns, &mut rows)?;
        (0..columns.len())
            .map(|c| Ok(rows.text(0, c)?.map(str::to_owned)))
            .collect()
    }

    #[test]
    fn parameters() {
        let sql = Book::new(Dialect::MySql).statement("$2 $1 $3 $2 $4");
        let mut out = Vec::new();
        let args = [Arg::Int(-2), Arg::Text("ab"), Arg::Null, Arg::Cents(-5)];
        execute(7, &sql, &args, &mut out);
        let expected = [
            &b"\x07\0\0\0\0\x01\0\0\0"[..],
            // The third is NULL.
            b"\x04\x01",
            b"\xfd\0\x08\0\x06\0\xfd\0\xf6\0",
            b"\x02ab",
            b"\xfe\xff\xff\xff\xff\xff\xff\xff",
            b"\x02ab",
            b"\x05-0.05",
        ];
        assert_eq!(out, expected.concat());
        let mut out = Vec::new();
        let text = "x".repeat(70_000);
        value(&Arg::Text(&text), &mut out);
        assert_eq!(&out[..5], b"\xfd\x70\x11\x01x");
    }

    #[test]
    fn lines_as_an_insert_lists_them() {
        let mut out = Vec::new();
        insert_rows(b"1\t\\N\tit's\n2\t\tx\n", &mut out);
        assert_eq!(out, b"('1',null,'it''s'),('2','','x'),");
        out.clear();
        insert_rows(b"", &mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn a_column() {
        let mut body =
            b"\x03def\0\x01t\x01t\x03who\x01w\x0c\x2d\0\x0b\0\0\0\x08\x21\0\0\0\0".to_vec();
        let (column, name) = Column::read(&body).expect("well formed");
        assert_eq!(
            (column.kind, column.is_unsigned, name),
            (kind::LONGLONG, true, &b"who"[..])
        );
        body.truncate(body.len() - 4);
        assert!(Column::read(&body).is_err());
    }

    #[test]
    fn binary_values() {
        let columns = [kind::LONG, kind::NEWDECIMAL, kind::STRING, kind::DATETIME].map(column);
        // The third is NULL: bit 2 + 2.
        let body = b"\0\x10\xfe\xff\xff\xff\x0412.5\x07\xea\x07\x01\x02\x03\x04\x05";
        let texts = read(&columns, body).expect("well formed");
        let texts: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
        assert_eq!(
            texts,
            [Some("-2"), Some("12.5"), None, Some("2026-01-02 03:04:05")]
        );
        assert!(read(&columns, &body[..body.len() - 1]).is_err());
        assert!(
            read(&columns, &[&body[..], b"x"].concat()).is_err(),
            "more than the columns"
        );
        let big = Column {
            kind: kind::LONGLONG,
            is_unsigned: true,
        };
        let texts = read(&[big], b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff").expect("well formed");
        assert_eq!(texts[0].as_deref(), Some("18446744073709551615"));
        assert!(read(&[column(kind::DATE)], b"\0\0\x05\x01\x02\x03\x04\x05").is_err());
        assert!(read(&[column(11)], b"\0\0\0").is_err(), "TIME");
    }

    #[test]
    fn a_text_row() {
        let columns = [column(kind::LONG); 3];
        let mut rows = Rows::default();
        text_row(b"\x0212\xfb\0", &columns, &mut rows).expect("well formed");
        assert_eq!(rows.int(0, 0).expect("12"), 12);
        assert_eq!(rows.text(0, 1).expect("null"), None);
        assert_eq!(rows.string(0, 2).expect("empty"), "");
        assert!(text_row(b"\x0212\xfb", &columns, &mut rows).is_err());
        assert!(text_row(b"\x0912\xfb\0", &columns, &mut rows).is_err());
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_or_a_row(
            kinds in prop::collection::vec((any::<u8>(), any::<bool>()), 0..6),
            body in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let columns: Vec<Column> = kinds.into_iter().map(|(kind, is_unsigned)| Column { kind, is_unsigned }).collect();
            let mut rows = Rows::default();
            if binary_row(&body, &columns, &mut rows).is_ok() && !columns.is_empty() {
                prop_assert_eq!(rows.len(), 1);
            }
            rows.clear();
            if text_row(&body, &columns, &mut rows).is_ok() && !columns.is_empty() {
                prop_assert_eq!(rows.len(), 1);
            }
            let _ = Column::read(&body);
        }

        #[test]
        fn integers_return(number in any::<i64>(), small in any::<i16>()) {
            let body = [&b"\0\0"[..], &number.to_le_bytes(), &small.to_le_bytes()].concat();
            let texts = read(&[column(kind::LONGLONG), column(kind::SHORT)], &body).unwrap();
            prop_assert_eq!(texts, [Some(number.to_string()), Some(small.to_string())]);
        }
    }
}
