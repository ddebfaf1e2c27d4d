//! Walking over what was written, without knowing what it means: which tables a WITH query names,
//! and where.

use super::ast::*;

/// Where a table is named, as far as it matters to a recursive reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferencePosition {
    Plain,
    Subquery,
    OuterJoin,
    Intersect,
    Except,
}

/// Calls `f` with every table named by one plain word in a statement, where that word is not a WITH
/// query of the statement's own.
pub fn table_names<'a>(
    statement: &'a Statement,
    f: &mut dyn FnMut(&'a str, ReferencePosition, Pos),
) {
    Walk {
        hidden: Vec::new(),
        place: ReferencePosition::Plain,
        f,
    }
    .statement(statement);
}

/// As [`table_names`], of a query that stands at `place`.
pub fn table_names_at<'a>(
    query: &'a Query,
    place: ReferencePosition,
    f: &mut dyn FnMut(&'a str, ReferencePosition, Pos),
) {
    Walk {
        hidden: Vec::new(),
        place,
        f,
    }
    .query(query);
}

struct Walk<'a, 'f> {
    /// Names of the WITH queries around.
    hidden: Vec<&'a str>,
    place: ReferencePosition,
    f: &'f mut dyn FnMut(&'a str, ReferencePosition, Pos),
}

impl<'a> Walk<'a, '_> {
    fn statement(&mut self, statement: &'a Statement) {
        match statement {
            Statement::Query(query) => self.query(query),
            Statement::Insert(insert) => self.with(&insert.with, insert.recursive, |w| {
                insert.source.iter().for_each(|q| w.query(q));
                if let Some((set, filter)) =
                    insert.on_conflict.as_ref().and_then(|c| c.update.as_ref())
                {
                    set.iter().for_each(|a| w.expr(&a.value));
                    filter.iter().for_each(|e| w.expr(e));
                }
                insert.returning.items.iter().for_each(|t| w.expr(&t.expr));
            }),
            Statement::Update(update) => self.with(&update.with, update.recursive, |w| {
                update.set.iter().for_each(|a| w.expr(&a.value));
                update.from.iter().for_each(|item| w.item(item));
                update.filter.iter().for_each(|e| w.expr(e));
                update.returning.items.iter().for_each(|t| w.expr(&t.expr));
            }),
            Statement::Delete(delete) => self.with(&delete.with, delete.recursive, |w| {
                delete.using.iter().for_each(|item| w.item(item));
                delete.filter.iter().for_each(|e| w.expr(e));
                delete.returning.items.iter().for_each(|t| w.expr(&t.expr));
            }),
            Statement::Merge(merge) => self.with(&merge.with, merge.recursive, |w| {
                w.item(&merge.source);
                w.expr(&merge.on);
                for when in &merge.whens {
                    when.condition.iter().for_each(|e| w.expr(e));
                    match &when.action {
                        MergeAction::Update(set) => set.iter().for_each(|a| w.expr(&a.value)),
                        MergeAction::Insert { values, .. } => {
                            values.iter().flatten().for_each(|e| w.expr(e))
                        }
                        MergeAction::Nothing | MergeAction::Delete => {}
                    }
                }
                merge.returning.items.iter().for_each(|t| w.expr(&t.expr));
            }),
            _ => {}
        }
    }

    fn with(&mut self, with: &'a [Cte], recursive: bool, body: impl FnOnce(&mut Self)) {
        let before = self.hidden.len();
        if recursive {
            self.hidden.extend(with.iter().map(|cte| cte.name.as_str()));
        }
        for cte in with {
            self.statement(&cte.statement);
            if !recursive {
                self.hidden.push(&cte.name);
            }
        }
        body(self);
        self.hidden.truncate(before);
    }

    fn query(&mut self, query: &'a Query) {
        self.with(&query.with, query.recursive, |w| {
            match &query.body {
                Body::Select(select) => w.select(select),
                Body::Values(rows) => rows.iter().flatten().for_each(|e| w.expr(e)),
                Body::Nested(inner) => w.query(inner),
                Body::SetOp {
                    op,
                    all,
                    left,
                    right,
                } => {
                    // What INTERSECT and EXCEPT ALL give may shrink as their input grows.
                    let (l, r) = match (op, all) {
                        (SetOp::Union, _) | (SetOp::Intersect, false) => {
                            (ReferencePosition::Plain, ReferencePosition::Plain)
                        }
                        (SetOp::Intersect, true) => {
                            (ReferencePosition::Intersect, ReferencePosition::Intersect)
                        }
                        (SetOp::Except, true) => {
                            (ReferencePosition::Except, ReferencePosition::Except)
                        }
                        (SetOp::Except, false) => {
                            (ReferencePosition::Plain, ReferencePosition::Except)
                        }
                    };
                    w.at(l, |w| w.query(left));
                    w.at(r, |w| w.query(right));
                }
            }
            query.order.iter().for_each(|o| w.expr(&o.expr));
            query.limit.iter().for_each(|e| w.expr(e));
            query.offset.iter().for_each(|e| w.expr(e));
        });
    }

    /// Within a place that is no better than where this is already.
    fn at(&mut self, place: ReferencePosition, body: impl FnOnce(&mut Self)) {
        let before = self.place;
        if before == ReferencePosition::Plain {
            self.place = place;
        }
        body(self);
        self.place = before;
    }

    fn subquery(&mut self, query: &'a Query) {
        let before = std::mem::replace(&mut self.place, ReferencePosition::Subquery);
        self.query(query);
        self.place = before;
    }

    fn select(&mut self, select: &'a Select) {
        select.distinct.iter().flatten().for_each(|e| self.expr(e));
        select.targets.iter().for_each(|t| self.expr(&t.expr));
        select.from.iter().for_each(|item| self.item(item));
        select.filter.iter().for_each(|e| self.expr(e));
        select.group_by.iter().for_each(|item| self.group(item));
        select.having.iter().for_each(|e| self.expr(e));
        for window in &select.windows {
            window.spec.for_each_expr(&mut |e| self.expr(e));
        }
    }

    fn group(&mut self, item: &'a GroupItem) {
        match item {
            GroupItem::Expr(e) => self.expr(e),
            GroupItem::Empty => {}
            GroupItem::Rollup(exprs) | GroupItem::Cube(exprs, _) => {
                exprs.iter().for_each(|e| self.expr(e))
            }
            GroupItem::Sets(items) => items.iter().for_each(|item| self.group(item)),
        }
    }

    fn item(&mut self, item: &'a TableRef) {
        match item {
            TableRef::Table { name, .. } => {
                if let [plain] = &name.parts[..]
                    && !self.hidden.contains(&plain.as_str())
                {
                    (self.f)(plain, self.place, name.pos);
                }
            }
            TableRef::Subquery { query, .. } => self.query(query),
            TableRef::Function { call, .. } => self.expr(call),
            TableRef::RowsFrom { items, .. } => items.iter().for_each(|(call, _)| self.expr(call)),
            TableRef::Join {
                kind,
                left,
                right,
                on,
                ..
            } => {
                let outer = ReferencePosition::OuterJoin;
                let (l, r) = match kind {
                    JoinKind::Left => (ReferencePosition::Plain, outer),
                    JoinKind::Right => (outer, ReferencePosition::Plain),
                    JoinKind::Full => (outer, outer),
                    _ => (ReferencePosition::Plain, ReferencePosition::Plain),
                };
                self.at(l, |w| w.item(left));
                self.at(r, |w| w.item(right));
                if let JoinOn::On(condition) = on {
                    self.expr(condition);
                }
            }
        }
    }

    fn expr(&mut self, expr: &'a Expr) {
        match &expr.node {
            Node::InQuery { arg, query, .. } => {
                self.subquery(query);
                self.expr(arg);
            }
            Node::Quantified { left, right, .. } => {
                match right {
                    Quantified::Query(query) => self.subquery(query),
                    Quantified::Array(array) => self.expr(array),
                }
                self.expr(left);
            }
            Node::Subquery(query) | Node::Exists(query) | Node::ArrayQuery(query) => {
                self.subquery(query)
            }
            Node::Json(json) if json.query().is_some() => {
                json.query().into_iter().for_each(|q| self.subquery(q));
            }
            _ => expr.for_each_operand(&mut |e| self.expr(e)),
        }
    }
}

