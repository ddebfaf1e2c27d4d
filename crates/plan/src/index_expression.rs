//! What an index's expressions and its condition have to do with the conditions of a query.
//!
//! A partial index serves a query whose conditions imply the index's.

use super::Planner;
use super::access::TableRef;
use throng_bind::binder::index_terms;
use throng_bind::expr::{Expr, system};
use throng_bind::implication::implied;
use throng_bind::inline::inline_in;
use throng_catalog::IndexDef;

/// What an index has for a query.
#[derive(Default)]
pub(super) struct Served {
    /// Its expressions over the entry.
    pub exprs: Vec<Expr>,
    /// Which of the conditions its own condition says already.
    pub said: Vec<usize>,
}

impl Planner<'_> {
    /// The index's expressions over the entry; none where the index does not have all rows that the
    /// conditions ask for.
    pub(super) fn terms(
        &self,
        source: &TableRef<'_>,
        index: &IndexDef,
        conditions: &[Expr],
    ) -> Option<Served> {
        if index.is_plain() {
            return Some(Served::default());
        }
        let terms = index_terms(index, source.table, self.ctx.catalog, self.ctx.eval).ok()?;
        let mut terms = terms.under(source.rel);
        terms
            .exprs
            .iter_mut()
            .chain(&mut terms.predicate)
            .for_each(inline_in);
        let mut served = Served {
            exprs: terms.exprs,
            said: Vec::new(),
        };
        let Some(predicate) = terms.predicate else {
            return Some(served);
        };
        if !implied(&predicate, conditions, &self.ctx.eval) {
            return None;
        }
        // A row that is locked or written is looked at again if it has changed, and may have left
        // the index then.
        if !self.needed_columns(source.rel).contains(&system::CTID) {
            let known = [predicate];
            let said = |at: &usize| implied(&conditions[*at], &known, &self.ctx.eval);
            served.said = (0..conditions.len()).filter(said).collect();
        }
        Some(served)
    }
}
