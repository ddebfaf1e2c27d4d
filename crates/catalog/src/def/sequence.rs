//! Sequences.

use serde::{Deserialize, Serialize};
use throng_types::{FileId, Oid};

use super::id;

/// A sequence. Its current value is in its file, outside transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SequenceDef {
    #[serde(with = "id")]
    pub oid: Oid,
    #[serde(with = "id")]
    pub schema: Oid,
    pub name: String,
    #[serde(with = "id")]
    pub owner: Oid,
    #[serde(with = "id")]
    pub file: FileId,
    /// int2, int4 or int8.
    #[serde(with = "id")]
    pub ty: Oid,
    pub start: i64,
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cache: i64,
    pub cycle: bool,
    /// Table and attribute number it is dropped with.
    #[serde(with = "id")]
    pub owned_by: Option<(Oid, u16)>,
    /// Behind an identity column: cannot be dropped alone.
    pub identity: bool,
}
