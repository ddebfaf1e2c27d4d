//! Which relations a statement has open while it runs: what it scans, and what it writes with all
//! indexes.

use throng_syntax::vocabulary::TableLock;
use throng_types::Oid;

use super::{Node, Plan, PlannedStatement};

impl PlannedStatement {
    /// Whether a run of it reads or writes the table. A partitioned table that is only read through
    /// its partitions is not used itself.
    pub fn uses_table(&self, table: Oid) -> bool {
        self.writes_table(table)
            || self.scans(&|node| match node {
                Node::SeqScan(scan) => scan.table.oid == table,
                Node::IndexScan(scan) => scan.table.oid == table,
                Node::BitmapScan(scan) => scan.table.oid == table,
                _ => false,
            })
    }

    /// Whether a run of it reads all of the table, or what a bitmap finds there.
    pub fn reads_in_bulk(&self, table: Oid) -> bool {
        self.scans(&|node| match node {
            Node::SeqScan(scan) => scan.table.oid == table,
            Node::BitmapScan(scan) => scan.table.oid == table,
            _ => false,
        })
    }

    /// Whether a run of it reads the index, or writes the table that the index is on.
    pub fn uses_index(&self, index: Oid, table: Oid) -> bool {
        self.writes_table(table)
            || self.scans(&|node| match node {
                Node::IndexScan(scan) => scan.index.oid == index,
                Node::BitmapScan(scan) => scan.bitmap.reads(index),
                _ => false,
            })
    }

    fn writes_table(&self, table: Oid) -> bool {
        let written =
            |(oid, lock): (Oid, TableLock)| oid == table && lock >= TableLock::RowExclusive;
        self.all_locks().any(written)
    }

    fn scans(&self, wanted: &dyn Fn(&Node) -> bool) -> bool {
        fn any(plan: &Plan, wanted: &dyn Fn(&Node) -> bool) -> bool {
            wanted(&plan.node) || plan.children().into_iter().any(|child| any(child, wanted))
        }
        std::iter::once(&self.root)
            .chain(&self.subplans)
            .any(|plan| any(plan, wanted))
    }
}
