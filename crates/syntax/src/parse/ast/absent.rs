//! DROP of and COMMENT ON kinds of objects that only PostgreSQL has.

use super::Name;

#[derive(Clone, Debug, PartialEq)]
pub struct DropAbsent {
    /// `PUBLICATION`
    pub kind: &'static str,
    pub objects: Vec<AbsentObject>,
    pub if_exists: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AbsentObject {
    Named(Name),
    /// A rule or a policy.
    On {
        name: String,
        relation: Name,
    },
    /// Of a class or a family.
    Class {
        name: Name,
        method: String,
    },
    /// A large object.
    Numbered(i64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CommentAbsent {
    pub kind: &'static str,
    pub object: AbsentObject,
    pub text: Option<String>,
}
