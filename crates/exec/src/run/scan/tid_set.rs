//! Sets of rows that indexes find, in the order in which the rows lie.
//!
//! ```text
//!   All [ {1}: (0,3) (0,9) (7,2) …      the list of a rare key, read to its end
//!         {2}: (0,1) … (7,2) …  ]       that of a common one, read where the rare one has some
//! ```
//! The entries of one key of an inverted index stand in the order of their rows, so its list is
//! read leaf by leaf as it is asked for, and stretches that no other list asks for are skipped.
//! What stands in another order ([`Gathered`]) is read whole before, and taken for everything where
//! it is too much. No set holds more than a bounded number of rows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use throng_access::btree::{BTree, Cursor, Direction, KeyRange, tid_bytes};
use throng_types::Tid;
use throng_values::inverted::Search;

use super::{Cx, Step};

/// Lists that are intersected: what more of them say is left to the conditions.
const MOST_OF_ALL: usize = 64;
/// Lists of which a row must be on several.
const MOST_OF_SOME: usize = 256;
/// Lists that are united as they are read.
const MOST_OF_ANY: usize = 1024;
/// Entries taken out of a leaf at once.
const BATCH: usize = 128;
/// Rows sorted at once.
const RUN: usize = 1 << 14;
/// Rows gathered at most: 32 MB.
const MOST_GATHERED: usize = 1 << 22;

pub enum TidSet {
    Everything,
    Nothing,
    List(PostingList),
    Gathered(Gathered),
    All(Vec<TidSet>),
    Any(United),
    /// Those that are in so many of these.
    AtLeast(usize, Vec<TidSet>),
}

impl TidSet {
    /// What a search finds in the key column `column` of an inverted index.
    pub fn of(search: Search, column: u8, tree: &BTree) -> TidSet {
        let whole = |key: Vec<u8>| [&[column], &key[..]].concat();
        let all = |parts: Vec<Search>| {
            let parts = parts.into_iter();
            parts.map(|part| TidSet::of(part, column, tree)).collect()
        };
        match search {
            Search::Everything => TidSet::Everything,
            Search::Nothing => TidSet::Nothing,
            Search::Key(key) => TidSet::List(PostingList::new(tree, whole(key))),
            Search::Range(..) => TidSet::Gathered(Gathered::of(vec![search], column, tree)),
            Search::All(mut parts) => {
                parts.truncate(MOST_OF_ALL);
                TidSet::All(all(parts))
            }
            Search::Any(parts) => {
                let is_look_up = |part: &Search| matches!(part, Search::Key(_) | Search::Range(..));
                match parts.len() > MOST_OF_ANY && parts.iter().all(is_look_up) {
                    true => TidSet::Gathered(Gathered::of(parts, column, tree)),
                    false => TidSet::Any(United::new(all(parts))),
                }
            }
            Search::AtLeast(least, mut parts) => {
                let more = parts.len().saturating_sub(MOST_OF_SOME);
                parts.truncate(MOST_OF_SOME);
                match least.saturating_sub(more) {
                    0 => TidSet::Everything,
                    least => TidSet::AtLeast(least, all(parts)),
                }
            }
        }
    }

    /// What an ordered index finds in these ranges.
    pub fn of_ranges(ranges: Vec<KeyRange>, tree: &BTree) -> TidSet {
        TidSet::Gathered(Gathered::new(ranges, tree))
    }

    /// Gathers what has to be there as a whole. Called again after a wait.
    pub fn prepare(&mut self, cx: &mut Cx) -> Step<()> {
        match self {
            TidSet::Everything | TidSet::Nothing | TidSet::List(_) => {}
            TidSet::Gathered(gathered) => {
                if !gathered.gather(cx)? {
                    *self = TidSet::Everything;
                }
            }
            TidSet::All(parts) => {
                for part in parts.iter_mut() {
                    part.prepare(cx)?;
                }
                parts.retain(|part| !matches!(part, TidSet::Everything));
                if parts.is_empty() {
                    *self = TidSet::Everything;
                } else if parts.iter().any(|part| matches!(part, TidSet::Nothing)) {
                    *self = TidSet::Nothing;
                }
            }
            TidSet::Any(united) => {
                for part in &mut united.parts {
                    part.prepare(cx)?;
                }
                let mut parts = united.parts.iter();
                if parts.any(|part| matches!(part, TidSet::Everything)) {
                    *self = TidSet::Everything;
                }
            }
            TidSet::AtLeast(least, parts) => {
                for part in parts.iter_mut() {
                    part.prepare(cx)?;
                }
                let before = parts.len();
                parts.retain(|part| !matches!(part, TidSet::Everything));
                *least = least.saturating_sub(before - parts.len());
                if *least == 0 {
                    *self = TidSet::Everything;
                }
            }
        }
        Ok(())
    }

