//! How tables are divided: the key of a partitioned table, the bound of each partition, and which
//! partition a key belongs to.
//!
//! Definitions keep a bound's values as text; [`Partitions`] holds them as ordered keys
//! (`throng_types::key`), so that finding a row's partition is a comparison of bytes:
//!
//! | strategy | where a key goes |
//! | --- | --- |
//! | list | to the partition that names it; NULL to the one that names NULL |
//! | range | to the last partition whose lower end is not above it, if its upper end is; NULL nowhere |
//! | hash | to the partition whose remainder its hash leaves by the partition's modulus |
//!
//! A key without a place goes to the default partition, if there is one.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};
use throng_types::key::{self, KeyOrder};
use throng_types::{Datum, Oid, Result, SqlType};

use super::def::id;
use super::{Catalog, TableDef};
use throng_values::func::EvalContext;
use throng_values::io::{FormatSettings, input_text, output_text};

pub mod bounds;
pub mod check;
pub mod hash;

pub use hash::row_hash;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionStrategy {
    List,
    Range,
    Hash,
}

/// What a partitioned table is divided by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionKey {
    pub strategy: PartitionStrategy,
    pub parts: Vec<KeyPart>,
}

/// A column or expression of a partition key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyPart {
    /// The column's attribute number; 0 for an expression.
    pub attnum: u16,
    /// SQL text over the table's column names.
    pub expr: Option<String>,
    /// Columns that `expr` uses.
    pub uses: Vec<u16>,
    #[serde(with = "id")]
    pub ty: SqlType,
}

/// Which rows a partition takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PartitionBound {
    Default,
    /// Values as text; none: NULL.
    List(Vec<Option<String>>),
    Range {
        from: Vec<RangeEnd>,
        to: Vec<RangeEnd>,
    },
    Hash {
        modulus: i32,
        remainder: i32,
    },
}

/// One column of one end of a range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RangeEnd {
    Min,
    Value(String),
    Max,
}

impl PartitionStrategy {
    pub fn name(self) -> &'static str {
        match self {
            PartitionStrategy::List => "list",
            PartitionStrategy::Range => "range",
            PartitionStrategy::Hash => "hash",
        }
    }
    /// `pg_partitioned_table.partstrat`.
    pub fn letter(self) -> u8 {
        self.name().as_bytes()[0]
    }
}

impl PartitionKey {
    /// Whether the column is part of the key, by itself or in an expression.
    pub fn has_column(&self, attnum: u16) -> bool {
        let of = |part: &KeyPart| part.attnum == attnum || part.uses.contains(&attnum);
        self.parts.iter().any(of)
    }
}

/// How bounds are kept: such that they are read the same under any settings.
static KEPT: std::sync::LazyLock<FormatSettings> = std::sync::LazyLock::new(|| FormatSettings {
    interval_style: throng_values::io::IntervalStyle::Iso8601,
    ..FormatSettings::default()
});

fn kept(eval: EvalContext<'_>) -> EvalContext<'_> {
    EvalContext {
        format: &KEPT,
        ..eval
    }
}

/// A bound's value as its definition keeps it.
pub fn bound_text(value: &Datum, ty: SqlType, eval: EvalContext<'_>) -> String {
    let mut text = Vec::new();
    output_text(&kept(eval), value, ty, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The value that a bound keeps as `text`.
pub fn bound_value(text: &str, ty: SqlType, eval: EvalContext<'_>) -> Result<Datum> {
    input_text(&kept(eval), text, ty)
}

/// A value as an ordered key.
pub fn key_bytes(value: &Datum, ty: SqlType) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    key::encode_one(value, KeyOrder::new(ty.oid, false, false), &mut bytes)?;
    Ok(bytes)
}

/// A place between the keys of a range's column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    Min,
    Key(Vec<u8>),
    Max,
}

/// A range of keys: from `from`, itself included, to before `to`.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    pub from: Vec<Edge>,
    pub to: Vec<Edge>,
    pub part: usize,
}

