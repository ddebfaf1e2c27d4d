//! Which look-ups of which indexes are worth being put together for a table's conditions.
//!
//! ```text
//!   tags @> '{a}' AND (doc ? 'k' OR id = 7) AND size > 3
//!        │                 │        │            └─ not worth it: stays a filter
//!        └───── And ─┬─ Or ┴────────┘
//! ```
//! Parts are taken greedily, the cheapest by itself first, as long as each makes the whole cheaper
//! (as PostgreSQL's `choose_bitmap_and` does).

use std::sync::Arc;

use throng_bind::expr::{Expr, RelId};
use throng_catalog::{IndexDef, IndexMethod};
use throng_types::{Result, SqlType, stack};
use throng_values::func::operator_by_oid;
use throng_values::inverted::{OperatorClass, Search};

use super::access::{Span, TableIndex, TableRef, index_keys};
use super::index_key::{Key, is_fixed, key_first};
use super::{
    Bitmap, BitmapLookUp, BitmapScan, Built, Columns, Cost, InvertedMatch, LookUpBy, Node, Planner,
    TableSize, cost,
};

/// Rows that some conditions find.
pub(super) struct BitmapPath {
    found: Found,
    /// The conditions that it says: places in the list of conditions.
    used: Vec<usize>,
    /// The share of the table's rows that it finds.
    share: f64,
    /// Of finding the entries.
    cost: f64,
}

enum Found {
    All(Vec<BitmapPath>),
    Any(Vec<BitmapPath>),
    By(LookUp),
}

struct LookUp {
    index: Arc<IndexDef>,
    by: By,
    conditions: Vec<Expr>,
}

enum By {
    Span(Box<Span>),
    Keys(Vec<InvertedMatch>),
}

/// A bitmap with what reading its rows costs.
pub(super) struct Priced {
    path: BitmapPath,
    pub total: f64,
}

