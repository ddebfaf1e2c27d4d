//! Joins that have columns of their own: USING, which merges some, and names for a join as a whole.

use super::Writer;
use crate::tree::expr::{Expr, Var};
use crate::tree::query::{FromItem, JoinAlias, JoinKind, RelKind, Select};

/// A column that a FROM item shows, by its name there.
#[derive(Clone)]
pub(super) struct Shown {
    pub name: String,
    pub expr: Expr,
}

/// A join that goes by a name in a query's FROM.
pub(super) struct NamedJoin {
    pub name: String,
    pub columns: Vec<Shown>,
    /// The columns are listed behind the name: they are not called so by themselves.
    pub listed: bool,
    /// What is being written stands in it, where its name means nothing.
    open: bool,
    /// What it was bound as.
    source: JoinAlias,
}

/// A value without the conversions around it.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { arg, .. } => bare(arg),
        other => other,
    }
}

/// Whether two expressions are the same column, or the same columns merged.
fn same_column(a: &Expr, b: &Expr) -> bool {
    match (bare(a), bare(b)) {
        (Expr::Var(a), Expr::Var(b)) => (a.rel, a.column) == (b.rel, b.column),
        (Expr::Coalesce(a, _), Expr::Coalesce(b, _)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_column(a, b))
        }
        _ => false,
    }
}

/// The only one of that name.
fn alone<'s>(shown: &'s [Shown], name: &str) -> Option<&'s Shown> {
    let mut found = shown.iter().filter(|c| c.name == name);
    found.next().filter(|_| found.next().is_none())
}

