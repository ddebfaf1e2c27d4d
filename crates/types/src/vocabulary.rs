//! Small enumerations that functions share with the parser, which knows no function.

use serde::{Deserialize, Serialize};

/// What a result depends on besides its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Volatility {
    /// Nothing: may be computed while planning.
    Immutable,
    /// The statement: its snapshot, settings, time.
    Stable,
    /// Everything: must be computed for each row.
    Volatile,
}

/// What `IS JSON` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JsonKind {
    /// Nothing said.
    Any,
    Value,
    Array,
    Object,
    Scalar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wrapper {
    Unspecified,
    Without,
    Conditional,
    Unconditional,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JsonPathOp {
    Exists,
    Value,
    Query,
}

impl JsonPathOp {
    pub fn name(self) -> &'static str {
        match self {
            JsonPathOp::Exists => "JSON_EXISTS",
            JsonPathOp::Value => "JSON_VALUE",
            JsonPathOp::Query => "JSON_QUERY",
        }
    }
}
