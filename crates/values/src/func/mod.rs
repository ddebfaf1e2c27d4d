//! Functions, operators, casts and aggregates: one definition each, on single values.
//!
//! Each family (a folder or a file here) holds its definitions and the tables that name them as
//! PostgreSQL's catalogs do, with its oids; [`FAMILIES`] lists the families, and is all that has to
//! know of a new one. [`resolve`] picks among overloads by PostgreSQL's rules. Row operators call
//! `eval` directly; analytics lifts the same function to columns.

pub mod aggregate;
mod array;
mod bits;
pub mod cast;
mod coerce;
pub mod compare;
pub mod cursor;
pub mod datetime;
pub mod enums;
pub mod extension;
mod form;
mod geometric;
mod hardware;
pub mod json;
pub mod jsonpath;
pub mod leakproof;
mod misc;
mod money;
pub mod named;
mod network;
pub mod number;
mod operator;
mod polymorphic;
pub mod range;
mod regex_func;
mod registry;
pub mod resolve;
mod set;
mod snapshot;
pub mod sqljson;
pub mod string;
pub mod system;
mod table;
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod testing_cases;
pub mod text_search;
mod time_series;
mod to_char;
mod window;
pub mod written;
pub mod xml;

pub use crate::eval::{
    EvalContext, EvalHost, EvalResult, EvalStop, Field, ObjectKind, RelColumn, TransitionTable,
    UserType, WrittenType,
};
pub use cast::{Cast, CastContext, CastMethod, find_cast};
pub use coerce::{can_coerce, select_common_type};
pub use operator::{
    ChosenOperator, GivenOperator, OperatorSignature, ResolvedOperator, choose_operator,
    resolve_operator,
};
pub use polymorphic::{actual_type, is_polymorphic};
pub use registry::{
    aggregate_by_oid, aggregates_named, function_by_oid, functions_named, operator_by_oid,
    operators_named, windows_named,
};
pub use resolve::{
    Callee, Filler, Given, NO_CASTS, Resolved, Signature, resolve_call, resolve_function,
};
pub use throng_types::vocabulary::Volatility;

pub use aggregate::ordered::{OrderedFn, OrderedSet};
pub use window::{WindowFunction, WindowKind};

use aggregate::AggState;
use throng_types::{Datum, Oid, interrupt};

/// The tables of one family.
pub struct FunctionFamily {
    pub functions: &'static [Function],
    pub operators: &'static [Operator],
    pub aggregates: &'static [Aggregate],
    pub windows: &'static [WindowFunction],
    pub casts: &'static [Cast],
}

impl FunctionFamily {
    const NONE: FunctionFamily = FunctionFamily {
        functions: &[],
        operators: &[],
        aggregates: &[],
        windows: &[],
        casts: &[],
    };
}

