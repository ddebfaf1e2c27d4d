//! Page ops: what a mini-transaction did to one page, as bytes that redo can do again.
//!
//! Every op starts with a `u16`: three bits of tag, thirteen of offset (a page has 8192 bytes).
//!
//! ```text
//!  tag 0  write       off, len u8,  bytes
//!  tag 1  long write  off, len u16, bytes
//!  tag 2  move        off = source, dst u16, len u16
//!  tag 3  zero        off, len u16
//!  tag 4  image       off = start of the hole, hole length u16, the page's bytes without the hole
//! ```
//! An image leaves out what the page's kind says is free ([`page::hole`]), and nothing else. One
//! that leaves out more, as images of sequences once did, is no whole page: what it lacks stays as
//! it was.
//!
//! Ops are applied in order. An [`Ops`] has been checked when it is made: every op lies within a
//! page, so [`apply`] cannot fail.

use crate::bytes::Cursor;
use throng_types::page::{self, OFF_KIND, PAGE_SIZE};

const TAG_SHIFT: u32 = 13;
const OFF_MASK: u16 = (1 << TAG_SHIFT) - 1;
const WRITE: u16 = 0;
const LONG_WRITE: u16 = 1;
const MOVE: u16 = 2;
const ZERO: u16 = 3;
const IMAGE: u16 = 4;

const _: () = assert!(
    PAGE_SIZE == 1 << TAG_SHIFT,
    "an offset within a page takes exactly the bits beside the tag"
);

/// One change to one page. Offsets and lengths are in bytes and lie within the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOp<'a> {
    Write {
        off: u16,
        bytes: &'a [u8],
    },
    /// As `memmove`: the ranges may overlap.
    Move {
        src: u16,
        dst: u16,
        len: u16,
    },
    Zero {
        off: u16,
        len: u16,
    },
    /// The whole page; of the hole, what the page's kind says is free reads as zeros.
    Image {
        hole: u16,
        hole_len: u16,
        bytes: &'a [u8],
    },
}

/// The ops of one page, known to be well formed. Iterates over [`PageOp`]s.
#[derive(Clone, Copy)]
pub struct Ops<'a>(Cursor<'a>);

impl<'a> Ops<'a> {
    /// `None` when the bytes are not a sequence of ops that stay within a page.
    pub fn parse(bytes: &'a [u8]) -> Option<Ops<'a>> {
        let mut cursor = Cursor(bytes);
        while !cursor.is_empty() {
            decode(&mut cursor)?;
        }
        Some(Ops(Cursor(bytes)))
    }
    /// True when the page's former content does not matter: redo need not read it, and a torn page
    /// is healed.
    pub fn replaces_page(&self) -> bool {
        match self.clone().next() {
            Some(PageOp::Image {
                hole,
                hole_len,
                bytes,
            }) => image_is_whole(hole.into(), hole_len.into(), bytes),
            _ => false,
        }
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = PageOp<'a>;
    fn next(&mut self) -> Option<PageOp<'a>> {
        decode(&mut self.0)
    }
}

impl std::fmt::Debug for Ops<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

fn decode<'a>(cursor: &mut Cursor<'a>) -> Option<PageOp<'a>> {
    let head = cursor.u16()?;
    let off = head & OFF_MASK;
    let fits = |off: u16, len: u16| usize::from(off) + usize::from(len) <= PAGE_SIZE;
    match head >> TAG_SHIFT {
        tag @ (WRITE | LONG_WRITE) => {
            let len = if tag == WRITE {
                u16::from(cursor.u8()?)
            } else {
                cursor.u16()?
            };
            let bytes = cursor.take(len.into())?;
            fits(off, len).then_some(PageOp::Write { off, bytes })
        }
        MOVE => {
            let (dst, len) = (cursor.u16()?, cursor.u16()?);
            (fits(off, len) && fits(dst, len)).then_some(PageOp::Move { src: off, dst, len })
        }
        ZERO => {
            let len = cursor.u16()?;
            fits(off, len).then_some(PageOp::Zero { off, len })
        }
        IMAGE => {
            let hole_len = cursor.u16()?;
            if !fits(off, hole_len) {
                return None;
            }
            let bytes = cursor.take(PAGE_SIZE - usize::from(hole_len))?;
            Some(PageOp::Image {
                hole: off,
                hole_len,
                bytes,
            })
        }
        _ => None,
    }
}

