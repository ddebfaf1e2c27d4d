//! A `tsvector`: lexemes in order of their bytes, each with the places where it stands.
//!
//! ```text
//! count u32 | end of each entry's bytes, from the first entry on, u32 × count | entries
//! entry: length of the lexeme u16 | lexeme | positions u16 × n
//! position: weight, 2 bits (D 0, C 1, B 2, A 3) | place, 14 bits
//! ```

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::error::state;
use crate::{Error, Result};

/// The longest lexeme, in bytes.
pub const MAX_LEXEME: usize = 2047;
/// The last place that can be told from others.
pub const MAX_PLACE: u16 = (1 << 14) - 1;
/// Positions that one lexeme keeps.
pub const MAX_POSITIONS: usize = 255;
/// Bytes of all lexemes and positions as PostgreSQL lays them out.
pub const MAX_BYTES: usize = (1 << 20) - 1;

/// What a position counts: D is the least and what is not told.
pub type Weight = u8;

/// A place in a text, with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(pub u16);

impl Position {
    pub fn new(place: u16, weight: Weight) -> Position {
        Position(u16::from(weight) << 14 | place.min(MAX_PLACE))
    }
    pub fn place(self) -> u16 {
        self.0 & MAX_PLACE
    }
    pub fn weight(self) -> Weight {
        (self.0 >> 14) as Weight
    }
    pub fn with_weight(self, weight: Weight) -> Position {
        Position::new(self.place(), weight)
    }
}

/// `D`, `C`, `B` or `A`.
pub fn weight_letter(weight: Weight) -> char {
    char::from(b'D' - weight.min(3))
}

/// The weight with this letter, of either case.
pub fn weight_of_letter(letter: u8) -> Option<Weight> {
    match letter.to_ascii_uppercase() {
        letter @ b'A'..=b'D' => Some(b'D' - letter),
        _ => None,
    }
}

/// One entry.
#[derive(Clone, Copy)]
pub struct Lexeme<'a> {
    pub text: &'a str,
    positions: &'a [u8],
}

impl<'a> Lexeme<'a> {
    pub fn count(&self) -> usize {
        self.positions.len() / 2
    }
    pub fn positions(&self) -> impl DoubleEndedIterator<Item = Position> + ExactSizeIterator + 'a {
        let pairs = self.positions.chunks_exact(2);
        pairs.map(|pair| Position(u16::from_le_bytes([pair[0], pair[1]])))
    }
}

/// A value as it is kept. Bytes that are no `tsvector` read as lexemes that are empty.
#[derive(Clone, Copy)]
pub struct TsVector<'a>(&'a [u8]);

impl<'a> TsVector<'a> {
    pub fn new(bytes: &'a [u8]) -> TsVector<'a> {
        TsVector(bytes)
    }

    fn word(&self, at: usize) -> usize {
        let bytes = self.0.get(at..at + 4).and_then(|word| word.try_into().ok());
        bytes.map_or(0, |word| u32::from_le_bytes(word) as usize)
    }

    /// Lexemes.
    pub fn count(&self) -> usize {
        // Each takes six bytes at least.
        self.word(0).min(self.0.len() / 6)
    }

    pub fn entry(&self, nth: usize) -> Lexeme<'a> {
        let first = 4 + 4 * self.count();
        let begin = match nth {
            0 => first,
            nth => first + self.word(4 * nth),
        };
        let end = first + self.word(4 + 4 * nth);
        let entry = self.0.get(begin..end).unwrap_or(&[]);
        let len = match entry {
            [low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
            _ => 0,
        };
        let lexeme = entry.get(2..2 + len).unwrap_or(&[]);
        Lexeme {
            text: std::str::from_utf8(lexeme).unwrap_or(""),
            positions: entry.get(2 + len..).unwrap_or(&[]),
        }
    }

    pub fn iter(self) -> impl ExactSizeIterator<Item = Lexeme<'a>> {
        (0..self.count()).map(move |nth| self.entry(nth))
    }

    /// The first entry that is not below a lexeme.
    fn lower_bound(&self, lexeme: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = (low + high) / 2;
            match self.entry(middle).text.as_bytes() < lexeme {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    pub fn find(&self, lexeme: &str) -> Option<Lexeme<'a>> {
        self.matching(lexeme, false).next()
    }

    /// The entries that a query's operand means: the one, or all that begin so.
    pub fn matching<'q>(
        self,
        lexeme: &'q str,
        prefix: bool,
    ) -> impl Iterator<Item = Lexeme<'a>> + use<'a, 'q> {
        let first = self.lower_bound(lexeme.as_bytes());
        let most = if prefix { usize::MAX } else { 1 };
        let rest = (first..self.count()).map(move |nth| self.entry(nth));
        rest.take(most).take_while(move |entry| match prefix {
            true => entry.text.starts_with(lexeme),
            false => entry.text == lexeme,
        })
    }

    /// The bytes that PostgreSQL keeps of such a value: what it compares first.
    fn postgresql_size(&self) -> usize {
        const HEADER: usize = 8;
        const ENTRY: usize = 4;
        let mut data = 0;
        for entry in self.iter() {
            data = stored_size(data, entry.text.len(), entry.count());
        }
        HEADER + ENTRY * self.count() + data
    }
}

