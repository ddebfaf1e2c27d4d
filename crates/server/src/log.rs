//! Entries of the log: what begins a line is the server's own, and none fails who writes it.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// Entries that could not be written since the last one that was.
#[derive(Debug, Default)]
pub struct Lost(AtomicU64);

impl Lost {
    pub const fn none() -> Lost {
        Lost(AtomicU64::new(0))
    }
}

/// Writes entries, each whole in one `write`, as `tracing_subscriber::fmt` does. Lines of an entry
/// after its first begin with a tab, as in PostgreSQL's log: no client's statement can look like
/// an entry.
///
/// Where the log's disk is full or its reader is gone, entries are counted instead, for a session
/// must not end because of it; the next that can be written comes after a line that tells how many.
pub struct Entries<'a, W> {
    pub to: W,
    pub lost: &'a Lost,
}

impl<W: Write> Entries<'_, W> {
    fn try_write(&mut self, entry: &[u8]) -> io::Result<()> {
        let lost = self.lost.0.swap(0, Ordering::Relaxed);
        if lost > 0 {
            // The last one may have been written in part.
            let note = format!("\n{lost} entries of the log could not be written here\n");
            self.to.write_all(note.as_bytes()).inspect_err(|_| {
                self.lost.0.fetch_add(lost, Ordering::Relaxed);
            })?;
        }
        self.to.write_all(&indented(entry))
    }
}

impl<W: Write> Write for Entries<'_, W> {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        if self.try_write(entry).is_err() {
            self.lost.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An entry with a tab before each line but the first.
fn indented(entry: &[u8]) -> Cow<'_, [u8]> {
    let (body, end) = match entry.strip_suffix(b"\n") {
        Some(body) => (body, &b"\n"[..]),
        None => (entry, &b""[..]),
    };
    if !body.contains(&b'\n') {
        return Cow::Borrowed(entry);
    }
    let lines: Vec<&[u8]> = body.split(|&byte| byte == b'\n').collect();
    let mut out = lines.join(&b"\n\t"[..]);
    out.extend_from_slice(end);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(entry: &str) -> String {
        let lost = Lost::none();
        let (to, lost) = (Vec::new(), &lost);
        let mut entries = Entries { to, lost };
        entries.write_all(entry.as_bytes()).unwrap();
        String::from_utf8(entries.to).unwrap()
    }

    /// Takes so many bytes more.
    struct Disk {
        room: usize,
        file: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.room);
            self.room -= taken;
            self.file.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_loses_entries_and_says_how_many() {
        let file = Vec::new();
        let lost = Lost::none();
        let (to, lost) = (Disk { room: 7, file }, &lost);
        let mut entries = Entries { to, lost };
        for entry in ["one\n", "two two\n", "three\n"] {
            entries.write_all(entry.as_bytes()).unwrap();
        }
        entries.to.room = 1000;
        entries.write_all(b"four\n").unwrap();
        entries.write_all(b"five\n").unwrap();
        let log = String::from_utf8(entries.to.file).unwrap();
        let told = "2 entries of the log could not be written here";
        assert_eq!(log, format!("one\ntwo\n{told}\nfour\nfive\n"));
    }

    #[test]
    fn lines_within_an_entry_begin_with_a_tab() {
        assert_eq!(written("WARN one\n"), "WARN one\n");
        assert_eq!(written("WARN select\nERROR\n"), "WARN select\n\tERROR\n");
        assert_eq!(written("a\n\nb\n\n"), "a\n\t\n\tb\n\t\n");
    }
}
