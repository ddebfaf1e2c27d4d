//! Values of type `jsonb`: a tree as bytes, read where it lies.
//!
//! ```text
//!   null, false, true    00, 01, 02
//!   number               03, then as Numeric::write_stored
//!   string               04, then UTF-8
//!   array                05 | depth u16 | count u32 | end u32 of each element  | elements
//!   object               06 | depth u16 | count u32 | end u32 of each key, then of each value | keys | values
//! ```
//! Ends count from the first byte after them, so a value means the same wherever its bytes lie and
//! is put into another by copying. An object's keys are sorted by length, then by bytes
//! (PostgreSQL's order, which is what users see), and are unique. Depth is the levels of nesting,
//! one for a container of scalars; it is bounded by [`MAX_DEPTH`], so that walks may recurse.
//! Reading tolerates any bytes: what is damaged reads as null or as shorter.

mod build;
mod order;
#[cfg(test)]
mod tests;
mod write;

pub use build::Json;
pub use order::{contains, write_key};
pub use write::write_string;

use crate::error::state;
use crate::{Error, Numeric};
use std::sync::Arc;

/// Levels that arrays and objects may nest. Walks recurse on stacks of 8 MiB, whose half this
/// leaves to the rest.
pub const MAX_DEPTH: usize = 4000;
/// Bytes that the contents of one container may have.
pub const MAX_BYTES: usize = 0x0fff_ffff;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const NUMBER: u8 = 3;
const STRING: u8 = 4;
const ARRAY: u8 = 5;
const OBJECT: u8 = 6;

/// Tag, depth, count.
const HEADER: usize = 7;
const _: () = assert!(MAX_DEPTH <= u16::MAX as usize);

/// A value that owns its bytes; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jsonb(Arc<[u8]>);

/// A value somewhere inside of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonRef<'a>(&'a [u8]);

/// What a value is.
#[derive(Clone, Debug)]
pub enum View<'a> {
    Null,
    Bool(bool),
    Number(Numeric),
    String(&'a str),
    Array(Elements<'a>),
    Object(Members<'a>),
}

/// Parts of a container by their number.
#[derive(Clone, Copy, Debug)]
struct Slots<'a> {
    ends: &'a [u8],
    data: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    count: usize,
    slots: Slots<'a>,
}

#[derive(Clone, Copy, Debug)]
pub struct Members<'a> {
    count: usize,
    slots: Slots<'a>,
}

/// 54001, as PostgreSQL says it where its stack ends.
#[cold]
pub fn too_deep() -> Error {
    Error::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").hint(format!(
        "Arrays and objects of a JSON value may nest {MAX_DEPTH} levels deep."
    ))
}

impl Jsonb {
    /// From bytes as they were stored.
    pub fn from_stored(bytes: &[u8]) -> Jsonb {
        Jsonb(bytes.into())
    }
    /// The same, of bytes that need not be copied.
    pub fn from_shared(bytes: Arc<[u8]>) -> Jsonb {
        Jsonb(bytes)
    }
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    pub fn root(&self) -> JsonRef<'_> {
        JsonRef(&self.0)
    }
}

