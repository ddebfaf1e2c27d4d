//! WITH: queries that several read, and recursion.

use throng_types::{Error, Result, SqlType};

use super::from::rename;
use super::{Built, Columns, Cost, Node, Plan, Planner, RecursiveUnion, WithWrite, cost};
use throng_bind::expr::{Expr, ParamId, RelId, Var};
use throng_bind::query::walk::QueryPartMut;
use throng_bind::query::{CteBody, Query, QueryKind, Rel, RelKind};

/// A WITH query that is a subplan.
#[derive(Clone)]
pub(super) struct Shared {
    pub subplan: u32,
    /// What it needs from outside the query that its WITH belongs to.
    pub free: Vec<(ParamId, Var)>,
}

/// How the recursive term of a WITH query finds the rows of its last step.
#[derive(Clone, Copy)]
pub(super) struct WorkingRows {
    work_table: u32,
    /// The entry whose one column is the number of the step: plans that read the work table depend
    /// on it.
    counter: RelId,
    cost: Cost,
}

/// Rows a step is taken to have for each of the first; PostgreSQL's guess.
const GROWTH: f64 = 10.0;
/// A table of a hash join that is the same in every step is kept up to this estimated size.
const KEPT_BYTES: f64 = (16 << 20) as f64;

/// Whether a plan reads the rows of a recursion's last step.
pub(super) fn changes(plan: &Plan) -> bool {
    matches!(plan.node, Node::WorkTableScan { .. }) || plan.children().into_iter().any(changes)
}

pub(super) fn can_be_kept(cost: &Cost) -> bool {
    cost.rows * (f64::from(cost.width) + 64.0) <= KEPT_BYTES
}

/// The WITH queries that one reads itself.
fn reads_of(body: &CteBody) -> Vec<usize> {
    let mut reads = Vec::new();
    let mut note = |part: QueryPartMut<'_>| {
        if let QueryPartMut::Rel(rel) = part
            && let RelKind::Cte(number) = rel.kind
        {
            reads.push(number as usize);
        }
    };
    match body.clone() {
        CteBody::Write(mut kind) => kind.walk_mut(&mut note),
        mut other => {
            let queries = other.queries_mut().into_iter();
            queries.for_each(|query| query.walk_mut(&mut note));
        }
    }
    reads
}

/// Puts a WITH query into the order after all that it reads.
fn visit(at: usize, reads: &[Vec<usize>], order: &mut Vec<usize>) {
    if order.contains(&at) {
        return;
    }
    for read in &reads[at] {
        visit(*read, reads, order);
    }
    order.push(at);
}

