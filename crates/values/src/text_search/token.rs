//! The kinds of tokens that PostgreSQL's default parser tells apart.

/// A kind, by PostgreSQL's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TokenKind {
    AsciiWord = 1,
    Word,
    NumWord,
    Email,
    Url,
    Host,
    ScientificFloat,
    Version,
    HyphenatedNumPart,
    HyphenatedPart,
    HyphenatedAsciiPart,
    Blank,
    Tag,
    Protocol,
    NumHyphenated,
    AsciiHyphenated,
    Hyphenated,
    UrlPath,
    File,
    Float,
    Int,
    UnsignedInt,
    Entity,
}

use TokenKind::*;

/// Each kind with its alias and its description, in order of their numbers.
pub const KINDS: &[(TokenKind, &str, &str)] = &[
    (AsciiWord, "asciiword", "Word, all ASCII"),
    (Word, "word", "Word, all letters"),
    (NumWord, "numword", "Word, letters and digits"),
    (Email, "email", "Email address"),
    (Url, "url", "URL"),
    (Host, "host", "Host"),
    (ScientificFloat, "sfloat", "Scientific notation"),
    (Version, "version", "Version number"),
    (
        HyphenatedNumPart,
        "hword_numpart",
        "Hyphenated word part, letters and digits",
    ),
    (
        HyphenatedPart,
        "hword_part",
        "Hyphenated word part, all letters",
    ),
    (
        HyphenatedAsciiPart,
        "hword_asciipart",
        "Hyphenated word part, all ASCII",
    ),
    (Blank, "blank", "Space symbols"),
    (Tag, "tag", "XML tag"),
    (Protocol, "protocol", "Protocol head"),
    (
        NumHyphenated,
        "numhword",
        "Hyphenated word, letters and digits",
    ),
    (AsciiHyphenated, "asciihword", "Hyphenated word, all ASCII"),
    (Hyphenated, "hword", "Hyphenated word, all letters"),
    (UrlPath, "url_path", "URL path"),
    (File, "file", "File or path name"),
    (Float, "float", "Decimal notation"),
    (Int, "int", "Signed integer"),
    (UnsignedInt, "uint", "Unsigned integer"),
    (Entity, "entity", "XML entity"),
];

impl TokenKind {
    pub fn number(self) -> i32 {
        self as i32
    }
    pub fn alias(self) -> &'static str {
        KINDS[self as usize - 1].1
    }
    pub fn description(self) -> &'static str {
        KINDS[self as usize - 1].2
    }
}
