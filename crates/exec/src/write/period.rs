//! Foreign keys with a PERIOD: a row points at rows whose ranges, together, have all of its own in
//! them.
//!
//! A referencing row that comes or changes its key asks that the rows which are there now cover its
//! range, and locks them FOR KEY SHARE. A referenced row that goes or changes its key asks of each
//! row that points at its range that others cover what it had of that.

use throng_access::RowLockMode;
use throng_access::btree::{Direction, KeyRange};
use throng_buffer::retry;
use throng_txn::rows::{RowOutcome, RowRef, RowTurn, lock_row};
use throng_txn::{Snapshot, WaitPolicy};
use throng_types::key;
use throng_types::reach::Reach;
use throng_types::{Datum, Error, Result};
use throng_values::func::range::{cover, overlap};

use super::Context;
use crate::large;
use crate::run::Row;
use crate::slices::Turn;
use crate::table::{Index, Table};

/// How the referenced rows are looked for.
#[derive(Clone, Copy)]
pub(super) struct Lookup {
    /// They are locked FOR KEY SHARE.
    pub lock: bool,
    /// They must be in the transaction's snapshot.
    pub fixed: bool,
}

/// The referenced rows with a key, in one table that has rows: those with equal columns whose
/// ranges overlap.
pub(super) struct Period<'a> {
    pub table: &'a Table,
    pub index: &'a Index,
    /// A row of the table that has nothing but the key.
    pub values: &'a [Datum],
}

impl Period<'_> {
    /// The place of the range in the table's rows: it is the key's last column.
    fn place(&self) -> Result<usize> {
        let last = self.index.columns.last();
        last.copied()
            .ok_or_else(|| Error::internal("a key without columns"))
    }

    fn stretch(&self) -> Result<Option<KeyRange>> {
        let mut prefix = Vec::new();
        let count = self.index.columns.len() - 1;
        let columns = self.index.columns.iter().zip(&self.index.orders);
        for (at, order) in columns.take(count) {
            key::encode_one(&self.values[*at], *order, &mut prefix)?;
        }
        let period = &self.values[self.place()?];
        let Some((low, high)) = Reach::Overlaps.stretch(period, false)? else {
            return Ok(None);
        };
        let after = |bytes: Vec<u8>| [&prefix[..], &bytes].concat();
        Ok(Some(KeyRange {
            lower: low.map(after),
            upper: high.map(after),
        }))
    }

    /// The rows that a snapshot shows, with their ranges.
    async fn rows(&self, snapshot: &Snapshot, cx: &Context<'_>) -> Result<Vec<(RowRef, Datum)>> {
        let mut found = Vec::new();
        let Some(range) = self.stretch()? else {
            return Ok(found);
        };
        let place = self.place()?;
        let mut turn = Turn::new();
        let mut cursor = self.index.tree.cursor(range, Direction::Forward);
        let (mut tids, mut bytes, mut row) = (Vec::new(), Vec::new(), Row::new());
        loop {
            tids.clear();
            let more = retry(|| cursor.next(&mut tids)).await?;
            for &root in &tids {
                turn.worked(0, cx.env.cancel).await?;
                let seen = retry(|| self.table.heap.fetch(root, snapshot, &mut bytes)).await?;
                let Some(tid) = seen else { continue };
                self.table
                    .decode(&bytes, self.table.def.columns.len(), &mut row)?;
                let mut fetch = large::Fetch::default();
                retry(|| self.table.fetch_external(&mut row, &mut fetch)).await?;
                if !row[place].is_null() && overlap(&row[place], &self.values[place]) {
                    found.push((RowRef { tid, root }, row[place].clone()));
                }
            }
            if !more {
                return Ok(found);
            }
        }
    }

    /// Adds the ranges of the rows that are there now to `pieces`.
    pub(super) async fn gather(
        &self,
        how: Lookup,
        pieces: &mut Vec<Datum>,
        cx: &Context<'_>,
    ) -> Result<()> {
        if how.fixed {
            let seen = self.rows(&cx.txn.snapshot(), cx).await?;
            let seen: Vec<Datum> = seen.into_iter().map(|(_, range)| range).collect();
            let period = &self.values[self.place()?];
            if seen.is_empty() || !cover(&seen, period)? {
                return Ok(());
            }
        }
        loop {
            let rows = self.rows(&cx.txn.latest_snapshot(), cx).await?;
            if !how.lock || self.lock(&rows, cx).await? {
                pieces.extend(rows.into_iter().map(|(_, range)| range));
                return Ok(());
            }
            cx.env.cancel.check()?;
        }
    }

    /// Locks rows so that they stay; false where one has changed meanwhile.
    async fn lock(&self, rows: &[(RowRef, Datum)], cx: &Context<'_>) -> Result<bool> {
        for (at, _) in rows {
            let turn = &mut RowTurn::default();
            let (heap, mode) = (&self.table.heap, RowLockMode::KeyShare);
            match lock_row(cx.txn, heap, *at, mode, WaitPolicy::Block, turn).await? {
                RowOutcome::Done(()) | RowOutcome::SelfModified => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}
