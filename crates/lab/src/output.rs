//! Where a command's findings go.

use std::path::Path;

use crate::{Error, Result};

/// For standard output.
pub(crate) fn json(found: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string_pretty(found).map_err(|e| Error::failed(e.to_string()))
}

/// Refuses a file that could not be written, before the time it takes to find out what to write.
pub(crate) fn writable(path: &Path) -> Result<()> {
    let opened = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path);
    match opened {
        Ok(_) => Ok(()),
        Err(e) => Err(Error::usage(format!("--report {}: {e}", path.display()))),
    }
}
