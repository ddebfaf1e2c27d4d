//! Joins by key columns, with the rest of the condition as a filter on candidate pairs.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{JoinSide, JoinType, NullEquality, Result as DfResult};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::Partitioning;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use throng_bind::expr::Expr;
use throng_bind::query::JoinKind;
use throng_exec::analytics::Job;
use throng_plan::HashJoin;
use throng_types::{Result, SqlType};

use crate::column::{self, Kind};
use crate::datafusion_plan::{JoinBy, PlanBuilder, kinds_of, one_partition, refused};
use crate::execution_node::{PlanRef, StageExec, theirs};
use crate::keys::KeyPlan;
use crate::runtime_filter::{self, GatherStep, Gathered, RuntimeFilter};
use crate::scan::SievedBy;
use crate::small_nodes::KeyUse;
use crate::vector::Program;

/// Whether the table is made of the left side: where only whether there is a partner matters, that
/// is the smaller side's to be.
fn builds_left(join: &HashJoin) -> bool {
    let one_sided = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
    one_sided && join.left.cost.rows < join.right.cost.rows
}

/// DataFusion's name for a join that makes its table of our left side, as DataFusion does.
fn as_they_stand(kind: JoinKind) -> JoinType {
    match kind {
        JoinKind::Inner => JoinType::Inner,
        JoinKind::Left => JoinType::Left,
        JoinKind::Right => JoinType::Right,
        JoinKind::Full => JoinType::Full,
        JoinKind::Semi => JoinType::LeftSemi,
        JoinKind::Anti => JoinType::LeftAnti,
    }
}

/// DataFusion's name for a join whose sides are exchanged: it builds on the left, we on the right.
fn exchanged(kind: JoinKind) -> JoinType {
    match kind {
        JoinKind::Inner => JoinType::Inner,
        JoinKind::Left => JoinType::Right,
        JoinKind::Right => JoinType::Left,
        JoinKind::Full => JoinType::Full,
        JoinKind::Semi => JoinType::RightSemi,
        JoinKind::Anti => JoinType::RightAnti,
    }
}

impl PlanBuilder {
    pub fn join(&self, join: &HashJoin) -> Result<PlanRef> {
        let (left_types, right_types) = (&join.left.types, &join.right.types);
        let on_left = builds_left(join);
        let gathered = match self.join_by {
            JoinBy::Hash => self.sieves(join, on_left)?,
            JoinBy::Merge => Vec::new(),
        };
        let left = self.node(&join.left, None)?;
        let right = self.node(&join.right, None)?;
        let (left_keys, right_keys) = key_plans(join)?;
        let (left, left_at) = self.keyed(left, left_types, left_keys)?;
        let (right, right_at) = self.keyed(right, right_types, right_keys)?;
        let (left_width, right_width) =
            (left.schema().fields().len(), right.schema().fields().len());
        let ((build, build_at), (probe, probe_at), kind) = match on_left {
            true => ((left, left_at), (right, right_at), as_they_stand(join.kind)),
            false => ((right, right_at), (left, left_at), exchanged(join.kind)),
        };
        let build_rows = match on_left {
            true => join.left.cost.rows,
            false => join.right.cost.rows,
        };
        let on: Vec<_> = build_at
            .iter()
            .zip(&probe_at)
            .map(|(b, p)| (column_at(&build, *b), column_at(&probe, *p)))
            .collect();
        let both: Vec<SqlType> = left_types.iter().chain(right_types).copied().collect();
        let filter = join
            .on
            .as_ref()
            .map(|on| self.pair_filter(on, left_types.len(), &both, on_left))
            .transpose()?;
        let joined: PlanRef = match self.join_by {
            JoinBy::Hash => Arc::new(
                HashJoinExec::try_new(
                    gather(one_partition(build), gathered, &build_at, build_rows),
                    probe,
                    on,
                    filter,
                    &kind,
                    None,
                    PartitionMode::CollectLeft,
                    NullEquality::NullEqualsNothing,
                    false,
                )
                .map_err(refused)?,
            ),
            JoinBy::Merge => self.merge_join(build, probe, on, filter, kind)?,
        };
        // Out of what DataFusion gives (right columns and keys, left columns and keys), our row:
        // left, then right.
        let left_only = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
        let left_from = if left_only { 0 } else { right_width };
        let slot = |at: usize, ty: &SqlType| Expr::Slot(at as u32, *ty);
        let mut slots: Vec<Expr> = left_types
            .iter()
            .enumerate()
            .map(|(i, t)| slot(left_from + i, t))
            .collect();
        if !left_only {
            slots.extend(right_types.iter().enumerate().map(|(i, t)| slot(i, t)));
        }
        // Only columns named by `slots` are read: the kinds of keys between them do not matter.
        let total = if left_only {
            left_width
        } else {
            left_width + right_width
        };
        let mut kinds = vec![Kind::Bool; total];
        for slot in &slots {
            if let Expr::Slot(at, ty) = slot {
                kinds[*at as usize] = kinds_of(&[*ty])?[0];
            }
        }
        let rows = self.compute(joined, &kinds.into(), None, Some(&slots))?;
        match &join.filter {
            Some(filter) => {
                let types: &[SqlType] = if left_only { left_types } else { &both };
                self.compute(rows, &kinds_of(types)?, Some(filter), None)
            }
            None => Ok(rows),
        }
    }

