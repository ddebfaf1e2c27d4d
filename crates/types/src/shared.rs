//! Long bytes that become a value where they lie: filled once, then shared.

use std::str::Utf8Error;
use std::sync::Arc;

use crate::datum::Text;

/// So many zero bytes, to be filled by whoever has them alone (`Arc::get_mut`).
pub fn zeroed(len: usize) -> Arc<[u8]> {
    let bytes = Arc::<[u8]>::new_zeroed_slice(len);
    // SAFETY: every byte is zero, and a zero is a `u8`.
    unsafe { bytes.assume_init() }
}

/// The bytes as text, without copying what is long.
///
/// # Errors
/// Where they are not UTF-8.
pub fn text(bytes: Arc<[u8]>) -> Result<Text, Utf8Error> {
    let mut unchecked = UncheckedText::new(bytes);
    unchecked.check(usize::MAX)?;
    Ok(unchecked.into_text())
}

/// Bytes that are being found to be text, piece by piece.
pub struct UncheckedText {
    bytes: Arc<[u8]>,
    /// The bytes before are UTF-8.
    checked: usize,
}

impl UncheckedText {
    pub fn new(bytes: Arc<[u8]>) -> UncheckedText {
        UncheckedText { bytes, checked: 0 }
    }

    /// Looks at the next bytes, `most` of them and at least one character; whether these were the
    /// last.
    ///
    /// # Errors
    /// Where they are not UTF-8.
    pub fn check(&mut self, most: usize) -> Result<bool, Utf8Error> {
        const LONGEST_CHARACTER: usize = 4;
        let end = self
            .checked
            .saturating_add(most.max(LONGEST_CHARACTER))
            .min(self.bytes.len());
        let is_last = end == self.bytes.len();
        match std::str::from_utf8(&self.bytes[self.checked..end]) {
            Ok(_) => self.checked = end,
            // The piece ends within a character.
            Err(error) if error.error_len().is_none() && !is_last => {
                self.checked += error.valid_up_to();
            }
            Err(error) => return Err(error),
        }
        Ok(is_last)
    }

    /// The text, without copying what is long.
    ///
    /// # Panics
    /// Unless the last of its bytes have been checked.
    pub fn into_text(self) -> Text {
        let UncheckedText { bytes, checked } = self;
        assert!(checked == bytes.len(), "bytes that nobody has looked at");
        // SAFETY: `str` and `[u8]` have the same layout, so what `into_raw` gives of the one
        // `from_raw` may take as the other (as `From<Arc<str>> for Arc<[u8]>` does the other way
        // round); the pointer came from `into_raw` just now; the bytes are UTF-8: `checked` grows
        // over nothing else and is at their end; nobody changes what an `Arc` shares.
        let text: Arc<str> = unsafe { Arc::from_raw(Arc::into_raw(bytes) as *const str) };
        Text::from(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_the_bytes_were() {
        for len in [0, 1, 22, 23, 24, 100_000] {
            let mut bytes = zeroed(len);
            if let Some(bytes) = Arc::get_mut(&mut bytes) {
                assert!(bytes.iter().all(|b| *b == 0));
                bytes.fill(b'x');
            }
            let at = bytes.as_ptr();
            let text = text(bytes);
            assert_eq!(text.as_deref(), Ok("x".repeat(len).as_str()));
            let same = text.is_ok_and(|text| text.as_ptr() == at);
            assert_eq!(same, len > 23, "{len}");
        }
        let long: Arc<[u8]> = "aä€🦀".repeat(1000).into_bytes().into();
        for most in [1, 5, 64, 9_999] {
            let mut unchecked = UncheckedText::new(long.clone());
            while !unchecked.check(most).expect("UTF-8") {}
            assert_eq!(unchecked.into_text().as_bytes(), &*long);
            let mut cut = UncheckedText::new(long[..long.len() - 1].into());
            let mut checked = cut.check(most);
            while let Ok(false) = checked {
                checked = cut.check(most);
            }
            assert!(checked.is_err());
        }
        let mut wrong = zeroed(30);
        if let Some(bytes) = Arc::get_mut(&mut wrong) {
            bytes[29] = 0xff;
        }
        assert!(text(wrong).is_err());
    }
}
