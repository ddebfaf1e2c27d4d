//! REFRESH MATERIALIZED VIEW.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::{Run, Work};
use throng_catalog::TableDef;

impl Run<'_> {
    /// New files for a materialized view and its indexes, filled from its query or left empty.
    /// `concurrently`: the rows that differ are changed where they are.
    pub(super) fn refresh(&mut self, oid: Oid, concurrently: bool, with_data: bool) -> Result<()> {
        let mut def: TableDef = (*self.table(oid)?).clone();
        let Some(materialized) = &mut def.materialized else {
            let message = format!("\"{}\" is not a materialized view", def.name);
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
        };
        if concurrently {
            self.work(Work::RefreshInPlace(oid));
            return Ok(());
        }
        materialized.populated = with_data;
        self.work(Work::DropFile(def.file));
        def.file = self.host.next_file();
        self.put_table(def);
        self.work(Work::CreateHeap(oid));
        if with_data {
            self.work(Work::Refresh(oid));
        }
        for index in self.catalog().indexes_of(oid).to_vec() {
            self.renew_index(&index);
            self.work(Work::CreateIndex {
                index: index.oid,
                build: with_data,
            });
        }
        Ok(())
    }
}
