//! SIREAD locks: what serializable transactions have read, so that whoever writes there learns of
//! it.
//!
//! ```text
//!   relation ◄── page ◄── row            a table
//!   relation ◄────────── gap             an index: a stretch of keys, read whether or not anything was there
//! ```
//!
//! A lock never waits and never makes wait. It is kept twice: by what is locked, in one of many
//! partitions, for those who write; and by holder, for the end. A holder with too many small ones
//! on a page or a relation gets one on the whole instead ([`PER_PAGE`], [`PER_RELATION`]:
//! PostgreSQL's defaults), so what one transaction keeps is bounded by the relations it reads.
//!
//! **Nobody slips through.** A reader locks before it looks (or looks again after it has locked); a
//! writer writes before it asks. Each partition is a mutex, so either the writer finds the lock or
//! the reader finds what was written.
//!
//! Order of latches: a holder's own list, then a partition, then the graph. Whoever is named in a
//! partition is in the graph.

use foldhash::fast::RandomState;
use throng_sync::CachePadded;
use throng_sync::lock::Mutex;
use throng_types::{BlockNo, FileId, Tid};

use super::gaps::{Gap, Gaps};
use super::holders::Holders;
use super::{Id, Member, Seq};

type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

const PARTITIONS: usize = if cfg!(any(test, loom)) { 2 } else { 64 };
/// Rows of a page that a transaction locks singly (`max_pred_locks_per_page`).
const PER_PAGE: usize = 2;
/// Rows, pages and gaps of a relation that it locks singly (`max_pred_locks_per_relation`: half of
/// `max_pred_locks_per_transaction`, less one).
const PER_RELATION: usize = if cfg!(test) { 6 } else { 31 };
/// Small locks on a relation that are kept of transactions not told apart any more; beyond, they
/// have the whole of it.
const OLD_PER_RELATION: usize = if cfg!(test) { 8 } else { 1024 };

/// What is written.
#[derive(Clone, Copy)]
pub(super) enum Written<'k> {
    /// A row that was not there: only readers of the whole table have seen it missing.
    NewRow,
    /// This version is replaced or deleted.
    Row(Tid),
    /// Keys of an index.
    Keys(&'k [u8], Option<&'k [u8]>),
    /// Everything, at once.
    All,
}

/// What a lock is on, as `pg_locks` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadTarget {
    Relation,
    Page(BlockNo),
    Row(Tid),
    /// Keys of an index.
    Gap,
}

#[derive(Default)]
struct Relation {
    whole: Holders,
    pages: HashMap<BlockNo, Holders>,
    rows: HashMap<Tid, Holders>,
    gaps: Gaps,
}

impl Relation {
    fn is_empty(&self) -> bool {
        self.whole.is_empty()
            && self.pages.is_empty()
            && self.rows.is_empty()
            && self.gaps.is_empty()
    }

    fn all(&self) -> Holders {
        let mut found = self.whole.clone();
        let small = self.pages.values().chain(self.rows.values());
        small.for_each(|holders| found.add_all(holders));
        self.gaps.all(&mut found);
        found
    }

    fn readers(&self, of: Written<'_>) -> Holders {
        let mut found = self.whole.clone();
        match of {
            Written::NewRow => {}
            Written::Row(tid) => {
                let row = self.rows.get(&tid);
                let page = self.pages.get(&tid.block);
                row.into_iter().chain(page).for_each(|h| found.add_all(h));
            }
            Written::Keys(start, end) => self.gaps.overlapping(start, end, &mut found),
            Written::All => return self.all(),
        }
        found
    }

