//! Functions and procedures that users make, as written.

use super::{Expr, Name, ObjectChange, Parsed, Pos, Source, TypeName};
pub use crate::vocabulary::{ArgMode, RoutineKind};
pub use throng_types::vocabulary::Volatility;

/// `CREATE [OR REPLACE] FUNCTION` or `PROCEDURE`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRoutine {
    pub kind: RoutineKind,
    pub or_replace: bool,
    pub name: Name,
    pub args: Vec<RoutineArg>,
    pub returns: Option<Returns>,
    pub options: Vec<(RoutineOption, Pos)>,
    /// The bodies given; more than one is an error of the binder's.
    pub bodies: Vec<RoutineBody>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RoutineArg {
    pub mode: ArgMode,
    pub name: Option<String>,
    pub ty: RoutineType,
    pub default: Option<Source>,
    pub pos: Pos,
}

/// A type, or that of a table's column: `t.a%TYPE`.
#[derive(Clone, Debug, PartialEq)]
pub enum RoutineType {
    Plain(TypeName),
    Column { column: Name, setof: bool },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Returns {
    Type(RoutineType),
    /// `TABLE (name type, …)`; the columns are among the arguments.
    Table,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RoutineOption {
    Language(String),
    Volatility(Volatility),
    Strict(bool),
    SecurityDefiner(bool),
    Leakproof(bool),
    Window,
    Parallel(String),
    Cost(f64),
    Rows(f64),
    Support,
    Transform,
    /// `name` None: RESET ALL.
    Set {
        name: Option<String>,
        value: SetTo,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum RoutineBody {
    /// `AS 'text'`. `at`: where the text begins, if it is written as it is.
    Text { text: String, at: Option<Pos> },
    /// `AS 'file', 'symbol'`
    Symbol,
    /// `RETURN value`
    Return(Source),
    /// `BEGIN ATOMIC … END`
    Atomic {
        statements: Vec<AtomicStatement>,
        text: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum AtomicStatement {
    Statement(Parsed),
    Return(Expr),
}

/// A routine as ALTER, DROP and COMMENT name it.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutineName {
    pub name: Name,
    /// None where the name has to be enough.
    pub args: Option<Vec<RoutineArg>>,
}

/// What DROP, ALTER and COMMENT ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutineWord {
    Function,
    Procedure,
    Routine,
    Aggregate,
}

impl RoutineWord {
    /// Whether it can name a routine of this kind; an aggregate is a function, too.
    pub fn means(self, kind: RoutineKind) -> bool {
        match self {
            RoutineWord::Function => kind != RoutineKind::Procedure,
            RoutineWord::Procedure => kind == RoutineKind::Procedure,
            RoutineWord::Aggregate => kind == RoutineKind::Aggregate,
            RoutineWord::Routine => true,
        }
    }

    pub fn noun(self) -> &'static str {
        match self {
            RoutineWord::Function => "function",
            RoutineWord::Procedure => "procedure",
            RoutineWord::Routine => "routine",
            RoutineWord::Aggregate => "aggregate",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum RoutineChange {
    Object(ObjectChange),
    Options(Vec<(RoutineOption, Pos)>),
}

/// A column of `AS t(a int, b text)` after a function in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    pub name: String,
    pub ty: TypeName,
}

/// What SET gives a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum SetTo {
    /// One, or those of a list.
    Values(Vec<String>),
    /// TIME ZONE INTERVAL, with the interval's modifier.
    ZoneInterval(String, i32),
    /// DEFAULT, or RESET.
    Default,
    /// FROM CURRENT: what it is now.
    Current,
}

impl From<String> for SetTo {
    fn from(value: String) -> SetTo {
        SetTo::Values(vec![value])
    }
}

impl From<Option<String>> for SetTo {
    fn from(value: Option<String>) -> SetTo {
        value.map_or(SetTo::Default, SetTo::from)
    }
}
