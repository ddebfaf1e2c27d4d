//! `tsvector` and `tsquery` as bytes: what texts are searched by.
//!
//! Both are values of base types: the bytes are those of memory, of a row and of the spilled form.
//! Where lexemes come from (parsers, dictionaries) is told in `throng_values::text_search`.
//!
//! Source of the meaning: PostgreSQL's manual, "Full Text Search"; "Phrase search in PostgreSQL"
//! (Bartunov, Sigaev) for positions in queries.

pub mod matching;
pub mod query;
pub mod vector;

pub use query::{Node, Operand, TsQuery};
pub use vector::{Lexeme, Position, TsVector, TsVectorBuilder, Weight};