/// Redoes `ops` on a page. Does not touch the LSN unless an op does: the caller stamps it.
pub fn apply(page: &mut [u8; PAGE_SIZE], ops: Ops<'_>) {
    for op in ops {
        match op {
            PageOp::Write { off, bytes } => {
                page[off.into()..][..bytes.len()].copy_from_slice(bytes)
            }
            PageOp::Move { src, dst, len } => {
                let src = usize::from(src);
                page.copy_within(src..src + usize::from(len), dst.into());
            }
            PageOp::Zero { off, len } => page[off.into()..][..len.into()].fill(0),
            PageOp::Image {
                hole,
                hole_len,
                bytes,
            } => {
                let (hole, end) = (usize::from(hole), usize::from(hole) + usize::from(hole_len));
                page[..hole].copy_from_slice(&bytes[..hole]);
                page[end..].copy_from_slice(&bytes[hole..]);
                let free = page::hole(page);
                let (from, to) = (free.start.max(hole), free.end.min(end));
                if from < to {
                    page[from..to].fill(0);
                }
            }
        }
    }
}

/// Collects one page's ops. A write that continues the one before it is joined to it.
#[derive(Default)]
pub(crate) struct OpsWriter {
    bytes: Vec<u8>,
    last_write: Option<LastWrite>,
}

#[derive(Clone, Copy)]
struct LastWrite {
    /// Where the op starts in `bytes`.
    at: usize,
    /// Where on the page it ends.
    end: usize,
    len: usize,
}

