//! INSERT, UPDATE and DELETE: where their rows come from, and what is computed from them.

use std::sync::Arc;

use throng_bind::query::CheckExpr;
use throng_syntax::vocabulary::TableLock;
use throng_types::{Error, Oid, Result};

use super::access::{TableRef, Wanted};
use super::select::output_column;
use super::{
    Chosen, Columns, ConflictNode, ConflictUpdate, Cost, CursorUse, DeleteNode, InheritedTarget,
    InsertNode, LeafLocks, Member, NEW_SYSTEM, Node, OutputColumn, Plan, Planner, StatementTag,
    UpdateNode,
};
use throng_bind::expr::{Expr, RelId, system};
use throng_bind::query::walk::QueryPartMut;
use throng_bind::query::{Check, ConflictAction, Delete, FromItem, Insert, Target, Update};
use throng_bind::route::{Division, Leaf, Routing};
use throng_catalog::{TableDef, fires};

pub(super) type Planned = (StatementTag, Plan, Vec<OutputColumn>);

/// A whole row of a table under `rel`, then its ctid.
pub(super) fn row_and_tid(table: &TableDef, rel: RelId) -> Columns {
    let mut columns = Columns::of(rel, 1..=table.columns.len() as i16);
    columns.push(Some((rel, system::CTID)));
    columns
}

/// A whole new row under `rel`, then its system columns.
fn new_row(table: &TableDef, rel: RelId) -> Columns {
    let mut columns = Columns::of(rel, 1..=table.columns.len() as i16);
    for column in NEW_SYSTEM {
        columns.push(Some((rel, column)));
    }
    columns
}

/// 0A000 for system columns of rows that are not known to have them.
pub(super) fn only_places(targets: &[Target], rels: &[RelId]) -> Result<()> {
    let mut other = false;
    for target in targets {
        target.expr.for_each_var(&mut |var| {
            other |= rels.contains(&var.rel) && (system::CMAX..system::CTID).contains(&var.column);
        });
    }
    match other {
        true => Err(Error::unsupported("this system column in RETURNING")),
        false => Ok(()),
    }
}

