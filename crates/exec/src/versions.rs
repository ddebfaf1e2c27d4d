//! Replacing and deleting rows together with what they keep elsewhere.
//!
//! What [`throng_txn::rows`] does for a version, [`Heap::drop_large`] does for each large value
//! that it had and its successor has not: older snapshots still read them, and vacuum frees them
//! with the version.

use throng_access::heap::NewVersion;
use throng_access::heap::large::LargeRef;
use throng_access::{Heap, RowLockMode, TxContext};
use throng_buffer::retry;
use throng_txn::Txn;
use throng_txn::rows::{self, RowOutcome, RowRef, RowTurn};
use throng_types::row::RowLayout;
use throng_types::{Result, Tid};

/// Rows of one kind in one heap.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub heap: &'a Heap,
    pub layout: &'a RowLayout,
}

impl Rows<'_> {
    /// As [`rows::update_row`].
    ///
    /// # Errors
    /// Its errors; XX001 where a large value is not there.
    pub async fn update(
        &self,
        txn: &Txn,
        row: RowRef,
        new: &[u8],
        (mode, hot): (RowLockMode, bool),
        turn: &mut RowTurn<'_>,
    ) -> Result<RowOutcome<NewVersion>> {
        let done = rows::update_row(txn, self.heap, row, new, mode, hot, turn).await?;
        if let RowOutcome::Done(version) = done
            && version.old_has_large
        {
            self.ended(txn, row.tid, new).await?;
        }
        Ok(done)
    }

    /// As [`rows::delete_row`].
    ///
    /// # Errors
    /// As [`Rows::update`].
    pub async fn delete(
        &self,
        txn: &Txn,
        row: RowRef,
        turn: &mut RowTurn<'_>,
    ) -> Result<RowOutcome<()>> {
        let done = rows::delete_row(txn, self.heap, row, turn).await?;
        self.taken(done, txn, row.tid).await
    }

    /// As [`rows::take_out_row`].
    ///
    /// # Errors
    /// As [`Rows::update`].
    pub async fn take_out(
        &self,
        txn: &Txn,
        row: RowRef,
        turn: &mut RowTurn<'_>,
    ) -> Result<RowOutcome<()>> {
        let done = rows::take_out_row(txn, self.heap, row, turn).await?;
        self.taken(done, txn, row.tid).await
    }

    async fn taken(&self, outcome: RowOutcome<()>, txn: &Txn, old: Tid) -> Result<RowOutcome<()>> {
        let varying = || self.layout.columns().iter().any(|p| p.width().is_none());
        if matches!(outcome, RowOutcome::Done(())) && varying() {
            self.ended(txn, old, &[]).await?;
        }
        Ok(outcome)
    }

    /// The version `old` has ended, and `new` has come after it.
    async fn ended(&self, txn: &Txn, old: Tid, new: &[u8]) -> Result<()> {
        let mut bytes = Vec::new();
        retry(|| self.heap.read_version(old, &mut bytes)).await?;
        self.let_go(txn, &bytes, new).await
    }

    /// Drops the large values of a version that `new` has not.
    ///
    /// # Errors
    /// XX001 where one is not there.
    pub async fn let_go(&self, ctx: &dyn TxContext, old: &[u8], new: &[u8]) -> Result<()> {
        if !RowLayout::has_external(old) {
            return Ok(());
        }
        let kept = self.layout.references(new)?;
        for (_, reference) in self.layout.references(old)? {
            if !kept.iter().any(|(_, other)| *other == reference) {
                let large = LargeRef::from_bytes(reference);
                retry(|| self.heap.drop_large(ctx, &large)).await?;
            }
        }
        Ok(())
    }
}