impl OpsWriter {
    /// More than this is given back when the writer is reused.
    const KEEP: usize = 64 << 10;

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(Self::KEEP);
        self.last_write = None;
    }
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    pub fn write(&mut self, off: usize, bytes: &[u8]) {
        check(off, bytes.len());
        if bytes.is_empty() || self.join(off, bytes) {
            return;
        }
        let at = self.bytes.len();
        if let Ok(len) = u8::try_from(bytes.len()) {
            self.head(WRITE, off);
            self.bytes.push(len);
        } else {
            self.head(LONG_WRITE, off);
            self.u16(bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
        self.last_write = Some(LastWrite {
            at,
            end: off + bytes.len(),
            len: bytes.len(),
        });
    }
    pub fn move_within(&mut self, src: usize, dst: usize, len: usize) {
        check(src, len);
        check(dst, len);
        if len == 0 || src == dst {
            return;
        }
        self.head(MOVE, src);
        self.u16(dst);
        self.u16(len);
    }
    pub fn zero(&mut self, off: usize, len: usize) {
        check(off, len);
        if len == 0 {
            return;
        }
        self.head(ZERO, off);
        self.u16(len);
    }
    pub fn image(&mut self, page: &[u8; PAGE_SIZE]) {
        let hole = page::hole(page);
        self.clear();
        self.head(IMAGE, hole.start);
        self.u16(hole.len());
        self.bytes.extend_from_slice(&page[..hole.start]);
        self.bytes.extend_from_slice(&page[hole.end..]);
        debug_assert!(
            self.redoes(page),
            "an image has lost bytes of a page of kind {}",
            page[OFF_KIND]
        );
    }

    /// Whether what was recorded, an image, makes the page of anything but for bytes that hold
    /// nothing.
    fn redoes(&self, page: &[u8; PAGE_SIZE]) -> bool {
        let mut redone = [0xA5; PAGE_SIZE];
        let Some(ops) = Ops::parse(&self.bytes) else {
            return false;
        };
        apply(&mut redone, ops);
        let hole = page::hole(page);
        ops.replaces_page()
            && redone[..hole.start] == page[..hole.start]
            && redone[hole.end..] == page[hole.end..]
    }

    fn join(&mut self, off: usize, bytes: &[u8]) -> bool {
        let Some(last) = self.last_write else {
            return false;
        };
        let len = last.len + bytes.len();
        let short = last.len <= u8::MAX.into();
        if last.end != off || (short && len > u8::MAX.into()) {
            return false;
        }
        if short {
            self.bytes[last.at + 2] = len as u8;
        } else {
            self.bytes[last.at + 2..last.at + 4].copy_from_slice(&(len as u16).to_le_bytes());
        }
        self.bytes.extend_from_slice(bytes);
        self.last_write = Some(LastWrite {
            end: off + bytes.len(),
            len,
            ..last
        });
        true
    }
    fn head(&mut self, tag: u16, off: usize) {
        self.last_write = None;
        self.u16(usize::from(tag) << TAG_SHIFT | off);
    }
    fn u16(&mut self, value: usize) {
        self.bytes.extend_from_slice(&(value as u16).to_le_bytes());
    }
}

/// An op beyond its page is a bug in the caller, and must not reach the log.
#[inline]
fn check(off: usize, len: usize) {
    assert!(
        off < PAGE_SIZE && len <= PAGE_SIZE - off,
        "page op at {off} of {len} bytes leaves the page"
    );
}

/// Whether an image with this hole leaves out nothing but what its page's kind says is free.
fn image_is_whole(hole: usize, hole_len: usize, bytes: &[u8]) -> bool {
    let mut page = [0; PAGE_SIZE];
    page[..hole].copy_from_slice(&bytes[..hole]);
    page[hole + hole_len..].copy_from_slice(&bytes[hole..]);
    let free = page::hole(&page);
    hole_len == 0 || free.start <= hole && hole + hole_len <= free.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use throng_types::page::{HEADER, KIND_HEAP, KIND_SEQUENCE, OFF_LOWER, OFF_UPPER};

    #[derive(Clone, Debug)]
    enum Edit {
        Write(usize, Vec<u8>),
        Move(usize, usize, usize),
        Zero(usize, usize),
        Image,
    }

    /// Applies an edit to the page directly, as a mini-transaction does, and records it.
    fn edit(page: &mut [u8; PAGE_SIZE], ops: &mut OpsWriter, edit: &Edit) {
        match edit {
            Edit::Write(off, bytes) => {
                let bytes = &bytes[..bytes.len().min(PAGE_SIZE - off)];
                page[*off..off + bytes.len()].copy_from_slice(bytes);
                ops.write(*off, bytes);
            }
            Edit::Move(src, dst, len) => {
                let len = *len.min(&(PAGE_SIZE - src.max(dst)));
                page.copy_within(*src..src + len, *dst);
                ops.move_within(*src, *dst, len);
            }
            Edit::Zero(off, len) => {
                let len = *len.min(&(PAGE_SIZE - off));
                page[*off..off + len].fill(0);
                ops.zero(*off, len);
            }
            Edit::Image => {
                // What lies in the hole is nobody's: an image does not keep it.
                let hole = page::hole(page);
                page[hole].fill(0);
                ops.image(page);
            }
        }
    }

    fn edits() -> impl Strategy<Value = Vec<Edit>> {
        // A few fixed offsets make joined writes and header edits (lower, upper) frequent.
        let off = prop_oneof![
            0..PAGE_SIZE,
            0..40usize,
            Just(PAGE_SIZE - 1),
            Just(OFF_LOWER),
            Just(OFF_UPPER)
        ];
        let bytes = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..12),
            prop::collection::vec(any::<u8>(), 200..600)
        ];
        let one = prop_oneof![
            6 => (off.clone(), bytes).prop_map(|(off, bytes)| Edit::Write(off, bytes)),
            2 => (off.clone(), off.clone(), 0..PAGE_SIZE).prop_map(|(src, dst, len)| Edit::Move(src, dst, len)),
            2 => (off, 0..PAGE_SIZE).prop_map(|(off, len)| Edit::Zero(off, len)),
            1 => Just(Edit::Image),
        ];
        prop::collection::vec(one, 0..40)
    }

    proptest! {
        #[test]
        fn replaying_what_was_recorded_gives_the_same_page(seed in any::<u8>(), edits in edits()) {
            let mut page = [0u8; PAGE_SIZE];
            for (i, byte) in page.iter_mut().enumerate() {
                *byte = (i as u8).wrapping_mul(seed);
            }
            let mut replayed = page;
            let mut ops = OpsWriter::default();
            for one in &edits {
                edit(&mut page, &mut ops, one);
            }
            let ops = Ops::parse(ops.bytes()).expect("what was recorded parses");
            apply(&mut replayed, ops);
            prop_assert!(page == replayed);
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut page = [7u8; PAGE_SIZE];
            if let Some(ops) = Ops::parse(&bytes) {
                apply(&mut page, ops);
            }
        }
    }

    #[test]
    fn writes_that_continue_each_other_become_one_op() {
        let mut ops = OpsWriter::default();
        ops.write(100, &[1, 2]);
        ops.write(102, &[3]);
        ops.write(103, &[4; 300]);
        ops.write(403, &[5]);
        let parsed: Vec<_> = Ops::parse(ops.bytes()).unwrap().collect();
        assert_eq!(
            parsed[0],
            PageOp::Write {
                off: 100,
                bytes: &[1, 2, 3]
            }
        );
        assert!(matches!(parsed[1], PageOp::Write { off: 103, bytes } if bytes.len() == 301));
        assert_eq!(parsed.len(), 2);
    }

    #[test]
    fn an_image_leaves_out_the_hole_and_what_came_before_it() {
        let mut page = page_with_gap(KIND_HEAP, 100, 8000);
        let mut ops = OpsWriter::default();
        ops.write(0, &[1; 1000]);
        ops.image(&page);
        assert_eq!(ops.bytes().len(), 4 + 100 + 192);
        let parsed = Ops::parse(ops.bytes()).unwrap();
        assert!(parsed.replaces_page());
        let mut redone = [0xee; PAGE_SIZE];
        apply(&mut redone, parsed);
        page[100..8000].fill(0);
        assert!(page == redone);
    }

    fn page_with_gap(kind: u8, lower: u16, upper: u16) -> [u8; PAGE_SIZE] {
        let mut page = [9u8; PAGE_SIZE];
        page[OFF_KIND] = kind;
        page[OFF_LOWER..OFF_LOWER + 2].copy_from_slice(&lower.to_le_bytes());
        page[OFF_UPPER..OFF_UPPER + 2].copy_from_slice(&upper.to_le_bytes());
        page
    }

    /// A kind whose content lies between `lower` and `upper`, and kinds that nobody has described.
    #[test]
    fn an_image_keeps_what_its_kind_does_not_call_free() {
        let end = page::SEQUENCE_END;
        for kind in [KIND_SEQUENCE, 0, 5, 9, 200] {
            let page = page_with_gap(kind, HEADER as u16, PAGE_SIZE as u16);
            let mut ops = OpsWriter::default();
            ops.image(&page);
            let mut redone = [0xee; PAGE_SIZE];
            apply(&mut redone, Ops::parse(ops.bytes()).unwrap());
            assert_eq!(redone[..end], page[..end], "kind {kind}");
            if kind != KIND_SEQUENCE {
                assert!(page == redone, "kind {kind}");
            }
        }
    }

    /// Logs have such images: a sequence's without its value.
    #[test]
    fn what_an_image_lacks_stays_as_it_was() {
        let page = page_with_gap(KIND_SEQUENCE, HEADER as u16, PAGE_SIZE as u16);
        let mut log = OpsWriter::default();
        log.head(IMAGE, HEADER);
        log.u16(PAGE_SIZE - HEADER);
        log.bytes.extend_from_slice(&page[..HEADER]);
        let ops = Ops::parse(log.bytes()).unwrap();
        assert!(!ops.replaces_page(), "redo must read the page");
        let mut redone = [7; PAGE_SIZE];
        apply(&mut redone, ops);
        assert_eq!(redone[..HEADER], page[..HEADER]);
        assert_eq!(redone[HEADER..page::SEQUENCE_END], [7; 9]);
    }

    #[test]
    #[should_panic(expected = "leaves the page")]
    fn an_op_beyond_the_page_is_a_bug() {
        OpsWriter::default().write(PAGE_SIZE - 1, &[0, 0]);
    }
}
