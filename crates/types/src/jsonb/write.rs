//! Values as text.

use super::*;

/// Appends a string in quotes, escaped as PostgreSQL does.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[copied..i]);
        copied = i + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

impl JsonRef<'_> {
    /// Appends the value as `jsonb` shows it.
    pub fn write_text(self, out: &mut Vec<u8>) {
        write(self, None, out);
    }
    /// Appends the value with a line for each part, as `jsonb_pretty` does.
    pub fn write_pretty(self, out: &mut Vec<u8>) {
        write(self, Some(0), out);
    }
    pub fn to_text(self) -> String {
        let mut out = Vec::new();
        self.write_text(&mut out);
        // What is written comes from strings or is ASCII.
        String::from_utf8(out).unwrap_or_default()
    }
}

const INDENT: usize = 4;

fn new_line(level: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.resize(out.len() + level * INDENT, b' ');
}

/// `level`: how far lines are indented, where there are lines.
fn write(value: JsonRef<'_>, level: Option<usize>, out: &mut Vec<u8>) {
    match value.view() {
        View::Null => out.extend_from_slice(b"null"),
        View::Bool(true) => out.extend_from_slice(b"true"),
        View::Bool(false) => out.extend_from_slice(b"false"),
        View::Number(number) => number.write_text(out),
        View::String(text) => write_string(text, out),
        View::Array(elements) => {
            out.push(b'[');
            for (i, element) in elements.iter().enumerate() {
                part(i, level, out);
                write(element, level.map(|l| l + 1), out);
            }
            level.into_iter().for_each(|l| new_line(l, out));
            out.push(b']');
        }
        View::Object(members) => {
            out.push(b'{');
            for (i, (key, value)) in members.iter().enumerate() {
                part(i, level, out);
                write_string(key, out);
                out.extend_from_slice(b": ");
                write(value, level.map(|l| l + 1), out);
            }
            level.into_iter().for_each(|l| new_line(l, out));
            out.push(b'}');
        }
    }
}

/// What comes before a part.
fn part(number: usize, level: Option<usize>, out: &mut Vec<u8>) {
    match level {
        Some(level) => {
            if number > 0 {
                out.push(b',');
            }
            new_line(level + 1, out);
        }
        None if number > 0 => out.extend_from_slice(b", "),
        None => {}
    }
}
