//! Character sets that clients may speak; the server keeps UTF-8.
//!
//! Promise: what is decoded or encoded is what PostgreSQL's conversions give, for the tables were
//! made of them (`convert_from` and `convert_to` over every code). A sequence that is none of the
//! character set is 22021, a character without an equivalent 22P05. The sets that PostgreSQL knows
//! and that have no table here are named, and converting is refused.

mod table;
mod utf8;

use std::borrow::Cow;

use throng_types::error::state;
use throng_types::{Error, Result};

use table::Table;
pub use utf8::check_text;

/// A character set, by PostgreSQL's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset(u8);

const NAMES: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// Other names, without what is neither letter nor digit.
const ALIASES: [(&str, &str); 39] = [
    ("abc", "WIN1258"),
    ("alt", "WIN866"),
    ("iso88591", "LATIN1"),
    ("iso88592", "LATIN2"),
    ("iso88593", "LATIN3"),
    ("iso88594", "LATIN4"),
    ("iso88599", "LATIN5"),
    ("iso885910", "LATIN6"),
    ("iso885913", "LATIN7"),
    ("iso885914", "LATIN8"),
    ("iso885915", "LATIN9"),
    ("iso885916", "LATIN10"),
    ("koi8", "KOI8R"),
    ("mskanji", "SJIS"),
    ("shiftjis", "SJIS"),
    ("tcvn", "WIN1258"),
    ("tcvn5712", "WIN1258"),
    ("unicode", "UTF8"),
    ("vscii", "WIN1258"),
    ("win", "WIN1251"),
    ("win932", "SJIS"),
    ("win936", "GBK"),
    ("win949", "UHC"),
    ("win950", "BIG5"),
    ("windows866", "WIN866"),
    ("windows874", "WIN874"),
    ("windows932", "SJIS"),
    ("windows936", "GBK"),
    ("windows949", "UHC"),
    ("windows950", "BIG5"),
    ("windows1250", "WIN1250"),
    ("windows1251", "WIN1251"),
    ("windows1252", "WIN1252"),
    ("windows1253", "WIN1253"),
    ("windows1254", "WIN1254"),
    ("windows1255", "WIN1255"),
    ("windows1256", "WIN1256"),
    ("windows1257", "WIN1257"),
    ("windows1258", "WIN1258"),
];

/// Letters and digits, in lower case.
fn plain(name: &str) -> String {
    let kept = name.chars().filter(char::is_ascii_alphanumeric);
    kept.map(|c| c.to_ascii_lowercase()).collect()
}

/// Bytes as messages show them.
fn shown(bytes: &[u8]) -> String {
    let each: Vec<String> = bytes.iter().map(|b| format!("0x{b:02x}")).collect();
    each.join(" ")
}

impl Charset {
    pub const SQL_ASCII: Charset = Charset(0);
    pub const UTF8: Charset = Charset(6);

    pub fn named(name: &str) -> Option<Charset> {
        let wanted = plain(name);
        let other = ALIASES.iter().find(|(alias, _)| *alias == wanted);
        let at = NAMES.iter().position(|known| match other {
            Some((_, name)) => known == name,
            None => plain(known) == wanted,
        })?;
        u8::try_from(at).ok().map(Charset)
    }

    pub fn numbered(number: i64) -> Option<Charset> {
        let number = u8::try_from(number).ok()?;
        (usize::from(number) < NAMES.len()).then_some(Charset(number))
    }

