//! What ANALYZE makes of a sample of a table's rows: which rows are taken, and what a column's
//! values say.
//!
//! ```text
//! blocks ─► BlockSampler (so many of them, each as likely) ─► rows ─► Reservoir (so many, each as likely) ─► column()
//! ```
//! The estimates are PostgreSQL's, as its documentation and comments tell them: distinct values by
//! Haas and Stokes' Duj1 ("Sampling-based estimation of the number of distinct values", VLDB 1995),
//! most common values that stand out from the others beyond what chance explains, bounds of parts
//! of equal size over the rest, correlation with the order of the heap.

use throng_types::key::{self, KeyOrder};
use throng_types::{Datum, Oid, oid};

use throng_catalog::ColumnStats;

/// Rows looked at for each unit of the statistics target: PostgreSQL's (Chaudhuri, Motwani and
/// Narasayya, SIGMOD 1998).
pub const ROWS_A_TARGET: usize = 300;
/// Longer values are counted, not looked at.
pub const WIDE: usize = 1024;

/// A value of a sampled row.
#[derive(Clone, Debug, Default)]
pub enum Sampled {
    #[default]
    Null,
    /// One too long to be looked at: its bytes.
    Wide(u32),
    Value(Datum),
}

impl From<Datum> for Sampled {
    fn from(value: Datum) -> Sampled {
        match value {
            Datum::Null => Sampled::Null,
            value => match varying_bytes(&value, NESTED) {
                wide if wide > WIDE => Sampled::Wide(wide as u32),
                _ => Sampled::Value(value),
            },
        }
    }
}

/// Records and arrays inside each other that are looked into; deeper ones are taken for wide.
const NESTED: u32 = 8;

/// About how many bytes a value of varying length takes; not counted far beyond what is wide.
fn varying_bytes(value: &Datum, levels: u32) -> usize {
    const ENOUGH: usize = 64 * WIDE;
    /// What an item takes beside its own bytes.
    const ITEM: usize = 4;
    let items = match value {
        Datum::Text(text) | Datum::Json(text) => return text.len(),
        Datum::Bytea(bytes) => return bytes.len(),
        Datum::Jsonb(json) => return json.as_bytes().len(),
        Datum::Numeric(number) => return number.bytes(),
        Datum::Array(array) => &array.items[..],
        Datum::Record(record) => &record.values[..],
        _ => return 0,
    };
    let mut bytes = 0;
    for item in items {
        if levels == 0 || bytes > ENOUGH {
            return bytes.max(WIDE + 1);
        }
        bytes += ITEM + varying_bytes(item, levels - 1);
    }
    bytes
}

/// Chooses `wanted` of `blocks` blocks, in order, all choices as likely (Knuth's algorithm S, TAOCP
/// 3.4.2).
pub struct BlockSampler {
    blocks: u32,
    wanted: u32,
    next: u32,
    taken: u32,
}

impl BlockSampler {
    pub fn new(blocks: u32, wanted: usize) -> BlockSampler {
        BlockSampler {
            blocks,
            wanted: u32::try_from(wanted).unwrap_or(u32::MAX).min(blocks),
            next: 0,
            taken: 0,
        }
    }

    /// The next block; `random` gives numbers from 0 up to 1.
    pub fn next(&mut self, random: &mut dyn FnMut() -> f64) -> Option<u32> {
        while self.taken < self.wanted && self.next < self.blocks {
            let block = self.next;
            self.next += 1;
            let (left, missing) = (self.blocks - block, self.wanted - self.taken);
            if missing >= left || random() * f64::from(left) < f64::from(missing) {
                self.taken += 1;
                return Some(block);
            }
        }
        None
    }
}

/// Which of the rows that go by are kept, and where: `size` of them, all choices as likely (Li's
/// algorithm L, ACM TOMS 20:4).
pub struct Reservoir {
    size: usize,
    seen: u64,
    /// The next row that is kept, once the reservoir is full.
    next: u64,
    weight: f64,
}

impl Reservoir {
    pub fn new(size: usize) -> Reservoir {
        Reservoir {
            size,
            seen: 0,
            next: 0,
            weight: 1.0,
        }
    }

