//! Aggregates: the state each group keeps, and what it becomes.

use super::Aggregate;

/// What an aggregate has gathered of a group.
#[derive(Debug, Default)]
pub struct AggState(());

pub static AGGREGATES: &[Aggregate] = &[];
