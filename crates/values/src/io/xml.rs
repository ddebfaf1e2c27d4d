//! `xml`: documents and what stands in them, kept as their text.
//!
//! That a text is well formed is seen by `quick-xml`, with the rules about names, characters and
//! roots that it leaves to its callers. Entities that a document type declares are not read.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::EvalContext;
use super::base::BaseInputOutput;
use throng_types::error::state;
use throng_types::{Datum, Error, Result, interrupt, oid};

/// What a text is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Document,
    Content,
}

/// What a declaration at the front of a text says.
#[derive(Default)]
pub struct Declaration {
    pub version: Option<String>,
    pub standalone: Option<bool>,
    /// Bytes of the text that it takes.
    pub length: usize,
}

/// The characters that a name may begin with.
fn begins_name(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | ':')
}

/// Those that it may go on with.
fn continues_name(c: char) -> bool {
    begins_name(c) || c.is_numeric() || matches!(c, '-' | '.' | '\u{b7}')
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(begins_name) && chars.all(continues_name)
}

fn is_character(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..) && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Why a text is not well formed.
type Fault = String;

fn check_name(name: &str) -> std::result::Result<(), Fault> {
    match is_name(name) {
        true => Ok(()),
        false => Err(format!("\"{name}\" is no name")),
    }
}

fn check_tag(tag: &BytesStart<'_>) -> std::result::Result<(), Fault> {
    check_name(tag.name().as_ref())?;
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|e| e.to_string())?;
        check_name(attribute.key.as_ref())?;
        let value: &str = &attribute.value;
        if value.contains('<') {
            return Err("unescaped \"<\" in the value of an attribute".into());
        }
        check_references(value)?;
    }
    Ok(())
}

fn check_reference(name: &str) -> std::result::Result<(), Fault> {
    let number = match name.strip_prefix('#') {
        Some(digits) => match digits.strip_prefix('x') {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        },
        None if matches!(name, "lt" | "gt" | "amp" | "apos" | "quot") => return Ok(()),
        None => return Err(format!("entity \"{name}\" is not known")),
    };
    match number.and_then(char::from_u32).filter(|c| is_character(*c)) {
        Some(_) => Ok(()),
        None => Err(format!("\"&{name};\" is no character")),
    }
}

/// The references in the value of an attribute.
fn check_references(value: &str) -> std::result::Result<(), Fault> {
    for part in value.split('&').skip(1) {
        let name = part.split_once(';').map(|(name, _)| name);
        check_reference(name.ok_or("\"&\" begins no reference")?)?;
    }
    Ok(())
}

/// A walk over a text's events.
struct Walk {
    extent: Extent,
    depth: usize,
    roots: usize,
    has_type: bool,
}

impl Walk {
    fn begin(&mut self, tag: &BytesStart<'_>) -> std::result::Result<(), Fault> {
        self.roots += usize::from(self.depth == 0);
        if self.extent == Extent::Document && self.roots > 1 {
            return Err("extra content at the end of the document".into());
        }
        check_tag(tag)
    }

    /// Text outside of elements is for content.
    fn may_have_text(&self) -> std::result::Result<(), Fault> {
        match self.depth == 0 && self.extent == Extent::Document {
            true => Err("text outside of the root element".into()),
            false => Ok(()),
        }
    }

    fn reference(&self, reference: &BytesRef<'_>) -> std::result::Result<(), Fault> {
        self.may_have_text()?;
        check_reference(reference)
    }

    fn take(&mut self, event: &Event<'_>, is_first: bool) -> std::result::Result<(), Fault> {
        match event {
            Event::Start(tag) => {
                self.begin(tag)?;
                self.depth += 1;
            }
            Event::Empty(tag) => self.begin(tag)?,
            Event::End(_) => self.depth -= 1,
            Event::Text(text) => {
                let text: &str = text;
                if text.contains("]]>") {
                    return Err("\"]]>\" in text".into());
                }
                if !text.chars().all(is_character) {
                    return Err("a character that no text has".into());
                }
                if !text.trim_ascii().is_empty() {
                    self.may_have_text()?;
                }
            }
            Event::CData(_) => self.may_have_text()?,
            Event::GeneralRef(reference) => self.reference(reference)?,
            Event::Decl(declaration) => {
                if !is_first {
                    return Err("a declaration that is not at the start".into());
                }
                declaration.version().map_err(|e| e.to_string())?;
            }
            Event::PI(instruction) => {
                let target = instruction.target();
                check_name(target)?;
                if target.eq_ignore_ascii_case("xml") {
                    return Err("a declaration that is not at the start".into());
                }
            }
            Event::DocType(_) => {
                if self.has_type || self.roots > 0 || self.extent == Extent::Content {
                    return Err("a document type where none may be".into());
                }
                self.has_type = true;
            }
            Event::Comment(_) | Event::Eof => {}
        }
        Ok(())
    }
}

