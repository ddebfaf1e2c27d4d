//! Tables with children: a read of the parent is a read of each table that has rows, one after
//! another.

use std::sync::Arc;

use throng_bind::fold;
use throng_syntax::vocabulary::TableLock;
use throng_types::error::state;
use throng_types::{Error, Oid, Result, SqlType};

use super::access::{TableRef, Wanted};
use super::{
    Append, AppendInput, Built, Chosen, Columns, Cost, LeafLocks, Node, OrderedBy, Planner,
    Pruning, cost, prune,
};
use throng_bind::binder::partition_tree;
use throng_bind::expr::{Expr, RelId, Var, system};
use throng_bind::query::walk::QueryPartMut;
use throng_bind::route::Tree;
use throng_catalog::TableDef;
use throng_catalog::partition::columns_in_child;

/// A table that has rows of its parent.
#[derive(Clone, Debug)]
pub(super) struct Kin {
    /// The entry that stands for it.
    pub rel: RelId,
    pub table: Arc<TableDef>,
    /// For each of the parent's columns its attribute number here.
    pub columns: Arc<[u16]>,
}

/// A parent's tables, in the order in which they are read.
#[derive(Debug)]
pub(super) enum Kindred {
    /// The leaves of a partitioned table.
    Leaves(Arc<Tree>),
    Children(Vec<Arc<TableDef>>),
}

impl Kindred {
    pub fn tables(&self) -> &[Arc<TableDef>] {
        match self {
            Kindred::Leaves(tree) => &tree.leaves,
            Kindred::Children(tables) => tables,
        }
    }

    fn tree(&self) -> Option<&Arc<Tree>> {
        match self {
            Kindred::Leaves(tree) => Some(tree),
            Kindred::Children(_) => None,
        }
    }
}

fn child_column(column: i16, kin: &Kin) -> i16 {
    match usize::try_from(column - 1) {
        // What was dropped is not looked at, whatever stands in its place.
        Ok(at) => match kin.columns.get(at) {
            None | Some(0) => system::TABLEOID,
            Some(n) => *n as i16,
        },
        Err(_) => column,
    }
}

/// The parent's columns as the child's.
fn for_child(expr: &Expr, parent: RelId, kin: &Kin) -> Expr {
    let mut expr = expr.clone();
    expr.walk_mut(&mut |part| {
        if let QueryPartMut::Expr(Expr::Var(var)) = part
            && var.rel == parent
        {
            var.column = child_column(var.column, kin);
            var.rel = kin.rel;
        }
    });
    expr
}

