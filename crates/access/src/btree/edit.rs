//! Changes to a node, as edits of bytes that a mini-transaction can log.
//!
//! There are two kinds. Small ones (an entry in, entries out, a new high key) write only what they
//! change. The rest decode the node into [`Keys`], build a whole new [`image`] and put that in
//! place: it has no garbage and the longest prefix its keys share. [`room`] says beforehand which
//! one an insertion takes, because after a mini-transaction's first edit nothing may fail.

use throng_types::BlockNo;
use throng_types::page::{
    HEADER, KIND_BTREE_INNER, KIND_BTREE_LEAF, OFF_KIND, OFF_LOWER, OFF_SPECIAL, OFF_UPPER,
    PAGE_SIZE,
};

use super::node::*;

pub type Bytes = [u8; PAGE_SIZE];

/// Where a node is edited: a page in a mini-transaction, or bytes of one's own.
pub trait PageEdit {
    fn bytes(&self) -> &Bytes;
    fn write(&mut self, off: usize, bytes: &[u8]);
    /// As `memmove`.
    fn shift(&mut self, from: usize, to: usize, len: usize);
    /// Says that most of the page is about to change.
    fn rewritten(&mut self) {}
}

impl PageEdit for Bytes {
    fn bytes(&self) -> &Bytes {
        self
    }
    fn write(&mut self, off: usize, bytes: &[u8]) {
        self[off..off + bytes.len()].copy_from_slice(bytes);
    }
    fn shift(&mut self, from: usize, to: usize, len: usize) {
        self.copy_within(from..from + len, to);
    }
}

/// How much of a page is used, at most: all of it, but for tests, which split more when it is less.
#[derive(Clone, Copy, Debug)]
pub struct Limit(pub usize);

impl Limit {
    pub const PAGE: Limit = Limit(CAPACITY);
    /// What a rebuilt node must have left over, so that the next insertions do not rebuild it
    /// again.
    fn slack(self) -> usize {
        self.0 / 32
    }
}

/// Nodes with fewer keys are rebuilt however little it gains: splitting them gains nothing more.
const FEW: usize = 8;

/// Whether and how a key goes into a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Into the hole.
    Here,
    /// After the node has been rebuilt without its garbage, or with another prefix.
    Rebuilt,
    /// It must be split first.
    None,
}

/// Bytes of a cell for a suffix of `len` bytes.
fn cell_len(inner: bool, len: usize) -> usize {
    len.saturating_sub(HEAD) + if inner { 4 } else { 0 }
}

/// Bytes of a prefix that a node whose last key is new does without: a key beyond all others is
/// likely the first of many, which differ from the ones before in an earlier byte than those among
/// themselves.
fn spare_prefix(at: usize, count: usize) -> usize {
    usize::from(at == count)
}

/// Counts what goes into a node's hole, key by key, the node staying as it is.
pub struct Fit<'n, 'p> {
    node: &'n Node<'p, Bytes>,
    left: usize,
}

impl<'n, 'p> Fit<'n, 'p> {
    pub fn new(node: &'n Node<'p, Bytes>, limit: Limit) -> Fit<'n, 'p> {
        let hole = node.upper() - node.lower();
        Fit {
            node,
            left: hole.min(limit.0.saturating_sub(node.used())),
        }
    }

    /// Takes room for one more; false, and none taken, where there is not enough or the key lacks
    /// the node's prefix.
    pub fn take(&mut self, key: &[u8]) -> bool {
        if !self.node.shares_prefix(key) {
            return false;
        }
        let need = SLOT + cell_len(self.node.is_inner(), key.len() - self.node.prefix_len());
        let fits = need <= self.left;
        if fits {
            self.left -= need;
        }
        fits
    }
}

