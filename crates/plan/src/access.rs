//! How one table is read: all of it, or through the index that the conditions make cheapest.

use std::sync::Arc;

use throng_syntax::vocabulary::TableLock;
use throng_types::key::same_keys;
use throng_types::{Result, SqlType, oid};

use super::cost::{self, at_least_one};
use super::{
    Built, Columns, Cost, IndexScan, KeyBound, KeyMatch, KeySpan, Node, OrderedBy, Planner,
    SeqScan, like,
};
use throng_bind::binder::same_term;
use throng_bind::expr::{Expr, RelId, system};
use throng_bind::tablesample::Sample;
use throng_catalog::{IndexDef, IndexMethod, TableDef, VirtualTable};
use throng_values::func::{Strategy, operator_by_oid};

/// What would be good to have of a scan's order.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub order: Vec<OrderedBy>,
    /// Rows after which the reader stops.
    pub limit: Option<f64>,
}

/// Share of a table's rows that a partial index is taken to have.
const PARTIAL: f64 = 0.1;

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
    reverse: bool,
    ordered: bool,
    /// Entries read.
    rows: f64,
    cost: f64,
}

/// A stretch of an index.
struct Span {
    /// The conditions used for each prefix column, and for the bounds after them: places in the
    /// list of conditions.
    used: Vec<usize>,
    prefix: Vec<Match>,
    lower: Option<(Expr, bool)>,
    upper: Option<(Expr, bool)>,
    implied: Vec<Expr>,
    /// One for each element of its arrays.
    ranges: f64,
    rows: f64,
}

impl Span {
    /// Whether the index gives the wanted order within it: read forward (false) or backward (true).
    fn order(&self, via: &TableIndex<'_, '_>, wanted: &Wanted) -> Option<bool> {
        // Several ranges come one after another: the order within each is not the order of all.
        let single = !self.prefix.iter().any(|m| matches!(m, Match::Any(_)));
        let sorted = via.index.terms.method != IndexMethod::Hash;
        let given = || order_given(via.index, self.prefix.len(), wanted);
        (single && sorted).then(given).flatten()
    }
}

/// A table and one of its indexes.
#[derive(Clone, Copy)]
struct TableIndex<'p, 'q> {
    source: &'p TableRef<'q>,
    index: &'p Arc<IndexDef>,
    keys: &'p [Key<'p>],
    size: super::TableSize,
}

enum Match {
    Eq(Expr),
    Any(Expr),
    IsNull,
}

/// A key column of an index, over the entry that is read.
#[derive(Clone, Copy)]
enum Key<'k> {
    Column(i16),
    Expr(&'k Expr),
}

impl Key<'_> {
    /// Whether an expression is this key, or a conversion of it that leaves its encoding as it is.
    fn is(self, expr: &Expr, rel: RelId) -> bool {
        match self {
            Key::Column(column) => column_of(expr, rel) == Some(column),
            Key::Expr(key) => {
                same_term(expr, key)
                    || matches!(expr, Expr::Cast { arg, to, .. }
                        if to.typmod < 0 && same_keys(arg.ty(), *to) && self.is(arg, rel))
            }
        }
    }

    /// `key op value`, whichever side the key is on.
    fn compared(self, condition: &Expr, rel: RelId) -> Option<(Strategy, &Expr)> {
        let Expr::Op { op, args, .. } = condition else {
            return None;
        };
        let strategy = op.strategy?;
        let [left, right] = &args[..] else {
            return None;
        };
        if !same_keys(left.ty(), right.ty()) {
            return None;
        }
        if self.is(left, rel) && is_fixed(right, rel) {
            return Some((strategy, right));
        }
        (self.is(right, rel) && is_fixed(left, rel)).then(|| (strategy.commuted(), left))
    }
}

/// The column under conversions that leave the key as it is (`varchar` to `text`).
fn column_of(expr: &Expr, rel: RelId) -> Option<i16> {
    match expr {
        Expr::Var(var) if var.rel == rel => Some(var.column),
        Expr::Cast { arg, to, .. } if to.typmod < 0 && same_keys(arg.ty(), *to) => {
            column_of(arg, rel)
        }
        _ => None,
    }
}

fn mentions(expr: &Expr, rel: RelId) -> bool {
    let mut found = false;
    expr.for_each_var(&mut |var| found |= var.rel == rel);
    found
}

fn is_fixed(expr: &Expr, rel: RelId) -> bool {
    !mentions(expr, rel) && !expr.any(&mut throng_bind::fold::is_volatile)
}