    /// The keys, by their places, that are to be gathered on the side that the table is made of,
    /// for scans under the other side.
    fn sieves(
        &self,
        join: &HashJoin,
        on_left: bool,
    ) -> Result<Vec<(usize, Kind, Arc<RuntimeFilter>)>> {
        let mut found = Vec::new();
        if !runtime_filter::drops_unmatched(join, on_left) {
            return Ok(found);
        }
        let (left, right) = key_plans(join)?;
        let (probe, keys, built) = match on_left {
            true => (&join.right, right, left),
            false => (&join.left, left, right),
        };
        for (at, ((key, _), (_, built))) in keys.into_iter().zip(built).enumerate() {
            let kind = kinds_of(&[key.ty()])?[0];
            let (Some(built), true) = (built.key_kind(), runtime_filter::takes(kind)) else {
                continue;
            };
            if let Some((scan, column)) = runtime_filter::origin(probe, key) {
                let sieve = Arc::new(RuntimeFilter::default());
                found.push((at, built, sieve.clone()));
                self.sieve(scan, SievedBy { sieve, column });
            }
        }
        Ok(found)
    }

    fn keyed(
        &self,
        input: PlanRef,
        types: &[SqlType],
        keys: Keys<'_>,
    ) -> Result<(PlanRef, Vec<usize>)> {
        self.with_keys(input, &kinds_of(types)?, keys, KeyUse::Join)
    }

    /// Both sides split by key, each part sorted, and merged.
    fn merge_join(
        &self,
        first: PlanRef,
        second: PlanRef,
        on: Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>,
        filter: Option<JoinFilter>,
        kind: JoinType,
    ) -> Result<PlanRef> {
        let options = SortOptions {
            descending: false,
            nulls_first: true,
        };
        let prepare = |side: PlanRef, keys: Vec<Arc<dyn PhysicalExpr>>| -> Result<PlanRef> {
            let split = Partitioning::Hash(keys.clone(), self.partitions);
            let split: PlanRef = Arc::new(RepartitionExec::try_new(side, split).map_err(refused)?);
            let order = keys
                .into_iter()
                .map(|expr| PhysicalSortExpr { expr, options });
            Ok(match LexOrdering::new(order) {
                Some(order) => {
                    Arc::new(SortExec::new(order, split).with_preserve_partitioning(true))
                }
                None => split,
            })
        };
        let first = prepare(first, on.iter().map(|(a, _)| a.clone()).collect())?;
        let second = prepare(second, on.iter().map(|(_, b)| b.clone()).collect())?;
        let options = vec![options; on.len()];
        let nulls = NullEquality::NullEqualsNothing;
        let join = SortMergeJoinExec::try_new(first, second, on, filter, kind, options, nulls);
        Ok(Arc::new(join.map_err(refused)?))
    }

