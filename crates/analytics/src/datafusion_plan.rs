//! From our plan to DataFusion's.
//!
//! | ours | there |
//! | --- | --- |
//! | SeqScan | [`Scan`] in as many partitions as there are workers |
//! | Filter, Project | [`ComputeStep`] |
//! | Sort | key columns added, `SortExec` in each partition, `SortPreservingMergeExec`, key columns dropped |
//! | HashJoin | key columns added to both sides, `HashJoinExec` built on our right side; or, if that does not fit in memory, `SortMergeJoinExec` over both sides split by key and sorted |
//! | Aggregate, DISTINCT, UNION | [`Group`] |
//! | Limit | `GlobalLimitExec`, and what is below need not sort more rows than that |
//! | UNION ALL, Append | `UnionExec` |

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use throng_bind::expr::{AggCall, Expr, SortKey};
use throng_exec::analytics::Job;
use throng_exec::run::Suspension;
use throng_exec::run::append::kept_inputs;
use throng_exec::table::Table;
use throng_plan::{AggStrategy, AggregateNode, Append, Node, Plan, SeqScan};
use throng_types::error::state;
use throng_types::{Datum, Error, Result, SqlType};

use crate::cache::ColumnCache;
use crate::column::{self, Kind};
use crate::execution_node::{PlanRef, StageExec};
use crate::group::Group;
use crate::keys::KeyPlan;
use crate::scan::{Scan, SievedBy};
use crate::small_nodes::{ComputeStep, CountStep, KeyStep, KeyUse, UniqueStep};
use crate::support::{DistinctBy, distinct_by};
use crate::table::{AggPlan, GroupPlan};
use crate::vector::{Compute, Program, value};
use throng_values::func::Aggregate;

/// How joins find their partners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinBy {
    Hash,
    /// Slower, and spills.
    Merge,
}

pub struct PlanBuilder {
    pub job: Arc<Job>,
    pub partitions: usize,
    pub join_by: JoinBy,
    /// About how large a batch may be.
    pub batch_bytes: usize,
    /// By the number of a scan: the joins above whose keys its rows have to meet.
    pub sieves: Arc<Mutex<HashMap<u32, Vec<SievedBy>>>>,
    pub cache: Arc<ColumnCache>,
}

/// What DataFusion made of a plan that it should have taken.
pub fn refused(error: datafusion::common::DataFusionError) -> Error {
    Error::internal(format!("analytics: {error}"))
}

pub fn kinds_of(types: &[SqlType]) -> Result<Arc<[Kind]>> {
    let kinds =
        column::kinds(types).ok_or_else(|| Error::internal("a type without stored form"))?;
    Ok(kinds.into())
}

/// The filter of a projection, which are one step.
fn filter_below(plan: &Plan) -> Option<&Plan> {
    match &plan.node {
        Node::Project { input, .. } if matches!(input.node, Node::Filter { once: false, .. }) => {
            Some(input)
        }
        _ => None,
    }
}

impl PlanBuilder {
    /// Tells a scan, before it is laid out, that its rows have to meet a join's keys.
    pub fn sieve(&self, scan: u32, by: SievedBy) {
        let mut sieves = self.sieves.lock().unwrap_or_else(PoisonError::into_inner);
        sieves.entry(scan).or_default().push(by);
    }

    /// The layout of a plan whose rows come in the order in which the rows' own operators give
    /// them.
    fn in_order(&self) -> PlanBuilder {
        PlanBuilder {
            job: self.job.clone(),
            partitions: 1,
            join_by: self.join_by,
            batch_bytes: self.batch_bytes,
            sieves: self.sieves.clone(),
            cache: self.cache.clone(),
        }
    }

    /// A plan whose rows are counted. `fetch`: no more rows than this will be asked for.
    pub fn node(&self, plan: &Plan, fetch: Option<usize>) -> Result<PlanRef> {
        let inner = self.uncounted(plan, fetch)?;
        let mut ids = vec![plan.id];
        if let Some(filter) = filter_below(plan) {
            ids.push(filter.id);
        }
        let schema = inner.schema();
        let partitions = inner.output_partitioning().partition_count();
        let step = Arc::new(CountStep {
            counts: self.job.counts.clone(),
            ids: ids.into(),
        });
        Ok(StageExec::plan(
            "Count",
            step,
            vec![inner],
            schema,
            partitions,
        ))
    }