/// Bytes of lexemes and positions with one more.
fn stored_size(before: usize, lexeme: usize, positions: usize) -> usize {
    match positions {
        0 => before + lexeme,
        n => (before + lexeme).next_multiple_of(2) + 2 + 2 * n,
    }
}

/// Bytes in whose order vectors are: shorter ones first, then PostgreSQL's order of entries.
pub fn ordered_form(bytes: &[u8]) -> Cow<'_, [u8]> {
    let vector = TsVector::new(bytes);
    let mut form = Vec::with_capacity(bytes.len() + 8);
    form.extend_from_slice(&(vector.postgresql_size() as u32).to_be_bytes());
    form.extend_from_slice(&(vector.count() as u32).to_be_bytes());
    for entry in vector.iter() {
        let has_positions = entry.count() > 0;
        form.push(u8::from(!has_positions));
        form.extend_from_slice(entry.text.as_bytes());
        form.push(0);
        if has_positions {
            // More positions, and later ones, come first.
            form.push(!(entry.count() as u8));
            for position in entry.positions() {
                form.extend_from_slice(&(!position.place()).to_be_bytes());
                form.push(!position.weight());
            }
        }
    }
    Cow::Owned(form)
}

/// Lexemes as they come, made into a value.
#[derive(Default)]
pub struct TsVectorBuilder {
    entries: Vec<(String, Vec<Position>)>,
}

impl TsVectorBuilder {
    pub fn push(&mut self, lexeme: String, positions: Vec<Position>) {
        self.entries.push((lexeme, positions));
    }

    /// Sorted, each lexeme and each of its places once.
    ///
    /// # Errors
    /// 54000 where lexemes and positions are more than a value holds.
    pub fn build(mut self) -> Result<Vec<u8>> {
        self.entries.sort_by(|a, b| a.0.cmp(&b.0));
        self.entries.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1.append(&mut next.1);
            }
            same
        });
        let mut ends = Vec::with_capacity(self.entries.len());
        let (mut entries, mut size) = (Vec::new(), 0);
        for (lexeme, positions) in &mut self.entries {
            unite(positions);
            size = stored_size(size, lexeme.len(), positions.len());
            entries.extend_from_slice(&(lexeme.len() as u16).to_le_bytes());
            entries.extend_from_slice(lexeme.as_bytes());
            for position in positions {
                entries.extend_from_slice(&position.0.to_le_bytes());
            }
            ends.push(entries.len() as u32);
        }
        if size > MAX_BYTES {
            return Err(too_long(size));
        }
        let mut out = Vec::with_capacity(4 + 4 * ends.len() + entries.len());
        out.extend_from_slice(&(ends.len() as u32).to_le_bytes());
        for end in ends {
            out.extend_from_slice(&end.to_le_bytes());
        }
        out.append(&mut entries);
        Ok(out)
    }
}

/// Positions in order, each place once, with the greatest of its weights.
fn unite(positions: &mut Vec<Position>) {
    positions.sort_by(|a, b| match a.place().cmp(&b.place()) {
        Ordering::Equal => b.weight().cmp(&a.weight()),
        order => order,
    });
    positions.dedup_by_key(|position| position.place());
    positions.truncate(MAX_POSITIONS);
}

#[cold]
fn too_long(bytes: usize) -> Error {
    Error::new(
        state::PROGRAM_LIMIT_EXCEEDED,
        format!("string is too long for tsvector ({bytes} bytes, max {MAX_BYTES} bytes)"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(entries: &[(&str, &[(u16, Weight)])]) -> Vec<u8> {
        let mut builder = TsVectorBuilder::default();
        for (lexeme, positions) in entries {
            let positions = positions.iter().map(|p| Position::new(p.0, p.1)).collect();
            builder.push(lexeme.to_string(), positions);
        }
        builder.build().unwrap()
    }

    #[test]
    fn lexemes_are_sorted_and_their_places_united() {
        let bytes = vector(&[
            ("b", &[(7, 0), (3, 1)]),
            ("a", &[]),
            ("b", &[(3, 3), (9, 0)]),
        ]);
        let vector = TsVector::new(&bytes);
        let texts: Vec<&str> = vector.iter().map(|entry| entry.text).collect();
        assert_eq!(texts, ["a", "b"]);
        let places: Vec<(u16, Weight)> = vector
            .find("b")
            .unwrap()
            .positions()
            .map(|p| (p.place(), p.weight()))
            .collect();
        assert_eq!(places, [(3, 3), (7, 0), (9, 0)]);
        assert_eq!(vector.find("a").unwrap().count(), 0);
        assert!(vector.find("c").is_none());
    }

    #[test]
    fn a_prefix_finds_all_that_begin_so() {
        let bytes = vector(&[("ab", &[]), ("abc", &[]), ("abd", &[]), ("b", &[])]);
        let vector = TsVector::new(&bytes);
        let found: Vec<&str> = vector.matching("abc", true).map(|e| e.text).collect();
        assert_eq!(found, ["abc"]);
        assert_eq!(vector.matching("ab", true).count(), 3);
        assert_eq!(vector.matching("", true).count(), 4);
    }

    #[test]
    fn damaged_bytes_are_read_without_harm() {
        for len in 0..40 {
            let bytes = vec![0xee; len];
            let vector = TsVector::new(&bytes);
            assert!(vector.iter().all(|entry| entry.text.is_empty()));
        }
    }
}
