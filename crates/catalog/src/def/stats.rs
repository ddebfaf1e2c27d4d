//! What ANALYZE found about a table.
//!
//! Values are kept as the rows keep them, in hexadecimal digits: so they read the same under any
//! settings, and need neither the catalog nor a type's input function. What cannot be read any more
//! is taken for not known.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use throng_types::row::{Phys, RowLayout, encode_row};
use throng_types::{Datum, Oid};

use super::id;

/// Its oid is its own; `table` says whose it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatsDef {
    #[serde(with = "id")]
    pub oid: Oid,
    #[serde(with = "id")]
    pub table: Oid,
    pub rows: f64,
    pub pages: u32,
    /// By attribute number - 1. Of a partitioned table, which has no rows of its own: none.
    pub columns: Vec<ColumnStats>,
    /// Of a table with children: what its rows and theirs say together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<FamilyStats>,
}

/// What is known of a table and its children as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FamilyStats {
    pub rows: f64,
    /// By the parent's attribute number - 1.
    pub columns: Vec<ColumnStats>,
}

impl StatsDef {
    /// What is known of a column, and of how many rows: with those of the children, or of the table
    /// alone.
    pub fn column(&self, attnum: u16, with_children: bool) -> Option<(&ColumnStats, f64)> {
        let at = usize::from(attnum).checked_sub(1)?;
        match (&self.family, with_children) {
            (Some(family), true) => Some((family.columns.get(at)?, family.rows)),
            (None, true) => None,
            (_, false) => Some((self.columns.get(at)?, self.rows)),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StatsText", into = "StatsText")]
pub struct ColumnStats {
    /// Number of distinct values; 0 when unknown.
    pub distinct: f64,
    /// Whether that number grows with the rows, where somebody has said so; otherwise it does where
    /// it is a good part of them.
    pub grows: Option<bool>,
    /// Share of NULLs, 0 to 1.
    pub null_fraction: f64,
    /// Mean bytes of a value.
    pub width: u32,
    /// The type of the values below.
    pub ty: Oid,
    /// The most common values, the most common first, and the share of rows that each has.
    pub common: Vec<Datum>,
    pub frequencies: Vec<f64>,
    /// Values that cut the others into parts of as many rows each, in order; empty, or two at
    /// least.
    pub bounds: Vec<Datum>,
    /// Between the values' order and that of the rows in the heap, -1 to 1.
    pub correlation: Option<f64>,
}

impl ColumnStats {
    /// Whether there are more distinct values where there are more rows than these.
    pub fn grows(&self, rows: f64) -> bool {
        /// PostgreSQL's measure: this part of the rows, found to be distinct, is taken to stay that
        /// part.
        const PART: f64 = 0.1;
        rows > 0.0 && self.grows.unwrap_or(self.distinct > rows * PART)
    }

    /// Takes what `n_distinct` says in the place of what was found: a count, or, negative, a part
    /// of the rows.
    pub fn take_distinct(&mut self, said: f64, rows: f64) {
        (self.distinct, self.grows) = match said < 0.0 {
            true => (-said * rows, Some(true)),
            false => (said, Some(false)),
        };
    }
}

/// [`ColumnStats`] as text.
#[derive(Clone, Serialize, Deserialize)]
struct StatsText {
    distinct: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grows: Option<bool>,
    null_fraction: f64,
    width: u32,
    #[serde(default)]
    ty: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    common: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    frequencies: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bounds: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correlation: Option<f64>,
}

impl From<ColumnStats> for StatsText {
    fn from(stats: ColumnStats) -> StatsText {
        StatsText {
            distinct: stats.distinct,
            grows: stats.grows,
            null_fraction: stats.null_fraction,
            width: stats.width,
            ty: stats.ty.0,
            common: written(stats.ty, &stats.common),
            frequencies: stats.frequencies,
            bounds: written(stats.ty, &stats.bounds),
            correlation: stats.correlation,
        }
    }
}

impl From<StatsText> for ColumnStats {
    fn from(kept: StatsText) -> ColumnStats {
        let ty = Oid(kept.ty);
        let common = read(ty, &kept.common).filter(|v| v.len() == kept.frequencies.len());
        ColumnStats {
            distinct: kept.distinct,
            grows: kept.grows,
            null_fraction: kept.null_fraction,
            width: kept.width,
            ty,
            frequencies: match common {
                Some(_) => kept.frequencies,
                None => Vec::new(),
            },
            common: common.unwrap_or_default(),
            bounds: read(ty, &kept.bounds).unwrap_or_default(),
            correlation: kept.correlation,
        }
    }
}

fn layout(ty: Oid) -> Option<RowLayout> {
    Some(RowLayout::new(&[Phys::of(ty)?]))
}

fn written(ty: Oid, values: &[Datum]) -> Vec<String> {
    let Some(layout) = layout(ty) else {
        return Vec::new();
    };
    let write = |value: &Datum| {
        let mut bytes = Vec::new();
        encode_row(&layout, std::slice::from_ref(value), &mut bytes).ok()?;
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            write!(text, "{byte:02x}").ok()?;
        }
        Some(text)
    };
    let all: Option<Vec<String>> = values.iter().map(write).collect();
    all.unwrap_or_default()
}

fn read(ty: Oid, values: &[String]) -> Option<Vec<Datum>> {
    let layout = layout(ty)?;
    let digit = |at: usize, text: &str| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let value = |text: &String| {
        let bytes: Option<Vec<u8>> = (0..text.len())
            .step_by(2)
            .map(|at| digit(at, text))
            .collect();
        layout.decode_column(&bytes?, 0).ok()
    };
    values.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_types::oid;

    #[test]
    fn values_survive_as_text() -> Result<(), serde_json::Error> {
        let stats = ColumnStats {
            distinct: 3.0,
            grows: Some(false),
            null_fraction: 0.25,
            width: 6,
            ty: oid::TEXT,
            common: vec![Datum::text("a"), Datum::text("\u{e9}'\"")],
            frequencies: vec![0.5, 0.125],
            bounds: vec![Datum::text(""), Datum::text("zz")],
            correlation: Some(-0.5),
        };
        let text = serde_json::to_string(&stats)?;
        assert_eq!(serde_json::from_str::<ColumnStats>(&text)?, stats);
        Ok(())
    }

    #[test]
    fn what_was_kept_before_there_were_values_is_read() -> Result<(), serde_json::Error> {
        let old = r#"{"distinct":7.0,"null_fraction":0.5,"width":4}"#;
        let stats: ColumnStats = serde_json::from_str(old)?;
        assert_eq!(stats.distinct, 7.0);
        assert!(stats.common.is_empty() && stats.bounds.is_empty());
        Ok(())
    }

    #[test]
    fn what_is_said_of_distinct_values_wins() {
        let mut stats = ColumnStats {
            distinct: 10.0,
            ..ColumnStats::default()
        };
        assert!(!stats.grows(1000.0) && stats.grows(50.0));
        stats.take_distinct(-0.5, 1000.0);
        assert!(stats.distinct == 500.0 && stats.grows(1000.0));
        stats.take_distinct(700.0, 1000.0);
        assert!(stats.distinct == 700.0 && !stats.grows(1000.0));
    }

    #[test]
    fn a_parent_has_two_columns_stats() {
        let of = |distinct: f64| ColumnStats {
            distinct,
            ..ColumnStats::default()
        };
        let mut stats = StatsDef {
            oid: Oid(1),
            table: Oid(2),
            rows: 10.0,
            pages: 1,
            columns: vec![of(1.0)],
            family: None,
        };
        assert_eq!(stats.column(1, true), None);
        let columns = vec![of(2.0)];
        stats.family = Some(FamilyStats {
            rows: 20.0,
            columns,
        });
        assert_eq!(
            stats.column(1, true).map(|(c, r)| (c.distinct, r)),
            Some((2.0, 20.0))
        );
        assert_eq!(
            stats.column(1, false).map(|(c, r)| (c.distinct, r)),
            Some((1.0, 10.0))
        );
        assert_eq!(stats.column(0, false), None);
    }

    #[test]
    fn damaged_values_are_not_known() -> Result<(), serde_json::Error> {
        let bad = r#"{"distinct":7.0,"null_fraction":0.5,"width":4,"ty":23,"common":["zz"],"frequencies":[0.5],"bounds":["0"]}"#;
        let stats: ColumnStats = serde_json::from_str(bad)?;
        assert!(stats.common.is_empty() && stats.frequencies.is_empty() && stats.bounds.is_empty());
        Ok(())
    }
}
