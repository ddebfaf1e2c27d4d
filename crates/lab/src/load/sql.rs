//! Statements with parameters, in whichever of the protocol's three ways a load is told to send
//! them.
//!
//! A statement is written once, with `$1`, `$2`, …; [`Mode::Simple`] puts the values into the text
//! as literals, [`Mode::Extended`] parses it anew each time, [`Mode::Prepared`] parses it once a
//! connection. For MySQL the parameters become `?` in the order in which they stand.

use std::io::Write as _;

use super::dialect::Dialect;
use super::trouble::{Result, Trouble};

/// How statements are sent, as pgbench's `--protocol`; in brackets MySQL's commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// One Query message with the values in its text (COM_QUERY).
    #[default]
    Simple,
    /// Parse, Bind, Execute, Sync (COM_STMT_PREPARE, COM_STMT_EXECUTE, COM_STMT_CLOSE).
    Extended,
    /// Bind, Execute, Sync of a statement parsed once a connection (COM_STMT_EXECUTE).
    Prepared,
}

impl Mode {
    pub fn parse(text: &str) -> Result<Mode> {
        match text {
            "simple" => Ok(Mode::Simple),
            "extended" => Ok(Mode::Extended),
            "prepared" => Ok(Mode::Prepared),
            _ => Err(Trouble::usage(format!(
                "mode {text}: expected simple, extended or prepared"
            ))),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Mode::Simple => "simple",
            Mode::Extended => "extended",
            Mode::Prepared => "prepared",
        }
    }
}

/// What becomes of a statement's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// They are counted and thrown away.
    Count,
    /// They can be read until the next statement that keeps its own.
    Rows,
    /// The same, and their columns' names are asked for.
    Named,
}

/// A value for a parameter. To PostgreSQL all travel as text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg<'a> {
    Int(i64),
    /// Hundredths: 12345 is `123.45`.
    Cents(i64),
    /// Ten-thousandths: 1250 is `0.1250`.
    Rate(i64),
    Float(f64),
    Text(&'a str),
    Null,
}

impl Arg<'_> {
    /// The value's text, as a parameter; nothing for NULL.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Arg::Int(n) => push_int(out, *n),
            Arg::Cents(n) => push_scaled(out, *n, 100, 2),
            Arg::Rate(n) => push_scaled(out, *n, 10_000, 4),
            Arg::Float(x) => write!(out, "{x}").expect("a vector takes everything"),
            Arg::Text(text) => out.extend_from_slice(text.as_bytes()),
            Arg::Null => {}
        }
    }

    /// The value as a literal of SQL.
    fn write_literal(&self, out: &mut Vec<u8>) {
        match self {
            Arg::Text(text) => push_quoted(out, text.as_bytes()),
            Arg::Null => out.extend_from_slice(b"null"),
            number => number.write(out),
        }
    }
}

/// Text as a string of standard SQL.
pub fn push_quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'\'');
    for &byte in text {
        if byte == b'\'' {
            out.push(b'\'');
        }
        out.push(byte);
    }
    out.push(b'\'');
}

/// `format!` costs several times this, and a load writes a number or two a statement.
fn push_int(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    push_digits(out, value.unsigned_abs());
}

