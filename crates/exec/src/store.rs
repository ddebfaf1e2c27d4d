//! The storage that statements run on, in one handle.

use std::sync::Arc;

use throng_access::RelationStore;
use throng_buffer::Pool;

#[derive(Clone)]
pub struct Store {
    pub pool: Arc<Pool>,
    pub relations: Arc<RelationStore>,
}
