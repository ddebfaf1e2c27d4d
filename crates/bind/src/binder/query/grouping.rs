//! GROUP BY: grouping expressions, grouping sets, and what may stand beside them.

use std::sync::Arc;

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::query::scope::{Names, Scope};
use crate::binder::query::select::{has_aggregate, has_window};
use crate::binder::{Binder, Clause};
use crate::tree::expr::{Expr, SortKey, Var};
use crate::tree::query::{Distinct, Grouping, GroupingItem, Select, Target};
use throng_catalog::IndexDef;
use throng_syntax::parse::ast::{self, GroupItem, Node, Pos};

/// Most columns of a CUBE: two to that power are its sets.
const MAX_CUBE: usize = 12;
/// Most grouping sets of a query.
const MAX_SETS: usize = 4096;
/// One bit each in an integer.
const MAX_GROUPING: usize = 31;

/// Sets of places among the grouping expressions.
type Sets = Vec<Vec<u32>>;

/// What an item is bound with.
struct Keys<'g> {
    keys: Vec<Expr>,
    targets: &'g [Target],
    /// Where each target was written.
    places: Vec<Pos>,
    /// The target by whose name or number a key was written.
    named: Vec<Option<usize>>,
    /// One expression was written by the names of two targets, which PostgreSQL tells apart.
    doubled: bool,
}

fn too_many_sets() -> Error {
    Error::new(
        state::STATEMENT_TOO_COMPLEX,
        format!("too many grouping sets present (maximum {MAX_SETS})"),
    )
}

/// Every set of the one with every set of the other.
fn product(left: &Sets, right: &Sets) -> Result<Sets> {
    if left.len() * right.len() > MAX_SETS {
        return Err(too_many_sets());
    }
    let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
    Ok(pairs.map(|(a, b)| union(a, b)).collect())
}

fn union(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut all = a.to_vec();
    for place in b {
        if !all.contains(place) {
            all.push(*place);
        }
    }
    all
}

/// The target that an item names, by its number or as an alias.
fn target_of(item: &ast::Expr, targets: &[Target], scope: &Scope<'_>) -> Option<usize> {
    match &item.node {
        Node::Integer(digits) => digits.parse::<usize>().ok()?.checked_sub(1),
        Node::Column(parts) => match &parts[..] {
            [name] if !scope.names.columns.iter().any(|c| c.name == *name) => {
                targets.iter().position(|t| t.name == *name)
            }
            _ => None,
        },
        _ => None,
    }
}