    /// Takes a holder's locks away, or makes them those of the old ones.
    fn give_back(&mut self, held: &HeldIn, id: Id, old: Option<Seq>) {
        let end = |holders: &mut Holders| match old {
            Some(seq) => holders.summarise(id, seq),
            None => holders.remove(id),
        };
        if held.whole {
            end(&mut self.whole);
        }
        for block in &held.pages {
            change(&mut self.pages, *block, end);
        }
        for tid in held.tids() {
            change(&mut self.rows, tid, end);
        }
        for gap in &held.gaps {
            match old {
                Some(seq) => self.gaps.summarise(gap, id, seq),
                None => self.gaps.remove(gap, id),
            }
        }
        if old.is_some() && self.pages.len() + self.rows.len() + self.gaps.len() > OLD_PER_RELATION
        {
            let oldest = self.all().old();
            self.forget_old_small(Seq::MAX);
            self.whole.add_old(oldest);
        }
    }

    fn forget_old_small(&mut self, through: Seq) {
        self.pages.retain(|_, h| kept(h, through));
        self.rows.retain(|_, h| kept(h, through));
        self.gaps.forget_old(through);
    }
}

fn kept(holders: &mut Holders, through: Seq) -> bool {
    holders.forget_old(through);
    !holders.is_empty()
}

/// Changes an entry that may come to be empty, and then goes.
fn change<K: Eq + std::hash::Hash>(
    map: &mut HashMap<K, Holders>,
    key: K,
    to: impl FnOnce(&mut Holders),
) {
    if let std::collections::hash_map::Entry::Occupied(mut entry) = map.entry(key) {
        to(entry.get_mut());
        if entry.get().is_empty() {
            entry.remove();
        }
    }
}

/// What one transaction holds on one relation.
#[derive(Default)]
struct HeldIn {
    whole: bool,
    pages: Vec<BlockNo>,
    rows: HashMap<BlockNo, Vec<u16>>,
    /// In `rows`.
    row_count: usize,
    gaps: Vec<Gap>,
}

impl HeldIn {
    fn small(&self) -> usize {
        self.pages.len() + self.row_count + self.gaps.len()
    }
    fn tids(&self) -> impl Iterator<Item = Tid> {
        let tid = |(block, slots): (&BlockNo, &Vec<u16>)| {
            let block = *block;
            slots
                .clone()
                .into_iter()
                .map(move |slot| Tid::new(block, slot))
        };
        self.rows.iter().flat_map(tid)
    }
}

/// What one transaction holds.
#[derive(Default)]
pub(super) struct Held(HashMap<FileId, HeldIn>);

type Partition = Mutex<HashMap<FileId, Relation>>;

pub(super) struct Targets {
    partitions: Box<[CachePadded<Partition>]>,
}

impl Targets {
    pub fn new() -> Targets {
        Targets {
            partitions: (0..PARTITIONS).map(|_| CachePadded::default()).collect(),
        }
    }

    fn partition(&self, file: FileId) -> &Partition {
        let hash = u64::from(file.0).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        &self.partitions[hash as usize % PARTITIONS]
    }

    /// Adds a lock unless a greater one covers it; whether it is new.
    fn acquire(
        &self,
        member: &Member,
        file: FileId,
        is_covered: impl FnOnce(&HeldIn) -> bool,
        add: impl FnOnce(&mut HeldIn, &mut Relation),
    ) -> bool {
        let mut held = member.held.lock();
        let held = held.0.entry(file).or_default();
        if held.whole || is_covered(held) {
            return false;
        }
        let mut relations = self.partition(file).lock();
        let relation = relations.entry(file).or_default();
        add(held, relation);
        if held.small() > PER_RELATION {
            take_whole(held, relation, member.id);
        }
        true
    }

    /// Locks a table, or all keys of an index.
    pub fn relation(&self, member: &Member, file: FileId) -> bool {
        let whole = |held: &mut HeldIn, relation: &mut Relation| {
            take_whole(held, relation, member.id);
        };
        self.acquire(member, file, |_| false, whole)
    }