    fn uncounted(&self, plan: &Plan, fetch: Option<usize>) -> Result<PlanRef> {
        match &plan.node {
            Node::SeqScan(scan) => self.scan(scan, plan),
            Node::Filter {
                input,
                condition,
                once: false,
            } => {
                let input_plan = self.node(input, None)?;
                self.compute(input_plan, &kinds_of(&input.types)?, Some(condition), None)
            }
            Node::Filter {
                input,
                condition,
                once: true,
            } => {
                let open = self.job.with_cx(|cx| value(condition, &[], cx))?.is_true();
                match open {
                    true => self.node(input, fetch),
                    false => Ok(Arc::new(EmptyExec::new(column::schema(&kinds_of(
                        &plan.types,
                    )?)))),
                }
            }
            Node::Project { input, exprs } => match filter_below(plan).map(|f| &f.node) {
                Some(Node::Filter {
                    input, condition, ..
                }) => {
                    let input_plan = self.node(input, None)?;
                    self.compute(
                        input_plan,
                        &kinds_of(&input.types)?,
                        Some(condition),
                        Some(exprs),
                    )
                }
                _ => {
                    let input_plan = self.node(input, fetch)?;
                    self.compute(input_plan, &kinds_of(&input.types)?, None, Some(exprs))
                }
            },
            Node::Materialize { input } => self.node(input, fetch),
            Node::HashJoin(join) => self.join(join),
            Node::Sort { input, keys } => self.sort(input, keys, fetch),
            Node::Limit {
                input,
                limit,
                offset,
                ..
            } => self.limit(input, limit, offset),
            Node::Aggregate(aggregate) => self.aggregate(aggregate, &plan.types),
            Node::Distinct { input, keys, .. } => {
                let input_plan = self.node(input, None)?;
                match distinct_by(input, keys) {
                    Some(DistinctBy::Neighbours) => self.unique(input_plan, &input.types, keys),
                    _ => self.whole_rows(input_plan, &input.types),
                }
            }
            Node::SetOp {
                all, left, right, ..
            } => {
                let both =
                    UnionExec::try_new(vec![self.node(left, fetch)?, self.node(right, fetch)?])
                        .map_err(refused)?;
                if *all {
                    Ok(both)
                } else {
                    self.whole_rows(both, &plan.types)
                }
            }
            Node::Append(append) => self.append(append, &plan.types, fetch),
            _ => Err(Error::internal("a plan that analytics does not run")),
        }
    }

    fn append(&self, append: &Append, types: &[SqlType], fetch: Option<usize>) -> Result<PlanRef> {
        let kept = self
            .job
            .with_cx(|cx| kept_inputs(append, cx))
            .map_err(|stop| match stop {
                Suspension::Error(e) => e,
                _ => Error::internal("a partition's bounds stopped away from their session"),
            })?;
        let mut inputs = Vec::with_capacity(append.inputs.len());
        for (input, _) in append.inputs.iter().zip(kept).filter(|(_, kept)| *kept) {
            let own = &input.plan.types;
            let mut plan = self.node(&input.plan, fetch)?;
            if !input.slots.is_empty() {
                let slot = |slot: &u32| Expr::Slot(*slot, own[*slot as usize]);
                let exprs: Vec<Expr> = input.slots.iter().map(slot).collect();
                plan = self.compute(plan, &kinds_of(own)?, None, Some(&exprs))?;
            }
            inputs.push(plan);
        }
        match inputs.len() {
            0 => Ok(Arc::new(EmptyExec::new(column::schema(&kinds_of(types)?)))),
            1 => Ok(inputs.remove(0)),
            _ => UnionExec::try_new(inputs).map_err(refused),
        }
    }