fn push_digits(out: &mut Vec<u8>, mut value: u64) {
    // u64::MAX has 20 digits.
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn push_scaled(out: &mut Vec<u8>, value: i64, scale: u64, places: usize) {
    if value < 0 {
        out.push(b'-');
    }
    let value = value.unsigned_abs();
    push_digits(out, value / scale);
    out.push(b'.');
    let start = out.len();
    push_digits(out, value % scale);
    let missing = places - (out.len() - start);
    out.splice(start..start, std::iter::repeat_n(b'0', missing));
}

/// A statement, cut at its parameters.
pub struct Sql {
    /// As the server is to prepare it.
    text: String,
    /// Literal text and the parameter (0-based) that follows it.
    pieces: Vec<(String, usize)>,
    tail: String,
    params: usize,
    /// Its place among the statements of its workload: what a connection knows it by.
    pub(super) id: usize,
    pub(super) keep: Keep,
}

impl Sql {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn params(&self) -> usize {
        self.params
    }

    /// The parameters (0-based) in the order in which they stand, one as often as it does.
    pub fn order(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.pieces.iter().map(|(_, param)| *param)
    }

    /// The text with the values in the parameters' places.
    pub fn write_simple(&self, args: &[Arg<'_>], out: &mut Vec<u8>) {
        for (text, param) in &self.pieces {
            out.extend_from_slice(text.as_bytes());
            args[*param].write_literal(out);
        }
        out.extend_from_slice(self.tail.as_bytes());
    }
}

/// How a change of rows that are also read is written: the parts of both dialects' texts.
pub struct Parts<'a> {
    pub table: &'a str,
    pub set: &'a str,
    pub key: &'a str,
    /// What is read, of the rows as they are before the change.
    pub before: &'a str,
    /// The same, where it is written in another way of the rows as they are after it.
    pub after: Option<&'a str>,
}

/// A change of rows that are also read.
pub enum Change {
    /// By one statement.
    Returning(Sql),
    /// Read and locked, then changed.
    Locking { read: Sql, write: Sql },
}

/// The statements of one workload. A connection prepares each at its first use.
#[derive(Default)]
pub struct Book {
    dialect: Dialect,
    count: usize,
}

impl Book {
    pub fn new(dialect: Dialect) -> Book {
        Book { dialect, count: 0 }
    }

    /// A statement whose rows are counted and thrown away.
    pub fn statement(&mut self, text: &str) -> Sql {
        self.add(text, Keep::Count)
    }

    /// A statement whose rows can be read until the next one runs.
    pub fn query(&mut self, text: &str) -> Sql {
        self.add(text, Keep::Rows)
    }

    /// A change whose rows can be read until the next one runs.
    pub fn change(&mut self, parts: &Parts<'_>) -> Change {
        let Parts {
            table,
            set,
            key,
            before,
            after,
        } = parts;
        let update = format!("UPDATE {table} SET {set} WHERE {key}");
        match self.dialect {
            Dialect::Postgres => {
                let after = after.unwrap_or(before);
                Change::Returning(self.query(&format!("{update} RETURNING {after}")))
            }
            Dialect::MySql => Change::Locking {
                read: self.query(&format!(
                    "SELECT {before} FROM {table} WHERE {key} FOR UPDATE"
                )),
                write: self.statement(&update),
            },
        }
    }

    fn add(&mut self, text: &str, keep: Keep) -> Sql {
        let (pieces, tail, params) = cut(text);
        self.count += 1;
        let text = match self.dialect {
            Dialect::Postgres => text.to_owned(),
            Dialect::MySql => {
                pieces
                    .iter()
                    .map(|(text, _)| format!("{text}?"))
                    .collect::<String>()
                    + &tail
            }
        };
        Sql {
            text,
            pieces,
            tail,
            params,
            id: self.count - 1,
            keep,
        }
    }
}

/// Cuts at `$n` outside of quotes.
fn cut(text: &str) -> (Vec<(String, usize)>, String, usize) {
    let bytes = text.as_bytes();
    let (mut pieces, mut params) = (Vec::new(), 0);
    let (mut start, mut at) = (0, 0);
    let mut quote = None;
    while at < bytes.len() {
        let byte = bytes[at];
        match quote {
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if matches!(byte, b'\'' | b'"') => quote = Some(byte),
            None if byte == b'$' => {
                let digits = bytes[at + 1..]
                    .iter()
                    .take_while(|b| b.is_ascii_digit())
                    .count();
                let number = text[at + 1..at + 1 + digits].parse::<usize>();
                if let Ok(number @ 1..) = number {
                    pieces.push((text[start..at].to_owned(), number - 1));
                    params = params.max(number);
                    at += digits;
                    start = at + 1;
                }
            }
            None => {}
        }
        at += 1;
    }
    (pieces, text[start..].to_owned(), params)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simple(text: &str, args: &[Arg<'_>]) -> String {
        let mut out = Vec::new();
        Book::default().statement(text).write_simple(args, &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn literals_take_the_parameters_places() {
        assert_eq!(
            simple(
                "update a set b = b + $2, c = '$1' where k = $1 -- $",
                &[Arg::Int(7), Arg::Int(-12)]
            ),
            "update a set b = b + -12, c = '$1' where k = 7 -- $"
        );
        assert_eq!(
            simple("select $1, $2, $1", &[Arg::Text("it's"), Arg::Null]),
            "select 'it''s', null, 'it''s'"
        );
        let mut many = String::from("values ");
        for n in 1..=12 {
            many.push_str(&format!("(${n})"));
        }
        let sql = Book::default().statement(&many);
        assert_eq!((sql.params(), sql.pieces.len()), (12, 12));
    }

    #[test]
    fn mysql_marks_parameters_where_they_stand() {
        let mut book = Book::new(Dialect::MySql);
        let sql = book.statement("update a set b = b + $2, c = '$1' where k = $1 and b < $2");
        assert_eq!(
            sql.text(),
            "update a set b = b + ?, c = '$1' where k = ? and b < ?"
        );
        assert!(sql.order().eq([1, 0, 1]));
        assert_eq!(sql.params(), 2);
    }

    #[test]
    fn a_change_in_both_dialects() {
        let parts = Parts {
            table: "t",
            set: "n = n + $2",
            key: "k = $1",
            before: "n",
            after: Some("n - $2"),
        };
        let Change::Returning(one) = Book::new(Dialect::Postgres).change(&parts) else {
            panic!("one statement");
        };
        assert_eq!(
            one.text(),
            "UPDATE t SET n = n + $2 WHERE k = $1 RETURNING n - $2"
        );
        let Change::Locking { read, write } = Book::new(Dialect::MySql).change(&parts) else {
            panic!("two statements");
        };
        assert_eq!(read.text(), "SELECT n FROM t WHERE k = ? FOR UPDATE");
        assert_eq!(write.text(), "UPDATE t SET n = n + ? WHERE k = ?");
        assert_ne!(read.id, write.id);
    }

    #[test]
    fn numbers() {
        let text = |arg: Arg<'_>| simple("$1", &[arg]);
        assert_eq!(text(Arg::Int(0)), "0");
        assert_eq!(text(Arg::Int(i64::MIN)), i64::MIN.to_string());
        assert_eq!(text(Arg::Int(i64::MAX)), i64::MAX.to_string());
        assert_eq!(text(Arg::Cents(5)), "0.05");
        assert_eq!(text(Arg::Cents(-12345)), "-123.45");
        assert_eq!(text(Arg::Cents(300)), "3.00");
        assert_eq!(text(Arg::Rate(1250)), "0.1250");
        assert_eq!(text(Arg::Rate(7)), "0.0007");
        assert_eq!(text(Arg::Float(1.5)), "1.5");
    }
}
