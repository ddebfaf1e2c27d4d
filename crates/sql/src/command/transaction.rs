//! What begins and ends transactions.

use super::Command;
use crate::parse::ast::Statement;

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

impl Command {
    /// A statement that begins or ends a transaction: nothing in it is bound.
    pub fn of_transaction(statement: &Statement) -> Option<Command> {
        match statement {
            Statement::Begin(modes) => Some(Command::Begin(*modes)),
            Statement::Commit { chain } => Some(Command::Commit { chain: *chain }),
            Statement::Rollback { chain } => Some(Command::Rollback { chain: *chain }),
            _ => None,
        }
    }
}
