//! Functions that SQL also writes with words between their arguments, as `x AT TIME ZONE y`: a call
//! keeps which of the two it was.
//!
//! Such a call is of the function's twin, which is equal to it and computes the same; only who
//! writes the call as SQL asks.

use std::collections::HashMap;
use std::sync::LazyLock;

use throng_types::Oid;

use super::{Function, functions_named};

const NAMES: [&str; 10] = [
    "timezone",
    "position",
    "overlay",
    "substring",
    "btrim",
    "ltrim",
    "rtrim",
    "is_normalized",
    "normalize",
    "overlaps",
];

static TWINS: LazyLock<HashMap<Oid, Function>> = LazyLock::new(|| {
    let all = NAMES.into_iter().flat_map(functions_named);
    all.map(|func| (func.oid, func.twin())).collect()
});

/// The function as one that was written with words.
pub fn with_words(func: &'static Function) -> &'static Function {
    TWINS.get(&func.oid).unwrap_or(func)
}

/// Whether the call of it was written with words.
pub fn has_words(func: &Function) -> bool {
    let twin = NAMES.contains(&func.name).then(|| TWINS.get(&func.oid));
    twin.flatten().is_some_and(|twin| std::ptr::eq(twin, func))
}
