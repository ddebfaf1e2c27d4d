//! `json_populate_record` and its kin: JSON as a value of a row type.
//!
//! A value does not know all of its type, so the binder puts constants before the written arguments
//! of a call: the row type's oid and that of the domain over it. These functions are therefore in
//! no table that names are looked up in.

use std::borrow::Cow;

use super::super::{EvalContext, EvalResult, EvalStop, Function, SetIterator};
use super::text::{Top, top};
use crate::io::input_text;
use crate::io::json::parse_jsonb;
use throng_types::datum::Dim;
use throng_types::error::state;
use throng_types::jsonb::{JsonRef, View};
use throng_types::sqltype::{element_of, made, type_info};
use throng_types::{Array, Datum, Error, Oid, Record, Result, SqlType, Text, oid, oid::*};

/// The constants before the written arguments.
const CONSTANTS: usize = 2;

pub static RECORD_OF_JSON: Function = Function::new(
    3960,
    "json_populate_record",
    &[ANYELEMENT, JSON, BOOL],
    ANYELEMENT,
    record,
)
.stable()
.lenient();
pub static RECORD_OF_JSONB: Function = Function::new(
    3209,
    "jsonb_populate_record",
    &[ANYELEMENT, JSONB],
    ANYELEMENT,
    record,
)
.stable()
.lenient();
pub static SET_OF_JSON: Function = Function::set(
    3961,
    "json_populate_recordset",
    &[ANYELEMENT, JSON, BOOL],
    ANYELEMENT,
    set,
)
.stable()
.lenient();
pub static SET_OF_JSONB: Function = Function::set(
    3475,
    "jsonb_populate_recordset",
    &[ANYELEMENT, JSONB],
    ANYELEMENT,
    set,
)
.stable()
.lenient();
/// A column of `json_to_record`: after a constant NULL of the column's type, its value.
pub static MEMBER: Function = Function::new(0, "json_member", &[ANY, ANY], ANYELEMENT, member)
    .stable()
    .lenient();

/// The function of that name.
pub fn named(name: &str) -> Option<&'static Function> {
    let all = [
        &RECORD_OF_JSON,
        &RECORD_OF_JSONB,
        &SET_OF_JSON,
        &SET_OF_JSONB,
    ];
    all.into_iter().find(|f| f.name == name)
}

/// A call's arguments as they are written.
pub fn written<'a, T>(func: &Function, args: &'a [T]) -> &'a [T] {
    match named(func.name) {
        Some(known) if known.oid == func.oid => args.get(CONSTANTS..).unwrap_or_default(),
        _ => args,
    }
}

