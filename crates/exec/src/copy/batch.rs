//! Rows gathered and stored together: page by page into the heap, then into each index in the order of its keys.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use throng_access::TxContext;
use throng_access::btree::Run;
use throng_buffer::{AccessStrategy, Ring, retry};
use throng_types::key::{self, KeyOrder};
use throng_types::row::encode_row;
use throng_types::{Datum, Error, Result, Tid};

use super::turn::Turn;
use crate::large;
use crate::run::Row;
use crate::table::Index;
use crate::write::foreign::ForeignKeys;
use crate::write::row::{enter_run, is_unique_for, unique_violation};
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
    /// Rows as values, as many as there are in the batch, then ones kept for their memory. Empty where nothing needs them.
    rows: Vec<Row>,
    lines: Vec<u64>,
    /// Bytes of values, those stored elsewhere included.
    size: usize,
    /// Indexes or foreign keys will ask for the values.
    keeps_rows: bool,
    ring: Ring,
    known: Known,
}

impl Batch {
    pub fn new(target: &Target, cx: &Context<'_>) -> Batch {
        let known = Known::new(target, cx);
        Batch {
            bytes: Vec::new(),
            ends: Vec::new(),
            rows: Vec::new(),
            lines: Vec::new(),
            size: 0,
            keeps_rows: !target.indexes.is_empty() || !known.constraints.is_empty(),
            ring: Ring::new(AccessStrategy::BulkWrite),
            known,
        }
    }

    pub fn is_full(&self) -> bool {
        self.lines.len() >= MOST_ROWS || self.size >= MOST_BYTES
    }

    /// Adds a row that came from `line`; values too large for it are stored now. The row's bytes.
    pub async fn add(
        &mut self,
        row: &[Datum],
        line: u64,
        target: &Target,
        cx: &Context<'_>,
    ) -> Result<usize> {
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
        if self.keeps_rows {
            let at = self.lines.len();
            if at == self.rows.len() {
                self.rows.push(Row::new());
            }
            self.rows[at].clear();
            self.rows[at].extend_from_slice(row);
        }
        self.ends.push(self.bytes.len());
        self.lines.push(line);
        self.size += size;
        Ok(size)
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
        for index in &target.indexes {
            self.enter(target, index, &tids, &mut first_refused, turn, cx)
                .await?;
        }
        if let Some((row, error)) = first_refused {
            return Err(Refused {
                line: Some(self.lines[row]),
                error,
            });
        }
        for row in self
            .rows
            .iter()
            .take(if self.keeps_rows { count } else { 0 })
        {
            self.known
                .check(row, keys, cx)
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
        // A few wide rows do not keep their memory for the rest of the load.
        for row in &mut self.rows {
            row.clear();
        }
        self.bytes.shrink_to(2 * MOST_BYTES);
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
            tids.extend(stored);
        }
        Ok(tids)
    }

    /// Makes the rows' entries in one index. The first row (in the input's order) whose key is there already is left in
    /// `first_refused`.
    async fn enter(
        &self,
        target: &Target,
        index: &Index,
        tids: &[Tid],
        first_refused: &mut Option<(usize, Error)>,
        turn: &mut Turn,
        cx: &Context<'_>,
    ) -> Result<(), Refused> {
        let refused = |row: usize| {
            move |error| Refused {
                line: Some(self.lines[row]),
                error,
            }
        };
        let mut keys = Vec::new();
        let mut entries = Vec::with_capacity(tids.len());
        let mut key = Vec::new();
        for (at, row) in self.rows.iter().take(tids.len()).enumerate() {
            let any_null = index.key(row, &mut key).map_err(refused(at))?;
            let start = keys.len();
            keys.extend_from_slice(&key);
            entries.push((start..keys.len(), at, any_null));
        }
        // Equal keys stay in the input's order: the later one is refused.
        entries.sort_by(|(a, ..), (b, ..)| keys[a.clone()].cmp(&keys[b.clone()]));
        let unique: Vec<bool> = entries
            .iter()
            .map(|(.., any_null)| is_unique_for(index, *any_null))
            .collect();
        let rows: Vec<usize> = entries.iter().map(|(_, at, _)| *at).collect();
        let entries: Vec<(&[u8], Tid)> = entries
            .iter()
            .map(|(range, at, _)| (&keys[range.clone()], tids[*at]))
            .collect();
        // Up to `end` they are unique alike.
        let (mut next, mut end) = (0, 0);
        while next < entries.len() {
            let at = rows[next];
            // A row after one that is refused is not looked at any more; one before it may be refused instead.
            if matches!(first_refused, Some((first, _)) if *first <= at) {
                next += 1;
                continue;
            }
            if first_refused.is_some() {
                end = next + 1;
            } else if next >= end {
                let alike = unique[next..].iter().take_while(|u| **u == unique[next]);
                end = next + alike.count();
            }
            let run = enter_run(target, index, &entries[next..end], unique[next], cx)
                .await
                .map_err(refused(at))?;
            next += match run {
                Run::Added(count) => count,
                _ => {
                    *first_refused =
                        Some((at, unique_violation(target, index, &self.rows[at], cx.env)));
                    1
                }
            };
            turn.worked(0, cx.env.cancel).await.map_err(refused(at))?;
        }
        Ok(())
    }
}

/// Encoded keys.
type Keys = HashSet<Vec<u8>, FixedState>;

/// Referenced keys this statement has found: their rows are locked, so they stay until it ends.
struct Known {
    /// Places of each foreign key's columns, and its keys that were found.
    constraints: Vec<(Vec<usize>, Keys)>,
}

impl Known {
    fn new(target: &Target, cx: &Context<'_>) -> Known {
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
        Known {
            constraints: columns.collect(),
        }
    }

    /// Checks a row's foreign keys unless each of them was met before.
    async fn check(
        &mut self,
        row: &[Datum],
        keys: &mut ForeignKeys,
        cx: &Context<'_>,
    ) -> Result<()> {
        let mut key = Vec::new();
        let mut new = false;
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
            keys.inserted(row, cx).await
        } else {
            Ok(())
        }
    }
}