impl Planner<'_> {
    /// A WITH query that is read.
    pub(super) fn cte(&mut self, rel: &Rel, number: usize, conditions: Vec<Expr>) -> Result<Built> {
        let ctes = self.ctes.clone();
        let cte = &ctes[number];
        let in_place = cte.uses == 1
            && cte.materialized != Some(true)
            && match &cte.body {
                CteBody::Query(_) => cte.body.is_steady(),
                // Its rows pass on; but where the reader may be run again it should not recur
                // again.
                CteBody::Recursive { .. } => self.frames.is_empty(),
                CteBody::Write(_) => false,
            };
        if in_place {
            let built = self.cte_body(number, &cte.body)?;
            return self.filter(rename(built, rel.id), conditions);
        }
        let shared = match &self.shared[number] {
            Some(shared) => shared.clone(),
            None => {
                let (plan, free) = self.attached(|p| p.cte_body(number, &cte.body))?;
                self.subplans.push(plan);
                let subplan = self.subplans.len() as u32 - 1;
                let shared = Shared { subplan, free };
                self.shared[number] = Some(shared.clone());
                shared
            }
        };
        let args = self.arguments(shared.free, &Columns::default())?;
        let plan = &self.subplans[shared.subplan as usize];
        let (types, cost) = (plan.types.clone(), plan.cost);
        let places = Columns::of(rel.id, 1..=types.len() as i16);
        let filter = Expr::all_of(self.place_all(conditions, &places)?);
        let node = Node::CteScan {
            rel: rel.id,
            alias: rel.alias.clone(),
            subplan: shared.subplan,
            args,
            filter,
        };
        Ok(Built {
            plan: self.node(node, types, cost),
            columns: places,
            order: Vec::new(),
        })
    }

    /// Plans the WITH queries that write: those that are run before the statement, and those after
    /// it.
    ///
    /// What a statement that writes does not read is run after it, the last first: that is
    /// PostgreSQL's order, and shows where two writes change one row.
    pub(super) fn writes(&mut self, kind: &QueryKind) -> Result<(Vec<WithWrite>, Vec<WithWrite>)> {
        let ctes = self.ctes.clone();
        let is_write = |at: &usize| matches!(ctes[*at].body, CteBody::Write(_));
        if !(0..ctes.len()).any(|at| is_write(&at)) {
            return Ok((Vec::new(), Vec::new()));
        }
        let reads: Vec<Vec<usize>> = ctes.iter().map(|cte| reads_of(&cte.body)).collect();
        let mut order = Vec::new();
        for at in reads_of(&CteBody::Write(Box::new(kind.clone()))) {
            visit(at, &reads, &mut order);
        }
        let before = order.len();
        for at in (0..ctes.len()).rev().filter(is_write) {
            visit(at, &reads, &mut order);
        }
        let mut writes = Vec::new();
        let mut late = Vec::new();
        for (place, at) in order.into_iter().enumerate() {
            let CteBody::Write(write) = &ctes[at].body else {
                continue;
            };
            let (_, plan, _) = match (**write).clone() {
                QueryKind::Insert(insert) => self.insert(*insert)?,
                QueryKind::Update(update) => self.update(*update)?,
                QueryKind::Delete(delete) => self.delete(*delete)?,
                QueryKind::Merge(merge) => self.merge(*merge)?,
                QueryKind::Select(_) => return Err(Error::internal("a write that is a query")),
            };
            self.subplans.push(plan);
            let subplan = self.subplans.len() as u32 - 1;
            self.shared[at] = Some(Shared {
                subplan,
                free: Vec::new(),
            });
            let write = WithWrite {
                subplan,
                read: ctes[at].uses > 0,
            };
            match place < before || matches!(kind, QueryKind::Select(_)) {
                true => writes.push(write),
                false => late.push(write),
            }
        }
        Ok((writes, late))
    }

    fn cte_body(&mut self, number: usize, body: &CteBody) -> Result<Plan> {
        match body {
            CteBody::Query(query) => Ok(self.query(query)?.plan),
            CteBody::Recursive { init, term, all } => self.recursive(number, init, term, *all),
            CteBody::Write(_) => Err(Error::internal("a write that is not planned first")),
        }
    }

    fn recursive(&mut self, number: usize, init: &Query, term: &Query, all: bool) -> Result<Plan> {
        let init = self.query(init)?.plan;
        let counter = self.new_rel();
        let work_table = self.work_tables;
        self.work_tables += 1;
        self.steps[number] = Some(WorkingRows {
            work_table,
            counter,
            cost: Cost {
                startup: 0.0,
                total: init.cost.rows * GROWTH * cost::TUPLE,
                rows: init.cost.rows * GROWTH,
                width: init.cost.width,
            },
        });
        let (term, free) = self.attached(|p| p.query(term))?;
        let (own, outside): (Vec<_>, Vec<_>) =
            free.into_iter().partition(|(_, var)| var.rel == counter);
        let args = self.arguments(outside, &Columns::default())?;
        let types = init.types.clone();
        let rows = init.cost.rows + term.rows() * GROWTH;
        let cost = Cost {
            startup: init.cost.startup,
            total: init.cost.total + term.plan.cost.total * GROWTH + rows * cost::TUPLE,
            rows,
            width: init.cost.width,
        };
        let node = RecursiveUnion {
            all,
            init,
            term: term.plan,
            work_table,
            step: own.first().map(|(param, _)| *param),
            args,
        };
        Ok(self.node(Node::RecursiveUnion(Box::new(node)), types, cost))
    }

    /// The rows of a recursion's last step.
    pub(super) fn work_table(
        &mut self,
        rel: &Rel,
        number: usize,
        conditions: Vec<Expr>,
    ) -> Result<Built> {
        let Some(steps) = self.steps[number] else {
            return Err(Error::internal("a recursive reference outside its query"));
        };
        let counter = Var {
            rel: steps.counter,
            column: 1,
            ty: SqlType::INT8,
        };
        let step = self.place_var(counter, &Columns::default())?;
        let types: Vec<SqlType> = rel.columns.iter().map(|c| c.ty).collect();
        let places = Columns::of(rel.id, 1..=types.len() as i16);
        let filter = Expr::all_of(self.place_all(conditions, &places)?);
        let node = Node::WorkTableScan {
            rel: rel.id,
            alias: rel.alias.clone(),
            work_table: steps.work_table,
            step,
            filter,
        };
        Ok(Built {
            plan: self.node(node, types, steps.cost),
            columns: places,
            order: Vec::new(),
        })
    }
}
