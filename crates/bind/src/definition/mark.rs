//! What ALTER TABLE keeps of a table or a column without a look at its rows.

use throng_types::Result;

use super::Run;
use crate::command::TableMark;
use throng_catalog::TableDef;

impl Run<'_> {
    pub(super) fn mark(&mut self, mut def: TableDef, mark: &TableMark) -> Result<()> {
        let at = |attnum: u16| usize::from(attnum) - 1;
        match *mark {
            TableMark::Storage { attnum, storage } => def.columns[at(attnum)].storage = storage,
            TableMark::Compression {
                attnum,
                compression,
            } => def.columns[at(attnum)].compression = compression,
            TableMark::ClusterOn(index) => return self.cluster_on(&def, index),
            TableMark::ReplicaIdentity(identity) => def.replica_identity = identity,
        }
        self.put_table(def);
        Ok(())
    }
}
