//! Operators and casts that users made.

use serde::{Deserialize, Serialize};
use throng_types::Oid;

use super::{ViewUse, id};

/// An operator: a way to write a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperatorDef {
    #[serde(with = "id")]
    pub oid: Oid,
    #[serde(with = "id")]
    pub schema: Oid,
    pub name: String,
    #[serde(with = "id")]
    pub owner: Oid,
    /// None of a prefix operator.
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub left: Option<Oid>,
    #[serde(with = "id")]
    pub right: Oid,
    #[serde(with = "id")]
    pub ret: Oid,
    /// None of a shell: another operator names it, and nobody has made it yet.
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub function: Option<Oid>,
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub commutator: Option<Oid>,
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub negator: Option<Oid>,
    /// What guesses how many rows it leaves, by a constant and in a join.
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub restrict: Option<Oid>,
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub join: Option<Oid>,
    pub hashes: bool,
    pub merges: bool,
    /// Its types and functions that users made: they cannot go while it is there.
    pub uses: Vec<ViewUse>,
}

/// A cast from a type to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CastDef {
    #[serde(with = "id")]
    pub oid: Oid,
    #[serde(with = "id")]
    pub from: Oid,
    #[serde(with = "id")]
    pub to: Oid,
    #[serde(default, with = "id", skip_serializing_if = "Option::is_none")]
    pub function: Option<Oid>,
    /// `f` by the function, `b` none needed, `i` through text.
    pub method: char,
    /// `e` where it is written, `a` in an assignment too, `i` anywhere.
    pub context: char,
    /// Its types and functions that users made: they cannot go while it is there.
    pub uses: Vec<ViewUse>,
}

/// What a definition names that users made.
pub fn uses_of(objects: impl IntoIterator<Item = Oid>) -> Vec<ViewUse> {
    let mut objects: Vec<Oid> = objects.into_iter().collect();
    objects.sort();
    objects.dedup();
    let used = |object| ViewUse {
        object,
        columns: vec![],
    };
    objects.into_iter().map(used).collect()
}
