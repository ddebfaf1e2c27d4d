//! What is known of a column while planning, and the shares of rows that follow from it for one
//! comparison.
//!
//! The formulas are those that PostgreSQL's documentation gives ("How the Planner Uses
//! Statistics"): a value is one of the most common ones, with its frequency, or one of the others,
//! which share what is left; a bound cuts the common values one by one, and the others where it
//! lies between the bounds of the histogram.

use std::cmp::Ordering;
use std::collections::HashMap;

use foldhash::fast::FixedState;
use throng_types::key::{self, KeyOrder};
use throng_types::{Datum, Oid, oid};

use super::cost;
use throng_catalog::ColumnStats;
use throng_values::func::Strategy;
use throng_values::func::compare::{comparator, date_to_timestamp};

/// Distinct values of what nothing is known about: PostgreSQL's.
pub(super) const DISTINCT: f64 = 200.0;

/// What is known of a column, or of an expression that is one under a conversion.
#[derive(Clone, Copy)]
pub(super) struct Facts<'s> {
    /// Rows of its table.
    pub rows: f64,
    pub distinct: f64,
    /// `distinct` is no more than a guess.
    pub guessed: bool,
    /// Share of NULLs.
    pub nulls: f64,
    pub stats: Option<&'s ColumnStats>,
}

impl Facts<'_> {
    /// Of what has so many rows, and nothing else is known about.
    pub fn unknown(rows: f64) -> Facts<'static> {
        Facts {
            rows,
            distinct: DISTINCT.min(rows.max(1.0)),
            guessed: rows > DISTINCT,
            nulls: 0.0,
            stats: None,
        }
    }

    /// Share of rows with a value, which is known or not.
    pub fn equal(&self, value: Option<&Datum>) -> f64 {
        if value.is_some_and(Datum::is_null) {
            return 0.0;
        }
        let common = self.stats.map_or(&[][..], |s| &s.frequencies);
        if let (Some(value), Some(stats)) = (value, self.stats) {
            let same = |common: &Datum| order(stats.ty, common, value) == Some(Ordering::Equal);
            if let Some(at) = stats.common.iter().position(same) {
                return stats.frequencies[at];
            }
            let known: f64 = common.iter().sum();
            let others = (self.distinct - common.len() as f64).max(1.0);
            let share = (1.0 - known - self.nulls).max(0.0) / others;
            let least = common.last().copied().unwrap_or(1.0);
            return share.min(least).clamp(0.0, 1.0);
        }
        let share = (1.0 - self.nulls) / self.distinct.max(1.0);
        let most = common.first().copied().unwrap_or(1.0);
        share.min(most).clamp(0.0, 1.0)
    }

    /// Share of rows on one side of a value; none where that cannot be told.
    pub fn beyond(&self, strategy: Strategy, value: &Datum) -> Option<f64> {
        let stats = self.stats?;
        if value.is_null() {
            return Some(0.0);
        }
        let holds = |other: &Datum| {
            let order = order(stats.ty, other, value)?;
            Some(match strategy {
                Strategy::Less => order.is_lt(),
                Strategy::LessEqual => order.is_le(),
                Strategy::Equal => order.is_eq(),
                Strategy::GreaterEqual => order.is_ge(),
                Strategy::Greater => order.is_gt(),
            })
        };
        let (mut common, mut known) = (0.0, 0.0);
        for (other, frequency) in stats.common.iter().zip(&stats.frequencies) {
            known += frequency;
            if holds(other)? {
                common += frequency;
            }
        }
        let rest = (1.0 - known - self.nulls).max(0.0);
        if stats.bounds.len() < 2 {
            // All others are guessed to be as the common ones.
            let share = match stats.common.is_empty() {
                true => return None,
                false if rest < 0.01 => 0.0,
                false => cost::INEQUALITY,
            };
            return Some((common + rest * share).clamp(0.0, 1.0));
        }
        let below = below(stats, value)?;
        let share = match strategy {
            Strategy::Less | Strategy::LessEqual => below,
            _ => 1.0 - below,
        };
        // Nobody knows the very ends.
        let least = 0.01 / (stats.bounds.len() - 1) as f64;
        Some((common + rest * share.clamp(least, 1.0 - least)).clamp(0.0, 1.0))
    }

    /// Share of rows that pass a test, from the common values and the bounds; with how many bounds
    /// were tested, which is what the second part of it is worth: (share of the common, share of
    /// the others that pass, bounds, share of the others).
    pub fn tested(&self, test: &dyn Fn(&Datum) -> bool) -> (f64, f64, usize, f64) {
        let Some(stats) = self.stats else {
            return (0.0, 0.0, 0, 1.0 - self.nulls);
        };
        let (mut passed, mut known) = (0.0, 0.0);
        for (value, frequency) in stats.common.iter().zip(&stats.frequencies) {
            known += frequency;
            if test(value) {
                passed += frequency;
            }
        }
        // The ends are not like the others.
        let inner = match &stats.bounds[..] {
            [_, inner @ .., _] => inner,
            _ => &[],
        };
        let hits = inner.iter().filter(|value| test(value)).count();
        let share = hits as f64 / (inner.len() as f64).max(1.0);
        (
            passed,
            share,
            inner.len(),
            (1.0 - known - self.nulls).max(0.0),
        )
    }
}

