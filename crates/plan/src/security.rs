//! Rows that nobody but row security may look at first.
//!
//! A table's entry may have conditions that come before the statement's own
//! ([`BoundQuery::security`]): policies, then conditions of views with `security_barrier`. They are
//! met where the table is read, in their order, and what could tell of rows that they hide comes
//! behind them.
//!
//! ```text
//! leakproof, of the statement ─► security, level by level ─► the rest, cheap ones first
//!   may be a key of an index       may be a key               never is
//! ```
//! Leakproof conditions see no more of a row than whether it fits, and tell nobody; so they may
//! come first. Everything above the table sees only rows that have passed.
//!
//! [`BoundQuery::security`]: throng_bind::query::BoundQuery::security

use super::access::{TableRef, column_type};
use super::{Built, Columns, Cost, Node, Planner};
use throng_bind::expr::{Expr, RelId};
use throng_bind::leakproof::leaks;

/// The conditions of one table in the order in which they are met.
pub(super) struct Ordered {
    pub conditions: Vec<Expr>,
    /// The first of them that may not see a row before the others have.
    pub leaky: usize,
}

impl Planner<'_> {
    pub(super) fn note_security(&mut self, security: Vec<(RelId, Vec<Expr>)>) {
        for (rel, conditions) in security {
            let all = self.security.entry(rel).or_default();
            let mut own = Vec::new();
            for condition in conditions {
                condition.conjuncts(&mut own);
            }
            // Reading and changing a row may ask for the same.
            own.retain(|condition| !all.contains(condition));
            all.append(&mut own);
        }
    }

    /// Whether no row of an entry passes, whatever is in it.
    pub(super) fn sees_nothing(&self, rel: RelId) -> bool {
        let own = self.security.get(&rel);
        own.is_some_and(|own| own.contains(&Expr::bool(false)))
    }

    /// No row of a table.
    pub(super) fn nothing_of(&mut self, source: &TableRef<'_>) -> Built {
        let columns = self.needed_columns(source.rel);
        let types = columns.iter().map(|c| column_type(source.table, *c));
        let node = Node::Values { rows: Vec::new() };
        Built {
            plan: self.node(node, types.collect(), Cost::default()),
            columns: Columns::of(source.rel, columns),
            order: Vec::new(),
        }
    }

    /// What is asked of an entry's rows, row security included.
    pub(super) fn secured(&self, rel: RelId, conditions: Vec<Expr>) -> Ordered {
        let Some(security) = self.security.get(&rel).filter(|own| !own.is_empty()) else {
            let conditions = cheap_first(conditions);
            let leaky = conditions.len();
            return Ordered { conditions, leaky };
        };
        let (leaky, mut all): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(leaks);
        all.extend(security.iter().cloned());
        let first = all.len();
        all.extend(cheap_first(leaky));
        Ordered {
            conditions: all,
            leaky: first,
        }
    }
}

/// Conditions that call users' functions come after the others.
pub(super) fn cheap_first(conditions: Vec<Expr>) -> Vec<Expr> {
    let calls = |e: &Expr| e.any(&mut |e| matches!(e, Expr::Routine(_)));
    let (dear, mut all): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(calls);
    all.extend(dear);
    all
}
