//! What a body becomes: variables, texts and instructions.

use throng_types::{Oid, SqlState, SqlType};

use crate::parse::ast::TargetPart;

/// A variable's place among the values of a call.
pub type Slot = u16;
/// A place among the instructions.
pub type Pc = usize;
/// A place among [`Code::sources`].
pub type SourceId = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    Error,
    UseVariable,
    UseColumn,
}

/// What a variable holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    pub ty: SqlType,
    pub domain: Option<Oid>,
}

/// The query of a bound cursor and the names of its arguments.
#[derive(Clone, Debug)]
pub struct BoundCursor {
    pub query: SourceId,
    pub args: Vec<Slot>,
    pub scroll: Option<bool>,
}

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub held: Held,
    pub constant: bool,
    pub not_null: bool,
    /// Where it was declared.
    pub line: u32,
    pub cursor: Option<BoundCursor>,
    /// Its type is what was last put into it: the value that a CASE compares.
    pub any_type: bool,
}

/// Names declared together.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub label: Option<String>,
    pub parent: Option<usize>,
    pub names: Vec<(String, Slot)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// An expression, `SELECT` left out.
    Expression,
    /// `target := expression`
    Assignment,
    /// A whole statement.
    Statement,
}

/// The text of an expression or a statement.
#[derive(Clone, Debug)]
pub struct Source {
    pub text: String,
    pub kind: SourceKind,
    /// The innermost names in sight, and how many of those were declared.
    pub scope: usize,
    pub visible: usize,
    /// As it is written where the text in hand is a part of it.
    pub whole: Option<String>,
}

/// What is assigned to.
#[derive(Clone, Debug)]
pub struct Target {
    pub slot: Slot,
    /// A field of it.
    pub field: Option<String>,
    /// Parts of that.
    pub parts: Vec<TargetPart>,
}

impl Target {
    pub fn of(slot: Slot) -> Target {
        Target {
            slot,
            field: None,
            parts: vec![],
        }
    }
}

