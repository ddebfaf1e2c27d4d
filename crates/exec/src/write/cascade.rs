//! What foreign keys ask for at a statement's end: a queue.
//!
//! ```text
//!   statement ─► rows that went or changed their key ─► queue ─► actions on the rows that point at them
//!          │                                              ▲                │            │
//!          │                                              └── rows that go ┘            │
//!          └─► rows whose key is to be looked for ─► checks, when the queue is empty ◄──┘ rows that change
//! ```
//! Actions run in the order in which rows went, as PostgreSQL's AFTER triggers do. How long a chain
//! of them is, is the data's to say, so a cascade takes memory by its length and no stack.

use std::collections::VecDeque;
use std::sync::Arc;

use throng_catalog::{ConstraintDef, TableDef};
use throng_types::error::state;
use throng_types::{Result, Tid};

use super::Context;
use super::deferred::newest;
use super::foreign::{ForeignKeys, check};
use super::referential_action::act;
use crate::run::Row;
use crate::table::Table;

/// A referenced row that went or changed its key.
pub(super) struct KeyChange {
    pub table: Arc<TableDef>,
    /// As one that points at `table`.
    pub constraint: Arc<ConstraintDef>,
    pub old: Row,
    /// None: it went.
    pub new: Option<Row>,
}

/// A row that points at another.
pub(super) struct Pointing {
    pub table: Arc<TableDef>,
    pub constraint: Arc<ConstraintDef>,
    pub row: Row,
    /// Where the version is that was written.
    pub tid: Tid,
}

/// What is still to be done for the foreign keys of one statement.
#[derive(Default)]
pub(super) struct Work {
    pub departed: VecDeque<KeyChange>,
    pub pointing: Vec<Pointing>,
    /// Rows were changed since the last command number was taken.
    pub changed: bool,
}

/// The statement has changed its rows: actions, then the checks that were put off.
pub async fn finish(keys: impl IntoIterator<Item = ForeignKeys>, cx: &Context<'_>) -> Result<()> {
    let mut work = Work::default();
    for keys in keys {
        keys.leave_to(&mut work);
    }
    work.changed = true;
    work.run(cx).await
}

impl Work {
    /// One departed row and what comes of it.
    pub async fn of(departed: KeyChange, cx: &Context<'_>) -> Result<()> {
        let mut work = Work::default();
        work.departed.push_back(departed);
        work.run(cx).await
    }

    async fn run(mut self, cx: &Context<'_>) -> Result<()> {
        while let Some(departed) = self.departed.pop_front() {
            self.show(cx)?;
            act(&departed, &mut self, cx).await?;
            cx.env.cancel.check()?;
        }
        if self.pointing.is_empty() {
            return Ok(());
        }
        self.show(cx)?;
        for pointing in std::mem::take(&mut self.pointing) {
            pointing.check(cx).await?;
        }
        Ok(())
    }

    /// What was done so far is seen by the looks that follow.
    fn show(&mut self, cx: &Context<'_>) -> Result<()> {
        match std::mem::take(&mut self.changed) {
            true => cx.txn.next_command(),
            false => Ok(()),
        }
    }
}

impl Pointing {
    /// 23503 unless what the row points at exists.
    async fn check(&self, cx: &Context<'_>) -> Result<()> {
        let found = check(&self.table, &self.constraint, &self.row, cx).await;
        match found {
            Err(e) if e.code() == state::FOREIGN_KEY_VIOLATION => {
                // An action may have taken the row away meanwhile, or made it point elsewhere.
                let table = Table::of(&self.table, cx.env.store, &cx.env.eval)?;
                match newest(&table, self.tid, cx).await? {
                    None => Ok(()),
                    Some(now) if now == self.row => Err(e),
                    Some(now) => check(&self.table, &self.constraint, &now, cx).await,
                }
            }
            found => found,
        }
    }
}