    pub fn number(self) -> i32 {
        i32::from(self.0)
    }

    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }

    /// Bytes are passed on as they are, and must be UTF-8.
    #[inline]
    pub fn is_plain(self) -> bool {
        self == Charset::UTF8 || self == Charset::SQL_ASCII
    }

    /// Whether there is a conversion from and to UTF-8.
    pub fn is_converted(self) -> bool {
        self.is_plain() || Table::of(self).is_some()
    }

    /// Bytes of the longest character.
    pub fn longest(self) -> i32 {
        match self.name() {
            "UTF8" | "EUC_TW" | "MULE_INTERNAL" | "GB18030" => 4,
            "EUC_JP" | "EUC_JIS_2004" | "JOHAB" => 3,
            "EUC_CN" | "EUC_KR" | "SJIS" | "BIG5" | "GBK" | "UHC" | "SHIFT_JIS_2004" => 2,
            _ => 1,
        }
    }

    fn table(self) -> Result<&'static Table> {
        Table::of(self).ok_or_else(|| {
            Error::unsupported(format!("conversion between {} and UTF8", self.name()))
        })
    }

    /// Text of bytes in this character set.
    ///
    /// # Errors
    /// 22021, 22P05; 0A000 where there is no conversion.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>> {
        if self.is_plain() {
            return check_text(bytes).map(Cow::Borrowed);
        }
        match self.decode_whole(bytes)? {
            (text, rest) if rest == bytes.len() => Ok(text),
            (_, rest) => Err(self.invalid(&bytes[rest..])),
        }
    }

    /// The same of a piece of a stream: without the character that the piece may end within, and
    /// how many bytes came before that.
    pub fn decode_whole(self, bytes: &[u8]) -> Result<(Cow<'_, str>, usize)> {
        if bytes.is_ascii()
            && !bytes.contains(&0)
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return Ok((Cow::Borrowed(text), bytes.len()));
        }
        let table = self.table()?;
        let mut text = String::with_capacity(bytes.len() + bytes.len() / 2);
        let mut at = 0;
        while let Some(&first) = bytes.get(at) {
            let rest = &bytes[at..];
            if first == 0 {
                return Err(self.invalid(rest));
            }
            let length = self.length(first);
            if length > rest.len() {
                break;
            }
            let character = &rest[..length];
            if !self.is_valid(character) {
                return Err(self.invalid(rest));
            }
            match table.character(character) {
                Some(c) => text.push(c),
                None => return Err(self.untranslatable(character, Charset::UTF8)),
            }
            at += length;
        }
        Ok((Cow::Owned(text), at))
    }

    /// Appends a text in this character set.
    ///
    /// # Errors
    /// 22P05; 0A000 where there is no conversion.
    pub fn encode(self, text: &str, out: &mut Vec<u8>) -> Result<()> {
        if self.is_plain() || text.is_ascii() {
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let table = self.table()?;
        for c in text.chars() {
            if !table.write(c, out) {
                let mut bytes = [0; 4];
                let bytes = c.encode_utf8(&mut bytes).as_bytes();
                return Err(Charset::UTF8.untranslatable(bytes, self));
            }
        }
        Ok(())
    }

    /// Writes anew, in this character set, the UTF-8 that `out` has from `start` on.
    ///
    /// # Errors
    /// As [`Charset::encode`].
    #[inline]
    pub fn encode_from(self, start: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.is_plain() || out[start..].is_ascii() {
            return Ok(());
        }
        let tail = out.split_off(start);
        self.encode(check_text(&tail)?, out)
    }

    /// As [`Charset::encode`], with `?` for what has no equivalent: of what must be told whatever
    /// it says.
    pub fn encode_all(self, text: &str, out: &mut Vec<u8>) {
        let table = Table::of(self).filter(|_| !self.is_plain() && !text.is_ascii());
        let Some(table) = table else {
            out.extend_from_slice(text.as_bytes());
            return;
        };
        for c in text.chars() {
            if !table.write(c, out) {
                out.push(b'?');
            }
        }
    }

    /// Bytes of the character that begins so.
    fn length(self, first: u8) -> usize {
        if first < 0x80 {
            return 1;
        }
        match (self.name(), first) {
            ("EUC_JP", 0x8f) => 3,
            ("SJIS", 0xa1..=0xdf) => 1,
            ("EUC_JP" | "EUC_CN" | "EUC_KR" | "SJIS" | "BIG5" | "GBK" | "UHC", _) => 2,
            _ => 1,
        }
    }

    /// Whether the bytes of a character are in the ranges that the character set has.
    fn is_valid(self, character: &[u8]) -> bool {
        let upper = |bytes: &[u8]| bytes.iter().all(|b| (0xa1..=0xfe).contains(b));
        match (self.name(), character) {
            (_, [_]) => true,
            ("EUC_JP", [0x8e, second]) => (0xa1..=0xdf).contains(second),
            ("EUC_JP", [0x8f, rest @ ..]) => upper(rest),
            ("EUC_JP" | "EUC_CN" | "EUC_KR", whole) => upper(whole),
            ("SJIS", [first, second]) => {
                matches!(first, 0x81..=0x9f | 0xe0..=0xfc)
                    && matches!(second, 0x40..=0x7e | 0x80..=0xfc)
            }
            (_, [_, rest @ ..]) => !rest.contains(&0),
            (_, []) => false,
        }
    }

    #[cold]
    fn invalid(self, rest: &[u8]) -> Error {
        let length = self.length(rest[0]).min(rest.len());
        Error::new(
            state::CHARACTER_NOT_IN_REPERTOIRE,
            format!(
                "invalid byte sequence for encoding \"{}\": {}",
                self.name(),
                shown(&rest[..length])
            ),
        )
    }

    #[cold]
    fn untranslatable(self, character: &[u8], to: Charset) -> Error {
        Error::new(
            state::UNTRANSLATABLE_CHARACTER,
            format!(
                "character with byte sequence {} in encoding \"{}\" has no equivalent in encoding \"{}\"",
                shown(character),
                self.name(),
                to.name()
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charset(name: &str) -> Charset {
        Charset::named(name).expect(name)
    }

    #[test]
    fn names_and_aliases_are_found() {
        let number = |name| Charset::named(name).map(Charset::number);
        assert_eq!(number("iso-8859-1"), Some(8));
        assert_eq!(number("Windows-1252"), Some(24));
        assert_eq!(number("tcvn"), Some(19));
        assert_eq!(number("unicode"), Some(6));
        assert_eq!(number("nope"), None);
        assert!(ALIASES.iter().all(|(alias, _)| plain(alias) == *alias));
    }

    /// Written in a way that is not read again, in PostgreSQL too: as an ASCII character, or as
    /// half of one.
    fn is_one_way(name: &str, c: char) -> bool {
        matches!((name, c), (_, '\u{a5}' | '\u{203e}') | ("GBK", '€'))
    }

    /// Every character of a table comes back from its bytes.
    #[test]
    fn characters_come_back() {
        let mut converted = 0;
        for (number, name) in NAMES.iter().enumerate() {
            let charset = Charset(number as u8);
            let Some(table) = Table::of(charset) else {
                continue;
            };
            converted += 1;
            for c in (1..=0xffff).filter_map(char::from_u32) {
                let mut bytes = Vec::new();
                if !table.write(c, &mut bytes) || is_one_way(name, c) {
                    continue;
                }
                let text = charset
                    .decode(&bytes)
                    .unwrap_or_else(|e| panic!("{name} {c}: {e}"));
                // Some characters are written as others that look like them.
                let mut again = Vec::new();
                charset.encode(&text, &mut again).unwrap();
                assert_eq!(again, bytes, "{name} {c:?}");
            }
        }
        assert_eq!(converted, 34);
        let (text, at) = charset("SJIS")
            .decode_whole(&[0x41, 0x82, 0xa0, 0x82])
            .unwrap();
        assert_eq!((text.as_ref(), at), ("Aあ", 3));
    }

    #[test]
    fn what_cannot_be_converted_is_told() {
        let told = |result: Result<Cow<'_, str>>| result.unwrap_err().message().to_owned();
        assert_eq!(
            told(charset("win1252").decode(&[0x81])),
            "character with byte sequence 0x81 in encoding \"WIN1252\" has no equivalent in encoding \"UTF8\""
        );
        assert_eq!(
            told(charset("sjis").decode(&[0x81, 0x27])),
            "invalid byte sequence for encoding \"SJIS\": 0x81 0x27"
        );
        assert_eq!(
            told(charset("euc_jp").decode(&[0xa1])),
            "invalid byte sequence for encoding \"EUC_JP\": 0xa1"
        );
        let mut out = Vec::new();
        charset("latin1").encode_all("a€é", &mut out);
        assert_eq!(out, [b'a', b'?', 0xe9]);
    }
}
