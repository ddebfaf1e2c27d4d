//! MERGE: the target joined with a source, and what is done to each row of either.
//!
//! ```text
//!                            joined as        a row is
//! MATCHED only               inner            a pair
//! … NOT MATCHED BY TARGET    source LEFT      a pair, or the source's alone
//! … NOT MATCHED BY SOURCE    target LEFT      a pair, or the target's alone
//! … both                     FULL             any of them
//! ```
//! Which of them a row is: the target's `ctid` is NULL, or `matched` does not hold. The latter is
//! the join's condition once more, as the target's row may have changed by the time it is written
//! to, and the source's beside it is to be kept.

use throng_types::error::state;
use throng_types::{Error, Result, SqlType};

use crate::binder::dml::updatable::{Verb, WriteTarget};
use crate::binder::dml::{may_be_missing, named_columns, row_of};
use crate::binder::query::scope::{Names, Scope, of_entry, renamed};
use crate::binder::row_security::reads_rows;
use crate::binder::{Binder, Clause, at};
use crate::tree::expr::{Expr, RelId, Var, system};
use crate::tree::query::{
    Check, FromItem, JoinKind, Merge, MergeAction, MergeWrite, Rel, RelKind, Target,
};
use throng_syntax::parse::ast::{self, MergeMatch, Node, Overriding, Pos};
use throng_values::func::RelColumn;

/// The names that parts of a MERGE can see.
struct Sides {
    target: Names,
    source: Names,
    both: Names,
}

