//! FOR UPDATE and its kin.
//!
//! ```text
//! row from input ─► Suspension::Lock ─► session waits ─► Locked::Done ─────► row goes up
//!                                                 ├ Gone, Skipped ───► next row
//!                                                 └ Changed(tid) ────► re-check: the input is run again with this
//!                                                                      table giving just that version; a row that
//!                                                                      still qualifies is locked in its turn
//! ```

use std::sync::Arc;

use throng_access::RowLockMode;
use throng_bind::expr::RelId;
use throng_bind::query::RowLockStrength;
use throng_catalog::TableDef;
use throng_plan::LockTarget;
use throng_plan::Plan;
use throng_types::{Datum, Error, Tid};

use super::{BoxOperator, Cx, LockRequest, Operator, Row, Step, Suspension, build, empty};

/// What came of a request to lock a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    Done,
    /// The row has a newer version.
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
    input_plan: &'static Plan,
    targets: &'static [LockTarget],
    input: BoxOperator,
    row: Row,
    /// The target to lock next for the row in hand; None when there is no row in hand.
    target: Option<usize>,
    recheck: Option<Recheck>,
}

/// The input, run again for one row that changed.
struct Recheck {
    operator: BoxOperator,
    rel: RelId,
    tid: Tid,
}

impl LockRowsOp {
    pub fn new(
        input_plan: &'static Plan,
        targets: &'static [LockTarget],
        input: BoxOperator,
    ) -> LockRowsOp {
        LockRowsOp {
            input_plan,
            targets,
            input,
            row: Row::new(),
            target: None,
            recheck: None,
        }
    }

    /// Runs the re-check; afterwards the row in hand is the new version, or there is none.
    fn recheck(&mut self, cx: &mut Cx) -> Step<()> {
        let Some(recheck) = &mut self.recheck else {
            return Ok(());
        };
        let outside = cx.recheck.replace((recheck.rel, recheck.tid));
        let found = recheck.operator.next(cx, &mut self.row);
        cx.recheck = outside;
        // Locks start over: with a join, the other tables' rows may be others now.
        self.target = if found? { Some(0) } else { None };
        self.recheck = None;
        Ok(())
    }
}

/// The table that a row to lock is of, and its entry.
fn table_of<'t>(target: &'t LockTarget, row: &[Datum]) -> (RelId, &'t TableDef) {
    let own = (target.rel, &*target.table);
    let Some((tableoid, members)) = &target.family else {
        return own;
    };
    let of =
        |(_, table): &&(RelId, Arc<TableDef>)| row[*tableoid as usize] == Datum::Oid(table.oid.0);
    let found = members.iter().find(of);
    found.map_or(own, |(rel, table)| (*rel, &**table))
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
            if self.recheck.is_some() {
                self.recheck(cx)?;
                continue;
            }
            let Some(target) = self.targets.get(at) else {
                std::mem::swap(row, &mut self.row);
                self.target = None;
                return Ok(true);
            };
            let tid = match &self.row[target.tid as usize] {
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
                        file: table_of(target, &self.row).1.file,
                        tid,
                        mode: mode_of(target.strength),
                        wait: target.wait,
                    }));
                }
                Some(Locked::Done) => self.target = Some(at + 1),
                Some(Locked::Gone | Locked::Skipped) => self.target = None,
                Some(Locked::Changed(tid)) => {
                    let operator = build::operator(self.input_plan, cx)?;
                    let rel = table_of(target, &self.row).0;
                    self.recheck = Some(Recheck { operator, rel, tid });
                }
            }
        }
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.input.rewind(cx);
        self.target = None;
        self.recheck = None;
    }

    fn reset(&mut self) -> bool {
        empty(&mut self.row);
        self.target = None;
        self.recheck = None;
        self.input.reset()
    }
}