/// A JSON value, of either kind.
#[derive(Clone, Copy)]
enum Value<'a> {
    Text(&'a str),
    Binary(JsonRef<'a>),
}

enum Shape<'a> {
    Null,
    String(Cow<'a, str>),
    /// A number or a boolean, as it is written.
    Scalar(Cow<'a, str>),
    Array(Vec<Value<'a>>),
    Object(Vec<(Cow<'a, str>, Value<'a>)>),
}

impl<'a> Value<'a> {
    fn of(value: &'a Datum) -> Option<Value<'a>> {
        match value {
            Datum::Jsonb(json) => Some(Value::Binary(json.root())),
            Datum::Json(text) => Some(Value::Text(text)),
            _ => None,
        }
    }

    fn shape(self) -> Result<Shape<'a>> {
        Ok(match self {
            Value::Text(text) => {
                let text = text.trim_matches([' ', '\t', '\n', '\r']);
                match top(text)? {
                    Top::Scalar(_) if text == "null" => Shape::Null,
                    Top::Scalar(value) if text.starts_with('"') => Shape::String(value),
                    Top::Scalar(value) => Shape::Scalar(value),
                    Top::Array(items) => {
                        let items = items.into_iter().map(|at| Value::Text(&text[at]));
                        Shape::Array(items.collect())
                    }
                    Top::Object(members) => {
                        let members = members.into_iter();
                        let members = members.map(|(key, at)| (key, Value::Text(&text[at])));
                        Shape::Object(members.collect())
                    }
                }
            }
            Value::Binary(value) => match value.view() {
                View::Null => Shape::Null,
                View::String(text) => Shape::String(Cow::Borrowed(text)),
                View::Array(items) => Shape::Array(items.iter().map(Value::Binary).collect()),
                View::Object(members) => {
                    let members = members.iter();
                    let members = members.map(|(key, v)| (Cow::Borrowed(key), Value::Binary(v)));
                    Shape::Object(members.collect())
                }
                _ => Shape::Scalar(Cow::Owned(value.to_text())),
            },
        })
    }

    fn text(self) -> Cow<'a, str> {
        match self {
            Value::Text(text) => Cow::Borrowed(text.trim_matches([' ', '\t', '\n', '\r'])),
            Value::Binary(value) => Cow::Owned(value.to_text()),
        }
    }
}

/// Where in the JSON a value is, for hints.
struct At<'a> {
    column: &'a str,
    indices: Vec<usize>,
}

impl At<'_> {
    fn hint(&self, error: Error) -> Error {
        let element: String = self.indices.iter().map(|i| format!("[{i}]")).collect();
        match (self.column.is_empty(), self.indices.is_empty()) {
            (true, true) => error,
            (true, false) => error.hint(format!("See the array element {element}.")),
            (false, true) => error.hint(format!("See the value of key \"{}\".", self.column)),
            (false, false) => error.hint(format!(
                "See the array element {element} of key \"{}\".",
                self.column
            )),
        }
    }
    fn expected_array(&self) -> Error {
        let message = "expected JSON array";
        self.hint(Error::new(state::INVALID_TEXT_REPRESENTATION, message))
    }
}

#[cold]
fn malformed() -> Error {
    Error::new(state::INVALID_TEXT_REPRESENTATION, "malformed JSON array")
        .detail("Multidimensional arrays must have sub-arrays with matching dimensions.")
}

#[cold]
fn cannot_call(name: &str, shape: &Shape<'_>) -> Error {
    let on = match shape {
        Shape::Array(_) => "an array",
        Shape::Object(_) => "an object",
        _ => "a scalar",
    };
    Error::new(
        state::INVALID_PARAMETER_VALUE,
        format!("cannot call {name} on {on}"),
    )
}

/// One field's value, of its type and then of its domain. `old`: what is there already.
fn field(
    ctx: &EvalContext<'_>,
    value: Value<'_>,
    (ty, domain): (SqlType, Option<Oid>),
    old: &Datum,
    at: &mut At<'_>,
) -> Result<Datum> {
    let made = plain_field(ctx, value, ty, old, at)?;
    if let Some(domain) = domain {
        ctx.host.check_in_domain(domain, &made)?;
    }
    Ok(made)
}

fn plain_field(
    ctx: &EvalContext<'_>,
    value: Value<'_>,
    ty: SqlType,
    old: &Datum,
    at: &mut At<'_>,
) -> Result<Datum> {
    let shape = value.shape()?;
    if let Shape::Null = shape {
        return Ok(Datum::Null);
    }
    match ty.oid {
        oid::JSON => return Ok(Datum::Json(Text::new(value.text()))),
        oid::JSONB => {
            return Ok(Datum::Jsonb(match value {
                Value::Text(text) => parse_jsonb(text)?,
                Value::Binary(value) => value.to_owned(),
            }));
        }
        _ => {}
    }
    if let Shape::String(text) = &shape {
        return input_text(ctx, text, ty);
    }
    if type_info(ty.oid).is_some_and(|t| t.is_array()) {
        return array(ctx, shape, ty, at);
    }
    if made::is_composite(ty.oid) {
        return match shape {
            Shape::Object(members) => populated(ctx, ty.oid, old, &members),
            other => Err(cannot_call("populate_composite", &other)),
        };
    }
    match shape {
        Shape::Scalar(text) => input_text(ctx, &text, ty),
        _ => input_text(ctx, &value.text(), ty),
    }
}