impl Binder<'_> {
    /// `around`: what it can see from where it stands.
    pub(in crate::binder) fn merge(
        &mut self,
        ast: &ast::Merge,
        around: Option<&Scope<'_>>,
    ) -> Result<Merge> {
        if ast.recursive {
            let message = "WITH RECURSIVE is not supported for MERGE statement";
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
        let ctes = self.bind_ctes(&ast.with, ast.recursive, around)?;
        let outer = Scope::behind(&ctes, around);
        check_reachable(&ast.whens)?;
        let place = self.accesses.len();
        let mut target = self.merge_target(ast)?;
        let (table, rel) = (target.table.clone(), target.rel);
        let only = ast.only || target.only;
        let (source, sides) = self.merge_source(ast, &target, &outer)?;
        let scope = Scope::within(&sides.both, Some(&outer));
        let on = self.in_clause(Clause::On, |b| {
            let bound = b.expr(&ast.on, &scope)?;
            b.condition(bound, "JOIN/ON", ast.on.pos)
        })?;
        let mut actions = Vec::with_capacity(ast.whens.len());
        for when in &ast.whens {
            actions.push(self.merge_when(when, &target, &sides, &outer)?);
        }
        let mut written = Vec::with_capacity(actions.len());
        for (when, action) in ast.whens.iter().zip(&actions) {
            written.push((action.clone(), merged_columns(when, action, &target)?));
        }
        let (row, new) = (self.new_rel(), self.new_rel());
        self.note_virtual(row, &table);
        self.note_virtual(new, &table);
        let generated = self.stored_columns(&table, row)?;
        let mut after = sides.source;
        let own = renamed(&target.names, rel, row);
        after.tables.extend(own.tables);
        after.columns.extend(own.columns);
        let rows = (
            may_be_missing(row_of(&target.names)?),
            may_be_missing(row_of(&renamed(&target.names, rel, new))?),
        );
        let saved = self.merging.replace(row);
        let returning = self.returning(&ast.returning, &after, rows, &outer);
        self.merging = saved;
        let returning = returning?;
        let mut exprs = vec![&on];
        exprs.extend(returning.iter().map(|t| &t.expr));
        self.merges(
            place,
            (&target.links, &target.exprs),
            &[rel, row, new],
            &source,
            &written,
            &exprs,
        );
        let all = written_exprs(&actions).chain(exprs).collect::<Vec<_>>();
        let read = reads_rows(&all, &[rel, row, new]);
        let reads = (read, !returning.is_empty());
        let (checks, seen) = self.merge_checks(&mut target, row, &mut actions, reads)?;
        // A view's rows are marked as there, since they have no place.
        let (item, there) = match target.instead {
            Some(FromItem::Rel(mut rows)) => {
                let there = self.marked(&mut rows);
                if let RelKind::Subquery { query, .. } = &mut rows.kind {
                    // All of its columns are the triggers', so it is no part of the query around
                    // it.
                    let none = Expr::Const(throng_types::Datum::Int8(0), SqlType::INT8);
                    query.offset.get_or_insert(none);
                }
                (FromItem::Rel(rows), Some(there))
            }
            _ => {
                let item = FromItem::of_table(&table, rel, ast.alias.as_deref(), only);
                (item, None)
            }
        };
        let joined = Joined {
            target: item,
            visible: target.filter,
            source,
            on,
        };
        let (from, filter, matched) = self.joined(joined.clone(), &actions);
        // A row that has changed meanwhile may be hidden now.
        let there = there.map(|there| Expr::IsNotNull(Box::new(there)));
        let pair = seen.iter().cloned().chain(there).chain([matched]);
        let matched = Expr::all_of(pair.collect()).unwrap_or_else(|| Expr::bool(true));
        let visible = Expr::all_of(seen.into_iter().chain(joined.visible).collect());
        Ok(Merge {
            table,
            rel,
            from: vec![from],
            filter,
            matched,
            visible,
            actions,
            generated,
            checks,
            returning,
            row,
            new,
            only,
        })
    }

    /// The checks of new rows, under `row`; and what the target's rows must meet to be seen.
    fn merge_checks(
        &mut self,
        target: &mut WriteTarget,
        row: RelId,
        actions: &mut [MergeAction],
        reads: (bool, bool),
    ) -> Result<(Vec<Check>, Vec<Expr>)> {
        let (mut checks, seen) = self.secure_merge(target, row, actions, reads)?;
        checks.extend(self.checks(&target.table, row)?);
        for mut check in std::mem::take(&mut target.checks) {
            of_entry(&mut check.expr, target.rel, row);
            checks.push(check);
        }
        Ok((checks, seen))
    }

    fn merge_target(&mut self, ast: &ast::Merge) -> Result<WriteTarget> {
        let written = |when: &ast::MergeWhen| match when.action {
            ast::MergeAction::Insert { .. } => Some((Verb::Insert, "inserting into", "INSERT")),
            ast::MergeAction::Update(_) => Some((Verb::Update, "updating", "UPDATE")),
            ast::MergeAction::Delete => Some((Verb::Delete, "deleting from", "DELETE")),
            ast::MergeAction::Nothing => None,
        };
        let (verb, doing, trigger) =
            ast.whens
                .iter()
                .find_map(written)
                .unwrap_or((Verb::Delete, "deleting from", "DELETE"));
        let found = self.find_relation(&ast.table)?;
        if let Some(throng_catalog::Relation::Sequence(sequence)) = &found {
            let message = format!("cannot execute MERGE on relation \"{}\"", sequence.name);
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message)
                .detail("This operation is not supported for sequences."));
        }
        if let Some(throng_catalog::Relation::Table(table)) = &found
            && table.is_materialized()
        {
            let message = format!("cannot execute MERGE on relation \"{}\"", table.name);
            return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message)
                .detail("This operation is not supported for materialized views."));
        }
        if let Some(throng_catalog::Relation::View(view)) = &found {
            let acts = ast.whens.iter().filter_map(written);
            let acts = acts.map(|(verb, ..)| self.acts_instead(view, verb));
            let acts: Vec<bool> = acts.collect();
            if acts.contains(&true) && acts.contains(&false) {
                let message = format!("cannot merge into view \"{}\"", view.name);
                return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message)
                    .detail("MERGE is not supported for views with INSTEAD OF triggers for some actions but not all.")
                    .hint("To enable merging into the view, either provide a full set of INSTEAD OF triggers or drop the existing INSTEAD OF triggers."));
            }
        }
        let mut target = self
            .write_target(&ast.table, ast.alias.as_deref(), verb)
            .map_err(|e| match e.code() == state::OBJECT_NOT_IN_PREREQUISITE_STATE {
                true => e.hint(format!(
                    "To enable {doing} the view using MERGE, provide an INSTEAD OF {trigger} trigger."
                )),
                false => e,
            })?;
        target.merges();
        Ok(target)
    }

    fn merge_source(
        &mut self,
        ast: &ast::Merge,
        target: &WriteTarget,
        outer: &Scope<'_>,
    ) -> Result<(FromItem, Sides)> {
        let mut source = Names::default();
        let items = self
            .bind_from(std::slice::from_ref(&ast.source), &mut source, outer)
            .map_err(|e| out_of_reach(e, &target.names))?;
        let name = &row_of(&target.names)?.name;
        if source.tables.iter().any(|t| t.name == *name) {
            let message = format!("name \"{name}\" specified more than once");
            return Err(Error::new(state::DUPLICATE_ALIAS, message)
                .detail("The name is used both as MERGE target table and data source."));
        }
        let item = items.into_iter().next();
        let item = item.ok_or_else(|| Error::internal("a MERGE without source"))?;
        let mut both = target.names.clone();
        both.join(source.clone())?;
        let sides = Sides {
            target: target.names.clone(),
            source,
            both,
        };
        Ok((item, sides))
    }

    fn merge_when(
        &mut self,
        when: &ast::MergeWhen,
        target: &WriteTarget,
        sides: &Sides,
        outer: &Scope<'_>,
    ) -> Result<MergeAction> {
        let (names, hidden) = match when.of {
            MergeMatch::Matched => (&sides.both, &crate::binder::query::scope::NO_NAMES),
            MergeMatch::NotMatchedBySource => (&sides.target, &sides.source),
            MergeMatch::NotMatchedByTarget => (&sides.source, &sides.target),
        };
        let scope = Scope::within(names, Some(outer));
        self.merge_action(when, target, &scope)
            .map_err(|e| out_of_reach(e, hidden))
    }

    fn merge_action(
        &mut self,
        when: &ast::MergeWhen,
        target: &WriteTarget,
        scope: &Scope<'_>,
    ) -> Result<MergeAction> {
        let condition = match &when.condition {
            Some(ast) => Some(self.when_condition(ast, scope)?),
            None => None,
        };
        let write = match &when.action {
            ast::MergeAction::Nothing => MergeWrite::Nothing,
            ast::MergeAction::Delete => MergeWrite::Delete,
            ast::MergeAction::Update(set) => {
                MergeWrite::Update(self.assignments(set, target, scope)?)
            }
            ast::MergeAction::Insert {
                columns,
                overriding,
                values,
            } => MergeWrite::Insert(self.merge_insert(
                columns,
                *overriding,
                values.as_deref().unwrap_or_default(),
                target,
                scope,
            )?),
        };
        Ok(MergeAction {
            of: when.of,
            condition,
            write,
            guards: vec![],
        })
    }

    fn when_condition(&mut self, ast: &ast::Expr, scope: &Scope<'_>) -> Result<Expr> {
        let seen = self.seen.len();
        let bound = self.in_clause(Clause::Other("MERGE WHEN conditions"), |b| {
            let bound = b.expr(ast, scope)?;
            b.condition(bound, "WHEN", ast.pos)
        })?;
        let system = self.seen[seen..]
            .iter()
            .find(|(_, column, _)| (system::CMAX..=system::CTID).contains(column));
        if let Some((_, column, pos)) = system {
            let message = format!(
                "cannot use system column \"{}\" in MERGE WHEN condition",
                system::name(*column).unwrap_or_default()
            );
            let error = Error::new(state::INVALID_COLUMN_REFERENCE, message);
            return Err(error.position(pos + 1));
        }
        Ok(bound)
    }

    /// The new row's values, by attribute number.
    fn merge_insert(
        &mut self,
        names: &[(String, Pos)],
        overriding: Option<Overriding>,
        given: &[ast::Expr],
        target: &WriteTarget,
        scope: &Scope<'_>,
    ) -> Result<Vec<Expr>> {
        let columns = match names.is_empty() {
            true => {
                let all = target.all().take(given.len());
                all.map(|name| Ok((target.column(name, 0)?, 0)))
                    .collect::<Result<Vec<_>>>()?
            }
            false => named_columns(names, &[], target)?,
        };
        if let Some(extra) = given.get(columns.len()) {
            let message = "INSERT has more expressions than target columns";
            return Err(Error::new(state::SYNTAX_ERROR, message).position(extra.pos + 1));
        }
        if given.len() < columns.len() {
            let message = "INSERT has more target columns than expressions";
            let pos = columns[given.len()].1;
            return Err(Error::new(state::SYNTAX_ERROR, message).position(pos + 1));
        }
        let table = target.given.clone();
        let mut values: Vec<Option<Expr>> = vec![None; table.columns.len()];
        for (value, (attnum, _)) in given.iter().zip(&columns) {
            let column = table.column(*attnum);
            let is_default = matches!(value.node, Node::Default);
            self.check_given(overriding, column, is_default)?;
            let of_system = overriding == Some(Overriding::User) && column.identity.is_some();
            if is_default || of_system {
                continue;
            }
            let expr = self.in_clause(Clause::Values, |b| b.expr(value, scope))?;
            let expr = self.assign_to(expr, column, value.pos)?;
            values[usize::from(*attnum) - 1] = Some(expr);
        }
        values
            .into_iter()
            .zip(&table.columns)
            .map(|(value, column)| match value {
                Some(value) => Ok(value),
                None => self.default_of(column),
            })
            .collect()
    }

    /// `MERGE_ACTION()`.
    pub(in crate::binder) fn merged_how(&self, pos: Pos) -> Result<Expr> {
        let Some(rel) = self.merging else {
            let message =
                "MERGE_ACTION() can only be used in the RETURNING list of a MERGE command";
            return Err(at(Error::new(state::SYNTAX_ERROR, message), pos));
        };
        Ok(Expr::Var(Var {
            rel,
            column: system::MERGE_ACTION,
            ty: SqlType::TEXT,
        }))
    }

    /// The join, what its rows must meet, and which of them are pairs.
    fn joined(
        &mut self,
        joined: Joined,
        actions: &[MergeAction],
    ) -> (FromItem, Option<Expr>, Expr) {
        let Joined {
            target,
            visible,
            mut source,
            on,
        } = joined;
        let any = |of| actions.iter().any(|a| a.of == of);
        let by_source = any(MergeMatch::NotMatchedBySource);
        let by_target = any(MergeMatch::NotMatchedByTarget);
        let pair: Vec<Expr> = visible.iter().cloned().chain([on]).collect();
        let there = by_source.then(|| self.presence(&mut source));
        let matched: Vec<Expr> = there.iter().cloned().chain(pair.clone()).collect();
        let kind = match (by_target, by_source) {
            (false, false) => JoinKind::Inner,
            (true, false) => JoinKind::Right,
            (false, true) => JoinKind::Left,
            (true, true) => JoinKind::Full,
        };
        let filter = match (visible, there) {
            (Some(visible), Some(there)) if by_target => Some(Expr::Or(vec![there, visible])),
            (Some(visible), Some(_)) => Some(visible),
            _ => None,
        };
        let whole = |conditions: Vec<Expr>| Expr::all_of(conditions);
        let item = FromItem::Join {
            kind,
            left: Box::new(target),
            right: Box::new(source),
            on: whole(pair),
            using: vec![],
            alias: None,
        };
        let matched = whole(matched).unwrap_or_else(|| Expr::bool(true));
        (item, filter, matched)
    }

    /// Whether there is a row of an item, which may be missing.
    fn presence(&mut self, item: &mut FromItem) -> Expr {
        match item {
            FromItem::Join {
                kind, left, right, ..
            } => match kind {
                JoinKind::Right => self.presence(right),
                JoinKind::Full => Expr::Or(vec![self.presence(left), self.presence(right)]),
                _ => self.presence(left),
            },
            FromItem::Rel(rel) => {
                let place = match rel.kind {
                    RelKind::Table(_) => var(rel.id, system::CTID, SqlType::TID),
                    _ => self.marked(rel),
                };
                Expr::IsNotNull(Box::new(place))
            }
        }
    }

    /// Gives an entry one more column, which is never NULL.
    fn marked(&mut self, rel: &mut Box<Rel>) -> Expr {
        let inner = self.new_rel();
        let mut read = rel.clone();
        read.id = inner;
        let mut targets: Vec<Target> = rel
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| Target {
                expr: var(inner, i as i16 + 1, column.ty),
                name: column.name.clone(),
            })
            .collect();
        targets.push(Target {
            expr: Expr::bool(true),
            name: "present".to_owned(),
        });
        rel.columns.push(RelColumn {
            name: "present".to_owned(),
            ty: SqlType::BOOL,
        });
        let query = self.select_query(vec![FromItem::Rel(read)], targets);
        rel.kind = RelKind::Subquery {
            query: Box::new(query),
            lateral: false,
        };
        var(rel.id, rel.columns.len() as i16, SqlType::BOOL)
    }
}

