//! A page as 1024 atomic words: how bytes that others may be reading are read and written.
//!
//! Every access while a page is shared is one relaxed load or store of an aligned 64-bit word, so a
//! racing reader sees a mix of old and new words but never undefined behaviour; whether what it saw
//! belongs together is decided afterwards by the frame's version. Writers hold the frame's latch
//! exclusively, so a read-modify-write of a word at the edge of a range needs no atomic operation
//! of its own: there is no second writer.
//!
//! ```text
//! byte   0       8       16      24
//!        | word 0 | word 1 | word 2 | …        little endian: byte 8w+b is bits 8b.. of word w
//! ```

use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use throng_types::page::PAGE_SIZE;

/// Words in a page.
pub const WORDS: usize = PAGE_SIZE / 8;
/// A page's memory, as everyone who does not hold its latch must see it.
pub type PageWords = [AtomicU64; WORDS];

const _: () = assert!(size_of::<PageWords>() == PAGE_SIZE, "a word has no padding");

#[inline(always)]
fn load(words: &PageWords, index: usize) -> u64 {
    u64::from_le(words[index].load(Relaxed))
}

#[inline(always)]
fn store(words: &PageWords, index: usize, value: u64) {
    words[index].store(value.to_le(), Relaxed);
}

/// The bits of the bytes `from..to` of a word.
#[inline(always)]
fn byte_mask(from: usize, to: usize) -> u64 {
    debug_assert!(from < to && to <= 8);
    (u64::MAX >> (64 - 8 * (to - from))) << (8 * from)
}

/// Puts `bytes` at `offset`. The caller holds the page's latch exclusively.
///
/// # Panics
/// When the range does not lie within the page.
pub(crate) fn store_bytes(words: &PageWords, offset: usize, bytes: &[u8]) {
    assert!(
        offset <= PAGE_SIZE && bytes.len() <= PAGE_SIZE - offset,
        "an edit lies within its page"
    );
    let mut index = offset / 8;
    let start = offset % 8;
    let mut rest = bytes;
    if start != 0 && !rest.is_empty() {
        let (head, tail) = rest.split_at(rest.len().min(8 - start));
        merge(words, index, start, head);
        index += 1;
        rest = tail;
    }
    let mut chunks = rest.chunks_exact(8);
    for chunk in &mut chunks {
        store(
            words,
            index,
            u64::from_le_bytes(chunk.try_into().expect("eight bytes")),
        );
        index += 1;
    }
    if !chunks.remainder().is_empty() {
        merge(words, index, 0, chunks.remainder());
    }
}

/// Replaces the bytes of one word from `start` on.
fn merge(words: &PageWords, index: usize, start: usize, bytes: &[u8]) {
    let mut raw = [0u8; 8];
    raw[start..start + bytes.len()].copy_from_slice(bytes);
    let mask = byte_mask(start, start + bytes.len());
    store(
        words,
        index,
        (load(words, index) & !mask) | u64::from_le_bytes(raw),
    );
}

/// Zeroes `len` bytes at `offset`. The caller holds the page's latch exclusively.
pub(crate) fn store_zeros(words: &PageWords, offset: usize, len: usize) {
    assert!(
        offset <= PAGE_SIZE && len <= PAGE_SIZE - offset,
        "an edit lies within its page"
    );
    const ZEROS: [u8; 8] = [0; 8];
    let end = offset + len;
    let (head, tail) = (offset % 8, end % 8);
    // The whole words are those from `first` up to `last`.
    let (first, last) = (offset.div_ceil(8), end / 8);
    if last < first {
        if len > 0 {
            merge(words, last, head, &ZEROS[..len]);
        }
        return;
    }
    if head != 0 {
        merge(words, offset / 8, head, &ZEROS[head..]);
    }
    for word in &words[first..last] {
        word.store(0, Relaxed);
    }
    if tail != 0 {
        merge(words, last, 0, &ZEROS[..tail]);
    }
}

/// Copies a whole page out. Torn unless the caller holds the latch at least shared.
pub(crate) fn load_page(words: &PageWords, out: &mut [u8; PAGE_SIZE]) {
    for (chunk, index) in out.chunks_exact_mut(8).zip(0..) {
        chunk.copy_from_slice(&load(words, index).to_le_bytes());
    }
}

/// A page that may be changing while it is read.
///
/// Every read is bounds-checked; one that leaves the page returns zeros and remembers it, so that
/// the attempt is thrown away with the rest of what was read. The reader must bear any value and
/// bound its own loops.
pub struct PageRef<'a> {
    words: &'a PageWords,
    strayed: Cell<bool>,
}

