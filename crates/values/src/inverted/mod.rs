//! Operator classes of inverted indexes (GIN): which keys a value has, and which keys a condition
//! asks for.
//!
//! ```text
//!   row        {3,1,1}        ──extract_value──►  keys 1, 3
//!   condition  col @> {1,3}   ──extract_query──►  All [Key 1, Key 3]    rows with all
//!              col && {1,3}                       Any [Key 1, Key 3]    rows with one
//!              col <@ {1,3}                       Any [Key 1, Key 3, EMPTY]
//!              col @> {}                          Everything
//! ```
//! A [`Search`] is a *necessary* condition: it may find too many rows, never too few. The condition
//! itself is always asked of each row that was found, so keys may be hashes, and what a class
//! cannot say in keys is [`Search::Everything`].
//!
//! A class is a file here with an [`OperatorClass`], and a line in [`CLASSES`].
//!
//! Keys are bytes: equal values must have equal ones, and none may be a prefix of another. They are
//! kept on disk: what a class makes of a value must never change. The first byte of a key is its
//! category, so that rows without any key are found too:
//!
//! ```text
//!   00 key…   a key of the class
//!   01        a NULL among the items of a value
//!   02        the value has no keys (an empty array)
//!   03        the value is NULL
//! ```
//! Source: PostgreSQL's manual, "GIN Indexes" (extensibility), and `access/gin/README`, "Null
//! categories".

mod array;
mod hstore;
mod jsonb;
mod path;
mod text_search;
mod trigram;

use std::ops::Bound;

use throng_types::sqltype::type_info;
use throng_types::{Datum, Oid, Result, oid};

use crate::func::EvalContext;
use crate::func::extension::extension_of_type;

const NORMAL: u8 = 0;
const NULL_KEY: u8 = 1;
const EMPTY_ITEM: u8 = 2;
const NULL_ITEM: u8 = 3;

/// What an inverted index does with values of a type.
pub struct OperatorClass {
    pub oid: u32,
    pub name: &'static str,
    pub family: u32,
    /// The type whose values it takes; `ANYARRAY`: all arrays whose elements have an order.
    pub input: Oid,
    /// The type of the keys (`opckeytype`).
    pub key: Oid,
    /// Used where an index names none.
    pub default: bool,
    /// The extension that brings it; none: it is always there.
    pub extension: Option<&'static str>,
    pub strategies: &'static [Strategy],
    /// Support functions as `pg_amproc` lists them: number, oid, name.
    pub support: &'static [(i16, u32, &'static str)],
    /// Adds the keys of a value, which is not NULL; the same key may be added more than once.
    pub extract_value: fn(&Datum, &mut Keys) -> Result<()>,
    /// What `column operator query` asks for, by the strategy's number. The query is not NULL.
    pub extract_query: fn(&Datum, i16, &EvalContext<'_>) -> Result<Search>,
}

/// An operator that a class finds rows for: `column operator query`.
pub struct Strategy {
    pub number: i16,
    pub operator: &'static str,
    /// The type of the query; `ANYARRAY`: as the column's.
    pub query: Oid,
}

/// Classes by name. Those of extensions stand here, too.
pub static CLASSES: &[&OperatorClass] = &[
    &array::ARRAY_OPS,
    &jsonb::JSONB_OPS,
    &path::PATH_OPS,
    &text_search::TSVECTOR_OPS,
    &trigram::TRIGRAM_OPS,
    &hstore::HSTORE_OPS,
];

/// The class of that name.
pub fn class_named(name: &str) -> Option<&'static OperatorClass> {
    CLASSES.iter().find(|class| class.name == name).copied()
}

/// The class that an index on a column of that type has where it names none. A type of an extension
/// is there with the extension.
pub fn default_class(ty: Oid) -> Option<&'static OperatorClass> {
    let of_type = |name: &str| extension_of_type(ty).is_some_and(|own| own.name == name);
    let is_there = |class: &OperatorClass| class.extension.is_none_or(of_type);
    let fits = |class: &&&OperatorClass| class.default && is_there(class) && class.accepts(ty);
    CLASSES.iter().find(fits).copied()
}