impl<'a> JsonRef<'a> {
    pub fn view(self) -> View<'a> {
        let rest = self.0.get(1..).unwrap_or_default();
        match self.0.first() {
            Some(&FALSE) => View::Bool(false),
            Some(&TRUE) => View::Bool(true),
            Some(&NUMBER) => Numeric::read_stored(rest).map_or(View::Null, View::Number),
            Some(&STRING) => View::String(std::str::from_utf8(rest).unwrap_or_default()),
            Some(&ARRAY) => {
                let (count, slots) = self.slots(1);
                View::Array(Elements { count, slots })
            }
            Some(&OBJECT) => {
                let (count, slots) = self.slots(2);
                View::Object(Members { count, slots })
            }
            _ => View::Null,
        }
    }

    fn slots(self, per_item: usize) -> (usize, Slots<'a>) {
        let count = self.0.get(3..HEADER).map_or(0, |b| word(b, 0));
        let ends = count.saturating_mul(4 * per_item);
        match self.0.get(HEADER..).and_then(|b| b.split_at_checked(ends)) {
            Some((ends, data)) => (count, Slots { ends, data }),
            None => (
                0,
                Slots {
                    ends: &[],
                    data: &[],
                },
            ),
        }
    }

    /// A copy of its own.
    pub fn to_owned(self) -> Jsonb {
        Jsonb(self.0.into())
    }
    pub fn is_null(self) -> bool {
        self.0.first().is_none_or(|&tag| tag == NULL)
    }
    pub fn is_array(self) -> bool {
        self.0.first() == Some(&ARRAY)
    }
    pub fn is_object(self) -> bool {
        self.0.first() == Some(&OBJECT)
    }
    pub fn is_container(self) -> bool {
        self.is_array() || self.is_object()
    }
    /// The same place in the same bytes.
    pub fn is_same(self, other: JsonRef<'_>) -> bool {
        self.0.as_ptr_range() == other.0.as_ptr_range()
    }
    /// Whether another value is this one or a part of it, by where it lies.
    pub fn holds(self, other: JsonRef<'_>) -> bool {
        let (outer, inner) = (self.0.as_ptr_range(), other.0.as_ptr_range());
        outer.start <= inner.start && inner.end <= outer.end
    }
    /// Levels of containers, this one included.
    fn depth(self) -> usize {
        match self.0 {
            [ARRAY | OBJECT, low, high, ..] => u16::from_le_bytes([*low, *high]).into(),
            _ => 0,
        }
    }
    /// The member so named, of an object.
    pub fn member(self, key: &str) -> Option<JsonRef<'a>> {
        match self.view() {
            View::Object(members) => members.get(key),
            _ => None,
        }
    }
    /// The element at an index, from the end where it is negative, of an array.
    pub fn element(self, index: i64) -> Option<JsonRef<'a>> {
        match self.view() {
            View::Array(elements) => {
                let count = elements.len() as i64;
                let at = if index < 0 { index + count } else { index };
                usize::try_from(at).ok().and_then(|at| elements.get(at))
            }
            _ => None,
        }
    }
}

fn word(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at..).and_then(|b| b.first_chunk::<4>()) {
        Some(bytes) => u32::from_le_bytes(*bytes) as usize,
        None => 0,
    }
}

impl<'a> Slots<'a> {
    fn get(self, i: usize) -> &'a [u8] {
        let start = if i == 0 {
            0
        } else {
            word(self.ends, (i - 1) * 4)
        };
        self.data
            .get(start..word(self.ends, i * 4))
            .unwrap_or_default()
    }
}

impl<'a> Elements<'a> {
    pub fn len(&self) -> usize {
        self.count
    }
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    pub fn get(&self, i: usize) -> Option<JsonRef<'a>> {
        (i < self.count).then(|| JsonRef(self.slots.get(i)))
    }
    pub fn iter(&self) -> impl Iterator<Item = JsonRef<'a>> + use<'a> {
        let slots = self.slots;
        (0..self.count).map(move |i| JsonRef(slots.get(i)))
    }
}

/// PostgreSQL's order of keys.
fn key_order(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl<'a> Members<'a> {
    pub fn len(&self) -> usize {
        self.count
    }
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    pub fn key(&self, i: usize) -> &'a str {
        std::str::from_utf8(self.slots.get(i)).unwrap_or_default()
    }
    pub fn value(&self, i: usize) -> JsonRef<'a> {
        JsonRef(self.slots.get(self.count + i))
    }
    /// Where a key is.
    pub fn find(&self, key: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match key_order(self.slots.get(middle), key.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }
    pub fn get(&self, key: &str) -> Option<JsonRef<'a>> {
        self.find(key).map(|i| self.value(i))
    }
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, JsonRef<'a>)> + use<'a> {
        let members = *self;
        (0..members.count).map(move |i| (members.key(i), members.value(i)))
    }
}