impl<'a> PageRef<'a> {
    pub(crate) fn new(words: &'a PageWords) -> PageRef<'a> {
        PageRef {
            words,
            strayed: Cell::new(false),
        }
    }

    /// Whether a read left the page: what was read cannot have belonged together.
    #[inline]
    pub fn strayed(&self) -> bool {
        self.strayed.get()
    }

    /// Says that what was read makes no sense. An optimistic attempt is then thrown away and
    /// repeated; on a page that nobody changes meanwhile the reader's answer stands, and should be
    /// an error about corruption.
    #[cold]
    pub fn stray(&self) {
        self.strayed.set(true);
    }

    #[inline(always)]
    fn holds(&self, offset: usize, len: usize) -> bool {
        // Both compared alone, so that no sum can overflow.
        let inside = len <= PAGE_SIZE && offset <= PAGE_SIZE - len;
        if !inside {
            self.stray();
        }
        inside
    }

    /// `N <= 8` bytes at `offset`, which lie within the page, as a little-endian number.
    #[inline(always)]
    fn number<const N: usize>(&self, offset: usize) -> u64 {
        if !self.holds(offset, N) {
            return 0;
        }
        let (index, byte) = (offset / 8, offset % 8);
        let low = load(self.words, index) >> (8 * byte);
        let both = if byte + N > 8 {
            low | load(self.words, index + 1) << (64 - 8 * byte)
        } else {
            low
        };
        both & byte_mask(0, N)
    }

    #[inline]
    pub fn u8(&self, offset: usize) -> u8 {
        self.number::<1>(offset) as u8
    }
    #[inline]
    pub fn u16(&self, offset: usize) -> u16 {
        self.number::<2>(offset) as u16
    }
    #[inline]
    pub fn u32(&self, offset: usize) -> u32 {
        self.number::<4>(offset) as u32
    }
    /// Six bytes: a tid as tuples store it.
    #[inline]
    pub fn u48(&self, offset: usize) -> u64 {
        self.number::<6>(offset)
    }
    #[inline]
    pub fn u64(&self, offset: usize) -> u64 {
        self.number::<8>(offset)
    }

    /// Copies `out.len()` bytes at `offset`; zeros when they do not lie within the page.
    #[inline]
    pub fn copy(&self, offset: usize, out: &mut [u8]) {
        if !self.holds(offset, out.len()) {
            out.fill(0);
            return;
        }
        let mut reader = Unaligned::new(self.words, offset);
        let mut chunks = out.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&reader.next().to_le_bytes());
        }
        let rest = chunks.into_remainder();
        if !rest.is_empty() {
            let raw = reader.last(rest.len()).to_le_bytes();
            rest.copy_from_slice(&raw[..rest.len()]);
        }
    }

    /// Appends `len` bytes at `offset` to `out`; nothing when they do not lie within the page.
    #[inline]
    pub fn append_to(&self, offset: usize, len: usize, out: &mut Vec<u8>) {
        if !self.holds(offset, len) {
            return;
        }
        let start = out.len();
        out.resize(start + len, 0);
        self.copy(offset, &mut out[start..]);
    }

    /// Compares `len` bytes at `offset` with `other` as `memcmp` then length would; `Less` when
    /// they leave the page.
    #[inline]
    pub fn compare(&self, offset: usize, len: usize, other: &[u8]) -> Ordering {
        if !self.holds(offset, len) {
            return Ordering::Less;
        }
        let common = len.min(other.len());
        let mut reader = Unaligned::new(self.words, offset);
        let mut chunks = other[..common].chunks_exact(8);
        for chunk in &mut chunks {
            let mine = reader.next().swap_bytes();
            let theirs = u64::from_be_bytes(chunk.try_into().expect("eight bytes"));
            if mine != theirs {
                return mine.cmp(&theirs);
            }
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mine = (reader.last(rest.len()) & byte_mask(0, rest.len())).swap_bytes();
            let theirs = rest.iter().fold(0, |n, b| n << 8 | u64::from(*b));
            let theirs = theirs << (64 - 8 * rest.len());
            if mine != theirs {
                return mine.cmp(&theirs);
            }
        }
        len.cmp(&other.len())
    }

    /// The whole page, for a reader that wants to look at it at leisure after validation.
    pub fn copy_page(&self, out: &mut [u8; PAGE_SIZE]) {
        load_page(self.words, out);
    }
}

/// Reads eight bytes after eight bytes from any offset, loading each word once.
struct Unaligned<'a> {
    words: &'a PageWords,
    index: usize,
    shift: u32,
    /// What is left of the word before `index`, in the low bits; nothing of it when `shift` is 0.
    carry: u64,
}