fn array(ctx: &EvalContext<'_>, shape: Shape<'_>, ty: SqlType, at: &mut At<'_>) -> Result<Datum> {
    let Some(element) = element_of(ty.oid) else {
        return Err(Error::internal("an array type without elements"));
    };
    let Shape::Array(elements) = shape else {
        return Err(at.expected_array());
    };
    let mut items = Items {
        element: SqlType::new(element, ty.typmod),
        lengths: vec![],
        dimensions: None,
        items: vec![],
    };
    items.gather(ctx, elements, 1, at)?;
    if items.items.is_empty() {
        items.lengths.clear();
    }
    let dims = items.lengths.into_iter().map(|len| Dim { len, lower: 1 });
    Ok(Datum::array(Array {
        element,
        dims: dims.collect(),
        items: items.items,
    }))
}

/// An array's items as they are gathered.
struct Items {
    element: SqlType,
    /// Of the dimensions met so far.
    lengths: Vec<i32>,
    /// How many dimensions there are, once the first item or an empty array tells.
    dimensions: Option<usize>,
    items: Vec<Datum>,
}

impl Items {
    /// Takes in an array that is so many arrays deep.
    fn gather(
        &mut self,
        ctx: &EvalContext<'_>,
        elements: Vec<Value<'_>>,
        depth: usize,
        at: &mut At<'_>,
    ) -> Result<()> {
        /// Dimensions that an array may have.
        const MOST: usize = 6;
        if depth > MOST {
            let message = format!(
                "number of array dimensions ({depth}) exceeds the maximum allowed ({MOST})"
            );
            return Err(Error::new(state::PROGRAM_LIMIT_EXCEEDED, message));
        }
        match self.lengths.get(depth - 1) {
            Some(len) if *len != elements.len() as i32 => return Err(malformed()),
            Some(_) => {}
            None => self.lengths.push(elements.len() as i32),
        }
        if self.dimensions.is_none() {
            let first = elements.first().map(|e| e.shape()).transpose()?;
            if !matches!(first, Some(Shape::Array(_))) {
                self.dimensions = Some(depth);
            }
        }
        for (i, element) in elements.into_iter().enumerate() {
            at.indices.push(i);
            if self
                .dimensions
                .is_some_and(|dimensions| depth >= dimensions)
            {
                let made = plain_field(ctx, element, self.element, &Datum::Null, at)?;
                self.items.push(made);
            } else {
                let Shape::Array(inner) = element.shape()? else {
                    return Err(at.expected_array());
                };
                self.gather(ctx, inner, depth + 1, at)?;
            }
            at.indices.pop();
        }
        Ok(())
    }
}

/// The names, types and domains of a row type's fields.
fn fields_of(
    ctx: &EvalContext<'_>,
    ty: Oid,
    base: &Datum,
) -> Result<Vec<(Text, SqlType, Option<Oid>)>> {
    let def = ctx.host.user_type(ty);
    if let Some(fields) = def.as_ref().and_then(|def| def.fields()) {
        let fields = fields.into_iter();
        return Ok(fields
            .map(|f| (Text::new(f.name), f.ty, f.domain))
            .collect());
    }
    let Datum::Record(record) = base else {
        let message = "could not determine row type for result of json_populate_record";
        return Err(Error::new(state::INVALID_PARAMETER_VALUE, message).hint(
            "Provide a non-null record argument, or call the function in the FROM clause using a column definition list.",
        ));
    };
    let name = |i: usize| match &record.names {
        Some(names) => names[i].clone(),
        None => Text::new(format!("f{}", i + 1)),
    };
    let types = record.types.iter().enumerate();
    Ok(types
        .map(|(i, ty)| (name(i), SqlType::plain(*ty), None))
        .collect())
}

