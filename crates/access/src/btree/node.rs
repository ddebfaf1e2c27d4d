//! A B+tree node: bytes and how they are searched. Nothing here knows of pools, latches or logs.
//!
//! The same code reads a latched page and one that may be changing (`PageRef`): it bears any bytes,
//! bounds every loop, and leaves it to the caller to throw an answer away when the page's version
//! has moved.
//!
//! # Layout, little endian
//!
//! ```text
//!  byte  size
//!     0   24   page header (types::page): kind is leaf or inner; lower = end of the slots, upper = start of the cells
//!    24    4   right     leaf: block of the next leaf, 0 for none; inner: 0; free page: next free page
//!    28    2   high off  leaf: where the high key's bytes are
//!    30    2   high len  its length, 0 for none (the last leaf): every entry here and left of here is below it
//!    32    2   prefix off  where the prefix's bytes after the eighth are
//!    34    2   prefix len  how many bytes every key here begins with
//!    36    2   level     0 for a leaf; a child's level is its parent's less one
//!    38    2   garbage   bytes between upper and the page's end that nothing names any more
//!    40    8   prefix head  the prefix's first eight bytes as a big-endian number, zeros where it is shorter
//!    48  8 n   slots, in key order
//!      …       hole
//! upper        cells, the high key and the prefix's rest, in no order
//!  8192
//! ```
//! A slot is one aligned word, so that a probe of a search is one load:
//!
//! ```text
//!  bits 63..32 head   the first four bytes of the suffix as a big-endian number, zeros where it is shorter
//!       31..16 len    bytes of the suffix (the key without the node's prefix)
//!          15  dead   nobody sees the row that it leads to (see [`dead`](super::dead))
//!       13..0  off    where the cell is
//! ```
//! A leaf's cell is the suffix after its first four bytes; an inner node's has the child's block (4
//! bytes) before that. So no byte of a key is stored twice, and a prefix shared by all is stored
//! once.
//!
//! A leaf's keys are *entries*: key bytes and the tid in six big-endian bytes, so that no two are
//! equal. An inner node's keys are separators: child `i` holds the entries from key `i` (inclusive)
//! up to key `i + 1`. Key 0 is not stored: it has length 0 and stands below everything, whatever
//! the prefix.

use std::cmp::Ordering;

use throng_buffer::PageRef;
use throng_types::page::{
    KIND_BTREE_INNER, KIND_BTREE_LEAF, OFF_CHECKSUM, OFF_LSN, OFF_UPPER, PAGE_SIZE,
};
use throng_types::{BlockNo, Lsn, Tid};

use crate::heap::page::PageBytes;

pub const OFF_RIGHT: usize = 24;
pub const OFF_HIGH: usize = 28;
pub const OFF_PREFIX: usize = 32;
pub const OFF_LEVEL: usize = 36;
pub const OFF_GARBAGE: usize = 38;
/// Beside the header, so that holding a key against a short prefix costs no further cache line.
pub const OFF_PREFIX_HEAD: usize = 40;
/// Bytes of the prefix that are kept there.
pub const PREFIX_HEAD: usize = 8;
/// Where the slots begin: aligned, so that each slot is one word.
pub const SLOTS: usize = 48;
pub const SLOT: usize = 8;
/// Bytes of the head that a slot keeps.
pub const HEAD: usize = 4;
/// Bytes of a tid at the end of an entry.
pub const TID: usize = 6;
/// Bytes for slots, cells, high key and prefix.
pub const CAPACITY: usize = PAGE_SIZE - SLOTS;
/// The longest key, PostgreSQL's limit: three entries of this length, one of them as high key, fit
/// a page, so a split always makes room.
pub const MAX_KEY: usize = 2704;
pub const MAX_ENTRY: usize = MAX_KEY + TID;
/// The bit of a slot that marks the entry of a dead row.
pub const MARK: u64 = 1 << 15;
/// The byte of a slot that has this bit, and its place there.
pub const MARK_BYTE: usize = MARK.trailing_zeros() as usize / 8;
pub const MARK_BIT: u8 = 1 << (MARK.trailing_zeros() % 8);
/// The bits of a slot that say where the cell is.
const OFF_BITS: u64 = (1 << 14) - 1;
/// Slots of a cache line or two, among which there is no need to guess.
const FEW: usize = 16;