    fn scan(&self, scan: &SeqScan, plan: &Plan) -> Result<PlanRef> {
        let kinds = kinds_of(&plan.types)?;
        let schema = column::schema(&kinds);
        let table = self
            .job
            .with_cx(|cx| Table::unshared(&scan.table, &self.job.store, &cx.eval))?;
        let step = Scan::new(
            &self.job,
            table,
            &scan.columns,
            kinds.to_vec(),
            schema.clone(),
            scan.filter.as_ref(),
            self.batch_bytes,
            self.cache.clone(),
        )?;
        let mut sieves = self.sieves.lock().unwrap_or_else(PoisonError::into_inner);
        let step = step.sieved(sieves.remove(&plan.id).unwrap_or_default());
        Ok(StageExec::plan(
            "Scan",
            Arc::new(step),
            Vec::new(),
            schema,
            self.partitions,
        ))
    }

    pub fn compute(
        &self,
        input: PlanRef,
        kinds: &Arc<[Kind]>,
        filter: Option<&Expr>,
        exprs: Option<&[Expr]>,
    ) -> Result<PlanRef> {
        let exprs = exprs
            .map(|exprs| {
                let settled: Vec<Expr> = exprs.iter().map(|e| self.job.settled(e)).collect();
                Program::of_all(&settled, kinds)
            })
            .transpose()?;
        let schema = match &exprs {
            Some(exprs) => column::schema_of(exprs.iter().map(|e| e.kind.data_type())),
            None => input.schema(),
        };
        let filter = filter
            .map(|f| Program::new(&self.job.settled(f), kinds))
            .transpose()?;
        let compute = Arc::new(Compute {
            filter,
            exprs,
            schema: schema.clone(),
        });
        let step = ComputeStep {
            job: self.job.clone(),
            compute,
        };
        let partitions = input.output_partitioning().partition_count();
        Ok(StageExec::plan(
            "Compute",
            Arc::new(step),
            vec![input],
            schema,
            partitions,
        ))
    }

    /// The first columns alone.
    pub fn first_columns(
        &self,
        input: PlanRef,
        all: &Arc<[Kind]>,
        types: &[SqlType],
    ) -> Result<PlanRef> {
        let slots: Vec<Expr> = types
            .iter()
            .enumerate()
            .map(|(i, ty)| Expr::Slot(i as u32, *ty))
            .collect();
        self.compute(input, all, None, Some(&slots))
    }

    /// Adds the key columns of `keys` that are not columns already; gives where each key is.
    pub fn with_keys(
        &self,
        input: PlanRef,
        kinds: &Arc<[Kind]>,
        keys: Vec<(&Expr, KeyPlan)>,
        purpose: KeyUse,
    ) -> Result<(PlanRef, Vec<usize>)> {
        let mut places = Vec::with_capacity(keys.len());
        let mut added = Vec::new();
        for (expr, plan) in keys {
            match expr {
                Expr::Slot(at, _) if plan.is_raw() => places.push(*at as usize),
                _ => {
                    places.push(kinds.len() + added.len());
                    added.push((Program::new(&self.job.settled(expr), kinds)?, plan));
                }
            }
        }
        if added.is_empty() {
            return Ok((input, places));
        }
        let types = input
            .schema()
            .fields()
            .iter()
            .map(|f| f.data_type().clone())
            .collect::<Vec<_>>();
        let schema: SchemaRef = column::schema_of(
            types
                .into_iter()
                .chain(added.iter().map(|(_, k)| k.data_type())),
        );
        let step = KeyStep {
            job: self.job.clone(),
            keys: Arc::new(added),
            purpose,
            schema: schema.clone(),
        };
        let partitions = input.output_partitioning().partition_count();
        Ok((
            StageExec::plan("Keys", Arc::new(step), vec![input], schema, partitions),
            places,
        ))
    }

