//! Aggregates, operators and casts: which definition a statement is about.

use throng_types::{Error, Result};

use crate::binder::Binder;
use crate::command::Ddl;
use throng_syntax::parse::ast::{Define, Statement};

impl Binder<'_> {
    /// What is neither a relation nor a type, nor a routine.
    pub(in crate::binder) fn other_ddl(&mut self, statement: &Statement) -> Result<Ddl> {
        match statement {
            Statement::Define(define) => self.define(define),
            Statement::DropAbsent(drop) => self.drop_absent(drop),
            Statement::CommentAbsent(comment) => self.comment_built_in(comment),
            _ => Err(Error::internal("not a definition")),
        }
    }

    fn define(&mut self, statement: &Define) -> Result<Ddl> {
        match statement {
            Define::CreateAggregate(create) => self.create_aggregate(create),
            Define::CreateOperator { name, items } => self.create_operator(name, items),
            Define::AlterOperator { operator, change } => self.alter_operator(operator, change),
            Define::DropOperators {
                operators,
                if_exists,
                cascade,
            } => self.drop_operators(operators, *if_exists, *cascade),
            Define::CommentOperator { operator, text } => {
                self.comment_operator(operator, text.clone())
            }
            Define::CreateCast(create) => self.create_cast(create),
            Define::DropCast {
                cast,
                if_exists,
                cascade,
            } => self.drop_cast(cast, *if_exists, *cascade),
            Define::CommentCast { cast, text } => self.comment_cast(cast, text.clone()),
        }
    }
}