impl Planner<'_> {
    /// Whether reading the table is reading others, too.
    pub(super) fn has_kin(&self, table: &TableDef) -> bool {
        let children = self.ctx.catalog.children_of(table.oid);
        table.is_partitioned() || children.iter().any(|child| !self.is_elsewhere(*child))
    }

    /// Whether it is another session's temporary table.
    fn is_elsewhere(&self, table: Oid) -> bool {
        let table = self.ctx.catalog.table(table);
        table.is_some_and(|t| {
            t.persistence.is_temporary() && Some(t.schema) != self.ctx.temporary_schema
        })
    }

    /// The tables behind an entry, the same each time.
    pub(super) fn kindred(&mut self, rel: RelId, table: &Arc<TableDef>) -> Result<Arc<Kindred>> {
        if let Some(known) = self.kindred.get(&rel) {
            return Ok(known.clone());
        }
        let catalog = self.ctx.catalog;
        let kindred = Arc::new(match table.is_partitioned() {
            true => Kindred::Leaves(partition_tree(table, catalog, self.ctx.eval)?),
            false => {
                let all = catalog.descendants(table.oid).into_iter();
                let here = all.filter(|oid| *oid == table.oid || !self.is_elsewhere(*oid));
                let tables = here.filter_map(|oid| catalog.table(oid).cloned());
                Kindred::Children(tables.collect())
            }
        });
        self.kindred.insert(rel, kindred.clone());
        Ok(kindred)
    }

    /// One of the tables behind an entry, the same each time.
    pub(super) fn kin(
        &mut self,
        rel: RelId,
        table: &TableDef,
        child: &Arc<TableDef>,
    ) -> Result<Kin> {
        if let Some(known) = self.kin.get(&(rel, child.oid)) {
            return Ok(known.clone());
        }
        if self.ctx.catalog.base().is_some() {
            must_still_fit(table, child)?;
        }
        let kin = Kin {
            rel: self.new_rel(),
            columns: columns_in_child(table, child).into(),
            table: child.clone(),
        };
        self.kin.insert((rel, child.oid), kin.clone());
        Ok(kin)
    }

    /// Those of the tables behind an entry that are read, with their places among all, ascending.
    pub(super) fn read_kin(
        &mut self,
        rel: RelId,
        table: &Arc<TableDef>,
    ) -> Result<Vec<(usize, Kin)>> {
        let kindred = self.kindred(rel, table)?;
        let read: Vec<usize> = match self.kept.get(&rel) {
            Some(kept) => kept.iter().copied().collect(),
            None => (0..kindred.tables().len()).collect(),
        };
        let tables = kindred.tables();
        let kin = read
            .into_iter()
            .map(|at| Ok((at, self.kin(rel, table, &tables[at])?)));
        kin.collect()
    }

    /// Reads a table and its children.
    pub(super) fn family(
        &mut self,
        source: &TableRef<'_>,
        conditions: Vec<Expr>,
        wanted: &Wanted,
    ) -> Result<Built> {
        self.lock(source.table.oid, TableLock::AccessShare);
        let kindred = self.kindred(source.rel, source.table)?;
        let all = self.secured(source.rel, conditions.clone()).conditions;
        let mut kept: Vec<usize> = match &*kindred {
            Kindred::Leaves(tree) => {
                let known = all.iter().map(|c| self.over_row(c, source.rel));
                let known: Vec<Expr> = known.collect();
                prune::leaves(&tree.divisions, &known)?
                    .into_iter()
                    .collect()
            }
            Kindred::Children(tables) => (0..tables.len()).collect(),
        };
        let pruning = match kindred.tree().filter(|_| kept.len() > 1) {
            Some(tree) => self.pruning(tree, source.rel, &all)?,
            None => None,
        };
        if pruning.is_some() && self.ctx.most_unknown.is_some_and(|most| kept.len() > most) {
            self.wants_values = true;
            kept.truncate(1);
        }
        self.kept.entry(source.rel).or_default().extend(&kept);
        let columns = self.needed_columns(source.rel);
        let types: Vec<SqlType> = columns
            .iter()
            .map(|c| super::access::column_type(source.table, *c))
            .collect();
        let places = Columns::of(source.rel, columns.iter().copied());
        let single = kept.len() == 1;
        let waits = pruning.as_ref();
        let expected = waits.and_then(|pruning| prune::leaves_now(pruning, &self.ctx.eval));
        let chosen = waits.and_then(Chosen::at_start);
        let mut leaf_locks = Vec::new();
        let mut inputs = Vec::with_capacity(kept.len());
        let mut order = Vec::new();
        let mut total = Cost {
            width: cost::width(&types),
            ..Cost::default()
        };
        for (number, at) in kept.iter().enumerate() {
            let kin = &self.kin(source.rel, source.table, &kindred.tables()[*at])?;
            let alias = match single && self.target != Some(source.rel) {
                true => source.alias.to_owned(),
                false => format!("{}_{}", source.alias, number + 1),
            };
            let wish = match single {
                true => wanted_of(wanted, source.rel, kin),
                false => Wanted::default(),
            };
            let held = self.locks.get(&kin.table.oid).copied();
            let built = self.member(source, kin, &alias, &columns, &conditions, &wish)?;
            if chosen.is_some()
                && held.is_none()
                && let Some(mode) = self.locks.remove(&kin.table.oid)
            {
                leaf_locks.push((*at, kin.table.oid, mode));
            }
            let slots: Vec<u32> = columns
                .iter()
                .filter_map(|c| built.columns.get(kin.rel, child_column(*c, kin)))
                .collect();
            let same = built.plan.types.len() == columns.len()
                && slots.iter().enumerate().all(|(i, s)| *s as usize == i);
            if expected.as_ref().is_none_or(|leaves| leaves.contains(at)) {
                total.append(&built.plan.cost);
            }
            if single {
                order = order_of_parent(&built.order, source.rel, kin);
            }
            inputs.push(AppendInput {
                rel: kin.rel,
                leaf: *at,
                plan: built.plan,
                slots: if same { Vec::new() } else { slots },
            });
        }
        if let (Some(chosen), Kindred::Leaves(tree)) = (chosen, &*kindred) {
            self.leaf_locks.push(LeafLocks {
                rel: source.rel,
                tree: tree.clone(),
                chosen,
                locks: leaf_locks,
            });
        }
        if let ([input], true) = (&inputs[..], single)
            && input.slots.is_empty()
            && let Some(input) = inputs.pop()
        {
            return Ok(Built {
                plan: input.plan,
                columns: places,
                order,
            });
        }
        if inputs.is_empty() {
            let plan = self.node(Node::Values { rows: Vec::new() }, types, total);
            return Ok(Built {
                plan,
                columns: places,
                order,
            });
        }
        let node = Node::Append(Box::new(Append { inputs, pruning }));
        Ok(Built {
            plan: self.node(node, types, total),
            columns: places,
            order,
        })
    }

    fn member(
        &mut self,
        parent: &TableRef<'_>,
        kin: &Kin,
        alias: &str,
        columns: &[i16],
        conditions: &[Expr],
        wanted: &Wanted,
    ) -> Result<Built> {
        let needed = columns.iter().map(|c| child_column(*c, kin)).collect();
        self.needed.insert(kin.rel, needed);
        let own = |c: &Expr| for_child(c, parent.rel, kin);
        let conditions = conditions.iter().map(own).collect();
        if let Some(security) = self.security.get(&parent.rel) {
            let security = security.iter().map(own).collect();
            self.security.insert(kin.rel, security);
        }
        let source = TableRef {
            rel: kin.rel,
            alias,
            table: &kin.table,
            sample: parent.sample,
        };
        self.table(&source, conditions, wanted)
    }

    /// A condition over the entry's row by slot, what is constant in it computed.
    fn over_row(&self, condition: &Expr, rel: RelId) -> Expr {
        let mut expr = condition.clone();
        if let Expr::Var(Var {
            rel: of,
            column,
            ty,
        }) = &expr
            && *of == rel
            && *column > 0
        {
            return Expr::Slot(*column as u32 - 1, *ty);
        }
        expr.for_each_child_mut(&mut |child| *child = self.over_row(child, rel));
        fold::fold(expr, &self.ctx.eval)
    }

    /// What can be told of partitions when the statement is run: from parameters and from values
    /// around.
    fn pruning(
        &mut self,
        tree: &Arc<Tree>,
        rel: RelId,
        conditions: &[Expr],
    ) -> Result<Option<Pruning>> {
        let mut values = Vec::new();
        let mut kept = Vec::new();
        for condition in conditions {
            let condition = self.over_row(condition, rel);
            let before = values.len();
            let taken = self.lift(condition, &mut values);
            if values.len() > before {
                kept.push(taken);
            }
        }
        if values.is_empty() || !prune::can_tell(&tree.divisions, &kept) {
            return Ok(None);
        }
        let nothing = Columns::default();
        let mut placed = Vec::with_capacity(values.len());
        for value in values {
            placed.push(self.place(value, &nothing)?);
        }
        Ok(Some(Pruning {
            tree: tree.clone(),
            conditions: kept,
            values: placed,
        }))
    }

    /// Puts `Outer(i)` where a value stands that is known when the statement is run, and the value
    /// into the list.
    fn lift(&self, mut expr: Expr, values: &mut Vec<Expr>) -> Expr {
        let fixed = !expr.any(&mut |e| {
            matches!(
                e,
                Expr::Slot(..)
                    | Expr::Subquery(_)
                    | Expr::SubPlan(_)
                    | Expr::CaseOperand(_)
                    | Expr::Aggregate(_)
                    | Expr::SetCall { .. }
            ) || fold::is_volatile(e)
        });
        if fixed && !matches!(expr, Expr::Const(..)) {
            let ty = expr.ty();
            values.push(expr);
            return Expr::Outer(throng_bind::expr::ParamId(values.len() as u32 - 1), ty);
        }
        expr.for_each_child_mut(&mut |child| {
            *child = self.lift(std::mem::replace(child, Expr::bool(true)), values);
        });
        expr
    }
}