    fn sort(&self, input: &Plan, keys: &[SortKey], fetch: Option<usize>) -> Result<PlanRef> {
        let kinds = kinds_of(&input.types)?;
        let mut plans = Vec::with_capacity(keys.len());
        for key in keys {
            let kind = kinds_of(&[key.expr.ty()])?[0];
            plans.push((
                &key.expr,
                KeyPlan::new(key.expr.ty(), kind, key.descending, key.nulls_first),
            ));
        }
        let options: Vec<_> = plans.iter().map(|(_, plan)| plan.sort_options()).collect();
        let unsorted = self.node(input, None)?;
        let (keyed, places) = self.with_keys(unsorted, &kinds, plans, KeyUse::Sort)?;
        let order = places
            .iter()
            .zip(options)
            .map(|(at, options)| PhysicalSortExpr {
                expr: Arc::new(Column::new(keyed.schema().field(*at).name(), *at)),
                options,
            });
        let Some(order) = LexOrdering::new(order) else {
            return Ok(keyed);
        };
        let added = keyed.schema().fields().len() > kinds.len();
        let sorted = sorted(keyed, order, fetch);
        if added {
            self.first_columns(sorted, &kinds, &input.types)
        } else {
            Ok(sorted)
        }
    }

    fn limit(&self, input: &Plan, limit: &Option<Expr>, offset: &Option<Expr>) -> Result<PlanRef> {
        let skip = self.row_count(offset, || {
            Error::new(
                state::INVALID_ROW_COUNT_IN_OFFSET,
                "OFFSET must not be negative",
            )
        })?;
        let give = self.row_count(limit, || {
            Error::new(
                state::INVALID_ROW_COUNT_IN_LIMIT,
                "LIMIT must not be negative",
            )
        })?;
        let skip = skip.unwrap_or(0);
        // Nothing may be asked of the input: not even a row that fails.
        if give == Some(0) {
            return Ok(Arc::new(EmptyExec::new(column::schema(&kinds_of(
                &input.types,
            )?))));
        }
        let input = self.node(input, give.map(|n| n.saturating_add(skip)))?;
        Ok(Arc::new(GlobalLimitExec::new(
            one_partition(input),
            skip,
            give,
        )))
    }

    /// NULL is no count given.
    fn row_count(
        &self,
        expr: &Option<Expr>,
        negative: impl FnOnce() -> Error,
    ) -> Result<Option<usize>> {
        let value = match expr {
            Some(expr) => self.job.with_cx(|cx| value(expr, &[], cx))?,
            None => Datum::Null,
        };
        value
            .as_i64()
            .map(|n| usize::try_from(n).map_err(|_| negative()))
            .transpose()
    }

    fn unique(&self, input: PlanRef, types: &[SqlType], keys: &[Expr]) -> Result<PlanRef> {
        let kinds = kinds_of(types)?;
        let keys = self.equality_keys(keys, &kinds)?;
        let schema = input.schema();
        let step = UniqueStep {
            job: self.job.clone(),
            keys: Arc::new(keys),
        };
        Ok(StageExec::plan(
            "Unique",
            Arc::new(step),
            vec![one_partition(input)],
            schema,
            1,
        ))
    }

    fn equality_keys(
        &self,
        exprs: &[Expr],
        kinds: &Arc<[Kind]>,
    ) -> Result<Vec<(Program, KeyPlan)>> {
        let key = |e: &Expr| {
            let program = Program::new(&self.job.settled(e), kinds)?;
            let plan = KeyPlan::equality(e.ty(), program.kind);
            Ok((program, plan))
        };
        exprs.iter().map(key).collect()
    }

    /// One row of each kind.
    fn whole_rows(&self, input: PlanRef, types: &[SqlType]) -> Result<PlanRef> {
        let kinds = kinds_of(types)?;
        let keys = types
            .iter()
            .zip(&*kinds)
            .map(|(t, k)| KeyPlan::equality(*t, *k))
            .collect();
        let plan = GroupPlan {
            keys,
            kinds: kinds.to_vec(),
            aggs: Vec::new(),
        };
        Ok(self.group(input, plan, false, kinds.to_vec()))
    }

    fn group(&self, input: PlanRef, plan: GroupPlan, plain: bool, output: Vec<Kind>) -> PlanRef {
        let schema = column::schema(&output);
        let partitions = if plain { 1 } else { self.partitions };
        let step = Group::new(
            &self.job,
            plan,
            plain,
            input.schema(),
            schema.clone(),
            output,
            partitions,
        );
        StageExec::plan("Group", Arc::new(step), vec![input], schema, partitions)
    }

