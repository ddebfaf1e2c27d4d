//! Small enumerations that statements are written with and that every layer above goes by.

mod commands;
mod definitions;
mod queries;

pub use commands::*;
pub use definitions::*;
pub use queries::*;