impl Planner<'_> {
    /// `columns`: the new row under `rel`.
    pub(super) fn checks(
        &mut self,
        checks: Vec<Check>,
        columns: &Columns,
        table: &TableDef,
        rel: RelId,
    ) -> Result<Vec<CheckExpr>> {
        checks
            .into_iter()
            .map(|c| {
                Ok(CheckExpr {
                    of: c.of,
                    name: c.name,
                    expr: self.place(with_table_oid(c.expr, &[rel], table), columns)?,
                })
            })
            .collect()
    }

    /// Values for columns, over a row.
    pub(super) fn assigned(
        &mut self,
        values: Vec<(u16, Expr)>,
        columns: &Columns,
    ) -> Result<Vec<(u16, Expr)>> {
        values
            .into_iter()
            .map(|(attnum, expr)| Ok((attnum, self.place(expr, columns)?)))
            .collect()
    }

    /// `rels`: the entries that stand for rows of the table, first the one it goes by.
    pub(super) fn returning(
        &mut self,
        targets: &[Target],
        columns: &Columns,
        table: &Arc<TableDef>,
        rels: &[RelId],
    ) -> Result<(Vec<Expr>, Vec<OutputColumn>)> {
        let from = [FromItem::of_table(table, rels[0], None, false)];
        let output = targets
            .iter()
            .map(|t| output_column(&t.name, &t.expr, &from))
            .collect();
        let exprs = targets
            .iter()
            .map(|t| {
                // Rows of a table with children tell their own.
                let told = |rel: &&RelId| columns.get(**rel, system::TABLEOID).is_none();
                let fixed: Vec<RelId> = rels.iter().filter(told).copied().collect();
                self.place(with_table_oid(t.expr.clone(), &fixed, table), columns)
            })
            .collect::<Result<_>>()?;
        Ok((exprs, output))
    }

    pub(super) fn insert(&mut self, insert: Insert) -> Result<Planned> {
        let Insert {
            table,
            rel,
            old,
            source,
            values,
            generated,
            on_conflict,
            checks,
            returning,
        } = insert;
        self.lock(table.oid, TableLock::RowExclusive);
        let input = self.query(&source)?;
        let columns = Columns::of(source.output, 1..=input.plan.types.len() as i16);
        let values = self.place_all(values, &columns)?;
        let input = self.project(input.plan, values);

        let mut existing = row_and_tid(&table, rel);
        let routing = Routing::of(&table, self.ctx.catalog, self.ctx.eval)?;
        if let Some(routing) = &routing {
            existing.push(Some((rel, system::TABLEOID)));
            let tree = &routing.tree;
            let leaves = tree.leaves.iter().map(|leaf| leaf.oid);
            match Chosen::of_rows(&input, tree, table.columns.len()) {
                Some(chosen) if !tree.divisions.is_empty() => {
                    let locks = leaves
                        .enumerate()
                        .map(|(at, oid)| (at, oid, TableLock::RowExclusive));
                    self.leaf_locks.push(LeafLocks {
                        rel,
                        tree: tree.clone(),
                        chosen,
                        locks: locks.collect(),
                    });
                }
                _ => leaves.for_each(|oid| self.lock(oid, TableLock::RowExclusive)),
            }
        }
        let on_conflict = match on_conflict {
            None => None,
            Some(conflict) => Some(ConflictNode {
                arbiters: conflict.arbiters,
                update: match conflict.action {
                    ConflictAction::Nothing => None,
                    ConflictAction::Update {
                        excluded,
                        set,
                        filter,
                        guards,
                    } => {
                        let proposed = Columns::of(excluded, 1..=table.columns.len() as i16);
                        let both = existing.join(&proposed);
                        Some(ConflictUpdate {
                            set: self.assigned(set, &both)?,
                            filter: filter.map(|f| self.place(f, &both)).transpose()?,
                            guards: self.checks(guards, &both, &table, rel)?,
                        })
                    }
                },
            }),
        };
        let mut new_row = new_row(&table, rel);
        let generated = self.assigned(generated, &new_row)?;
        let checks = self.checks(checks, &new_row, &table, rel)?;
        if routing.is_some() {
            // The row that it replaced was in the same table.
            new_row.also((old, system::TABLEOID), new_row.width);
            new_row.push(Some((rel, system::TABLEOID)));
        }
        let mut returns_old = false;
        for target in &returning {
            target
                .expr
                .for_each_var(&mut |var| returns_old |= var.rel == old);
        }
        if returns_old {
            only_places(&returning, &[old])?;
            new_row = new_row.join(&row_and_tid(&table, old));
        }
        let (returning, output) = self.returning(&returning, &new_row, &table, &[rel, old])?;
        let cost = input.cost;
        let types = returning.iter().map(Expr::ty).collect();
        let node = InsertNode {
            table,
            input,
            generated,
            on_conflict,
            checks,
            returns_old,
            returning,
            routing: routing.map(Box::new),
        };
        Ok((
            StatementTag::Insert,
            self.node(Node::Insert(Box::new(node)), types, cost),
            output,
        ))
    }

    /// The rows of an UPDATE or DELETE: the target, joined with the other items.
    fn target_rows(
        &mut self,
        table: &Arc<TableDef>,
        rel: RelId,
        only: bool,
        from: &[FromItem],
        filter: Option<Expr>,
    ) -> Result<super::Built> {
        self.lock(table.oid, TableLock::RowExclusive);
        self.target = Some(rel);
        let mut conditions = Vec::new();
        if let Some(filter) = filter {
            filter.conjuncts(&mut conditions);
        }
        if !table.has_rows() {
            // A view whose triggers act instead: its rows are the first item.
            return self.from(from, conditions, &Wanted::default());
        }
        if from.is_empty()
            && !conditions
                .iter()
                .any(|c| c.any(&mut |e| matches!(e, Expr::Subquery(_))))
        {
            let source = TableRef {
                rel,
                alias: &table.name,
                table,
                sample: None,
            };
            return match only || !self.has_kin(table) {
                true => self.table(&source, conditions, &Wanted::default()),
                false => self.family(&source, conditions, &Wanted::default()),
            };
        }
        let mut items = vec![FromItem::of_table(table, rel, None, only)];
        items.extend_from_slice(from);
        self.from(&items, conditions, &Wanted::default())
    }

    /// The tables behind the target, where it has children and they are meant.
    pub(super) fn target_family(
        &mut self,
        table: &Arc<TableDef>,
        rel: RelId,
        only: bool,
        columns: &Columns,
    ) -> Result<Option<Box<InheritedTarget>>> {
        if only || !self.has_kin(table) {
            return Ok(None);
        }
        let tableoid = columns
            .get(rel, system::TABLEOID)
            .ok_or_else(|| Error::internal("a target's tableoid is not in the row"))?;
        let mut members = Vec::new();
        for (place, kin) in self.read_kin(rel, table)? {
            self.lock_leaf(rel, place, kin.table.oid, TableLock::RowExclusive);
            members.push(Member {
                rel: kin.rel,
                place,
                leaf: Leaf::of(&kin.table, table, self.ctx.catalog, self.ctx.eval)?,
                columns: kin.columns,
            });
        }
        let tables = members.iter().map(|member: &Member| member.leaf.table.oid);
        let mut by_table: Vec<(Oid, usize)> = tables.zip(0..).collect();
        by_table.sort_unstable();
        Ok(Some(Box::new(InheritedTarget {
            tableoid,
            members,
            by_table,
        })))
    }

    /// Locks the leaves that a changed row may go to: all of them, where its partition key changes
    /// or triggers may change it.
    fn lock_destinations(
        &mut self,
        routing: &Routing,
        set: &[(u16, Expr)],
        family: &InheritedTarget,
    ) {
        let catalog = self.ctx.catalog;
        let top = &routing.table;
        let names_set: Vec<&str> = set
            .iter()
            .map(|(attnum, _)| top.column(*attnum).name.as_str())
            .collect();
        let is_key = |division: &Division| {
            let key = division.table.partitioned.as_ref();
            let attnum = |name: &&str| division.table.attnum(name);
            let mut columns = names_set.iter().filter_map(attnum);
            key.is_some_and(|key| columns.any(|attnum| key.has_column(attnum)))
        };
        let changes = |member: &Member| {
            let mut triggers = catalog.triggers_of(member.leaf.table.oid).iter();
            triggers.any(|t| t.for_each_row() && t.is_before() && t.is_on(fires::UPDATE))
        };
        if routing.divisions().iter().any(is_key) || family.members.iter().any(changes) {
            for leaf in &routing.tree.leaves {
                self.lock(leaf.oid, TableLock::RowExclusive);
            }
        }
    }

    /// Notes the cursor of WHERE CURRENT OF.
    fn stand_on(&mut self, cursor: Option<String>, table: &TableDef) -> Result<()> {
        let Some(name) = cursor else { return Ok(()) };
        if self.cursor.is_some() {
            return Err(Error::unsupported("WHERE CURRENT OF twice in a statement"));
        }
        let table = table.oid;
        self.cursor = Some(CursorUse { name, table });
        Ok(())
    }

    /// Where the target's ctid, if it has one, and columns are in the rows.
    pub(super) fn target_slots(
        table: &TableDef,
        rel: RelId,
        columns: &Columns,
    ) -> Result<(u32, Vec<u32>)> {
        let slot = |column| {
            columns
                .get(rel, column)
                .ok_or_else(|| Error::internal("a target's column is not in the row"))
        };
        let old = (1..=table.columns.len() as i16)
            .map(slot)
            .collect::<Result<_>>()?;
        let tid = match table.has_rows() {
            true => slot(system::CTID)?,
            false => u32::MAX,
        };
        Ok((tid, old))
    }

    pub(super) fn update(&mut self, update: Update) -> Result<Planned> {
        let Update {
            table,
            rel,
            from,
            filter,
            set,
            generated,
            checks,
            returning,
            new,
            only,
            current_of,
        } = update;
        self.stand_on(current_of, &table)?;
        let input = self.target_rows(&table, rel, only, &from, filter)?;
        let others = self.row_sources(&from, &input.columns)?;
        let family = self.target_family(&table, rel, only, &input.columns)?;
        let routing = match only && table.is_partitioned() {
            true => None,
            false => Routing::of(&table, self.ctx.catalog, self.ctx.eval)?,
        };
        if let (Some(routing), Some(family)) = (&routing, &family) {
            self.lock_destinations(routing, &set, family);
        }
        let (tid, old) = Self::target_slots(&table, rel, &input.columns)?;
        let set = self.assigned(set, &input.columns)?;
        let mut new_row = new_row(&table, new);
        let generated = self.assigned(generated, &new_row)?;
        let checks = self.checks(checks, &new_row, &table, new)?;
        if family.is_some() {
            new_row.push(Some((new, system::TABLEOID)));
        }
        let whole = new_row.join(&input.columns);
        let (returning, output) = self.returning(&returning, &whole, &table, &[new, rel])?;
        let types = returning.iter().map(Expr::ty).collect();
        let cost = write_cost(&input.plan.cost);
        let node = UpdateNode {
            rel,
            table,
            input: input.plan,
            tid,
            others,
            old,
            set,
            generated,
            checks,
            returning,
            family,
            routing: routing.map(Box::new),
        };
        Ok((
            StatementTag::Update,
            self.node(Node::Update(Box::new(node)), types, cost),
            output,
        ))
    }

    pub(super) fn delete(&mut self, delete: Delete) -> Result<Planned> {
        let Delete {
            table,
            rel,
            from,
            filter,
            returning,
            only,
            current_of,
        } = delete;
        self.stand_on(current_of, &table)?;
        let input = self.target_rows(&table, rel, only, &from, filter)?;
        let others = self.row_sources(&from, &input.columns)?;
        let family = self.target_family(&table, rel, only, &input.columns)?;
        let (tid, old) = Self::target_slots(&table, rel, &input.columns)?;
        let (returning, output) = self.returning(&returning, &input.columns, &table, &[rel])?;
        let types = returning.iter().map(Expr::ty).collect();
        let cost = write_cost(&input.plan.cost);
        let node = DeleteNode {
            rel,
            table,
            input: input.plan,
            tid,
            others,
            old,
            returning,
            family,
        };
        Ok((
            StatementTag::Delete,
            self.node(Node::Delete(Box::new(node)), types, cost),
            output,
        ))
    }
}

pub(super) fn write_cost(input: &Cost) -> Cost {
    super::cost::per_row(input, 4.0)
}

/// `tableoid` of a row being written is a constant.
fn with_table_oid(mut expr: Expr, rels: &[RelId], table: &TableDef) -> Expr {
    expr.walk_mut(&mut |part| {
        if let QueryPartMut::Expr(e) = part
            && let Expr::Var(var) = e
            && rels.contains(&var.rel)
            && var.column == system::TABLEOID
        {
            *e = Expr::Const(throng_types::Datum::Oid(table.oid.0), var.ty);
        }
    });
    expr
}