impl Planner<'_> {
    /// The bitmap that the conditions make cheapest; none where a scan of one ordered index does
    /// as well.
    pub(super) fn bitmap_path(
        &self,
        source: &TableRef<'_>,
        conditions: &[Expr],
        size: TableSize,
    ) -> Result<Option<Priced>> {
        let indexes = self.ctx.catalog.indexes_of(source.table.oid);
        if indexes.is_empty() || source.sample.is_some() {
            return Ok(None);
        }
        let is_or = |condition: &Expr| matches!(condition, Expr::Or(_));
        let is_inverted = |index: &Arc<IndexDef>| index.terms.method == IndexMethod::Gin;
        if indexes.len() < 2 && !indexes.iter().any(is_inverted) {
            return Ok(None);
        }
        if indexes.len() == 1 && conditions.is_empty() {
            return Ok(None);
        }
        let several = conditions.len() > 1 || conditions.iter().any(is_or);
        if !several && !indexes.iter().any(is_inverted) {
            return Ok(None);
        }
        let list: Vec<&Expr> = conditions.iter().collect();
        let Some(path) = self.best_bitmap(source, &list, size)? else {
            return Ok(None);
        };
        if let Found::By(LookUp {
            by: By::Span(_), ..
        }) = path.found
        {
            return Ok(None);
        }
        let disabled = match self.ctx.enable_bitmapscan {
            true => 0.0,
            false => cost::DISABLED,
        };
        let total = disabled + path.cost + self.reading(&list, path.share, size);
        Ok(Some(Priced { path, total }))
    }

    /// What reading a share of a table's rows costs, in the order in which they lie.
    fn reading(&self, conditions: &[&Expr], share: f64, size: TableSize) -> f64 {
        let all = f64::from(size.pages).max(1.0);
        let rows = (size.rows * share).max(1.0);
        let pages = cost::pages_of(rows, all);
        let near = (pages / all).sqrt();
        let page = cost::RANDOM_PAGE - (cost::RANDOM_PAGE - cost::SEQ_PAGE) * near;
        let tests: f64 = conditions
            .iter()
            .map(|condition| cost::tests(std::slice::from_ref(*condition)))
            .sum();
        pages * page + rows * (cost::TUPLE + cost::OPERATOR * tests)
    }

    fn best_bitmap(
        &self,
        source: &TableRef<'_>,
        conditions: &[&Expr],
        size: TableSize,
    ) -> Result<Option<BitmapPath>> {
        stack::check()?;
        let mut parts = self.look_ups(source, conditions, size);
        for (at, condition) in conditions.iter().enumerate() {
            if let Expr::Or(arms) = condition
                && let Some(part) = self.any_of_arms(source, arms, at, size)?
            {
                parts.push(part);
            }
        }
        let total = |share: f64, cost: f64| cost + self.reading(conditions, share, size);
        parts.sort_by(|a, b| total(a.share, a.cost).total_cmp(&total(b.share, b.cost)));
        let mut parts = parts.into_iter();
        let Some(mut best) = parts.next() else {
            return Ok(None);
        };
        let mut all = Vec::new();
        for part in parts {
            if part.used.iter().any(|at| best.used.contains(at)) {
                continue;
            }
            let share = best.share * part.share;
            let cost = best.cost + part.cost;
            if total(share, cost) < total(best.share, best.cost) {
                (best.share, best.cost) = (share, cost);
                best.used.extend(&part.used);
                all.push(part);
            }
        }
        if !all.is_empty() {
            let used = std::mem::take(&mut best.used);
            let (share, cost) = (best.share, best.cost);
            all.insert(0, best);
            best = BitmapPath {
                found: Found::All(all),
                used,
                share,
                cost,
            };
        }
        Ok(Some(best))
    }

    /// The rows of any of a disjunction's arms, where each arm has some bitmap.
    fn any_of_arms(
        &self,
        source: &TableRef<'_>,
        arms: &[Expr],
        at: usize,
        size: TableSize,
    ) -> Result<Option<BitmapPath>> {
        let mut parts = Vec::with_capacity(arms.len());
        let (mut cost, mut missed) = (0.0, 1.0);
        for arm in arms {
            let own: Vec<&Expr> = match arm {
                Expr::And(parts) => parts.iter().collect(),
                one => vec![one],
            };
            let Some(part) = self.best_bitmap(source, &own, size)? else {
                return Ok(None);
            };
            cost += part.cost;
            missed *= 1.0 - part.share;
            parts.push(part);
        }
        Ok(Some(BitmapPath {
            found: Found::Any(parts),
            used: vec![at],
            share: 1.0 - missed,
            cost,
        }))
    }

    /// What each index finds by itself.
    fn look_ups(
        &self,
        source: &TableRef<'_>,
        conditions: &[&Expr],
        size: TableSize,
    ) -> Vec<BitmapPath> {
        let mut found = Vec::new();
        let owned: Vec<Expr> = conditions.iter().map(|e| (*e).clone()).collect();
        for index in self.ctx.catalog.indexes_of(source.table.oid) {
            let Some(served) = self.terms(source, index, &owned) else {
                continue;
            };
            let keys = index_keys(index, &served.exprs);
            let via = TableIndex {
                source,
                index,
                keys: &keys,
                size,
            };
            match index.inverted_classes(source.table) {
                Some(classes) => {
                    let said = &served.said;
                    found.extend(self.by_keys(&via, &classes, (conditions, said)));
                }
                None => found.extend(self.by_span(&via, conditions)),
            }
        }
        found
    }

    fn by_span(&self, via: &TableIndex<'_, '_>, conditions: &[&Expr]) -> Option<BitmapPath> {
        let span = self.span(via, conditions)?;
        // What a condition only implies is no condition to be shown.
        if span.used.is_empty() || !span.implied.is_empty() {
            return None;
        }
        let used = span.used.clone();
        let cost = span.descents * cost::DESCENT + span.rows * cost::INDEX_TUPLE;
        let share = (span.rows / via.size.rows.max(1.0)).min(1.0);
        let look_up = LookUp {
            index: via.index.clone(),
            by: By::Span(Box::new(span)),
            conditions: used.iter().map(|at| conditions[*at].clone()).collect(),
        };
        Some(BitmapPath {
            found: Found::By(look_up),
            used,
            share,
            cost,
        })
    }

    /// What an inverted index finds by all conditions that its classes know; its own condition says
    /// some more.
    fn by_keys(
        &self,
        via: &TableIndex<'_, '_>,
        classes: &[&'static OperatorClass],
        (conditions, said): (&[&Expr], &[usize]),
    ) -> Option<BitmapPath> {
        let rel = via.source.rel;
        let (mut matches, mut used, mut told) = (Vec::new(), Vec::new(), Vec::new());
        let mut look_ups = 0;
        for (at, condition) in conditions.iter().enumerate() {
            let columns = via.keys.iter().zip(classes).zip(0u8..);
            let mut found = columns.filter_map(|((key, class), column)| {
                let (strategy, query) = searched(condition, *key, class, rel)?;
                let keys = match super::constant::value_now(query, &self.ctx.eval) {
                    Some(value) if value.is_null() => 0,
                    Some(value) => {
                        let search =
                            (class.extract_query)(&value, strategy, &self.ctx.eval).ok()?;
                        match search.simplified() {
                            Search::Everything => return None,
                            search => search.look_ups(),
                        }
                    }
                    None => UNKNOWN_KEYS,
                };
                let query = query.clone();
                let matching = InvertedMatch {
                    column,
                    strategy,
                    query,
                };
                Some((matching, keys))
            });
            if let Some((matching, keys)) = found.next() {
                matches.push(matching);
                used.push(at);
                told.push(key_first((*condition).clone(), rel));
                look_ups += keys;
            }
        }
        if matches.is_empty() {
            return None;
        }
        used.extend(
            said.iter()
                .filter(|at| !used.contains(at))
                .collect::<Vec<_>>(),
        );
        let met = used.iter().map(|at| conditions[*at]);
        let mut share = self.shares(met, Some(rel));
        if via.index.terms.predicate.is_some() && said.is_empty() {
            share *= super::access::PARTIAL;
        }
        let look_ups = (look_ups as f64).max(1.0);
        let rows = via.size.rows * share;
        // Of several lists the shorter ones tell where the longer ones are read.
        let entries = rows * look_ups.sqrt().max(1.0);
        let look_up = LookUp {
            index: via.index.clone(),
            by: By::Keys(matches),
            conditions: told,
        };
        Some(BitmapPath {
            found: Found::By(look_up),
            used,
            share,
            cost: look_ups * cost::DESCENT + entries * cost::INDEX_TUPLE,
        })
    }

    /// The scan of a bitmap.
    pub(super) fn bitmap_scan(
        &mut self,
        source: &TableRef<'_>,
        priced: Priced,
        conditions: Vec<Expr>,
        (columns, places): (Vec<i16>, Columns),
        rows: f64,
    ) -> Result<Built> {
        let Priced { path, total } = priced;
        let used = path.used.clone();
        let (mut said, mut others) = (Vec::new(), Vec::new());
        for (at, condition) in conditions.into_iter().enumerate() {
            match used.contains(&at) {
                true => said.push(condition),
                false => others.push(condition),
            }
        }
        let mut filter = self.place_all(said, &places)?;
        let rechecked = filter.len();
        // They are in the order in which rows may be seen by them.
        filter.extend(self.place_all(others, &places)?);
        let types: Vec<SqlType> = columns
            .iter()
            .map(|c| super::access::column_type(source.table, *c))
            .collect();
        let cost = Cost {
            startup: path.cost.min(total),
            total,
            rows,
            width: cost::width(&types),
        };
        let scan = BitmapScan {
            rel: source.rel,
            alias: source.alias.to_owned(),
            table: source.table.clone(),
            columns,
            bitmap: self.placed_bitmap(path, &places, cost.rows)?,
            filter: Expr::all_of(filter),
            rechecked,
        };
        Ok(Built {
            plan: self.node(Node::BitmapScan(Box::new(scan)), types, cost),
            columns: places,
            order: Vec::new(),
        })
    }

    fn placed_bitmap(&mut self, path: BitmapPath, places: &Columns, rows: f64) -> Result<Bitmap> {
        let cost = Cost {
            startup: 0.0,
            total: path.cost,
            rows,
            width: 0,
        };
        let mut all = |parts: Vec<BitmapPath>| -> Result<Vec<Bitmap>> {
            let parts = parts.into_iter();
            parts
                .map(|part| self.placed_bitmap(part, places, rows))
                .collect()
        };
        Ok(match path.found {
            Found::All(parts) => Bitmap::And(all(parts)?),
            Found::Any(parts) => Bitmap::Or(all(parts)?),
            Found::By(look_up) => {
                let nothing = Columns::default();
                let by = match look_up.by {
                    By::Span(span) => LookUpBy::Spans(vec![self.placed(*span)?]),
                    By::Keys(mut matches) => {
                        for matching in &mut matches {
                            let query = std::mem::replace(&mut matching.query, Expr::bool(true));
                            matching.query = self.place(query, &nothing)?;
                        }
                        LookUpBy::Keys(matches)
                    }
                };
                Bitmap::LookUp(Box::new(BitmapLookUp {
                    index: look_up.index,
                    by,
                    condition: Expr::all_of(self.place_all(look_up.conditions, places)?),
                    cost,
                }))
            }
        })
    }
}

/// Keys of a query whose value is not known yet.
const UNKNOWN_KEYS: usize = 2;

/// The strategy and the query of a condition that a class knows about the key.
fn searched<'c>(
    condition: &'c Expr,
    key: Key<'_>,
    class: &OperatorClass,
    rel: RelId,
) -> Option<(i16, &'c Expr)> {
    let Expr::Op { op, args, .. } = condition else {
        return None;
    };
    let [left, right] = &args[..] else {
        return None;
    };
    if key.is(left, rel) && is_fixed(right, rel) {
        let strategy = class.strategy(op.name, right.type_oid())?;
        return Some((strategy, right));
    }
    if key.is(right, rel) && is_fixed(left, rel) {
        let op = operator_by_oid(op.commutator)?;
        let strategy = class.strategy(op.name, left.type_oid())?;
        return Some((strategy, left));
    }
    None
}