impl Binder<'_> {
    /// The grouping expressions, and the sets of them where there are any but the one of all.
    pub(in crate::binder) fn group_by(
        &mut self,
        select: &ast::Select,
        targets: &[Target],
        scope: &Scope<'_>,
    ) -> Result<(Vec<Expr>, Sets, Grouping)> {
        let mut grouping = Keys {
            keys: Vec::new(),
            targets,
            places: std::mem::take(&mut self.target_places),
            named: Vec::new(),
            doubled: false,
        };
        let mut sets: Sets = vec![vec![]];
        let mut items = Vec::new();
        for item in &select.group_by {
            let (new, written) = self.group_item(item, &mut grouping, scope)?;
            sets = product(&sets, &new)?;
            match written {
                // A row without ROW is its columns.
                GroupingItem::Columns(places) if !places.is_empty() => {
                    items.extend(places.into_iter().map(|at| GroupingItem::Columns(vec![at])));
                }
                other => items.push(other),
            }
        }
        let all_plain =
            |item: &GroupingItem| matches!(item, GroupingItem::Columns(c) if c.len() == 1);
        if items.iter().all(all_plain) {
            items.clear();
        }
        if select.group_distinct {
            let mut seen: Vec<Vec<u32>> = Vec::new();
            sets.retain(|set| {
                let mut sorted = set.clone();
                sorted.sort_unstable();
                let new = !seen.contains(&sorted);
                seen.push(sorted);
                new
            });
        }
        let plain = sets.len() == 1;
        if !plain && grouping.doubled {
            return Err(Error::unsupported(
                "grouping sets of one expression under two names",
            ));
        }
        let written = Grouping {
            written: grouping.keys.len(),
            distinct: select.group_distinct,
            items,
            keys: vec![],
        };
        Ok((grouping.keys, if plain { vec![] } else { sets }, written))
    }

    /// The sets of an item, and the item itself.
    fn group_item(
        &mut self,
        item: &GroupItem,
        grouping: &mut Keys<'_>,
        scope: &Scope<'_>,
    ) -> Result<(Sets, GroupingItem)> {
        match item {
            GroupItem::Expr(expr) => {
                let columns = self.group_columns(expr, grouping, scope)?;
                Ok((vec![columns.clone()], GroupingItem::Columns(columns)))
            }
            GroupItem::Empty => Ok((vec![vec![]], GroupingItem::Columns(vec![]))),
            GroupItem::Rollup(exprs) => {
                let lists = self.group_lists(exprs, grouping, scope)?;
                let mut sets = vec![vec![]];
                for columns in &lists {
                    let longest = union(&sets[0], columns);
                    sets.insert(0, longest);
                }
                Ok((sets, GroupingItem::Rollup(lists)))
            }
            GroupItem::Cube(exprs, pos) => {
                if exprs.len() > MAX_CUBE {
                    let message = format!("CUBE is limited to {MAX_CUBE} elements");
                    return Err(Error::new(state::TOO_MANY_COLUMNS, message).position(pos + 1));
                }
                let columns = self.group_lists(exprs, grouping, scope)?;
                let subset = |mask: usize| {
                    (0..)
                        .zip(&columns)
                        .filter(|(bit, _)| mask & (1 << (columns.len() - 1 - bit)) != 0)
                        .fold(vec![], |set, (_, columns)| union(&set, columns))
                };
                let sets = (0..1 << columns.len()).rev().map(subset).collect();
                Ok((sets, GroupingItem::Cube(columns)))
            }
            GroupItem::Sets(items) => {
                let mut sets = Vec::new();
                let mut written = Vec::new();
                for item in items {
                    let (new, item) = self.deeper(|b| b.group_item(item, grouping, scope))?;
                    sets.extend(new);
                    match item {
                        GroupingItem::Sets(items) => written.extend(items),
                        item => written.push(item),
                    }
                    if sets.len() > MAX_SETS {
                        return Err(too_many_sets());
                    }
                }
                Ok((sets, GroupingItem::Sets(written)))
            }
        }
    }

    fn group_lists(
        &mut self,
        exprs: &[ast::Expr],
        grouping: &mut Keys<'_>,
        scope: &Scope<'_>,
    ) -> Result<Sets> {
        let exprs = exprs.iter();
        exprs
            .map(|e| self.group_columns(e, grouping, scope))
            .collect()
    }

    /// The columns of an item: those of a row without ROW one by one.
    fn group_columns(
        &mut self,
        item: &ast::Expr,
        grouping: &mut Keys<'_>,
        scope: &Scope<'_>,
    ) -> Result<Vec<u32>> {
        if let Node::Row {
            fields,
            explicit: false,
        } = &item.node
        {
            let mut set = Vec::new();
            for field in fields {
                let columns = self.deeper(|b| b.group_columns(field, grouping, scope))?;
                set = union(&set, &columns);
            }
            return Ok(set);
        }
        let expr = self.output_or_input(item, grouping.targets, "GROUP BY", false, scope)?;
        let refused = match (has_window(&expr), has_aggregate(&expr)) {
            (true, _) => Some((
                state::WINDOWING_ERROR,
                "window functions are not allowed in GROUP BY",
            )),
            (_, true) => Some((
                state::GROUPING_ERROR,
                "aggregate functions are not allowed in GROUP BY",
            )),
            _ => None,
        };
        if let Some((code, message)) = refused {
            let target = grouping.targets.iter().position(|t| t.expr == expr);
            let place = target.and_then(|i| grouping.places.get(i).copied());
            return Err(Error::new(code, message).position(place.unwrap_or(item.pos) + 1));
        }
        self.check_groupable(&expr, item.pos)?;
        let fields = match expr {
            Expr::Row(fields, _) => fields,
            expr => vec![expr],
        };
        let target = target_of(item, grouping.targets, scope);
        let mut set = Vec::new();
        for expr in fields {
            let at = match grouping.keys.iter().position(|k| *k == expr) {
                Some(at) => {
                    let before = grouping.named[at];
                    grouping.doubled |= before.is_some() && target.is_some() && before != target;
                    at
                }
                None => {
                    grouping.keys.push(expr);
                    grouping.named.push(target);
                    grouping.keys.len() - 1
                }
            };
            set = union(&set, &[at as u32]);
        }
        Ok(set)
    }

    /// `GROUPING(…)`; whether it is of the query's grouping expressions is seen when these are
    /// known.
    pub(in crate::binder) fn grouping(
        &mut self,
        args: &[ast::Expr],
        pos: Pos,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        if args.len() > MAX_GROUPING {
            let message = "GROUPING must have fewer than 32 arguments";
            return Err(Error::new(state::TOO_MANY_ARGUMENTS, message).position(pos + 1));
        }
        if !self.clause.allows_aggregates() && self.clause != Clause::Aggregate {
            let message = format!(
                "grouping operations are not allowed in {}",
                self.clause.name()
            );
            return Err(Error::new(state::GROUPING_ERROR, message).position(pos + 1));
        }
        let args = args.iter().map(|a| self.expr(a, scope));
        Ok(Expr::Grouping(args.collect::<Result<_>>()?))
    }

    fn check_groupings(&self, select: &Select, order: &[SortKey]) -> Result<()> {
        let mut strange = None;
        let mut check = |e: &Expr| {
            e.any(&mut |e| {
                if let Expr::Grouping(args) = e {
                    let stranger = args.iter().find(|a| !select.group_by.contains(a));
                    strange = strange.take().or(stranger.cloned());
                }
                false
            });
        };
        select.targets.iter().for_each(|t| check(&t.expr));
        select.having.iter().for_each(&mut check);
        select
            .windows
            .iter()
            .for_each(|w| w.for_each_expr(&mut check));
        order.iter().for_each(|k| check(&k.expr));
        let Some(strange) = strange else {
            return Ok(());
        };
        let mut local = Vec::new();
        select.from.iter().for_each(|item| item.rels(&mut local));
        let (mut vars, mut ours) = (false, false);
        strange.for_each_var(&mut |var| {
            vars = true;
            ours |= local.contains(&var.rel);
        });
        if vars && !ours {
            return Err(Error::unsupported("GROUPING of an outer query"));
        }
        let message =
            "arguments to GROUPING must be grouping expressions of the associated query level";
        let error = Error::new(state::GROUPING_ERROR, message);
        let place = match &strange {
            Expr::Var(var) => self
                .seen
                .iter()
                .rfind(|(rel, column, _)| (*rel, *column) == (var.rel, var.column)),
            _ => None,
        };
        Err(match place {
            Some((.., pos)) => error.position(pos + 1),
            None => error,
        })
    }

    /// Every column outside an aggregate must be a grouping expression, or depend on a primary key
    /// that is (it is then added to the group, which changes nothing). `seen`: how many columns had
    /// been seen when what must keep to the groups began, FROM and WHERE being through.
    pub(in crate::binder) fn check_grouping(
        &mut self,
        select: &mut Select,
        order: &[SortKey],
        names: &Names,
        seen: usize,
    ) -> Result<()> {
        self.check_groupings(select, order)?;
        // With several grouping sets, what is in all of them.
        let always: Vec<Expr> = (0..)
            .zip(&select.group_by)
            .filter(|(at, _)| select.grouping_sets.iter().all(|set| set.contains(at)))
            .map(|(_, e)| e.clone())
            .collect();
        let mut local = Vec::new();
        select.from.iter().for_each(|item| item.rels(&mut local));
        let mut add: Vec<Expr> = Vec::new();
        let mut keys: Vec<Oid> = Vec::new();
        let mut bad: Option<(Var, UngroupedIn)> = None;
        {
            let mut look = |e: &Expr, place: UngroupedIn| {
                ungrouped(e, place, &select.group_by, &mut |var, place| {
                    if !local.contains(&var.rel) || bad.is_some() {
                        return;
                    }
                    match self.depends_on_key(var, &always, names) {
                        Some(key) => {
                            add.push(Expr::Var(var.clone()));
                            keys.extend(key.constraint.filter(|k| !keys.contains(k)));
                        }
                        None => bad = Some((var.clone(), place)),
                    }
                })
            };
            // Aggregates of this query that stand in subqueries.
            for e in &select.lifted {
                if let Expr::Aggregate(agg) = e {
                    agg.direct
                        .iter()
                        .for_each(|e| look(e, UngroupedIn::Subquery));
                }
            }
            let mut check = |e: &Expr| look(e, UngroupedIn::Query);
            select.targets.iter().for_each(|t| check(&t.expr));
            select.having.iter().for_each(&mut check);
            for window in &select.windows {
                window.for_each_expr(&mut check);
            }
            order.iter().for_each(|k| check(&k.expr));
            if let Distinct::On(exprs) = &select.distinct {
                exprs.iter().for_each(check);
            }
        }
        for expr in add {
            if !select.group_by.contains(&expr) {
                let at = select.group_by.len() as u32;
                select.grouping_sets.iter_mut().for_each(|s| s.push(at));
                select.group_by.push(expr);
            }
        }
        select.grouping.keys = keys;
        let Some((var, met)) = bad else {
            return Ok(());
        };
        let table = names.tables.iter().find(|t| t.rel == Some(var.rel));
        let column = table.and_then(|t| {
            t.columns
                .iter()
                .find(|c| c.expr == Expr::Var(var.clone()))
                .map(|c| &c.name)
        });
        let name = match (table, column) {
            (Some(table), Some(column)) => format!("{}.{column}", table.name),
            (Some(table), None) => format!("{}.?", table.name),
            _ => "?column?".to_string(),
        };
        let message = match met == UngroupedIn::Subquery {
            true => format!("subquery uses ungrouped column \"{name}\" from outer query"),
            false => format!(
                "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
            ),
        };
        let is_it = |(rel, column, _): &&(_, _, _)| (*rel, *column) == (var.rel, var.column);
        let after = self.seen.get(seen..).unwrap_or_default();
        let place = after
            .iter()
            .find(is_it)
            .or_else(|| self.seen.iter().find(is_it));
        let mut error = Error::new(state::GROUPING_ERROR, message);
        if met == UngroupedIn::Direct {
            error = error.detail(
                "Direct arguments of an ordered-set aggregate must use only grouped columns.",
            );
        }
        Err(match place {
            Some((.., pos)) => error.position(pos + 1),
            None => error,
        })
    }

    /// The primary key that the column depends on and `group_by` has all columns of.
    fn depends_on_key(&self, var: &Var, group_by: &[Expr], names: &Names) -> Option<Arc<IndexDef>> {
        let mut tables = names.tables.iter();
        let table = tables.find(|t| t.rel == Some(var.rel))?.table.as_ref()?;
        let key = self.catalog().primary_key(table.oid)?;
        let grouped = |attnum: u16| {
            group_by
                .iter()
                .any(|e| matches!(e, Expr::Var(v) if v.rel == var.rel && v.column == attnum as i16))
        };
        let all = key.columns.iter().all(|c| grouped(c.attnum));
        all.then(|| key.clone())
    }
}

/// Where an ungrouped column was met.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UngroupedIn {
    Query,
    Subquery,
    /// A direct argument, which is the same for the whole group and must not depend on the row.
    Direct,
}

/// Variables outside aggregates and grouping expressions, and where they stand.
fn ungrouped(
    expr: &Expr,
    place: UngroupedIn,
    group_by: &[Expr],
    f: &mut dyn FnMut(&Var, UngroupedIn),
) {
    if group_by.contains(expr) {
        return;
    }
    match expr {
        Expr::Aggregate(agg) => {
            let direct = agg.direct.iter();
            direct.for_each(|e| ungrouped(e, UngroupedIn::Direct, group_by, f));
        }
        Expr::Var(var) => f(var, place),
        Expr::Subquery(sub) => {
            sub.query.for_each_var(&mut |var| {
                if !group_by.contains(&Expr::Var(var.clone())) {
                    f(var, UngroupedIn::Subquery)
                }
            });
            expr.for_each_child(&mut |e| ungrouped(e, place, group_by, f));
        }
        _ => expr.for_each_child(&mut |e| ungrouped(e, place, group_by, f)),
    }
}
