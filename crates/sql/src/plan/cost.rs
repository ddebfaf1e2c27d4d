//! Estimates: PostgreSQL's unit costs, and its guesses where nothing is known.

use throng_types::SqlType;

use super::Cost;

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

/// The input's rows of which a share meets a condition.
pub(super) fn filter(input: &Cost, share: f64) -> Cost {
    Cost {
        rows: at_least_one(input.rows * share),
        ..per_row(input, 1.0)
    }
}

/// Rows of one side looked up in a table that is made of the other.
pub(super) fn hash_work(looked_up: f64, table: f64) -> f64 {
    looked_up * 2.0 * OPERATOR + table * (2.0 * OPERATOR + TUPLE)
}

/// All pairs of rows looked at, each by so many operators; the right side's are kept.
pub(super) fn pairs_work(left: f64, right: f64, operators: f64) -> f64 {
    /// Beyond so many the work on each pair decides what is to be done.
    const MANY: f64 = 1e7;
    let pair = match left * right <= MANY {
        true => OPERATOR,
        false => TUPLE + operators * OPERATOR,
    };
    left * right * pair
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