    /// The first row at `from` or behind it, which never goes back. After [`TidSet::prepare`], and
    /// not of everything. Called again after a wait.
    pub fn seek(&mut self, from: Tid, cx: &mut Cx) -> Step<Option<Tid>> {
        match self {
            TidSet::Everything => Ok(Some(from)),
            TidSet::Nothing => Ok(None),
            TidSet::List(list) => list.seek(from, cx),
            TidSet::Gathered(gathered) => Ok(gathered.seek(from)),
            TidSet::All(parts) => in_all(parts, from, cx),
            TidSet::Any(united) => united.seek(from, cx),
            TidSet::AtLeast(least, parts) => in_some(*least, parts, from, cx),
        }
    }
}

fn in_all(parts: &mut [TidSet], mut from: Tid, cx: &mut Cx) -> Step<Option<Tid>> {
    'moved: loop {
        for at in 0..parts.len() {
            match parts[at].seek(from, cx)? {
                None => return Ok(None),
                Some(found) if found == from => {}
                Some(found) => {
                    // What has few rows comes to be asked first.
                    parts.swap(0, at);
                    from = found;
                    cx.tick()?;
                    continue 'moved;
                }
            }
        }
        return Ok(Some(from));
    }
}

fn in_some(least: usize, parts: &mut [TidSet], mut from: Tid, cx: &mut Cx) -> Step<Option<Tid>> {
    let mut next = Vec::with_capacity(parts.len());
    loop {
        next.clear();
        for part in parts.iter_mut() {
            next.extend(part.seek(from, cx)?);
        }
        if next.len() < least {
            return Ok(None);
        }
        // Nothing before the one that is the last of so many is in so many.
        let (_, nearest, _) = next.select_nth_unstable(least - 1);
        let nearest = *nearest;
        if nearest == from {
            return Ok(Some(from));
        }
        from = nearest;
        cx.tick()?;
    }
}

/// The rows of any of several sets.
pub struct United {
    parts: Vec<TidSet>,
    /// Parts that have been asked.
    begun: usize,
    /// What each of them has next.
    next: BinaryHeap<Reverse<(Tid, usize)>>,
}

impl United {
    pub fn new(parts: Vec<TidSet>) -> United {
        United {
            parts,
            begun: 0,
            next: BinaryHeap::new(),
        }
    }

    fn seek(&mut self, from: Tid, cx: &mut Cx) -> Step<Option<Tid>> {
        while self.begun < self.parts.len() {
            let found = self.parts[self.begun].seek(from, cx)?;
            self.next
                .extend(found.map(|tid| Reverse((tid, self.begun))));
            self.begun += 1;
        }
        while let Some(&Reverse((tid, at))) = self.next.peek() {
            if tid >= from {
                return Ok(Some(tid));
            }
            let found = self.parts[at].seek(from, cx)?;
            self.next.pop();
            self.next.extend(found.map(|tid| Reverse((tid, at))));
        }
        Ok(None)
    }
}

/// The rows that have one key.
pub struct PostingList {
    cursor: Cursor,
    file: throng_types::FileId,
    key: Vec<u8>,
    tids: Vec<Tid>,
    at: usize,
    /// There are no entries but those in hand.
    is_read: bool,
}

impl PostingList {
    fn new(tree: &BTree, key: Vec<u8>) -> PostingList {
        let range = KeyRange::prefix(key.clone());
        PostingList {
            cursor: tree.cursor(range, Direction::Forward).with_batch(BATCH),
            file: tree.file(),
            key,
            tids: Vec::new(),
            at: 0,
            is_read: false,
        }
    }

