//! `aclitem` as text: `grantee=rights/grantor`.

use throng_types::error::state;
use throng_types::{Array, Datum, Error, Result};

use super::right;

/// An item with its roles by name, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedItem {
    /// Empty: everybody.
    pub grantee: String,
    pub rights: u32,
    /// None: not written.
    pub grantor: Option<String>,
}

/// A role's name, in quotes where it has other characters than letters, digits and `_`.
fn push_name(name: &str, text: &mut String) {
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    match name.chars().all(safe) {
        true => text.push_str(name),
        false => {
            text.push('"');
            text.push_str(&name.replace('"', "\"\""));
            text.push('"');
        }
    }
}

/// Letters of rights, each followed by `*` where it is there with its grant option.
fn rights_text(rights: u32) -> String {
    let mut text = String::new();
    for (_, letter, bit) in right::NAMES {
        if rights & bit != 0 {
            text.push(letter);
        }
        if rights & right::options(bit) != 0 {
            text.push('*');
        }
    }
    text
}

impl NamedItem {
    pub fn text(&self) -> String {
        let mut text = String::new();
        push_name(&self.grantee, &mut text);
        text.push('=');
        text.push_str(&rights_text(self.rights));
        text.push('/');
        push_name(self.grantor.as_deref().unwrap_or_default(), &mut text);
        text
    }

    /// Reads an item. 22P02 for what is none.
    pub fn parse(text: &str) -> Result<NamedItem> {
        let (mut grantee, mut rest) = take_name(text)?;
        if !rest.starts_with('=') {
            if grantee != "group" && grantee != "user" {
                return Err(invalid(format!("unrecognized key word: \"{grantee}\""))
                    .hint("ACL key word must be \"group\" or \"user\"."));
            }
            (grantee, rest) = take_name(rest)?;
            if grantee.is_empty() {
                let hint = "A name must follow the \"group\" or \"user\" key word.";
                return Err(invalid("missing name".to_owned()).hint(hint));
            }
        }
        let Some(letters) = rest.strip_prefix('=') else {
            return Err(invalid("missing \"=\" sign".to_owned()));
        };
        let (rights, mut rest) = take_rights(letters)?;
        let mut grantor = None;
        if let Some(after) = rest.strip_prefix('/') {
            let (name, after) = take_name(after)?;
            rest = after;
            if name.is_empty() {
                return Err(invalid("a name must follow the \"/\" sign".to_owned()));
            }
            grantor = Some(name);
        }
        if !rest.trim_start().is_empty() {
            let message = "extra garbage at the end of the ACL specification";
            return Err(invalid(message.to_owned()));
        }
        Ok(NamedItem {
            grantee,
            rights,
            grantor,
        })
    }
}

fn invalid(message: String) -> Error {
    Error::new(state::INVALID_TEXT_REPRESENTATION, message)
}

/// The name before `=` or after `/`, and what is left.
fn take_name(text: &str) -> Result<(String, &str)> {
    let text = text.trim_start();
    let mut name = String::new();
    let mut quoted = false;
    let mut chars = text.char_indices().peekable();
    let mut end = text.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' if !quoted => quoted = true,
            '"' => match chars.peek() {
                Some((_, '"')) => {
                    name.push('"');
                    chars.next();
                }
                _ => quoted = false,
            },
            c if quoted || c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii() => name.push(c),
            _ => {
                end = at;
                break;
            }
        }
    }
    if name.len() > 63 {
        let error = Error::new(state::NAME_TOO_LONG, "identifier too long");
        return Err(error.detail("Identifier must be less than 64 characters."));
    }
    Ok((name, text[end..].trim_start()))
}

fn take_rights(letters: &str) -> Result<(u32, &str)> {
    let mut rest = letters;
    let mut rights = 0;
    let mut last = 0;
    while let Some(c) = rest.chars().next() {
        if c != '*' && !c.is_ascii_alphabetic() {
            break;
        }
        rest = &rest[1..];
        if c == '*' {
            rights |= right::options(last);
            continue;
        }
        let Some((.., bit)) = right::NAMES.iter().find(|(_, letter, _)| *letter == c) else {
            let known: String = right::NAMES.iter().map(|(_, letter, _)| letter).collect();
            let message = format!("invalid mode character: must be one of \"{known}\"");
            return Err(invalid(message));
        };
        last = *bit;
        rights |= bit;
    }
    Ok((rights, rest))
}

/// The items of an array of `aclitem`.
pub fn items_of(array: &Array) -> Result<Vec<NamedItem>> {
    let items = array.items.iter().map(|item| match item {
        Datum::Text(text) => NamedItem::parse(text),
        _ => {
            let message = "ACL arrays must not contain null values";
            Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message))
        }
    });
    items.collect()
}
