//! Texts as lexemes with places.

use super::configuration::Configuration;
use super::parser::Parser;
use crate::eval::EvalContext;
use throng_types::error::{Severity, state};
use throng_types::text_search::vector::{MAX_LEXEME, Position, TsVectorBuilder};
use throng_types::{Error, Result};

/// A lexeme of a text.
pub struct Word {
    pub lexeme: String,
    /// Its place, from 1; stop words are counted.
    pub place: u32,
}

/// The words of a text.
#[derive(Default)]
pub struct Words {
    pub words: Vec<Word>,
    /// Places given out so far.
    places: u32,
}

impl Words {
    /// Adds a text's words, after those that are there.
    ///
    /// # Errors
    /// Those of cancellation.
    pub fn add(
        &mut self,
        ctx: &EvalContext<'_>,
        configuration: &Configuration,
        text: &str,
    ) -> Result<()> {
        let mut parser = Parser::new(text);
        while let Some(token) = parser.next_token()? {
            let Some(dictionary) = configuration.dictionary(token.kind) else {
                continue;
            };
            let word = &text[token.range];
            if word.len() > MAX_LEXEME - 1 {
                ctx.host.warn(too_long());
                continue;
            }
            self.places += 1;
            for lexeme in dictionary.lexize(word) {
                let place = self.places;
                self.words.push(Word { lexeme, place });
            }
        }
        Ok(())
    }

    /// Leaves places between what was added and what comes, so that no phrase goes over both.
    pub fn leave_gap(&mut self) {
        if !self.words.is_empty() {
            self.places += 1;
        }
    }

    /// The bytes of a `tsvector`.
    ///
    /// # Errors
    /// 54000 where it would be too long.
    pub fn into_vector(self) -> Result<Vec<u8>> {
        let mut builder = TsVectorBuilder::default();
        for word in self.words {
            let place = u16::try_from(word.place).unwrap_or(u16::MAX);
            builder.push(word.lexeme, vec![Position::new(place, 0)]);
        }
        builder.build()
    }
}

/// PostgreSQL's NOTICE.
fn too_long() -> Error {
    Error::new(
        state::SUCCESSFUL_COMPLETION,
        "word is too long to be indexed",
    )
    .severity(Severity::Notice)
    .detail(format!(
        "Words longer than {MAX_LEXEME} characters are ignored."
    ))
}
