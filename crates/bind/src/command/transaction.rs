//! What begins and ends transactions.

use super::Command;
use throng_syntax::parse::ast::Statement;
pub use throng_syntax::vocabulary::{Isolation, TransactionModes};

impl Command {
    /// A statement that begins or ends a transaction: nothing in it is bound.
    pub fn of_transaction(statement: &Statement) -> Option<Command> {
        match statement {
            Statement::Begin(modes) => Some(Command::Begin(*modes)),
            Statement::Commit { chain } => Some(Command::Commit { chain: *chain }),
            Statement::Rollback { chain } => Some(Command::Rollback { chain: *chain }),
            Statement::TwoPhase(step) => Some(Command::TwoPhase(step.clone())),
            _ => None,
        }
    }
}