impl OperatorClass {
    /// Whether it takes values of a type.
    pub fn accepts(&self, ty: Oid) -> bool {
        let ty = match ty {
            oid::VARCHAR => oid::TEXT,
            other => other,
        };
        match self.input {
            oid::ANYARRAY => type_info(ty).is_some_and(|info| info.is_array()),
            input => ty == input,
        }
    }

    /// The strategy for `column operator query`.
    pub fn strategy(&self, operator: &str, query: Oid) -> Option<i16> {
        let is_array = || type_info(query).is_some_and(|info| info.is_array());
        let takes = |of: Oid| of == query || of == oid::ANYARRAY && is_array();
        let found = self.strategies.iter();
        let mut found = found.filter(|s| s.operator == operator && takes(s.query));
        found.next().map(|strategy| strategy.number)
    }

    /// Adds all keys of a value of the index's column `column`, counted from 0.
    pub fn keys_of(&self, column: u8, value: &Datum, keys: &mut Keys) -> Result<()> {
        keys.column = column;
        if value.is_null() {
            keys.add(NULL_ITEM);
            return Ok(());
        }
        let before = keys.len();
        (self.extract_value)(value, keys)?;
        if keys.len() == before {
            keys.add(EMPTY_ITEM);
        }
        Ok(())
    }
}

