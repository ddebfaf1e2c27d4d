//! Estimates: PostgreSQL's unit costs, and its guesses where nothing is known.

use throng_types::SqlType;

use super::Cost;
use crate::expr::Expr;
use crate::func::Strategy;

pub(super) const SEQ_PAGE: f64 = 1.0;
/// A page found through an index. Nearer to sequential than PostgreSQL's 4: most are in memory.
pub(super) const RANDOM_PAGE: f64 = 1.5;
pub(super) const TUPLE: f64 = 0.01;
pub(super) const INDEX_TUPLE: f64 = 0.005;
pub(super) const OPERATOR: f64 = 0.0025;
/// Descending a tree.
pub(super) const DESCENT: f64 = 0.4;
/// What a disabled way of doing something costs more.
pub(super) const DISABLED: f64 = 1e10;

/// Share of rows that satisfy an equality about whose column nothing is known.
pub(super) const EQUALITY: f64 = 0.005;
/// The same for one inequality, and for a range.
pub(super) const INEQUALITY: f64 = 1.0 / 3.0;
const OTHER: f64 = 0.25;
const IS_NULL: f64 = 0.005;
const LIKE: f64 = 0.05;

/// Share of rows for which a condition holds.
pub(super) fn selectivity(condition: &Expr) -> f64 {
    match condition {
        Expr::Const(value, _) => f64::from(u8::from(value.is_true())),
        Expr::And(parts) => parts.iter().map(selectivity).product(),
        Expr::Or(parts) => 1.0 - parts.iter().map(|p| 1.0 - selectivity(p)).product::<f64>(),
        Expr::Not(arg) => 1.0 - selectivity(arg),
        Expr::IsNull(_) => IS_NULL,
        Expr::IsNotNull(_) => 1.0 - IS_NULL,
        Expr::Op { op, .. } => match (op.strategy, op.name) {
            (Some(Strategy::Equal), _) => EQUALITY,
            (Some(_), _) => INEQUALITY,
            (None, "<>") => 1.0 - EQUALITY,
            (None, "~~" | "~" | "~~*" | "~*") => LIKE,
            _ => OTHER,
        },
        Expr::ArrayCompare {
            array, all: false, ..
        } => match &**array {
            Expr::Const(throng_types::Datum::Array(items), _) => {
                (items.items.len() as f64 * EQUALITY).min(1.0)
            }
            _ => (10.0 * EQUALITY).min(1.0),
        },
        _ => OTHER,
    }
}

pub(super) fn at_least_one(rows: f64) -> f64 {
    rows.max(1.0).round()
}

/// Mean bytes of a row of these types.
pub(super) fn width(types: &[SqlType]) -> u32 {
    const VARYING: u32 = 32;
    types
        .iter()
        .map(|t| match t.info().map_or(-1, |info| info.len) {
            len if len > 0 => len as u32,
            _ => SqlType::string_length(t.typmod).map_or(VARYING, |n| n.clamp(1, 1000) as u32),
        })
        .sum()
}

/// The input with `operators` more computed for each row.
pub(super) fn per_row(input: &Cost, operators: f64) -> Cost {
    Cost {
        total: input.total + input.rows * OPERATOR * operators,
        ..*input
    }
}

pub(super) fn filter(input: &Cost, condition: &Expr) -> Cost {
    Cost {
        rows: at_least_one(input.rows * selectivity(condition)),
        ..per_row(input, 1.0)
    }
}

pub(super) fn sort(input: &Cost) -> Cost {
    let n = input.rows.max(2.0);
    let startup = input.total + 2.0 * OPERATOR * n * n.log2();
    Cost {
        startup,
        total: startup + OPERATOR * n,
        ..*input
    }
}