/// Every family.
pub static FAMILIES: &[FunctionFamily] = &[
    FunctionFamily {
        functions: text_search::FUNCTIONS,
        operators: text_search::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: text_search::SETS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        operators: compare::table::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        operators: number::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: number::math::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: number::random::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: cast::table::FUNCTIONS,
        casts: cast::table::CASTS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        aggregates: aggregate::AGGREGATES,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        operators: datetime::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: string::unicode::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: datetime::timezone::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: set::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: system::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: system::catalog_name::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: system::table::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: aggregate::extreme::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: compare::hashes::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: system::object::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: system::object::SERVERS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: system::object::WRAPPERS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: system::object::PARAMETERS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: array::FUNCTIONS,
        operators: array::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: array::edit::FUNCTIONS,
        operators: array::edit::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: string::FUNCTIONS,
        operators: string::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: string::charset::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: string::bytes::FUNCTIONS,
        operators: string::bytes::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: string::format::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: string::like::FUNCTIONS,
        operators: string::like::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: regex_func::FUNCTIONS,
        operators: regex_func::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: datetime::extract::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: datetime::make::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: time_series::FUNCTIONS,
        aggregates: time_series::AGGREGATES,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: to_char::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: misc::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: system::lsn::FUNCTIONS,
        operators: system::lsn::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: json::FUNCTIONS,
        operators: json::OPERATORS,
        aggregates: json::AGGREGATES,
        casts: json::CASTS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: json::SETS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: jsonpath::FUNCTIONS,
        operators: jsonpath::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: jsonpath::SETS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: system::acl::FUNCTIONS,
        operators: system::acl::OPERATORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: form::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: enums::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: enums::COMPARISONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: range::FUNCTIONS,
        operators: range::OPERATORS,
        aggregates: range::AGGREGATES,
        casts: range::CASTS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: range::CONSTRUCTORS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: range::SETS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: aggregate::accumulate::FUNCTIONS,
        aggregates: aggregate::ordered::AGGREGATES,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: network::FUNCTIONS,
        operators: network::OPERATORS,
        casts: network::CASTS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: bits::FUNCTIONS,
        operators: bits::OPERATORS,
        casts: bits::CASTS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: hardware::FUNCTIONS,
        operators: hardware::OPERATORS,
        casts: hardware::CASTS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: geometric::table::FUNCTIONS,
        operators: geometric::table::OPERATORS,
        casts: geometric::table::CASTS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: money::FUNCTIONS,
        operators: money::OPERATORS,
        casts: money::CASTS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: snapshot::FUNCTIONS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: snapshot::SETS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: xml::FUNCTIONS,
        aggregates: xml::AGGREGATES,
        casts: xml::CASTS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        functions: xml::CALLS,
        ..FunctionFamily::NONE
    },
    FunctionFamily {
        windows: window::FUNCTIONS,
        ..FunctionFamily::NONE
    },
];

/// Computes one value. A strict function is never called with a NULL.
pub type EvalFn = fn(&EvalContext<'_>, &[Datum]) -> EvalResult;
/// The rows of a set-returning function, made one at a time.
pub type SetIterator = Box<dyn Iterator<Item = EvalResult> + Send>;
pub type SetFn = fn(&EvalContext<'_>, &[Datum]) -> Result<SetIterator, EvalStop>;

/// A row of `pg_proc` with what computes it.
pub struct Function {
    pub oid: Oid,
    pub name: &'static str,
    /// Declared argument types, polymorphic ones included. The last one repeats where `variadic`.
    pub args: &'static [Oid],
    pub ret: Oid,
    /// NULL in, NULL out, without a call.
    pub strict: bool,
    pub volatility: Volatility,
    /// The element type of the repeated last argument (`"any"` takes anything, one value each), or
    /// none.
    pub variadic: Oid,
    /// How many trailing arguments may be left out; `eval` is then called with fewer.
    pub defaults: u8,
    /// What the columns of a row are called, and their types, where they have names (OUT
    /// parameters).
    pub columns: &'static [(&'static str, Oid)],
    pub body: Body,
}

#[derive(Clone, Copy)]
pub enum Body {
    Scalar(EvalFn),
    /// Rows; each is a record where it has several columns.
    Set(SetFn),
}

/// Stands where a function that returns rows has no value.
fn never(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Err(throng_types::Error::internal("a set-returning function has no single value").into())
}