const _: () = assert!(
    SLOTS.is_multiple_of(SLOT),
    "a slot is read as one aligned word"
);
const _: () = assert!(
    PAGE_SIZE as u64 <= OFF_BITS,
    "an empty cell lies at the page's end"
);
const _: () = assert!(
    MAX_ENTRY + 2 * (SLOT + MAX_ENTRY - HEAD) <= CAPACITY,
    "two entries and a high key fit"
);
const _: () = assert!(
    2 * (SLOT + MAX_ENTRY) + SLOT + 4 <= CAPACITY,
    "three children fit, whatever their separators"
);

/// Reading keys from a page, latched or optimistic. Out of bounds compares as less and copies
/// nothing.
pub trait KeyBytes: PageBytes {
    /// Compares `len` bytes at `off` with `other`, as slices compare.
    fn compare(&self, off: usize, len: usize, other: &[u8]) -> Ordering;
    fn append_to(&self, off: usize, len: usize, out: &mut Vec<u8>);
    /// What cannot be told from these bytes is garbage: an optimistic reader tries again.
    fn stray(&self) {}
}

impl KeyBytes for [u8; PAGE_SIZE] {
    #[inline]
    fn compare(&self, off: usize, len: usize, other: &[u8]) -> Ordering {
        self.get(off..off + len)
            .map_or(Ordering::Less, |mine| mine.cmp(other))
    }
    #[inline]
    fn append_to(&self, off: usize, len: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.get(off..off + len).unwrap_or_default());
    }
}

impl KeyBytes for PageRef<'_> {
    #[inline]
    fn compare(&self, off: usize, len: usize, other: &[u8]) -> Ordering {
        PageRef::compare(self, off, len, other)
    }
    #[inline]
    fn append_to(&self, off: usize, len: usize, out: &mut Vec<u8>) {
        PageRef::append_to(self, off, len, out);
    }
    fn stray(&self) {
        PageRef::stray(self);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub head: u32,
    pub len: u16,
    pub off: u16,
}

impl Slot {
    #[inline]
    pub fn decode(word: u64) -> Slot {
        Slot {
            head: (word >> 32) as u32,
            len: (word >> 16) as u16,
            off: (word & OFF_BITS) as u16,
        }
    }
    /// The word of an entry that is not marked.
    #[inline]
    pub fn encode(self) -> u64 {
        u64::from(self.head) << 32 | u64::from(self.len) << 16 | u64::from(self.off)
    }
    /// Bytes of the suffix that are in the cell.
    #[inline]
    pub fn tail(self) -> usize {
        usize::from(self.len).saturating_sub(HEAD)
    }
}

/// Takes all marks off a leaf's copy.
pub fn unmark_all(page: &mut [u8; PAGE_SIZE]) {
    let count = Node::read(page).count();
    for slot in page[SLOTS..][..SLOT * count].chunks_exact_mut(SLOT) {
        slot[MARK_BYTE] &= !MARK_BIT;
    }
}

/// Up to seven bytes as the first of a number's eight.
#[inline]
fn left_aligned(bytes: &[u8]) -> u64 {
    let number = bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b));
    number.checked_shl(64 - 8 * bytes.len() as u32).unwrap_or(0)
}

/// The first four bytes of a suffix as a number that orders as they do.
#[inline]
pub fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<HEAD>() {
        Some(first) => u32::from_be_bytes(*first),
        None => (left_aligned(suffix) >> 32) as u32,
    }
}

/// An entry: key and tid in one string that orders by key, then tid.
pub fn entry_into(key: &[u8], tid: Tid, out: &mut Vec<u8>) {
    out.clear();
    out.reserve(key.len() + TID);
    out.extend_from_slice(key);
    out.extend_from_slice(&tid_bytes(tid));
}

pub fn tid_bytes(tid: Tid) -> [u8; TID] {
    let [_, _, bytes @ ..] = tid.to_u64().to_be_bytes();
    bytes
}

