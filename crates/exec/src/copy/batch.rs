//! Rows gathered and stored together: page by page into the heap, then into each index in the order
//! of its keys.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use throng_access::TxContext;
use throng_access::btree::Run;
use throng_buffer::{AccessStrategy, Ring, retry};
use throng_types::key::{self, KeyOrder};
use throng_types::row::encode_row;
use throng_types::{Datum, Error, Result, Tid};
use throng_values::inverted;

use crate::large;
use crate::run::Row;
use crate::slices::Turn;
use crate::table::Index;
use crate::write::exclusion::{self, Entering};
use crate::write::foreign::ForeignKeys;
use crate::write::row::{enter_run, enter_unchecked, is_unique_for, unique_violation};
use crate::write::{Context, Target};

/// Rows and bytes after which a batch is stored.
const MOST_ROWS: usize = 1000;
const MOST_BYTES: usize = 1 << 20;
/// Referenced keys remembered as being there.
const MOST_KNOWN: usize = 100_000;

/// What could not be stored.
pub struct Refused {
    /// The line of the row it is about; none for foreign keys, which are the statement's.
    pub line: Option<u64>,
    pub error: Error,
}

pub struct Batch {
    /// Rows as stored, one after another, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Rows as values, as many as there are in the batch, then ones kept for their memory. Empty
    /// where no foreign key will ask for them.
    rows: Vec<Row>,
    lines: Vec<u64>,
    /// Bytes of values, those stored elsewhere included.
    size: usize,
    /// The rows' keys, index by index.
    keys: Vec<Keys>,
    ring: Ring,
    known: FoundKeys,
}

/// The rows' keys of one index.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    entries: Vec<Key>,
    /// The first row that has none, and why.
    refused: Option<(usize, Error)>,
}

struct Key {
    start: usize,
    length: usize,
    row: usize,
    /// No other row may have it.
    unique: bool,
}

impl Keys {
    /// `computed`: the values of the index's expressions.
    fn add(&mut self, index: &Index, row: usize, values: &[Datum], computed: &[Datum]) {
        if let Some(classes) = &index.inverted {
            let mut found = inverted::Keys::default();
            match index.inverted_keys(classes, values, computed, &mut found) {
                Ok(()) => found
                    .sorted()
                    .into_iter()
                    .for_each(|key| self.push(key, row)),
                Err(error) => {
                    self.refused.get_or_insert((row, error));
                }
            }
            return;
        }
        let start = self.bytes.len();
        match index.append_key(values, computed, &mut self.bytes) {
            Ok(any_null) => self.entries.push(Key {
                start,
                length: self.bytes.len() - start,
                row,
                unique: is_unique_for(index, any_null),
            }),
            Err(error) => {
                self.bytes.truncate(start);
                self.refused.get_or_insert((row, error));
            }
        }
    }

    fn push(&mut self, key: &[u8], row: usize) {
        self.entries.push(Key {
            start: self.bytes.len(),
            length: key.len(),
            row,
            unique: false,
        });
        self.bytes.extend_from_slice(key);
    }

    fn of(&self, key: &Key) -> &[u8] {
        &self.bytes[key.start..key.start + key.length]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.refused = None;
    }
}

impl Batch {
    pub fn new(target: &Target, cx: &Context<'_>) -> Batch {
        let known = FoundKeys::new(target, cx);
        Batch {
            bytes: Vec::new(),
            ends: Vec::new(),
            rows: Vec::new(),
            lines: Vec::new(),
            size: 0,
            keys: target.indexes.iter().map(|_| Keys::default()).collect(),
            ring: Ring::new(AccessStrategy::BulkWrite),
            known,
        }
    }

    pub fn rows(&self) -> usize {
        self.lines.len()
    }

    pub fn is_full(&self) -> bool {
        self.lines.len() >= MOST_ROWS || self.size >= MOST_BYTES
    }

    /// Adds a row that came from `line`. False, and nothing added, where that takes waiting: for
    /// values too large for a row, or those of an index's expressions.
    pub fn add_now(&mut self, row: &[Datum], line: u64, target: &Target) -> Result<bool> {
        if target.terms.iter().any(Option::is_some) {
            return Ok(false);
        }
        let start = self.bytes.len();
        encode_row(&target.table.layout, row, &mut self.bytes)?;
        let size = self.bytes.len() - start;
        if size > large::LONGEST_ROW {
            self.bytes.truncate(start);
            return Ok(false);
        }
        let at = self.lines.len();
        for (keys, index) in self.keys.iter_mut().zip(&target.indexes) {
            keys.add(index, at, row, &[]);
        }
        self.close(row, line, size);
        Ok(true)
    }

