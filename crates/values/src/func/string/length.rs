//! How long a value may be: a function that can give much more than it was given asks before it
//! makes it.

use throng_observe::heap;
use throng_types::error::state;
use throng_types::{Datum, Error, Result, interrupt};

/// The longest value PostgreSQL allocates.
const MAX_BYTES: usize = 0x3fff_ffff;

/// Whether a value of so many bytes may be made: 54000 for one that is longer than any may be,
/// 53200 where long values take all the memory they may have.
#[inline]
pub fn fits(bytes: usize) -> Result<()> {
    interrupt::expect(bytes)?;
    match bytes <= MAX_BYTES && heap::has_room(bytes) {
        true => Ok(()),
        false => Err(refusal(bytes, "requested length too large".into())),
    }
}

/// The same for a string that is put together from parts, of which PostgreSQL says it otherwise.
#[inline]
pub fn buffer_fits(bytes: usize) -> Result<()> {
    interrupt::expect(bytes)?;
    match bytes <= MAX_BYTES && heap::has_room(bytes) {
        true => Ok(()),
        false => {
            let message =
                format!("string buffer exceeds maximum allowed length ({MAX_BYTES} bytes)");
            Err(refusal(bytes, message))
        }
    }
}

/// One value more of many; refused where there is no room for as many again.
#[inline]
pub fn gather(values: &mut Vec<Datum>, value: Datum) -> Result<()> {
    if values.len() == values.capacity() {
        fits(2 * values.len() * size_of::<Datum>())?;
    }
    values.push(value);
    Ok(())
}

#[cold]
fn refusal(bytes: usize, too_long: String) -> Error {
    match bytes > MAX_BYTES {
        true => Error::new(state::PROGRAM_LIMIT_EXCEEDED, too_long),
        false => no_room(),
    }
}

/// 53200: long values take all the memory they may have.
#[cold]
pub fn no_room() -> Error {
    Error::new(state::OUT_OF_MEMORY, "out of memory")
        .detail(format!(
            "The long values of all sessions take more than {} MB.",
            heap::limit() >> 20
        ))
        .hint("Start the server with more --memory, or have fewer sessions make long values at a time.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabyte_is_too_long() {
        assert!(fits(0).is_ok() && fits(MAX_BYTES).is_ok());
        let refused = fits(MAX_BYTES + 1).expect_err("too long");
        assert_eq!(refused.code(), state::PROGRAM_LIMIT_EXCEEDED);
    }
}
