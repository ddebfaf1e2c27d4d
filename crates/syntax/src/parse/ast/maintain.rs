//! The syntax tree of VACUUM, ANALYZE and REFRESH.

use super::Name;

/// A table that is named.
#[derive(Clone, Debug, PartialEq)]
pub struct Maintained {
    pub name: Name,
    /// Its children are not meant.
    pub only: bool,
    pub columns: Vec<String>,
}

/// REFRESH MATERIALIZED VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct Refresh {
    pub name: Name,
    pub concurrently: bool,
    pub with_data: bool,
}
