//! What is dropped with a table.

use throng_catalog::TableDef;

use super::Collector;
use crate::definition::Run;

impl Run<'_> {
    /// What goes with a table.
    pub(super) fn collect_table(&self, table: &TableDef, found: &mut Collector) {
        let oid = table.oid;
        let catalog = self.catalog();
        let indexes = catalog.indexes_of(oid).iter().map(|i| i.oid);
        let constraints = catalog.constraints_of(oid).iter().map(|c| c.oid);
        let parts = indexes.chain(constraints);
        parts.for_each(|part| found.part(part));
        catalog.stats_of(oid).iter().for_each(|s| found.part(s.oid));
        let sequences = catalog.sequences_of(oid).iter();
        sequences.for_each(|s| found.part(*s));
        self.collect_triggers(oid, found);
        self.collect_policies(oid, found);
        self.collect_children(oid, found);
        for named in std::iter::once(oid).chain(catalog.ancestors(table)) {
            for fk in catalog.referencing(named) {
                self.dependent(fk, oid, found);
            }
        }
        self.collect_views(oid, found);
        self.collect_routines(oid, found);
        self.collect_row_type(oid, found);
    }
}
