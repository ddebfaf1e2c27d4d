//! Statement shapes: a text with its integer literals lifted out, so that texts which differ in
//! them alone share a plan.
//!
//! ```text
//! UPDATE t SET a = a + -12 WHERE k = 345      shape: UPDATE t SET a = a + -$1 WHERE k = $2     values: 12, 345, both integer
//! ```
//! The shape is found without parsing. A literal is lifted only where a parameter of its type means
//! exactly the same: after an operator, a comma or an opening parenthesis, outside function calls
//! and type modifiers, and nowhere after `BY`, where a number may be the number of a column.
//! Everything else stays in the shape as it is written.

use std::cell::RefCell;
use std::fmt::Write;
use std::ops::Range;

use throng_types::{Datum, SqlType};

/// Shapes that a thread keeps of the last texts: its sessions run the same few statements again and
/// again.
const MOST_KEPT: usize = 8;

std::thread_local! {
    /// The one met last is at the end.
    static KEPT: RefCell<Vec<Shape>> = const { RefCell::new(Vec::new()) };
}

/// A text's shape and the values lifted out of it; reused from statement to statement.
#[derive(Default)]
pub(in crate::session) struct Shape {
    /// The text with `$1`, … for the values; then, once it is found, [their
    /// types](crate::session::statement::plans::add_types): what the plan cache calls it.
    pub name: String,
    /// Where in `name` the text ends.
    text_end: usize,
    pub values: Vec<Datum>,
    pub types: Vec<SqlType>,
    /// Where in `name` the values' `$1`, … are.
    places: Vec<Range<usize>>,
}

/// Longer texts are seldom repeated.
const LONGEST: usize = 4096;
/// More literals than this make a shape that is seldom met again.
const MOST_VALUES: usize = 100;
/// Deeper texts are left to the parser.
const MOST_PARENTHESES: u32 = u64::BITS;

/// Words after which an opening parenthesis does not make a call.
const PLAIN_WORDS: [&str; 12] = [
    "values", "in", "and", "or", "not", "where", "on", "set", "select", "then", "else", "when",
];

/// What the last thing before the current place was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// An operator, a comma, an opening parenthesis, or nothing.
    Open,
    /// A word, by its place in the text.
    Word(usize, usize),
    /// A value or a closing parenthesis: what follows is an operator.
    Value,
}

/// What a byte may be: bits, for a text is looked at byte by byte each time it is run.
mod class {
    pub const SPACE: u8 = 1;
    pub const DIGIT: u8 = 2;
    /// Begins a word.
    pub const LETTER: u8 = 4;
    /// Goes on with a word, or makes of a number something else.
    pub const OF_WORD: u8 = 8;
    pub const OF_NUMBER: u8 = 16;

    const CLASSES: [u8; 256] = {
        let mut classes = [0; 256];
        let mut b = 0;
        while b < 256 {
            classes[b] = match b as u8 {
                b' ' | b'\t' | b'\n' | b'\r' => SPACE,
                b'0'..=b'9' => DIGIT | OF_WORD | OF_NUMBER,
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => LETTER | OF_WORD | OF_NUMBER,
                b'$' => OF_WORD | OF_NUMBER,
                b'.' => OF_NUMBER,
                _ => 0,
            };
            b += 1;
        }
        classes
    };

    #[inline]
    pub fn of(b: u8) -> u8 {
        CLASSES[b as usize]
    }

    /// Past the bytes of a class from `at` on.
    #[inline]
    pub fn skip(bytes: &[u8], at: usize, class: u8) -> usize {
        let rest = bytes.get(at..).unwrap_or_default();
        let end = rest.iter().position(|b| of(*b) & class == 0);
        at + end.unwrap_or(rest.len())
    }
}

/// For each parenthesis that is open, whether literals may be lifted in it.
#[derive(Default)]
struct Parentheses {
    depth: u32,
    /// The innermost one's answer is the lowest bit.
    lifted: u64,
}

impl Parentheses {
    fn may_lift(&self) -> bool {
        self.depth == 0 || self.lifted & 1 != 0
    }

    /// False where they are too many.
    fn open(&mut self, call: bool) -> bool {
        let lift = !call && self.may_lift();
        self.lifted = self.lifted << 1 | u64::from(lift);
        self.depth += 1;
        self.depth <= MOST_PARENTHESES
    }

