//! Walking over a bound query, nested queries and those in expressions included.

use std::collections::BTreeSet;

use throng_types::Oid;

use super::{
    Body, BoundQuery, ConflictAction, CteBody, Distinct, FromItem, MergeWrite, Query, QueryKind,
    Rel, RelKind,
};
use crate::tree::expr::Expr;
use throng_catalog::TableDef;

/// What a walk comes by; each before what is inside it.
pub enum QueryPart<'a> {
    Query(&'a Query),
    Rel(&'a Rel),
    Expr(&'a Expr),
}

/// As [`QueryPart`], to be changed. What an expression was changed into is walked over next.
pub enum QueryPartMut<'a> {
    Query(&'a mut Query),
    Rel(&'a mut Rel),
    Expr(&'a mut Expr),
}

impl Query {
    /// Calls `f` on everything the query is made of. `views`: and on what views in it are made of.
    pub fn walk<'a>(&'a self, views: bool, f: &mut dyn FnMut(QueryPart<'a>)) {
        f(QueryPart::Query(self));
        match &self.body {
            Body::Select(select) => {
                select.from.iter().for_each(|item| item.walk(views, f));
                select.filter.iter().for_each(|e| e.walk(views, f));
                select.group_by.iter().for_each(|e| e.walk(views, f));
                select.having.iter().for_each(|e| e.walk(views, f));
                for window in &select.windows {
                    window.for_each_expr(&mut |e| e.walk(views, f));
                }
                select.lifted.iter().for_each(|e| e.walk(views, f));
                select.targets.iter().for_each(|t| t.expr.walk(views, f));
                if let Distinct::On(exprs) = &select.distinct {
                    exprs.iter().for_each(|e| e.walk(views, f));
                }
            }
            Body::Values { rows, .. } => rows.iter().flatten().for_each(|e| e.walk(views, f)),
            Body::SetOp { left, right, .. } => {
                left.walk(views, f);
                right.walk(views, f);
            }
        }
        self.order.iter().for_each(|k| k.expr.walk(views, f));
        self.limit.iter().for_each(|e| e.walk(views, f));
        self.offset.iter().for_each(|e| e.walk(views, f));
        self.outside.iter().for_each(|e| e.walk(views, f));
    }

    /// As [`Query::walk`], to change it.
    pub fn walk_mut(&mut self, f: &mut dyn FnMut(QueryPartMut<'_>)) {
        f(QueryPartMut::Query(self));
        match &mut self.body {
            Body::Select(select) => {
                select.from.iter_mut().for_each(|item| item.walk_mut(f));
                select.filter.iter_mut().for_each(|e| e.walk_mut(f));
                select.group_by.iter_mut().for_each(|e| e.walk_mut(f));
                select.having.iter_mut().for_each(|e| e.walk_mut(f));
                for window in &mut select.windows {
                    window.for_each_expr_mut(&mut |e| e.walk_mut(f));
                }
                select.lifted.iter_mut().for_each(|e| e.walk_mut(f));
                select.targets.iter_mut().for_each(|t| t.expr.walk_mut(f));
                if let Distinct::On(exprs) = &mut select.distinct {
                    exprs.iter_mut().for_each(|e| e.walk_mut(f));
                }
            }
            Body::Values { rows, .. } => rows.iter_mut().flatten().for_each(|e| e.walk_mut(f)),
            Body::SetOp { left, right, .. } => {
                left.walk_mut(f);
                right.walk_mut(f);
            }
        }
        self.order.iter_mut().for_each(|k| k.expr.walk_mut(f));
        self.limit.iter_mut().for_each(|e| e.walk_mut(f));
        self.offset.iter_mut().for_each(|e| e.walk_mut(f));
        self.outside.iter_mut().for_each(|e| e.walk_mut(f));
    }
}

impl FromItem {
    pub fn walk<'a>(&'a self, views: bool, f: &mut dyn FnMut(QueryPart<'a>)) {
        match self {
            FromItem::Rel(rel) => {
                f(QueryPart::Rel(rel));
                let sample = rel.sample.iter().flat_map(|s| s.exprs());
                sample.for_each(|e| e.walk(views, f));
                match &rel.kind {
                    RelKind::Subquery { query, .. } => query.walk(views, f),
                    RelKind::View { query, .. } if views => query.walk(views, f),
                    RelKind::Function { args, .. } => args.iter().for_each(|e| e.walk(views, f)),
                    RelKind::Routine { call, .. } => {
                        call.args.iter().for_each(|e| e.walk(views, f));
                    }
                    RelKind::RowsFrom { items, .. } => {
                        items.iter().for_each(|item| item.walk(views, f));
                    }
                    _ => {}
                }
            }
            FromItem::Join {
                left, right, on, ..
            } => {
                left.walk(views, f);
                right.walk(views, f);
                on.iter().for_each(|e| e.walk(views, f));
            }
        }
    }

    pub fn walk_mut(&mut self, f: &mut dyn FnMut(QueryPartMut<'_>)) {
        match self {
            FromItem::Rel(rel) => {
                f(QueryPartMut::Rel(rel));
                let sample = rel.sample.iter_mut().flat_map(|s| s.exprs_mut());
                sample.for_each(|e| e.walk_mut(f));
                match &mut rel.kind {
                    RelKind::Subquery { query, .. } | RelKind::View { query, .. } => {
                        query.walk_mut(f)
                    }
                    RelKind::Function { args, .. } => args.iter_mut().for_each(|e| e.walk_mut(f)),
                    RelKind::Routine { call, .. } => {
                        call.args.iter_mut().for_each(|e| e.walk_mut(f));
                    }
                    RelKind::RowsFrom { items, .. } => {
                        items.iter_mut().for_each(|item| item.walk_mut(f));
                    }
                    _ => {}
                }
            }
            FromItem::Join {
                left, right, on, ..
            } => {
                left.walk_mut(f);
                right.walk_mut(f);
                on.iter_mut().for_each(|e| e.walk_mut(f));
            }
        }
    }
}

impl Expr {
    pub fn walk<'a>(&'a self, views: bool, f: &mut dyn FnMut(QueryPart<'a>)) {
        f(QueryPart::Expr(self));
        match self {
            Expr::Subquery(sub) => sub.query.walk(views, f),
            Expr::Grouping(args) => args.iter().for_each(|e| e.walk(views, f)),
            _ => {}
        }
        self.for_each_child(&mut |e| e.walk(views, f));
    }

    pub fn walk_mut(&mut self, f: &mut dyn FnMut(QueryPartMut<'_>)) {
        f(QueryPartMut::Expr(self));
        match self {
            Expr::Subquery(sub) => sub.query.walk_mut(f),
            Expr::Grouping(args) => args.iter_mut().for_each(|e| e.walk_mut(f)),
            _ => {}
        }
        self.for_each_child_mut(&mut |e| e.walk_mut(f));
    }
}

impl BoundQuery {
    /// Calls `f` on everything the statement is made of, its WITH queries and what views in it are
    /// made of included.
    pub fn walk_mut(&mut self, f: &mut dyn FnMut(QueryPartMut<'_>)) {
        for cte in &mut self.ctes {
            if let CteBody::Write(kind) = &mut cte.body {
                kind.walk_mut(f);
            }
            let queries = cte.body.queries_mut().into_iter();
            queries.for_each(|query| query.walk_mut(f));
        }
        self.kind.walk_mut(f);
        let security = self
            .security
            .iter_mut()
            .flat_map(|(_, conditions)| conditions);
        security.for_each(|e| e.walk_mut(f));
    }

    /// The tables and views that it names or that its views do.
    pub fn tables(&mut self) -> BTreeSet<Oid> {
        let writes = self.ctes.iter().filter_map(|cte| match &cte.body {
            CteBody::Write(kind) => kind.target(),
            _ => None,
        });
        let targets = writes.chain(self.kind.target()).map(|table| table.oid);
        let mut tables: BTreeSet<Oid> = targets.chain(self.views.iter().copied()).collect();
        self.walk_mut(&mut |part| {
            if let QueryPartMut::Rel(rel) = part
                && let RelKind::Table(table) = &rel.kind
            {
                tables.insert(table.oid);
            }
        });
        tables
    }
}

impl QueryKind {
    /// What it writes to.
    fn target(&self) -> Option<&TableDef> {
        match self {
            QueryKind::Select(_) => None,
            QueryKind::Insert(insert) => Some(&insert.table),
            QueryKind::Update(update) => Some(&update.table),
            QueryKind::Delete(delete) => Some(&delete.table),
            QueryKind::Merge(merge) => Some(&merge.table),
        }
    }

    pub fn walk_mut(&mut self, f: &mut dyn FnMut(QueryPartMut<'_>)) {
        match self {
            QueryKind::Select(query) => query.walk_mut(f),
            QueryKind::Insert(insert) => {
                insert.source.walk_mut(f);
                insert.values.iter_mut().for_each(|e| e.walk_mut(f));
                let generated = insert.generated.iter_mut();
                generated.for_each(|(_, e)| e.walk_mut(f));
                insert.checks.iter_mut().for_each(|c| c.expr.walk_mut(f));
                insert.returning.iter_mut().for_each(|t| t.expr.walk_mut(f));
                if let Some(ConflictAction::Update {
                    set,
                    filter,
                    guards,
                    ..
                }) = insert.on_conflict.as_mut().map(|c| &mut c.action)
                {
                    set.iter_mut().for_each(|(_, e)| e.walk_mut(f));
                    filter.iter_mut().for_each(|e| e.walk_mut(f));
                    guards.iter_mut().for_each(|c| c.expr.walk_mut(f));
                }
            }
            QueryKind::Update(update) => {
                update.from.iter_mut().for_each(|item| item.walk_mut(f));
                update.filter.iter_mut().for_each(|e| e.walk_mut(f));
                update.set.iter_mut().for_each(|(_, e)| e.walk_mut(f));
                let generated = update.generated.iter_mut();
                generated.for_each(|(_, e)| e.walk_mut(f));
                update.checks.iter_mut().for_each(|c| c.expr.walk_mut(f));
                update.returning.iter_mut().for_each(|t| t.expr.walk_mut(f));
            }
            QueryKind::Delete(delete) => {
                delete.from.iter_mut().for_each(|item| item.walk_mut(f));
                delete.filter.iter_mut().for_each(|e| e.walk_mut(f));
                delete.returning.iter_mut().for_each(|t| t.expr.walk_mut(f));
            }
            QueryKind::Merge(merge) => {
                merge.from.iter_mut().for_each(|item| item.walk_mut(f));
                merge.filter.iter_mut().for_each(|e| e.walk_mut(f));
                merge.matched.walk_mut(f);
                merge.visible.iter_mut().for_each(|e| e.walk_mut(f));
                for action in &mut merge.actions {
                    action.condition.iter_mut().for_each(|e| e.walk_mut(f));
                    action.guards.iter_mut().for_each(|c| c.expr.walk_mut(f));
                    match &mut action.write {
                        MergeWrite::Insert(values) => values.iter_mut().for_each(|e| e.walk_mut(f)),
                        MergeWrite::Update(set) => set.iter_mut().for_each(|(_, e)| e.walk_mut(f)),
                        MergeWrite::Nothing | MergeWrite::Delete => {}
                    }
                }
                let generated = merge.generated.iter_mut();
                generated.for_each(|(_, e)| e.walk_mut(f));
                merge.checks.iter_mut().for_each(|c| c.expr.walk_mut(f));
                merge.returning.iter_mut().for_each(|t| t.expr.walk_mut(f));
            }
        }
    }
}
