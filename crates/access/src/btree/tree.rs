//! The way down, and what happens at its end: insertion and deletion of one entry.
//!
//! A descent holds no latch. It reads a page at some version, picks the child, makes sure that the
//! version still stands (so the child's number is sound), fetches the child at *its* version, and
//! only then makes sure once more that the parent has not changed: whoever splits or frees the
//! child changes the parent too, so from that moment the child at that version is the right page.
//! When anything has changed, the descent starts again at the root.

use std::ops::Deref;

use throng_buffer::{ExclusiveGuard, Mtr, OptimisticPage, PageRef, Try};
use throng_sync::hint;
use throng_types::{BlockNo, PageId, Tid, Xid};

use super::edit::{self, Bytes, Room};
use super::node::{KeyBytes, MAX_KEY, Node, TID, tid_bytes};
use super::split::Coming;
use super::{BTree, MtrPage, ROOT, key_too_large};
use crate::admit::admit_write;

/// Optimistic attempts at a leaf before it is latched.
const OPTIMISTIC_READS: u32 = 8;

/// Which leaf a descent looks for.
#[derive(Clone, Copy)]
pub(super) enum Goal<'k> {
    /// The one whose range has this key.
    Covering(&'k [u8]),
    /// The one whose range ends at this key or has it inside; `None` is above everything.
    Below(Option<&'k [u8]>),
}

impl Goal<'_> {
    fn slot<P: KeyBytes>(self, node: &Node<'_, P>) -> usize {
        match self {
            Goal::Covering(key) => node.child_covering(key),
            Goal::Below(key) => node.child_below(key),
        }
    }
}

/// The key where a page's range begins: the last separator on the way to it. `None` at the tree's
/// left edge.
#[derive(Default)]
pub(super) struct LowKey {
    known: bool,
    bytes: Vec<u8>,
}

impl LowKey {
    fn get(&self) -> Option<&[u8]> {
        self.known.then_some(&self.bytes)
    }
    fn forget(low: Option<&mut LowKey>) {
        if let Some(low) = low {
            low.known = false;
        }
    }
}

/// A leaf as [`BTree::read_leaf`] shows it.
pub(super) struct Leaf<'a> {
    pub block: BlockNo,
    pub node: Node<'a, PageRef<'a>>,
    /// Where its range begins, if that was asked for; `None` at the tree's left edge, too.
    pub low: Option<&'a [u8]>,
}

impl<'a> Leaf<'a> {
    fn new(page: PageId, bytes: &'a PageRef<'a>, low: Option<&'a LowKey>) -> Leaf<'a> {
        Leaf {
            block: page.block(),
            node: Node::read(bytes),
            low: low.and_then(LowKey::get),
        }
    }
}

/// What one page says about the way down. Everything in it was valid together.
pub(super) enum Step {
    Leaf,
    Down {
        child: BlockNo,
        /// The level of the page, not the child.
        level: u16,
    },
    /// The page changed while it was read.
    Changed,
}

/// Counts a turn; before any but the first, lets whoever is in the way be done.
fn relax(turn: &mut u32) {
    if *turn > 0 {
        if (*turn).is_multiple_of(16) {
            throng_sync::thread::yield_now()
        } else {
            hint::spin_loop()
        }
    }
    *turn = turn.wrapping_add(1);
}

impl BTree {
    /// Reads one page of the way.
    pub(super) fn look(
        &self,
        page: &OptimisticPage<'_>,
        goal: Goal<'_>,
        low: Option<&mut LowKey>,
    ) -> Try<Step> {
        let node = Node::read(page.page());
        if node.is_leaf() {
            return Ok(Step::Leaf);
        }
        let sound = node.is_inner() && node.level() > 0;
        let slot = goal.slot(&node);
        let step = Step::Down {
            child: node.child(slot),
            level: node.level(),
        };
        if let Some(low) = low.filter(|_| slot > 0) {
            low.known = true;
            node.key_into(slot, &mut low.bytes);
        }
        if !page.validate() {
            return Ok(Step::Changed);
        }
        if sound {
            Ok(step)
        } else {
            Err(self.corrupted(page.page_id()))
        }
    }

    /// The leaf for `goal`, at a version at which it is that; what is read from it counts when it
    /// validates.
    fn try_descend(
        &self,
        goal: Goal<'_>,
        mut low: Option<&mut LowKey>,
    ) -> Try<Option<OptimisticPage<'_>>> {
        LowKey::forget(low.as_deref_mut());
        let mut page = self.optimistic(ROOT)?;
        let mut above = None;
        loop {
            match self.look(&page, goal, low.as_deref_mut())? {
                Step::Changed => return Ok(None),
                Step::Leaf if above.is_none_or(|level| level == 1) => return Ok(Some(page)),
                Step::Down { child, level } if above.is_none_or(|above| level + 1 == above) => {
                    above = Some(level);
                    let next = self.optimistic(child)?;
                    if !page.validate() {
                        return Ok(None);
                    }
                    page = next;
                }
                _ if page.validate() => return Err(self.corrupted(page.page_id())),
                _ => return Ok(None),
            }
        }
    }

