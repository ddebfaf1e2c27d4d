//! Statement shapes: a text with its integer literals lifted out, so that texts which differ in them alone share a plan.
//!
//! ```text
//! UPDATE t SET a = a + -12 WHERE k = 345      shape: UPDATE t SET a = a + -$1 WHERE k = $2     values: 12, 345, both integer
//! ```
//! The shape is found without parsing. A literal is lifted only where a parameter of its type means exactly the same: after
//! an operator, a comma or an opening parenthesis, outside function calls and type modifiers, and nowhere after `BY`,
//! where a number may be the number of a column. Everything else stays in the shape as it is written.

use std::fmt::Write;

use throng_types::{Datum, SqlType};

/// A text's shape and the values lifted out of it; reused from statement to statement.
#[derive(Default)]
pub(super) struct Shape {
    /// The text with `$1`, … for the values.
    pub text: String,
    /// What the plan cache calls it.
    pub name: String,
    pub values: Vec<Datum>,
    pub types: Vec<SqlType>,
}

/// Longer texts are seldom repeated.
const LONGEST: usize = 4096;
/// More literals than this make a shape that is seldom met again.
const MOST_VALUES: usize = 100;

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

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}

impl Shape {
    /// Finds the shape of `sql`; false if it is none of the statements that are worth it, or has nothing to lift.
    pub fn find(&mut self, sql: &str) -> bool {
        self.text.clear();
        self.values.clear();
        self.types.clear();
        let bytes = sql.as_bytes();
        if bytes.len() > LONGEST || !starts_as_data(sql) {
            return false;
        }
        // Whether literals may be lifted in each parenthesis that is open.
        let mut open: Vec<bool> = Vec::new();
        let mut after_by = false;
        let mut before = Before::Open;
        let mut copied = 0;
        let mut at = 0;
        while let Some(&b) = bytes.get(at) {
            match b {
                b' ' | b'\t' | b'\n' | b'\r' => at += 1,
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
                    open.push(!call && open.last() != Some(&false));
                    before = Before::Open;
                    at += 1;
                }
                b')' => {
                    open.pop();
                    before = Before::Value;
                    at += 1;
                }
                b'0'..=b'9' => {
                    let end = at
                        + bytes[at..]
                            .iter()
                            .take_while(|b| b.is_ascii_digit())
                            .count();
                    // Anything but a plain integer: 1.5, 1e3, 0x1f, 1_000.
                    let plain = bytes.get(end).is_none_or(|b| !is_word(*b) && *b != b'.');
                    let lift =
                        plain && before == Before::Open && !after_by && open.last() != Some(&false);
                    // What is an int4 only with its sign stays with it.
                    let value = sql[at..end].parse::<i64>().ok();
                    let value = value.filter(|v| lift && *v != -i64::from(i32::MIN));
                    if let Some(value) = value {
                        let (datum, ty) = match i32::try_from(value) {
                            Ok(small) => (Datum::Int4(small), SqlType::INT4),
                            Err(_) => (Datum::Int8(value), SqlType::INT8),
                        };
                        self.text.push_str(&sql[copied..at]);
                        self.values.push(datum);
                        self.types.push(ty);
                        // Writing to a string does not fail.
                        let _ = write!(self.text, "${}", self.values.len());
                        copied = end;
                    }
                    before = Before::Value;
                    at = if plain {
                        end
                    } else {
                        end + bytes[end..]
                            .iter()
                            .take_while(|b| is_word(**b) || **b == b'.')
                            .count()
                    };
                }
                b'-' if bytes.get(at + 1) == Some(&b'-') => return false,
                b'/' if bytes.get(at + 1) == Some(&b'*') => return false,
                // Parameters, dollar quotes, casts and subscripts: what is around them is left to the parser.
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
                b if is_word(b) => {
                    let end = at + bytes[at..].iter().take_while(|b| is_word(**b)).count();
                    after_by |= sql[at..end].eq_ignore_ascii_case("by");
                    before = Before::Word(at, end);
                    at = end;
                }
                _ => {
                    before = Before::Open;
                    at += 1;
                }
            }
        }
        self.text.push_str(&sql[copied..]);
        !self.values.is_empty() && self.values.len() <= MOST_VALUES
    }
}

fn starts_as_data(sql: &str) -> bool {
    let start = sql.trim_start();
    ["select", "insert", "update", "delete"].iter().any(|word| {
        start
            .get(..word.len())
            .is_some_and(|s| s.eq_ignore_ascii_case(word))
            && start
                .as_bytes()
                .get(word.len())
                .is_some_and(|b| !is_word(*b))
    })
}

/// Whether the word at `from` is the table of `INSERT INTO table (`: what follows are names, in which nothing is lifted.
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
        let mut shape = Shape::default();
        shape.find(sql).then(|| {
            let values = shape.values.iter().filter_map(Datum::as_i64).collect();
            (shape.text.clone(), values)
        })
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

    #[test]
    fn any_text_is_borne() {
        for sql in [
            "select '",
            "select \"",
            "select (((",
            "select )))",
            "select 99999999999999999999",
            "select é = 5",
        ] {
            let _ = shape(sql);
        }
    }
}