    fn close(&mut self) {
        self.lifted >>= 1;
        self.depth = self.depth.saturating_sub(1);
    }
}

impl Shape {
    /// The text with `$1`, … for the values.
    pub fn text(&self) -> &str {
        &self.name[..self.text_end]
    }

    /// The shape of `sql`, if it is one of the statements that are worth it and has something to
    /// lift.
    pub fn of(sql: &str) -> Option<Shape> {
        if sql.len() > LONGEST || !starts_as_data(sql.as_bytes()) {
            return None;
        }
        KEPT.with_borrow_mut(|kept| {
            if let Some(at) = kept.iter_mut().rposition(|shape| shape.is_met_again(sql)) {
                let mut shape = kept.remove(at);
                shape.name.truncate(shape.text_end);
                return Some(shape);
            }
            let mut shape = Shape::default();
            shape.look_for(sql).then_some(shape)
        })
    }

    /// For the next text that has it, of any session of the thread's.
    pub fn give_back(self) {
        KEPT.with_borrow_mut(|kept| {
            if kept.len() == MOST_KEPT {
                kept.remove(0);
            }
            kept.push(self);
        });
    }

    /// Whether `sql` differs from the text it was found in by the digits of its values alone, as
    /// when a client repeats a statement; they are taken from it then.
    fn is_met_again(&mut self, sql: &str) -> bool {
        self.values.clear();
        let (text, mut rest) = (&self.name.as_bytes()[..self.text_end], sql.as_bytes());
        let mut at = 0;
        for (place, ty) in self.places.iter().zip(&self.types) {
            let Some(value) = rest.strip_prefix(&text[at..place.start]) else {
                return false;
            };
            // As many as there are: what comes after them in the last text is no digit.
            let end = class::skip(value, 0, class::DIGIT);
            match integer(&value[..end]) {
                Some((datum, now)) if end > 0 && now == *ty => self.values.push(datum),
                _ => return false,
            }
            rest = &value[end..];
            at = place.end;
        }
        *rest == text[at..]
    }

    fn look_for(&mut self, sql: &str) -> bool {
        let bytes = sql.as_bytes();
        let mut parentheses = Parentheses::default();
        let mut after_by = false;
        let mut before = Before::Open;
        let mut copied = 0;
        let mut at = 0;
        while let Some(&b) = bytes.get(at) {
            let is = class::of(b);
            if is & class::SPACE != 0 {
                at += 1;
            } else if is & class::LETTER != 0 {
                let end = class::skip(bytes, at + 1, class::OF_WORD);
                after_by |= end - at == 2 && bytes[at..end].eq_ignore_ascii_case(b"by");
                before = Before::Word(at, end);
                at = end;
            } else if is & class::DIGIT != 0 {
                let end = class::skip(bytes, at + 1, class::DIGIT);
                // Anything but a plain integer: 1.5, 1e3, 0x1f, 1_000.
                let past = class::skip(bytes, end, class::OF_NUMBER);
                let plain = past == end;
                let lift = plain && before == Before::Open && !after_by && parentheses.may_lift();
                if lift && let Some((datum, ty)) = integer(&bytes[at..end]) {
                    self.name.push_str(&sql[copied..at]);
                    self.values.push(datum);
                    self.types.push(ty);
                    self.push_parameter();
                    copied = end;
                }
                before = Before::Value;
                at = past;
            } else {
                match b {
                    b'\'' => {
                        let Some(end) = end_of_quoted(bytes, at, b'\'') else {
                            return false;
                        };
                        // E'…', U&'…' and the like have rules of their own.
                        if matches!(before, Before::Word(_, end) if end == at)
                            || bytes[at..end].contains(&b'\\')
                        {
                            return false;
                        }
                        at = end;
                        before = Before::Value;
                    }
                    b'"' => {
                        let Some(end) = end_of_quoted(bytes, at, b'"') else {
                            return false;
                        };
                        before = Before::Word(at, end);
                        at = end;
                    }
                    b'(' => {
                        let call = match before {
                            Before::Open => false,
                            Before::Word(from, to) => {
                                !PLAIN_WORDS
                                    .iter()
                                    .any(|w| w.eq_ignore_ascii_case(&sql[from..to]))
                                    && !follows_insert_target(sql, from)
                            }
                            Before::Value => true,
                        };
                        if !parentheses.open(call) {
                            return false;
                        }
                        before = Before::Open;
                        at += 1;
                    }
                    b')' => {
                        parentheses.close();
                        before = Before::Value;
                        at += 1;
                    }
                    b'-' if bytes.get(at + 1) == Some(&b'-') => return false,
                    b'/' if bytes.get(at + 1) == Some(&b'*') => return false,
                    // Parameters, dollar quotes, casts and subscripts: what is around them is left
                    // to the parser.
                    b'$' | b'[' | b']' | b':' => return false,
                    b';' => {
                        if !sql[at + 1..].trim().is_empty() {
                            return false;
                        }
                        at += 1;
                    }
                    b'.' => {
                        // A qualified name, or a number such as .5.
                        if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
                            return false;
                        }
                        before = Before::Value;
                        at += 1;
                    }
                    _ => {
                        before = Before::Open;
                        at += 1;
                    }
                }
            }
        }
        self.name.push_str(&sql[copied..]);
        self.text_end = self.name.len();
        !self.values.is_empty() && self.values.len() <= MOST_VALUES
    }

    /// `$n` for the last of the values.
    fn push_parameter(&mut self) {
        let start = self.name.len();
        self.name.push('$');
        match self.values.len() {
            n @ ..10 => self.name.push(char::from(b'0' + n as u8)),
            // Writing to a string does not fail.
            n => drop(write!(self.name, "{n}")),
        }
        self.places.push(start..self.name.len());
    }
}

