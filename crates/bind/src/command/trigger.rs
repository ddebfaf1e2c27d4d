//! What ALTER TABLE does to triggers.

use throng_catalog::Enabled;

/// ENABLE or DISABLE TRIGGER.
#[derive(Clone, Debug)]
pub struct EnableTriggers {
    /// None: all of them.
    pub name: Option<String>,
    pub enabled: Enabled,
    /// Foreign keys, too.
    pub keys: bool,
    /// Not in the table's partitions.
    pub only: bool,
}
