//! Statements of SQL and bodies of PL/pgSQL: their words, their trees, and the parsers that make
//! those of text.
//!
//! Promises: any text gives a tree or an error with its place, in time linear in the text, on a
//! bounded stack. Nothing here knows a definition, a function or a value.
//!
//! Imported by: `session`, `plan`, `bind`, `catalog`.

pub mod parse;
pub mod plpgsql;
pub mod vocabulary;