pub fn tid_from(bytes: [u8; TID]) -> Tid {
    let [a, b, c, d, e, f] = bytes;
    Tid::from_u64(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

/// The shortest string that is above `left` and not above `right`, given `left < right`.
pub fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    let common = common_prefix(left, right);
    &right[..right.len().min(common + 1)]
}

/// The first eight bytes of a prefix as a number that orders as they do.
#[inline]
pub fn prefix_head(prefix: &[u8]) -> u64 {
    match prefix.first_chunk::<PREFIX_HEAD>() {
        Some(first) => u64::from_be_bytes(*first),
        None => left_aligned(prefix),
    }
}

/// Bytes of a prefix that are not in the header.
#[inline]
pub fn prefix_rest(len: usize) -> usize {
    len.saturating_sub(PREFIX_HEAD)
}

/// Appends the first bytes of something `len` long, of which `head` has as many as there are room
/// for. Appended whole and cut off: a copy of a length that is known takes no call.
#[inline]
fn append_head<const N: usize>(out: &mut Vec<u8>, head: [u8; N], len: usize) {
    let end = out.len() + len.min(N);
    out.extend_from_slice(&head);
    out.truncate(end);
}

pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// A node's header, read once, over the bytes it heads.
pub struct Node<'a, P> {
    page: &'a P,
    kind: u8,
    level: u16,
    lower: u16,
    prefix_off: u16,
    prefix_len: u16,
    garbage: u16,
}

impl<P> Clone for Node<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P> Copy for Node<'_, P> {}

/// A key made ready for comparison within one node.
enum Probe<'k> {
    /// Below every key that begins with the node's prefix.
    Below,
    /// Above every such key.
    Above,
    /// Begins with the prefix; this is what follows.
    Within(&'k [u8]),
}

impl<'a, P: KeyBytes> Node<'a, P> {
    #[inline]
    pub fn read(page: &'a P) -> Node<'a, P> {
        let first = page.u64(OFF_CHECKSUM); // checksum u32, kind u8, flags u8, lower u16
        let second = page.u64(OFF_PREFIX); // prefix off, prefix len, level, garbage
        Node {
            page,
            kind: (first >> 32) as u8,
            lower: (first >> 48) as u16,
            prefix_off: second as u16,
            prefix_len: (second >> 16) as u16,
            level: (second >> 32) as u16,
            garbage: (second >> 48) as u16,
        }
    }
    #[inline]
    pub fn lsn(&self) -> Lsn {
        Lsn(self.page.u64(OFF_LSN))
    }
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.kind == KIND_BTREE_LEAF
    }
    #[inline]
    pub fn is_inner(&self) -> bool {
        self.kind == KIND_BTREE_INNER
    }
    #[inline]
    pub fn level(&self) -> u16 {
        self.level
    }
    /// Never more than a page can hold.
    #[inline]
    pub fn count(&self) -> usize {
        usize::from(self.lower).saturating_sub(SLOTS).min(CAPACITY) / SLOT
    }
    pub fn lower(&self) -> usize {
        self.lower.into()
    }
    pub fn upper(&self) -> usize {
        self.page.u16(OFF_UPPER).into()
    }
    pub fn garbage(&self) -> usize {
        self.garbage.into()
    }
    #[inline]
    pub fn right(&self) -> BlockNo {
        self.page.u32(OFF_RIGHT)
    }
    #[inline]
    pub fn prefix_len(&self) -> usize {
        self.prefix_len.into()
    }
    /// The prefix's bytes that are not in the header, as `(offset, length)`.
    #[inline]
    pub fn prefix_rest(&self) -> (usize, usize) {
        (self.prefix_off.into(), prefix_rest(self.prefix_len()))
    }
    #[inline]
    pub fn shares_prefix(&self, key: &[u8]) -> bool {
        matches!(self.probe(key), Probe::Within(_))
    }
    /// The prefix against the key, as far as the shorter one goes.
    #[inline]
    fn compare_prefix(&self, key: &[u8]) -> Ordering {
        let len = self.prefix_len().min(key.len());
        if len == 0 {
            return Ordering::Equal;
        }
        let unused = 8 * PREFIX_HEAD.saturating_sub(len) as u32;
        let (mine, theirs) = (self.page.u64(OFF_PREFIX_HEAD), prefix_head(key));
        match (mine >> unused).cmp(&(theirs >> unused)) {
            Ordering::Equal if len > PREFIX_HEAD => {
                let rest = &key[PREFIX_HEAD..len];
                self.page.compare(self.prefix_off.into(), rest.len(), rest)
            }
            order => order,
        }
    }
    /// Where the high key is and how long.
    #[inline]
    pub fn high(&self) -> Option<(usize, usize)> {
        let (off, len) = (self.page.u16(OFF_HIGH), self.page.u16(OFF_HIGH + 2));
        (len != 0).then_some((off.into(), len.into()))
    }
    pub fn high_into(&self, out: &mut Vec<u8>) -> bool {
        out.clear();
        match self.high() {
            Some((off, len)) => {
                self.page.append_to(off, len, out);
                true
            }
            None => false,
        }
    }
    /// The high key against `key`; a node without one is above everything.
    #[inline]
    pub fn compare_high(&self, key: &[u8]) -> Ordering {
        match self.high() {
            Some((off, len)) => self.page.compare(off, len, key),
            None => Ordering::Greater,
        }
    }
    /// Whether there may be entries that begin with `prefix` beyond this leaf, given that some may
    /// be on it.
    #[inline]
    pub fn high_starts_with(&self, prefix: &[u8]) -> bool {
        self.high().is_some_and(|(off, len)| {
            len >= prefix.len() && self.page.compare(off, prefix.len(), prefix) == Ordering::Equal
        })
    }
    /// Bytes taken of [`CAPACITY`].
    pub fn used(&self) -> usize {
        (SLOT * self.count() + PAGE_SIZE.saturating_sub(self.upper()))
            .saturating_sub(self.garbage())
    }