impl Writer<'_> {
    /// The columns that an item shows, as they are now.
    fn shown_by(&self, item: &FromItem) -> Vec<Shown> {
        let FromItem::Join { alias, .. } = item else {
            return self.shown_by_rel(item);
        };
        let columns = self.shown_by_join(item);
        match alias {
            None => columns,
            Some(alias) => self.renamed(alias, columns).0,
        }
    }

    fn shown_by_rel(&self, item: &FromItem) -> Vec<Shown> {
        let FromItem::Rel(rel) = item else {
            return Vec::new();
        };
        let now = match &rel.kind {
            RelKind::Table(table) => Some(self.style.catalog.table(table.oid).unwrap_or(table)),
            _ => None,
        };
        let is_there = |at: usize| {
            now.is_none_or(|table| table.columns.get(at).is_some_and(|column| !column.dropped))
        };
        let names = self.columns_of(rel).into_iter().enumerate();
        names
            .filter(|(at, _)| is_there(*at))
            .map(|(at, name)| Shown {
                name,
                expr: Expr::Var(Var {
                    rel: rel.id,
                    column: at as i16 + 1,
                    ty: rel
                        .columns
                        .get(at)
                        .map_or(throng_types::SqlType::UNKNOWN, |c| c.ty),
                }),
            })
            .collect()
    }

    /// The columns of a join by itself, the merged ones first.
    fn shown_by_join(&self, item: &FromItem) -> Vec<Shown> {
        let FromItem::Join {
            kind,
            left,
            right,
            on,
            using,
            ..
        } = item
        else {
            return Vec::new();
        };
        let (left, right) = (self.shown_by(left), self.shown_by(right));
        let merged = on
            .as_ref()
            .and_then(|on| merged_by(on, using, &left, &right));
        let merging = merged.is_some();
        let merged = merged.into_iter().flatten().zip(using);
        let mut shown: Vec<Shown> = merged
            .map(|([l, r], name)| Shown {
                name: name.clone(),
                expr: match kind {
                    JoinKind::Full => {
                        let ty = l.ty();
                        Expr::Coalesce(vec![l, r], ty)
                    }
                    JoinKind::Right => r,
                    JoinKind::Left => l,
                    _ if matches!(l, Expr::Var(_)) => l,
                    _ if matches!(r, Expr::Var(_)) => r,
                    _ => l,
                },
            })
            .collect();
        let rest = left.into_iter().chain(right);
        shown.extend(rest.filter(|c| !merging || !using.contains(&c.name)));
        shown
    }

    /// A join's columns under the names it gives them, each another; and whether these are not
    /// their own.
    fn renamed(&self, alias: &JoinAlias, columns: Vec<Shown>) -> (Vec<Shown>, bool) {
        let mut listed = false;
        let mut named: Vec<Shown> = Vec::with_capacity(columns.len());
        let written = |column: &Shown| {
            let mut known = alias.columns.iter();
            known
                .find(|c| c.written && same_column(&c.expr, &column.expr))
                .map(|c| c.name.clone())
        };
        let kept: Vec<String> = columns.iter().filter_map(&written).collect();
        for column in columns {
            let own = written(&column);
            let taken = |name: &str, named: &[Shown]| {
                named.iter().any(|c| c.name == name)
                    || (own.is_none() && kept.iter().any(|k| k == name))
            };
            let wanted = own.clone().unwrap_or_else(|| column.name.clone());
            let mut name = wanted.clone();
            let mut number = 0;
            while taken(&name, &named) {
                number += 1;
                name = format!("{wanted}_{number}");
            }
            listed |= name != column.name;
            named.push(Shown {
                name,
                expr: column.expr,
            });
        }
        (named, listed)
    }

    /// Whether a join's USING means what it did: the columns that it compared still go by those
    /// names, each alone, on both sides.
    pub(super) fn using_holds(
        &self,
        (left, right): (&FromItem, &FromItem),
        on: &Expr,
        using: &[String],
    ) -> bool {
        !using.is_empty()
            && merged_by(on, using, &self.shown_by(left), &self.shown_by(right)).is_some()
    }

    /// Gives names to the joins of a query whose scope is the last, and notes its merged columns.
    pub(super) fn name_joins(&mut self, select: &Select) {
        for item in &select.from {
            self.name_join(item);
        }
        let mut full = false;
        for item in &select.from {
            each_join(item, &mut |kind, using| {
                full |= kind == JoinKind::Full && !using.is_empty();
            });
        }
        if !full {
            return;
        }
        let shown: Vec<Shown> = select.from.iter().flat_map(|i| self.shown_by(i)).collect();
        let merged = shown
            .iter()
            .filter(|c| matches!(c.expr, Expr::Coalesce(..)) && alone(&shown, &c.name).is_some());
        let merged: Vec<Shown> = merged.cloned().collect();
        if let Some(scope) = self.scopes.last_mut() {
            scope.merged = merged;
        }
    }

    fn name_join(&mut self, item: &FromItem) {
        let FromItem::Join {
            left, right, alias, ..
        } = item
        else {
            return;
        };
        if let Some(alias) = alias {
            let (columns, listed) = self.renamed(alias, self.shown_by_join(item));
            let name = self.free_of_all(&alias.name);
            if let Some(scope) = self.scopes.last_mut() {
                scope.qualified = true;
                scope.joins.push(NamedJoin {
                    name,
                    columns,
                    listed,
                    open: false,
                    source: (**alias).clone(),
                });
            }
        }
        self.name_join(left);
        self.name_join(right);
    }

    /// From here to [`Writer::close_join`] the join itself is written. Its place among the query's.
    pub(super) fn open_join(&mut self, alias: &JoinAlias) -> Option<usize> {
        let joins = &mut self.scopes.last_mut()?.joins;
        let at = joins.iter().position(|join| join.source == *alias)?;
        joins[at].open = true;
        Some(at)
    }

    /// The join's name, and the names of its columns where they are to be listed.
    pub(super) fn close_join(&mut self, at: usize) -> Option<(String, Vec<String>)> {
        let join = self.scopes.last_mut()?.joins.get_mut(at)?;
        join.open = false;
        let names = join.columns.iter().filter(|_| join.listed);
        Some((join.name.clone(), names.map(|c| c.name.clone()).collect()))
    }

    /// The join, and its column, that a column of a table in it is known by.
    pub(super) fn join_column(&self, expr: &Expr) -> Option<(String, String)> {
        let is_column = matches!(expr, Expr::Var(_) | Expr::Coalesce(..));
        let joins = self.scopes.iter().rev().flat_map(|scope| &scope.joins);
        for join in joins.filter(|join| is_column && !join.open) {
            if let Some(column) = join.columns.iter().find(|c| same_column(&c.expr, expr)) {
                return Some((join.name.clone(), column.name.clone()));
            }
        }
        None
    }

    /// The name of the merged column that an expression is.
    pub(super) fn merged_name(&self, expr: &Expr) -> Option<String> {
        if !matches!(expr, Expr::Coalesce(..)) {
            return None;
        }
        let scope = self.scopes.last()?;
        let column = scope.merged.iter().find(|c| same_column(&c.expr, expr))?;
        let hidden = scope.outputs.iter().any(|t| t.name == column.name);
        (!hidden).then(|| column.name.clone())
    }
}

/// What is compared for each name of USING; none where USING cannot be written.
fn merged_by(
    on: &Expr,
    using: &[String],
    left: &[Shown],
    right: &[Shown],
) -> Option<Vec<[Expr; 2]>> {
    let mut conditions = Vec::new();
    on.clone().conjuncts(&mut conditions);
    if using.is_empty() || conditions.len() != using.len() {
        return None;
    }
    let pairs = conditions.into_iter().zip(using).map(|(condition, name)| {
        let Expr::Op { args, .. } = condition else {
            return None;
        };
        let [l, r] = <[Expr; 2]>::try_from(args).ok()?;
        let is = |side: &[Shown], expr: &Expr| {
            alone(side, name).is_some_and(|shown| same_column(&shown.expr, expr))
        };
        (is(left, &l) && is(right, &r)).then_some([l, r])
    });
    pairs.collect()
}

fn each_join(item: &FromItem, f: &mut dyn FnMut(JoinKind, &[String])) {
    if let FromItem::Join {
        kind,
        left,
        right,
        using,
        ..
    } = item
    {
        f(*kind, using);
        each_join(left, f);
        each_join(right, f);
    }
}
