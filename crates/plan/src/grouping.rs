//! GROUP BY and aggregates.

use throng_types::{Error, Result, SqlType};

use super::cost::{self, at_least_one};
use super::{AggStrategy, AggregateNode, Built, Columns, Cost, Node, Planner};
use throng_bind::expr::{AggCall, Expr, RelId, SortKey, Var};

/// What expressions above an aggregation mean: grouped expressions and aggregates by the place of
/// their value.
pub(super) struct Grouped {
    rel: RelId,
    group: Vec<Expr>,
    aggs: Vec<AggCall>,
    sets: Vec<Vec<u32>>,
    /// What GROUPING is asked about, and the relation that its answers are the columns of.
    groupings: Vec<Vec<u32>>,
    bits: RelId,
}

impl Grouped {
    /// `bits`: a relation too.
    pub fn new(rel: RelId, bits: RelId, group: Vec<Expr>, sets: Vec<Vec<u32>>) -> Grouped {
        Grouped {
            rel,
            group,
            aggs: Vec::new(),
            sets,
            groupings: Vec::new(),
            bits,
        }
    }

    fn grouping(&mut self, args: &[Expr]) -> Expr {
        if self.sets.is_empty() {
            return Expr::int4(0);
        }
        let places = args
            .iter()
            .filter_map(|a| self.group.iter().position(|g| g == a))
            .map(|at| at as u32)
            .collect();
        self.groupings.push(places);
        Expr::Var(Var {
            rel: self.bits,
            column: self.groupings.len() as i16,
            ty: SqlType::INT4,
        })
    }

    fn var(&self, at: usize, ty: SqlType) -> Expr {
        Expr::Var(Var {
            rel: self.rel,
            column: at as i16 + 1,
            ty,
        })
    }

    /// Replaces grouped expressions and aggregates by variables of the aggregation's output.
    pub fn rewrite(&mut self, mut expr: Expr) -> Expr {
        if let Some(at) = self.group.iter().position(|g| *g == expr) {
            return self.var(at, expr.ty());
        }
        if let Expr::Grouping(args) = &expr {
            return self.grouping(args);
        }
        if let Expr::Aggregate(call) = expr {
            let ty = call.ty;
            let at = match self.aggs.iter().position(|a| *a == *call) {
                Some(at) => at,
                None => {
                    self.aggs.push(*call);
                    self.aggs.len() - 1
                }
            };
            return self.var(self.group.len() + at, ty);
        }
        expr.for_each_child_mut(&mut |child| {
            *child = self.rewrite(std::mem::replace(child, Expr::bool(true)));
        });
        expr
    }
}

impl Planner<'_> {
    /// The aggregation itself; `grouped` has seen every expression above it.
    pub(super) fn aggregate(&mut self, input: Built, grouped: Grouped) -> Result<Built> {
        let Grouped {
            rel,
            group,
            aggs,
            sets,
            groupings,
            bits,
        } = grouped;
        if group.is_empty() && sets.is_empty() && aggs.is_empty() {
            // There is one group, whatever the rows are: they are not read.
            return Ok(self.one_row());
        }
        let mut columns = Columns::of(rel, 1..=(group.len() + aggs.len()) as i16);
        for number in 1..=groupings.len() as i16 {
            columns.push(Some((bits, number)));
        }
        for (slot, expr) in group.iter().enumerate() {
            // A grouped column keeps its name too: subqueries above may refer to it.
            if let Expr::Var(var) = expr {
                columns.also((var.rel, var.column), slot as u32);
            }
        }
        let groups = self.groups(&group, input.rows());
        let group = self.place_all(group, &input.columns)?;
        let mut calls = Vec::with_capacity(aggs.len());
        for call in aggs {
            let args = self.place_all(call.args, &input.columns)?;
            let direct = self.place_all(call.direct, &input.columns)?;
            let varies = |e: &Expr| e.any(&mut |e| matches!(e, Expr::Slot(..)));
            if !sets.is_empty() && direct.iter().any(varies) {
                return Err(Error::unsupported(
                    "a direct argument that depends on the grouping set",
                ));
            }
            let filter = call
                .filter
                .map(|f| self.place(f, &input.columns))
                .transpose()?;
            let mut order = Vec::new();
            for key in call.order {
                order.push(SortKey {
                    expr: self.place(key.expr, &input.columns)?,
                    ..key
                });
            }
            calls.push(AggCall {
                direct,
                args,
                filter,
                order,
                ..call
            });
        }
        let types: Vec<SqlType> = group
            .iter()
            .map(Expr::ty)
            .chain(calls.iter().map(|c| c.ty))
            .chain(groupings.iter().map(|_| SqlType::INT4))
            .collect();
        let strategy = if group.is_empty() && sets.is_empty() {
            AggStrategy::Plain
        } else {
            AggStrategy::Hashed
        };
        let rows = match strategy {
            AggStrategy::Plain => 1.0,
            _ => at_least_one(groups * (sets.len() as f64).max(1.0)).min(input.rows().max(1.0)),
        };
        let work = (group.len() + calls.len()) as f64 * cost::OPERATOR;
        let total = input.plan.cost.total + input.rows() * work + rows * cost::TUPLE;
        let cost = Cost {
            startup: total,
            total,
            rows,
            width: cost::width(&types),
        };
        let node = Node::Aggregate(AggregateNode {
            input: Box::new(input.plan),
            group,
            sets,
            aggs: calls,
            groupings,
            strategy,
            having: None,
        });
        Ok(Built {
            plan: self.node(node, types, cost),
            columns,
            order: Vec::new(),
        })
    }
}