/// The partitions of a table and which keys they take.
#[derive(Clone, Debug, PartialEq)]
pub struct Partitions {
    pub strategy: PartitionStrategy,
    pub types: Vec<SqlType>,
    /// In the order of their bounds, the default partition last.
    pub parts: Vec<Oid>,
    /// Keys that lists name, ascending, with the place of their partition.
    pub keys: Vec<(Vec<u8>, usize)>,
    pub null: Option<usize>,
    /// Ascending.
    pub ranges: Vec<Range>,
    /// Modulus, remainder, place; ascending.
    pub hashes: Vec<(i32, i32, usize)>,
    pub default: Option<usize>,
}

/// A bound as keys.
#[derive(Debug)]
pub enum Keys {
    Default,
    List(Vec<Option<Vec<u8>>>),
    Range(Vec<Edge>, Vec<Edge>),
    Hash(i32, i32),
}

impl Keys {
    pub(crate) fn of(
        bound: &PartitionBound,
        types: &[SqlType],
        eval: EvalContext<'_>,
    ) -> Result<Keys> {
        let key = |text: &str, ty: SqlType| key_bytes(&bound_value(text, ty, eval)?, ty);
        let edges = |ends: &[RangeEnd]| -> Result<Vec<Edge>> {
            let edge = |(end, ty): (&RangeEnd, &SqlType)| {
                Ok(match end {
                    RangeEnd::Min => Edge::Min,
                    RangeEnd::Max => Edge::Max,
                    RangeEnd::Value(text) => Edge::Key(key(text, *ty)?),
                })
            };
            ends.iter().zip(types).map(edge).collect()
        };
        Ok(match bound {
            PartitionBound::Default => Keys::Default,
            PartitionBound::List(values) => {
                let keys = values
                    .iter()
                    .map(|v| v.as_deref().map(|text| key(text, types[0])).transpose());
                Keys::List(keys.collect::<Result<_>>()?)
            }
            PartitionBound::Range { from, to } => Keys::Range(edges(from)?, edges(to)?),
            PartitionBound::Hash { modulus, remainder } => Keys::Hash(*modulus, *remainder),
        })
    }

    /// What partitions are sorted by.
    fn place(&self) -> (u8, Vec<Edge>, (i32, i32)) {
        match self {
            Keys::List(keys) => {
                let least = keys.iter().flatten().min().cloned();
                // One that has NULL alone comes after those with values.
                (
                    u8::from(least.is_none()),
                    least.map(Edge::Key).into_iter().collect(),
                    (0, 0),
                )
            }
            Keys::Range(from, _) => (0, from.clone(), (0, 0)),
            Keys::Hash(modulus, remainder) => (0, vec![], (*modulus, *remainder)),
            Keys::Default => (2, vec![], (0, 0)),
        }
    }
}

impl Partitions {
    /// The place of the partition that takes a key.
    pub fn find(&self, values: &[Datum]) -> Result<Option<usize>> {
        let found = match self.strategy {
            PartitionStrategy::List => match &values[0] {
                Datum::Null => self.null,
                value => self.listed(&key_bytes(value, self.types[0])?),
            },
            PartitionStrategy::Range => {
                if values.iter().any(Datum::is_null) {
                    return Ok(self.default);
                }
                let mut key = Vec::with_capacity(values.len());
                for (value, ty) in values.iter().zip(&self.types) {
                    key.push(Edge::Key(key_bytes(value, *ty)?));
                }
                self.ranged(&key)
            }
            PartitionStrategy::Hash => {
                let hash = row_hash(values, &self.types)?;
                self.hashed(hash)
            }
        };
        Ok(found.or(self.default))
    }

    /// The partition whose list has the key.
    pub fn listed(&self, key: &[u8]) -> Option<usize> {
        let at = self.keys.binary_search_by(|(k, _)| k.as_slice().cmp(key));
        at.ok().map(|at| self.keys[at].1)
    }

    fn ranged(&self, key: &[Edge]) -> Option<usize> {
        let after = self.ranges.partition_point(|r| r.from.as_slice() <= key);
        let range = &self.ranges[after.checked_sub(1)?];
        (key < range.to.as_slice()).then_some(range.part)
    }

