//! What can go wrong between a load and its server, sorted by what the load does about it: try the
//! transaction again, count it as failed, open a new connection, or give up.

use std::borrow::Cow;
use std::fmt;

/// MySQL's numbers (mysqld_error.h).
const ER_LOCK_WAIT_TIMEOUT: u16 = 1205;
const ER_LOCK_DEADLOCK: u16 = 1213;

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

/// A server's ErrorResponse, or MySQL's ERR packet.
#[derive(Debug, Clone, Default)]
pub struct Refusal {
    pub severity: String,
    pub state: String,
    /// MySQL's own number of the error, which says more than its SQLSTATE; zero from others.
    pub number: u16,
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

    /// `serialization_failure` and `deadlock_detected`, MySQL's deadlock and its lock wait that
    /// took too long: the same transaction may work the next time.
    pub fn is_retryable(&self) -> bool {
        match self {
            Trouble::Refused(r) => {
                matches!(r.state.as_str(), "40001" | "40P01")
                    || matches!(r.number, ER_LOCK_WAIT_TIMEOUT | ER_LOCK_DEADLOCK)
            }
            _ => false,
        }
    }

    /// Whether the connection cannot be used any more.
    pub fn ends_connection(&self) -> bool {
        match self {
            Trouble::Broken(_) => true,
            Trouble::Refused(r) => matches!(r.severity.as_str(), "FATAL" | "PANIC"),
            Trouble::Wrong(_) | Trouble::Usage(_) => false,
        }
    }

    /// What errors are counted by: the SQLSTATE, MySQL's number, or a word.
    pub fn class(&self) -> Cow<'_, str> {
        match self {
            Trouble::Refused(r) if r.number != 0 => Cow::Owned(r.number.to_string()),
            Trouble::Refused(r) => Cow::Borrowed(&r.state),
            Trouble::Broken(_) => Cow::Borrowed("connection"),
            Trouble::Wrong(_) => Cow::Borrowed("wrong answer"),
            Trouble::Usage(_) => Cow::Borrowed("usage"),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Refused(r) => {
                write!(f, "{}: {} ({})", r.severity, r.message, r.state)?;
                if r.number != 0 {
                    write!(f, ", error {}", r.number)?;
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_again() {
        let refused = |state: &str, number| {
            Trouble::Refused(Box::new(Refusal {
                state: state.to_owned(),
                number,
                ..Refusal::default()
            }))
        };
        for again in [
            refused("40001", 0),
            refused("40P01", 0),
            refused("40001", 1213),
            refused("HY000", 1205),
        ] {
            assert!(again.is_retryable(), "{again:?}");
        }
        for not in [
            refused("23505", 0),
            refused("HY000", 1114),
            Trouble::broken("x"),
        ] {
            assert!(!not.is_retryable(), "{not:?}");
        }
        assert_eq!(refused("HY000", 1205).class(), "1205");
        assert_eq!(refused("23505", 0).class(), "23505");
    }
}
