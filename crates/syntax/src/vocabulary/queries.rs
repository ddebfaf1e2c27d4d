//! Words of queries.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    Union,
    Intersect,
    Except,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    /// Rows of the left with a match; made from IN and EXISTS.
    Semi,
    /// Rows of the left without one; made from NOT EXISTS.
    Anti,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowLockStrength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

impl RowLockStrength {
    /// A SELECT that locks its rows so, as PostgreSQL calls the command.
    pub fn command(self) -> &'static str {
        match self {
            RowLockStrength::KeyShare => "SELECT FOR KEY SHARE",
            RowLockStrength::Share => "SELECT FOR SHARE",
            RowLockStrength::NoKeyUpdate => "SELECT FOR NO KEY UPDATE",
            RowLockStrength::Update => "SELECT FOR UPDATE",
        }
    }

    /// The clause itself.
    pub fn clause(self) -> &'static str {
        &self.command()["SELECT ".len()..]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockWait {
    Wait,
    SkipLocked,
    NoWait,
}

/// What a frame's offsets count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameMode {
    Rows,
    /// Distance in the value of the ORDER BY column.
    Range,
    /// Groups of peers.
    Groups,
}

/// What is left out of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclude {
    Nothing,
    CurrentRow,
    /// The current row and its peers.
    Group,
    /// The current row's peers.
    Ties,
}
