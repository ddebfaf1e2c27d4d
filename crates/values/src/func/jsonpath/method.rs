//! Item methods.

use super::exec::{Failure, Found, Walk, Walker, soft};
use super::offset;
use super::value::Value;
use super::*;
use crate::io::{scalar, typmod};
use throng_types::error::state;
use throng_types::jsonb::{Json, View};
use throng_types::{Datum, SqlType, oid};

impl Method {
    /// Whether an array it is called on is replaced by its elements in lax mode.
    pub fn unwraps(&self) -> bool {
        !matches!(self, Method::Type | Method::Size)
    }

    #[cold]
    fn only_for(&self, what: &str) -> Failure {
        soft(
            state::NON_NUMERIC_SQL_JSON_ITEM,
            format!(
                "jsonpath item method .{}() can only be applied to a {what}",
                self.name()
            ),
        )
    }
    #[cold]
    fn bad_argument(&self, argument: &str, ty: &str) -> Failure {
        soft(
            state::NON_NUMERIC_SQL_JSON_ITEM,
            format!(
                "argument \"{argument}\" of jsonpath item method .{}() is invalid for type {ty}",
                self.name()
            ),
        )
    }
    #[cold]
    fn not_finite(&self) -> Failure {
        soft(
            state::NON_NUMERIC_SQL_JSON_ITEM,
            format!(
                "NaN or Infinity is not allowed for jsonpath item method .{}()",
                self.name()
            ),
        )
    }
}

const NUMERIC: &str = "numeric value";
const STRING_OR_NUMERIC: &str = "string or numeric value";

impl<'a> Walker<'a> {
    pub fn method(
        &mut self,
        method: &Method,
        rest: &[Item],
        value: &Value<'a>,
        found: &mut Found<'a>,
    ) -> Walk {
        let result = match method {
            Method::KeyValue => return self.key_values(method, rest, value, found),
            Method::Size => match self.size(method, value)? {
                Some(size) => Value::Number((size as i64).into()),
                None => return Ok(false),
            },
            Method::Type => Value::String(Text::new_static(value.type_name())),
            Method::Abs => Value::Number(number(method, value)?.abs()),
            Method::Floor => Value::Number(number(method, value)?.floor()),
            Method::Ceiling => Value::Number(number(method, value)?.ceil()),
            Method::Double => Value::Number(double(method, value)?),
            Method::Bigint => Value::Number(integer(method, value, oid::INT8, "bigint")?.into()),
            Method::Integer => Value::Number(integer(method, value, oid::INT4, "integer")?.into()),
            Method::Boolean => Value::Bool(boolean(method, value)?),
            Method::Number => Value::Number(decimal(method, value)?),
            Method::Decimal(shape) => {
                let number = decimal(method, value)?;
                Value::Number(shaped(method, number, shape.as_ref())?)
            }
            Method::String => Value::String(string(method, value)?),
            Method::Datetime(_)
            | Method::Date
            | Method::Time(_)
            | Method::TimeTz(_)
            | Method::Timestamp(_)
            | Method::TimestampTz(_) => self.datetime_method(method, value)?,
        };
        self.next(rest, result, found)
    }

    /// How many elements; None for what has none in a walk that ignores structure.
    fn size(&self, method: &Method, value: &Value<'a>) -> Walk<Option<usize>> {
        if let Some(View::Array(elements)) = value.array().map(|a| a.view()) {
            return Ok(Some(elements.len()));
        }
        if self.lax {
            return Ok(Some(1));
        }
        if self.ignores_structure() {
            return Ok(None);
        }
        Err(soft(
            state::SQL_JSON_ARRAY_NOT_FOUND,
            format!(
                "jsonpath item method .{}() can only be applied to an array",
                method.name()
            ),
        ))
    }

    /// An object for each member, with a number that tells the object it is a member of from
    /// others.
    fn key_values(
        &mut self,
        method: &Method,
        rest: &[Item],
        value: &Value<'a>,
        found: &mut Found<'a>,
    ) -> Walk {
        let members = match value.object().map(|o| (o, o.view())) {
            Some((object, View::Object(members))) => (object, members),
            _ => {
                return Err(soft(
                    state::SQL_JSON_OBJECT_NOT_FOUND,
                    format!(
                        "jsonpath item method .{}() can only be applied to an object",
                        method.name()
                    ),
                ));
            }
        };
        let (object, members) = members;
        // As PostgreSQL numbers them: by where the object lies in the one it is counted from.
        const PER_BASE: i64 = 10_000_000_000;
        let (base, number) = self.base;
        let offset = base.and_then(|base| offset::of(base, object, &mut self.steps));
        let offset = offset.unwrap_or(0);
        let id = Numeric::from(offset as i64 + number * PER_BASE);
        let mut any = false;
        for (key, member) in members.iter() {
            let pair = Json::Object(vec![
                ("key".into(), Json::String(key.into())),
                ("value".into(), member.into()),
                ("id".into(), Json::Number(id.clone())),
            ]);
            let pair = self.keep(pair.encode()?);
            let number = self.last_number;
            self.last_number += 1;
            any = self.based(Some(pair), number, |w| {
                w.next(rest, Value::Part(pair), found)
            })?;
            if any && !found.wanted {
                return Ok(true);
            }
        }
        Ok(any)
    }
}