/// XX000 or 42611 for a child that is none any more and has become another since it was one.
fn must_still_fit(parent: &TableDef, child: &TableDef) -> Result<()> {
    for (_, column) in parent.live_columns() {
        let own = child.attnum(&column.name).map(|n| child.column(n));
        let what = format!(
            "attribute \"{}\" of relation \"{}\"",
            column.name, child.name
        );
        match own {
            None => {
                let message = format!("could not find inherited {what}");
                return Err(Error::new(state::INTERNAL_ERROR, message));
            }
            Some(own) if own.ty != column.ty => {
                let message = format!("{what} does not match parent's type");
                return Err(Error::new(state::INVALID_COLUMN_DEFINITION, message));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn wanted_of(wanted: &Wanted, parent: RelId, kin: &Kin) -> Wanted {
    let mut own = wanted.clone();
    for key in own.order.iter_mut().filter(|key| key.rel == parent) {
        key.rel = kin.rel;
        key.column = child_column(key.column, kin);
    }
    own
}

fn order_of_parent(order: &[OrderedBy], parent: RelId, kin: &Kin) -> Vec<OrderedBy> {
    let mut found = Vec::new();
    for key in order {
        let at = kin.columns.iter().position(|n| *n as i16 == key.column);
        let Some(at) = at else { break };
        found.push(OrderedBy {
            rel: parent,
            column: at as i16 + 1,
            ..*key
        });
    }
    found
}
