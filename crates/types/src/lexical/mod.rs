//! How SQL spells things: keywords and names in quotes, space, characters by their numbers, amounts
//! with a unit.

pub mod keyword;
pub mod quantity;
pub mod unicode;

pub use keyword::{Category, KEYWORDS, quote_ident, quote_literal};

/// What C's `isspace` takes for space.
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}
