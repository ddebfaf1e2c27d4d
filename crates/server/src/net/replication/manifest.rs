//! The manifest of a backup: what `pg_verifybackup` reads.
//!
//! Source: PostgreSQL's documentation, "Backup Manifest Format". This is version 1, which names no
//! system: the later one is compared with a control file that is PostgreSQL's own.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};
use throng_types::Lsn;
use throng_values::io::FormatSettings;
use throng_values::io::datetime::from_unix;
use throng_values::io::datetime::output::timestamp;
use throng_wal::TimelineId;

pub struct Manifest {
    text: String,
    files: usize,
    checksums: bool,
}

impl Manifest {
    pub fn new(checksums: bool) -> Manifest {
        let text = "{ \"PostgreSQL-Backup-Manifest-Version\": 1,\n\"Files\": [".to_owned();
        Manifest {
            text,
            files: 0,
            checksums,
        }
    }

    /// `crc`: the CRC-32C of the file's bytes.
    pub fn file(&mut self, path: &str, size: u64, modified: SystemTime, crc: u32) {
        let comma = if self.files == 0 { "" } else { "," };
        self.files += 1;
        let modified = modified
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_secs());
        let modified = moment(modified);
        let path = serde_json::Value::from(path);
        // A text of these parts cannot fail to be written.
        let _ = write!(
            self.text,
            "{comma}\n{{ \"Path\": {path}, \"Size\": {size}, \"Last-Modified\": \"{modified} GMT\""
        );
        if self.checksums {
            let sum: String = crc
                .to_le_bytes()
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            let _ = write!(
                self.text,
                ", \"Checksum-Algorithm\": \"CRC32C\", \"Checksum\": \"{sum}\""
            );
        }
        self.text.push_str(" }");
    }

    /// `ranges`: the log that the backup needs, by timeline.
    pub fn finish(mut self, ranges: &[(TimelineId, Lsn, Lsn)]) -> String {
        self.text.push_str("\n],\n\"WAL-Ranges\": [");
        for (n, (timeline, start, end)) in ranges.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            let (start, end) = (start.to_halves(), end.to_halves());
            let _ = write!(
                self.text,
                "{comma}\n{{ \"Timeline\": {}, \"Start-LSN\": \"{start}\", \"End-LSN\": \"{end}\" }}",
                timeline.0
            );
        }
        self.text.push_str("\n],\n");
        let digest = Sha256::digest(self.text.as_bytes());
        let digest: String = digest.iter().map(|b| format!("{b:02x}")).collect();
        let _ = writeln!(self.text, "\"Manifest-Checksum\": \"{digest}\"}}");
        self.text
    }
}

/// Seconds since 1970 as `2026-11-30 06:58:00`.
fn moment(seconds: u64) -> String {
    let mut text = Vec::new();
    let micros = from_unix(seconds as i64 * 1_000_000);
    timestamp(micros, FormatSettings::default().date_style, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
