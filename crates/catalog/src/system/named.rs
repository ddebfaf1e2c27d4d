//! Objects that are built in, by their names.

use throng_types::Oid;

use super::{operator_class, types};
use crate::builtin;

pub fn collation(name: &str) -> Option<Oid> {
    let found = types::COLLATIONS.iter().find(|(_, known)| *known == name);
    found.map(|(oid, _)| *oid)
}

pub fn access_method(name: &str) -> Option<Oid> {
    match name {
        "heap" => Some(builtin::HEAP_AM),
        "btree" => Some(builtin::BTREE_AM),
        "hash" => Some(builtin::HASH_AM),
        "gist" => Some(builtin::GIST_AM),
        "gin" => Some(builtin::GIN_AM),
        _ => None,
    }
}

pub fn tablespace(name: &str) -> Option<Oid> {
    match name {
        "pg_default" => Some(builtin::DEFAULT_TABLESPACE),
        "pg_global" => Some(builtin::GLOBAL_TABLESPACE),
        _ => None,
    }
}

/// An operator class or family of an access method.
pub fn of_method(method: &str, class: Oid, name: &str) -> Option<Oid> {
    match class {
        builtin::class::OPERATOR_CLASS => operator_class::class_named(method, name),
        _ => operator_class::family_named(method, name),
    }
}
