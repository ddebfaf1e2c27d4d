//! SQL/JSON as it is written.

use super::{Call, Expr, Pos, Query, TypeName};
pub use throng_types::vocabulary::{JsonKind, JsonPathOp, Wrapper};

/// `FORMAT JSON [ENCODING …]`
#[derive(Clone, Debug, PartialEq)]
pub struct JsonFormat {
    pub encoding: Option<(String, Pos)>,
    pub pos: Pos,
}

/// A value and how it is to be read.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonValue {
    pub expr: Expr,
    pub format: Option<JsonFormat>,
}

/// `RETURNING type [FORMAT JSON]`
#[derive(Clone, Debug, PartialEq)]
pub struct JsonReturning {
    pub ty: TypeName,
    pub format: Option<JsonFormat>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JsonNode {
    /// `JSON(…)`
    Parse {
        value: JsonValue,
        unique: bool,
    },
    Scalar(Expr),
    Serialize {
        value: JsonValue,
        returning: Option<JsonReturning>,
    },
    Object {
        pairs: Vec<(Expr, JsonValue)>,
        absent: bool,
        unique: bool,
        returning: Option<JsonReturning>,
    },
    Array {
        items: Vec<JsonValue>,
        absent: bool,
        returning: Option<JsonReturning>,
    },
    /// `JSON_ARRAY(SELECT …)`
    ArrayQuery {
        query: Box<Query>,
        format: Option<JsonFormat>,
        returning: Option<JsonReturning>,
    },
    Aggregate(Box<JsonAggregate>),
    /// `IS JSON …`
    Is {
        arg: Expr,
        kind: JsonKind,
        unique: bool,
    },
    Path(Box<JsonPathCall>),
    /// Only in FROM.
    Table(Box<JsonTable>),
}

/// JSON_OBJECTAGG and JSON_ARRAYAGG: calls of functions of the catalog.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonAggregate {
    pub object: bool,
    pub call: Call,
    pub returning: Option<JsonReturning>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JsonPathCall {
    pub op: JsonPathOp,
    pub context: JsonValue,
    pub path: Expr,
    pub passing: Vec<(String, JsonValue)>,
    pub returning: Option<JsonReturning>,
    pub wrapper: Wrapper,
    /// KEEP QUOTES, OMIT QUOTES (false).
    pub keep_quotes: Option<bool>,
    pub on_empty: Option<JsonBehavior>,
    pub on_error: Option<JsonBehavior>,
}

/// What ON EMPTY or ON ERROR is to give.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonBehavior {
    pub kind: JsonBehaviorKind,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JsonBehaviorKind {
    Null,
    Error,
    /// EMPTY, EMPTY ARRAY
    EmptyArray,
    EmptyObject,
    True,
    False,
    Unknown,
    Default(Box<Expr>),
}

/// JSON_TABLE in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonTable {
    pub context: JsonValue,
    pub path: Expr,
    pub path_name: Option<(String, Pos)>,
    pub passing: Vec<(String, JsonValue)>,
    pub columns: Vec<JsonTableColumn>,
    pub on_error: Option<JsonBehavior>,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JsonTableColumn {
    Ordinality {
        name: String,
        pos: Pos,
    },
    Value {
        name: String,
        pos: Pos,
        ty: TypeName,
        format: Option<JsonFormat>,
        exists: bool,
        path: Option<(String, Pos)>,
        wrapper: Wrapper,
        keep_quotes: Option<bool>,
        on_empty: Option<JsonBehavior>,
        on_error: Option<JsonBehavior>,
    },
    Nested {
        path: (String, Pos),
        path_name: Option<(String, Pos)>,
        columns: Vec<JsonTableColumn>,
    },
}

impl JsonTableColumn {
    /// What it is called where it is a column.
    pub fn name(&self) -> Option<&str> {
        match self {
            JsonTableColumn::Ordinality { name, .. } | JsonTableColumn::Value { name, .. } => {
                Some(name)
            }
            JsonTableColumn::Nested { .. } => None,
        }
    }
}

/// What a column made by one of these is called.
impl JsonNode {
    pub fn label(&self) -> Option<&'static str> {
        Some(match self {
            JsonNode::Parse { .. } => "json",
            JsonNode::Scalar(_) => "json_scalar",
            JsonNode::Serialize { .. } => "json_serialize",
            JsonNode::Object { .. } => "json_object",
            JsonNode::Array { .. } | JsonNode::ArrayQuery { .. } => "json_array",
            JsonNode::Aggregate(aggregate) if aggregate.object => "json_objectagg",
            JsonNode::Aggregate(_) => "json_arrayagg",
            JsonNode::Is { .. } => return None,
            JsonNode::Table(_) => "json_table",
            JsonNode::Path(call) => match call.op {
                JsonPathOp::Exists => "json_exists",
                JsonPathOp::Value => "json_value",
                JsonPathOp::Query => "json_query",
            },
        })
    }

    /// The query of `JSON_ARRAY(SELECT …)`.
    pub fn query(&self) -> Option<&Query> {
        match self {
            JsonNode::ArrayQuery { query, .. } => Some(query),
            _ => None,
        }
    }

    /// Calls `f` on each expression directly below, subqueries left out.
    pub fn for_each_operand<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match self {
            JsonNode::Parse { value, .. } | JsonNode::Serialize { value, .. } => f(&value.expr),
            JsonNode::Scalar(arg) | JsonNode::Is { arg, .. } => f(arg),
            JsonNode::Object { pairs, .. } => {
                for (key, value) in pairs {
                    f(key);
                    f(&value.expr);
                }
            }
            JsonNode::Array { items, .. } => items.iter().for_each(|v| f(&v.expr)),
            JsonNode::ArrayQuery { .. } => {}
            JsonNode::Aggregate(aggregate) => aggregate.call.for_each_operand(f),
            JsonNode::Table(table) => {
                f(&table.context.expr);
                table.passing.iter().for_each(|(_, v)| f(&v.expr));
            }
            JsonNode::Path(call) => {
                f(&call.context.expr);
                f(&call.path);
                call.passing.iter().for_each(|(_, v)| f(&v.expr));
                for behavior in call.on_empty.iter().chain(&call.on_error) {
                    if let JsonBehaviorKind::Default(expr) = &behavior.kind {
                        f(expr);
                    }
                }
            }
        }
    }
}
