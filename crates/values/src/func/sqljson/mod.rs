//! SQL/JSON's constructors, predicate, query functions and JSON_TABLE, as functions that no name
//! calls.
//!
//! The binder makes a call of one of them out of the syntax. The first argument is a constant that
//! says what was written besides values ([`Spec`], as a JSON text, which each thread keeps read);
//! so these calls are planned, folded and run like any other.

mod construct;
mod path;
mod populate;
mod table;

pub use table::{Column, Plan, TableSpec};
pub use throng_types::vocabulary::{JsonKind, JsonPathOp, Wrapper};

use super::{Body, EvalContext, EvalResult, Function, Volatility};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use throng_types::{Datum, Error, Oid, Result, SqlType, Text, oid};

/// What ON EMPTY and ON ERROR give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Behavior {
    Null,
    Error,
    EmptyArray,
    EmptyObject,
    True,
    False,
    Unknown,
    /// The argument of this number.
    Default(usize),
}

/// What was written besides values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Spec {
    /// `JSON(… WITH UNIQUE)` of a text.
    Unique,
    Scalar,
    Object {
        absent: bool,
        unique: bool,
        binary: bool,
    },
    Array {
        absent: bool,
        binary: bool,
    },
    Is {
        kind: JsonKind,
        unique: bool,
    },
    /// Arguments: the document, the path, what is passed, defaults.
    Path(PathSpec),
    /// The same without the path.
    Table(TableSpec),
}

/// How a value is looked for and what it becomes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathSpec {
    pub op: JsonPathOp,
    pub wrapper: Wrapper,
    /// A string is what is in it.
    pub omit_quotes: bool,
    /// Type and modifier of the result.
    pub returning: (u32, i32),
    /// Names of the values passed.
    pub passing: Vec<String>,
    /// None where it is what is done where nothing is written.
    pub on_empty: Option<Behavior>,
    pub on_error: Option<Behavior>,
    /// The column of JSON_TABLE that it is for.
    pub column: Option<String>,
}

impl PathSpec {
    pub fn ty(&self) -> SqlType {
        SqlType::new(Oid(self.returning.0), self.returning.1)
    }
}

impl Spec {
    /// The constant that a call has first.
    pub fn to_datum(&self) -> Result<Datum> {
        let text = serde_json::to_string(self).map_err(|e| Error::internal(e.to_string()))?;
        Ok(text.into())
    }

    /// What is called, in a plan's text.
    pub fn name(&self) -> &'static str {
        match self {
            Spec::Unique => "JSON",
            Spec::Scalar => "JSON_SCALAR",
            Spec::Object { .. } => "JSON_OBJECT",
            Spec::Array { .. } => "JSON_ARRAY",
            Spec::Is { .. } => "IS JSON",
            Spec::Path(spec) => spec.op.name(),
            Spec::Table(_) => "JSON_TABLE",
        }
    }

    /// Read, or found read before.
    pub fn of(argument: &Datum) -> Result<Arc<Spec>> {
        let Datum::Text(text) = argument else {
            return Err(Error::internal("SQL/JSON without its specification"));
        };
        if let Some(found) = READ.with_borrow(|kept| kept.get(text).cloned()) {
            return Ok(found);
        }
        let spec: Spec = serde_json::from_str(text).map_err(|e| Error::internal(e.to_string()))?;
        let spec = Arc::new(spec);
        READ.with_borrow_mut(|kept| {
            if kept.len() >= KEPT {
                kept.clear();
            }
            kept.insert(text.clone(), Arc::clone(&spec));
        });
        Ok(spec)
    }
}

/// Specifications kept read by each thread; when there are more, it begins anew.
const KEPT: usize = 64;

thread_local! {
    static READ: RefCell<HashMap<Text, Arc<Spec>>> = RefCell::default();
}

/// Where these functions' numbers begin, above all that catalogs give out.
const FIRST_OID: u32 = 0xffff_ff00;

const fn function(number: u32, name: &'static str, ret: Oid, body: Body) -> Function {
    Function {
        oid: Oid(FIRST_OID + number),
        name,
        args: &[],
        ret,
        strict: false,
        volatility: Volatility::Stable,
        variadic: Oid::NONE,
        defaults: 0,
        columns: &[],
        body,
    }
}

pub static CALL: Function = function(1, "sql_json", oid::JSON, Body::Scalar(call));
pub static TABLE: Function = function(2, "json_table", oid::RECORD, Body::Set(table::rows));

fn call(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let spec = Spec::of(&args[0])?;
    let args = &args[1..];
    match &*spec {
        Spec::Unique => construct::unique(args),
        Spec::Scalar => construct::scalar(ctx, args),
        Spec::Object {
            absent,
            unique,
            binary,
        } => construct::object(ctx, args, *absent, *unique, *binary),
        Spec::Array { absent, binary } => construct::array(ctx, args, *absent, *binary),
        Spec::Is { kind, unique } => construct::is_json(args, *kind, *unique),
        Spec::Path(spec) => path::call(ctx, spec, args),
        Spec::Table(_) => Err(Error::internal("JSON_TABLE has no single value").into()),
    }
}