/// The columns that an action writes to.
fn merged_columns(
    when: &ast::MergeWhen,
    action: &MergeAction,
    target: &WriteTarget,
) -> Result<Vec<u16>> {
    let named = match (&when.action, &action.write) {
        (_, MergeWrite::Update(set)) => return Ok(set.iter().map(|(n, _)| *n).collect()),
        (ast::MergeAction::Insert { columns, .. }, _) if !columns.is_empty() => {
            named_columns(columns, &[], target)?
        }
        (ast::MergeAction::Insert { values, .. }, _) => {
            let given = values.as_ref().map_or(0, Vec::len);
            let all = target.all().take(given);
            all.map(|name| Ok((target.column(name, 0)?, 0)))
                .collect::<Result<Vec<_>>>()?
        }
        _ => vec![],
    };
    Ok(named.into_iter().map(|(n, _)| n).collect())
}

/// What the actions compute and ask.
fn written_exprs(actions: &[MergeAction]) -> impl Iterator<Item = &Expr> {
    actions.iter().flat_map(|action| {
        let values: Vec<&Expr> = match &action.write {
            MergeWrite::Insert(values) => values.iter().collect(),
            MergeWrite::Update(set) => set.iter().map(|(_, e)| e).collect(),
            MergeWrite::Nothing | MergeWrite::Delete => vec![],
        };
        action.condition.iter().chain(values)
    })
}