/// The value of digits, if it is one with any sign: what is an int4 only with its sign stays with
/// it.
fn integer(digits: &[u8]) -> Option<(Datum, SqlType)> {
    const SIGNED_ALONE: i64 = -(i32::MIN as i64);
    let mut value = 0i64;
    for digit in digits {
        value = value.checked_mul(10)?.checked_add((digit - b'0').into())?;
    }
    match i32::try_from(value) {
        Ok(small) => Some((Datum::Int4(small), SqlType::INT4)),
        Err(_) if value == SIGNED_ALONE => None,
        Err(_) => Some((Datum::Int8(value), SqlType::INT8)),
    }
}

fn starts_as_data(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    let Some((word, rest)) = start.split_at_checked(b"select".len()) else {
        return false;
    };
    let is_data = match word[0] | 0x20 {
        b's' => word.eq_ignore_ascii_case(b"select"),
        b'i' => word.eq_ignore_ascii_case(b"insert"),
        b'u' => word.eq_ignore_ascii_case(b"update"),
        b'd' => word.eq_ignore_ascii_case(b"delete"),
        _ => false,
    };
    is_data
        && rest
            .first()
            .is_some_and(|b| class::of(*b) & class::OF_WORD == 0)
}

/// Whether the word at `from` is the table of `INSERT INTO table (`: what follows are names, in
/// which nothing is lifted.
fn follows_insert_target(sql: &str, from: usize) -> bool {
    sql[..from].trim_end().len() >= 4 && {
        let head = sql[..from].trim_end();
        head.get(head.len() - 4..)
            .is_some_and(|w| w.eq_ignore_ascii_case("into"))
    }
}