impl Function {
    /// A strict and immutable function; the methods below say otherwise.
    pub const fn new(
        oid: u32,
        name: &'static str,
        args: &'static [Oid],
        ret: Oid,
        eval: EvalFn,
    ) -> Function {
        Function {
            oid: Oid(oid),
            name,
            args,
            ret,
            strict: true,
            volatility: Volatility::Immutable,
            variadic: Oid::NONE,
            defaults: 0,
            columns: &[],
            body: Body::Scalar(eval),
        }
    }
    /// One that is equal to it and another.
    fn twin(&self) -> Function {
        Function {
            oid: self.oid,
            name: self.name,
            args: self.args,
            ret: self.ret,
            strict: self.strict,
            volatility: self.volatility,
            variadic: self.variadic,
            defaults: self.defaults,
            columns: self.columns,
            body: self.body,
        }
    }
    /// A strict and immutable function that returns rows.
    pub const fn set(
        oid: u32,
        name: &'static str,
        args: &'static [Oid],
        ret: Oid,
        rows: SetFn,
    ) -> Function {
        Function {
            body: Body::Set(rows),
            ..Function::new(oid, name, args, ret, never)
        }
    }
    pub const fn stable(self) -> Function {
        Function {
            volatility: Volatility::Stable,
            ..self
        }
    }
    pub const fn volatile(self) -> Function {
        Function {
            volatility: Volatility::Volatile,
            ..self
        }
    }
    /// Called with NULLs too.
    pub const fn lenient(self) -> Function {
        Function {
            strict: false,
            ..self
        }
    }
    /// The last argument repeats; `element` is its type, `oid::ANY` for any.
    pub const fn variadic(self, element: Oid) -> Function {
        Function {
            variadic: element,
            ..self
        }
    }
    /// So many trailing arguments may be left out.
    pub const fn defaults(self, count: u8) -> Function {
        Function {
            defaults: count,
            ..self
        }
    }
    /// The columns of its rows have names.
    pub const fn columns(self, columns: &'static [(&'static str, Oid)]) -> Function {
        Function { columns, ..self }
    }
    pub fn returns_set(&self) -> bool {
        matches!(self.body, Body::Set(_))
    }
    /// Evaluates a scalar function, NULL rule included.
    #[inline]
    pub fn call(&self, ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
        if self.strict && args.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        match self.body {
            Body::Scalar(eval) => eval(ctx, args),
            Body::Set(_) => Err(throng_types::Error::new(
                throng_types::error::state::FEATURE_NOT_SUPPORTED,
                "set-valued function called in context that cannot accept a set",
            )
            .into()),
        }
    }
}

/// Catalog objects are one of a kind: the same oid is the same thing.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.oid == other.oid
    }
}
impl Eq for Function {}
impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.name, self.oid)
    }
}

/// What an ordering operator asks of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    Less,
    LessEqual,
    Equal,
    GreaterEqual,
    Greater,
}

impl Strategy {
    /// The same condition with its operands exchanged.
    pub fn commuted(self) -> Strategy {
        match self {
            Strategy::Less => Strategy::Greater,
            Strategy::LessEqual => Strategy::GreaterEqual,
            Strategy::Equal => Strategy::Equal,
            Strategy::GreaterEqual => Strategy::LessEqual,
            Strategy::Greater => Strategy::Less,
        }
    }
}

/// A row of `pg_operator`.
pub struct Operator {
    pub oid: Oid,
    pub name: &'static str,
    /// None for a prefix operator.
    pub left: Oid,
    pub right: Oid,
    pub ret: Oid,
    /// The operator with operands exchanged, or none.
    pub commutator: Oid,
    /// The operator that is true where this is false, or none.
    pub negator: Oid,
    /// The function behind it (`oprcode`).
    pub code: Oid,
    pub code_name: &'static str,
    /// NULL in, NULL out: all but the concatenations of arrays.
    pub strict: bool,
    pub volatility: Volatility,
    pub eval: EvalFn,
    /// Set for the comparisons a B-tree over the operand types answers.
    pub strategy: Option<Strategy>,
}

const ARRAY_APPEND: u32 = 378;
const ARRAY_PREPEND: u32 = 379;
const ARRAY_CAT: u32 = 383;