#[derive(Clone)]
struct Joined {
    target: FromItem,
    /// What views show of it.
    visible: Option<Expr>,
    source: FromItem,
    on: Expr,
}

fn var(rel: RelId, column: i16, ty: SqlType) -> Expr {
    Expr::Var(Var { rel, column, ty })
}

fn check_reachable(whens: &[ast::MergeWhen]) -> Result<()> {
    for (i, when) in whens.iter().enumerate() {
        let ends = |w: &&ast::MergeWhen| w.of == when.of && w.condition.is_none();
        if whens[..i].iter().any(|w| ends(&w)) {
            let message = "unreachable WHEN clause specified after unconditional WHEN clause";
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
    }
    Ok(())
}

/// The error about a name that is not seen, where it is one of `hidden`.
fn out_of_reach(error: Error, hidden: &Names) -> Error {
    let fields = error.fields();
    let quoted = |message: &str| message.split('"').nth(1).map(str::to_owned);
    let Some(name) = quoted(&fields.message) else {
        return error;
    };
    if error.code() == state::UNDEFINED_TABLE
        && fields.message.starts_with("missing FROM-clause entry")
        && hidden.tables.iter().any(|t| t.name == name)
    {
        let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
        let position = fields.position;
        let mut error = Error::new(state::UNDEFINED_TABLE, message).detail(format!(
            "There is an entry for table \"{name}\", but it cannot be referenced from this part of the query."
        ));
        error.fields_mut().position = position;
        return error;
    }
    let named =
        |t: &&crate::binder::query::scope::NamedTable| t.columns.iter().any(|c| c.name == name);
    if error.code() == state::UNDEFINED_COLUMN
        && let Some(table) = hidden.tables.iter().find(named)
    {
        return error.detail(format!(
            "There is a column named \"{name}\" in table \"{}\", but it cannot be referenced from this part of the query.",
            table.name
        ));
    }
    error
}
