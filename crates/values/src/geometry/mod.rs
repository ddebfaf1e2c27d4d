//! Shapes on the plane, with the comparisons of PostgreSQL's geometric types.
//!
//! Numbers that differ by no more than [`EPSILON`] are taken for equal by most predicates. What
//! overflows is an error, as in arithmetic of doubles.

pub mod area;
pub mod line;
pub mod number;
pub mod path;

pub use area::{Circle, Rectangle};
pub use line::{Line, Segment};
pub use number::{EPSILON, Point};
pub use path::{Path, Polygon};