impl Operator {
    /// An immutable operator without commutator, negator or index use; the methods below add those.
    /// `left` is `Oid::NONE` for a prefix operator; `code` is the function behind it.
    pub const fn new(
        oid: u32,
        name: &'static str,
        left: Oid,
        right: Oid,
        ret: Oid,
        code: (u32, &'static str),
        eval: EvalFn,
    ) -> Operator {
        Operator {
            oid: Oid(oid),
            name,
            left,
            right,
            ret,
            commutator: Oid::NONE,
            negator: Oid::NONE,
            code: Oid(code.0),
            code_name: code.1,
            strict: !matches!(code.0, ARRAY_APPEND | ARRAY_PREPEND | ARRAY_CAT),
            volatility: Volatility::Immutable,
            eval,
            strategy: None,
        }
    }
    /// The operator with its operands exchanged, and the one that is its negation; 0 for none.
    pub const fn related(self, commutator: u32, negator: u32) -> Operator {
        Operator {
            commutator: Oid(commutator),
            negator: Oid(negator),
            ..self
        }
    }
    pub const fn orders(self, strategy: Strategy) -> Operator {
        Operator {
            strategy: Some(strategy),
            ..self
        }
    }
    pub const fn stable(self) -> Operator {
        Operator {
            volatility: Volatility::Stable,
            ..self
        }
    }
    /// Evaluates it, NULL rule included.
    #[inline]
    pub fn call(&self, ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
        if self.strict && args.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        (self.eval)(ctx, args)
    }
    /// `left op ANY (array)`, or ALL: NULL where the array is, or where an item's answer that is
    /// not known would decide.
    pub fn call_on_items(
        &self,
        ctx: &EvalContext<'_>,
        left: Datum,
        array: &Datum,
        all: bool,
    ) -> EvalResult {
        let Datum::Array(array) = array else {
            return Ok(Datum::Null);
        };
        let mut unknown = false;
        let mut pair = [left, Datum::Null];
        for item in &array.items {
            interrupt::poll()?;
            pair[1] = item.clone();
            match self.call(ctx, &pair)? {
                Datum::Bool(b) if b != all => return Ok(Datum::Bool(b)),
                Datum::Bool(_) => {}
                _ => unknown = true,
            }
        }
        Ok(match unknown {
            true => Datum::Null,
            false => Datum::Bool(all),
        })
    }
}

impl PartialEq for Operator {
    fn eq(&self, other: &Operator) -> bool {
        self.oid == other.oid
    }
}
impl Eq for Operator {}
impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.name, self.oid)
    }
}

/// A row of `pg_aggregate` with what computes it.
///
/// `step` sees every row that passed FILTER, NULLs included: each aggregate knows what it does with
/// them. DISTINCT and ORDER BY inside an aggregate are the caller's work, before `step`.
pub struct Aggregate {
    pub oid: Oid,
    pub name: &'static str,
    pub args: &'static [Oid],
    pub ret: Oid,
    pub variadic: Oid,
    pub kind: AggKind,
    pub init: fn() -> AggState,
    pub step: fn(&EvalContext<'_>, &mut AggState, &[Datum]) -> Result<(), EvalStop>,
    /// Adds a second state to the first: for groups computed in parts.
    pub combine: fn(&EvalContext<'_>, &mut AggState, AggState) -> Result<(), EvalStop>,
    /// Takes back the oldest row that `step` took, for a window's frame that moves on; false where
    /// that cannot be done, having changed nothing.
    pub undo: Option<Undo>,
    pub finish: fn(&EvalContext<'_>, AggState) -> EvalResult,
}

/// How an aggregate comes to its rows.
#[derive(Clone, Copy)]
pub enum AggKind {
    /// One after the other.
    Plain,
    /// Called with WITHIN GROUP: all at once, in order. The first so many arguments are direct, the
    /// rest those of the ORDER BY.
    OrderedSet { direct: u8, compute: OrderedFn },
    /// The same, with the direct arguments as one more row: as many as the ORDER BY has.
    Hypothetical(OrderedFn),
}

impl AggKind {
    pub fn is_plain(self) -> bool {
        matches!(self, AggKind::Plain)
    }
}

impl Aggregate {
    /// Whether the result keeps every row's value, in the order in which the rows came.
    pub fn keeps_order(&self) -> bool {
        self.name.contains("_agg")
    }
}

pub type Undo = fn(&EvalContext<'_>, &mut AggState, &[Datum]) -> Result<bool, EvalStop>;

impl PartialEq for Aggregate {
    fn eq(&self, other: &Aggregate) -> bool {
        self.oid == other.oid
    }
}
impl Eq for Aggregate {}
impl std::fmt::Debug for Aggregate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.name, self.oid)
    }
}
