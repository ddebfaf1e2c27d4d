//! `pg_trgm`: how much two texts are alike, by the groups of three letters that both have.
//!
//! A word is a run of letters and digits in lower case; it is taken with two blanks before it and
//! one behind, so that its ends count. A text's trigrams are those of its words, each once.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::{Extension, Native, operator, scalar};
use crate::func::string::text;
use crate::func::{EvalContext, EvalFn, EvalResult, EvalStop, Operator};
use throng_types::base::lower_case;
use throng_types::error::state;
use throng_types::{Array, Datum, Error, Result, interrupt, oid::*};

pub(super) static EXTENSION: Extension = Extension {
    name: "pg_trgm",
    version: "1.6",
    comment: "text similarity measurement and index searching based on trigrams",
    functions: FUNCTIONS,
    operators: OPERATORS,
    ..Extension::PLAIN
};

const NUMBER: u32 = 2;

const fn asks(
    number: u32,
    name: &'static str,
    code: &'static str,
    commutator: u32,
    eval: EvalFn,
) -> Operator {
    let types = (TEXT, TEXT, BOOL);
    operator((NUMBER, number), name, types, code, (commutator, 0), eval).stable()
}

const fn measures(
    number: u32,
    name: &'static str,
    code: &'static str,
    commutator: u32,
    eval: EvalFn,
) -> Operator {
    let types = (TEXT, TEXT, FLOAT4);
    operator((NUMBER, number), name, types, code, (commutator, 0), eval)
}

static OPERATORS: &[Operator] = &[
    asks(1, "%", "similarity_op", 1, is_similar),
    asks(2, "%>", "word_similarity_commutator_op", 3, has_word),
    asks(3, "<%", "word_similarity_op", 2, is_word),
    measures(4, "<->", "similarity_dist", 4, distance),
    measures(
        5,
        "<->>",
        "word_similarity_dist_commutator_op",
        6,
        distance_of_text,
    ),
    measures(6, "<<->", "word_similarity_dist_op", 5, distance_of_word),
    asks(
        7,
        "%>>",
        "strict_word_similarity_commutator_op",
        8,
        has_strict_word,
    ),
    asks(8, "<<%", "strict_word_similarity_op", 7, is_strict_word),
    measures(
        9,
        "<->>>",
        "strict_word_similarity_dist_commutator_op",
        10,
        distance_of_strict_text,
    ),
    measures(
        10,
        "<<<->",
        "strict_word_similarity_dist_op",
        9,
        distance_of_strict_word,
    ),
];

const FUNCTIONS: &[Native] = &[
    scalar(
        "set_limit(real) returns real strict parallel unsafe",
        set_limit,
    ),
    scalar("show_limit() returns real stable strict", show_limit),
    scalar(
        "show_trgm(text) returns text[] immutable strict",
        show_trigrams,
    ),
    scalar(
        "similarity(text, text) returns real immutable strict",
        similarity,
    ),
    scalar(
        "similarity_op(text, text) returns boolean stable strict",
        is_similar,
    ),
    scalar(
        "word_similarity(text, text) returns real immutable strict",
        word_similarity,
    ),
    scalar(
        "word_similarity_op(text, text) returns boolean stable strict",
        is_word,
    ),
    scalar(
        "word_similarity_commutator_op(text, text) returns boolean stable strict",
        has_word,
    ),
    scalar(
        "similarity_dist(text, text) returns real immutable strict",
        distance,
    ),
    scalar(
        "word_similarity_dist_op(text, text) returns real immutable strict",
        distance_of_word,
    ),
    scalar(
        "word_similarity_dist_commutator_op(text, text) returns real immutable strict",
        distance_of_text,
    ),
    scalar(
        "strict_word_similarity(text, text) returns real immutable strict",
        strict_word_similarity,
    ),
    scalar(
        "strict_word_similarity_op(text, text) returns boolean stable strict",
        is_strict_word,
    ),
    scalar(
        "strict_word_similarity_commutator_op(text, text) returns boolean stable strict",
        has_strict_word,
    ),
    scalar(
        "strict_word_similarity_dist_op(text, text) returns real immutable strict",
        distance_of_strict_word,
    ),
    scalar(
        "strict_word_similarity_dist_commutator_op(text, text) returns real immutable strict",
        distance_of_strict_text,
    ),
];

/// Three bytes: three ASCII characters, or a checksum of three others.
type Trigram = [u8; 3];

/// PostgreSQL's order, in which bytes are signed.
fn order(trigram: &Trigram) -> [i8; 3] {
    trigram.map(|byte| byte as i8)
}