/// A row with the members of an object in its fields; those that have none keep what `base` has.
fn populated(
    ctx: &EvalContext<'_>,
    ty: Oid,
    base: &Datum,
    members: &[(Cow<'_, str>, Value<'_>)],
) -> Result<Datum> {
    let fields = fields_of(ctx, ty, base)?;
    let old = match base {
        Datum::Record(record) => Some(record),
        _ => None,
    };
    if old.is_some() && members.is_empty() {
        return Ok(base.clone());
    }
    let mut values = Vec::with_capacity(fields.len());
    for (i, (name, ty, domain)) in fields.iter().enumerate() {
        let before = old.and_then(|r| r.values.get(i)).unwrap_or(&Datum::Null);
        let member = members.iter().rfind(|(key, _)| **key == **name);
        values.push(match member {
            None if old.is_some() => before.clone(),
            found => {
                let mut at = At {
                    column: name,
                    indices: vec![],
                };
                let value = found.map_or(Value::Text("null"), |(_, value)| *value);
                field(ctx, value, (*ty, *domain), before, &mut at)?
            }
        });
    }
    Ok(Datum::Record(
        Record {
            types: fields.iter().map(|(_, ty, _)| ty.oid).collect(),
            names: Some(fields.iter().map(|(name, ..)| name.clone()).collect()),
            values,
        }
        .into(),
    ))
}

/// A call's constants, the row that is there and the JSON.
struct Call<'a> {
    ty: Oid,
    domain: Option<Oid>,
    base: &'a Datum,
    json: &'a Datum,
}

impl<'a> Call<'a> {
    fn of(args: &'a [Datum]) -> Call<'a> {
        let oid = |value: &Datum| Oid(value.as_i64().unwrap_or_default() as u32);
        Call {
            ty: oid(&args[0]),
            domain: Some(oid(&args[1])).filter(|d| *d != Oid::NONE),
            base: &args[2],
            json: &args[3],
        }
    }
    fn name(&self) -> &'static str {
        match self.json {
            Datum::Jsonb(_) => "jsonb_populate_recordset",
            _ => "json_populate_recordset",
        }
    }
    fn in_domain(&self, ctx: &EvalContext<'_>, row: Datum) -> Result<Datum> {
        if let Some(domain) = self.domain {
            ctx.host.check_in_domain(domain, &row)?;
        }
        Ok(row)
    }
}

fn record(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let call = Call::of(args);
    let Some(value) = Value::of(call.json) else {
        return Ok(call.base.clone());
    };
    match value.shape()? {
        Shape::Object(members) => {
            let row = populated(ctx, call.ty, call.base, &members)?;
            Ok(call.in_domain(ctx, row)?)
        }
        other => Err(cannot_call("populate_composite", &other).into()),
    }
}

fn set(ctx: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let call = Call::of(args);
    let Some(value) = Value::of(call.json) else {
        return Ok(Box::new(std::iter::empty()));
    };
    let name = call.name();
    let elements = match value.shape()? {
        Shape::Array(elements) => elements,
        other => return Err(cannot_call(name, &other).into()),
    };
    let mut rows = Vec::with_capacity(elements.len());
    for element in elements {
        let Shape::Object(members) = element.shape()? else {
            let message = format!("argument of {name} must be an array of objects");
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message).into());
        };
        let row = populated(ctx, call.ty, call.base, &members)?;
        rows.push(Ok(call.in_domain(ctx, row)?));
    }
    Ok(Box::new(rows.into_iter()))
}

/// Type, modifier, domain, the column's name, the JSON.
fn member(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let number = |i: usize| args[i].as_i64().unwrap_or_default();
    let ty = SqlType::new(Oid(number(0) as u32), number(1) as i32);
    let domain = Some(Oid(number(2) as u32)).filter(|d| *d != Oid::NONE);
    let mut at = At {
        column: args[3].as_str().unwrap_or_default(),
        indices: vec![],
    };
    let value = Value::of(&args[4]).unwrap_or(Value::Text("null"));
    Ok(field(ctx, value, (ty, domain), &Datum::Null, &mut at)?)
}