/// Whether `key` can go into slot `at`, and how.
pub fn room(node: &Node<'_, Bytes>, limit: Limit, at: usize, key: &[u8]) -> Room {
    let (inner, count, first) = (node.is_inner(), node.count(), node.first_key());
    debug_assert!(at >= first && at <= count);
    if Fit::new(node, limit).take(key) {
        return Room::Here;
    }
    // What the node would take with the longest prefix that its keys and the new one share.
    let mut shared = 0;
    if first < count {
        shared = common_prefix(&node.key(first), key).min(common_prefix(&node.key(count - 1), key));
        shared = shared.saturating_sub(spare_prefix(at, count));
    }
    let mut size = SLOT
        + cell_len(inner, key.len() - shared)
        + prefix_rest(shared)
        + node.high().map_or(0, |(_, len)| len);
    for i in 0..count {
        size += SLOT
            + cell_len(
                inner,
                if i < first {
                    0
                } else {
                    node.key_len(i) - shared
                },
            );
    }
    let allowed = if count < FEW {
        limit.0
    } else {
        limit.0 - limit.slack()
    };
    if size <= allowed {
        Room::Rebuilt
    } else {
        Room::None
    }
}

/// Puts a key into slot `at`, where [`room`] has said [`Room::Here`]. `child` is for inner nodes.
pub fn insert(page: &mut impl PageEdit, at: usize, key: &[u8], child: Option<BlockNo>) {
    let node = Node::read(page.bytes());
    let (count, prefix, lower, upper) =
        (node.count(), node.prefix_len(), node.lower(), node.upper());
    let suffix = &key[prefix..];
    let tail = &suffix[suffix.len().min(HEAD)..];
    let mut off = upper - tail.len();
    page.write(off, tail);
    if let Some(child) = child {
        off -= 4;
        page.write(off, &child.to_le_bytes());
    }
    let slot = Slot {
        head: head_of(suffix),
        len: suffix.len() as u16,
        off: off as u16,
    };
    let here = SLOTS + SLOT * at;
    page.shift(here, here + SLOT, SLOT * (count - at));
    page.write(here, &slot.encode().to_le_bytes());
    write_bounds(page, lower + SLOT, off);
}

/// Puts ascending keys into a leaf's slots from `at` on, where [`Fit`] has taken room for them.
pub fn insert_run(page: &mut impl PageEdit, at: usize, keys: &[&[u8]]) {
    let node = Node::read(page.bytes());
    let (count, prefix, lower, upper) =
        (node.count(), node.prefix_len(), node.lower(), node.upper());
    let tail = |key: &[u8]| prefix + (key.len() - prefix).min(HEAD);
    let size: usize = keys.iter().map(|key| key.len() - tail(key)).sum();
    let (mut cells, mut slots) = (
        Vec::with_capacity(size),
        Vec::with_capacity(SLOT * keys.len()),
    );
    for key in keys {
        let suffix = &key[prefix..];
        let slot = Slot {
            head: head_of(suffix),
            len: suffix.len() as u16,
            off: (upper - size + cells.len()) as u16,
        };
        slots.extend_from_slice(&slot.encode().to_le_bytes());
        cells.extend_from_slice(&key[tail(key)..]);
    }
    page.write(upper - size, &cells);
    let here = SLOTS + SLOT * at;
    page.shift(here, here + slots.len(), SLOT * (count - at));
    page.write(here, &slots);
    write_bounds(page, lower + slots.len(), upper - size);
}

/// `lower` and `upper` are neighbours: one write.
fn write_bounds(page: &mut impl PageEdit, lower: usize, upper: usize) {
    const _: () = assert!(OFF_UPPER == OFF_LOWER + 2);
    let mut both = [0; 4];
    both[..2].copy_from_slice(&(lower as u16).to_le_bytes());
    both[2..].copy_from_slice(&(upper as u16).to_le_bytes());
    page.write(OFF_LOWER, &both);
}