/// The checksum that stands for characters beyond ASCII: the table of the reflected CRC-32, gone
/// through from the other end.
fn checksum(bytes: &[u8]) -> Trigram {
    let mut crc = u32::MAX;
    for byte in bytes {
        let mut entry = crc >> 24 ^ u32::from(*byte);
        for _ in 0..8 {
            entry = match entry & 1 {
                1 => entry >> 1 ^ 0xedb8_8320,
                _ => entry >> 1,
            };
        }
        crc = entry ^ crc << 8;
    }
    let [a, b, c, _] = (!crc).to_le_bytes();
    [a, b, c]
}

/// A trigram where it stands in a text, and whether it begins or ends a word.
struct Occurrence {
    trigram: Trigram,
    first: bool,
    last: bool,
}

/// The trigrams of a text in the order in which they come.
fn places(text: &str) -> Result<Vec<Occurrence>> {
    let mut places = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        if word.is_empty() {
            continue;
        }
        let lower = lower_case(word);
        let letters: Vec<char> = "  ".chars().chain(lower.chars()).chain([' ']).collect();
        let count = letters.len() - 2;
        for (at, three) in letters.windows(3).enumerate() {
            interrupt::poll()?;
            let bytes: String = three.iter().collect();
            let trigram = match bytes.as_bytes() {
                [a, b, c] => [*a, *b, *c],
                longer => checksum(longer),
            };
            places.push(Occurrence {
                trigram,
                first: at == 0,
                last: at + 1 == count,
            });
        }
    }
    Ok(places)
}

/// A text's trigrams, each once, in order.
fn trigrams(text: &str) -> Result<Vec<Trigram>> {
    interrupt::expect(text.len().saturating_mul(16))?;
    let mut all: Vec<Trigram> = places(text)?.iter().map(|place| place.trigram).collect();
    all.sort_unstable_by_key(order);
    all.dedup();
    Ok(all)
}

/// The share that two sets have in common of what they have together.
fn share(common: usize, left: usize, right: usize) -> f32 {
    common as f32 / (left + right - common) as f32
}

fn alike(left: &str, right: &str) -> Result<f32> {
    let (left, right) = (trigrams(left)?, trigrams(right)?);
    if left.is_empty() || right.is_empty() {
        return Ok(0.0);
    }
    let mut common = 0;
    let (mut a, mut b) = (left.iter().peekable(), right.iter().peekable());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        let next = order(x).cmp(&order(y));
        common += usize::from(next.is_eq());
        if next.is_le() {
            a.next();
        }
        if next.is_ge() {
            b.next();
        }
    }
    Ok(share(common, left.len(), right.len()))
}

/// A stretch of a text's trigrams, and how many it has, each counted once.
struct Stretch<'a> {
    /// Numbers of the text's trigrams, place by place.
    numbers: &'a [usize],
    /// Whether a trigram is the word's, too.
    shared: &'a [bool],
    /// How often each is in the stretch.
    times: Vec<u32>,
    distinct: usize,
    common: usize,
}

impl Stretch<'_> {
    fn add(&mut self, place: usize) {
        let number = self.numbers[place];
        self.times[number] += 1;
        if self.times[number] == 1 {
            self.distinct += 1;
            self.common += usize::from(self.shared[number]);
        }
    }
    fn remove(&mut self, place: usize) {
        let number = self.numbers[place];
        self.times[number] -= 1;
        if self.times[number] == 0 {
            self.distinct -= 1;
            self.common -= usize::from(self.shared[number]);
        }
    }
}

/// How much a word is like the stretch of a text that it is most like; `strict`: a stretch of whole
/// words.
///
/// The beginning of the stretch only moves on: for each end it is tried how far that makes the
/// stretch more like the word.
fn word_alike(word: &str, within: &str, strict: bool) -> Result<f32> {
    let word = trigrams(word)?;
    interrupt::expect(within.len().saturating_mul(64))?;
    let places = places(within)?;
    if word.is_empty() || places.is_empty() {
        return Ok(0.0);
    }
    let mut known: HashMap<Trigram, usize, FixedState> = HashMap::default();
    let mut numbers = Vec::with_capacity(places.len());
    for place in &places {
        let next = known.len();
        numbers.push(*known.entry(place.trigram).or_insert(next));
    }
    let mut shared = vec![false; known.len()];
    for trigram in &word {
        if let Some(number) = known.get(trigram) {
            shared[*number] = true;
        }
    }
    let mut stretch = Stretch {
        numbers: &numbers,
        shared: &shared,
        times: vec![0; known.len()],
        distinct: 0,
        common: 0,
    };
    let mut from = strict.then_some(0);
    let mut best = 0f32;
    for (end, place) in places.iter().enumerate() {
        let matches = shared[numbers[end]];
        if from.is_none() && matches {
            from = Some(end);
        }
        let Some(start) = from else { continue };
        stretch.add(end);
        if !(if strict { place.last } else { matches }) {
            continue;
        }
        let (mut now, mut kept) = (share(stretch.common, word.len(), stretch.distinct), start);
        for (at, place) in places.iter().enumerate().take(end + 1).skip(start) {
            interrupt::poll()?;
            if !strict || place.first {
                let shorter = share(stretch.common, word.len(), stretch.distinct);
                if shorter > now {
                    (now, kept) = (shorter, at);
                }
            }
            stretch.remove(at);
        }
        (kept..=end).for_each(|at| stretch.add(at));
        from = Some(kept);
        best = best.max(now);
    }
    Ok(best)
}