    fn seek(&mut self, from: Tid, cx: &mut Cx) -> Step<Option<Tid>> {
        loop {
            if self.tids.last().is_some_and(|last| *last >= from) {
                let left = &self.tids[self.at..];
                self.at += left.partition_point(|tid| *tid < from);
                return Ok(Some(self.tids[self.at]));
            }
            self.tids.clear();
            self.at = 0;
            if self.is_read {
                return Ok(None);
            }
            let start = [&self.key[..], &tid_bytes(from)].concat();
            self.cursor.skip_to(&start);
            self.is_read = !read_on(&mut self.cursor, self.file, &mut self.tids, cx)?;
            cx.tick()?;
        }
    }
}

/// Reads a cursor's next entries; false where there are no more behind them.
fn read_on(
    cursor: &mut Cursor,
    file: throng_types::FileId,
    tids: &mut Vec<Tid>,
    cx: &mut Cx,
) -> Step<bool> {
    let more = match cx.env.snapshot.reads() {
        None => cursor.next(tids)?,
        Some(reads) => cursor.next_noting(tids, |start, end| reads.gap(file, start, end))?,
    };
    Ok(more)
}

/// The rows that several ranges of keys lead to.
pub struct Gathered {
    tree: BTree,
    /// Those that are still to be read, the next one last.
    ranges: Vec<KeyRange>,
    cursor: Option<Cursor>,
    /// The last step's.
    tids: Vec<Tid>,
    /// Gathered, and not sorted yet.
    run: Vec<Tid>,
    /// Sorted, each with how far it was given out.
    runs: Vec<(Vec<Tid>, usize)>,
    /// What each of them has next.
    next: BinaryHeap<Reverse<(Tid, usize)>>,
}

impl Gathered {
    fn new(mut ranges: Vec<KeyRange>, tree: &BTree) -> Gathered {
        ranges.reverse();
        Gathered {
            tree: tree.clone(),
            ranges,
            cursor: None,
            tids: Vec::new(),
            run: Vec::new(),
            runs: Vec::new(),
            next: BinaryHeap::new(),
        }
    }

    /// Of keys and ranges.
    fn of(parts: Vec<Search>, column: u8, tree: &BTree) -> Gathered {
        let whole = |key: Vec<u8>| [&[column], &key[..]].concat();
        let range = |part| match part {
            Search::Key(key) => Some(KeyRange::prefix(whole(key))),
            Search::Range(lower, upper) => Some(KeyRange {
                lower: lower.map(whole),
                upper: upper.map(whole),
            }),
            _ => None,
        };
        Gathered::new(parts.into_iter().filter_map(range).collect(), tree)
    }

    /// Reads all of them; false where they are too many.
    fn gather(&mut self, cx: &mut Cx) -> Step<bool> {
        loop {
            let cursor = match &mut self.cursor {
                Some(cursor) => cursor,
                None => match self.ranges.pop() {
                    Some(range) => {
                        let cursor = self.tree.cursor(range, Direction::Forward);
                        self.cursor.insert(cursor)
                    }
                    None => break,
                },
            };
            let more = read_on(cursor, self.tree.file(), &mut self.tids, cx)?;
            self.run.append(&mut self.tids);
            if !more {
                self.cursor = None;
            }
            if self.run.len() >= RUN {
                self.end_run();
                if self.runs.len() * RUN > MOST_GATHERED {
                    return Ok(false);
                }
            }
            cx.tick()?;
        }
        self.end_run();
        Ok(true)
    }

    fn end_run(&mut self) {
        if self.run.is_empty() {
            return;
        }
        let mut run = std::mem::take(&mut self.run);
        run.sort_unstable();
        run.dedup();
        self.next.push(Reverse((run[0], self.runs.len())));
        self.runs.push((run, 0));
    }

    fn seek(&mut self, from: Tid) -> Option<Tid> {
        while let Some(&Reverse((tid, at))) = self.next.peek() {
            if tid >= from {
                return Some(tid);
            }
            let (run, given) = &mut self.runs[at];
            *given += run[*given..].partition_point(|tid| *tid < from);
            let found = run.get(*given).copied();
            self.next.pop();
            self.next.extend(found.map(|tid| Reverse((tid, at))));
        }
        None
    }
}
