//! The rows of several tables, one table after another; tables that cannot have any are passed
//! over.

use throng_plan::{Append, AppendInput, prune};

use super::build::operator;
use super::eval::eval;
use super::{BoxOperator, Cx, Operator, Row, Step};

pub struct AppendOp {
    node: &'static Append,
    /// Made when they are read first.
    inputs: Vec<Option<BoxOperator>>,
    at: usize,
    /// Which inputs are read, once that is known.
    kept: Option<Vec<bool>>,
    whole: Row,
}

impl AppendOp {
    pub fn new(node: &'static Append) -> AppendOp {
        let mut inputs = Vec::new();
        inputs.resize_with(node.inputs.len(), || None);
        AppendOp {
            node,
            inputs,
            at: 0,
            kept: None,
            whole: Row::new(),
        }
    }
}

/// Which inputs can have rows, for the values as they are now.
pub fn kept_inputs(node: &Append, cx: &mut Cx) -> Step<Vec<bool>> {
    let inputs = &node.inputs;
    let is_meant = |input: &AppendInput| cx.only_version(input.rel).is_some();
    if inputs.iter().any(is_meant) {
        return Ok(inputs.iter().map(is_meant).collect());
    }
    let Some(pruning) = &node.pruning else {
        return Ok(vec![true; inputs.len()]);
    };
    let mut values = Vec::with_capacity(pruning.values.len());
    for value in &pruning.values {
        values.push(eval(value, &[], cx)?);
    }
    let conditions = prune::with_values(&pruning.conditions, &values);
    let leaves = prune::leaves(&pruning.tree.divisions, &conditions)?;
    let kept = inputs.iter().map(|input| leaves.contains(&input.leaf));
    Ok(kept.collect())
}

impl Operator for AppendOp {
    fn next(&mut self, cx: &mut Cx, row: &mut Row) -> Step<bool> {
        if self.kept.is_none() {
            self.kept = Some(kept_inputs(self.node, cx)?);
        }
        while let Some(input) = self.node.inputs.get(self.at) {
            let read = self.kept.as_ref().is_none_or(|kept| kept[self.at]);
            if read {
                let operator = match &mut self.inputs[self.at] {
                    Some(made) => made,
                    none => none.insert(operator(&input.plan, cx)?),
                };
                if input.slots.is_empty() {
                    if operator.next(cx, row)? {
                        return Ok(true);
                    }
                } else if operator.next(cx, &mut self.whole)? {
                    row.clear();
                    for slot in &input.slots {
                        row.push(self.whole[*slot as usize].clone());
                    }
                    return Ok(true);
                }
            }
            self.at += 1;
            cx.tick()?;
        }
        Ok(false)
    }

    fn rewind(&mut self, cx: &mut Cx) {
        self.at = 0;
        self.kept = None;
        for input in self.inputs.iter_mut().flatten() {
            input.rewind(cx);
        }
    }
}