    /// Rows that went by.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Another row: the place it takes, if it is kept.
    pub fn offer(&mut self, random: &mut dyn FnMut() -> f64) -> Option<usize> {
        let row = self.seen;
        self.seen += 1;
        if row < self.size as u64 {
            if row + 1 == self.size as u64 {
                self.skip(row, random);
            }
            return Some(row as usize);
        }
        if row < self.next {
            return None;
        }
        let place = (random() * self.size as f64) as usize;
        self.skip(row, random);
        Some(place.min(self.size - 1))
    }

    fn skip(&mut self, row: u64, random: &mut dyn FnMut() -> f64) {
        let mut drawn = || random().max(f64::MIN_POSITIVE);
        self.weight *= (drawn().ln() / self.size as f64).exp();
        let skipped = (drawn().ln() / (1.0 - self.weight).ln()).floor();
        let far = !skipped.is_finite() || skipped > 1e18;
        self.next = row + 1 + if far { 1 << 60 } else { skipped as u64 };
    }
}

/// A value of a column as it is compared, with its place among the sampled rows.
struct Ranked<'s> {
    key: Vec<u8>,
    place: usize,
    value: &'s Datum,
}

/// A run of equal values: where it begins among the ranked, and how many they are.
#[derive(Clone, Copy)]
struct Run {
    start: usize,
    count: usize,
}

/// What a column's values in sampled rows, in the order of the heap, say of it in a table of
/// `total` rows. At most `target` common values, and parts between bounds, are kept.
pub fn column(ty: Oid, values: &[Sampled], total: f64, target: usize) -> ColumnStats {
    let rows = values.len() as f64;
    let mut stats = ColumnStats {
        ty,
        ..ColumnStats::default()
    };
    let mut ranked: Vec<Ranked<'_>> = Vec::new();
    let order = KeyOrder::new(ty, false, false);
    let (mut nulls, mut wide, mut unordered) = (0.0, 0.0, false);
    let mut bytes = 0.0;
    for value in values {
        match value {
            Sampled::Null => nulls += 1.0,
            Sampled::Wide(length) => {
                wide += 1.0;
                bytes += f64::from(*length) + 4.0;
            }
            Sampled::Value(value) => {
                let mut key = Vec::new();
                bytes += width(value, ty);
                // What has no order has no statistics either.
                unordered |= key::encode_one(value, order, &mut key).is_err();
                let place = ranked.len();
                ranked.push(Ranked { key, place, value });
            }
        }
    }
    if rows == 0.0 {
        return stats;
    }
    stats.null_fraction = nulls / rows;
    let present = rows - nulls;
    if present == 0.0 {
        return stats;
    }
    stats.width = (bytes / present) as u32;
    if unordered {
        return stats;
    }
    ranked.sort_by(|a, b| a.key.cmp(&b.key).then(a.place.cmp(&b.place)));
    let runs = runs_of(&ranked);
    let repeated = runs.iter().filter(|run| run.count > 1).count();
    stats.distinct = distinct(
        runs.len() as f64 + wide,
        runs.len() as f64 - repeated as f64 + wide,
        present,
        total * (1.0 - stats.null_fraction),
    );
    let complete = repeated == runs.len() && wide == 0.0;
    let common = common(&runs, rows, total, &stats, complete, target);
    stats.frequencies = common.iter().map(|run| run.count as f64 / rows).collect();
    stats.common = common
        .iter()
        .map(|run| ranked[run.start].value.clone())
        .collect();
    stats.bounds = bounds(&ranked, &runs, &common, target);
    stats.correlation = correlation(&ranked);
    stats
}

fn runs_of(ranked: &[Ranked<'_>]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (start, value) in ranked.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if ranked[run.start].key == value.key => run.count += 1,
            _ => runs.push(Run { start, count: 1 }),
        }
    }
    runs
}

/// Distinct values among `total`, where `sampled` of them have `found`, of which `once` were met
/// once.
fn distinct(found: f64, once: f64, sampled: f64, total: f64) -> f64 {
    if once == 0.0 {
        return found;
    }
    let total = total.max(sampled);
    let estimate = match once == found {
        true => total,
        false => sampled * found / (sampled - once + once * sampled / total),
    };
    estimate.clamp(found, total).round()
}

