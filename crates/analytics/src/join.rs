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
use throng_exec::analytics::Job;
use throng_sql::expr::Expr;
use throng_sql::plan::HashJoin;
use throng_sql::query::JoinKind;
use throng_types::{Result, SqlType};

use crate::column;
use crate::keys::KeyPlan;
use crate::layout::{JoinBy, Layout, kinds_of, one_partition, refused};
use crate::stage::{PlanRef, theirs};
use crate::steps::KeyUse;
use crate::vector::Program;

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

impl Layout {
    pub fn join(&self, join: &HashJoin) -> Result<PlanRef> {
        let (left_types, right_types) = (&join.left.types, &join.right.types);
        let left = self.node(&join.left, None)?;
        let right = self.node(&join.right, None)?;
        let (left, left_at) = self.keyed(left, left_types, &join.left_keys)?;
        let (right, right_at) = self.keyed(right, right_types, &join.right_keys)?;
        let on: Vec<_> = right_at
            .iter()
            .zip(&left_at)
            .map(|(r, l)| (column_at(&right, *r), column_at(&left, *l)))
            .collect();
        let both: Vec<SqlType> = left_types.iter().chain(right_types).copied().collect();
        let filter = join
            .on
            .as_ref()
            .map(|on| self.pair_filter(on, left_types.len(), &both))
            .transpose()?;
        let kind = exchanged(join.kind);
        let (left_width, right_width) =
            (left.schema().fields().len(), right.schema().fields().len());
        let joined: PlanRef = match self.join_by {
            JoinBy::Hash => Arc::new(
                HashJoinExec::try_new(
                    one_partition(right),
                    left,
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
            JoinBy::Merge => self.merge_join(right, left, on, filter, kind)?,
        };
        // Out of what DataFusion gives (right columns and keys, left columns and keys), our row: left, then right.
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
        let mut kinds = vec![column::Kind::Bool; total];
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

    fn keyed(
        &self,
        input: PlanRef,
        types: &[SqlType],
        keys: &[Expr],
    ) -> Result<(PlanRef, Vec<usize>)> {
        let kinds = kinds_of(types)?;
        let mut plans = Vec::with_capacity(keys.len());
        for key in keys {
            plans.push((key, KeyPlan::equality(key.ty(), kinds_of(&[key.ty()])?[0])));
        }
        self.with_keys(input, &kinds, plans, KeyUse::Join)
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
    fn pair_filter(&self, on: &Expr, left: usize, types: &[SqlType]) -> Result<JoinFilter> {
        let kinds = kinds_of(types)?;
        let places = (0..types.len()).map(|i| match i < left {
            true => ColumnIndex {
                index: i,
                side: JoinSide::Right,
            },
            false => ColumnIndex {
                index: i - left,
                side: JoinSide::Left,
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
