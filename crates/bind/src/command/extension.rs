//! CREATE EXTENSION and ALTER EXTENSION, bound.

use throng_types::Oid;

/// What happens to an extension.
#[derive(Clone, Debug)]
pub enum ExtensionDdl {
    Create {
        name: String,
        schema: Oid,
        /// The schema was named: what it needs goes there, too.
        cascade: bool,
        owner: Oid,
    },
    /// To the version that the server has.
    Update {
        extension: Oid,
    },
    SetSchema {
        extension: Oid,
        schema: Oid,
    },
}

impl ExtensionDdl {
    pub fn tag(&self) -> &'static str {
        match self {
            ExtensionDdl::Create { .. } => "CREATE EXTENSION",
            _ => "ALTER EXTENSION",
        }
    }
}
