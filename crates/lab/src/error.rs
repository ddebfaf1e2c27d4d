//! What can go wrong in the laboratory, sorted by what the user must do.

use std::fmt;

#[derive(Debug)]
pub enum Error {
    /// The command line asks for something that is not there: say it differently. Exit status 2.
    Usage(String),
    /// The experiment could not be done here. Exit status 1.
    Failed(String),
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn usage(message: impl Into<String>) -> Error {
        Error::Usage(message.into())
    }

    pub fn failed(message: impl Into<String>) -> Error {
        Error::Failed(message.into())
    }

    /// Says what was being done when this happened.
    #[must_use]
    pub fn during(self, what: impl fmt::Display) -> Error {
        match self {
            Error::Usage(m) => Error::Usage(format!("{what}: {m}")),
            Error::Failed(m) => Error::Failed(format!("{what}: {m}")),
        }
    }

    /// The exit status of a process that ends with this.
    pub fn status(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Failed(_) => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(m) | Error::Failed(m) => f.write_str(m),
        }
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Error {
        Error::Failed(e.to_string())
    }
}

impl From<throng_types::Error> for Error {
    fn from(e: throng_types::Error) -> Error {
        Error::Failed(e.to_string())
    }
}
