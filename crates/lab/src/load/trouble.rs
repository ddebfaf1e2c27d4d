//! What can go wrong between a load and its server, sorted by what the load does about it: try the transaction
//! again, count it as failed, open a new connection, or give up.

use std::fmt;

/// Why a statement, a connection or a whole load did not work.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// The server refused, with an ErrorResponse; the connection still works unless it was FATAL.
    Refused(Box<Refusal>),
    /// The connection ended, or said what the protocol does not allow.
    Broken(String),
    /// The answer was not what the workload knows to be right.
    Wrong(String),
    /// The user asked for what cannot be done.
    Usage(String),
}

pub type Result<T, E = Trouble> = std::result::Result<T, E>;

/// A server's ErrorResponse.
#[derive(Debug, Clone, Default)]
pub struct Refusal {
    pub severity: String,
    pub state: String,
    pub message: String,
    pub detail: Option<String>,
}

impl Trouble {
    pub fn broken(why: impl Into<String>) -> Trouble {
        Trouble::Broken(why.into())
    }

    pub fn wrong(what: impl Into<String>) -> Trouble {
        Trouble::Wrong(what.into())
    }

    pub fn usage(why: impl Into<String>) -> Trouble {
        Trouble::Usage(why.into())
    }

    /// `serialization_failure` and `deadlock_detected`: the same transaction may work the next time.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Trouble::Refused(r) if matches!(r.state.as_str(), "40001" | "40P01"))
    }

    /// Whether the connection cannot be used any more.
    pub fn ends_connection(&self) -> bool {
        match self {
            Trouble::Broken(_) => true,
            Trouble::Refused(r) => matches!(r.severity.as_str(), "FATAL" | "PANIC"),
            Trouble::Wrong(_) | Trouble::Usage(_) => false,
        }
    }

    /// What errors are counted by: the SQLSTATE, or a word.
    pub fn class(&self) -> &str {
        match self {
            Trouble::Refused(r) => &r.state,
            Trouble::Broken(_) => "connection",
            Trouble::Wrong(_) => "wrong answer",
            Trouble::Usage(_) => "usage",
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Refused(r) => {
                write!(f, "{}: {} ({})", r.severity, r.message, r.state)?;
                match &r.detail {
                    Some(detail) => write!(f, "; {detail}"),
                    None => Ok(()),
                }
            }
            Trouble::Broken(why) => write!(f, "connection: {why}"),
            Trouble::Wrong(what) => write!(f, "wrong answer: {what}"),
            Trouble::Usage(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<std::io::Error> for Trouble {
    fn from(e: std::io::Error) -> Trouble {
        Trouble::Broken(e.to_string())
    }
}
