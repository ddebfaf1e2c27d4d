//! Isolation levels.

/// How much of others' commits a transaction sees while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees what was committed before it.
    ReadCommitted,
    /// All statements see what was committed before the first.
    RepeatableRead,
    /// The same, and what commits could have run one after the other (see [`crate::ssi`]).
    Serializable,
}

impl Isolation {
    /// Whether all statements see the same moment.
    pub fn keeps_snapshot(self) -> bool {
        self != Isolation::ReadCommitted
    }
}