/// Takes the keys in `slots` (ascending) out.
pub fn remove(page: &mut impl PageEdit, slots: &[usize]) {
    let node = Node::read(page.bytes());
    let mut count = node.count();
    let mut garbage = node.garbage();
    for &at in slots {
        garbage += node.cell_len(node.slot(at));
    }
    // From the end, so that the numbers before stay right; neighbours go in one move.
    let mut rest = slots;
    while let Some((&last, _)) = rest.split_last() {
        let run = rest
            .iter()
            .rev()
            .zip((0..=last).rev())
            .take_while(|(slot, expected)| **slot == *expected)
            .count();
        let from = last + 1;
        page.shift(
            SLOTS + SLOT * from,
            SLOTS + SLOT * (from - run),
            SLOT * (count - from),
        );
        count -= run;
        rest = &rest[..rest.len() - run];
    }
    page.write(OFF_LOWER, &((SLOTS + SLOT * count) as u16).to_le_bytes());
    page.write(OFF_GARBAGE, &(garbage as u16).to_le_bytes());
}

/// Takes the mark off a leaf's entry: its row is there again.
pub fn unmark(page: &mut impl PageEdit, at: usize) {
    let slot = Node::read(page.bytes()).slot(at);
    page.write(SLOTS + SLOT * at, &slot.encode().to_le_bytes());
}

/// Points slot `at` of an inner node at another child.
pub fn set_child(page: &mut impl PageEdit, at: usize, child: BlockNo) {
    let off = Node::read(page.bytes()).slot(at).off.into();
    page.write(off, &child.to_le_bytes());
}

/// Keeps a node's first `keep` keys and gives it a new high key and right neighbour, without
/// rebuilding it. False, with nothing changed, when the hole is too small for the high key.
pub fn cut(
    page: &mut impl PageEdit,
    limit: Limit,
    keep: usize,
    high: Option<&[u8]>,
    right: BlockNo,
) -> bool {
    let node = Node::read(page.bytes());
    let mut garbage = node.garbage() + node.high().map_or(0, |(_, len)| len);
    for i in keep..node.count() {
        garbage += node.cell_len(node.slot(i));
    }
    let lower = SLOTS + SLOT * keep;
    let high = high.unwrap_or_default();
    let Some(upper) = node
        .upper()
        .checked_sub(high.len())
        .filter(|upper| *upper >= lower)
    else {
        return false;
    };
    if (lower - SLOTS) + (PAGE_SIZE - upper) > limit.0 + garbage {
        return false;
    }
    page.write(upper, high);
    write_bounds(page, lower, upper);
    page.write(OFF_GARBAGE, &(garbage as u16).to_le_bytes());
    let mut links = [0; 8];
    links[..4].copy_from_slice(&right.to_le_bytes());
    links[4..6].copy_from_slice(&(upper as u16).to_le_bytes());
    links[6..].copy_from_slice(&(high.len() as u16).to_le_bytes());
    page.write(OFF_RIGHT, &links);
    true
}

/// A node's keys (and children), decoded.
#[derive(Default)]
pub struct Keys {
    bytes: Vec<u8>,
    items: Vec<Item>,
    /// Of all keys, in bytes.
    total: usize,
    /// Bytes of the shortest key.
    shortest: usize,
}

#[derive(Clone, Copy)]
struct Item {
    start: u32,
    len: u16,
    child: BlockNo,
}

