//! CREATE EXTENSION and ALTER EXTENSION.

/// What is said of an extension.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionStatement {
    pub name: String,
    pub action: ExtensionAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExtensionAction {
    Create {
        if_not_exists: bool,
        schema: Option<String>,
        version: Option<String>,
        cascade: bool,
    },
    /// To the version named, or to the newest.
    Update(Option<String>),
    SetSchema(String),
}