/// The limit of a kind of likeness.
fn limit(ctx: &EvalContext<'_>, name: &str, usual: f32) -> Result<f32, EvalStop> {
    let Some(set) = ctx.host.show_setting(name) else {
        return Ok(usual);
    };
    match set.trim().parse::<f32>() {
        Ok(limit) if (0.0..=1.0).contains(&limit) => Ok(limit),
        _ => Err(out_of_range(&set).into()),
    }
}

#[cold]
fn out_of_range(given: &str) -> Error {
    let message =
        format!("{given} is outside the valid range for parameter \"{SIMILARITY}\" (0 .. 1)");
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

const SIMILARITY: &str = "pg_trgm.similarity_threshold";

fn similarity_limit(ctx: &EvalContext<'_>) -> Result<f32, EvalStop> {
    limit(ctx, SIMILARITY, 0.3)
}
fn word_limit(ctx: &EvalContext<'_>) -> Result<f32, EvalStop> {
    limit(ctx, "pg_trgm.word_similarity_threshold", 0.6)
}
fn strict_word_limit(ctx: &EvalContext<'_>) -> Result<f32, EvalStop> {
    limit(ctx, "pg_trgm.strict_word_similarity_threshold", 0.5)
}

fn set_limit(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::Float4(given) = args[0] else {
        return Ok(Datum::Null);
    };
    if !(0.0..=1.0).contains(&given) {
        return Err(out_of_range(&given.to_string()).into());
    }
    ctx.host
        .set_setting(SIMILARITY, Some(&given.to_string()), false)?;
    Ok(Datum::Float4(given))
}

fn show_limit(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::Float4(similarity_limit(ctx)?))
}

fn show_trigrams(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let shown = |trigram: &Trigram| -> Datum {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace();
        match trigram.iter().all(plain) {
            true => String::from_utf8_lossy(trigram).into_owned().into(),
            false => {
                let [a, b, c] = trigram;
                format!("0x{a:02x}{b:02x}{c:02x}").into()
            }
        }
    };
    let all = trigrams(text(&args[0]))?;
    let items = all.iter().map(shown).collect();
    Ok(Datum::array(Array::from_items(TEXT, items)))
}

fn texts(args: &[Datum]) -> (&str, &str) {
    (text(&args[0]), text(&args[1]))
}

fn similarity(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (left, right) = texts(args);
    Ok(Datum::Float4(alike(left, right)?))
}
fn distance(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (left, right) = texts(args);
    Ok(Datum::Float4(1.0 - alike(left, right)?))
}
fn is_similar(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (left, right) = texts(args);
    Ok((alike(left, right)? >= similarity_limit(ctx)?).into())
}

fn word_similarity(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (word, within) = texts(args);
    Ok(Datum::Float4(word_alike(word, within, false)?))
}
fn is_word(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (word, within) = texts(args);
    Ok((word_alike(word, within, false)? >= word_limit(ctx)?).into())
}
fn has_word(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (within, word) = texts(args);
    Ok((word_alike(word, within, false)? >= word_limit(ctx)?).into())
}
fn distance_of_word(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (word, within) = texts(args);
    Ok(Datum::Float4(1.0 - word_alike(word, within, false)?))
}
fn distance_of_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (within, word) = texts(args);
    Ok(Datum::Float4(1.0 - word_alike(word, within, false)?))
}

fn strict_word_similarity(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (word, within) = texts(args);
    Ok(Datum::Float4(word_alike(word, within, true)?))
}
fn is_strict_word(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (word, within) = texts(args);
    Ok((word_alike(word, within, true)? >= strict_word_limit(ctx)?).into())
}
fn has_strict_word(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (within, word) = texts(args);
    Ok((word_alike(word, within, true)? >= strict_word_limit(ctx)?).into())
}
fn distance_of_strict_word(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (word, within) = texts(args);
    Ok(Datum::Float4(1.0 - word_alike(word, within, true)?))
}
fn distance_of_strict_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (within, word) = texts(args);
    Ok(Datum::Float4(1.0 - word_alike(word, within, true)?))
}
