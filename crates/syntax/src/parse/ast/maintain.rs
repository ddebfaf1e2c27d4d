//! The syntax tree of VACUUM and ANALYZE.

use super::Name;

/// A table that is named.
#[derive(Clone, Debug, PartialEq)]
pub struct Maintained {
    pub name: Name,
    /// Its children are not meant.
    pub only: bool,
    pub columns: Vec<String>,
}
