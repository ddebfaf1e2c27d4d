//! Values of SQL: how types are read and written, the functions over them, and the settings.
//!
//! Promises: nothing here knows a definition, a statement or a session; what a function needs of
//! those it asks of its [`func::EvalHost`]. Whatever may compute for long looks at its turn.
//!
//! Imported by: `server`, `analytics`, `session`, `exec`, `plan`, `bind`, `catalog`.

pub mod acl;
pub mod charset;
pub mod eval;
pub mod extension;
pub mod format;
pub mod func;
pub mod hash;
pub mod inverted;
pub mod io;
mod regex;
pub mod settings;
pub mod zone;
