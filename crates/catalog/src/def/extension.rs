//! Extensions that were installed.

use serde::{Deserialize, Serialize};
use throng_types::Oid;

use super::id;

/// An extension, and what it brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExtensionDef {
    #[serde(with = "id")]
    pub oid: Oid,
    pub name: String,
    /// Where its members are.
    #[serde(with = "id")]
    pub schema: Oid,
    #[serde(with = "id")]
    pub owner: Oid,
    pub version: String,
    /// The objects that came with it, and go with it, by age.
    #[serde(with = "id")]
    pub members: Vec<Oid>,
    /// The extensions that it needs.
    #[serde(with = "id")]
    pub requires: Vec<Oid>,
}
