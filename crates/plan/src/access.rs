//! How one table is read: all of it, or through the index that the conditions make cheapest.

use std::sync::Arc;

use throng_syntax::vocabulary::TableLock;
use throng_types::key;
use throng_types::{Result, SqlType, oid};

use super::cost::{self, at_least_one};
use super::index_key::{End, Ends, Key, Match, Taken, find_match, key_first};
use super::security::Ordered;
use super::{
    Built, Columns, Cost, IndexScan, KeyBound, KeyBounds, KeyMatch, KeySpan, Node, OrderedBy,
    Planner, SeqScan, SkippedKey,
};
use throng_bind::expr::{Expr, RelId, system};
use throng_bind::tablesample::Sample;
use throng_catalog::{IndexDef, IndexMethod, TableDef, VirtualTable};

/// What would be good to have of a scan's order.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub order: Vec<OrderedBy>,
    /// Rows after which the reader stops.
    pub limit: Option<f64>,
}

/// Share of a table's rows that a partial index is taken to have.
pub(super) const PARTIAL: f64 = 0.1;

/// A table to read.
pub(super) struct TableRef<'q> {
    pub rel: RelId,
    pub alias: &'q str,
    pub table: &'q Arc<TableDef>,
    pub sample: Option<&'q Sample>,
}

/// A way through one index.
struct Path {
    index: Arc<IndexDef>,
    /// The stretches that are read, one after another.
    spans: Vec<Span>,
    /// The conditions that all of them together say: places in the list of conditions.
    used: Vec<usize>,
    /// The conditions that the index's own says already.
    said: Vec<usize>,
    /// Comparisons that say a stretch's bounds, where no condition does.
    implied: Vec<Expr>,
    /// Those of the used conditions that are asked of each row again.
    rough: Vec<usize>,
    reverse: bool,
    ordered: bool,
    /// Who reads wants the rows in the index's order, or few of them.
    in_order: bool,
    /// The rows are read in the order in which they lie.
    by_place: bool,
    /// Entries read.
    rows: f64,
    startup: f64,
    cost: f64,
}

/// A stretch of an index.
pub(super) struct Span {
    /// The conditions used for each key column: places in the list of conditions.
    pub used: Vec<usize>,
    prefix: Vec<Match>,
    skip: Option<Skipped>,
    ends: Ends,
    pub implied: Vec<Expr>,
    /// As in [`Path`].
    rough: Vec<usize>,
    /// Descents of the tree: one for each element of its arrays, and more where values of a
    /// column are looked for.
    pub descents: f64,
    pub rows: f64,
}

/// As [`SkippedKey`].
pub(super) struct Skipped {
    ends: Ends,
    then: Vec<Match>,
}

impl Span {
    /// Whether the index gives the wanted order within it: read forward (false) or backward (true).
    fn order(&self, via: &TableIndex<'_, '_>, wanted: &Wanted) -> Option<bool> {
        // Several ranges come one after another: the order within each is not the order of all.
        let single = !self.prefix.iter().any(|m| matches!(m, Match::Any(_)));
        let sorted = via.index.terms.method == IndexMethod::Btree;
        let given = || order_given(via.index, self.prefix.len(), wanted);
        (single && sorted).then(given).flatten()
    }
}

/// A table and one of its indexes.
#[derive(Clone, Copy)]
pub(super) struct TableIndex<'p, 'q> {
    pub source: &'p TableRef<'q>,
    pub index: &'p Arc<IndexDef>,
    pub keys: &'p [Key<'p>],
    pub size: super::TableSize,
}

/// The key columns of an index whose expressions, over the entry, are these.
pub(super) fn index_keys<'k>(index: &IndexDef, exprs: &'k [Expr]) -> Vec<Key<'k>> {
    let mut exprs = exprs.iter();
    let key = |attnum: u16| match attnum {
        0 => exprs.next().map_or(Key::Column(0), Key::Expr),
        attnum => Key::Column(attnum as i16),
    };
    index.columns.iter().map(|c| c.attnum).map(key).collect()
}

