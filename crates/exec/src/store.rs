//! The storage that statements run on, in one handle.

use std::sync::Arc;

use throng_access::RelationStore;
use throng_buffer::Pool;

use crate::sequence::Counters;
use crate::spill::SpillSpace;

#[derive(Clone)]
pub struct Store {
    pub pool: Arc<Pool>,
    pub relations: Arc<RelationStore>,
    pub sequences: Arc<Counters>,
    /// For rows that do not fit in memory.
    pub spill: Arc<SpillSpace>,
}
