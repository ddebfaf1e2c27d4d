//! Reading a whole table outside a plan: to build an index, to rewrite, to check what is there.

use throng_access::{TupleBatch, Visibility};
use throng_buffer::{Ring, retry};
use throng_txn::rows::RowRef;
use throng_types::{BlockNo, Datum, Result, Tid};

use crate::run::Row;
use crate::table::Table;

/// A table's rows, page by page, as a snapshot shows them.
pub struct PageRows<'a> {
    table: &'a Table,
    snapshot: Box<dyn Visibility + 'a>,
    block: BlockNo,
    end: BlockNo,
    ring: Ring,
    batch: TupleBatch,
}

impl<'a> PageRows<'a> {
    pub async fn new(table: &'a Table, snapshot: impl Visibility + 'a) -> Result<PageRows<'a>> {
        let end = retry(|| table.heap.blocks()).await?;
        let ring = Ring::for_scan(table.heap.pool(), end);
        Ok(PageRows {
            table,
            snapshot: Box::new(snapshot),
            block: 0,
            end,
            ring,
            batch: TupleBatch::new(),
        })
    }

    /// The table's pages.
    pub fn pages(&self) -> BlockNo {
        self.end
    }

    /// Replaces `out` by the rows of the next page, values kept elsewhere fetched; false at the
    /// end.
    pub async fn next(&mut self, out: &mut Vec<(RowRef, Row)>) -> Result<bool> {
        out.clear();
        if self.block >= self.end {
            return Ok(false);
        }
        self.read(self.block).await?;
        self.block += 1;
        let columns = self.table.def.columns.len();
        for i in 0..self.batch.len() {
            let mut row: Vec<Datum> = Vec::with_capacity(columns);
            self.table.decode(self.batch.row(i), columns, &mut row)?;
            self.table.read_external(&mut row).await?;
            out.push((
                RowRef {
                    tid: self.batch.tid(i),
                    root: self.batch.root(i),
                },
                row,
            ));
        }
        // Others on this core get their turn after each page.
        crate::turns::next_turn().await;
        Ok(true)
    }

    /// Goes to a page; gives how many rows it has.
    pub async fn read(&mut self, block: BlockNo) -> Result<usize> {
        let PageRows {
            table,
            snapshot,
            ring,
            batch,
            ..
        } = self;
        retry(|| {
            batch.clear();
            table.heap.scan_page(block, &**snapshot, ring, batch)
        })
        .await?;
        Ok(self.batch.len())
    }

    /// A row of the page last read, with its place; values kept elsewhere are not fetched.
    pub fn row(&self, at: usize) -> Result<(Tid, Row)> {
        let columns = self.table.def.columns.len();
        let mut row: Vec<Datum> = Vec::with_capacity(columns);
        self.table.decode(self.batch.row(at), columns, &mut row)?;
        Ok((self.batch.tid(at), row))
    }
}