fn walk(text: &str, extent: Extent) -> std::result::Result<(), WalkStop> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_comments = true;
    let mut walk = Walk {
        extent,
        depth: 0,
        roots: 0,
        has_type: false,
    };
    let mut is_first = true;
    loop {
        interrupt::poll().map_err(WalkStop::Interrupt)?;
        let event = reader.read_event();
        let event = event.map_err(|e| WalkStop::Fault(e.to_string()))?;
        if event == Event::Eof {
            break;
        }
        walk.take(&event, is_first).map_err(WalkStop::Fault)?;
        is_first = false;
    }
    if walk.depth > 0 {
        return Err(WalkStop::Fault("an element that does not end".into()));
    }
    match extent == Extent::Document && walk.roots == 0 {
        true => Err(WalkStop::Fault("there is no root element".into())),
        false => Ok(()),
    }
}

enum WalkStop {
    Fault(Fault),
    Interrupt(Error),
}

/// Whether a text is well formed.
///
/// # Errors
/// 2200M, 2200N where it is not.
pub fn check(text: &str, extent: Extent) -> Result<()> {
    // What has a document type is a document.
    let extent = match text.contains("<!DOCTYPE") {
        true => Extent::Document,
        false => extent,
    };
    walk(text, extent).map_err(|stop| match stop {
        WalkStop::Interrupt(error) => error,
        WalkStop::Fault(fault) => {
            let (code, message) = match extent {
                Extent::Document => (state::INVALID_XML_DOCUMENT, "invalid XML document"),
                Extent::Content => (state::INVALID_XML_CONTENT, "invalid XML content"),
            };
            Error::new(code, message).detail(fault)
        }
    })
}

/// What is not well formed is false; an error is one that something else has.
pub fn is_well_formed(text: &str, extent: Extent) -> Result<bool> {
    match check(text, extent) {
        Ok(()) => Ok(true),
        Err(error) if is_fault(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_fault(error: &Error) -> bool {
    [state::INVALID_XML_DOCUMENT, state::INVALID_XML_CONTENT].contains(&error.code())
}

/// What the session reads a text as.
pub fn extent_set(ctx: &EvalContext<'_>) -> Extent {
    match ctx.host.show_setting("xmloption").as_deref() {
        Some("document") => Extent::Document,
        _ => Extent::Content,
    }
}

impl Declaration {
    /// That of a text which begins with one.
    pub fn of(text: &str) -> Option<Declaration> {
        let inside = text.strip_prefix("<?xml")?;
        if !inside.starts_with(|c: char| c.is_ascii_whitespace()) {
            return None;
        }
        let end = inside.find("?>")?;
        let mut declaration = Declaration {
            length: "<?xml".len() + end + "?>".len(),
            ..Declaration::default()
        };
        let mut rest = inside[..end].trim_ascii();
        while !rest.is_empty() {
            let (key, behind) = rest.split_once('=')?;
            let behind = behind.trim_ascii_start();
            let quote = behind.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let (value, behind) = behind[1..].split_once(quote)?;
            match key.trim_ascii() {
                "version" => declaration.version = Some(value.to_owned()),
                "standalone" => declaration.standalone = Some(value == "yes"),
                _ => {}
            }
            rest = behind.trim_ascii_start();
        }
        Some(declaration)
    }

    /// The declaration, where it says more than that the version is 1.0.
    pub fn write(&self, out: &mut String) {
        let version = self.version.as_deref().unwrap_or("1.0");
        if version == "1.0" && self.standalone.is_none() {
            return;
        }
        out.push_str(&format!("<?xml version=\"{version}\""));
        match self.standalone {
            Some(true) => out.push_str(" standalone=\"yes\""),
            Some(false) => out.push_str(" standalone=\"no\""),
            None => {}
        }
        out.push_str("?>");
    }
}

/// A text's declaration, and what is behind it.
pub fn divided(text: &str) -> (Declaration, &str) {
    let declaration = Declaration::of(text).unwrap_or_default();
    let length = declaration.length;
    (declaration, &text[length..])
}

/// As a client is shown it: an encoding is not told.
fn shown(text: &str) -> String {
    let (declaration, rest) = divided(text);
    let mut out = String::new();
    declaration.write(&mut out);
    let no_line = out.is_empty() && declaration.length > 0;
    let rest = match no_line {
        true => rest.strip_prefix('\n').unwrap_or(rest),
        false => rest,
    };
    out.push_str(rest);
    out
}

/// The text of a value.
pub fn text_of(value: &Datum) -> &str {
    match value {
        Datum::Base(value) => std::str::from_utf8(&value.bytes).unwrap_or_default(),
        _ => "",
    }
}

pub fn datum(text: &str) -> Datum {
    Datum::base(oid::XML, text.as_bytes())
}

/// With references for what means something in XML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\r' => out.push_str("&#x0D;"),
            c => out.push(c),
        }
    }
    out
}

