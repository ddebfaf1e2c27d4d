//! The values a walk meets: parts of documents, and what methods and operators make of them.

use super::moment::Moment;
use throng_types::jsonb::{Json, JsonRef, View};
use throng_types::{Jsonb, Numeric, Result, Text};

#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// A part of the document, of a variable, or of what was made on the way.
    Part(JsonRef<'a>),
    Null,
    Bool(bool),
    Number(Numeric),
    String(Text),
    Moment(Box<Moment>),
}

impl<'a> Value<'a> {
    /// An array or object.
    pub fn container(&self) -> Option<JsonRef<'a>> {
        match self {
            Value::Part(part) if part.is_container() => Some(*part),
            _ => None,
        }
    }
    pub fn array(&self) -> Option<JsonRef<'a>> {
        match self {
            Value::Part(part) if part.is_array() => Some(*part),
            _ => None,
        }
    }
    pub fn is_array(&self) -> bool {
        self.array().is_some()
    }
    pub fn object(&self) -> Option<JsonRef<'a>> {
        match self {
            Value::Part(part) if part.is_object() => Some(*part),
            _ => None,
        }
    }
    /// A scalar of a document as one of its own; everything else as it is.
    pub fn scalar(&self) -> Value<'a> {
        let Value::Part(part) = self else {
            return self.clone();
        };
        match part.view() {
            View::Null => Value::Null,
            View::Bool(value) => Value::Bool(value),
            View::Number(value) => Value::Number(value),
            View::String(value) => Value::String(value.into()),
            View::Array(_) | View::Object(_) => self.clone(),
        }
    }
    pub fn number(&self) -> Option<Numeric> {
        match self {
            Value::Number(value) => Some(value.clone()),
            Value::Part(part) => match part.view() {
                View::Number(value) => Some(value),
                _ => None,
            },
            _ => None,
        }
    }
    pub fn string(&self) -> Option<&str> {
        match self {
            Value::String(value) => Some(value),
            Value::Part(part) => match part.view() {
                View::String(value) => Some(value),
                _ => None,
            },
            _ => None,
        }
    }
    /// `type()` of it.
    pub fn type_name(&self) -> &'static str {
        match self.scalar() {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Moment(moment) => moment.type_name(),
            Value::Part(part) if part.is_array() => "array",
            Value::Part(_) => "object",
        }
    }

    pub fn to_json(&self) -> Json<'_> {
        match self {
            Value::Part(part) => (*part).into(),
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(value) => Json::Number(value.clone()),
            Value::String(value) => Json::String(value.as_str().into()),
            Value::Moment(moment) => Json::String(moment.text().into()),
        }
    }
    pub fn to_jsonb(&self) -> Result<Jsonb> {
        match self {
            Value::Part(part) => Ok((*part).to_owned()),
            other => other.to_json().encode(),
        }
    }
}
