//! Entries of the log: what begins a line is the server's own.

use std::io::{self, Write};

/// Writes entries, each whole in one `write`, as `tracing_subscriber::fmt` does. Lines of an entry
/// after its first begin with a tab, as in PostgreSQL's log: no client's statement can look like
/// an entry.
pub struct Entries<W>(pub W);

impl<W: Write> Write for Entries<W> {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        let (body, end) = match entry.strip_suffix(b"\n") {
            Some(body) => (body, &b"\n"[..]),
            None => (entry, &b""[..]),
        };
        if !body.contains(&b'\n') {
            self.0.write_all(entry)?;
            return Ok(entry.len());
        }
        let lines: Vec<&[u8]> = body.split(|&byte| byte == b'\n').collect();
        let mut out = lines.join(&b"\n\t"[..]);
        out.extend_from_slice(end);
        self.0.write_all(&out)?;
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(entry: &str) -> String {
        let mut entries = Entries(Vec::new());
        entries.write_all(entry.as_bytes()).unwrap();
        String::from_utf8(entries.0).unwrap()
    }

    #[test]
    fn lines_within_an_entry_begin_with_a_tab() {
        assert_eq!(written("WARN one\n"), "WARN one\n");
        assert_eq!(written("WARN select\nERROR\n"), "WARN select\n\tERROR\n");
        assert_eq!(written("a\n\nb\n\n"), "a\n\t\n\tb\n\t\n");
    }
}
