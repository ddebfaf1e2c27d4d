//! Making values: a tree, some of whose branches may be bytes of other values, and the bytes it
//! becomes.

use super::*;
use crate::Result;
use std::borrow::Cow;

/// A value in the making. Members of an object may come in any order; of those with one key the
/// last one stays.
#[derive(Clone, Debug)]
pub enum Json<'a> {
    Null,
    Bool(bool),
    Number(Numeric),
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
    /// A part of another value, taken as it is.
    Part(JsonRef<'a>),
}

impl<'a> From<JsonRef<'a>> for Json<'a> {
    fn from(part: JsonRef<'a>) -> Json<'a> {
        Json::Part(part)
    }
}

impl Json<'_> {
    /// The value as bytes. 54001 where it is nested too deeply, 54000 where a container is too
    /// large.
    pub fn encode(mut self) -> Result<Jsonb> {
        let mut out = Vec::with_capacity(self.bytes_of_parts().min(MAX_BYTES));
        write(&mut self, 0, &mut out)?;
        Ok(Jsonb(out.into()))
    }
}

impl Json<'_> {
    /// How much of it is bytes of other values: the most of what is large.
    fn bytes_of_parts(&self) -> usize {
        match self {
            Json::Part(part) => part.0.len(),
            Json::Array(items) => items.iter().map(Json::bytes_of_parts).sum(),
            Json::Object(members) => members.iter().map(|(_, v)| v.bytes_of_parts()).sum(),
            _ => 0,
        }
    }
}

/// Refuses a part that makes a container too large, before it is copied.
fn check_room(part: &Json<'_>, ends: usize, out: &[u8], what: &str) -> Result<()> {
    match part {
        Json::Part(part) if out.len() - ends + part.0.len() > MAX_BYTES => Err(too_large(what)),
        _ => Ok(()),
    }
}

#[cold]
fn too_large(what: &str) -> Error {
    Error::new(
        state::PROGRAM_LIMIT_EXCEEDED,
        format!("total size of jsonb {what} elements exceeds the maximum of {MAX_BYTES} bytes"),
    )
}

/// Appends a value that has `above` containers around it; tells its own depth.
fn write(value: &mut Json<'_>, above: usize, out: &mut Vec<u8>) -> Result<usize> {
    match value {
        Json::Null => out.push(NULL),
        Json::Bool(false) => out.push(FALSE),
        Json::Bool(true) => out.push(TRUE),
        Json::Number(number) => {
            out.push(NUMBER);
            number.write_stored(out);
        }
        Json::String(text) => {
            out.push(STRING);
            out.extend_from_slice(text.as_bytes());
        }
        Json::Part(part) => {
            if above + part.depth() > MAX_DEPTH {
                return Err(too_deep());
            }
            match part.0 {
                [] => out.push(NULL),
                bytes => out.extend_from_slice(bytes),
            }
            return Ok(part.depth());
        }
        Json::Array(items) => return write_array(items, above, out),
        Json::Object(members) => return write_object(members, above, out),
    }
    Ok(0)
}

/// A container's header with room for its ends; gives where those begin.
fn open(tag: u8, count: usize, ends: usize, above: usize, out: &mut Vec<u8>) -> Result<usize> {
    if above >= MAX_DEPTH {
        return Err(too_deep());
    }
    out.extend_from_slice(&[tag, 0, 0]);
    out.extend_from_slice(&(count as u32).to_le_bytes());
    let at = out.len();
    out.resize(at + 4 * ends, 0);
    Ok(at)
}

/// Notes where the part so numbered ends.
fn close_part(out: &mut [u8], ends: usize, count: usize, number: usize) {
    let end = (out.len() - ends - 4 * count) as u32;
    out[ends + 4 * number..][..4].copy_from_slice(&end.to_le_bytes());
}

fn write_array(items: &mut [Json<'_>], above: usize, out: &mut Vec<u8>) -> Result<usize> {
    if items.len() > MAX_BYTES {
        return Err(too_large("array"));
    }
    let count = items.len();
    let ends = open(ARRAY, count, count, above, out)?;
    let mut deepest = 0;
    for (i, item) in items.iter_mut().enumerate() {
        check_room(item, ends + 4 * count, out, "array")?;
        deepest = deepest.max(write(item, above + 1, out)?);
        close_part(out, ends, count, i);
    }
    close(out, ends, count, deepest, "array")
}

fn write_object(
    members: &mut Vec<(Cow<'_, str>, Json<'_>)>,
    above: usize,
    out: &mut Vec<u8>,
) -> Result<usize> {
    if members.len() > MAX_BYTES / 2 {
        return Err(too_large("object"));
    }
    // The last of equals must come first to be the one that stays.
    members.reverse();
    members.sort_by(|a, b| key_order(a.0.as_bytes(), b.0.as_bytes()));
    members.dedup_by(|later, kept| later.0 == kept.0);
    let count = members.len();
    let ends = open(OBJECT, count, 2 * count, above, out)?;
    for (i, (key, _)) in members.iter().enumerate() {
        out.extend_from_slice(key.as_bytes());
        close_part(out, ends, 2 * count, i);
    }
    let mut deepest = 0;
    for (i, (_, value)) in members.iter_mut().enumerate() {
        check_room(value, ends + 8 * count, out, "object")?;
        deepest = deepest.max(write(value, above + 1, out)?);
        close_part(out, ends, 2 * count, count + i);
    }
    close(out, ends, 2 * count, deepest, "object")
}

fn close(out: &mut [u8], ends: usize, count: usize, below: usize, what: &str) -> Result<usize> {
    if out.len() - ends - 4 * count > MAX_BYTES {
        return Err(too_large(what));
    }
    let depth = below + 1;
    out[ends - HEADER + 1..][..2].copy_from_slice(&(depth as u16).to_le_bytes());
    Ok(depth)
}