impl<'a> Unaligned<'a> {
    #[inline(always)]
    fn new(words: &'a PageWords, offset: usize) -> Unaligned<'a> {
        let (index, shift) = (offset / 8, 8 * (offset % 8) as u32);
        if shift == 0 {
            return Unaligned {
                words,
                index,
                shift,
                carry: 0,
            };
        }
        Unaligned {
            words,
            index: index + 1,
            shift,
            carry: load(words, index) >> shift,
        }
    }

    /// The next eight bytes. They lie within the page: the caller has checked the range.
    #[inline(always)]
    fn next(&mut self) -> u64 {
        let word = load(self.words, self.index);
        self.index += 1;
        if self.shift == 0 {
            return word;
        }
        let value = self.carry | word << (64 - self.shift);
        self.carry = word >> self.shift;
        value
    }

    /// The last `len < 8` bytes in the low end; what is above them is not to be used. Loads no word
    /// beyond them.
    #[inline(always)]
    fn last(&mut self, len: usize) -> u64 {
        if self.shift != 0 && (64 - self.shift) as usize >= 8 * len {
            self.carry
        } else {
            self.next()
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fresh() -> Box<PageWords> {
        Box::new(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    fn bytes_of(words: &PageWords) -> Box<[u8; PAGE_SIZE]> {
        let mut out = Box::new([0; PAGE_SIZE]);
        load_page(words, &mut out);
        out
    }

    #[derive(Debug, Clone)]
    enum Edit {
        Write(usize, Vec<u8>),
        Zero(usize, usize),
    }

    fn edits() -> impl Strategy<Value = Vec<Edit>> {
        let offset = prop_oneof![0usize..40, PAGE_SIZE - 40..=PAGE_SIZE, 0..=PAGE_SIZE];
        let edit = (
            offset,
            proptest::collection::vec(any::<u8>(), 0..40),
            any::<bool>(),
        )
            .prop_map(|(offset, mut bytes, zero)| {
                bytes.truncate(PAGE_SIZE - offset);
                if zero {
                    Edit::Zero(offset, bytes.len())
                } else {
                    Edit::Write(offset, bytes)
                }
            });
        proptest::collection::vec(edit, 1..60)
    }

    proptest! {
        #[test]
        fn words_behave_as_bytes(edits in edits(), probes in proptest::collection::vec((0..=PAGE_SIZE, 0usize..40), 20)) {
            let words = fresh();
            let mut model = Box::new([0u8; PAGE_SIZE]);
            for edit in edits {
                match edit {
                    Edit::Write(offset, bytes) => {
                        store_bytes(&words, offset, &bytes);
                        model[offset..offset + bytes.len()].copy_from_slice(&bytes);
                    }
                    Edit::Zero(offset, len) => {
                        store_zeros(&words, offset, len);
                        model[offset..offset + len].fill(0);
                    }
                }
            }
            prop_assert_eq!(&bytes_of(&words)[..], &model[..]);
            let page = PageRef::new(&words);
            for (offset, len) in probes {
                let len = len.min(PAGE_SIZE - offset);
                let expected = &model[offset..offset + len];
                let mut out = vec![0xAA; len];
                page.copy(offset, &mut out);
                prop_assert_eq!(&out[..], expected);
                page.append_to(offset, len, &mut out);
                prop_assert_eq!(&out[len..], expected);
                for other in [expected.to_vec(), [expected, b"x"].concat(), expected[..len / 2].to_vec()] {
                    prop_assert_eq!(page.compare(offset, len, &other), expected.cmp(&other[..]));
                }
                if len >= 1 {
                    for at in [0, len / 2, len - 1] {
                        for change in [1u8, 0x80, 0xFF] {
                            let mut other = expected.to_vec();
                            other[at] = other[at].wrapping_add(change);
                            prop_assert_eq!(page.compare(offset, len, &other), expected.cmp(&other[..]));
                        }
                    }
                }
                if len >= 8 {
                    let mut raw = [0u8; 8];
                    raw.copy_from_slice(&expected[..8]);
                    let number = u64::from_le_bytes(raw);
                    prop_assert_eq!(page.u64(offset), number);
                    prop_assert_eq!(page.u48(offset), number & 0xFFFF_FFFF_FFFF);
                    prop_assert_eq!(page.u32(offset), number as u32);
                    prop_assert_eq!(page.u16(offset), number as u16);
                    prop_assert_eq!(page.u8(offset), number as u8);
                }
            }
            prop_assert!(!page.strayed());
        }
    }

    #[test]
    fn reads_beyond_the_page_give_zeros_and_are_remembered() {
        let words = fresh();
        store_bytes(&words, 0, &[7; PAGE_SIZE]);
        let strays = |probe: &dyn Fn(&PageRef<'_>)| {
            let page = PageRef::new(&words);
            probe(&page);
            page.strayed()
        };
        assert!(!strays(&|page| assert_eq!(
            page.u64(PAGE_SIZE - 8),
            0x0707070707070707
        )));
        assert!(strays(&|page| assert_eq!(page.u64(PAGE_SIZE - 7), 0)));
        assert!(strays(&|page| assert_eq!(page.u8(PAGE_SIZE), 0)));
        assert!(strays(&|page| assert_eq!(page.u16(usize::MAX), 0)));
        assert!(strays(&|page| {
            let mut out = [1; 4];
            page.copy(PAGE_SIZE - 3, &mut out);
            assert_eq!(out, [0; 4]);
        }));
        assert!(strays(&|page| {
            let mut out = Vec::new();
            page.append_to(1, PAGE_SIZE, &mut out);
            assert!(out.is_empty());
        }));
        assert!(strays(&|page| assert_eq!(
            page.compare(8190, 3, &[7, 7, 7]),
            Ordering::Less
        )));
    }
}