/// Share of pairs of rows whose values are equal.
pub(super) fn joined(a: &Facts<'_>, b: &Facts<'_>) -> f64 {
    let plain = (1.0 - a.nulls) * (1.0 - b.nulls) / a.distinct.max(b.distinct).max(1.0);
    let (Some(x), Some(y)) = (a.stats, b.stats) else {
        return plain;
    };
    if x.common.is_empty() || y.common.is_empty() {
        return plain;
    }
    let matched = matches(x, y);
    let other_a = (1.0 - a.nulls - matched.left - matched.left_alone).clamp(0.0, 1.0);
    let other_b = (1.0 - b.nulls - matched.right - matched.right_alone).clamp(0.0, 1.0);
    let side =
        |mine_alone: f64, mine: f64, other: f64, other_alone: f64, distinct: f64, n: usize| {
            let mut share = matched.product;
            if distinct > n as f64 {
                share += mine_alone * other / (distinct - n as f64);
            }
            if distinct > matched.count {
                share += mine * (other + other_alone) / (distinct - matched.count);
            }
            share
        };
    let (na, nb) = (x.common.len(), y.common.len());
    let one = side(
        matched.left_alone,
        other_a,
        other_b,
        matched.right_alone,
        b.distinct,
        nb,
    );
    let two = side(
        matched.right_alone,
        other_b,
        other_a,
        matched.left_alone,
        a.distinct,
        na,
    );
    one.min(two).clamp(0.0, 1.0)
}

/// Share of the rows of one side that have a partner among `rows` rows of the other.
pub(super) fn partnered(a: &Facts<'_>, b: &Facts<'_>, rows: f64) -> f64 {
    let present = 1.0 - a.nulls;
    if a.guessed || b.guessed {
        return 0.5 * present;
    }
    let others = b.distinct.min(rows.max(1.0));
    if let (Some(x), Some(y)) = (a.stats, b.stats)
        && !x.common.is_empty()
        && !y.common.is_empty()
        && others >= y.common.len() as f64
    {
        let matched = matches(x, y);
        let (mine, theirs) = (a.distinct - matched.count, others - matched.count);
        let sure = match mine <= theirs || theirs < 0.0 {
            true => 1.0,
            false => theirs / mine,
        };
        let rest = (1.0 - matched.left - a.nulls).clamp(0.0, 1.0);
        return (matched.left + sure * rest).clamp(0.0, 1.0);
    }
    match a.distinct <= others {
        true => present,
        false => present * others / a.distinct,
    }
}

/// What two lists of common values have in common.
struct Matches {
    count: f64,
    /// Sum over the matches of the product of both frequencies.
    product: f64,
    /// Sums of frequencies: of what matches, and of what does not.
    left: f64,
    right: f64,
    left_alone: f64,
    right_alone: f64,
}

