//! Estimates: PostgreSQL's unit costs, and its guesses where nothing is known.

use throng_types::{SqlType, oid};

use super::Cost;
use throng_bind::expr::Expr;

pub(super) const SEQ_PAGE: f64 = 1.0;
/// A page found through an index. Nearer to sequential than PostgreSQL's 4: most are in memory.
pub(super) const RANDOM_PAGE: f64 = 1.5;
pub(super) const TUPLE: f64 = 0.01;
pub(super) const INDEX_TUPLE: f64 = 0.005;
pub(super) const OPERATOR: f64 = 0.0025;
/// Pages of a table that are read for so many of its rows, which lie anywhere in it (Mackert and
/// Lohman, "Index scans using a finite LRU buffer", TODS 1989): what was read stays in memory.
pub(super) fn pages_of(rows: f64, pages: f64) -> f64 {
    let read = 2.0 * pages * rows / (2.0 * pages + rows).max(1.0);
    read.min(pages)
}

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

/// No row is thought wider: as much as one value may take.
const WIDEST: u32 = 0x3fff_ffff;

/// Mean bytes of a row of these types.
pub(super) fn width(types: &[SqlType]) -> u32 {
    let wider = |sum: u32, ty: &SqlType| sum.saturating_add(mean_bytes(*ty));
    types.iter().fold(0, wider).min(WIDEST)
}

/// Mean bytes of a type's values by PostgreSQL's guess (`get_typavgwidth`): from the most that one
/// may take, which is likely where it is small and seldom where it is large.
fn mean_bytes(ty: SqlType) -> u32 {
    /// Where nothing bounds them; what is longer than this at most is thought half full.
    const VARYING: u32 = 32;
    /// Nobody fills what may be longer.
    const LONG: u32 = 1000;
    if let Some(info) = ty.info()
        && let Ok(len) = u32::try_from(info.len)
    {
        return len;
    }
    match most_bytes(ty) {
        None => VARYING,
        Some(most) if most <= VARYING || ty.oid == oid::BPCHAR => most,
        Some(most) => VARYING + (most.min(LONG) - VARYING) / 2,
    }
}

/// The most bytes that a value takes, if its type's modifier bounds them.
fn most_bytes(ty: SqlType) -> Option<u32> {
    /// Of one character in UTF-8.
    const CHARACTER: u32 = 4;
    /// A length before the value; numbers have as much again for their weight and scale.
    const HEADER: u32 = 4;
    match ty.oid {
        oid::BPCHAR | oid::VARCHAR => {
            let characters = SqlType::string_length(ty.typmod)?.unsigned_abs();
            Some(HEADER + CHARACTER.saturating_mul(characters))
        }
        oid::NUMERIC => {
            let (precision, _) = SqlType::numeric_precision(ty.typmod)?;
            // Groups of four digits, two bytes each; the point may lie inside a group.
            let groups = (precision.unsigned_abs() + 6) / 4;
            Some(2 * HEADER + 2 * groups)
        }
        _ => None,
    }
}

/// What conditions test of a row, each arm of a disjunction by itself.
pub(super) fn tests(conditions: &[Expr]) -> f64 {
    let of = |condition: &Expr| match condition {
        Expr::And(parts) | Expr::Or(parts) => tests(parts),
        _ => 1.0,
    };
    conditions.iter().map(of).sum()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What PostgreSQL 18 shows for a row of such columns.
    #[test]
    fn widths_are_postgresqls() {
        let of = |oid, typmod| {
            let plain = SqlType::plain(oid);
            width(&[SqlType { typmod, ..plain }])
        };
        let numeric = |precision: i32, scale: i32| ((precision << 16) | scale) + 4;
        assert_eq!(of(oid::INT8, -1), 8);
        assert_eq!(of(oid::BOOL, -1), 1);
        assert_eq!(of(oid::TEXT, -1), 32);
        assert_eq!(of(oid::NUMERIC, -1), 32);
        assert_eq!(of(oid::NUMERIC, numeric(12, 2)), 16);
        assert_eq!(of(oid::VARCHAR, -1), 32);
        assert_eq!(of(oid::VARCHAR, 10 + 4), 38);
        assert_eq!(of(oid::VARCHAR, 2000 + 4), 516);
        assert_eq!(of(oid::BPCHAR, 5 + 4), 24);
        let longest = SqlType::plain(oid::BPCHAR);
        let typmod = 10_485_760 + 4;
        let row = [SqlType { typmod, ..longest }; 200];
        assert_eq!(width(&row), WIDEST);
    }
}