    /// The leaf for `goal`, latched by `latch`.
    fn leaf_latched<G: Deref<Target = Bytes>>(
        &self,
        goal: Goal<'_>,
        mut low: Option<&mut LowKey>,
        latch: impl Fn(PageId) -> Try<G>,
    ) -> Try<G> {
        let mut turn = 0;
        'root: loop {
            relax(&mut turn);
            LowKey::forget(low.as_deref_mut());
            let mut page = self.optimistic(ROOT)?;
            loop {
                match self.look(&page, goal, low.as_deref_mut())? {
                    Step::Changed => continue 'root,
                    Step::Leaf => {
                        // Only the root gets here: every other leaf is latched from its parent.
                        let leaf = latch(self.page_id(ROOT))?;
                        if Node::read(&*leaf).is_leaf() {
                            return Ok(leaf);
                        }
                        continue 'root;
                    }
                    Step::Down { child, level: 1 } => {
                        let leaf = latch(self.page_id(child))?;
                        if !page.validate() {
                            continue 'root;
                        }
                        if Node::read(&*leaf).is_leaf() {
                            return Ok(leaf);
                        }
                        return Err(self.corrupted(self.page_id(child)));
                    }
                    Step::Down { child, .. } => {
                        let next = self.optimistic(child)?;
                        if !page.validate() {
                            continue 'root;
                        }
                        page = next;
                    }
                }
            }
        }
    }

    /// The leaf that covers `key`, latched exclusively.
    pub(super) fn leaf_exclusive(&self, key: &[u8]) -> Try<ExclusiveGuard<'_>> {
        self.leaf_latched(Goal::Covering(key), None, |page| self.pool.exclusive(page))
    }

    /// What `read` makes of the leaf for `goal`. It may run several times, on bytes that make no
    /// sense; the last run counts.
    pub(super) fn read_leaf<R>(
        &self,
        goal: Goal<'_>,
        mut low: Option<&mut LowKey>,
        mut read: impl FnMut(Leaf<'_>) -> R,
    ) -> Try<R> {
        let mut turn = 0;
        while turn < OPTIMISTIC_READS {
            relax(&mut turn);
            if let Some(page) = self.try_descend(goal, low.as_deref_mut())? {
                let result = read(Leaf::new(page.page_id(), page.page(), low.as_deref()));
                if page.validate() {
                    return Ok(result);
                }
            }
        }
        let page = self.leaf_latched(goal, low.as_deref_mut(), |page| self.pool.shared(page))?;
        Ok(read(Leaf::new(
            page.page_id(),
            &page.page(),
            low.as_deref(),
        )))
    }

    /// Adds an entry. One that is there already is left alone.
    ///
    /// # Errors
    /// 54000 for a key longer than [`MAX_KEY`]; [`key_too_large`] words it with the index's name.
    pub fn insert(&self, key: &[u8], tid: Tid, xid: Xid) -> Try<()> {
        let entry = self.entry(key, tid)?;
        loop {
            admit_write(&self.pool)?;
            let leaf = self.leaf_exclusive(entry.bytes())?;
            if self.put(leaf, entry.bytes(), xid) {
                return Ok(());
            }
            self.make_room(entry.bytes(), Coming::One, xid)?;
        }
    }

    /// Puts an entry on the leaf where it belongs; false when that is full, or would have to be
    /// rebuilt with marked entries.
    pub(super) fn put(&self, leaf: ExclusiveGuard<'_>, entry: &[u8], xid: Xid) -> bool {
        let node = Node::read(&*leaf);
        let at = node.lower_bound(entry);
        if node.is_at(at, entry) {
            if node.is_marked(at) {
                let mut mtr = Mtr::new(&self.pool, xid);
                let page = mtr.add(leaf);
                edit::unmark(&mut MtrPage::new(&mut mtr, page), at);
                mtr.commit();
            }
            return true;
        }
        let room = edit::room(&node, self.limit, at, entry);
        if room == Room::None || room == Room::Rebuilt && node.has_marked() {
            return false;
        }
        let mut mtr = Mtr::new(&self.pool, xid);
        let page = mtr.add(leaf);
        edit::insert_as(&mut MtrPage::new(&mut mtr, page), room, at, entry, None);
        mtr.commit();
        true
    }

    /// Takes an entry out; false when it is not there. A leaf left empty stays until vacuum passes.
    pub fn delete(&self, key: &[u8], tid: Tid, xid: Xid) -> Try<bool> {
        let entry = self.entry(key, tid)?;
        admit_write(&self.pool)?;
        let leaf = self.leaf_exclusive(entry.bytes())?;
        let node = Node::read(&*leaf);
        let at = node.lower_bound(entry.bytes());
        if !node.is_at(at, entry.bytes()) {
            return Ok(false);
        }
        let mut mtr = Mtr::new(&self.pool, xid);
        let page = mtr.add(leaf);
        edit::remove(&mut MtrPage::new(&mut mtr, page), &[at]);
        mtr.commit();
        Ok(true)
    }

    pub(super) fn entry(&self, key: &[u8], tid: Tid) -> Try<Entry> {
        self.check_size(key)?;
        Ok(Entry::new(key, tid))
    }

    pub(super) fn check_size(&self, key: &[u8]) -> Try<()> {
        if key.len() > MAX_KEY {
            return Err(key_too_large(key.len(), &format!("file {}", self.file)).into());
        }
        Ok(())
    }
}

/// A key and its tid side by side, on the stack when they are short.
pub(super) enum Entry {
    Short([u8; Entry::SHORT], usize),
    Long(Vec<u8>),
}

impl Entry {
    const SHORT: usize = 96;

    pub fn new(key: &[u8], tid: Tid) -> Entry {
        let (len, tid) = (key.len() + TID, tid_bytes(tid));
        if len > Entry::SHORT {
            return Entry::Long([key, &tid].concat());
        }
        let mut bytes = [0; Entry::SHORT];
        bytes[..key.len()].copy_from_slice(key);
        bytes[key.len()..len].copy_from_slice(&tid);
        Entry::Short(bytes, len)
    }
    pub fn bytes(&self) -> &[u8] {
        match self {
            Entry::Short(bytes, len) => &bytes[..*len],
            Entry::Long(bytes) => bytes,
        }
    }
}