impl Planner<'_> {
    /// Reads a table under conditions that may speak of variables from outside.
    pub(super) fn table(
        &mut self,
        source: &TableRef<'_>,
        conditions: Vec<Expr>,
        wanted: &Wanted,
    ) -> Result<Built> {
        self.lock(source.table.oid, TableLock::AccessShare);
        if source.table.is_unpopulated() {
            self.unpopulated
                .get_or_insert_with(|| source.table.name.clone());
        }
        if self.sees_nothing(source.rel) {
            return Ok(self.nothing_of(source));
        }
        let Ordered { conditions, leaky } = self.secured(source.rel, conditions);
        if let Some(at) = super::tid::told_by(&conditions[..leaky], source)
            && source.sample.is_none()
        {
            return self.row_at(source, conditions, at);
        }
        self.tables.insert(source.rel, source.table.clone());
        let size = self.ctx.stats.table_size(source.table.oid);
        let selectivity = self.shares(&conditions, Some(source.rel));
        let rows = at_least_one(size.rows * selectivity);
        let seq_cost = f64::from(size.pages) * cost::SEQ_PAGE
            + size.rows * (cost::TUPLE + cost::OPERATOR * cost::tests(&conditions))
            + if self.ctx.enable_seqscan {
                0.0
            } else {
                cost::DISABLED
            };

        let mut best: Option<(f64, Path)> = None;
        let indexes = self.ctx.catalog.indexes_of(source.table.oid).iter();
        let is_ordered = |index: &&Arc<IndexDef>| index.terms.method != IndexMethod::Gin;
        for index in indexes
            .filter(|_| source.sample.is_none())
            .filter(is_ordered)
        {
            for path in self.index_paths(source, index, &conditions[..leaky], wanted, size) {
                let effective = self.effective_cost(path.cost, path.ordered, rows, wanted);
                if best.as_ref().is_none_or(|(cost, _)| effective < *cost) {
                    best = Some((effective, path));
                }
            }
        }
        let seq_effective = self.effective_cost(seq_cost, false, rows, wanted);
        let least = best
            .as_ref()
            .map_or(seq_effective, |b| b.0.min(seq_effective));
        let bitmap = self.bitmap_path(source, &conditions[..leaky], size)?;
        let bitmap = bitmap.filter(|b| self.effective_cost(b.total, false, rows, wanted) < least);
        let columns = self.needed_columns(source.rel);
        let types: Vec<SqlType> = columns
            .iter()
            .map(|c| column_type(source.table, *c))
            .collect();
        let places = Columns::of(source.rel, columns.iter().copied());
        let width = cost::width(&types);
        if let Some(priced) = bitmap {
            return self.bitmap_scan(source, priced, conditions, (columns, places), rows);
        }
        match best.filter(|(cost, _)| *cost < seq_effective) {
            Some((_, path)) => {
                let cost = Cost {
                    startup: path.startup,
                    total: path.cost,
                    rows,
                    width,
                };
                self.index_scan(source, path, conditions, columns, types, places, cost)
            }
            None => {
                let placed = self.place_all(conditions, &places)?;
                let scan = SeqScan {
                    rel: source.rel,
                    alias: source.alias.to_owned(),
                    table: source.table.clone(),
                    columns,
                    filter: Expr::all_of(placed),
                    place: None,
                    sample: self.sample(source)?,
                };
                let cost = Cost {
                    startup: 0.0,
                    total: seq_cost,
                    rows,
                    width,
                };
                let plan = self.node(Node::SeqScan(scan), types, cost);
                Ok(Built {
                    plan,
                    columns: places,
                    order: Vec::new(),
                })
            }
        }
    }

    /// The sample that is read of a table.
    fn sample(&mut self, source: &TableRef<'_>) -> Result<Option<Box<Sample>>> {
        let Some(sample) = source.sample else {
            return Ok(None);
        };
        let nothing = Columns::default();
        let percent = self.place(sample.percent.clone(), &nothing)?;
        let seed = match &sample.seed {
            Some(seed) => Some(self.place(seed.clone(), &nothing)?),
            None => None,
        };
        Ok(Some(Box::new(Sample {
            method: sample.method,
            percent,
            seed,
        })))
    }

    /// What a path costs its reader: a sort after it where it is not in order, only a part of it
    /// under a limit.
    fn effective_cost(&self, cost: f64, ordered: bool, rows: f64, wanted: &Wanted) -> f64 {
        if wanted.order.is_empty() || ordered {
            let part = wanted.limit.map_or(1.0, |limit| (limit / rows).min(1.0));
            return cost * part + cost::DESCENT;
        }
        cost::sort(&Cost {
            startup: 0.0,
            total: cost,
            rows,
            width: 0,
        })
        .total
    }

    fn index_paths(
        &self,
        source: &TableRef<'_>,
        index: &Arc<IndexDef>,
        conditions: &[Expr],
        wanted: &Wanted,
        size: super::TableSize,
    ) -> Vec<Path> {
        let Some(served) = self.terms(source, index, conditions) else {
            return Vec::new();
        };
        let keys = index_keys(index, &served.exprs);
        let via = TableIndex {
            source,
            index,
            keys: &keys,
            size,
        };
        let all: Vec<&Expr> = conditions.iter().collect();
        let whole = self.span(&via, &all).and_then(|span| {
            let order = span.order(&via, wanted);
            let bounded = !span.used.is_empty() || !span.implied.is_empty();
            if !bounded && order.is_none() && index.terms.predicate.is_none() {
                return None;
            }
            let mut path = self.path_of(&via, span);
            path.ordered = order.is_some();
            path.reverse = order == Some(true);
            Some(path)
        });
        let skipping = self.skipping_span(&via, &all);
        let skipping = skipping.map(|span| self.path_of(&via, span));
        let unions = (0..conditions.len()).filter_map(|at| self.union(&via, conditions, at));
        let mut paths: Vec<Path> = whole.into_iter().chain(skipping).chain(unions).collect();
        for path in &mut paths {
            path.said.clone_from(&served.said);
            path.in_order = path.ordered || wanted.limit.is_some();
            if !path.in_order {
                self.read_by_place(path, &via);
            }
        }
        paths
    }

    /// The stretches of the arms of a disjunction, where each arm says one together with the other
    /// conditions.
    fn union(&self, via: &TableIndex<'_, '_>, conditions: &[Expr], at: usize) -> Option<Path> {
        let Expr::Or(arms) = &conditions[at] else {
            return None;
        };
        let mut used: Vec<usize> = (0..conditions.len()).filter(|i| *i != at).collect();
        let others: Vec<&Expr> = used.iter().map(|i| &conditions[*i]).collect();
        let mut spans = Vec::with_capacity(arms.len());
        let mut alternatives = Vec::with_capacity(arms.len());
        let mut exact = true;
        for arm in arms {
            let mut own = Vec::new();
            arm.clone().conjuncts(&mut own);
            let list: Vec<&Expr> = own.iter().chain(others.iter().copied()).collect();
            let mut span = self.span(via, &list)?;
            let of_arm = span.used.iter().filter_map(|i| own.get(*i).cloned());
            let said: Vec<Expr> = of_arm.collect();
            exact &= said.len() == own.len() && span.rough.is_empty();
            alternatives.push(Expr::all_of(said)?);
            // What stands behind the disjunction is one place nearer among the others.
            let place = |i: usize| own.len() + if i < at { i } else { i - 1 };
            used.retain(|i| span.used.contains(&place(*i)) && !span.rough.contains(&place(*i)));
            span.implied.clear();
            spans.push(span);
        }
        if exact {
            used.push(at);
        }
        let mut path = self.path(via, spans, used);
        // A row that is found is one arm's: the arms are tested of it as of a row that a scan of
        // the table meets.
        path.cost += path.rows * cost::OPERATOR * cost::tests(arms);
        if !exact {
            path.implied.push(Expr::Or(alternatives));
        }
        Some(path)
    }

    /// The path of one stretch.
    fn path_of(&self, via: &TableIndex<'_, '_>, mut span: Span) -> Path {
        let implied = std::mem::take(&mut span.implied);
        let used = span.used.clone();
        let rough = std::mem::take(&mut span.rough);
        Path {
            implied,
            rough,
            ..self.path(via, vec![span], used)
        }
    }

    fn path(&self, via: &TableIndex<'_, '_>, spans: Vec<Span>, used: Vec<usize>) -> Path {
        let table_rows = via.size.rows;
        let descents: f64 = spans.iter().map(|span| span.descents).sum();
        let rows: f64 = spans.iter().map(|span| span.rows).sum();
        let rows = rows.min(table_rows).max(descents.min(table_rows.max(1.0)));
        let disabled = if self.ctx.enable_indexscan {
            0.0
        } else {
            cost::DISABLED
        };
        let cost = disabled
            + descents * cost::DESCENT
            + self.pages_read(via, rows) * cost::RANDOM_PAGE
            + rows * (cost::INDEX_TUPLE + cost::TUPLE);
        Path {
            index: via.index.clone(),
            spans,
            used,
            said: Vec::new(),
            implied: Vec::new(),
            rough: Vec::new(),
            reverse: false,
            ordered: false,
            in_order: false,
            by_place: false,
            rows,
            startup: cost::DESCENT,
            cost,
        }
    }

    /// Has the rows read in the order in which they lie, where several of them share a page: each
    /// page is found once, and the next one is near.
    fn read_by_place(&self, path: &mut Path, via: &TableIndex<'_, '_>) {
        /// Fewer rows are read as they are found.
        const MANY: f64 = 256.0;
        /// Finding a page that is in memory.
        const FIND: f64 = 0.5 * cost::TUPLE;
        let all = f64::from(via.size.pages).max(1.0);
        let pages = cost::pages_of(path.rows, all);
        if !self.ctx.enable_bitmapscan || path.rows < MANY || path.rows < 2.0 * pages {
            return;
        }
        let near = (pages / all).sqrt();
        let page = cost::RANDOM_PAGE - (cost::RANDOM_PAGE - cost::SEQ_PAGE) * near;
        let sort = 0.1 * cost::OPERATOR * path.rows * path.rows.log2();
        let as_found = self.pages_read(via, path.rows) * cost::RANDOM_PAGE;
        let cost = path.cost - as_found + pages * page + sort - (path.rows - pages) * FIND;
        if cost < path.cost {
            path.cost = cost;
            path.startup = path.rows * cost::INDEX_TUPLE + sort;
            path.by_place = true;
        }
    }

    /// The stretch that conditions say, perhaps all of the index; None where it is not one that can
    /// be read.
    pub(super) fn span(&self, via: &TableIndex<'_, '_>, conditions: &[&Expr]) -> Option<Span> {
        let index = via.index;
        let mut taken = Taken::of((via.index, via.keys), via.source.rel, conditions);
        let prefix = taken.matches(0);
        if index.terms.method == IndexMethod::Hash && prefix.is_empty() {
            return None;
        }
        let ends = taken.ends(prefix.len());
        let mut rows = self.rows_of(via, &taken);
        if index.unique && prefix.len() == index.columns.len() {
            rows = taken.combinations;
        }
        Some(Span {
            used: taken.used,
            prefix,
            skip: None,
            ends,
            implied: taken.implied,
            rough: taken.rough,
            descents: taken.combinations,
            rows,
        })
    }

    /// The stretches that conditions on a later key column say, for each value of one that has
    /// bounds at most; None where there are no such conditions.
    fn skipping_span(&self, via: &TableIndex<'_, '_>, conditions: &[&Expr]) -> Option<Span> {
        if via.index.terms.method != IndexMethod::Btree {
            return None;
        }
        let mut taken = Taken::of((via.index, via.keys), via.source.rel, conditions);
        let prefix = taken.matches(0);
        let Some(Key::Column(attnum)) = via.keys.get(prefix.len()) else {
            return None;
        };
        let table = via.source.table;
        let column = table
            .columns
            .get(usize::try_from(*attnum).ok()?.checked_sub(1)?)?;
        if !key::has_parts(column.ty.oid) {
            return None;
        }
        let prefixes = taken.combinations;
        let skipped = taken.ends(prefix.len());
        let bounded_by = taken.used.clone();
        let first = prefix.len() + 1;
        let then = taken.matches(first);
        let ends = taken.ends(first + then.len());
        if then.is_empty() && ends.iter().all(Option::is_none) {
            return None;
        }
        let facts = self.column_facts(via.source.rel, table, *attnum as u16, column.ty.oid);
        let bounds = bounded_by.iter().map(|at| conditions[*at]);
        let share = self.shares(bounds, Some(via.source.rel));
        let values = (facts.distinct * share).max(1.0) * prefixes;
        Some(Span {
            rows: self.rows_of(via, &taken),
            // Each value is found, and then what belongs to it.
            descents: values + values * taken.combinations / prefixes,
            used: taken.used,
            prefix,
            skip: Some(Skipped {
                ends: skipped,
                then,
            }),
            ends,
            implied: taken.implied,
            rough: taken.rough,
        })
    }

    /// Rows of the table that meet the conditions which were taken.
    fn rows_of(&self, via: &TableIndex<'_, '_>, taken: &Taken<'_>) -> f64 {
        let met = taken.used.iter().map(|at| taken.conditions[*at]);
        let rows = via.size.rows * self.shares(met, Some(via.source.rel));
        match via.index.terms.predicate {
            Some(_) => rows * PARTIAL,
            None => rows,
        }
    }

    /// Pages that are read for so many rows found through an index: fewest where the heap is in its
    /// order.
    fn pages_read(&self, via: &TableIndex<'_, '_>, rows: f64) -> f64 {
        let TableIndex {
            source, keys, size, ..
        } = *via;
        /// Of two rows that lie apart, one's page has often been read just before.
        const APART: f64 = 0.5;
        let apart = (rows * APART).min(cost::pages_of(rows, f64::from(size.pages).max(1.0)));
        let column = match keys.first() {
            Some(Key::Column(attnum)) if *attnum > 0 => *attnum as usize - 1,
            _ => return apart,
        };
        let stats = self.ctx.catalog.stats_of(source.table.oid);
        let found = stats.and_then(|s| s.columns.get(column)?.correlation);
        let Some(correlation) = found else {
            return apart;
        };
        // Columns after the first one say less of where rows lie.
        let one = if keys.len() > 1 { 0.75 } else { 1.0 };
        let ordered = (correlation * one).powi(2);
        let together = (rows / size.rows.max(1.0) * f64::from(size.pages)).ceil();
        ordered * together.min(apart) + (1.0 - ordered) * apart
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one scan, each used once"
    )]
    fn index_scan(
        &mut self,
        source: &TableRef<'_>,
        path: Path,
        conditions: Vec<Expr>,
        columns: Vec<i16>,
        types: Vec<SqlType>,
        places: Columns,
        mut cost: Cost,
    ) -> Result<Built> {
        let mut filter = Vec::new();
        let mut condition = Vec::new();
        for (at, expr) in conditions.into_iter().enumerate() {
            if path.rough.contains(&at) {
                filter.push(key_first(expr.clone(), source.rel));
            }
            if path.used.contains(&at) {
                condition.push(key_first(expr, source.rel))
            } else if !path.said.contains(&at) {
                filter.push(expr)
            }
        }
        condition.extend(path.implied);
        // The condition is looked at again when a row has changed, so its columns must be in the
        // row; where they are not (nothing else asks for them), they are added at the end.
        let mut columns = columns;
        let mut types = types;
        let mut places = places;
        for expr in &condition {
            let mut missing = Vec::new();
            expr.for_each_var(&mut |var| {
                if var.rel == source.rel && places.get(var.rel, var.column).is_none() {
                    missing.push(var.column);
                }
            });
            for column in missing {
                if places.get(source.rel, column).is_none() {
                    places.push(Some((source.rel, column)));
                    columns.push(column);
                    types.push(column_type(source.table, column));
                }
            }
        }
        let filter = Expr::all_of(self.place_all(filter, &places)?);
        let condition = Expr::all_of(self.place_all(condition, &places)?);
        let mut spans = Vec::with_capacity(path.spans.len());
        for span in path.spans {
            spans.push(self.placed(span)?);
        }
        let fixed = spans.first().map_or(0, |span| span.prefix.len());
        let order = path
            .index
            .columns
            .iter()
            .skip(if path.ordered { fixed } else { usize::MAX })
            .map(|key| OrderedBy {
                rel: source.rel,
                column: key.attnum as i16,
                descending: key.descending != path.reverse,
                nulls_first: key.nulls_first != path.reverse,
            })
            .collect();
        cost.rows = cost.rows.min(at_least_one(path.rows));
        let is_single = path.index.unique
            && path.index.is_plain()
            && !self.ctx.catalog.is_deferrable(path.index.oid)
            && matches!(&spans[..], [span] if span.is_one_key(path.index.columns.len()));
        let scan = IndexScan {
            rel: source.rel,
            alias: source.alias.to_owned(),
            table: source.table.clone(),
            index: path.index,
            spans,
            reverse: path.reverse,
            columns,
            condition,
            filter,
            in_order: path.in_order,
            by_place: path.by_place,
            is_single,
        };
        let plan = self.node(Node::IndexScan(scan), types, cost);
        Ok(Built {
            plan,
            columns: places,
            order,
        })
    }

    fn placed_match(&mut self, matching: Match) -> Result<KeyMatch> {
        let nothing = Columns::default();
        Ok(match matching {
            Match::Eq(e) => KeyMatch::Eq(self.place(e, &nothing)?),
            Match::Any(e) => KeyMatch::Any(self.place(e, &nothing)?),
            Match::IsNull => KeyMatch::IsNull,
        })
    }

    /// By which of its columns a virtual relation is read.
    pub(super) fn virtual_key(
        &mut self,
        rel: RelId,
        table: &VirtualTable,
        conditions: &[Expr],
    ) -> Result<Option<(throng_catalog::Key, KeyMatch)>> {
        let conditions: Vec<&Expr> = conditions.iter().collect();
        let mut keys = table.key_columns();
        let found = keys.find_map(|(column, key)| {
            match find_match(&conditions, rel, Key::Column(column))? {
                (_, Match::IsNull) => None,
                (_, matching) => Some((key, matching)),
            }
        });
        let Some((key, matching)) = found else {
            return Ok(None);
        };
        Ok(Some((key, self.placed_match(matching)?)))
    }

    /// A stretch as it is read: its expressions have no input row.
    pub(super) fn placed(&mut self, span: Span) -> Result<KeySpan> {
        let mut prefix = Vec::with_capacity(span.prefix.len());
        for matching in span.prefix {
            prefix.push(self.placed_match(matching)?);
        }
        let skip = match span.skip {
            None => None,
            Some(skip) => {
                let mut then = Vec::with_capacity(skip.then.len());
                for matching in skip.then {
                    then.push(self.placed_match(matching)?);
                }
                let bounds = self.placed_ends(skip.ends)?;
                Some(Box::new(SkippedKey { bounds, then }))
            }
        };
        Ok(KeySpan {
            prefix,
            skip,
            bounds: self.placed_ends(span.ends)?,
        })
    }

    fn placed_ends(&mut self, ends: Ends) -> Result<KeyBounds> {
        let nothing = Columns::default();
        let mut bound = |end: Option<End>| -> Result<Option<KeyBound>> {
            end.map(|end| {
                Ok(KeyBound {
                    value: self.place(end.value, &nothing)?,
                    inclusive: end.inclusive,
                    reach: end.reach,
                })
            })
            .transpose()
        };
        let [lower, upper] = ends;
        Ok(KeyBounds {
            lower: bound(lower)?,
            upper: bound(upper)?,
        })
    }
}

/// Whether an index whose first `fixed` columns have one value each gives the wanted order: read
/// forward (false) or backward (true).
fn order_given(index: &IndexDef, fixed: usize, wanted: &Wanted) -> Option<bool> {
    if wanted.order.is_empty()
        || wanted.order.len() > index.columns.len() - fixed.min(index.columns.len())
    {
        return None;
    }
    let mut direction = None;
    for (key, want) in index.columns[fixed..].iter().zip(&wanted.order) {
        if key.attnum as i16 != want.column {
            return None;
        }
        let reverse = key.descending != want.descending;
        if (key.nulls_first != want.nulls_first) != reverse {
            return None;
        }
        if *direction.get_or_insert(reverse) != reverse {
            return None;
        }
    }
    direction
}

pub(super) fn column_type(table: &TableDef, column: i16) -> SqlType {
    match column {
        n if n > 0 => table.columns[n as usize - 1].ty,
        system::CTID => SqlType::plain(oid::TID),
        system::TABLEOID => SqlType::plain(oid::OID),
        system::CMIN | system::CMAX => SqlType::plain(oid::CID),
        _ => SqlType::plain(oid::XID),
    }
}
