//! FOR UPDATE and its kin.
//!
//! ```text
//! row from input ─► Suspension::Lock, for each of its tables' rows in turn ─► session waits
//!      Done           the next one
//!      Gone, Skipped  the next row from input
//!      Changed        the newer version is locked and noted; the next one
//! all locked ─► row goes up, or, where one has changed, what the input makes of these versions
//! ```
//! Only when all are locked is the input asked again: of versions that can change no more. Were it
//! asked after each, two rows that another transaction has changed would take turns for ever, the
//! one looked for as it was while the other is asked for as it is.

use std::sync::Arc;

use throng_access::RowLockMode;
use throng_bind::expr::RelId;
use throng_bind::query::RowLockStrength;
use throng_catalog::TableDef;
use throng_plan::{LockRowsNode, RowSource};
use throng_types::{Datum, Error, Tid};

use super::context::Recheck;
use super::{BoxOperator, Cx, LockRequest, Operator, Row, Step, Suspension, build, empty};

/// What came of a request to lock a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    Done,
    /// The row has a newer version, which is locked.
    Changed(Tid),
    /// The row was deleted.
    Gone,
    /// SKIP LOCKED, and somebody has it.
    Skipped,
}

pub fn mode_of(strength: RowLockStrength) -> RowLockMode {
    match strength {
        RowLockStrength::KeyShare => RowLockMode::KeyShare,
        RowLockStrength::Share => RowLockMode::Share,
        RowLockStrength::NoKeyUpdate => RowLockMode::NoKeyUpdate,
        RowLockStrength::Update => RowLockMode::Update,
    }
}

pub struct LockRowsOp {
    node: &'static LockRowsNode,
    input: BoxOperator,
    row: Row,
    /// The target to lock next for the row in hand; None when there is no row in hand.
    target: Option<usize>,
    /// A version that is locked is newer than what the row in hand was made of.
    changed: bool,
    /// The input, run again for the versions that are locked.
    again: Option<(BoxOperator, Recheck)>,
}

impl LockRowsOp {
    pub fn new(node: &'static LockRowsNode, input: BoxOperator) -> LockRowsOp {
        LockRowsOp {
            node,
            input,
            row: Row::new(),
            target: None,
            changed: false,
            again: None,
        }
    }

    /// The versions that are locked for the row in hand, and those that it is made of besides.
    fn versions(&self) -> Recheck {
        let locked = self.node.rows.iter().map(|target| &target.source);
        let mut versions = Vec::new();
        for source in locked.chain(&self.node.others) {
            add_versions(source, &self.row, &mut versions);
        }
        versions.into()
    }

    /// Makes the row in hand of the versions that are locked; false where it is none any more.
    fn make_again(&mut self, cx: &mut Cx) -> Step<bool> {
        if self.again.is_none() {
            let operator = build::operator(&self.node.input, cx)?;
            self.again = Some((operator, self.versions()));
        }
        let Some((operator, versions)) = &mut self.again else {
            return Ok(false);
        };
        let outside = cx.recheck.replace(versions.clone());
        let found = operator.next(cx, &mut self.row);
        cx.recheck = outside;
        let found = found?;
        self.let_go();
        Ok(found)
    }

    /// There is no row in hand.
    fn let_go(&mut self) {
        self.target = None;
        self.changed = false;
        self.again = None;
    }
}

/// The table that a row is of, and its entry.
fn table_of<'t>(source: &'t RowSource, row: &[Datum]) -> (RelId, &'t TableDef) {
    let own = (source.rel, &*source.table);
    let Some((tableoid, members)) = &source.family else {
        return own;
    };
    let of =
        |(_, table): &&(RelId, Arc<TableDef>)| row[*tableoid as usize] == Datum::Oid(table.oid.0);
    let found = members.iter().find(of);
    found.map_or(own, |(rel, table)| (*rel, &**table))
}

/// Adds the only version that a re-check of `row` may take of a table; none of it and of all its
/// children, where an outer join has found none.
pub fn add_versions(source: &RowSource, row: &[Datum], versions: &mut Vec<(RelId, Option<Tid>)>) {
    if let Datum::Tid(tid) = row[source.tid as usize] {
        versions.push((table_of(source, row).0, Some(tid)));
        return;
    }
    let members = source.family.iter().flat_map(|(_, members)| members);
    let entries = members.map(|(rel, _)| *rel).chain([source.rel]);
    versions.extend(entries.map(|rel| (rel, None)));
}

impl Operator for LockRowsOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        loop {
            let Some(at) = self.target else {
                if !self.input.next(cx, &mut self.row)? {
                    return Ok(false);
                }
                self.target = Some(0);
                continue;
            };
            let Some(target) = self.node.rows.get(at) else {
                if self.changed && !self.make_again(cx)? {
                    continue;
                }
                std::mem::swap(row, &mut self.row);
                self.let_go();
                return Ok(true);
            };
            let tid = match &self.row[target.source.tid as usize] {
                Datum::Tid(tid) => *tid,
                // The nullable side of an outer join has no row here.
                Datum::Null => {
                    self.target = Some(at + 1);
                    continue;
                }
                _ => return Err(Error::internal("a row to lock without its ctid").into()),
            };
            match cx.locked.take() {
                None => {
                    return Err(Suspension::Lock(LockRequest {
                        file: table_of(&target.source, &self.row).1.file,
                        tid,
                        mode: mode_of(target.strength),
                        wait: target.wait,
                    }));
                }
                Some(Locked::Done) => self.target = Some(at + 1),
                Some(Locked::Gone | Locked::Skipped) => self.let_go(),
                Some(Locked::Changed(newest)) => {
                    self.row[target.source.tid as usize] = Datum::Tid(newest);
                    self.changed = true;
                    self.target = Some(at + 1);
                }
            }
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.input.rewind(cx);
        self.let_go();
    }

    fn reset(&mut self) -> bool {
        empty(&mut self.row);
        self.let_go();
        self.input.reset()
    }
}
