//! Errors that name the file, in PostgreSQL's words.

use std::{fmt, io};

/// What was being done to a file when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Open,
    Create,
    Read,
    Write,
    Extend,
    Sync,
    Stat,
    Truncate,
    Remove,
    Rename,
    OpenDirectory,
    CreateDirectory,
    SyncDirectory,
    Lock,
}

impl Action {
    fn words(self) -> &'static str {
        match self {
            Action::Open => "could not open file",
            Action::Create => "could not create file",
            Action::Read => "could not read file",
            Action::Write => "could not write to file",
            Action::Extend => "could not extend file",
            Action::Sync => "could not fsync file",
            Action::Stat => "could not stat file",
            Action::Truncate => "could not truncate file",
            Action::Remove => "could not remove file",
            Action::Rename => "could not rename file",
            Action::OpenDirectory => "could not open directory",
            Action::CreateDirectory => "could not create directory",
            Action::SyncDirectory => "could not fsync directory",
            Action::Lock => "could not lock file",
        }
    }
}

/// The same error, of the same kind, saying what was done to which file.
#[cold]
pub fn file_error(action: Action, path: &str, cause: io::Error) -> io::Error {
    io::Error::new(
        cause.kind(),
        FileError {
            action,
            path: path.to_string(),
            cause,
        },
    )
}

#[derive(Debug)]
struct FileError {
    action: Action,
    path: String,
    cause: io::Error,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = self.cause.to_string();
        // The standard library adds the number, which PostgreSQL's messages do not have.
        let cause = match cause.rfind(" (os error ") {
            Some(end) if self.cause.raw_os_error().is_some() => &cause[..end],
            _ => &cause,
        };
        write!(f, "{} \"{}\": {cause}", self.action.words(), self.path)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_postgresqls_and_the_kind_is_kept() {
        let cause = io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
        let error = file_error(Action::Write, "base/123", cause);
        let text = "could not write to file \"base/123\": No space left on device";
        assert_eq!(error.to_string(), text);
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let error = throng_types::Error::from(error);
        assert_eq!(error.code(), throng_types::error::state::DISK_FULL);
        assert_eq!(error.message(), text);
    }
}
