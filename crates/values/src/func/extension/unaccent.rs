//! `unaccent`: letters without their accents, by a table that lists for each replacement the
//! characters that it stands for.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::{Extension, Native, scalar};
use crate::func::string::text;
use crate::func::{EvalContext, EvalResult};
use throng_types::{Datum, interrupt};

pub(super) static EXTENSION: Extension = Extension {
    name: "unaccent",
    version: "1.1",
    comment: "text search dictionary that removes accents",
    functions: FUNCTIONS,
    ..Extension::PLAIN
};

const FUNCTIONS: &[Native] = &[scalar(
    "unaccent(text) returns text stable strict",
    unaccent,
)];

/// A line a replacement: it, a tab, and the characters.
const TABLE: &str = include_str!("unaccent.txt");

static REPLACEMENTS: LazyLock<HashMap<char, &'static str, FixedState>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter_map(|line| line.split_once('\t'));
    lines
        .flat_map(|(replacement, letters)| letters.chars().map(move |c| (c, replacement)))
        .collect()
});

fn unaccent(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let given = text(&args[0]);
    if given.is_ascii() {
        return Ok(args[0].clone());
    }
    interrupt::expect(given.len())?;
    let mut out = String::with_capacity(given.len());
    for c in given.chars() {
        match REPLACEMENTS.get(&c) {
            Some(replacement) => out.push_str(replacement),
            None => out.push(c),
        }
    }
    Ok(out.into())
}
