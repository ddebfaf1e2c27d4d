//! Full-text search: how a text becomes lexemes, and a query's words the same lexemes.
//!
//! ```text
//! text ── parser ──► tokens ── configuration ──► dictionaries ──► lexemes with places: a tsvector
//! ```
//! A configuration says which dictionaries a kind of token is given to; the first that knows the
//! word decides. A stop word is known and gives no lexeme, but takes its place. How vectors and
//! queries are kept and matched is told in `throng_types::text_search`.

pub mod configuration;
pub mod dictionary;
pub mod document;
pub mod parser;
pub mod query;
pub mod token;

pub use configuration::Configuration;
pub use dictionary::Dictionary;
