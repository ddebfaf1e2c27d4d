//! FROM: tables, subqueries, functions and joins.

use throng_types::Oid;

use super::{JOIN, LIST, Named, STEP, Writer};
use crate::tree::expr::{Expr, RelId, Var, system};
use crate::tree::query::{Body, FromItem, JoinKind, Query, Rel, RelKind};
use throng_values::func::json::populate;
use throng_values::func::{CastContext, sqljson};

impl Writer<'_> {
    pub(super) fn items_of_from(&mut self, items: &[FromItem]) {
        for (i, item) in items.iter().enumerate() {
            if i == 0 {
                self.clause(" FROM ", 2);
                self.item(item);
                continue;
            }
            self.push(", ");
            let outside = std::mem::take(&mut self.out);
            self.item(item);
            let text = std::mem::replace(&mut self.out, outside);
            self.line("", -STEP, STEP, LIST);
            self.push(&text);
        }
    }

    fn item(&mut self, item: &FromItem) {
        match item {
            FromItem::Rel(rel) => self.rel(rel),
            FromItem::Join {
                kind,
                left,
                right,
                on,
                using,
                alias,
            } => {
                let named = alias.as_ref().and_then(|alias| self.open_join(alias));
                let own_parens = !self.style.pretty || named.is_some();
                if own_parens {
                    self.push("(");
                }
                self.item(left);
                let word = match (kind, on) {
                    (JoinKind::Left, _) => " LEFT JOIN ",
                    (JoinKind::Right, _) => " RIGHT JOIN ",
                    (JoinKind::Full, _) => " FULL JOIN ",
                    (_, Some(_)) => " JOIN ",
                    (_, None) => " CROSS JOIN ",
                };
                self.line(word, -STEP, STEP, JOIN);
                let parens =
                    self.style.pretty && matches!(**right, FromItem::Join { alias: None, .. });
                if parens {
                    self.push("(");
                }
                self.item(right);
                if parens {
                    self.push(")");
                }
                match on {
                    Some(on) if self.using_holds((left, right), on, using) => {
                        self.push(" USING ");
                        self.column_list(using);
                    }
                    Some(on) => {
                        self.push(" ON ");
                        if !self.style.pretty {
                            self.push("(");
                        }
                        self.expr(on);
                        if !self.style.pretty {
                            self.push(")");
                        }
                    }
                    None if *kind != JoinKind::Inner => self.push(" ON TRUE"),
                    None => {}
                }
                if own_parens {
                    self.push(")");
                }
                if let Some((name, columns)) = named.and_then(|at| self.close_join(at)) {
                    self.push(" ");
                    self.ident(&name);
                    self.column_list(&columns);
                }
            }
        }
    }

    fn rel(&mut self, rel: &Rel) {
        let name = self.name_of(rel.id);
        let aliases = self.aliases_of(rel);
        let mut columns: &[String] = &aliases;
        let generated: Vec<String>;
        let shown = match &rel.kind {
            RelKind::Table(table) => {
                if rel.only {
                    self.push("ONLY ");
                }
                let relation = self.relation_name(table.oid, &table.name);
                self.push(&relation);
                rel.aliased || self.current_name(table.oid) != Some(name.clone())
            }
            RelKind::View { view, .. } => {
                let relation = self.relation_name(view.oid, &view.name);
                self.push(&relation);
                rel.aliased || self.current_name(view.oid) != Some(name.clone())
            }
            RelKind::Virtual(table) => {
                let relation = self.relation_name(table.oid, table.name);
                self.push(&relation);
                rel.aliased || name != table.name
            }
            RelKind::Cte(index) | RelKind::WorkTable(index) => {
                let cte = self.ctes[*index as usize].name.clone();
                self.ident(&cte);
                rel.aliased || name != cte
            }
            RelKind::Subquery { query, lateral } => {
                if *lateral {
                    self.push("LATERAL ");
                }
                self.push("(");
                match &query.body {
                    // VALUES at the top of a query, which PostgreSQL makes an entry of its own.
                    Body::Values { rows, .. } if rel.alias == "*VALUES*" => self.values(rows),
                    _ => self.nested(query, true),
                }
                self.push(")");
                true
            }
            RelKind::Function { .. } if rel.sequence().is_some() => {
                let sequence = rel.sequence().unwrap_or(Oid::NONE);
                let relation = self.relation_name(sequence, &name);
                self.push(&relation);
                rel.aliased || self.current_name(sequence) != Some(name.clone())
            }
            RelKind::Function {
                func,
                args,
                ordinality,
                lateral,
                ..
            } => {
                if **func == sqljson::TABLE {
                    self.push(if *lateral { "LATERAL " } else { "" });
                    self.json_table(args);
                    if rel.aliased || name != "json_table" {
                        self.push(" ");
                        self.ident(&name);
                        self.column_list(columns);
                    }
                    return;
                }
                self.push(if *lateral { "LATERAL " } else { "" });
                self.function(func, populate::written(func, args));
                if *ordinality {
                    self.push(" WITH ORDINALITY");
                }
                generated = rel.columns.iter().map(|c| c.name.clone()).collect();
                columns = &generated;
                true
            }
            RelKind::RowsFrom { items, ordinality } => {
                self.functions(items);
                if *ordinality {
                    self.push(" WITH ORDINALITY");
                }
                generated = rel.columns.iter().map(|c| c.name.clone()).collect();
                columns = &generated;
                true
            }
            RelKind::Routine {
                call,
                ordinality,
                lateral,
                ..
            } => {
                self.push(if *lateral { "LATERAL " } else { "" });
                self.routine(call);
                if *ordinality {
                    self.push(" WITH ORDINALITY");
                }
                if call.returns_any_record() {
                    self.push(" ");
                    self.ident(&name);
                    return self.definition_list(&rel.columns);
                }
                generated = rel.columns.iter().map(|c| c.name.clone()).collect();
                columns = &generated;
                true
            }
        };
        if shown {
            self.push(" ");
            self.ident(&name);
        }
        if shown || !columns.is_empty() {
            self.column_list(columns);
        }
        if let Some(sample) = &rel.sample {
            self.push(&format!(" TABLESAMPLE {} (", sample.method.name()));
            self.bare(&sample.percent);
            self.push(")");
            if let Some(seed) = &sample.seed {
                self.push(" REPEATABLE (");
                self.bare(seed);
                self.push(")");
            }
        }
    }

    /// Without the cast that came by itself.
    pub(super) fn bare(&mut self, expr: &Expr) {
        match expr {
            Expr::Cast { arg, context, .. } if *context != CastContext::Explicit => {
                self.operand_of(arg, expr);
            }
            _ => self.expr(expr),
        }
    }

    /// `ROWS FROM(…)`; arrays that are spread have a shorter form.
    fn functions(&mut self, items: &[FromItem]) {
        let mut lateral = false;
        items.iter().for_each(|item| {
            item.for_each_expr(&mut |e| lateral |= e.any(&mut |e| matches!(e, Expr::Var(_))));
        });
        self.push(if lateral { "LATERAL " } else { "" });
        let array = |item: &FromItem| match item {
            FromItem::Rel(rel) => match &rel.kind {
                RelKind::Function { func, args, .. } if func.name == "unnest" => {
                    args.first().cloned()
                }
                _ => None,
            },
            FromItem::Join { .. } => None,
        };
        if let Some(arrays) = items.iter().map(array).collect::<Option<Vec<Expr>>>() {
            self.push("UNNEST(");
            self.list(&arrays);
            return self.push(")");
        }
        self.push("ROWS FROM(");
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            if let FromItem::Rel(rel) = item {
                self.bare_function(rel);
            }
        }
        self.push(")");
    }

    /// One of the functions of ROWS FROM.
    fn bare_function(&mut self, rel: &Rel) {
        match &rel.kind {
            RelKind::Function { func, args, .. } => {
                self.function(func, populate::written(func, args));
            }
            RelKind::Routine { call, .. } => {
                self.routine(call);
                if call.returns_any_record() {
                    self.push(" AS ");
                    self.definition_list(&rel.columns);
                }
            }
            _ => {}
        }
    }

    /// `(a integer, b text)`
    fn definition_list(&mut self, columns: &[throng_values::func::RelColumn]) {
        self.push("(");
        for (i, column) in columns.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            self.ident(&column.name);
            let ty = self.type_name(column.ty);
            self.push(&format!(" {ty}"));
        }
        self.push(")");
    }

    /// The names written behind an entry's own, for the columns that are still there.
    fn aliases_of(&self, rel: &Rel) -> Vec<String> {
        let RelKind::Table(table) = &rel.kind else {
            return rel.column_aliases.clone();
        };
        let now = self.style.catalog.table(table.oid).unwrap_or(table);
        let bound = table.columns.iter().zip(&now.columns);
        let live = bound.filter(|(was, _)| !was.dropped);
        live.zip(&rel.column_aliases)
            .filter(|((_, is), _)| !is.dropped)
            .map(|(_, alias)| alias.clone())
            .collect()
    }

    pub(super) fn current_name(&self, oid: Oid) -> Option<String> {
        self.style
            .catalog
            .relation(oid)
            .map(|r| r.name().to_owned())
    }

    /// A query inside another. `names`: its columns' names are seen.
    pub(super) fn nested(&mut self, query: &Query, names: bool) {
        let result = self.result.take();
        let shown = std::mem::replace(&mut self.names_shown, names);
        self.query(query);
        self.names_shown = shown;
        self.result = result;
    }

    /// What an entry's columns are called now.
    pub(super) fn columns_of(&self, rel: &Rel) -> Vec<String> {
        let catalog = self.style.catalog;
        let mut names: Vec<String> = match &rel.kind {
            RelKind::Table(table) => {
                let table = catalog.table(table.oid).unwrap_or(table);
                table.columns.iter().map(|c| c.name.clone()).collect()
            }
            RelKind::View { view, .. } => {
                let view = catalog.view(view.oid).unwrap_or(view);
                view.columns.iter().map(|c| c.name.clone()).collect()
            }
            _ => rel.columns.iter().map(|c| c.name.clone()).collect(),
        };
        // Aliases name the columns that there are, dropped ones passed over.
        let mut aliases = rel.column_aliases.iter();
        if let RelKind::Table(table) = &rel.kind {
            for (name, column) in names.iter_mut().zip(&table.columns) {
                if !column.dropped
                    && let Some(alias) = aliases.next()
                {
                    name.clone_from(alias);
                }
            }
        } else {
            names
                .iter_mut()
                .zip(aliases)
                .for_each(|(name, alias)| name.clone_from(alias));
        }
        names
    }

    fn named(&self, rel: RelId) -> Option<(&Named, usize)> {
        self.scopes
            .iter()
            .enumerate()
            .rev()
            .find_map(|(depth, s)| Some((s.named.iter().find(|n| n.rel == rel)?, depth)))
    }

    pub(super) fn named_entry(&self, rel: RelId) -> Option<&Named> {
        self.named(rel).map(|(named, _)| named)
    }

    pub(super) fn name_of(&self, rel: RelId) -> String {
        self.named(rel).map_or("?".into(), |(n, _)| n.name.clone())
    }

    pub(super) fn column_name(&self, var: &Var) -> String {
        if let Some(name) = system::name(var.column) {
            return name.to_owned();
        }
        let named = self
            .named(var.rel)
            .and_then(|(n, _)| n.columns.get((var.column as usize).wrapping_sub(1)));
        named.cloned().unwrap_or_else(|| "?".to_owned())
    }

    pub(super) fn var(&mut self, var: &Var) {
        if let Some((join, column)) = self.join_column(&Expr::Var(var.clone())) {
            self.ident(&join);
            self.push(".");
            return self.ident(&column);
        }
        let column = self.column_name(var);
        let Some((named, depth)) = self.named(var.rel) else {
            let around = self.scopes.iter().find(|s| s.output == var.rel);
            let lifted = around.and_then(|s| s.lifted.get(var.column as usize - 1));
            return match lifted.cloned() {
                Some(aggregate) => self.expr(&aggregate),
                None => self.push("?"),
            };
        };
        let table = named.name.clone();
        let here = self.scopes.len() - 1;
        let mut outputs = self.scopes[here].outputs.iter();
        let hidden = outputs
            .any(|t| t.name == column && !matches!(&t.expr, Expr::Var(output) if output == var));
        if here != depth || self.scopes[here].qualified || hidden {
            self.ident(&table);
            self.push(".");
        }
        self.ident(&column);
    }
}
