//! What types that users made are: a domain's conditions, an enum's labels.

use serde::{Deserialize, Serialize};
use throng_types::{Oid, SqlType};

use super::id;

/// What a domain asks of values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Domain {
    /// What the values are: no domain, whatever it was made over.
    #[serde(with = "id")]
    pub base: SqlType,
    /// The type that a user made which it was made over: another domain, an array of one, an enum.
    #[serde(with = "id")]
    pub over: Option<Oid>,
    pub not_null: Option<DomainNotNull>,
    /// SQL text.
    pub default: Option<String>,
    pub collation: Option<String>,
    pub checks: Vec<DomainCheck>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainNotNull {
    #[serde(with = "id")]
    pub oid: Oid,
    pub name: String,
}

/// A CHECK of a domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainCheck {
    #[serde(with = "id")]
    pub oid: Oid,
    pub name: String,
    /// SQL text over `value`.
    pub expr: String,
    pub validated: bool,
}

/// A value of an enum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnumLabel {
    #[serde(with = "id")]
    pub oid: Oid,
    pub name: String,
    /// What values are kept and compared by; it never changes.
    pub place: f64,
}
