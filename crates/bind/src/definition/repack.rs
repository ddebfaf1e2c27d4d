//! CLUSTER and VACUUM FULL: a table's rows packed anew, history and all; and which index a table is
//! clustered by.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::{Run, Work};
use throng_catalog::{IndexDef, IndexMethod, TableDef};

impl Run<'_> {
    /// New files for the table and its indexes, filled from the old ones.
    pub(super) fn repack(&mut self, oid: Oid, order: Option<Oid>) -> Result<()> {
        let mut def: TableDef = (*self.table(oid)?).clone();
        if let Some(index) = order {
            self.may_cluster(&def, index)?;
            self.mark_clustered(oid, Some(index));
        }
        let from = std::mem::replace(&mut def.file, self.host.next_file());
        // Copied rows have every column.
        def.columns.iter_mut().for_each(|c| c.missing = None);
        self.put_table(def);
        self.work(Work::CreateHeap(oid));
        self.work(Work::Repack {
            table: oid,
            from,
            order,
        });
        self.work(Work::DropFile(from));
        for index in self.catalog().indexes_of(oid).to_vec() {
            self.renew_index(&index);
            self.work(Work::IndexVersions(index.oid));
        }
        Ok(())
    }

    /// ALTER TABLE ... CLUSTER ON, SET WITHOUT CLUSTER.
    pub(super) fn cluster_on(&mut self, table: &TableDef, index: Option<Oid>) -> Result<()> {
        if table.is_partitioned() {
            let message = "cannot mark index clustered in partitioned table";
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        if let Some(index) = index {
            self.may_cluster(table, index)?;
        }
        self.mark_clustered(table.oid, index);
        Ok(())
    }

    fn may_cluster(&self, table: &TableDef, index: Oid) -> Result<()> {
        let indexes = self.catalog().indexes_of(table.oid);
        if let Some(def) = indexes.iter().find(|i| i.oid == index) {
            if def.terms.method != IndexMethod::Btree {
                let message = format!(
                    "cannot cluster on index \"{}\" because access method does not support clustering",
                    def.name
                );
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
            }
            // It does not have all rows.
            return match def.terms.predicate {
                None => Ok(()),
                Some(_) => {
                    let message = format!("cannot cluster on partial index \"{}\"", def.name);
                    Err(Error::new(state::FEATURE_NOT_SUPPORTED, message))
                }
            };
        }
        let name = self.catalog().index(index).map_or("", |i| &i.name);
        let message = format!("\"{name}\" is not an index for table \"{}\"", table.name);
        Err(Error::new(state::WRONG_OBJECT_TYPE, message))
    }

    fn mark_clustered(&mut self, table: Oid, marked: Option<Oid>) {
        for index in self.catalog().indexes_of(table).to_vec() {
            let clustered = marked == Some(index.oid);
            if index.clustered != clustered {
                self.edit.put(IndexDef {
                    clustered,
                    ..(*index).clone()
                });
            }
        }
    }
}