fn matches(a: &ColumnStats, b: &ColumnStats) -> Matches {
    let keyed = |ty: Oid, value: &Datum| {
        let mut bytes = Vec::new();
        key::encode_one(value, KeyOrder::new(ty, false, false), &mut bytes).ok()?;
        Some(bytes)
    };
    let mut known: HashMap<Vec<u8>, f64, FixedState> = HashMap::default();
    for (value, frequency) in b.common.iter().zip(&b.frequencies) {
        if let Some(key) = keyed(b.ty, value) {
            known.insert(key, *frequency);
        }
    }
    let mut found = Matches {
        count: 0.0,
        product: 0.0,
        left: 0.0,
        right: 0.0,
        left_alone: a.frequencies.iter().sum(),
        right_alone: b.frequencies.iter().sum(),
    };
    for (value, mine) in a.common.iter().zip(&a.frequencies) {
        let other = keyed(a.ty, value).and_then(|key| known.get(&key));
        if let Some(other) = other {
            found.count += 1.0;
            found.product += mine * other;
            found.left += mine;
            found.right += other;
        }
    }
    found.left_alone -= found.left;
    found.right_alone -= found.right;
    found
}

/// The order of a column's value and another one; none where they are of types without a common
/// order.
pub(super) fn order(ty: Oid, a: &Datum, b: &Datum) -> Option<Ordering> {
    use Datum as D;
    let common = std::mem::discriminant(a) == std::mem::discriminant(b)
        || matches!(
            (a, b),
            (D::Date(_), D::Timestamp(_)) | (D::Timestamp(_), D::Date(_))
        )
        || matches!(
            (a, b),
            (D::Float4(_), D::Float8(_)) | (D::Float8(_), D::Float4(_))
        )
        || (a.as_i64().is_some() && b.as_i64().is_some());
    // Items of arrays and fields of rows may be of other types.
    let simple = !matches!(
        a,
        D::Array(_) | D::Record(_) | D::Json(_) | D::External(_) | D::Null
    );
    (common && simple).then(|| comparator(ty)(a, b))
}

/// Share of what lies between the bounds that is below a value.
fn below(stats: &ColumnStats, value: &Datum) -> Option<f64> {
    let bounds = &stats.bounds;
    let mut above = 0;
    // The bounds are in order, but a value without an order among them stops the search.
    let (mut low, mut high) = (0, bounds.len());
    while low < high {
        let middle = (low + high) / 2;
        match order(stats.ty, &bounds[middle], value)?.is_lt() {
            true => low = middle + 1,
            false => high = middle,
        }
        above = low;
    }
    if above == 0 {
        return Some(0.0);
    }
    if above >= bounds.len() {
        return Some(1.0);
    }
    let (from, to) = (&bounds[above - 1], &bounds[above]);
    let part = part_between(from, to, value).unwrap_or(0.5).clamp(0.0, 1.0);
    Some(((above - 1) as f64 + part) / (bounds.len() - 1) as f64)
}

/// How far a value is on the way from one bound to the next.
fn part_between(from: &Datum, to: &Datum, value: &Datum) -> Option<f64> {
    if let (Datum::Text(from), Datum::Text(to), Datum::Text(value)) = (from, to, value) {
        let (a, b) = (from.as_bytes(), to.as_bytes());
        let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
        let number = |text: &[u8]| {
            let rest = text.get(same..).unwrap_or(&[]);
            (0..8).fold(0.0, |sum, at| {
                sum * 256.0 + f64::from(rest.get(at).copied().unwrap_or(0))
            })
        };
        let (low, high, at) = (number(a), number(b), number(value.as_bytes()));
        return (high > low).then(|| (at - low) / (high - low));
    }
    let (low, high, at) = (scalar(from)?, scalar(to)?, scalar(value)?);
    (high > low).then(|| (at - low) / (high - low))
}

/// A value's place on a line.
fn scalar(value: &Datum) -> Option<f64> {
    let number = match value {
        Datum::Bool(v) => f64::from(u8::from(*v)),
        Datum::Float4(v) => f64::from(*v),
        Datum::Float8(v) => *v,
        Datum::Numeric(v) => v.to_f64(),
        Datum::Date(v) => date_to_timestamp(*v) as f64,
        Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => *v as f64,
        Datum::Interval(v) => v.comparable() as f64,
        Datum::Enum(v) => v.place,
        other => other.as_i64()? as f64,
    };
    number.is_finite().then_some(number)
}

