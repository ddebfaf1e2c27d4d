//! Paths: the keys and subscripts that lead into a value.

use throng_types::{Array, Datum};

/// The steps of a path; None where one of them is NULL.
pub fn steps(path: &Array) -> Option<Vec<&str>> {
    path.items.iter().map(Datum::as_str).collect()
}

/// A step as a subscript, as C's `strtol` reads it.
pub fn subscript(step: &str) -> Option<i32> {
    let digits = step.trim_start_matches(crate::io::scalar::is_space);
    digits.parse().ok()
}
