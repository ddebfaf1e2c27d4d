//! Where a container would lie in the form PostgreSQL keeps a `jsonb` in: what `keyvalue()` shows
//! as `id`.
//!
//! There a container is four bytes and four for each element, or for each key and each value; then
//! what they are, numbers and containers at multiples of four.

use throng_types::Numeric;
use throng_types::jsonb::{JsonRef, View};

const WORD: usize = 4;

fn aligned(at: usize) -> usize {
    at.next_multiple_of(WORD)
}

/// Bytes from the beginning of a container to one in it; None where it is in another. Adds what was
/// looked at to `steps`.
pub fn of(base: JsonRef<'_>, target: JsonRef<'_>, steps: &mut u64) -> Option<usize> {
    let (mut container, mut before) = (base, 0);
    while !container.is_same(target) {
        let (child, at) = child_with(container, target)?;
        *steps += (at / WORD) as u64;
        (container, before) = (child, before + at);
    }
    Some(before)
}

/// The child that has the target in it, and where it lies.
fn child_with<'a>(container: JsonRef<'a>, target: JsonRef<'_>) -> Option<(JsonRef<'a>, usize)> {
    match container.view() {
        View::Array(elements) => {
            let mut at = WORD + WORD * elements.len();
            for element in elements.iter() {
                if element.holds(target) {
                    return Some((element, aligned(at)));
                }
                at = end(at, element);
            }
        }
        View::Object(members) => {
            let mut at = WORD + 2 * WORD * members.len();
            at += members.iter().map(|(key, _)| key.len()).sum::<usize>();
            for (_, value) in members.iter() {
                if value.holds(target) {
                    return Some((value, aligned(at)));
                }
                at = end(at, value);
            }
        }
        _ => {}
    }
    None
}

/// Where a value that may begin at a place ends.
fn end(at: usize, value: JsonRef<'_>) -> usize {
    match value.view() {
        View::Null | View::Bool(_) => at,
        View::String(text) => at + text.len(),
        View::Number(number) => aligned(at) + number_bytes(&number),
        View::Array(elements) => {
            let start = aligned(at);
            let first = start + WORD + WORD * elements.len();
            elements.iter().fold(first, end)
        }
        View::Object(members) => {
            let start = aligned(at);
            let keys: usize = members.iter().map(|(key, _)| key.len()).sum();
            let first = start + WORD + 2 * WORD * members.len() + keys;
            members.iter().fold(first, |at, (_, value)| end(at, value))
        }
    }
}

/// A length, a header that is short where scale and weight are small, and two bytes for four
/// digits.
fn number_bytes(number: &Numeric) -> usize {
    let groups = number.to_groups();
    let short = groups.scale <= 63 && (-64..=63).contains(&groups.weight);
    WORD + if short { 2 } else { 4 } + 2 * groups.digits.len()
}