fn number(method: &Method, value: &Value<'_>) -> Walk<Numeric> {
    value.number().ok_or_else(|| method.only_for(NUMERIC))
}

fn double(method: &Method, value: &Value<'_>) -> Walk<Numeric> {
    const TYPE: &str = "double precision";
    if let Some(number) = value.number() {
        let text = number.to_string();
        return match scalar::parse_float8(&text) {
            Ok(double) if double.is_finite() => Ok(number),
            Ok(_) => Err(method.not_finite()),
            Err(_) => Err(method.bad_argument(&text, TYPE)),
        };
    }
    let Some(text) = value.string() else {
        return Err(method.only_for(STRING_OR_NUMERIC));
    };
    match scalar::parse_float8(text) {
        Ok(double) if double.is_finite() => Ok(Numeric::from_f64(double)),
        Ok(_) => Err(method.not_finite()),
        Err(_) => Err(method.bad_argument(text, TYPE)),
    }
}

fn integer(method: &Method, value: &Value<'_>, ty: throng_types::Oid, name: &str) -> Walk<i64> {
    let fits = |v: &i64| ty == oid::INT8 || i32::try_from(*v).is_ok();
    if let Some(number) = value.number() {
        let rounded = number.to_i64().filter(fits);
        return rounded.ok_or_else(|| method.bad_argument(&number.to_string(), name));
    }
    let Some(text) = value.string() else {
        return Err(method.only_for(STRING_OR_NUMERIC));
    };
    let parsed: Option<i64> = scalar::parse_int(text, ty).ok().filter(fits);
    parsed.ok_or_else(|| method.bad_argument(text, name))
}

fn boolean(method: &Method, value: &Value<'_>) -> Walk<bool> {
    const TYPE: &str = "boolean";
    match value.scalar() {
        Value::Bool(truth) => Ok(truth),
        Value::Number(number) => {
            let text = number.to_string();
            match scalar::parse_int::<i32>(&text, oid::INT4) {
                Ok(integer) => Ok(integer != 0),
                Err(_) => Err(method.bad_argument(&text, TYPE)),
            }
        }
        Value::String(text) => {
            scalar::parse_bool(&text).map_err(|_| method.bad_argument(&text, TYPE))
        }
        _ => Err(method.only_for("boolean, string, or numeric value")),
    }
}

fn decimal(method: &Method, value: &Value<'_>) -> Walk<Numeric> {
    let number = match (value.number(), value.string()) {
        (Some(number), _) => number,
        (None, Some(text)) => {
            scalar::parse_numeric(text).map_err(|_| method.bad_argument(text, "numeric"))?
        }
        (None, None) => return Err(method.only_for(STRING_OR_NUMERIC)),
    };
    if number.is_finite() {
        Ok(number)
    } else {
        Err(method.not_finite())
    }
}

/// With the precision and scale that `decimal()` was given.
fn shaped(
    method: &Method,
    number: Numeric,
    shape: Option<&(Numeric, Option<Numeric>)>,
) -> Walk<Numeric> {
    let Some((precision, scale)) = shape else {
        return Ok(number);
    };
    let int = |n: &Numeric, what: &str| {
        let int = n.to_i64().and_then(|n| i32::try_from(n).ok());
        int.ok_or_else(|| {
            soft(
                state::NON_NUMERIC_SQL_JSON_ITEM,
                format!(
                    "{what} of jsonpath item method .{}() is out of range for type integer",
                    method.name()
                ),
            )
        })
    };
    let mut given = vec![int(precision, "precision")?];
    if let Some(scale) = scale {
        given.push(int(scale, "scale")?);
    }
    let modifier = typmod::from_written(oid::NUMERIC, &given).map_err(Failure::Soft)?;
    let text = number.to_string();
    let ty = SqlType::new(oid::NUMERIC, modifier);
    match typmod::apply(Datum::Numeric(number), ty, false) {
        Ok(Datum::Numeric(number)) => Ok(number),
        _ => Err(method.bad_argument(&text, "numeric")),
    }
}

fn string(method: &Method, value: &Value<'_>) -> Walk<Text> {
    Ok(match value.scalar() {
        Value::String(text) => text,
        Value::Number(number) => number.to_string().into(),
        Value::Bool(truth) => Text::new_static(if truth { "true" } else { "false" }),
        Value::Moment(moment) => moment.text().into(),
        Value::Null | Value::Part(_) => {
            return Err(method.only_for("boolean, string, numeric, or datetime value"));
        }
    })
}
