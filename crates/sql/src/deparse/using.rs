//! JOIN … USING: where it can be written again, and the columns that it merges.

use super::{Scope, Writer};
use crate::expr::Expr;
use crate::query::{FromItem, JoinKind, Select};

/// A column that a FROM item shows by its name alone.
pub(super) struct Shown {
    name: String,
    /// The values that FULL JOIN has merged into it.
    merged: Option<[Expr; 2]>,
}

impl Writer<'_> {
    /// The columns that an item shows by their names alone.
    fn shown_by(&self, item: &FromItem) -> Vec<Shown> {
        let (kind, left, right, on, using) = match item {
            FromItem::Rel(rel) => {
                let plain = |name| Shown { name, merged: None };
                return self.columns_of(rel).into_iter().map(plain).collect();
            }
            FromItem::Join {
                kind,
                left,
                right,
                on,
                using,
            } => (kind, left, right, on, using),
        };
        let (left_shown, right_shown) = (self.shown_by(left), self.shown_by(right));
        let conditions = on
            .as_ref()
            .and_then(|on| self.using_conditions(on, using, &left_shown, &right_shown));
        let mut shown: Vec<Shown> = Vec::new();
        let merging = conditions.is_some();
        for (name, values) in using.iter().zip(conditions.into_iter().flatten()) {
            shown.push(Shown {
                name: name.clone(),
                merged: Some(values).filter(|_| *kind == JoinKind::Full),
            });
        }
        let rest = left_shown.into_iter().chain(right_shown);
        shown.extend(rest.filter(|c| !merging || !using.contains(&c.name)));
        shown
    }

    /// Whether a join's USING means what it did: the columns that it compared still go by those names, each alone, on both
    /// sides.
    pub(super) fn using_holds(
        &self,
        (left, right): (&FromItem, &FromItem),
        on: &Expr,
        using: &[String],
    ) -> bool {
        !using.is_empty()
            && self
                .using_conditions(on, using, &self.shown_by(left), &self.shown_by(right))
                .is_some()
    }

    /// What is compared for each name; none where USING cannot be written.
    fn using_conditions(
        &self,
        on: &Expr,
        using: &[String],
        left: &[Shown],
        right: &[Shown],
    ) -> Option<Vec<[Expr; 2]>> {
        let mut conditions = Vec::new();
        on.clone().conjuncts(&mut conditions);
        let alone =
            |side: &[Shown], name: &String| side.iter().filter(|c| c.name == *name).count() == 1;
        if using.is_empty() || conditions.len() != using.len() {
            return None;
        }
        let pairs = conditions.into_iter().zip(using).map(|(condition, name)| {
            let Expr::Op { args, .. } = condition else {
                return None;
            };
            let [l, r] = <[Expr; 2]>::try_from(args).ok()?;
            let named = self.is_called(&l, name) && self.is_called(&r, name);
            (named && alone(left, name) && alone(right, name)).then_some([l, r])
        });
        pairs.collect()
    }

    /// Whether an expression is a column of that name, or several that were merged.
    fn is_called(&self, expr: &Expr, name: &str) -> bool {
        match expr {
            Expr::Cast { arg, .. } => self.is_called(arg, name),
            Expr::Coalesce(parts, _) => parts.iter().all(|part| self.is_called(part, name)),
            Expr::Var(var) => self.column_name(var) == name,
            _ => false,
        }
    }

    /// The merged columns of a query that its scope shows by their names alone.
    pub(super) fn merged_columns(&self, select: &Select) -> Vec<([Expr; 2], String)> {
        let has_full = |item: &FromItem| {
            let mut found = false;
            each_join(item, &mut |kind, using| {
                found |= kind == JoinKind::Full && !using.is_empty();
            });
            found
        };
        if !select.from.iter().any(has_full) {
            return Vec::new();
        }
        let shown: Vec<Shown> = select.from.iter().flat_map(|i| self.shown_by(i)).collect();
        let alone = |name: &str| shown.iter().filter(|c| c.name == name).count() == 1;
        let merged = shown.iter().filter(|c| alone(&c.name));
        merged
            .filter_map(|c| Some((c.merged.clone()?, c.name.clone())))
            .collect()
    }

    /// The name of the merged column that an expression is.
    pub(super) fn merged_name(&self, expr: &Expr) -> Option<String> {
        let Expr::Coalesce(parts, _) = expr else {
            return None;
        };
        let scope: &Scope = self.scopes.last()?;
        let (_, name) = scope.merged.iter().find(|(of, _)| of[..] == parts[..])?;
        let hidden = scope.outputs.iter().any(|t| t.name == *name);
        (!hidden).then(|| name.clone())
    }
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