/// Where a row goes.
#[derive(Clone, Debug)]
pub enum Destination {
    /// Into one record or composite variable.
    Record(Slot),
    /// Its columns into so many places.
    List(Vec<Target>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagnostic {
    RowCount,
    RoutineOid,
    Context,
    ErrorContext,
    ReturnedSqlstate,
    ColumnName,
    ConstraintName,
    DatatypeName,
    MessageText,
    TableName,
    SchemaName,
    ErrorDetail,
    ErrorHint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
    Exception,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaiseOption {
    Errcode,
    Message,
    Detail,
    Hint,
    Column,
    Constraint,
    Datatype,
    Table,
    Schema,
}

#[derive(Clone, Debug)]
pub struct Raise {
    pub level: Level,
    pub condition: Option<String>,
    pub message: Option<String>,
    pub params: Vec<SourceId>,
    pub options: Vec<(RaiseOption, SourceId)>,
}

/// A text run as a statement, made when it is run.
#[derive(Clone, Debug)]
pub struct Dynamic {
    pub query: SourceId,
    pub using: Vec<SourceId>,
}

#[derive(Clone, Debug)]
pub enum Rows {
    Query(SourceId),
    Dynamic(Dynamic),
    /// A bound cursor's, with its arguments.
    Cursor {
        slot: Slot,
        args: Vec<SourceId>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Forward,
    Backward,
    Absolute,
    Relative,
}

#[derive(Clone, Debug)]
pub struct Fetch {
    pub cursor: Slot,
    pub way: Way,
    /// Rows or a place; an expression overrules it.
    pub count: i64,
    pub count_of: Option<SourceId>,
    pub into: Option<Destination>,
    pub many: bool,
}

#[derive(Clone, Debug)]
pub enum Opened {
    /// A bound cursor's own query.
    Bound {
        args: Vec<SourceId>,
    },
    Query(SourceId),
    Dynamic(Dynamic),
}

/// A condition that a handler is for: any error, or those of a state, whose class it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    Others,
    State(SqlState),
}

#[derive(Clone, Debug)]
pub struct Handler {
    pub caught: Vec<Caught>,
    pub at: Pc,
}

/// A block with handlers, and where these find out about the error.
#[derive(Clone, Debug)]
pub struct Try {
    pub handlers: Vec<Handler>,
    pub sqlstate: Slot,
    pub sqlerrm: Slot,
}

#[derive(Clone, Debug)]
pub enum Op {
    /// A variable gets its default, or NULL.
    Declare {
        slot: Slot,
        default: Option<SourceId>,
    },
    Assign {
        target: Target,
        value: SourceId,
    },
    Jump(Pc),
    /// Goes on there unless the condition is true.
    Unless {
        condition: SourceId,
        to: Pc,
    },
    /// The value that a CASE compares.
    CaseValue {
        slot: Slot,
        value: SourceId,
    },
    NoCase,
    Perform(SourceId),
    Call(SourceId),
    Sql {
        statement: SourceId,
        into: Option<Destination>,
        strict: bool,
    },
    Execute {
        dynamic: Dynamic,
        into: Option<Destination>,
        strict: bool,
    },
    Diagnostics {
        stacked: bool,
        items: Vec<(Target, Diagnostic)>,
    },
    /// Makes the loop's bounds; `to`: behind the loop's [`Op::NextInt`].
    ForInt {
        slot: Slot,
        from: SourceId,
        until: SourceId,
        step: Option<SourceId>,
        reverse: bool,
    },
    /// The next value and on to `body`, or past this.
    NextInt {
        slot: Slot,
        body: Pc,
    },
    ForRows {
        rows: Rows,
        into: Destination,
    },
    NextRow {
        into: Destination,
        body: Pc,
    },
    ForEach {
        into: Destination,
        slice: u32,
        array: SourceId,
    },
    NextItem {
        into: Destination,
        body: Pc,
    },
    /// The innermost loop ends.
    EndLoop,
    /// A block with handlers begins: what follows is undone by an error.
    Try(Box<Try>),
    /// It ends without one.
    EndTry,
    /// A handler ends.
    EndHandler,
    Return(Option<SourceId>),
    /// The end of the body.
    Finish,
    /// None: the output arguments.
    ReturnNext(Option<SourceId>),
    ReturnQuery(Rows),
    Raise(Box<Raise>),
    /// RAISE without anything.
    Reraise,
    Assert {
        condition: SourceId,
        message: Option<SourceId>,
    },
    Open {
        slot: Slot,
        what: Opened,
        scroll: Option<bool>,
    },
    Fetch(Box<Fetch>),
    Close(Slot),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Nothing,
}

/// An instruction, and the statement that it is of.
#[derive(Clone, Debug)]
pub struct Instr {
    pub op: Op,
    pub line: u32,
    /// As errors name it: `assignment`, `FOR with integer loop variable`.
    pub what: &'static str,
}

/// Variables that every body has, as far as it has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Special {
    pub found: Slot,
    pub new: Option<Slot>,
    pub old: Option<Slot>,
    /// Where the variables `tg_name` and so on begin.
    pub trigger: Option<Slot>,
}

#[derive(Debug)]
pub struct Code {
    pub variables: Vec<Variable>,
    /// Of each input argument, in order.
    pub inputs: Vec<Slot>,
    /// Of what comes back.
    pub outputs: Vec<Slot>,
    pub scopes: Vec<Names>,
    pub sources: Vec<Source>,
    pub instrs: Vec<Instr>,
    pub special: Special,
    pub conflict: Conflict,
    pub print_strict_params: Option<bool>,
}

impl Code {
    /// The names in sight of a text, the innermost first: of which label, the name, the variable.
    pub fn in_sight(&self, source: &Source) -> Vec<(Option<&str>, &str, Slot)> {
        let mut found = Vec::new();
        let mut at = Some(source.scope);
        let mut visible = source.visible;
        while let Some(scope) = at.and_then(|at| self.scopes.get(at)) {
            let names = scope.names.iter().take(visible);
            for (name, slot) in names {
                found.push((scope.label.as_deref(), name.as_str(), *slot));
            }
            visible = usize::MAX;
            at = scope.parent;
        }
        found
    }
}