    #[inline]
    fn word(&self, i: usize) -> u64 {
        self.page.u64(SLOTS + SLOT * i)
    }
    #[inline]
    pub fn slot(&self, i: usize) -> Slot {
        Slot::decode(self.word(i))
    }
    /// Whether a reader has found the row of a leaf's entry `i` dead to everybody.
    #[inline]
    pub fn is_marked(&self, i: usize) -> bool {
        self.word(i) & MARK != 0
    }
    pub fn has_marked(&self) -> bool {
        (0..self.count()).any(|i| self.is_marked(i))
    }
    /// The slots of a leaf whose entries are marked.
    pub fn marked(&self) -> Vec<usize> {
        (0..self.count()).filter(|i| self.is_marked(*i)).collect()
    }
    /// Where the part of the suffix that is in the cell begins.
    #[inline]
    fn tail_off(&self, slot: Slot) -> usize {
        usize::from(slot.off) + if self.is_inner() { 4 } else { 0 }
    }
    /// Bytes of slot `i`'s cell.
    pub fn cell_len(&self, slot: Slot) -> usize {
        slot.tail() + if self.is_inner() { 4 } else { 0 }
    }
    #[inline]
    pub fn child(&self, i: usize) -> BlockNo {
        self.page.u32(self.slot(i).off.into())
    }
    /// The first slot that has a key: an inner node's slot 0 has none.
    #[inline]
    pub fn first_key(&self) -> usize {
        self.is_inner().into()
    }