/// Keys of a row, those of several columns one after another.
#[derive(Default)]
pub struct Keys {
    column: u8,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    /// Adds a key that `write` appends the bytes of.
    pub fn key(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        self.bytes.extend_from_slice(&[self.column, NORMAL]);
        let written = write(&mut self.bytes);
        if written.is_err() {
            self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
            return written;
        }
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Adds the key of a NULL among a value's items.
    pub fn null(&mut self) {
        self.add(NULL_KEY);
    }

    fn add(&mut self, category: u8) {
        self.bytes.extend_from_slice(&[self.column, category]);
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Bytes of the longest one.
    pub fn longest(&self) -> usize {
        let starts = std::iter::once(&0).chain(&self.ends);
        let lengths = starts.zip(&self.ends).map(|(start, end)| end - start);
        lengths.max().unwrap_or(0)
    }

    /// The keys in order, each once.
    pub fn sorted(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let of = |(start, end): (&usize, &usize)| &self.bytes[*start..*end];
        let mut keys: Vec<&[u8]> = starts.zip(&self.ends).map(of).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// Which rows may meet a condition, by their keys of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Search {
    /// All rows may.
    Everything,
    /// No row does.
    Nothing,
    /// Those that have this key: its category and its bytes.
    Key(Vec<u8>),
    /// Those that have a key in this range. A bound stands for all keys that begin with it.
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    All(Vec<Search>),
    Any(Vec<Search>),
    /// Those that so many of these find.
    AtLeast(usize, Vec<Search>),
}

impl Search {
    /// Rows with a key that `write` appends the bytes of.
    pub fn key(write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<Search> {
        let mut bytes = vec![NORMAL];
        write(&mut bytes)?;
        Ok(Search::Key(bytes))
    }

    /// Rows with a NULL among the value's items.
    pub fn null() -> Search {
        Search::Key(vec![NULL_KEY])
    }

    /// Rows whose value has no keys.
    pub fn empty() -> Search {
        Search::Key(vec![EMPTY_ITEM])
    }

    /// Rows with a key between two others.
    pub fn between(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Search {
        let whole = |key: &[u8]| [&[NORMAL], key].concat();
        let lower = match lower {
            Bound::Unbounded => Bound::Included(vec![NORMAL]),
            bound => bound.map(whole),
        };
        let upper = match upper {
            Bound::Unbounded => Bound::Included(vec![NORMAL]),
            bound => bound.map(whole),
        };
        Search::Range(lower, upper)
    }

    /// Rows with a key that begins so.
    pub fn prefix(prefix: &[u8]) -> Search {
        Search::between(Bound::Included(prefix), Bound::Included(prefix))
    }

    /// The same without what goes without saying: no part of it is everything or nothing.
    pub fn simplified(self) -> Search {
        match self {
            Search::All(parts) => {
                let mut kept = Vec::with_capacity(parts.len());
                for part in parts.into_iter().map(Search::simplified) {
                    match part {
                        Search::Everything => {}
                        Search::Nothing => return Search::Nothing,
                        Search::All(parts) => kept.extend(parts),
                        part if kept.contains(&part) && kept.len() < FEW => {}
                        part => kept.push(part),
                    }
                }
                one_of(kept, Search::Everything, Search::All)
            }
            Search::Any(parts) => {
                let mut kept = Vec::with_capacity(parts.len());
                for part in parts.into_iter().map(Search::simplified) {
                    match part {
                        Search::Nothing => {}
                        Search::Everything => return Search::Everything,
                        Search::Any(parts) => kept.extend(parts),
                        part => kept.push(part),
                    }
                }
                one_of(kept, Search::Nothing, Search::Any)
            }
            Search::AtLeast(mut least, parts) => {
                let mut kept = Vec::with_capacity(parts.len());
                for part in parts.into_iter().map(Search::simplified) {
                    match part {
                        Search::Nothing => {}
                        Search::Everything => least = least.saturating_sub(1),
                        part => kept.push(part),
                    }
                }
                match least {
                    0 => Search::Everything,
                    1 => one_of(kept, Search::Nothing, Search::Any),
                    least if least > kept.len() => Search::Nothing,
                    least if least == kept.len() => Search::All(kept),
                    least => Search::AtLeast(least, kept),
                }
            }
            other => other,
        }
    }

    /// Keys and ranges that are looked up.
    pub fn look_ups(&self) -> usize {
        match self {
            Search::Everything | Search::Nothing => 0,
            Search::Key(_) | Search::Range(..) => 1,
            Search::All(parts) | Search::Any(parts) | Search::AtLeast(_, parts) => {
                parts.iter().map(Search::look_ups).sum()
            }
        }
    }
}

/// Parts among which it is worth looking for one that is there already.
const FEW: usize = 32;

fn one_of(mut parts: Vec<Search>, none: Search, many: impl Fn(Vec<Search>) -> Search) -> Search {
    match parts.len() {
        0 => none,
        1 => parts.remove(0),
        _ => many(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Search {
        Search::Key(vec![NORMAL, byte])
    }

    #[test]
    fn what_goes_without_saying_is_left_out() {
        use Search::{All, Any, AtLeast, Everything, Nothing};
        let cases = [
            (All(vec![Everything, key(1)]), key(1)),
            (All(vec![]), Everything),
            (Any(vec![]), Nothing),
            (All(vec![key(1), Nothing]), Nothing),
            (Any(vec![key(1), Everything]), Everything),
            (
                All(vec![key(1), All(vec![key(2), key(1)])]),
                All(vec![key(1), key(2), key(1)]),
            ),
            (All(vec![key(1), key(1)]), key(1)),
            (AtLeast(2, vec![key(1), Everything, Nothing]), key(1)),
            (AtLeast(2, vec![key(1)]), Nothing),
            (AtLeast(2, vec![key(1), key(2)]), All(vec![key(1), key(2)])),
            (AtLeast(0, vec![key(1)]), Everything),
        ];
        for (search, simple) in cases {
            assert_eq!(search.simplified(), simple);
        }
    }

    #[test]
    fn rows_without_keys_have_one() {
        let empty = throng_types::Array {
            element: oid::INT4,
            dims: Vec::new(),
            items: Vec::new(),
        };
        let mut keys = Keys::default();
        for (column, value) in [Datum::Null, Datum::Array(empty.into())].iter().enumerate() {
            let class = &array::ARRAY_OPS;
            let added = class.keys_of(column as u8, value, &mut keys);
            added.expect("an array has keys");
        }
        assert_eq!(keys.sorted(), [&[0, NULL_ITEM][..], &[1, EMPTY_ITEM]]);
    }
}