impl Keys {
    pub fn of(node: &Node<'_, Bytes>) -> Keys {
        let mut keys = Keys {
            bytes: Vec::with_capacity(PAGE_SIZE),
            items: Vec::with_capacity(node.count() + 1),
            ..Keys::default()
        };
        for i in 0..node.count() {
            let start = keys.bytes.len();
            node.key_append(i, &mut keys.bytes);
            let child = if node.is_inner() { node.child(i) } else { 0 };
            keys.note(i, start, child);
        }
        keys
    }
    pub fn len(&self) -> usize {
        self.items.len()
    }
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        (self.total, self.shortest) = (0, 0);
    }
    pub fn key(&self, i: usize) -> &[u8] {
        let item = self.items[i];
        &self.bytes[item.start as usize..][..item.len.into()]
    }
    pub fn child(&self, i: usize) -> BlockNo {
        self.items[i].child
    }
    pub fn set_child(&mut self, i: usize, child: BlockNo) {
        self.items[i].child = child;
    }
    pub fn push(&mut self, key: &[u8], child: BlockNo) {
        self.insert(self.items.len(), key, child);
    }
    pub fn insert(&mut self, at: usize, key: &[u8], child: BlockNo) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.note(at, start, child);
    }
    /// Makes what has been appended to the bytes from `start` on key `at`.
    fn note(&mut self, at: usize, start: usize, child: BlockNo) {
        let len = self.bytes.len() - start;
        self.shortest = if self.is_empty() {
            len
        } else {
            self.shortest.min(len)
        };
        self.total += len;
        self.items.insert(
            at,
            Item {
                start: start as u32,
                len: len as u16,
                child,
            },
        );
    }
    /// The longest prefix of the keys `from..to`, whose first is not stored in an inner node.
    fn shared_prefix(&self, from: usize, to: usize, inner: bool) -> usize {
        let first = from + usize::from(inner);
        if first + 1 >= to {
            0
        } else {
            common_prefix(self.key(first), self.key(to - 1))
        }
    }
    /// What a node of the keys `from..to` takes, its high key included.
    pub fn size(&self, from: usize, to: usize, inner: bool, high: usize) -> usize {
        let prefix = self.shared_prefix(from, to, inner);
        let mut size = prefix_rest(prefix) + high;
        for (i, item) in self.items[from..to].iter().enumerate() {
            let len = if inner && i == 0 {
                0
            } else {
                usize::from(item.len) - prefix
            };
            size += SLOT + cell_len(inner, len);
        }
        size
    }
    /// What a node of all keys and `key` after them would take, without a high key.
    pub fn size_with(&self, key: &[u8], inner: bool) -> usize {
        let (count, first) = (self.len() + 1, usize::from(inner));
        let prefix = if self.len() > first {
            common_prefix(self.key(first), key)
        } else {
            0
        };
        if !inner && self.shortest.min(key.len()) >= prefix + HEAD {
            // No suffix is shorter than a head: what each takes need not be looked at.
            return prefix_rest(prefix) + count * SLOT + self.total + key.len()
                - count * (prefix + HEAD);
        }
        let stored = |len: usize| SLOT + cell_len(inner, len - prefix);
        let unstored = if inner { SLOT + cell_len(inner, 0) } else { 0 };
        let before: usize = self
            .items
            .iter()
            .skip(first)
            .map(|item| stored(item.len.into()))
            .sum();
        // The first key of an inner node is not stored, be it the new one.
        prefix_rest(prefix)
            + unstored
            + before
            + if self.len() >= first {
                stored(key.len())
            } else {
                0
            }
    }
    /// About what key `i` takes: what split points are weighed by.
    pub fn weight(&self, i: usize) -> usize {
        SLOT + usize::from(self.items[i].len)
    }
}

/// What an image is made from.
pub struct Shape<'a> {
    pub level: u16,
    pub right: BlockNo,
    pub high: Option<&'a [u8]>,
    /// Bytes of the common prefix not made use of, for a node whose next keys will differ earlier
    /// than its first.
    pub spare_prefix: usize,
}

