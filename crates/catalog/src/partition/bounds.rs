//! The bounds of a table's partitions as one ordered value, kept from one definition to the next.
//!
//! ```text
//! Links of a partitioned table ─ Known ┬─ bounds: read when they are asked for first, then changed
//!                                      └─ touched: partitions that came, went or changed since
//! ```
//! A definition touches the partition it is about; whoever asks next reads that one's bound alone.
//! So a partition's place is found, and whether it overlaps another's, in a time that grows with
//! the logarithm of their number.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use throng_types::{Error, Oid, Result, SqlType};

use super::{Edge, Keys, Partitions, Range};
use crate::{Catalog, Map, TableDef};
use throng_values::func::EvalContext;

type Ordered<K, V> = imbl::GenericOrdMap<K, V, imbl::shared_ptr::DefaultSharedPtr>;

/// What partitions are sorted by: the default partition last, then by bound.
type BoundOrder = (u8, Vec<Edge>, (i32, i32));

/// Bounds by key.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    of: Map<Oid, Arc<Keys>>,
    order: Ordered<(BoundOrder, Oid), ()>,
    /// By lower end.
    ranges: Ordered<Vec<Edge>, (Vec<Edge>, Oid)>,
    listed: Ordered<Vec<u8>, Oid>,
    null: Option<Oid>,
    /// By modulus and remainder.
    hashes: Ordered<(i32, i32), Oid>,
    default: Option<Oid>,
}

impl Bounds {
    fn add(&mut self, part: Oid, keys: Keys) {
        self.order.insert((keys.place(), part), ());
        match &keys {
            Keys::Default => self.default = Some(part),
            Keys::List(keys) => {
                for key in keys {
                    match key {
                        Some(key) => {
                            self.listed.insert(key.clone(), part);
                        }
                        None => self.null = Some(part),
                    }
                }
            }
            Keys::Range(from, to) => {
                self.ranges.insert(from.clone(), (to.clone(), part));
            }
            Keys::Hash(modulus, remainder) => {
                self.hashes.insert((*modulus, *remainder), part);
            }
        }
        self.of.insert(part, Arc::new(keys));
    }

    fn remove(&mut self, part: Oid) {
        let Some(keys) = self.of.remove(&part) else {
            return;
        };
        self.order.remove(&(keys.place(), part));
        match &*keys {
            Keys::Default => self.default = None,
            Keys::List(keys) => {
                for key in keys {
                    match key {
                        Some(key) => {
                            self.listed.remove(key);
                        }
                        None => self.null = None,
                    }
                }
            }
            Keys::Range(from, _) => {
                self.ranges.remove(from);
            }
            Keys::Hash(modulus, remainder) => {
                self.hashes.remove(&(*modulus, *remainder));
            }
        }
    }

    /// As if a partition were none of them.
    pub fn without(&self, part: Option<Oid>) -> Bounds {
        let mut others = self.clone();
        if let Some(part) = part {
            others.remove(part);
        }
        others
    }

    pub fn default_partition(&self) -> Option<Oid> {
        self.default
    }

    pub fn keys_of(&self, part: Oid) -> Option<&Keys> {
        self.of.get(&part).map(|keys| &**keys)
    }

    pub fn listing(&self, key: &[u8]) -> Option<Oid> {
        self.listed.get(key).copied()
    }

    pub fn listing_null(&self) -> Option<Oid> {
        self.null
    }

    /// The partition that takes something of what a new one with this bound would take, the first
    /// of them.
    pub fn overlapping(&self, keys: &Keys) -> Option<Oid> {
        match keys {
            Keys::Default => self.default,
            Keys::List(keys) => keys.iter().find_map(|key| match key {
                None => self.null,
                Some(key) => self.listing(key),
            }),
            Keys::Range(from, to) => {
                if let Some((_, (end, below))) = self.ranges.get_prev(from)
                    && end > from
                {
                    return Some(*below);
                }
                let (start, (_, above)) = self.ranges.get_next(from)?;
                (start < to).then_some(*above)
            }
            Keys::Hash(modulus, remainder) => self.moduli().find_map(|other| {
                let step = *modulus;
                let mut remainders = match other <= step {
                    true => (remainder % other..other).step_by(other as usize),
                    false => (*remainder..other).step_by(step as usize),
                };
                remainders.find_map(|r| self.hashes.get(&(other, r)).copied())
            }),
        }
    }