/// The runs of the most common values, the longest first.
fn common(
    runs: &[Run],
    rows: f64,
    total: f64,
    stats: &ColumnStats,
    complete: bool,
    target: usize,
) -> Vec<Run> {
    let mut repeated: Vec<Run> = runs.iter().filter(|run| run.count > 1).copied().collect();
    repeated.sort_by_key(|run| (std::cmp::Reverse(run.count), run.start));
    repeated.truncate(target);
    // All values that there are, if they are few, and do not become more with the rows.
    let grows = stats.distinct > total * 0.1;
    if complete && !grows && runs.len() == repeated.len() {
        return repeated;
    }
    let keep = standing_out(&repeated, rows, total, stats);
    repeated.truncate(keep);
    repeated
}

/// How many of the most common values are met so much more often than the others are on average
/// that it is hardly by chance: the last one has to be two standard deviations of the
/// hypergeometric distribution above the mean.
fn standing_out(repeated: &[Run], rows: f64, total: f64, stats: &ColumnStats) -> usize {
    let mut keep = repeated.len();
    if rows >= total || total <= 1.0 {
        return keep;
    }
    let before = |keep: usize| -> f64 {
        let more = repeated.iter().take(keep.saturating_sub(1));
        more.map(|run| run.count as f64).sum()
    };
    let mut sum = before(keep);
    while keep > 0 {
        let count = repeated[keep - 1].count as f64;
        let mut share = (1.0 - sum / rows - stats.null_fraction).clamp(0.0, 1.0);
        let others = stats.distinct - (keep - 1) as f64;
        if others > 1.0 {
            share /= others;
        }
        let like = total * count / rows;
        let variance =
            rows * like * (total - like) * (total - rows) / (total * total * (total - 1.0));
        if count > share * rows + 2.0 * variance.max(0.0).sqrt() + 0.5 {
            break;
        }
        keep -= 1;
        if keep > 0 {
            sum -= repeated[keep - 1].count as f64;
        }
    }
    keep
}

