//! Characters written by their numbers: `U&'\0061'`, `E'\u0061'`, `unistr('\u0061')`.

/// What is wrong with such a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No escape of the allowed forms.
    Escape,
    /// Half of a surrogate pair.
    Pair,
    /// No character has the number.
    Value(u32),
}

/// Numbers that may be halves of surrogate pairs.
#[derive(Default)]
pub struct Units {
    high: Option<u32>,
}

impl Units {
    /// The character that is whole with this number; none for the first half of a pair.
    pub fn add(&mut self, code: u32) -> Result<Option<char>, Fault> {
        let code = match (self.high.take(), code) {
            (None, 0xd800..=0xdbff) => {
                self.high = Some(code);
                return Ok(None);
            }
            (Some(high), 0xdc00..=0xdfff) => 0x1_0000 + ((high & 0x3ff) << 10) + (code & 0x3ff),
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(Fault::Pair),
            (None, code) => code,
        };
        match char::from_u32(code).filter(|c| *c != '\0') {
            Some(c) => Ok(Some(c)),
            None => Err(Fault::Value(code)),
        }
    }

    /// Something else follows: a pair must be whole.
    pub fn end(&self) -> Result<(), Fault> {
        self.high.map_or(Ok(()), |_| Err(Fault::Pair))
    }
}

/// Replaces `\XXXX` and `\+XXXXXX`, with `letters` also `\uXXXX` and `\UXXXXXXXX`; `\\` is a
/// backslash. A fault comes with its byte.
pub fn unescape(text: &str, letters: bool) -> Result<String, (Fault, usize)> {
    let mut out = String::with_capacity(text.len());
    let mut units = Units::default();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let at = text.len() - rest.len();
        if c != '\\' || rest.starts_with("\\\\") {
            units.end().map_err(|fault| (fault, at))?;
            out.push(c);
            rest = &rest[c.len_utf8() * if c == '\\' { 2 } else { 1 }..];
            continue;
        }
        let (skip, len) = match rest.as_bytes().get(1) {
            Some(b'+') => (2, 6),
            Some(b'u') if letters => (2, 4),
            Some(b'U') if letters => (2, 8),
            _ => (1, 4),
        };
        let hex = rest
            .get(skip..skip + len)
            .filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = hex.and_then(|h| u32::from_str_radix(h, 16).ok());
        let code = code.ok_or((Fault::Escape, at))?;
        out.extend(units.add(code).map_err(|fault| (fault, at))?);
        rest = &rest[skip + len..];
    }
    units.end().map_err(|fault| (fault, text.len()))?;
    Ok(out)
}