    /// Each modulus once, ascending.
    fn moduli(&self) -> impl Iterator<Item = i32> {
        let after = |modulus: i32| {
            let next = self.hashes.get_next(&(modulus, i32::MAX));
            next.map(|((modulus, _), _)| *modulus)
        };
        std::iter::successors(after(0), move |modulus| after(*modulus))
    }

    /// A partition with the largest modulus that is not above this one, and one with the next
    /// larger.
    pub fn around(&self, modulus: i32) -> [Option<(i32, Oid)>; 2] {
        let found = |entry: Option<(&(i32, i32), &Oid)>| entry.map(|((m, _), part)| (*m, *part));
        let most = (modulus, i32::MAX);
        [self.hashes.get_prev(&most), self.hashes.get_next(&most)].map(found)
    }

    fn partitions(&self, table: &TableDef) -> Result<Partitions> {
        let (strategy, types) = key_of(table)?;
        let mut found = Partitions {
            strategy,
            types,
            parts: Vec::with_capacity(self.of.len()),
            keys: Vec::new(),
            null: None,
            ranges: Vec::new(),
            hashes: Vec::new(),
            default: None,
        };
        for (at, (_, part)) in self.order.keys().enumerate() {
            found.parts.push(*part);
            match self.keys_of(*part) {
                Some(Keys::Default) => found.default = Some(at),
                Some(Keys::List(keys)) => {
                    for key in keys {
                        match key {
                            Some(key) => found.keys.push((key.clone(), at)),
                            None => found.null = Some(at),
                        }
                    }
                }
                Some(Keys::Range(from, to)) => found.ranges.push(Range {
                    from: from.clone(),
                    to: to.clone(),
                    part: at,
                }),
                Some(Keys::Hash(modulus, remainder)) => {
                    found.hashes.push((*modulus, *remainder, at));
                }
                None => {}
            }
        }
        found.keys.sort();
        Ok(found)
    }
}

/// What another layer derives of definitions and keeps with them.
pub type Derived = Arc<dyn Any + Send + Sync>;

/// What is known of a table's partitions, as far as somebody has asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    before: Option<Arc<Bounds>>,
    /// Since `before`.
    touched: Vec<Oid>,
    bounds: OnceLock<Arc<Bounds>>,
    partitions: OnceLock<Arc<Partitions>>,
    /// What the binder derives of the whole family.
    derived: OnceLock<Derived>,
}

impl Known {
    /// More partitions touched, and nobody who asked, are forgotten.
    const MOST_TOUCHED: usize = 10_000;

    /// A child has come, gone or changed.
    pub fn touch(&mut self, child: Oid) {
        if let Some(bounds) = self.bounds.take() {
            self.before = Some(bounds);
            self.touched.clear();
        }
        self.partitions = OnceLock::new();
        self.derived = OnceLock::new();
        if self.touched.len() >= Self::MOST_TOUCHED {
            self.before = None;
        }
        match self.before {
            Some(_) => self.touched.push(child),
            None => self.touched.clear(),
        }
    }

    /// Something below the children has changed, or the table itself.
    pub fn touch_tree(&mut self) {
        self.derived = OnceLock::new();
    }
}

fn key_of(table: &TableDef) -> Result<(super::PartitionStrategy, Vec<SqlType>)> {
    let key = table.partitioned.as_ref();
    let key = key.ok_or_else(|| Error::internal("a table that is not partitioned"))?;
    Ok((key.strategy, key.parts.iter().map(|p| p.ty).collect()))
}

impl Catalog {
    /// The bounds of a partitioned table's partitions.
    ///
    /// # Errors
    /// XX000 for a table that is not partitioned.
    pub fn bounds_of(&self, table: &TableDef, eval: EvalContext<'_>) -> Result<Arc<Bounds>> {
        let (_, types) = key_of(table)?;
        let Some(links) = self.links.get(&table.oid) else {
            return Ok(Arc::default());
        };
        let known = &links.partitions;
        if let Some(bounds) = known.bounds.get() {
            return Ok(bounds.clone());
        }
        let mut bounds = known.before.as_deref().cloned().unwrap_or_default();
        let read: &[Oid] = match known.before {
            Some(_) => &known.touched,
            None => &links.children,
        };
        for part in read {
            bounds.remove(*part);
            let there = links.children.binary_search(part).is_ok();
            let def = self.table(*part).filter(|_| there);
            if let Some(bound) = def.and_then(|def| def.bound.as_ref()) {
                bounds.add(*part, Keys::of(bound, &types, eval)?);
            }
        }
        Ok(known.bounds.get_or_init(|| Arc::new(bounds)).clone())
    }

