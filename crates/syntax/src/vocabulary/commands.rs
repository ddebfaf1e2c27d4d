//! Words of commands.

/// A step of two-phase commit, with the transaction's identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TwoPhase {
    /// PREPARE TRANSACTION
    Prepare(String),
    /// COMMIT PREPARED
    Commit(String),
    /// ROLLBACK PREPARED
    Rollback(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionModes {
    pub isolation: Option<Isolation>,
    pub read_only: Option<bool>,
    pub deferrable: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// What DECLARE says of a cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CursorOptions {
    /// None: as the plan allows.
    pub scroll: Option<bool>,
    pub insensitive: bool,
    pub hold: bool,
    pub binary: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchDirection {
    /// Negative: backward; `i64::MAX`: all.
    Relative(i64),
    Forward(i64),
    Backward(i64),
    Absolute(i64),
}

/// What was said of a VACUUM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacuumOptions {
    /// Pack the rows anew.
    pub full: bool,
    pub analyze: bool,
    /// Pass over what others have locked.
    pub skip_locked: bool,
    /// Not the tables themselves: nothing is left to do, values outside rows being in the same
    /// file.
    pub skip_main: bool,
    /// Whether to cut empty pages off a table's end, if it was said.
    pub truncate: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    All,
    Plans,
    Sequences,
    Temp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyTarget {
    /// FROM STDIN, TO STDOUT.
    Client,
    File(String),
    Program(String),
}

/// PostgreSQL's table lock modes, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableLock {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}
