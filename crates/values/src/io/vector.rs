//! `vector`: floats side by side, each four bytes, little endian.

use crate::eval::EvalContext;
use crate::io::base::{BaseInputOutput, Modifier};
use crate::io::scalar::write_float4;
use throng_types::error::state;
use throng_types::sqltype::made;
use throng_types::{Error, Result, SqlState, interrupt};

/// Of one value.
pub const MOST_DIMENSIONS: usize = 16_000;
const SIZE: usize = size_of::<f32>();

pub(super) static VECTOR: BaseInputOutput = BaseInputOutput {
    ty: made::VECTOR,
    input,
    output: |_: &EvalContext<'_>, value, out| write(value, out),
    receive: |_, binary| receive(binary),
    send: |_, value, out| {
        send(value, out);
        Ok(())
    },
    modifier: Some(Modifier {
        from_written,
        apply: |value, typmod, _| fits(value.len() / SIZE, typmod).map(|()| None),
    }),
};

/// The numbers of a value.
pub fn numbers(value: &[u8]) -> impl ExactSizeIterator<Item = f32> + Clone {
    let parts = value.chunks_exact(SIZE);
    parts.map(|part| f32::from_le_bytes([part[0], part[1], part[2], part[3]]))
}

/// The bytes of a value of these numbers.
///
/// # Errors
/// 22000 where they are none, or no numbers that a vector has; 54000 where they are too many.
pub fn to_bytes(numbers: &[f32]) -> Result<Vec<u8>> {
    if numbers.is_empty() {
        return Err(wrong(
            state::DATA_EXCEPTION,
            "vector must have at least 1 dimension",
        ));
    }
    if numbers.len() > MOST_DIMENSIONS {
        let message = format!("vector cannot have more than {MOST_DIMENSIONS} dimensions");
        return Err(wrong(state::PROGRAM_LIMIT_EXCEEDED, message));
    }
    for number in numbers {
        let message = match number {
            n if n.is_nan() => "NaN not allowed in vector",
            n if n.is_infinite() => "infinite value not allowed in vector",
            _ => continue,
        };
        return Err(wrong(state::DATA_EXCEPTION, message));
    }
    Ok(numbers.iter().flat_map(|n| n.to_le_bytes()).collect())
}

#[cold]
fn wrong(code: SqlState, message: impl Into<String>) -> Error {
    Error::new(code, message)
}

/// That a value has as many dimensions as its type asks for; -1 for any.
pub fn fits(dimensions: usize, typmod: i32) -> Result<()> {
    if typmod < 0 || typmod as usize == dimensions {
        return Ok(());
    }
    let message = format!("expected {typmod} dimensions, not {dimensions}");
    Err(wrong(state::DATA_EXCEPTION, message))
}

fn from_written(modifiers: &[i32]) -> Result<i32> {
    let invalid = |message: String| Err(wrong(state::INVALID_PARAMETER_VALUE, message));
    match modifiers {
        [..=0] => invalid("dimensions for type vector must be at least 1".to_owned()),
        [dimensions] if *dimensions as usize > MOST_DIMENSIONS => invalid(format!(
            "dimensions for type vector cannot exceed {MOST_DIMENSIONS}"
        )),
        [dimensions] => Ok(*dimensions),
        _ => invalid("invalid type modifier".to_owned()),
    }
}

fn input(_: &EvalContext<'_>, text: &str, typmod: i32) -> Result<Vec<u8>> {
    let invalid = || {
        let message = format!("invalid input syntax for type vector: \"{text}\"");
        wrong(state::INVALID_TEXT_REPRESENTATION, message)
    };
    let blank = |c: char| c.is_ascii_whitespace() || c == '\u{b}';
    let Some(inner) = text.trim_start_matches(blank).strip_prefix('[') else {
        return Err(invalid().detail("Vector contents must start with \"[\"."));
    };
    let (inner, behind) = inner.split_once(']').ok_or_else(invalid)?;
    if !behind.trim_matches(blank).is_empty() {
        return Err(invalid().detail("Junk after closing right brace."));
    }
    let mut found = Vec::new();
    if !inner.trim_matches(blank).is_empty() {
        for part in inner.split(',') {
            interrupt::poll()?;
            if found.len() == MOST_DIMENSIONS {
                let message = format!("vector cannot have more than {MOST_DIMENSIONS} dimensions");
                return Err(wrong(state::PROGRAM_LIMIT_EXCEEDED, message));
            }
            let written = part.trim_matches(blank);
            let number: f32 = written.parse().map_err(|_| invalid())?;
            if number.is_infinite() && written.contains(|c: char| c.is_ascii_digit()) {
                let message = format!("\"{written}\" is out of range for type vector");
                return Err(wrong(state::NUMERIC_VALUE_OUT_OF_RANGE, message));
            }
            found.push(number);
        }
    }
    let bytes = to_bytes(&found)?;
    fits(found.len(), typmod)?;
    Ok(bytes)
}

fn write(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'[');
    for (place, number) in numbers(value).enumerate() {
        if place > 0 {
            out.push(b',');
        }
        // With a positive setting the shortest form that is read back as the same.
        write_float4(number, 1, out);
    }
    out.push(b']');
}

fn send(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&((value.len() / SIZE) as u16).to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    numbers(value).for_each(|n| out.extend_from_slice(&n.to_be_bytes()));
}

fn receive(binary: &[u8]) -> Result<Vec<u8>> {
    let damaged = || {
        wrong(
            state::PROTOCOL_VIOLATION,
            "insufficient data left in message",
        )
    };
    let (head, rest) = binary.split_first_chunk::<4>().ok_or_else(damaged)?;
    let count = usize::from(u16::from_be_bytes([head[0], head[1]]));
    if head[2..] != [0, 0] {
        let unused = u16::from_be_bytes([head[2], head[3]]);
        let message = format!("expected unused to be 0, not {unused}");
        return Err(wrong(state::DATA_EXCEPTION, message));
    }
    if rest.len() != count * SIZE {
        return Err(damaged());
    }
    let parts = rest.chunks_exact(SIZE);
    let found: Vec<f32> = parts
        .map(|part| f32::from_be_bytes([part[0], part[1], part[2], part[3]]))
        .collect();
    to_bytes(&found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_is_read_as_it_is_sent() {
        let value = to_bytes(&[1.5, -2.0]).expect("a vector");
        let mut sent = Vec::new();
        send(&value, &mut sent);
        assert_eq!(receive(&sent).ok(), Some(value.clone()));
        let mut shown = Vec::new();
        write(&value, &mut shown);
        assert_eq!(shown, b"[1.5,-2]");
        assert!(receive(&[0, 2, 0, 0, 1]).is_err());
        assert!(to_bytes(&[f32::NAN]).is_err());
    }
}
