//! What a `jsonpath` finds in a `jsonb`.
//!
//! Paths are walked over the bytes of the document; values made on the way live in an [`arena`]
//! until the walk ends. A walk's depth, its steps and the values it holds are bounded ([`exec`]).

mod arena;
mod exec;
mod method;
mod moment;
mod offset;
mod predicate;
mod table;
mod template;
#[cfg(test)]
mod tests;
mod value;

pub use exec::{Answer, Variables, run};
pub use moment::Moment;
pub use table::array;
pub(super) use table::{FUNCTIONS, OPERATORS, SETS};
pub use value::Value;

use crate::io::jsonpath::*;
use throng_types::{Numeric, Result, Text};
