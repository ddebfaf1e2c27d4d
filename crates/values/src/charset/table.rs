//! Which bytes are which character, read from two texts when a character set is first used.
//!
//! `single_byte.txt`: a name, then the characters of 0x80 to 0xff; `fffd` where there is none.
//! `multi_byte.txt`: `= name`, then the characters of consecutive codes from the one that a line
//! begins with, or one as `U+…`. `< U+… code`: the code that this character is written as, 0 for
//! none, where that is not the lowest that is read as it.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::{Charset, NAMES};

type Map<K, V> = HashMap<K, V, FixedState>;

/// Of codes from 0x80 on; below they are ASCII.
#[derive(Default)]
pub struct Table {
    characters: Map<u32, char>,
    codes: Map<char, u32>,
}

type Lazy = LazyLock<Option<Table>, Box<dyn Fn() -> Option<Table> + Send + Sync>>;

static TABLES: LazyLock<Vec<Lazy>> = LazyLock::new(|| {
    let lazy = |name: &'static &'static str| -> Lazy {
        LazyLock::new(Box::new(move || Table::read(name)))
    };
    NAMES.iter().map(lazy).collect()
});

impl Table {
    pub fn of(charset: Charset) -> Option<&'static Table> {
        TABLES[usize::from(charset.0)].as_ref()
    }

    fn read(name: &str) -> Option<Table> {
        Table::single_byte(name).or_else(|| Table::multi_byte(name))
    }

    fn single_byte(name: &str) -> Option<Table> {
        let mut lines = include_str!("single_byte.txt").lines();
        lines.find(|line| *line == name)?;
        let mut table = Table::default();
        let words = lines.take(8).flat_map(|line| line.split(' '));
        for (code, word) in (0x80..).zip(words) {
            let c = u32::from_str_radix(word, 16)
                .ok()
                .and_then(char::from_u32)?;
            if c != char::REPLACEMENT_CHARACTER {
                table.enter(code, c);
            }
        }
        Some(table)
    }

    fn multi_byte(name: &str) -> Option<Table> {
        let mut lines = include_str!("multi_byte.txt").lines();
        lines.find(|line| line.strip_prefix("= ") == Some(name))?;
        let numbered = |word: &str| {
            let number = word.strip_prefix("U+")?;
            u32::from_str_radix(number, 16)
                .ok()
                .and_then(char::from_u32)
        };
        let mut table = Table::default();
        for line in lines.take_while(|line| !line.starts_with('=')) {
            let (first, rest) = line.split_once(' ')?;
            if first == "<" {
                let (c, code) = rest.split_once(' ')?;
                let (c, code) = (numbered(c)?, u32::from_str_radix(code, 16).ok()?);
                table.codes.insert(c, code);
                if code == 0 {
                    table.codes.remove(&c);
                }
                continue;
            }
            let first = u32::from_str_radix(first, 16).ok()?;
            match numbered(rest) {
                Some(c) => table.enter(first, c),
                None => (first..)
                    .zip(rest.chars())
                    .for_each(|(code, c)| table.enter(code, c)),
            }
        }
        Some(table)
    }

    fn enter(&mut self, code: u32, c: char) {
        self.characters.insert(code, c);
        let known = self.codes.entry(c).or_insert(code);
        *known = code.min(*known);
    }

    /// The character that these bytes are.
    pub fn character(&self, bytes: &[u8]) -> Option<char> {
        if let [byte @ ..0x80] = bytes {
            return Some(char::from(*byte));
        }
        let code = bytes
            .iter()
            .fold(0, |code, byte| code << 8 | u32::from(*byte));
        self.characters.get(&code).copied()
    }

    /// Appends a character; false where it has no equivalent.
    pub fn write(&self, c: char, out: &mut Vec<u8>) -> bool {
        if c.is_ascii() {
            out.push(c as u8);
            return true;
        }
        let Some(code) = self.codes.get(&c) else {
            return false;
        };
        let bytes = code.to_be_bytes();
        let first = bytes.iter().position(|b| *b != 0).unwrap_or(3);
        out.extend_from_slice(&bytes[first..]);
        true
    }
}