    pub fn hashed(&self, hash: u64) -> Option<usize> {
        let mut from = 0;
        // Each modulus once: there are few, as each is a factor of the next.
        while let Some((modulus, _, _)) = self.hashes.get(from) {
            let remainder = (hash % u64::from(modulus.unsigned_abs().max(1))) as i32;
            let found = self
                .hashes
                .binary_search_by_key(&(*modulus, remainder), |h| (h.0, h.1));
            if let Ok(at) = found {
                return Some(self.hashes[at].2);
            }
            from += self.hashes[from..].partition_point(|h| h.0 == *modulus);
        }
        None
    }
}

/// Where each column of `child` is among the columns of `parent`, by attribute number - 1; none
/// where the parent has none.
pub fn columns_in_parent(child: &TableDef, parent: &TableDef) -> Vec<Option<u16>> {
    let of = |c: &super::ColumnDef| (!c.dropped).then(|| parent.attnum(&c.name)).flatten();
    child.columns.iter().map(of).collect()
}

/// Where each column of `parent` is among the columns of `child`; 0 where it is not.
pub fn columns_in_child(parent: &TableDef, child: &TableDef) -> Vec<u16> {
    let of = |c: &super::ColumnDef| (!c.dropped).then(|| child.attnum(&c.name)).flatten();
    parent.columns.iter().map(|c| of(c).unwrap_or(0)).collect()
}

impl Catalog {
    /// The partitioned tables above a partition, the nearest first.
    pub fn ancestors(&self, table: &TableDef) -> Vec<Oid> {
        let mut found: Vec<Oid> = Vec::new();
        let mut bound = table.bound.is_some();
        let mut parents = table.parents.clone();
        while bound && let Some(parent) = parents.first().copied() {
            found.push(parent);
            let Some(def) = self.table(parent) else { break };
            bound = def.bound.is_some();
            parents.clone_from(&def.parents);
        }
        found
    }

    /// Whether two tables are one, or have a table above them in common.
    pub fn are_one_family(&self, a: Oid, b: Oid) -> bool {
        let is_top = |oid| self.table(oid).is_none_or(|def| def.parents.is_empty());
        if is_top(a) && is_top(b) {
            return a == b;
        }
        let tops = self.tops_above(a);
        self.tops_above(b).iter().any(|top| tops.contains(top))
    }

    /// The tables above one that have none above them; itself, if that is such a table.
    fn tops_above(&self, table: Oid) -> Vec<Oid> {
        let (mut tops, mut seen) = (Vec::new(), vec![table]);
        let mut next = 0;
        while let Some(oid) = seen.get(next).copied() {
            next += 1;
            let parents = self.table(oid).map_or(&[][..], |def| &def.parents);
            if parents.is_empty() {
                tops.push(oid);
            }
            for parent in parents {
                if !seen.contains(parent) {
                    seen.push(*parent);
                }
            }
        }
        tops
    }

    /// Every table below this one, itself first, each before those below it and once.
    pub fn descendants(&self, table: Oid) -> Vec<Oid> {
        let mut found = vec![table];
        let mut seen: HashSet<Oid, FixedState> = HashSet::default();
        let mut next = 0;
        while next < found.len() {
            for child in self.children_of(found[next]) {
                if *child != table && seen.insert(*child) {
                    found.push(*child);
                }
            }
            next += 1;
        }
        found
    }

    /// The tables below this one that have rows, itself included unless it is partitioned, in the
    /// order in which they are read.
    pub fn leaves(&self, table: &TableDef, eval: EvalContext<'_>) -> Result<Vec<Oid>> {
        if table.partitioned.is_none() {
            return Ok(self.descendants(table.oid));
        }
        let mut found = Vec::new();
        for part in &self.partitions_of(table, eval)?.parts {
            match self.table(*part) {
                Some(def) if def.partitioned.is_some() => found.extend(self.leaves(def, eval)?),
                Some(_) => found.push(*part),
                None => {}
            }
        }
        Ok(found)
    }
}
