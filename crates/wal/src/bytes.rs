//! Reading and writing the log's integers: little endian, and LEB128 for those that are mostly
//! small.

/// The longest LEB128 form of a `u64`.
pub(crate) const MAX_VARINT: usize = 10;

/// Appends `value` seven bits a byte, lowest first; the top bit says that more follow.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes values off the front of bytes that may be anything: every step answers `None` past the
/// end.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(len)?;
        self.0 = tail;
        Some(head)
    }
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        let (&first, tail) = self.0.split_first()?;
        self.0 = tail;
        Some(first)
    }
    #[inline]
    pub fn u16(&mut self) -> Option<u16> {
        let (head, tail) = self.0.split_first_chunk::<2>()?;
        self.0 = tail;
        Some(u16::from_le_bytes(*head))
    }
    /// `None` also for a form longer than a `u64` has.
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for i in 0..MAX_VARINT {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if i == MAX_VARINT - 1 && bits > 1 {
                return None;
            }
            value |= bits << (7 * i);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
    pub fn varint_u32(&mut self) -> Option<u32> {
        u32::try_from(self.varint()?).ok()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_survive_the_round_trip() {
        let edges = [
            0,
            1,
            127,
            128,
            16383,
            16384,
            u64::from(u32::MAX),
            u64::MAX - 1,
            u64::MAX,
        ];
        let mut out = Vec::new();
        for value in edges {
            put_varint(&mut out, value);
        }
        let mut cursor = Cursor(&out);
        for value in edges {
            assert_eq!(cursor.varint(), Some(value));
        }
        assert!(cursor.is_empty());
    }

    #[test]
    fn an_endless_or_oversized_varint_is_refused() {
        assert_eq!(Cursor(&[0x80; 4]).varint(), None);
        assert_eq!(Cursor(&[0xff; 16]).varint(), None);
        let mut two_to_the_64 = [0x80u8; 10];
        two_to_the_64[9] = 2;
        assert_eq!(Cursor(&two_to_the_64).varint(), None);
    }
}
