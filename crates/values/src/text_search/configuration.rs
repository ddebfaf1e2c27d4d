//! Configurations: which dictionaries each kind of token is given to.

use super::dictionary::{DICTIONARIES, Dictionary};
use super::token::TokenKind;
use throng_types::Oid;

/// One of those that every database has: `simple`, and one a language.
#[derive(Clone, Copy)]
pub struct Configuration {
    pub oid: Oid,
    pub name: &'static str,
    /// What letters outside ASCII are given to.
    words: &'static Dictionary,
    ascii_words: &'static Dictionary,
}

/// The only parser.
pub const DEFAULT_PARSER: Oid = Oid(3722);

const SIMPLE: Oid = Oid(3748);

/// The dictionaries by which everything but words is kept.
fn simple() -> &'static Dictionary {
    &DICTIONARIES[0]
}

/// Languages in whose texts words of ASCII letters are taken for English.
const WITH_ENGLISH: &[&str] = &["hindi", "russian"];

impl Configuration {
    pub fn all() -> impl Iterator<Item = Configuration> {
        DICTIONARIES
            .iter()
            .map(|dictionary| match dictionary.language {
                None => Configuration {
                    oid: SIMPLE,
                    name: "simple",
                    words: dictionary,
                    ascii_words: dictionary,
                },
                Some(language) => Configuration {
                    // Each follows its stemmer.
                    oid: Oid(dictionary.oid.0 + 1),
                    name: language.name,
                    words: dictionary,
                    ascii_words: match WITH_ENGLISH.contains(&language.name) {
                        true => Dictionary::by_name("english_stem").unwrap_or(dictionary),
                        false => dictionary,
                    },
                },
            })
    }
    pub fn by_oid(oid: Oid) -> Option<Configuration> {
        Configuration::all().find(|configuration| configuration.oid == oid)
    }
    pub fn by_name(name: &str) -> Option<Configuration> {
        Configuration::all().find(|configuration| configuration.name == name)
    }
    /// The dictionary that such tokens are given to; None where they are left out.
    pub fn dictionary(&self, kind: TokenKind) -> Option<&'static Dictionary> {
        use TokenKind::*;
        match kind {
            AsciiWord | AsciiHyphenated | HyphenatedAsciiPart => Some(self.ascii_words),
            Word | Hyphenated | HyphenatedPart => Some(self.words),
            Blank | Tag | Protocol | Entity => None,
            _ => Some(simple()),
        }
    }
}