/// The page with the keys `from..to`; its LSN and checksum are zero.
///
/// # Panics
/// When they do not fit: the caller has asked [`Keys::size`].
pub fn image(keys: &Keys, from: usize, to: usize, shape: Shape<'_>) -> Box<Bytes> {
    let mut page: Box<Bytes> = Box::new([0; PAGE_SIZE]);
    let inner = shape.level > 0;
    let mut upper = PAGE_SIZE;
    let mut put = |page: &mut Bytes, bytes: &[u8]| {
        upper -= bytes.len();
        page[upper..upper + bytes.len()].copy_from_slice(bytes);
        upper
    };
    let prefix = keys
        .shared_prefix(from, to, inner)
        .saturating_sub(shape.spare_prefix);
    if prefix > 0 {
        let bytes = &keys.key(to - 1)[..prefix];
        let off = put(&mut page, bytes.get(PREFIX_HEAD..).unwrap_or_default());
        page.write(OFF_PREFIX_HEAD, &prefix_head(bytes).to_le_bytes());
        page.write(OFF_PREFIX, &(off as u16).to_le_bytes());
        page.write(OFF_PREFIX + 2, &(prefix as u16).to_le_bytes());
    }
    if let Some(high) = shape.high {
        let off = put(&mut page, high);
        page.write(OFF_HIGH, &(off as u16).to_le_bytes());
        page.write(OFF_HIGH + 2, &(high.len() as u16).to_le_bytes());
    }
    for (n, i) in (from..to).enumerate() {
        let suffix = if inner && n == 0 {
            &[][..]
        } else {
            &keys.key(i)[prefix..]
        };
        let mut off = put(&mut page, &suffix[suffix.len().min(HEAD)..]);
        if inner {
            off = put(&mut page, &keys.child(i).to_le_bytes());
        }
        let slot = Slot {
            head: head_of(suffix),
            len: suffix.len() as u16,
            off: off as u16,
        };
        page.write(SLOTS + SLOT * n, &slot.encode().to_le_bytes());
    }
    let lower = SLOTS + SLOT * (to - from);
    assert!(lower <= upper, "a node's keys fit its page");
    page[OFF_KIND] = if inner {
        KIND_BTREE_INNER
    } else {
        KIND_BTREE_LEAF
    };
    write_bounds(&mut *page, lower, upper);
    page.write(OFF_SPECIAL, &(PAGE_SIZE as u16).to_le_bytes());
    page.write(OFF_RIGHT, &shape.right.to_le_bytes());
    page.write(OFF_LEVEL, &shape.level.to_le_bytes());
    page
}

/// A page of the index that is no node: its header, with everything from [`SLOTS`] on a hole.
pub fn empty_page(kind: u8) -> Box<Bytes> {
    let mut page: Box<Bytes> = Box::new([0; PAGE_SIZE]);
    page[OFF_KIND] = kind;
    write_bounds(&mut *page, SLOTS, PAGE_SIZE);
    page.write(OFF_SPECIAL, &(PAGE_SIZE as u16).to_le_bytes());
    page
}

/// Puts an image in a page's place: all of it but LSN, checksum and hole.
pub fn install(page: &mut impl PageEdit, image: &Bytes) {
    let node = Node::read(image);
    page.rewritten();
    page.write(OFF_KIND, &image[OFF_KIND..node.lower()]);
    page.write(node.upper(), &image[node.upper()..]);
}

/// Rebuilds a node as it is, with one more key: where [`room`] has said [`Room::Rebuilt`].
pub fn rebuild_with(page: &mut impl PageEdit, at: usize, key: &[u8], child: Option<BlockNo>) {
    let node = Node::read(page.bytes());
    let mut keys = Keys::of(&node);
    let spare_prefix = spare_prefix(at, keys.len());
    keys.insert(at, key, child.unwrap_or_default());
    let mut high = Vec::new();
    let high = node.high_into(&mut high).then_some(&high[..]);
    let shape = Shape {
        level: node.level(),
        right: node.right(),
        high,
        spare_prefix,
    };
    let new = image(&keys, 0, keys.len(), shape);
    install(page, &new);
}

/// Does what [`room`] has said.
pub fn insert_as(
    page: &mut impl PageEdit,
    room: Room,
    at: usize,
    key: &[u8],
    child: Option<BlockNo>,
) {
    match room {
        Room::Here => insert(page, at, key, child),
        Room::Rebuilt => rebuild_with(page, at, key, child),
        Room::None => unreachable!("a full node is split before anything goes into it"),
    }
}

const _: () = assert!(SLOTS > HEADER);
