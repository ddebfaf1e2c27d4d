//! Whether a statement gives the same rows again, and can be read backwards.

use throng_bind::fold;

use super::{Node, Plan, PlannedStatement, StatementTag};

impl PlannedStatement {
    /// Whether another run under the same snapshot gives the same rows in the same order.
    pub fn repeats(&self) -> bool {
        fn keeps_order(plan: &Plan) -> bool {
            let own = match &plan.node {
                Node::IndexScan(scan) => scan.in_order || scan.is_single,
                _ => true,
            };
            own && plan.children().into_iter().all(keeps_order)
        }
        self.reads_backwards() && keeps_order(&self.root)
    }

    /// Whether a cursor over it may be read backwards without having been told so: what
    /// PostgreSQL's operators can do.
    pub fn reads_backwards(&self) -> bool {
        fn goes(plan: &Plan) -> bool {
            match &plan.node {
                Node::Values { rows } => rows.len() != 1,
                Node::SeqScan(_)
                | Node::IndexScan(_)
                | Node::BitmapScan(_)
                | Node::VirtualScan { .. }
                | Node::FunctionScan(_)
                | Node::CteScan { .. }
                | Node::Filter { .. }
                | Node::Project { .. }
                | Node::Limit { .. }
                | Node::Append(_)
                | Node::Materialize { .. } => plan.children().into_iter().all(goes),
                Node::Sort { .. } => true,
                _ => false,
            }
        }
        // It is run again for that, and has to give the same.
        let mut changes = false;
        for plan in self.subplans.iter().chain([&self.root]) {
            plan.for_each_expr(&mut |e| changes |= e.any(&mut fold::is_volatile));
        }
        self.tag == StatementTag::Select && self.writes.is_empty() && !changes && goes(&self.root)
    }
}