/// Bounds of at most `target` parts of the values that are not among the common ones.
fn bounds(ranked: &[Ranked<'_>], runs: &[Run], common: &[Run], target: usize) -> Vec<Datum> {
    let wanted = (runs.len() - common.len()).min(target + 1);
    if wanted < 2 {
        return Vec::new();
    }
    let taken: std::collections::HashSet<usize> = common.iter().map(|run| run.start).collect();
    let rest: Vec<&Datum> = runs
        .iter()
        .filter(|run| !taken.contains(&run.start))
        .flat_map(|run| &ranked[run.start..run.start + run.count])
        .map(|ranked| ranked.value)
        .collect();
    (0..wanted)
        .map(|part| rest[part * (rest.len() - 1) / (wanted - 1)].clone())
        .collect()
}

/// Pearson's, of the values' ranks and their places.
fn correlation(ranked: &[Ranked<'_>]) -> Option<f64> {
    if ranked.len() < 2 {
        return None;
    }
    let n = ranked.len() as f64;
    let products = ranked.iter().enumerate();
    let xy: f64 = products.map(|(rank, v)| rank as f64 * v.place as f64).sum();
    let x = (n - 1.0) * n / 2.0;
    let xx = (n - 1.0) * n * (2.0 * n - 1.0) / 6.0;
    Some((n * xy - x * x) / (n * xx - x * x))
}

/// The bytes PostgreSQL would keep a value in.
fn width(value: &Datum, ty: Oid) -> f64 {
    let fixed = throng_types::SqlType::plain(ty)
        .info()
        .map_or(-1, |i| i.len);
    if fixed > 0 {
        return f64::from(fixed);
    }
    let varying = |bytes: usize| (bytes + if bytes < 127 { 1 } else { 4 }) as f64;
    match value {
        Datum::Text(text) | Datum::Json(text) => varying(text.len()),
        Datum::Bytea(bytes) => varying(bytes.len()),
        Datum::Numeric(number) => {
            let text = number.to_string();
            let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
            let whole = whole.trim_start_matches(['-', '0']);
            let part = part.trim_end_matches('0');
            varying(2 + 2 * (whole.len().div_ceil(4) + part.len().div_ceil(4)))
        }
        Datum::Array(array) => {
            let items = array.items.iter().map(|item| width(item, array.element));
            items.sum::<f64>() + 21.0
        }
        other => {
            let mut key = Vec::new();
            let order = KeyOrder::new(oid::TEXT, false, false);
            // Json and the like have been told apart above; a length that is off by some changes
            // nothing.
            let _ = key::encode_one(other, order, &mut key);
            varying(key.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_types::Array;

    use super::*;

    /// A sequence that looks random enough: Knuth's linear congruential generator.
    fn random(mut state: u64) -> impl FnMut() -> f64 {
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    fn of(values: impl IntoIterator<Item = i32>, total: f64) -> ColumnStats {
        let values: Vec<Sampled> = values.into_iter().map(|v| Datum::Int4(v).into()).collect();
        column(oid::INT4, &values, total, 100)
    }

    #[test]
    fn distinct_values_are_extrapolated() {
        assert_eq!(of(0..1000, 50_000.0).distinct, 50_000.0);
        assert_eq!(of((0..1000).map(|i| i % 10), 50_000.0).distinct, 10.0);
        let half = of(
            (0..1000).map(|i| if i < 500 { i } else { i % 250 }),
            50_000.0,
        );
        assert!(
            half.distinct > 500.0 && half.distinct < 25_000.0,
            "{half:?}"
        );
    }

    #[test]
    fn wide_values_of_any_type_are_counted_only() {
        let number = |digits: usize| Datum::Numeric("7".repeat(digits).parse().expect("a number"));
        let array =
            |items: usize| Datum::array(Array::from_items(oid::INT4, vec![Datum::Int4(1); items]));
        let is_wide = |value: Datum| matches!(Sampled::from(value), Sampled::Wide(_));
        assert!(!is_wide(number(100)) && is_wide(number(5_000)));
        assert!(!is_wide(array(100)) && is_wide(array(1_000)));
        assert!(
            !is_wide(Datum::from("x".repeat(WIDE))) && is_wide(Datum::from("x".repeat(WIDE + 1)))
        );
        assert!(!is_wide(Datum::Int4(1)));
    }

    #[test]
    fn few_values_are_all_common_ones() {
        let stats = of((0..1000).map(|i| i % 4), 50_000.0);
        assert_eq!(stats.frequencies, vec![0.25; 4]);
        assert!(stats.bounds.is_empty());
    }

    #[test]
    fn bounds_part_what_is_not_common() {
        let stats = of(0..10_001, 1_000_000.0);
        assert!(stats.common.is_empty());
        assert_eq!(stats.bounds.len(), 101);
        assert_eq!(stats.bounds[50], Datum::Int4(5000));
        assert_eq!(stats.correlation, Some(1.0));
        let down = of((0..100).rev(), 100.0);
        assert!(down.correlation.is_some_and(|c| (c + 1.0).abs() < 1e-9));
    }

    #[test]
    fn one_frequent_value_among_many_stands_out() {
        let stats = of((0..10_000).map(|i| if i % 2 == 0 { -1 } else { i }), 1e6);
        assert_eq!(stats.common, vec![Datum::Int4(-1)]);
        assert_eq!(stats.frequencies, vec![0.5]);
        assert_eq!(stats.bounds.len(), 101);
    }

    #[test]
    fn nulls_and_long_values_are_counted() {
        let long = "x".repeat(2000);
        let values = [
            Datum::Null,
            Datum::text(&long),
            Datum::text("ab"),
            Datum::text("ab"),
        ];
        let values: Vec<Sampled> = values.into_iter().map(Sampled::from).collect();
        let stats = column(oid::TEXT, &values, 4.0, 100);
        assert_eq!((stats.null_fraction, stats.width), (0.25, 670));
        assert_eq!(stats.common, vec![Datum::text("ab")]);
    }

    #[test]
    fn every_block_and_row_is_as_likely() {
        let mut random = random(42);
        let mut hits = [0u32; 20];
        for _ in 0..2000 {
            let mut blocks = BlockSampler::new(20, 5);
            let mut taken = 0;
            while let Some(block) = blocks.next(&mut random) {
                hits[block as usize] += 1;
                taken += 1;
            }
            assert_eq!(taken, 5);
        }
        assert!(hits.iter().all(|n| (400..600).contains(n)), "{hits:?}");
        let mut kept = [0u32; 20];
        for _ in 0..2000 {
            let mut reservoir = Reservoir::new(5);
            let mut rows = [0; 5];
            for row in 0..20 {
                if let Some(place) = reservoir.offer(&mut random) {
                    rows[place] = row;
                }
            }
            rows.iter().for_each(|row| kept[*row] += 1);
        }
        assert!(kept.iter().all(|n| (400..600).contains(n)), "{kept:?}");
    }
}