    /// As [`add_now`](Self::add_now), waiting where it must: values too large for the row are
    /// stored now.
    pub async fn add(
        &mut self,
        row: &[Datum],
        line: u64,
        target: &Target,
        cx: &Context<'_>,
    ) -> Result<()> {
        let start = self.bytes.len();
        encode_row(&target.table.layout, row, &mut self.bytes)?;
        let size = self.bytes.len() - start;
        if size > large::LONGEST_ROW {
            self.bytes.truncate(start);
            cx.env.store.pool.wal().check_space()?;
            let bytes =
                large::encode(&target.table.heap, cx.txn, &target.table.layout, row).await?;
            self.bytes.extend_from_slice(&bytes);
        }
        let at = self.lines.len();
        for (number, keys) in self.keys.iter_mut().enumerate() {
            if let Some(computed) = target.computed(number, row, cx).await? {
                keys.add(&target.indexes[number], at, row, &computed);
            }
        }
        self.close(row, line, size);
        Ok(())
    }

    /// Ends the row whose bytes and keys are there by now.
    fn close(&mut self, row: &[Datum], line: u64, size: usize) {
        if !self.known.is_empty() {
            let at = self.lines.len();
            if at == self.rows.len() {
                self.rows.push(Row::new());
            }
            self.rows[at].clear();
            self.rows[at].extend_from_slice(row);
        }
        self.size += size;
        self.ends.push(self.bytes.len());
        self.lines.push(line);
    }

    /// Stores what was gathered and empties the batch; the number of rows.
    pub async fn store(
        &mut self,
        target: &Target,
        keys: &mut ForeignKeys,
        turn: &mut Turn,
        cx: &Context<'_>,
    ) -> Result<u64, Refused> {
        let count = self.lines.len();
        if count == 0 {
            return Ok(0);
        }
        let tids = self.store_rows(target, turn, cx).await?;
        let mut first_refused = None;
        for at in 0..target.indexes.len() {
            self.enter(target, at, &tids, &mut first_refused, turn, cx)
                .await?;
        }
        if first_refused.is_none() {
            self.exclude(target, &tids, turn, cx).await?;
        }
        if let Some((row, error)) = first_refused {
            return Err(Refused {
                line: Some(self.lines[row]),
                error,
            });
        }
        for (row, tid) in self.rows.iter().take(count).zip(&tids) {
            self.known
                .check(row, *tid, keys, cx)
                .await
                .map_err(|error| Refused { line: None, error })?;
            turn.worked(0, cx.env.cancel)
                .await
                .map_err(|error| Refused { line: None, error })?;
        }
        self.bytes.clear();
        self.ends.clear();
        self.lines.clear();
        self.size = 0;
        self.keys.iter_mut().for_each(Keys::clear);
        // A few wide rows do not keep their memory for the rest of the load.
        for row in &mut self.rows {
            row.clear();
        }
        self.bytes.shrink_to(2 * MOST_BYTES);
        for keys in &mut self.keys {
            keys.bytes.shrink_to(2 * MOST_BYTES);
        }
        Ok(count as u64)
    }

    async fn store_rows(
        &mut self,
        target: &Target,
        turn: &mut Turn,
        cx: &Context<'_>,
    ) -> Result<Vec<Tid>, Refused> {
        let (bytes, lines, ring) = (&self.bytes, &self.lines, &mut self.ring);
        let mut start = 0;
        let mut rows = Vec::with_capacity(self.ends.len());
        for end in &self.ends {
            rows.push(&bytes[start..*end]);
            start = *end;
        }
        let mut tids = Vec::with_capacity(rows.len());
        let heap = &target.table.heap;
        cx.txn.xid();
        while tids.len() < rows.len() {
            let refused = |error| Refused {
                line: Some(lines[tids.len()]),
                error,
            };
            cx.env.store.pool.wal().check_space().map_err(refused)?;
            let stored = retry(|| heap.insert_batch(cx.txn, &rows[tids.len()..], ring))
                .await
                .map_err(refused)?;
            turn.worked(throng_types::page::PAGE_SIZE, cx.env.cancel)
                .await
                .map_err(refused)?;
            cx.txn.wrote_new_row(heap.file()).map_err(refused)?;
            tids.extend(stored);
        }
        Ok(tids)
    }