/// Distinct values of a column now: those that were found, more where they grow with the table.
pub(super) fn distinct_now(stats: &ColumnStats, then: f64, now: f64) -> f64 {
    let distinct = match stats.grows(then) {
        true => stats.distinct / then * now,
        false => stats.distinct,
    };
    distinct.clamp(1.0, now.max(1.0))
}

/// How many distinct values a type can have at most.
pub(super) fn most_distinct(ty: Oid) -> f64 {
    match ty {
        oid::BOOL => 2.0,
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sampled, column};

    fn stats(ty: Oid, values: Vec<Datum>) -> ColumnStats {
        let total = values.len() as f64;
        let values: Vec<Sampled> = values.into_iter().map(Sampled::from).collect();
        column(ty, &values, total, 100)
    }

    fn facts(stats: &ColumnStats, rows: f64) -> Facts<'_> {
        Facts {
            rows,
            distinct: stats.distinct,
            guessed: false,
            nulls: stats.null_fraction,
            stats: Some(stats),
        }
    }

    fn near(found: f64, truth: f64) {
        assert!(
            (found - truth).abs() < 0.02,
            "{found}, but in truth {truth}"
        );
    }

    /// 40 % are 7, the others 0 to 5999 once each.
    fn skewed() -> ColumnStats {
        let others = (0..6000).map(Datum::Int4);
        stats(
            oid::INT4,
            others.chain((0..4000).map(|_| Datum::Int4(7))).collect(),
        )
    }

    #[test]
    fn equality_by_common_values() {
        let stats = skewed();
        let facts = facts(&stats, 10_000.0);
        near(facts.equal(Some(&Datum::Int4(7))), 0.4);
        let rare = facts.equal(Some(&Datum::Int4(100)));
        assert!(rare > 0.00005 && rare < 0.0002, "{rare}");
        assert_eq!(facts.equal(Some(&Datum::Null)), 0.0);
    }

    #[test]
    fn ranges_by_bounds_and_common_values() {
        let stats = skewed();
        let facts = facts(&stats, 10_000.0);
        for (value, truth) in [(0, 0.0), (7, 0.0007), (8, 0.4008), (3000, 0.7), (6000, 1.0)] {
            let below = facts.beyond(Strategy::Less, &Datum::Int4(value));
            near(below.unwrap_or(-1.0), truth);
            let above = facts.beyond(Strategy::GreaterEqual, &Datum::Int8(value.into()));
            near(above.unwrap_or(-1.0), 1.0 - truth);
        }
    }

    #[test]
    fn dates_meet_timestamps_and_strings_their_prefixes() {
        let dates = stats(oid::DATE, (0..1000).map(Datum::Date).collect());
        let noon = Datum::Timestamp(date_to_timestamp(250) + 1);
        near(
            facts(&dates, 1000.0)
                .beyond(Strategy::Less, &noon)
                .unwrap_or(-1.0),
            0.25,
        );
        let words = (0..1000)
            .map(|i| Datum::text(format!("word{i:03}")))
            .collect();
        let words = stats(oid::TEXT, words);
        let below = facts(&words, 1000.0).beyond(Strategy::Less, &Datum::text("word4"));
        near(below.unwrap_or(-1.0), 0.4);
        // No order in common: nothing is said, and nothing panics.
        assert_eq!(
            facts(&words, 1.0).beyond(Strategy::Less, &Datum::Int4(4)),
            None
        );
    }

    #[test]
    fn joins_meet_what_both_have_often() {
        let skewed = skewed();
        let skew = facts(&skewed, 10_000.0);
        near(joined(&skew, &skew), 0.16);
        let keys = stats(oid::INT4, (0..1000).map(Datum::Int4).collect());
        let unique = facts(&keys, 1000.0);
        let pairs = joined(&unique, &unique) * 1e6;
        assert!((pairs - 1000.0).abs() < 1.0, "{pairs}");
        near(partnered(&unique, &unique, 100.0), 0.1);
        near(partnered(&unique, &unique, 1000.0), 1.0);
    }
}
