//! One entry of FROM: a table, a query, a function, a WITH query.

use throng_types::{Error, Result};

use super::access::{TableRef, Wanted};
use super::cost;
use super::pushdown;
use super::{Built, Columns, Cost, FunctionScan, Node, Planner, RoutineScan};
use throng_bind::expr::{Expr, RelId};
use throng_bind::leakproof::leaks;
use throng_bind::query::{FromItem, Query, Rel, RelKind};

impl Planner<'_> {
    /// The one row of a query without FROM.
    pub(super) fn one_row(&mut self) -> Built {
        let cost = Cost {
            startup: 0.0,
            total: cost::TUPLE,
            rows: 1.0,
            width: 0,
        };
        let plan = self.node(Node::Values { rows: vec![vec![]] }, Vec::new(), cost);
        Built {
            plan,
            columns: Columns::default(),
            order: Vec::new(),
        }
    }

    /// A query in FROM. `hides`: its conditions hide rows from whatever could tell of them.
    fn nested(
        &mut self,
        rel: RelId,
        query: &Query,
        mut conditions: Vec<Expr>,
        hides: bool,
    ) -> Result<Built> {
        let inner = match conditions.is_empty() {
            true => self.query(query)?,
            false => {
                let late: Vec<Expr> = conditions.extract_if(.., |c| hides && leaks(c)).collect();
                let mut query = query.clone();
                pushdown::push_down(&mut query, rel, &mut conditions);
                conditions.extend(late);
                self.query(&query)?
            }
        };
        let built = rename(inner.plan, rel);
        self.filter(built, conditions)
    }

    pub(super) fn rel(
        &mut self,
        rel: &Rel,
        conditions: Vec<Expr>,
        wanted: &Wanted,
    ) -> Result<Built> {
        match &rel.kind {
            RelKind::Table(table) => {
                let source = TableRef {
                    rel: rel.id,
                    alias: &rel.alias,
                    table,
                    sample: rel.sample.as_deref(),
                };
                match rel.only || !self.has_kin(table) {
                    true => self.table(&source, conditions, wanted),
                    false => self.family(&source, conditions, wanted),
                }
            }
            RelKind::Virtual(table) => {
                let columns = self.needed_columns(rel.id);
                let types = columns
                    .iter()
                    .map(|c| match *c {
                        n if n > 0 => table.columns[n as usize - 1].1,
                        _ => throng_types::SqlType::plain(throng_types::oid::OID),
                    })
                    .collect();
                let places = Columns::of(rel.id, columns.iter().copied());
                let key = self.virtual_key(rel.id, table, &conditions)?;
                let filter = Expr::all_of(self.place_all(conditions, &places)?);
                let (total, rows) = match key {
                    Some(_) => (0.5, 5.0),
                    None => (10.0, 100.0),
                };
                let cost = Cost {
                    startup: 0.0,
                    total,
                    rows,
                    width: 64,
                };
                let alias = rel.alias.clone();
                let node = Node::VirtualScan {
                    rel: rel.id,
                    alias,
                    table,
                    columns,
                    key,
                    filter,
                };
                let plan = self.node(node, types, cost);
                Ok(Built {
                    plan,
                    columns: places,
                    order: Vec::new(),
                })
            }
            RelKind::Subquery { query, .. } => self.nested(rel.id, query, conditions, false),
            RelKind::View { view, query } => {
                self.nested(rel.id, query, conditions, view.is_barrier())
            }
            RelKind::Function {
                func,
                args,
                composite,
                ordinality,
                ..
            } => {
                let types: Vec<_> = rel.columns.iter().map(|c| c.ty).collect();
                let places = Columns::of(rel.id, 1..=types.len() as i16);
                let args = self.place_all(args.clone(), &Columns::default())?;
                let filter = Expr::all_of(self.place_all(conditions, &places)?);
                let rows = if func.returns_set() { 1000.0 } else { 1.0 };
                let total = rows * cost::TUPLE;
                let cost = Cost {
                    startup: 0.0,
                    total,
                    rows,
                    width: cost::width(&types),
                };
                let scan = FunctionScan {
                    rel: rel.id,
                    alias: rel.alias.clone(),
                    func,
                    args,
                    composite: *composite,
                    ordinality: *ordinality,
                    filter,
                };
                let plan = self.node(Node::FunctionScan(scan), types, cost);
                Ok(Built {
                    plan,
                    columns: places,
                    order: Vec::new(),
                })
            }
            RelKind::Routine {
                call, ordinality, ..
            } => {
                let types: Vec<_> = rel.columns.iter().map(|c| c.ty).collect();
                let places = Columns::of(rel.id, 1..=types.len() as i16);
                let mut call = (**call).clone();
                call.args = self.place_all(call.args, &Columns::default())?;
                let filter = Expr::all_of(self.place_all(conditions, &places)?);
                let rows = call.def.rows.max(1.0);
                let total = rows * cost::TUPLE + call.def.cost * cost::OPERATOR;
                let cost = Cost {
                    startup: 0.0,
                    total,
                    rows,
                    width: cost::width(&types),
                };
                let scan = RoutineScan {
                    rel: rel.id,
                    alias: rel.alias.clone(),
                    call,
                    ordinality: *ordinality,
                    filter,
                };
                let plan = self.node(Node::RoutineScan(scan), types, cost);
                Ok(Built {
                    plan,
                    columns: places,
                    order: Vec::new(),
                })
            }
            RelKind::RowsFrom { items, ordinality } => {
                let mut inputs = Vec::with_capacity(items.len());
                for item in items {
                    let FromItem::Rel(rel) = item else {
                        return Err(Error::internal("a join among functions side by side"));
                    };
                    inputs.push(self.rel(rel, vec![], &Wanted::default())?.plan);
                }
                let types: Vec<_> = rel.columns.iter().map(|c| c.ty).collect();
                let rows = inputs.iter().map(|p| p.cost.rows).fold(1.0, f64::max);
                let cost = Cost {
                    startup: 0.0,
                    total: inputs.iter().map(|p| p.cost.total).sum::<f64>() + rows * cost::TUPLE,
                    rows,
                    width: cost::width(&types),
                };
                let places = Columns::of(rel.id, 1..=types.len() as i16);
                let node = Node::RowsFrom {
                    inputs,
                    alias: rel.alias.clone(),
                    ordinality: *ordinality,
                };
                let plan = self.node(node, types, cost);
                let built = Built {
                    plan,
                    columns: places,
                    order: Vec::new(),
                };
                self.filter(built, conditions)
            }
            RelKind::Cte(number) => self.cte(rel, *number as usize, conditions),
            RelKind::WorkTable(number) => self.work_table(rel, *number as usize, conditions),
        }
    }
}

/// A plan's columns under the name of the item that it stands for.
pub(super) fn rename(plan: super::Plan, rel: RelId) -> Built {
    let columns = Columns::of(rel, 1..=plan.types.len() as i16);
    Built {
        plan,
        columns,
        order: Vec::new(),
    }
}
