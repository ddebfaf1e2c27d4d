//! Queries: their clauses, set operations and WITH.

use super::{LIST, STEP, Scope, Writer};
use crate::tree::expr::{Expr, SortKey};
use crate::tree::query::{
    Body, Cte, CteBody, Distinct, FromItem, Grouping, GroupingItem, LockWait, Query, RelKind,
    Select, SetOp, Target,
};
use throng_values::func::CastContext;
use throng_values::func::string::collate::COLLATE;

/// An operand that is part of the set operation above it rather than a query of its own.
fn is_operation(query: &Query) -> bool {
    matches!(query.body, Body::SetOp { .. }) && is_bare(query)
}

fn is_bare(query: &Query) -> bool {
    query.order.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.locks.is_empty()
}

/// What was written where a count stands: the cast to `bigint` came by itself.
pub(super) fn written(count: &Expr) -> &Expr {
    match count {
        Expr::Cast {
            arg,
            context: CastContext::Implicit | CastContext::Assignment,
            ..
        } => arg,
        _ => count,
    }
}

impl Writer<'_> {
    pub(super) fn query(&mut self, query: &Query) {
        let scope = self.scope_of(query);
        self.scopes.push(scope);
        if let Body::Select(select) = &query.body {
            self.name_joins(select);
        }
        self.with(query);
        let by_number = match &query.body {
            Body::SetOp { .. } => {
                self.set_operation(query);
                true
            }
            Body::Select(select) => {
                self.push(" ");
                self.indent += STEP;
                self.select(select);
                false
            }
            Body::Values { rows, .. } => {
                self.push(" ");
                self.indent += STEP;
                self.values(rows);
                true
            }
        };
        self.tail(query, by_number);
        if !matches!(query.body, Body::SetOp { .. }) {
            self.indent -= STEP;
        }
        self.scopes.pop();
    }

    /// ORDER BY, LIMIT and row locks.
    fn tail(&mut self, query: &Query, by_number: bool) {
        if !query.order.is_empty() {
            self.clause(" ORDER BY ", 1);
            self.keys(query, &query.order, by_number);
        }
        if let Some(offset) = &query.offset {
            self.clause(" OFFSET ", 0);
            self.expr(written(offset));
        }
        if let (Some(limit), true) = (&query.limit, query.ties) {
            self.clause(" FETCH FIRST ", 0);
            self.push("(");
            self.expr(written(limit));
            self.push(") ROWS WITH TIES");
        } else if let Some(limit) = &query.limit {
            self.clause(" LIMIT ", 0);
            match limit.is_null_const() {
                true => self.push("ALL"),
                false => self.expr(written(limit)),
            }
        }
        for lock in &query.locks {
            self.clause(&format!(" {}", lock.strength.clause()), 0);
            let name = self.name_of(lock.rel);
            self.push(" OF ");
            self.ident(&name);
            self.push(match lock.wait {
                LockWait::Wait => "",
                LockWait::SkipLocked => " SKIP LOCKED",
                LockWait::NoWait => " NOWAIT",
            });
        }
    }

    fn keys(&mut self, query: &Query, keys: &[SortKey], by_number: bool) {
        let outputs: Vec<Target> = match &query.body {
            Body::Select(select) => self.named_targets(&select.targets),
            _ => Vec::new(),
        };
        for (i, key) in keys.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            match (by_number, &key.expr) {
                (true, Expr::Var(var)) => self.push(&var.column.to_string()),
                _ => self.key_expr(&key.expr, outputs.clone()),
            }
            self.direction(key);
        }
    }

    /// The output columns under the names that are shown of them.
    fn named_targets(&self, targets: &[Target]) -> Vec<Target> {
        let mut named = targets.to_vec();
        for (target, name) in named.iter_mut().zip(self.result.iter().flatten()) {
            target.name.clone_from(name);
        }
        named
    }

    /// What stands behind a key of an ORDER BY.
    pub(super) fn direction(&mut self, key: &SortKey) {
        if key.descending {
            self.push(" DESC");
        }
        // Each direction's own place for NULLs goes without saying.
        match (key.descending, key.nulls_first) {
            (false, true) => self.push(" NULLS FIRST"),
            (true, false) => self.push(" NULLS LAST"),
            _ => {}
        }
    }

    /// An expression of ORDER BY, GROUP BY or DISTINCT ON: nothing that a name or number alone
    /// would be taken for.
    pub(super) fn key_expr(&mut self, expr: &Expr, outputs: Vec<Target>) {
        // Only a name alone would mean an output column.
        let alone = matches!(expr, Expr::Var(_) | Expr::Coalesce(..));
        if let Some(scope) = self.scopes.last_mut().filter(|_| alone) {
            scope.outputs = outputs;
        }
        match expr {
            Expr::Var(_) => self.expr(expr),
            _ if self.merged_name(expr).is_some() || self.join_column(expr).is_some() => {
                self.expr(expr);
            }
            Expr::Const(value, ty) => {
                let text = self.constant(value, *ty, true);
                self.push(&text);
            }
            _ => {
                let collated = matches!(expr, Expr::Call { func, .. } if **func == COLLATE);
                let own = !self.style.pretty
                    && (collated
                        || !matches!(
                            expr,
                            Expr::Call { .. }
                                | Expr::SetCall { .. }
                                | Expr::Routine(_)
                                | Expr::SetRoutine(_)
                                | Expr::Aggregate(_)
                                | Expr::Window(_)
                        ));
                if !own {
                    self.push("(");
                }
                self.expr(expr);
                if !own {
                    self.push(")");
                }
            }
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.outputs = Vec::new();
        }
    }

    fn select(&mut self, select: &Select) {
        self.push("SELECT");
        let outputs = self.named_targets(&select.targets);
        match &select.distinct {
            Distinct::No => {}
            Distinct::All => self.push(" DISTINCT"),
            Distinct::On(exprs) => {
                self.push(" DISTINCT ON (");
                for (i, expr) in exprs.iter().enumerate() {
                    if i > 0 {
                        self.push(", ");
                    }
                    self.key_expr(expr, outputs.clone());
                }
                self.push(")");
            }
        }
        self.targets(&select.targets);
        self.items_of_from(&select.from);
        if let Some(filter) = &select.filter {
            self.clause(" WHERE ", 1);
            self.expr(filter);
        }
        self.group_by(select);
        if let Some(having) = &select.having {
            self.clause(" HAVING ", 0);
            self.expr(having);
        }
        self.window_clause(select);
    }

    fn group_by(&mut self, select: &Select) {
        let Grouping {
            written,
            distinct,
            items,
            ..
        } = &select.grouping;
        if *written == 0 && items.is_empty() {
            return;
        }
        self.clause(" GROUP BY ", 1);
        if *distinct {
            self.push("DISTINCT ");
        }
        if items.is_empty() {
            let all: Vec<u32> = (0..*written as u32).collect();
            return self.grouping_columns(select, &all);
        }
        for (i, item) in items.iter().enumerate() {
            self.push(if i == 0 { "" } else { ", " });
            self.grouping_item(select, item, true);
        }
    }

    /// `bare`: a single column goes without parentheses.
    fn grouping_item(&mut self, select: &Select, item: &GroupingItem, bare: bool) {
        let (word, lists) = match item {
            GroupingItem::Columns(places) => return self.grouping_set(select, places, bare),
            GroupingItem::Rollup(lists) => ("ROLLUP(", lists),
            GroupingItem::Cube(lists) => ("CUBE(", lists),
            GroupingItem::Sets(items) => {
                self.push("GROUPING SETS (");
                for (i, item) in items.iter().enumerate() {
                    self.push(if i == 0 { "" } else { ", " });
                    self.grouping_item(select, item, false);
                }
                return self.push(")");
            }
        };
        self.push(word);
        for (i, places) in lists.iter().enumerate() {
            self.push(if i == 0 { "" } else { ", " });
            self.grouping_set(select, places, true);
        }
        self.push(")");
    }

    fn grouping_set(&mut self, select: &Select, places: &[u32], bare: bool) {
        let parens = !bare || places.len() != 1;
        self.push(if parens { "(" } else { "" });
        self.grouping_columns(select, places);
        self.push(if parens { ")" } else { "" });
    }

    fn grouping_columns(&mut self, select: &Select, places: &[u32]) {
        for (i, at) in places.iter().enumerate() {
            self.push(if i == 0 { "" } else { ", " });
            self.key_expr(&select.group_by[*at as usize], Vec::new());
        }
    }

    /// The select list, a column a line.
    fn targets(&mut self, targets: &[Target]) {
        let result = self.result.take();
        for (i, target) in targets.iter().enumerate() {
            self.push(if i == 0 { " " } else { ", " });
            let outside = std::mem::take(&mut self.out);
            let shown = match &target.expr {
                expr if self.join_column(expr).is_some() => {
                    self.expr(expr);
                    self.join_column(expr).map(|(_, column)| column)
                }
                Expr::Var(var) => {
                    self.var(var);
                    Some(self.column_name(var))
                }
                expr if self.merged_name(expr).is_some() => {
                    self.expr(expr);
                    self.merged_name(expr)
                }
                expr => {
                    self.expr(expr);
                    self.not_spread(expr);
                    let nobody_sees = !self.names_shown && !self.style.kept;
                    nobody_sees.then(|| "?column?".to_owned())
                }
            };
            let name = match &result {
                Some(names) => names.get(i).unwrap_or(&target.name),
                None => &target.name,
            };
            if shown.as_ref() != Some(name) {
                self.push(" AS ");
                self.ident(name);
            }
            let text = std::mem::replace(&mut self.out, outside);
            if text.starts_with('\n') {
                while self.out.ends_with(' ') {
                    self.out.pop();
                }
            } else if i > 0 {
                self.line("", -STEP, STEP, LIST);
            }
            self.push(&text);
        }
        self.result = result;
    }

    /// VALUES' rows.
    pub(super) fn values(&mut self, rows: &[Vec<Expr>]) {
        self.push("VALUES ");
        for (i, row) in rows.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            self.push("(");
            for (j, value) in row.iter().enumerate() {
                if j > 0 {
                    self.push(",");
                }
                self.bare(value);
                self.not_spread(value);
            }
            self.push(")");
        }
    }

    fn set_operation(&mut self, query: &Query) {
        let Body::SetOp {
            op,
            all,
            left,
            right,
            ..
        } = &query.body
        else {
            return;
        };
        let same = matches!(&left.body, Body::SetOp { op: o, all: a, .. } if o == op && a == all);
        let parens = is_operation(left) && !same;
        let step = if parens { STEP } else { 0 };
        if parens {
            self.push("(");
            self.line("", step, 0, 0);
        }
        self.operand(left);
        match parens {
            true => self.line(") ", -step, 0, 0),
            false => self.line("", -step, 0, 0),
        }
        self.push(match op {
            SetOp::Union => "UNION ",
            SetOp::Intersect => "INTERSECT ",
            SetOp::Except => "EXCEPT ",
        });
        if *all {
            self.push("ALL ");
        }
        let parens = is_operation(right);
        let step = if parens { STEP } else { 0 };
        if parens {
            self.push("(");
        }
        self.line("", step, 0, 0);
        let shown = std::mem::replace(&mut self.names_shown, false);
        self.operand(right);
        self.names_shown = shown;
        self.indent -= step;
        if parens {
            self.line(")", 0, 0, 0);
        }
    }

    fn operand(&mut self, query: &Query) {
        if is_operation(query) {
            return self.set_operation(query);
        }
        let parens = !is_bare(query) || matches!(query.body, Body::SetOp { .. });
        if parens {
            self.push("(");
        }
        self.query(query);
        if parens {
            self.push(")");
        }
    }

    /// The WITH queries that belong to this query: bound with it, whoever reads them.
    fn with(&mut self, query: &Query) {
        if query.ctes.is_empty() {
            return;
        }
        self.indent += STEP;
        self.push(" ");
        let all = self.ctes;
        let own: Vec<&Cte> = query.ctes.iter().map(|at| &all[*at as usize]).collect();
        let recursive = own
            .iter()
            .any(|cte| matches!(cte.body, CteBody::Recursive { .. }));
        self.push(if recursive {
            "WITH RECURSIVE "
        } else {
            "WITH "
        });
        for (i, cte) in own.into_iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            self.ident(&cte.name);
            self.column_list(&cte.aliases);
            self.push(match cte.materialized {
                None => " AS ",
                Some(true) => " AS MATERIALIZED ",
                Some(false) => " AS NOT MATERIALIZED ",
            });
            self.push("(");
            self.line("", 0, 0, 0);
            let result = self.result.take();
            let shown = std::mem::replace(&mut self.names_shown, true);
            match &cte.body {
                CteBody::Query(query) => self.query(query),
                CteBody::Recursive { init, term, all } => self.recursive(init, term, *all),
                // No text is made of a statement that writes.
                CteBody::Write(_) => self.push("?"),
            }
            self.result = result;
            self.names_shown = shown;
            self.line("", 0, 0, 0);
            self.push(")");
        }
        self.indent -= STEP;
        self.line("", 0, 0, 0);
    }

    fn recursive(&mut self, init: &Query, term: &Query, all: bool) {
        self.operand(init);
        self.line("", 0, 0, 0);
        self.push(if all { "UNION ALL " } else { "UNION " });
        self.line("", 0, 0, 0);
        let shown = std::mem::replace(&mut self.names_shown, false);
        self.operand(term);
        self.names_shown = shown;
    }

    pub(super) fn column_list(&mut self, names: &[String]) {
        if names.is_empty() {
            return;
        }
        self.push("(");
        for (i, name) in names.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            self.ident(name);
        }
        self.push(")");
    }

    fn scope_of(&self, query: &Query) -> Scope {
        let mut scope = Scope {
            named: Vec::new(),
            qualified: !self.scopes.is_empty(),
            outputs: Vec::new(),
            windows: Vec::new(),
            output: query.output,
            lifted: Vec::new(),
            merged: Vec::new(),
            joins: Vec::new(),
        };
        if let Body::Select(select) = &query.body {
            scope.windows.clone_from(&select.windows);
            scope.lifted.clone_from(&select.lifted);
            let mut entries = 0;
            for item in &select.from {
                self.name_item(item, &mut scope, &mut entries);
            }
            scope.qualified |= entries != 1;
        }
        scope
    }

    fn name_item(&self, item: &FromItem, scope: &mut Scope, entries: &mut usize) {
        *entries += 1;
        match item {
            FromItem::Join { left, right, .. } => {
                self.name_item(left, scope, entries);
                self.name_item(right, scope, entries);
            }
            FromItem::Rel(rel) => {
                let oid = match &rel.kind {
                    RelKind::Table(table) => Some(table.oid),
                    RelKind::View { view, .. } => Some(view.oid),
                    _ => rel.sequence(),
                };
                let oid = oid.filter(|_| !rel.aliased);
                let current = oid.and_then(|oid| self.current_name(oid));
                let wanted = current.unwrap_or_else(|| rel.alias.clone());
                let name = self.free_name(&wanted, scope);
                let columns = self.columns_of(rel);
                let live = match &rel.kind {
                    RelKind::Table(table) => table.live_columns().map(|(n, _)| n as i16).collect(),
                    _ => (1..).take(columns.len()).collect(),
                };
                scope.named.push(super::Named {
                    rel: rel.id,
                    name,
                    columns,
                    live,
                    is_row: false,
                });
            }
        }
    }

    /// The same among all that is in sight.
    pub(super) fn free_of_all(&self, wanted: &str) -> String {
        match self.scopes.last() {
            Some(scope) => self.free_name(wanted, scope),
            None => wanted.to_owned(),
        }
    }

    /// The name, or with a number behind it where something in sight has it.
    fn free_name(&self, wanted: &str, scope: &Scope) -> String {
        let taken = |name: &str| {
            let around = self.scopes.iter().flat_map(|s| &s.named);
            let joins = self.scopes.iter().flat_map(|s| &s.joins);
            around.chain(&scope.named).any(|n| n.name == name)
                || joins.chain(&scope.joins).any(|j| j.name == name)
        };
        if !taken(wanted) {
            return wanted.to_owned();
        }
        (1u32..)
            .map(|n| format!("{wanted}_{n}"))
            .find(|name| !taken(name))
            .unwrap_or_default()
    }
}