    fn aggregate(&self, node: &AggregateNode, types: &[SqlType]) -> Result<PlanRef> {
        let kinds = kinds_of(&node.input.types)?;
        // What grouping needs of a row, computed first: group values, then each aggregate's
        // arguments, filter and order.
        let mut exprs = node.group.clone();
        let mut aggs = Vec::with_capacity(node.aggs.len());
        for call in &node.aggs {
            aggs.push(prepare(call, &mut exprs)?);
        }
        let input = match node.aggs.iter().any(shows_order) {
            true => self.in_order().node(&node.input, None)?,
            false => self.node(&node.input, None)?,
        };
        let input = self.compute(input, &kinds, None, Some(&exprs))?;
        let prepared: Vec<SqlType> = exprs.iter().map(Expr::ty).collect();
        let prepared = kinds_of(&prepared)?;
        let keys = node
            .group
            .iter()
            .zip(&*prepared)
            .map(|(e, k)| KeyPlan::equality(e.ty(), *k));
        let plan = GroupPlan {
            keys: keys.collect(),
            kinds: prepared.to_vec(),
            aggs,
        };
        let output = kinds_of(types)?;
        let grouped = self.group(
            input,
            plan,
            node.strategy == AggStrategy::Plain,
            output.to_vec(),
        );
        match &node.having {
            Some(having) => self.compute(grouped, &output, Some(having), None),
            None => Ok(grouped),
        }
    }
}

/// Whether an aggregate's result shows in which order its rows came.
fn shows_order(call: &AggCall) -> bool {
    let keeps_order = call.agg.built_in().is_some_and(Aggregate::keeps_order);
    keeps_order && call.order.is_empty() && !call.distinct
}

/// Adds what an aggregate takes of a row to `exprs`.
fn prepare(call: &AggCall, exprs: &mut Vec<Expr>) -> Result<AggPlan> {
    // Arguments are not evaluated for rows that FILTER keeps out.
    let guarded = |e: &Expr| match &call.filter {
        Some(filter) => Expr::Case {
            operand: None,
            whens: vec![(filter.clone(), e.clone())],
            default: Box::new(Expr::null(e.ty())),
            ty: e.ty(),
        },
        None => e.clone(),
    };
    let start = exprs.len();
    exprs.extend(call.args.iter().map(guarded));
    let args = start..exprs.len();
    let filter = call.filter.as_ref().map(|filter| {
        exprs.push(filter.clone());
        exprs.len() - 1
    });
    let mut order = Vec::with_capacity(call.order.len());
    for key in &call.order {
        let kind = kinds_of(&[key.expr.ty()])?[0];
        order.push((
            exprs.len(),
            KeyPlan::new(key.expr.ty(), kind, key.descending, key.nulls_first),
        ));
        exprs.push(guarded(&key.expr));
    }
    let distinct = match call.distinct {
        true => {
            let types: Vec<SqlType> = call.args.iter().map(Expr::ty).collect();
            let kinds = kinds_of(&types)?;
            Some(
                types
                    .iter()
                    .zip(&*kinds)
                    .map(|(t, k)| KeyPlan::equality(*t, *k))
                    .collect(),
            )
        }
        false => None,
    };
    let agg = call.agg.built_in();
    Ok(AggPlan {
        agg: agg.ok_or_else(|| Error::internal("an aggregate that is not built in"))?,
        args,
        filter,
        order,
        distinct,
    })
}

pub fn one_partition(plan: PlanRef) -> PlanRef {
    match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

/// Sorted in each partition, then merged into one.
fn sorted(plan: PlanRef, order: LexOrdering, fetch: Option<usize>) -> PlanRef {
    /// The first rows are kept in memory, and each is compared with all batches: of many a sort,
    /// which goes to files, is quicker.
    const MOST_KEPT: usize = 4_096;
    let partitions = plan.output_partitioning().partition_count();
    let sort = SortExec::new(order.clone(), plan)
        .with_preserve_partitioning(true)
        .with_fetch(fetch.filter(|rows| *rows <= MOST_KEPT));
    if partitions == 1 {
        return Arc::new(sort);
    }
    Arc::new(SortPreservingMergeExec::new(order, Arc::new(sort)).with_fetch(fetch))
}