    /// Makes the rows' entries in one index. The first row (in the input's order) whose key is
    /// there already is left in `first_refused`.
    async fn enter(
        &mut self,
        target: &Target,
        number: usize,
        tids: &[Tid],
        first_refused: &mut Option<(usize, Error)>,
        turn: &mut Turn,
        cx: &Context<'_>,
    ) -> Result<(), Refused> {
        let mut sorted = std::mem::take(&mut self.keys[number].entries);
        let (index, keys) = (&target.indexes[number], &self.keys[number]);
        let lines = &self.lines;
        let refused = |row: usize| {
            move |error| Refused {
                line: Some(lines[row]),
                error,
            }
        };
        if let Some((row, error)) = &keys.refused {
            return Err(refused(*row)(error.clone()));
        }
        // Equal keys stay in the input's order: the later one is refused.
        sorted.sort_by(|a, b| keys.of(a).cmp(keys.of(b)));
        let entries: Vec<(&[u8], Tid)> = sorted
            .iter()
            .map(|key| (keys.of(key), tids[key.row]))
            .collect();
        // Up to `end` they are unique alike.
        let (mut next, mut end) = (0, 0);
        while next < entries.len() {
            let at = sorted[next].row;
            // A row after one that is refused is not looked at any more; one before it may be
            // refused instead.
            if matches!(first_refused, Some((first, _)) if *first <= at) {
                next += 1;
                continue;
            }
            if first_refused.is_some() {
                end = next + 1;
            } else if next >= end {
                let unique = sorted[next].unique;
                let alike = sorted[next..].iter().take_while(|key| key.unique == unique);
                end = next + alike.count();
            }
            if let Some(constraint) = target.deferrable[number].as_ref()
                && sorted[next].unique
            {
                let (key, tid) = entries[next];
                enter_unchecked(index, key, tid, constraint, target, cx)
                    .await
                    .map_err(refused(at))?;
                next += 1;
                turn.worked(0, cx.env.cancel).await.map_err(refused(at))?;
                continue;
            }
            let run = enter_run(target, index, &entries[next..end], sorted[next].unique, cx)
                .await
                .map_err(refused(at))?;
            next += match run {
                Run::Added(count) => count,
                _ => {
                    let row = self.row(at, target).await.map_err(refused(at))?;
                    let computed = target.computed(number, &row, cx).await;
                    let computed = computed.map_err(refused(at))?.unwrap_or_default();
                    let error = unique_violation(target, index, &row, &computed, cx.env);
                    *first_refused = Some((at, error));
                    1
                }
            };
            turn.worked(0, cx.env.cancel).await.map_err(refused(at))?;
        }
        self.keys[number].entries = sorted;
        Ok(())
    }

    /// Looks whether the rows, whose entries are made, are in conflict with others.
    async fn exclude(
        &self,
        target: &Target,
        tids: &[Tid],
        turn: &mut Turn,
        cx: &Context<'_>,
    ) -> Result<(), Refused> {
        let excludes = |number: &usize| !target.indexes[*number].def.terms.exclusion.is_empty();
        let numbers: Vec<usize> = (0..target.indexes.len()).filter(excludes).collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let places: HashMap<Tid, usize> = tids.iter().copied().zip(0..).collect();
        for (at, tid) in tids.iter().enumerate() {
            let refused = |error| Refused {
                line: Some(self.lines[at]),
                error,
            };
            let row = self.row(at, target).await.map_err(refused)?;
            for &number in &numbers {
                let computed = target.computed(number, &row, cx).await.map_err(refused)?;
                let Some(computed) = computed else { continue };
                let entering = Entering {
                    row: &row,
                    computed: &computed,
                    tid: Some(*tid),
                };
                // Those behind it in the input look for this one.
                let later = |other: Tid| places.get(&other).is_some_and(|place| *place > at);
                exclusion::loaded(target, number, entering, &later, cx)
                    .await
                    .map_err(refused)?;
            }
            turn.worked(0, cx.env.cancel).await.map_err(refused)?;
        }
        Ok(())
    }

    /// The values of a row in the batch.
    async fn row(&self, at: usize, target: &Target) -> Result<Row> {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        let mut row = Row::new();
        let columns = target.def().columns.len();
        target
            .table
            .decode(&self.bytes[start..self.ends[at]], columns, &mut row)?;
        target.table.read_external(&mut row).await?;
        Ok(row)
    }
}

/// Encoded keys.
type KeySet = HashSet<Vec<u8>, FixedState>;

/// Referenced keys this statement has found: their rows are locked, so they stay until it ends.
struct FoundKeys {
    /// Places of each foreign key's columns, and its keys that were found.
    constraints: Vec<(Vec<usize>, KeySet)>,
}

impl FoundKeys {
    fn new(target: &Target, cx: &Context<'_>) -> FoundKeys {
        let constraints = cx.env.catalog.constraints_of(target.def().oid);
        let columns = constraints
            .iter()
            .filter_map(|c| c.foreign_key())
            .map(|key| {
                let places = key
                    .columns
                    .iter()
                    .map(|attnum| usize::from(*attnum) - 1)
                    .collect();
                (places, HashSet::default())
            });
        FoundKeys {
            constraints: columns.collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.constraints.is_empty()
    }

    /// Checks a row's foreign keys unless each of them was met before.
    async fn check(
        &mut self,
        row: &[Datum],
        tid: Tid,
        keys: &mut ForeignKeys,
        cx: &Context<'_>,
    ) -> Result<()> {
        let mut key = Vec::new();
        let mut new = keys.waits(cx);
        for (places, known) in &mut self.constraints {
            key.clear();
            for at in places.iter() {
                key::encode_one(&row[*at], KeyOrder::default(), &mut key)?;
            }
            if !known.contains(&key) {
                new = true;
                if known.len() >= MOST_KNOWN {
                    known.clear();
                }
                known.insert(key.clone());
            }
        }
        if new {
            keys.inserted(row, tid, cx).await
        } else {
            Ok(())
        }
    }
}