    /// The rest of a join's condition, over left and right columns in our order.
    fn pair_filter(
        &self,
        on: &Expr,
        left: usize,
        types: &[SqlType],
        on_left: bool,
    ) -> Result<JoinFilter> {
        let kinds = kinds_of(types)?;
        let (of_left, of_right) = match on_left {
            true => (JoinSide::Left, JoinSide::Right),
            false => (JoinSide::Right, JoinSide::Left),
        };
        let places = (0..types.len()).map(|i| match i < left {
            true => ColumnIndex {
                index: i,
                side: of_left,
            },
            false => ColumnIndex {
                index: i - left,
                side: of_right,
            },
        });
        let schema = column::schema(&kinds);
        let condition = Condition {
            job: self.job.clone(),
            program: Arc::new(Program::new(on, &kinds)?),
        };
        Ok(JoinFilter::new(
            Arc::new(condition),
            places.collect(),
            schema,
        ))
    }
}

/// Keys of one side, and how each becomes a column.
type Keys<'a> = Vec<(&'a Expr, KeyPlan)>;

/// Those of both sides, whose columns are of the same types.
fn key_plans(join: &HashJoin) -> Result<(Keys<'_>, Keys<'_>)> {
    let kind = |key: &Expr| -> Result<Kind> { Ok(kinds_of(&[key.ty()])?[0]) };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for (l, r) in join.left_keys.iter().zip(&join.right_keys) {
        let (of_left, of_right) = (kind(l)?, kind(r)?);
        left.push((l, KeyPlan::joined(l.ty(), of_left, of_right)));
        right.push((r, KeyPlan::joined(r.ty(), of_right, of_left)));
    }
    Ok((left, right))
}

/// The side that the table is made of, its keys gathered on the way. `places`: where the keys are.
fn gather(
    build: PlanRef,
    keys: Vec<(usize, Kind, Arc<RuntimeFilter>)>,
    places: &[usize],
    rows: f64,
) -> PlanRef {
    if keys.is_empty() {
        return build;
    }
    let key = |(at, kind, sieve): (usize, Kind, Arc<RuntimeFilter>)| Gathered {
        sieve,
        column: places[at],
        kind,
    };
    let step = GatherStep {
        keys: keys.into_iter().map(key).collect(),
        rows,
    };
    let schema = build.schema();
    StageExec::plan("Gather", Arc::new(step), vec![build], schema, 1)
}

fn column_at(plan: &PlanRef, at: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(plan.schema().field(at).name(), at))
}

/// One of our conditions as DataFusion's joins ask for it.
struct Condition {
    job: Arc<Job>,
    program: Arc<Program>,
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.program.expr.fmt(f)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The same condition is the same program.
impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        Arc::ptr_eq(&self.program, &other.program)
    }
}
impl Eq for Condition {}
impl Hash for Condition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.program).hash(state);
    }
}

impl PhysicalExpr for Condition {
    fn evaluate(&self, batch: &RecordBatch) -> DfResult<ColumnarValue> {
        let holds = self
            .job
            .with_cx(|cx| self.program.holds(batch, &None, cx))
            .map_err(theirs)?;
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(
            holds, None,
        ))))
    }

    fn return_field(&self, _: &Schema) -> DfResult<FieldRef> {
        Ok(Arc::new(Field::new("condition", DataType::Boolean, false)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn PhysicalExpr>>,
    ) -> DfResult<Arc<dyn PhysicalExpr>> {
        Ok(self)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