/// `column op value`, whichever side the column is on.
pub(super) fn comparison(condition: &Expr, rel: RelId) -> Option<(i16, Strategy, &Expr)> {
    let Expr::Op { op, args, .. } = condition else {
        return None;
    };
    let strategy = op.strategy?;
    let [left, right] = &args[..] else {
        return None;
    };
    if let Some(column) = column_of(left, rel).filter(|_| is_fixed(right, rel)) {
        return same_keys(left.ty(), right.ty()).then_some((column, strategy, right));
    }
    let column = column_of(right, rel).filter(|_| is_fixed(left, rel))?;
    same_keys(left.ty(), right.ty()).then_some((column, strategy.commuted(), left))
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
        if let Some(at) = super::tid::told_by(&conditions, source)
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
        for index in indexes.filter(|_| source.sample.is_none()) {
            for path in self.index_paths(source, index, &conditions, wanted, size) {
                let effective = self.effective_cost(path.cost, path.ordered, rows, wanted);
                if best.as_ref().is_none_or(|(cost, _)| effective < *cost) {
                    best = Some((effective, path));
                }
            }
        }
        let seq_effective = self.effective_cost(seq_cost, false, rows, wanted);
        let columns = self.needed_columns(source.rel);
        let types: Vec<SqlType> = columns
            .iter()
            .map(|c| column_type(source.table, *c))
            .collect();
        let places = Columns::of(source.rel, columns.iter().copied());
        let width = cost::width(&types);
        match best.filter(|(cost, _)| *cost < seq_effective) {
            Some((_, path)) => {
                let total = path.cost;
                let cost = Cost {
                    startup: cost::DESCENT,
                    total,
                    rows,
                    width,
                };
                self.index_scan(source, path, conditions, columns, types, places, cost)
            }
            None => {
                let placed = super::cheap_first(self.place_all(conditions, &places)?);
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
        let mut exprs = served.exprs.iter();
        let keys: Vec<Key<'_>> = index
            .columns
            .iter()
            .map(|key| match key.attnum {
                0 => exprs.next().map_or(Key::Column(0), Key::Expr),
                attnum => Key::Column(attnum as i16),
            })
            .collect();
        let via = TableIndex {
            source,
            index,
            keys: &keys,
            size,
        };
        let all: Vec<&Expr> = conditions.iter().collect();
        let whole = self.span(&via, &all).and_then(|mut span| {
            let order = span.order(&via, wanted);
            let implied = std::mem::take(&mut span.implied);
            let bounded = !span.used.is_empty() || !implied.is_empty();
            if !bounded && order.is_none() && index.terms.predicate.is_none() {
                return None;
            }
            let used = span.used.clone();
            let mut path = self.path(&via, vec![span], used);
            path.implied = implied;
            path.ordered = order.is_some();
            path.reverse = order == Some(true);
            Some(path)
        });
        let unions = (0..conditions.len()).filter_map(|at| self.union(&via, conditions, at));
        let mut paths: Vec<Path> = whole.into_iter().chain(unions).collect();
        for path in &mut paths {
            path.said.clone_from(&served.said);
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
            exact &= said.len() == own.len();
            alternatives.push(Expr::all_of(said)?);
            // What stands behind the disjunction is one place nearer among the others.
            let place = |i: usize| own.len() + if i < at { i } else { i - 1 };
            used.retain(|i| span.used.contains(&place(*i)));
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

    fn path(&self, via: &TableIndex<'_, '_>, spans: Vec<Span>, used: Vec<usize>) -> Path {
        let table_rows = via.size.rows;
        let ranges: f64 = spans.iter().map(|span| span.ranges).sum();
        let rows: f64 = spans.iter().map(|span| span.rows).sum();
        let rows = rows.min(table_rows).max(ranges.min(table_rows.max(1.0)));
        let disabled = if self.ctx.enable_indexscan {
            0.0
        } else {
            cost::DISABLED
        };
        let cost = disabled
            + ranges * cost::DESCENT
            + self.pages_read(via, rows) * cost::RANDOM_PAGE
            + rows * (cost::INDEX_TUPLE + cost::TUPLE);
        Path {
            index: via.index.clone(),
            spans,
            used,
            said: Vec::new(),
            implied: Vec::new(),
            reverse: false,
            ordered: false,
            rows,
            cost,
        }
    }

    /// The stretch that conditions say, perhaps all of the index; None where it is not one that can
    /// be read.
    fn span(&self, via: &TableIndex<'_, '_>, conditions: &[&Expr]) -> Option<Span> {
        let TableIndex {
            source,
            index,
            keys,
            size,
        } = *via;
        let hash = index.terms.method == IndexMethod::Hash;
        let mut used = Vec::new();
        let mut prefix = Vec::new();
        let mut ranges = 1.0;
        for key in keys {
            let Some((at, matching)) = find_match(conditions, source.rel, *key) else {
                break;
            };
            if hash && !matches!(matching, Match::Eq(_)) {
                break;
            }
            if let Match::Any(array) = &matching {
                ranges *= match array {
                    Expr::Const(throng_types::Datum::Array(items), _) => items.items.len() as f64,
                    Expr::Array(items, _) => items.len() as f64,
                    _ => 10.0,
                };
            }
            used.push(at);
            prefix.push(matching);
        }
        if hash && prefix.is_empty() {
            return None;
        }
        let (mut lower, mut upper) = (None, None);
        let mut implied = Vec::new();
        if let Some(key) = keys.get(prefix.len()) {
            for (at, condition) in conditions.iter().enumerate() {
                let Some((strategy, value)) = key.compared(condition, source.rel) else {
                    continue;
                };
                if used.contains(&at) {
                    continue;
                }
                let (end, inclusive) = match strategy {
                    Strategy::Greater => (&mut lower, false),
                    Strategy::GreaterEqual => (&mut lower, true),
                    Strategy::Less => (&mut upper, false),
                    Strategy::LessEqual => (&mut upper, true),
                    Strategy::Equal => continue,
                };
                if end.is_none() {
                    *end = Some((value.clone(), inclusive));
                    used.push(at);
                }
            }
            if lower.is_none() && upper.is_none() {
                let (_, class) = index.terms.words_of(prefix.len());
                let patterns = class.is_some_and(|c| c.ends_with("_pattern_ops"));
                let is_key = |expr: &Expr| key.is(expr, source.rel);
                let ranges = conditions
                    .iter()
                    .find_map(|c| like::range(c, is_key, patterns));
                if let Some(range) = ranges {
                    (lower, upper) = (Some(range.lower), range.upper);
                    implied = range.conditions;
                }
            }
        }
        let met = used.iter().map(|at| conditions[*at]);
        let mut rows = size.rows * self.shares(met, Some(source.rel));
        if index.terms.predicate.is_some() {
            rows *= PARTIAL;
        }
        if index.unique && prefix.len() == index.columns.len() {
            rows = ranges;
        }
        Some(Span {
            used,
            prefix,
            lower,
            upper,
            implied,
            ranges,
            rows,
        })
    }

    /// Pages that are read for so many rows found through an index: fewer than the rows where the
    /// heap is in its order.
    fn pages_read(&self, via: &TableIndex<'_, '_>, rows: f64) -> f64 {
        let TableIndex {
            source, keys, size, ..
        } = *via;
        /// Of two rows that lie apart, one's page has often been read just before.
        const APART: f64 = 0.5;
        let apart = rows * APART;
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
        let keys: Vec<i16> = path.index.columns.iter().map(|k| k.attnum as i16).collect();
        let index_only = path.index.terms.method == IndexMethod::Btree
            && columns.iter().all(|c| keys.contains(c));
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
            index_only,
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
    fn placed(&mut self, span: Span) -> Result<KeySpan> {
        let nothing = Columns::default();
        let mut prefix = Vec::with_capacity(span.prefix.len());
        for matching in span.prefix {
            prefix.push(self.placed_match(matching)?);
        }
        let mut bound = |end: Option<(Expr, bool)>| -> Result<Option<KeyBound>> {
            end.map(|(value, inclusive)| {
                Ok(KeyBound {
                    value: self.place(value, &nothing)?,
                    inclusive,
                })
            })
            .transpose()
        };
        Ok(KeySpan {
            prefix,
            lower: bound(span.lower)?,
            upper: bound(span.upper)?,
        })
    }
}

/// A comparison with what speaks of the relation on its left.
fn key_first(condition: Expr, rel: RelId) -> Expr {
    let commuted = match &condition {
        Expr::Op { op, args, ty } => match &args[..] {
            [left, right] if !mentions(left, rel) && mentions(right, rel) => {
                operator_by_oid(op.commutator).map(|op| Expr::Op {
                    op,
                    args: vec![right.clone(), left.clone()],
                    ty: *ty,
                })
            }
            _ => None,
        },
        _ => None,
    };
    commuted.unwrap_or(condition)
}

/// The condition that fixes a column, and how.
fn find_match(conditions: &[&Expr], rel: RelId, key: Key<'_>) -> Option<(usize, Match)> {
    let mut found = None;
    for (at, condition) in conditions.iter().enumerate() {
        match condition {
            Expr::Op { .. } => {
                if let Some((Strategy::Equal, value)) = key.compared(condition, rel) {
                    return Some((at, Match::Eq(value.clone())));
                }
            }
            Expr::ArrayCompare {
                op,
                left,
                array,
                all: false,
            } => {
                let fits = op.strategy == Some(Strategy::Equal)
                    && key.is(left, rel)
                    && is_fixed(array, rel)
                    && throng_types::sqltype::element_of(array.type_oid())
                        .is_some_and(|e| same_keys(SqlType::plain(e), left.ty()));
                if fits && found.is_none() {
                    found = Some((at, Match::Any((**array).clone())));
                }
            }
            Expr::IsNull(arg) if found.is_none() && key.is(arg, rel) => {
                found = Some((at, Match::IsNull));
            }
            _ => {}
        }
    }
    found
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