/// A name of SQL as one of XML: what may not be in it is written by its number.
pub fn mapped_name(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.char_indices() {
        let begins_xml =
            at == 0 && name.len() >= 3 && name.as_bytes()[..3].eq_ignore_ascii_case(b"xml");
        let escape = match c {
            ':' => true,
            '_' => name[at + 1..].starts_with('x'),
            _ if begins_xml => true,
            _ if at == 0 => !begins_name(c),
            _ => !continues_name(c),
        };
        match escape {
            true => out.push_str(&format!("_x{:04X}_", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

pub(super) static XML: BaseInputOutput = BaseInputOutput {
    ty: oid::XML,
    input: |ctx, text, _| {
        check(text, extent_set(ctx))?;
        Ok(text.as_bytes().to_vec())
    },
    output: |_, value, out| {
        let text = std::str::from_utf8(value).unwrap_or_default();
        out.extend_from_slice(shown(text).as_bytes());
    },
    receive: |ctx, binary| {
        let text = ctx.format.charset.decode(binary)?;
        check(&text, extent_set(ctx))?;
        Ok(text.as_bytes().to_vec())
    },
    send: |ctx, value, out| {
        let text = std::str::from_utf8(value).unwrap_or_default();
        ctx.format.charset.encode(&shown(text), out)
    },
    modifier: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_well_formed_or_not() {
        let document = [
            "<a/>",
            "<?xml version=\"1.0\"?>\n<a b='1'>&lt;&#65;<![CDATA[<]]></a><!--x-->",
            "<!DOCTYPE a><a/>",
        ];
        for text in document {
            assert!(is_well_formed(text, Extent::Document).unwrap(), "{text}");
            assert!(is_well_formed(text, Extent::Content).unwrap(), "{text}");
        }
        for text in ["", "abc", "<a/><b/>", "x<a/>"] {
            assert!(!is_well_formed(text, Extent::Document).unwrap(), "{text}");
            assert!(is_well_formed(text, Extent::Content).unwrap(), "{text}");
        }
        let neither = [
            "<a>",
            "</a>",
            "<a></b>",
            "<1a/>",
            "<a b=1/>",
            "<a b='1' b='2'/>",
            "<a b='<'/>",
            "&x;",
            "a & b",
            "&#0;",
            "]]>",
            "<!-- -- -->",
            "<a/><?xml version='1.0'?>",
            "<a b='&y;'/>",
        ];
        for text in neither {
            assert!(!is_well_formed(text, Extent::Content).unwrap(), "{text}");
        }
    }

    #[test]
    fn declarations_say_what_is_unusual() {
        let cases = [
            ("<?xml version=\"1.0\" encoding=\"utf8\"?>\n<a/>", "<a/>"),
            ("<?xml version='1.1'?><a/>", "<?xml version=\"1.1\"?><a/>"),
            (
                "<?xml version=\"1.0\" standalone=\"no\"?><a/>",
                "<?xml version=\"1.0\" standalone=\"no\"?><a/>",
            ),
            ("<a/>", "<a/>"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn names_are_mapped() {
        assert_eq!(mapped_name("a b"), "a_x0020_b");
        assert_eq!(mapped_name("1:é"), "_x0031__x003A_é");
        assert_eq!(mapped_name("_x"), "_x005F_x");
    }
}
