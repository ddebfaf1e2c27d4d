//! What users define beside tables and functions, as written: aggregates, operators, casts.

use super::{Name, ObjectChange, Operator, Pos, RoutineArg, RoutineName, TypeName};

/// A statement about one of those.
#[derive(Clone, Debug, PartialEq)]
pub enum Define {
    CreateAggregate(CreateAggregate),
    CreateOperator {
        name: Operator,
        items: Vec<DefinitionItem>,
    },
    AlterOperator {
        operator: OperatorName,
        change: OperatorChange,
    },
    DropOperators {
        operators: Vec<OperatorName>,
        if_exists: bool,
        cascade: bool,
    },
    CommentOperator {
        operator: OperatorName,
        text: Option<String>,
    },
    CreateCast(CreateCast),
    DropCast {
        cast: CastName,
        if_exists: bool,
        cascade: bool,
    },
    CommentCast {
        cast: CastName,
        text: Option<String>,
    },
}

/// `CREATE [OR REPLACE] AGGREGATE`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateAggregate {
    pub or_replace: bool,
    pub name: Name,
    /// None in the old syntax, where the definition has `basetype`.
    pub args: Option<AggregateArgs>,
    pub items: Vec<DefinitionItem>,
}

/// `(*)`, `(args)`, `(direct ORDER BY ordered)`.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateArgs {
    pub direct: Vec<RoutineArg>,
    pub ordered: Option<Vec<RoutineArg>>,
}

impl AggregateArgs {
    /// All of them; a repeated last one stands for both lists.
    pub fn into_all(self) -> Vec<RoutineArg> {
        let mut all = self.direct;
        let both = all
            .last()
            .is_some_and(|arg| arg.mode == super::ArgMode::Variadic);
        if !both {
            all.extend(self.ordered.unwrap_or_default());
        }
        all
    }
}

/// `name = value` in a definition.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinitionItem {
    pub name: String,
    pub value: Option<DefinitionValue>,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum DefinitionValue {
    /// A type's name, or anything else's.
    Type(TypeName),
    /// A word that is no name.
    Word(String),
    Operator(Operator),
    Number(String),
    Text(String),
}

/// An operator as ALTER, DROP and COMMENT name it; no left operand: a prefix operator.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorName {
    pub name: Operator,
    pub left: Option<TypeName>,
    /// None: a postfix operator, which there is none of.
    pub right: Option<TypeName>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum OperatorChange {
    Object(ObjectChange),
    Set(Vec<DefinitionItem>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CastName {
    pub from: TypeName,
    pub to: TypeName,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateCast {
    pub cast: CastName,
    pub method: CastDefinition,
    pub context: CastWhere,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CastDefinition {
    Function(RoutineName),
    WithoutFunction,
    InOut,
}

/// Where a cast is made without being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastWhere {
    Explicit,
    Assignment,
    Implicit,
}
