//! The order in which an aggregate takes its rows.

use super::{AggCall, Expr, SortKey};

/// Aggregates whose result shows in what order they took their rows.
pub(crate) const IN_ORDER: &[&str] = &[
    "array_agg",
    "json_agg",
    "json_agg_strict",
    "jsonb_agg",
    "jsonb_agg_strict",
    "string_agg",
];

/// The arguments that are not sorted by yet come last.
pub(crate) fn sort_by_arguments(order: &mut Vec<SortKey>, args: &[Expr]) {
    for arg in args {
        if !order.iter().any(|k| k.expr == *arg) {
            order.push(SortKey {
                expr: arg.clone(),
                descending: false,
                nulls_first: false,
            });
        }
    }
}

impl AggCall {
    /// The order in which it takes its rows: a user's ordered-set aggregate sorts them itself.
    pub fn row_order(&self) -> &[SortKey] {
        match self.agg.own().is_some() && !self.agg.is_plain() {
            true => &[],
            false => &self.order,
        }
    }

    /// Of its ORDER BY, what has to be written for the rest to come by itself.
    pub(crate) fn written_order(&self) -> &[SortKey] {
        if !self.distinct || !IN_ORDER.contains(&self.agg.name()) {
            return &self.order;
        }
        let comes_back = |written: &usize| {
            let mut order = self.order[..*written].to_vec();
            sort_by_arguments(&mut order, &self.args);
            order == self.order
        };
        let written = (0..self.order.len()).find(comes_back);
        &self.order[..written.unwrap_or(self.order.len())]
    }
}