    /// A partitioned table's partitions and which keys they take.
    ///
    /// # Errors
    /// XX000 for a table that is not partitioned.
    pub fn partitions_of(
        &self,
        table: &TableDef,
        eval: EvalContext<'_>,
    ) -> Result<Arc<Partitions>> {
        let bounds = self.bounds_of(table, eval)?;
        let known = self.links.get(&table.oid).map(|links| &links.partitions);
        if let Some(partitions) = known.and_then(|known| known.partitions.get()) {
            return Ok(partitions.clone());
        }
        let made = Arc::new(bounds.partitions(table)?);
        Ok(match known {
            Some(known) => known.partitions.get_or_init(|| made).clone(),
            None => made,
        })
    }

    /// The place where the binder keeps what it derives of a partitioned table, its partitions and
    /// theirs; it is empty again when any of them changes.
    pub fn derived_of(&self, table: Oid) -> Option<&OnceLock<Derived>> {
        let links = self.links.get(&table)?;
        Some(&links.partitions.derived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(n: i32) -> Vec<Edge> {
        match n {
            i32::MIN => vec![Edge::Min],
            i32::MAX => vec![Edge::Max],
            n => vec![Edge::Key(((n as u32) ^ (1 << 31)).to_be_bytes().to_vec())],
        }
    }

    fn range(from: i32, to: i32) -> Keys {
        Keys::Range(edge(from), edge(to))
    }

    fn list(keys: &[Option<u8>]) -> Keys {
        Keys::List(keys.iter().map(|key| key.map(|k| vec![k])).collect())
    }

    #[test]
    fn a_range_meets_the_first_that_it_overlaps() {
        let mut bounds = Bounds::default();
        bounds.add(Oid(1), range(i32::MIN, 0));
        bounds.add(Oid(2), range(10, 20));
        bounds.add(Oid(3), range(20, 30));
        let meets = |from, to| bounds.overlapping(&range(from, to));
        assert_eq!(meets(0, 10), None);
        assert_eq!(meets(30, i32::MAX), None);
        assert_eq!(meets(-1, 10), Some(Oid(1)));
        assert_eq!(meets(0, 11), Some(Oid(2)));
        assert_eq!(meets(12, 13), Some(Oid(2)));
        assert_eq!(meets(5, 100), Some(Oid(2)));
        assert_eq!(meets(i32::MIN, i32::MAX), Some(Oid(1)));
        let others = bounds.without(Some(Oid(2)));
        assert_eq!(others.overlapping(&range(0, 20)), None);
        assert_eq!(bounds.overlapping(&range(0, 20)), Some(Oid(2)));
    }

    #[test]
    fn what_is_taken_out_takes_no_key_any_more() {
        let mut bounds = Bounds::default();
        bounds.add(Oid(1), list(&[Some(1), None]));
        bounds.add(Oid(2), list(&[Some(2), Some(3)]));
        bounds.add(Oid(3), Keys::Default);
        assert_eq!(bounds.overlapping(&list(&[Some(4), Some(3)])), Some(Oid(2)));
        assert_eq!(bounds.overlapping(&list(&[None])), Some(Oid(1)));
        assert_eq!(bounds.default_partition(), Some(Oid(3)));
        for part in [1, 2, 3] {
            bounds.remove(Oid(part));
        }
        assert_eq!(bounds.overlapping(&list(&[Some(1), Some(2), None])), None);
        assert_eq!(bounds.default_partition(), None);
        assert!(bounds.order.is_empty() && bounds.of.is_empty());
    }

    #[test]
    fn remainders_meet_under_any_two_moduli() {
        // Each modulus is a factor of the next.
        let all = [(2, 0), (4, 1), (8, 3), (8, 7)];
        let mut bounds = Bounds::default();
        for (at, (modulus, remainder)) in all.into_iter().enumerate() {
            bounds.add(Oid(at as u32), Keys::Hash(modulus, remainder));
        }
        for modulus in [1, 2, 4, 8, 16] {
            for remainder in 0..modulus {
                let meets = |(m, r): &(i32, i32)| {
                    let common = modulus.min(*m);
                    r % common == remainder % common
                };
                let expected = all.iter().position(meets).map(|at| Oid(at as u32));
                let found = bounds.overlapping(&Keys::Hash(modulus, remainder));
                assert_eq!(found, expected, "{modulus} {remainder}");
            }
        }
        assert_eq!(bounds.around(5), [Some((4, Oid(1))), Some((8, Oid(2)))]);
        assert_eq!(bounds.around(1), [None, Some((2, Oid(0)))]);
    }
}
