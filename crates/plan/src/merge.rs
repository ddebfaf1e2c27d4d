//! MERGE: a join of the source with the target, and what is computed from its rows.

use throng_syntax::vocabulary::TableLock;
use throng_types::{Error, Result};

use super::access::Wanted;
use super::write::{Planned, only_places, row_and_tid, write_cost};
use super::{Columns, MergeNode, Node, Planner, StatementTag};
use throng_bind::expr::{Expr, system};
use throng_bind::query::{FromItem, Merge, MergeAction, MergeWrite};
use throng_bind::route::Routing;

impl Planner<'_> {
    pub(super) fn merge(&mut self, merge: Merge) -> Result<Planned> {
        let Merge {
            table,
            rel,
            from,
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
        } = merge;
        self.lock(table.oid, TableLock::RowExclusive);
        self.target = Some(rel);
        let mut conditions = Vec::new();
        if let Some(filter) = filter {
            filter.conjuncts(&mut conditions);
        }
        let alias = from.iter().find_map(|item| alias_of(item, rel));
        let input = self.from(&from, conditions, &Wanted::default())?;
        let family = self.target_family(&table, rel, only, &input.columns)?;
        let routing = Routing::of(&table, self.ctx.catalog, self.ctx.eval)?;
        for leaf in routing.iter().flat_map(|routing| &routing.tree.leaves) {
            self.lock(leaf.oid, TableLock::RowExclusive);
        }
        let (mut tid, old) = Self::target_slots(&table, rel, &input.columns)?;
        if !table.has_rows() {
            // Of a view: whether there is one of its rows.
            let there = input.columns.get(rel, table.columns.len() as i16 + 1);
            tid = there.ok_or_else(|| Error::internal("a view's rows are not marked"))?;
        }
        let matched = self.place(matched, &input.columns)?;
        let visible = visible.map(|e| self.place(e, &input.columns)).transpose()?;
        let actions = actions
            .into_iter()
            .map(|action| self.merge_action(action, &input.columns))
            .collect::<Result<_>>()?;
        only_places(&returning, &[row, new])?;
        let mut whole = row_and_tid(&table, row);
        let generated = self.assigned(generated, &whole)?;
        let checks = self.checks(checks, &whole, &table, row)?;
        whole.push(Some((row, system::MERGE_ACTION)));
        let mut after = row_and_tid(&table, new);
        if family.is_some() {
            whole.push(Some((row, system::TABLEOID)));
            after.push(Some((new, system::TABLEOID)));
        }
        let whole = whole.join(&after).join(&input.columns);
        let (returning, output) = self.returning(&returning, &whole, &table, &[row, new, rel])?;
        let types = returning.iter().map(Expr::ty).collect();
        let cost = write_cost(&input.plan.cost);
        let node = MergeNode {
            rel,
            alias,
            table,
            input: input.plan,
            tid,
            old,
            matched,
            visible,
            actions,
            generated,
            checks,
            returning,
            family,
            routing: routing.map(Box::new),
        };
        Ok((
            StatementTag::Merge,
            self.node(Node::Merge(Box::new(node)), types, cost),
            output,
        ))
    }

    fn merge_action(&mut self, action: MergeAction, columns: &Columns) -> Result<MergeAction> {
        let MergeAction {
            of,
            condition,
            write,
            mut guards,
        } = action;
        let condition = condition.map(|e| self.place(e, columns)).transpose()?;
        let write = match write {
            MergeWrite::Insert(values) => MergeWrite::Insert(self.place_all(values, columns)?),
            MergeWrite::Update(set) => MergeWrite::Update(self.assigned(set, columns)?),
            other => other,
        };
        for guard in &mut guards {
            let expr = std::mem::replace(&mut guard.expr, Expr::bool(true));
            guard.expr = self.place(expr, columns)?;
        }
        Ok(MergeAction {
            of,
            condition,
            write,
            guards,
        })
    }
}

/// The alias of an entry, where it has one.
fn alias_of(item: &FromItem, rel: throng_bind::expr::RelId) -> Option<String> {
    match item {
        FromItem::Rel(found) => (found.id == rel && found.aliased).then(|| found.alias.clone()),
        FromItem::Join { left, right, .. } => alias_of(left, rel).or_else(|| alias_of(right, rel)),
    }
}

impl MergeNode {
    /// Calls `f` on every expression over the input's rows and the target's.
    pub(super) fn own_exprs<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        f(&self.matched);
        self.visible.iter().for_each(&mut *f);
        for action in &self.actions {
            action.condition.iter().for_each(&mut *f);
            action.guards.iter().for_each(|c| f(&c.expr));
            match &action.write {
                MergeWrite::Insert(values) => values.iter().for_each(&mut *f),
                MergeWrite::Update(set) => set.iter().for_each(|(_, e)| f(e)),
                MergeWrite::Nothing | MergeWrite::Delete => {}
            }
        }
        self.generated.iter().for_each(|(_, e)| f(e));
        self.checks.iter().for_each(|c| f(&c.expr));
        self.returning.iter().for_each(f);
    }
}
