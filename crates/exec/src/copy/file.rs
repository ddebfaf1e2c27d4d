//! Where COPY's bytes come from and go to: the client, or a file beside the server.

use std::io::ErrorKind;
use std::path::Path;

use throng_txn::CancelFlag;
use throng_types::error::state;
use throng_types::{Error, Result};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{Client, HIGH_WATER};

/// Bytes read from or written to a file at once, on one of the runtime's helper threads.
const PIECE: usize = 256 * 1024;

/// PostgreSQL's wording of an operating system's error: without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

fn failed(what: &str, error: &std::io::Error) -> Error {
    let code = match error.kind() {
        ErrorKind::NotFound => state::UNDEFINED_FILE,
        ErrorKind::PermissionDenied => state::INSUFFICIENT_PRIVILEGE,
        ErrorKind::IsADirectory => state::WRONG_OBJECT_TYPE,
        ErrorKind::StorageFull => state::DISK_FULL,
        _ => state::IO_ERROR,
    };
    Error::new(code, format!("{what}: {}", reason(error)))
}

fn cannot_open(path: &str, way: &str, error: &std::io::Error) -> Error {
    let (copy, verb) = if way == "reading" {
        ("COPY FROM", "read")
    } else {
        ("COPY TO", "write")
    };
    let refused = failed(&format!("could not open file \"{path}\" for {way}"), error);
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied => refused.hint(format!(
            "{copy} instructs the PostgreSQL server process to {verb} a file. \
             You may want a client-side facility such as psql's \\copy."
        )),
        _ => refused,
    }
}

/// What is copied from.
pub enum Source {
    Client,
    File { file: File, piece: Vec<u8> },
}

impl Source {
    /// Opens a file; a relative path starts from `directory`.
    ///
    /// # Errors
    /// 58P01, 42501, 42809 for what cannot be opened or is a directory.
    pub async fn open(path: &str, directory: &Path) -> Result<Source> {
        let error = |e| cannot_open(path, "reading", &e);
        let file = File::open(directory.join(path)).await.map_err(error)?;
        if file.metadata().await.map_err(error)?.is_dir() {
            return Err(Error::new(
                state::WRONG_OBJECT_TYPE,
                format!("\"{path}\" is a directory"),
            ));
        }
        Ok(Source::File {
            file,
            piece: vec![0; PIECE],
        })
    }

    /// Appends the next piece; false at the end.
    pub(super) async fn read(
        &mut self,
        client: &mut dyn Client,
        cancel: &CancelFlag,
        into: &mut Vec<u8>,
    ) -> Result<bool> {
        match self {
            Source::Client => cancel.guard(client.copy_read(into)).await,
            Source::File { file, piece } => {
                cancel.check()?;
                let n = file
                    .read(piece)
                    .await
                    .map_err(|e| failed("could not read from COPY file", &e))?;
                into.extend_from_slice(&piece[..n]);
                Ok(n > 0)
            }
        }
    }
}

/// What is copied to.
pub enum Sink {
    Client,
    File { file: File, piece: Vec<u8> },
}

impl Sink {
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// 42602 for a relative path; as [`Source::open`].
    pub async fn create(path: &str) -> Result<Sink> {
        if !Path::new(path).is_absolute() {
            return Err(Error::new(
                state::INVALID_NAME,
                "relative path not allowed for COPY to file",
            ));
        }
        let file = File::create(path)
            .await
            .map_err(|e| cannot_open(path, "writing", &e))?;
        Ok(Sink::File {
            file,
            piece: Vec::with_capacity(PIECE),
        })
    }

    /// One record of output, or none; for the client one message.
    pub(super) async fn write(&mut self, record: &[u8], client: &mut dyn Client) -> Result<()> {
        match self {
            Sink::Client => {
                client.copy_data(record);
                if client.backlog() > HIGH_WATER {
                    client.flush().await?;
                }
            }
            Sink::File { piece, .. } => {
                piece.extend_from_slice(record);
                if piece.len() >= PIECE {
                    self.drain().await?;
                }
            }
        }
        Ok(())
    }

    /// Nothing follows.
    pub(super) async fn finish(&mut self, client: &mut dyn Client) -> Result<()> {
        match self {
            Sink::Client => client.copy_out_done(),
            Sink::File { .. } => self.drain().await?,
        }
        Ok(())
    }

    async fn drain(&mut self) -> Result<()> {
        if let Sink::File { file, piece } = self {
            let error = |e| failed("could not write to COPY file", &e);
            file.write_all(piece).await.map_err(error)?;
            file.flush().await.map_err(error)?;
            piece.clear();
        }
        Ok(())
    }
}
