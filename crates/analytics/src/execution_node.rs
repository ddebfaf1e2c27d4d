//! Our own steps of a DataFusion plan.
//!
//! DataFusion asks a step for much that only its optimizer reads; a plan made here is run as it is.
//! So one type carries them all: a [`Step`] says what its partitions give, [`StageExec`] answers
//! the rest.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions, SendableRecordBatchStream,
};
use futures::stream::BoxStream;

pub type Batches = BoxStream<'static, Result<RecordBatch>>;
pub type PlanRef = Arc<dyn ExecutionPlan>;

/// What one step does with its inputs.
pub trait Step: Send + Sync {
    /// The rows of one partition.
    fn run(&self, partition: usize, inputs: &[PlanRef], cx: Arc<TaskContext>) -> Result<Batches>;
}

/// A step in its place in a plan.
pub struct StageExec {
    name: &'static str,
    step: Arc<dyn Step>,
    inputs: Vec<PlanRef>,
    properties: Arc<PlanProperties>,
}

impl StageExec {
    pub fn plan(
        name: &'static str,
        step: Arc<dyn Step>,
        inputs: Vec<PlanRef>,
        schema: SchemaRef,
        partitions: usize,
    ) -> PlanRef {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Arc::new(StageExec {
            name,
            step,
            inputs,
            properties: Arc::new(properties),
        })
    }
}

impl fmt::Debug for StageExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl DisplayAs for StageExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ExecutionPlan for StageExec {
    fn name(&self) -> &str {
        self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        // What a step computes is ours, not DataFusion's expressions.
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        inputs: Vec<PlanRef>,
        _: ReplaceChildrenOptions,
    ) -> Result<PlanRef> {
        Ok(Arc::new(StageExec {
            name: self.name,
            step: self.step.clone(),
            inputs,
            properties: self.properties.clone(),
        }))
    }

    fn with_new_children(self: Arc<Self>, inputs: Vec<PlanRef>) -> Result<PlanRef> {
        use datafusion::physical_plan::ChildrenPropertiesMode::Keep;
        self.replace_children(inputs, ReplaceChildrenOptions::new(Keep))
    }

    fn execute(&self, partition: usize, cx: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batches = self.step.run(partition, &self.inputs, cx)?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            batches,
        )))
    }
}

/// One of our errors on its way through DataFusion; [`ours`] finds it again.
pub fn theirs(error: throng_types::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// What went wrong, as the client is told it.
pub fn ours(error: &DataFusionError) -> throng_types::Error {
    use throng_types::Error;
    use throng_types::error::state;
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(e) = cause {
        if let Some(error) = e.downcast_ref::<Error>() {
            return error.clone();
        }
        if let Some(e) = e.downcast_ref::<std::io::Error>() {
            return std::io::Error::new(e.kind(), e.to_string()).into();
        }
        cause = e.source();
    }
    match error.find_root() {
        DataFusionError::ResourcesExhausted(detail) => Error::new(
            state::OUT_OF_MEMORY,
            "out of memory",
        )
        .detail(detail.clone())
        .hint("Raise work_mem for this session, or have the statement group or join fewer rows."),
        other => Error::internal(format!("analytics: {other}")),
    }
}

/// Whether memory ran out.
pub fn is_exhausted(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}