    /// Locks a version of a row. Whether that is new: then the version is to be looked at again.
    pub fn row(&self, member: &Member, file: FileId, tid: Tid) -> bool {
        let is_covered = |held: &HeldIn| {
            held.pages.contains(&tid.block)
                || held
                    .rows
                    .get(&tid.block)
                    .is_some_and(|slots| slots.contains(&tid.slot))
        };
        self.acquire(member, file, is_covered, |held, relation| {
            let slots = held.rows.entry(tid.block).or_default();
            if slots.len() < PER_PAGE {
                slots.push(tid.slot);
                held.row_count += 1;
                relation.rows.entry(tid).or_default().add(member.id);
                return;
            }
            // The page first: at no moment is less locked than was.
            let page = relation.pages.entry(tid.block).or_default();
            page.add(member.id);
            for slot in held.rows.remove(&tid.block).unwrap_or_default() {
                held.row_count -= 1;
                let tid = Tid::new(tid.block, slot);
                change(&mut relation.rows, tid, |holders| holders.remove(member.id));
            }
            held.pages.push(tid.block);
        })
    }

    /// Locks a stretch of an index's keys.
    pub fn gap(&self, member: &Member, file: FileId, gap: Gap) -> bool {
        let covers = |(start, end): &Gap| {
            let beyond = match (end, &gap.1) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(end), Some(wanted)) => wanted <= end,
            };
            *start <= gap.0 && beyond
        };
        let is_covered = |held: &HeldIn| held.gaps.iter().any(covers);
        self.acquire(member, file, is_covered, |held, relation| {
            relation.gaps.add(&gap, member.id);
            held.gaps.push(gap.clone());
        })
    }

    /// Those who have read what is written. While `then` runs, none of them leaves the graph.
    pub fn readers<T>(
        &self,
        file: FileId,
        written: Written<'_>,
        then: impl FnOnce(&Holders) -> T,
    ) -> Option<T> {
        let relations = self.partition(file).lock();
        let relation = relations.get(&file)?;
        Some(then(&relation.readers(written)))
    }

    /// Takes a transaction's locks away; with `old`, its commit's number, they stay without telling
    /// whose they were.
    pub fn give_back(&self, member: &Member, old: Option<Seq>) {
        let held = std::mem::take(&mut *member.held.lock());
        for (file, held) in held.0 {
            let mut relations = self.partition(file).lock();
            let Some(relation) = relations.get_mut(&file) else {
                continue;
            };
            relation.give_back(&held, member.id, old);
            if relation.is_empty() {
                relations.remove(&file);
            }
        }
    }

    /// Forgets what was read by those not told apart any more, as far as they had committed by
    /// `through`.
    pub fn forget_old(&self, through: Seq) {
        for partition in &self.partitions {
            partition.lock().retain(|_, relation| {
                relation.whole.forget_old(through);
                relation.forget_old_small(through);
                !relation.is_empty()
            });
        }
    }

    /// The readers of `file` whose transactions are not told apart have read all of `new`.
    pub fn add_old(&self, new: FileId, seq: Seq) {
        let mut relations = self.partition(new).lock();
        relations.entry(new).or_default().whole.add_old(seq);
    }

    /// What a transaction holds.
    pub fn list(member: &Member, mut each: impl FnMut(FileId, ReadTarget)) {
        for (file, held) in &member.held.lock().0 {
            if held.whole {
                each(*file, ReadTarget::Relation);
            }
            let pages = held.pages.iter().map(|block| ReadTarget::Page(*block));
            let gaps = held.gaps.iter().map(|_| ReadTarget::Gap);
            let rows = held.tids().map(ReadTarget::Row);
            pages.chain(rows).chain(gaps).for_each(|t| each(*file, t));
        }
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.partitions.iter().all(|p| p.lock().is_empty())
    }
}

fn take_whole(held: &mut HeldIn, relation: &mut Relation, id: Id) {
    // The whole first: at no moment is less locked than was.
    relation.whole.add(id);
    relation.give_back(held, id, None);
    *held = HeldIn {
        whole: true,
        ..HeldIn::default()
    };
}
