//! `jsonpath`: the language of SQL/JSON paths, read and printed.
//!
//! A value of the type is kept as the text it prints as, which reads back as the same path: where
//! an operator's result is walked further it stands in parentheses, also there where PostgreSQL
//! leaves them out and so prints another path. What is evaluated is the tree ([`Path`]), of which
//! each thread keeps the last ones. A path's nesting is bounded ([`MAX_DEPTH`]).

mod lex;
mod parse;
mod print;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use throng_types::{Numeric, Result, Text};

/// Levels that a path's expressions may nest.
pub const MAX_DEPTH: usize = 400;

#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Otherwise strict: what does not fit the path's structure is an error.
    pub lax: bool,
    pub root: Chain,
}

/// A value and the steps that lead on from it, each from what the one before gave.
pub type Chain = Vec<Item>;
pub type Pair = Box<(Chain, Chain)>;

#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Null,
    Bool(bool),
    Number(Numeric),
    String(Text),
    Variable(Text),
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    Arithmetic(Arithmetic, Pair),
    Sign(Sign, Chain),
    And(Pair),
    Or(Pair),
    Not(Chain),
    IsUnknown(Chain),
    Compare(Comparison, Pair),
    Exists(Chain),
    StartsWith(Pair),
    LikeRegex(Box<LikeRegex>),
    Key(Text),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyElement,
    Subscripts(Vec<(Chain, Option<Chain>)>),
    /// `.**{first to last}`; [`LEAVES`] stands for `last`.
    AnyLevel {
        first: u32,
        last: u32,
    },
    Filter(Chain),
    Method(Method),
}

/// `last` among levels.
pub const LEAVES: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Plus,
    Minus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LikeRegex {
    pub subject: Chain,
    pub pattern: Text,
    pub flags: Flags,
}

/// XQuery's flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `i`
    pub ignore_case: bool,
    /// `s`: a dot matches a newline.
    pub dot_all: bool,
    /// `m`: `^` and `$` match at lines.
    pub lines: bool,
    /// `x`
    pub expanded: bool,
    /// `q`
    pub quoted: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    Type,
    Size,
    Abs,
    Floor,
    Ceiling,
    Double,
    KeyValue,
    Bigint,
    Boolean,
    Integer,
    Number,
    String,
    Date,
    /// Precision, and scale.
    Decimal(Option<(Numeric, Option<Numeric>)>),
    /// A template.
    Datetime(Option<Text>),
    /// With a precision, as those that follow.
    Time(Option<Numeric>),
    TimeTz(Option<Numeric>),
    Timestamp(Option<Numeric>),
    TimestampTz(Option<Numeric>),
}

impl Method {
    pub fn name(&self) -> &'static str {
        match self {
            Method::Type => "type",
            Method::Size => "size",
            Method::Abs => "abs",
            Method::Floor => "floor",
            Method::Ceiling => "ceiling",
            Method::Double => "double",
            Method::KeyValue => "keyvalue",
            Method::Bigint => "bigint",
            Method::Boolean => "boolean",
            Method::Integer => "integer",
            Method::Number => "number",
            Method::String => "string",
            Method::Date => "date",
            Method::Decimal(_) => "decimal",
            Method::Datetime(_) => "datetime",
            Method::Time(_) => "time",
            Method::TimeTz(_) => "time_tz",
            Method::Timestamp(_) => "timestamp",
            Method::TimestampTz(_) => "timestamp_tz",
        }
    }
}

impl Arithmetic {
    pub fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::Modulo => "%",
        }
    }
}
impl Sign {
    pub fn symbol(self) -> &'static str {
        match self {
            Sign::Plus => "+",
            Sign::Minus => "-",
        }
    }
}
impl Comparison {
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterEqual => ">=",
        }
    }
}

impl Path {
    /// 42601 where the text is no path.
    pub fn parse(text: &str) -> Result<Path> {
        parse::parse(text)
    }
}

/// The text a path is kept as. Errors are those of reading it.
pub fn input(text: &str) -> Result<Text> {
    Ok(Path::parse(text)?.to_string().into())
}

/// Paths kept read by each thread; when there are more, it begins anew.
const KEPT: usize = 64;

thread_local! {
    static READ: RefCell<HashMap<Text, Arc<Path>>> = RefCell::default();
}

/// The path a value of the type is.
pub fn path(value: &Text) -> Result<Arc<Path>> {
    if let Some(found) = READ.with_borrow(|kept| kept.get(value).cloned()) {
        return Ok(found);
    }
    let read = Arc::new(Path::parse(value)?);
    READ.with_borrow_mut(|kept| {
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(value.clone(), Arc::clone(&read));
    });
    Ok(read)
}