/// Just past the closing quote; a doubled quote is part of the text.
fn end_of_quoted(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start + 1;
    loop {
        if *bytes.get(at)? == quote {
            if bytes.get(at + 1) != Some(&quote) {
                return Some(at + 1);
            }
            at += 1;
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(sql: &str) -> Option<(String, Vec<i64>)> {
        let shape = Shape::of(sql)?;
        let values = shape.values.iter().filter_map(Datum::as_i64).collect();
        Some((shape.text().to_owned(), values))
    }

    fn lifted(sql: &str, text: &str, values: &[i64]) {
        assert_eq!(
            shape(sql),
            Some((text.to_owned(), values.to_vec())),
            "{sql}"
        );
    }

    #[test]
    fn literals_are_lifted_where_they_are_values() {
        lifted(
            "SELECT a FROM t WHERE k = 345;",
            "SELECT a FROM t WHERE k = $1;",
            &[345],
        );
        lifted(
            "UPDATE t SET a = a + -12 WHERE k = 3000000000",
            "UPDATE t SET a = a + -$1 WHERE k = $2",
            &[12, 3_000_000_000],
        );
        lifted(
            "insert into h (a, b) values (1, 'x''1', CURRENT_TIMESTAMP)",
            "insert into h (a, b) values ($1, 'x''1', CURRENT_TIMESTAMP)",
            &[1],
        );
        lifted(
            "select t1.c2 from t1 where x in (1,2)",
            "select t1.c2 from t1 where x in ($1,$2)",
            &[1, 2],
        );
    }

    #[test]
    fn others_stay_as_they_are() {
        for sql in [
            "select a from t order by 1",
            "select round(1, 2)",
            "select a from t limit 5",
            "select cast(a as numeric(10,2)) from t",
            "select 1.5, 1e3 from t",
            "select -2147483648",
            "select '2020-01-01'::date - 5",
            "select a from t where b = $1 and c = 5",
            "select a -- 5\n from t where b = 5",
            "select e'\\'' , 5",
            "create table t (a int default 5)",
            "select 5; select 6",
            "select extract(year from d), lpad(x, 5) from t",
            "select",
        ] {
            assert_eq!(shape(sql), None, "{sql}");
        }
    }

    #[test]
    fn what_follows_by_is_not_lifted() {
        lifted(
            "select a from t where b = 7 order by 1, 2",
            "select a from t where b = $1 order by 1, 2",
            &[7],
        );
    }

    /// Whatever the text before was.
    #[test]
    fn a_text_met_again_has_the_shape_it_would_have_at_first() {
        let texts = [
            "SELECT a FROM t WHERE k = 345;",
            "SELECT a FROM t WHERE k = 7;",
            "SELECT a FROM t WHERE k = 3000000000;",
            "SELECT a FROM t WHERE k = 7 ;",
            "SELECT a FROM t WHERE k = 7",
            "SELECT a FROM t WHERE k = 7.5",
            "SELECT a FROM t WHERE k = 7e5;",
            "SELECT a FROM t WHERE k = 7; select 5",
            "SELECT a FROM t WHERE k = ;",
            "SELECT a FROM t WHERE k = -7;",
            "SELECT a FROM t WHERE k = $1;",
            "SELECT a FROM t WHERE k = '7';",
            "SELECT a FROM t WHERE k = 2147483648;",
            "SELECT a FROM t WHERE k = 99999999999999999999;",
            "SELECT a FROM t WHERE k IN (1,2)",
            "SELECT a FROM t WHERE k IN (1,22)",
            "SELECT a FROM t WHERE k IN (1,2,3)",
            "SELECT a FROM t WHERE k IN (12,3)",
            "SELECT a FROM t WHERE k IN (1, 2)",
            "select round(1, 2)",
            "",
        ];
        let found = |sql: &str| {
            let mut shape = Shape::of(sql)?;
            let of = (shape.text().to_owned(), shape.values.clone());
            // As its user does.
            shape.name.push_str("types");
            let types = shape.types.clone();
            shape.give_back();
            Some((of, types))
        };
        let at_first = texts.map(|sql| {
            KEPT.take();
            found(sql)
        });
        for before in texts {
            for (sql, at_first) in texts.iter().zip(&at_first) {
                KEPT.take();
                found(before);
                assert_eq!(&found(sql), at_first, "{before:?}, then {sql:?}");
            }
        }
        // More than are kept, each behind all others.
        for _ in 0..3 {
            for (sql, at_first) in texts.iter().zip(&at_first) {
                assert_eq!(&found(sql), at_first, "{sql:?} among all");
                assert!(KEPT.with_borrow(Vec::len) <= MOST_KEPT);
            }
        }
    }

    #[test]
    fn any_text_is_borne() {
        for sql in [
            "select '",
            "select \"",
            "select (((",
            "select )))",
            "select 99999999999999999999",
            "select é = 5",
            &format!("select {}1", "(".repeat(1000)),
            &format!("select 1{}", ")".repeat(1000)),
        ] {
            let _ = shape(sql);
        }
    }
}