    #[inline]
    fn probe<'k>(&self, key: &'k [u8]) -> Probe<'k> {
        let len = self.prefix_len();
        match self.compare_prefix(key) {
            Ordering::Less => Probe::Above,
            Ordering::Greater => Probe::Below,
            Ordering::Equal if key.len() < len => Probe::Below,
            Ordering::Equal => Probe::Within(&key[len..]),
        }
    }

    #[inline]
    fn compare_slot(&self, slot: Slot, suffix: &[u8], head: u32) -> Ordering {
        if slot.head != head {
            return slot.head.cmp(&head);
        }
        // Equal heads and a suffix shorter than a head: the shorter one begins the longer one, but
        // for zeros.
        if usize::from(slot.len).min(suffix.len()) < HEAD {
            return usize::from(slot.len).cmp(&suffix.len());
        }
        self.page
            .compare(self.tail_off(slot), slot.tail(), &suffix[HEAD..])
    }

    /// The first slot whose key is `>= key` (or `> key` with `strictly`), not counting an inner
    /// node's slot 0.
    #[inline]
    fn partition(&self, key: &[u8], strictly: bool) -> usize {
        let (low, high) = (self.first_key(), self.count());
        match self.probe(key) {
            Probe::Below => low,
            Probe::Above => high.max(low),
            Probe::Within(suffix) => self.partition_in(low, high, suffix, strictly),
        }
    }
    /// The same among slots `low` up to `high`, for what follows the node's prefix in a key. Keys
    /// are often numbers spread evenly, so the search begins where an even spread would have it:
    /// two or three cache lines of a cold leaf instead of one a step (Graefe, "B-tree Indexes,
    /// Interpolation Search, and Skew", DaMoN 2006). Where they are not it costs some steps more.
    #[inline]
    fn partition_in(&self, low: usize, high: usize, suffix: &[u8], strictly: bool) -> usize {
        let head = head_of(suffix);
        let guess = match high.saturating_sub(low) {
            0 => return low,
            few @ ..=FEW => low + few / 2,
            many => low + self.share_of(head, low, high - 1, many - 1),
        };
        self.partition_near(guess, low, high, suffix, strictly)
    }
    /// As far into `span` as `head` is into the heads from slot `first` to slot `last`.
    #[inline]
    fn share_of(&self, head: u32, first: usize, last: usize, span: usize) -> usize {
        let (least, most) = (self.slot(first).head, self.slot(last).head);
        if head <= least {
            return 0;
        }
        if head >= most {
            return span;
        }
        (u64::from(head - least) * span as u64 / u64::from(most - least)) as usize
    }
    /// The same, in strides that double from slot `guess` on, and then by halves.
    #[inline]
    fn partition_near(
        &self,
        guess: usize,
        mut low: usize,
        mut high: usize,
        suffix: &[u8],
        strictly: bool,
    ) -> usize {
        let head = head_of(suffix);
        let is_left = |at: usize| match self.compare_slot(self.slot(at), suffix, head) {
            Ordering::Less => true,
            Ordering::Equal => strictly,
            Ordering::Greater => false,
        };
        let mut stride = 1;
        if guess < high && !is_left(guess) {
            high = guess;
            while low < high {
                let at = high.saturating_sub(stride).max(low);
                if is_left(at) {
                    low = at + 1;
                    break;
                }
                high = at;
                stride *= 2;
            }
        } else {
            low = high.min(guess + 1);
            while low < high {
                let at = (low + stride - 1).min(high - 1);
                if !is_left(at) {
                    high = at;
                    break;
                }
                low = at + 1;
                stride *= 2;
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if is_left(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
    /// The first slot whose key is not below `key`.
    #[inline]
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        self.partition(key, false)
    }
    /// The same, given that none before `from` is: a step or two where what is sought is near.
    #[inline]
    pub fn lower_bound_from(&self, from: usize, key: &[u8]) -> usize {
        let count = self.count();
        match self.probe(key) {
            Probe::Below => from,
            Probe::Above => count.max(from),
            Probe::Within(_) if from >= count => from,
            Probe::Within(suffix) => self.partition_near(from, from, count, suffix, false),
        }
    }
    /// The slot of the child that covers `key`.
    #[inline]
    pub fn child_covering(&self, key: &[u8]) -> usize {
        self.partition(key, true).saturating_sub(1)
    }
    /// The slot of the child that covers what is just below `key`; `None` is above everything.
    #[inline]
    pub fn child_below(&self, key: Option<&[u8]>) -> usize {
        key.map_or(self.count(), |key| self.partition(key, false))
            .saturating_sub(1)
    }
    /// Whether slot `i` has exactly this key.
    pub fn is_at(&self, i: usize, key: &[u8]) -> bool {
        i < self.count()
            && match self.probe(key) {
                Probe::Within(suffix) => {
                    self.compare_slot(self.slot(i), suffix, head_of(suffix)) == Ordering::Equal
                }
                _ => false,
            }
    }

    /// Whether `key` comes before slot `i`'s; before the end of the node's range, if there is no
    /// such slot.
    pub fn is_below(&self, i: usize, key: &[u8]) -> bool {
        if i >= self.count() {
            return self.compare_high(key).is_gt();
        }
        match self.probe(key) {
            Probe::Below => true,
            Probe::Above => false,
            Probe::Within(suffix) => self
                .compare_slot(self.slot(i), suffix, head_of(suffix))
                .is_gt(),
        }
    }

    /// Whether slot `i`'s key begins with `key`.
    #[inline]
    pub fn starts_with(&self, i: usize, key: &[u8]) -> bool {
        let common = self.prefix_len().min(key.len());
        if self.compare_prefix(key).is_ne() {
            return false;
        }
        let (rest, slot) = (&key[common..], self.slot(i));
        if rest.len() > slot.len.into() {
            return false;
        }
        if rest.len() <= HEAD {
            let bits = 8 * (HEAD - rest.len()) as u32;
            return rest.is_empty() || slot.head >> bits == head_of(rest) >> bits;
        }
        slot.head == head_of(rest)
            && self
                .page
                .compare(self.tail_off(slot), rest.len() - HEAD, &rest[HEAD..])
                == Ordering::Equal
    }

    /// Appends slot `i`'s whole key.
    pub fn key_append(&self, i: usize, out: &mut Vec<u8>) {
        if i < self.first_key() {
            return;
        }
        let slot = self.slot(i);
        let prefix = self.page.u64(OFF_PREFIX_HEAD).to_be_bytes();
        append_head(out, prefix, self.prefix_len());
        let (off, len) = self.prefix_rest();
        if len > 0 {
            self.page.append_to(off, len, out);
        }
        append_head(out, slot.head.to_be_bytes(), slot.len.into());
        if slot.tail() > 0 {
            self.page.append_to(self.tail_off(slot), slot.tail(), out);
        }
    }
    pub fn key_into(&self, i: usize, out: &mut Vec<u8>) {
        out.clear();
        self.key_append(i, out);
    }
    pub fn key(&self, i: usize) -> Vec<u8> {
        let mut out = Vec::new();
        self.key_append(i, &mut out);
        out
    }
    /// Bytes of slot `i`'s whole key.
    pub fn key_len(&self, i: usize) -> usize {
        if i < self.first_key() {
            0
        } else {
            self.prefix_len() + usize::from(self.slot(i).len)
        }
    }

    /// The tid at the end of a leaf's entry `i`.
    #[inline]
    pub fn tid(&self, i: usize) -> Tid {
        let slot = self.slot(i);
        let (len, tail) = (usize::from(slot.len), slot.tail());
        if tail >= TID {
            let off = usize::from(slot.off) + tail - TID;
            // Six big-endian bytes, as the two that come first and the four after them.
            let first = self.page.u16(off).swap_bytes();
            let rest = self.page.u32(off + 2).swap_bytes();
            return Tid::from_u64(u64::from(first) << 32 | u64::from(rest));
        }
        if len < TID {
            return self.tid_across(slot);
        }
        // Its first bytes are in the head, what is before them is shifted out.
        let add = |bytes, k| bytes << 8 | u64::from(self.page.u8(usize::from(slot.off) + k));
        Tid::from_u64((0..tail).fold(u64::from(slot.head), add))
    }

    /// The same when some of its bytes are in the prefix.
    #[cold]
    fn tid_across(&self, slot: Slot) -> Tid {
        let (prefix, len) = (self.prefix_len(), usize::from(slot.len));
        let Some(start) = (prefix + len).checked_sub(TID) else {
            self.page.stray();
            return Tid::NONE;
        };
        let (prefix_head, head) = (
            self.page.u64(OFF_PREFIX_HEAD).to_be_bytes(),
            slot.head.to_be_bytes(),
        );
        tid_from(std::array::from_fn(|k| {
            match (start + k).checked_sub(prefix) {
                None if start + k < PREFIX_HEAD => prefix_head[start + k],
                None => self
                    .page
                    .u8(usize::from(self.prefix_off) + start + k - PREFIX_HEAD),
                Some(at) if at < HEAD => head[at],
                Some(at) => self.page.u8(usize::from(slot.off) + at - HEAD),
            }
        }))
    }
}
