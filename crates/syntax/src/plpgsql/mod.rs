//! PL/pgSQL: bodies read into flat code.
//!
//! A body is read once into instructions with jumps ([`Code`]); its expressions and SQL statements
//! are kept as text with the names that are in sight there, and are bound when they first run, with
//! variables as parameters. Which name is whose is decided while the body is read, as PostgreSQL
//! does, so a statement can be told from an assignment.

mod code;
mod condition;
mod cursor;
mod declare;
mod loops;
mod parse;
mod raise;
mod statement;

pub use code::*;
pub use condition::{name_of_state, states_named};
pub use parse::{Signature, SignatureArg, Types, VarType, parse_body};