impl Expr {
    /// Calls `f` on each expression directly below this one, subqueries left out.
    pub fn for_each_operand<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match &self.node {
            Node::Null
            | Node::Bool(_)
            | Node::Integer(_)
            | Node::Decimal(_)
            | Node::Text(_)
            | Node::Bits(..)
            | Node::Param(_)
            | Node::Column(_)
            | Node::Star(_)
            | Node::ArrayQuery(_)
            | Node::Subquery(_)
            | Node::Exists(_)
            | Node::Default => {}
            Node::Unary { arg, .. }
            | Node::Not(arg)
            | Node::IsNull { arg, .. }
            | Node::IsBool { arg, .. }
            | Node::InQuery { arg, .. }
            | Node::Cast { arg, .. }
            | Node::Field { arg, .. }
            | Node::FieldStar(arg)
            | Node::Collate { arg, .. } => f(arg),
            Node::Binary { left, right, .. } | Node::IsDistinct { left, right, .. } => {
                f(left);
                f(right);
            }
            Node::NullIf(left, right) => {
                f(left);
                f(right);
            }
            Node::And(args)
            | Node::Or(args)
            | Node::Coalesce(args)
            | Node::Grouping(args)
            | Node::MinMax { args, .. }
            | Node::Array(args)
            | Node::Row { fields: args, .. } => args.iter().for_each(f),
            Node::Between { arg, low, high, .. } => {
                f(arg);
                f(low);
                f(high);
            }
            Node::InList { arg, list, .. } => {
                f(arg);
                list.iter().for_each(f);
            }
            Node::Like {
                arg,
                pattern,
                escape,
                ..
            } => {
                f(arg);
                f(pattern);
                escape.iter().for_each(|e| f(e));
            }
            Node::Quantified { left, right, .. } => {
                f(left);
                if let Quantified::Array(array) = right {
                    f(array);
                }
            }
            Node::Case {
                operand,
                whens,
                default,
            } => {
                operand.iter().for_each(|e| f(e));
                for (when, then) in whens {
                    f(when);
                    f(then);
                }
                default.iter().for_each(|e| f(e));
            }
            Node::Call(call) => call.for_each_operand(f),
            Node::Json(json) => json.for_each_operand(f),
            Node::Parenthesised(arg) => f(arg),
            Node::Slice { arg, from, to } => {
                f(arg);
                from.iter().chain(to).for_each(|e| f(e));
            }
            Node::Subscript { arg, index } => {
                f(arg);
                f(index);
            }
        }
    }
}

impl Call {
    pub fn for_each_operand<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        self.args.iter().for_each(&mut *f);
        self.order.iter().for_each(|o| f(&o.expr));
        self.filter.iter().for_each(&mut *f);
        if let Some(Over::Spec(spec)) = &self.over {
            spec.for_each_expr(f);
        }
    }
}

impl WindowSpec {
    fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        self.partition.iter().for_each(&mut *f);
        self.order.iter().for_each(|o| f(&o.expr));
        let bounds = self
            .frame
            .iter()
            .flat_map(|frame| [&frame.start, &frame.end]);
        for bound in bounds {
            if let FrameBound::Preceding(e) | FrameBound::Following(e) = bound {
                f(e);
            }
        }
    }
}
