//! Row security policies.

use std::sync::Arc;

use throng_catalog::PolicyDef;

/// CREATE POLICY, or ALTER POLICY of `old`.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyDdl {
    /// As it is to be; a new one without its oid.
    pub def: PolicyDef,
    pub old: Option<Arc<PolicyDef>>,
}
