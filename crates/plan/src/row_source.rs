//! Which rows of tables a row of a result is made of: what is asked for again when one of them has
//! changed (`EvalPlanQual`) are these, not whatever joins it then.

use std::sync::Arc;

use throng_bind::expr::{RelId, system};
use throng_bind::query::{FromItem, QueryKind, RelKind};
use throng_catalog::TableDef;
use throng_syntax::vocabulary::TableLock;
use throng_types::Result;

use super::{Columns, Planner, RowSource};

/// A table of FROM: its entry, itself, and whether it is meant without its children.
pub(super) type Source<'a> = (RelId, &'a Arc<TableDef>, bool);

/// The tables of FROM that have rows of their own.
pub(super) fn tables_in(from: &[FromItem]) -> Vec<Source<'_>> {
    let mut found = Vec::new();
    from.iter().for_each(|item| add_tables(item, &mut found));
    found
}

/// The tables of FROM and USING of what is written.
pub(super) fn of_writes(kinds: &[&QueryKind]) -> Vec<(RelId, Arc<TableDef>, bool)> {
    let mut sources = Vec::new();
    for kind in kinds {
        let from = match kind {
            QueryKind::Update(update) => &update.from,
            QueryKind::Delete(delete) => &delete.from,
            _ => continue,
        };
        let tables = tables_in(from).into_iter();
        sources.extend(tables.map(|(rel, table, only)| (rel, table.clone(), only)));
    }
    sources
}

fn add_tables<'a>(item: &'a FromItem, found: &mut Vec<Source<'a>>) {
    match item {
        FromItem::Rel(rel) => match &rel.kind {
            RelKind::Table(table) if table.has_rows() => found.push((rel.id, table, rel.only)),
            _ => {}
        },
        FromItem::Join { left, right, .. } => {
            add_tables(left, found);
            add_tables(right, found);
        }
    }
}

impl Planner<'_> {
    /// Rows tell which of this table they are made of.
    pub(super) fn need_row_source(&mut self, rel: RelId, table: &TableDef, only: bool) {
        let has_kin = !only && self.has_kin(table);
        let needed = self.needed.entry(rel).or_default();
        needed.insert(system::CTID);
        if has_kin {
            needed.insert(system::TABLEOID);
        }
    }

    /// Those of the tables of FROM that the rows tell.
    pub(super) fn row_sources(
        &mut self,
        from: &[FromItem],
        columns: &Columns,
    ) -> Result<Vec<RowSource>> {
        let mut sources = Vec::new();
        for source in tables_in(from) {
            let tableoid = columns.get(source.0, system::TABLEOID);
            if let Some(tid) = columns.get(source.0, system::CTID) {
                sources.push(self.row_source(source, tid, tableoid, TableLock::AccessShare)?);
            }
        }
        Ok(sources)
    }

    /// `tid` and `tableoid`: where they are in the row. The members of a family are locked as the
    /// table itself is.
    pub(super) fn row_source(
        &mut self,
        (rel, table, only): Source<'_>,
        tid: u32,
        tableoid: Option<u32>,
        lock: TableLock,
    ) -> Result<RowSource> {
        let mut family = None;
        // A query may ask for the tableoid of a table without children, too.
        if let Some(tableoid) = tableoid.filter(|_| !only && self.has_kin(table)) {
            let mut members = Vec::new();
            for (place, kin) in self.read_kin(rel, table)? {
                self.lock_leaf(rel, place, kin.table.oid, lock);
                members.push((kin.rel, kin.table));
            }
            family = Some((tableoid, members));
        }
        Ok(RowSource {
            rel,
            table: table.clone(),
            tid,
            family,
        })
    }
}
