//! What happens to rows: copied by ALTER TABLE, gone by TRUNCATE.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::alter::Rows;
use super::{Run, Work};
use crate::tree::expr::Expr;
use throng_catalog::{IndexDef, Relation, StatsDef, TableDef};
use throng_values::acl::right;

/// The expression with some of its slots replaced.
pub(super) fn slots_replaced(mut expr: Expr, f: &mut dyn FnMut(u32) -> Option<Expr>) -> Expr {
    if let Expr::Slot(slot, _) = &expr {
        return f(*slot).unwrap_or(expr);
    }
    expr.for_each_child_mut(&mut |e| {
        *e = slots_replaced(std::mem::replace(e, Expr::bool(true)), f);
    });
    expr
}

impl Run<'_> {
    /// Gives the table a new heap with all rows copied, and its indexes new files.
    pub(super) fn copy_rows(&mut self, oid: Oid, rows: Rows, checks: &[Work]) -> Result<()> {
        let mut def = (*self.table(oid)?).clone();
        let from = def.file;
        def.file = self.host.next_file();
        // Copied rows have every column.
        def.columns.iter_mut().for_each(|c| c.missing = None);
        self.put_table(def);
        self.work(Work::CreateHeap(oid));
        self.work(Work::Rewrite {
            table: oid,
            from,
            old: rows.old,
            values: rows.values,
        });
        self.work(Work::DropFile(from));
        let planned = |checks: &[Work], index: Oid| {
            checks
                .iter()
                .any(|w| matches!(w, Work::CreateIndex { index: i, .. } if *i == index))
        };
        for index in self.catalog().indexes_of(oid).to_vec() {
            if planned(checks, index.oid) {
                continue;
            }
            self.renew_index(&index);
            self.work(Work::CreateIndex {
                index: index.oid,
                build: true,
            });
        }
        Ok(())
    }

    /// Gives an index a new file; the old one goes with the transaction.
    pub(super) fn renew_index(&mut self, index: &IndexDef) {
        self.work(Work::DropFile(index.file));
        let file = self.host.next_file();
        self.edit.put(IndexDef {
            file,
            ..index.clone()
        });
    }

    /// New files for indexes, made from the rows that are there.
    pub(super) fn reindex(&mut self, indexes: &[Oid]) -> Result<()> {
        for oid in indexes {
            let Some(index) = self.catalog().index(*oid).cloned() else {
                continue;
            };
            self.renew_index(&index);
            self.work(Work::CreateIndex {
                index: index.oid,
                build: true,
            });
        }
        Ok(())
    }

    pub(super) fn truncate(
        &mut self,
        tables: &[Oid],
        only: &[Oid],
        restart_identity: bool,
        cascade: bool,
    ) -> Result<()> {
        let mut all = tables.to_vec();
        let mut next = 0;
        while next < all.len() {
            let oid = all[next];
            next += 1;
            if !only.contains(&oid) {
                for child in self.catalog().children_of(oid).to_vec() {
                    if !all.contains(&child) && !self.is_elsewhere(child) {
                        self.touch(child);
                        all.push(child);
                    }
                }
            }
        }
        let mut next = 0;
        while next < all.len() {
            let oid = all[next];
            next += 1;
            let mut pointing = self.catalog().referencing(oid).to_vec();
            let table = self.table(oid)?;
            for ancestor in self.catalog().ancestors(&table) {
                pointing.extend(self.catalog().referencing(ancestor).iter().cloned());
            }
            // The oldest tables first, whenever they came to point here.
            pointing.sort_by_key(|fk| fk.table);
            for fk in pointing {
                if all.contains(&fk.table) {
                    continue;
                }
                let (table, by) = (self.table(oid)?, self.table(fk.table)?);
                if !cascade {
                    let message = "cannot truncate a table referenced in a foreign key constraint";
                    return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message)
                        .detail(format!(
                            "Table \"{}\" references \"{}\".",
                            by.name, table.name
                        ))
                        .hint(format!(
                            "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                            by.name
                        )));
                }
                let relation = Relation::Table(by.clone());
                let user = self.host.current_user();
                if self
                    .catalog()
                    .relation_rights(user, &relation, right::TRUNCATE)
                    == 0
                {
                    let message = format!("permission denied for table {}", by.name);
                    return Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message));
                }
                let message = format!("truncate cascades to table \"{}\"", by.name);
                self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                self.touch(by.oid);
                all.push(by.oid);
            }
        }
        for oid in all {
            self.truncate_one(oid, restart_identity)?;
        }
        Ok(())
    }

    /// Whether it is another session's temporary table.
    fn is_elsewhere(&self, table: Oid) -> bool {
        let own = self.host.temporary_schema();
        let temporary = self.catalog().table(table);
        temporary
            .filter(|t| t.persistence.is_temporary())
            .and_then(|t| self.catalog().schema(t.schema))
            .is_some_and(|schema| schema.name != own)
    }

    /// New, empty files for the table and its indexes.
    fn truncate_one(&mut self, oid: Oid, restart_identity: bool) -> Result<()> {
        let def = self.table(oid)?;
        self.work(Work::DropFile(def.file));
        let file = self.host.next_file();
        self.put_table(TableDef {
            file,
            ..(*def).clone()
        });
        self.work(Work::CreateHeap(oid));
        for index in self.catalog().indexes_of(oid).to_vec() {
            self.renew_index(&index);
            self.work(Work::CreateIndex {
                index: index.oid,
                build: false,
            });
        }
        if let Some(stats) = self.catalog().stats_of(oid).cloned() {
            self.edit.put(StatsDef {
                rows: 0.0,
                pages: 0,
                ..(*stats).clone()
            });
        }
        if restart_identity {
            for sequence in self.catalog().sequences_of(oid).to_vec() {
                let Some(def) = self.catalog().sequence(sequence).cloned() else {
                    continue;
                };
                self.touch(sequence);
                let value = def.start;
                self.restart_sequence((*def).clone(), value);
            }
        }
        Ok(())
    }
}
