//! `fuzzystrmatch`: distances of texts, and how words sound.

use super::{Extension, Native, scalar};
use crate::func::number::int;
use crate::func::string::text;
use crate::func::{EvalContext, EvalResult};
use throng_types::error::state;
use throng_types::{Datum, Error, Result, interrupt};

pub(super) static EXTENSION: Extension = Extension {
    name: "fuzzystrmatch",
    version: "1.2",
    comment: "determine similarities and distance between strings",
    functions: FUNCTIONS,
    ..Extension::PLAIN
};

const FUNCTIONS: &[Native] = &[
    scalar(
        "levenshtein(text, text) returns integer immutable strict",
        levenshtein,
    ),
    scalar(
        "levenshtein(text, text, integer, integer, integer) returns integer immutable strict",
        levenshtein,
    ),
    scalar(
        "levenshtein_less_equal(text, text, integer) returns integer immutable strict",
        levenshtein_up_to,
    ),
    scalar(
        "levenshtein_less_equal(text, text, integer, integer, integer, integer) returns integer \
         immutable strict",
        levenshtein_up_to,
    ),
    scalar("soundex(text) returns text immutable strict", soundex),
    scalar("text_soundex(text) returns text immutable strict", soundex),
    scalar(
        "difference(text, text) returns integer immutable strict",
        difference,
    ),
    scalar(
        "metaphone(text, integer) returns text immutable strict",
        |_, _| Err(Error::unsupported("metaphone()").into()),
    ),
    scalar("dmetaphone(text) returns text immutable strict", |_, _| {
        Err(Error::unsupported("dmetaphone()").into())
    }),
    scalar(
        "dmetaphone_alt(text) returns text immutable strict",
        |_, _| Err(Error::unsupported("dmetaphone_alt()").into()),
    ),
    scalar(
        "daitch_mokotoff(text) returns text[] immutable strict",
        |_, _| Err(Error::unsupported("daitch_mokotoff()").into()),
    ),
];

/// What it costs to insert, delete and replace a letter.
struct Costs {
    insert: i64,
    delete: i64,
    replace: i64,
}

impl Costs {
    fn of(args: &[Datum]) -> Costs {
        match args {
            [insert, delete, replace, ..] => Costs {
                insert: int(insert),
                delete: int(delete),
                replace: int(replace),
            },
            _ => Costs {
                insert: 1,
                delete: 1,
                replace: 1,
            },
        }
    }
}

/// The least cost of making one text of the other: Wagner and Fischer, "The string-to-string
/// correction problem" (1974), a row at a time.
fn distance(from: &str, to: &str, costs: &Costs) -> Result<i64> {
    const LONGEST: usize = 255;
    let letters = |text: &str| -> Result<Vec<char>> {
        // No more are looked at than tell that there are too many.
        let letters: Vec<char> = text.chars().take(LONGEST + 1).collect();
        match letters.len() > LONGEST {
            false => Ok(letters),
            true => Err(Error::new(
                state::INVALID_PARAMETER_VALUE,
                format!("levenshtein argument exceeds maximum length of {LONGEST} characters"),
            )),
        }
    };
    if from.is_empty() || to.is_empty() {
        let count = |text: &str| text.chars().count() as i64;
        return Ok(count(from) * costs.delete + count(to) * costs.insert);
    }
    let (from, to) = (letters(from)?, letters(to)?);
    let mut row: Vec<i64> = (0..=from.len() as i64).map(|n| n * costs.delete).collect();
    for (made, wanted) in to.iter().enumerate() {
        interrupt::poll()?;
        let mut diagonal = row[0];
        row[0] = (made as i64 + 1) * costs.insert;
        for (at, letter) in from.iter().enumerate() {
            let replaced = diagonal + if letter == wanted { 0 } else { costs.replace };
            diagonal = row[at + 1];
            let inserted = diagonal + costs.insert;
            let deleted = row[at] + costs.delete;
            row[at + 1] = replaced.min(inserted).min(deleted);
        }
    }
    Ok(row[from.len()])
}

fn whole(cost: i64) -> EvalResult {
    let cost = i32::try_from(cost);
    Ok(cost
        .map_err(|_| crate::func::number::integer_out_of_range())?
        .into())
}

fn levenshtein(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let costs = Costs::of(&args[2..]);
    whole(distance(text(&args[0]), text(&args[1]), &costs)?)
}

/// Beyond the limit, which is the last argument, one more than it.
fn levenshtein_up_to(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (limit, costs) = match &args[2..] {
        [limit] => (int(limit), Costs::of(&[])),
        costs => (costs.last().map_or(0, int), Costs::of(costs)),
    };
    let cost = distance(text(&args[0]), text(&args[1]), &costs)?;
    whole(match limit >= 0 && cost > limit {
        true => limit + 1,
        false => cost,
    })
}

/// The letter's group: those of one group sound alike.
fn group(letter: u8) -> u8 {
    match letter.to_ascii_uppercase() {
        b'B' | b'F' | b'P' | b'V' => b'1',
        b'C' | b'G' | b'J' | b'K' | b'Q' | b'S' | b'X' | b'Z' => b'2',
        b'D' | b'T' => b'3',
        b'L' => b'4',
        b'M' | b'N' => b'5',
        b'R' => b'6',
        _ => b'0',
    }
}

/// Russell's code (1918): the first letter, and three digits for the groups that follow.
fn code(word: &str) -> String {
    const LEN: usize = 4;
    let mut letters = word.bytes().skip_while(|b| !b.is_ascii_alphabetic());
    let Some(first) = letters.next() else {
        return String::new();
    };
    let mut out = vec![first.to_ascii_uppercase()];
    let mut before = first;
    for letter in letters {
        if out.len() == LEN {
            break;
        }
        if letter.is_ascii_alphabetic() && group(letter) != group(before) {
            match group(letter) {
                b'0' => {}
                digit => out.push(digit),
            }
        }
        before = letter;
    }
    out.resize(LEN, b'0');
    String::from_utf8_lossy(&out).into_owned()
}

fn soundex(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(code(text(&args[0])).into())
}

fn difference(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (left, right) = (code(text(&args[0])), code(text(&args[1])));
    if left.is_empty() && right.is_empty() {
        return Ok(4.into());
    }
    let same = left.bytes().zip(right.bytes()).filter(|(a, b)| a == b);
    Ok((same.count() as i32).into())
}
