//! Values as text and as libpq's binary form, both ways, for every type.
//!
//! Output appends to the caller's buffer and allocates nothing for fixed-width values. Input errors
//! are PostgreSQL's, with its SQLSTATEs.

pub mod array;
pub mod base;
pub mod binary;
pub mod bits;
mod citext;
pub mod datetime;
pub mod geometric;
pub mod hardware;
pub mod hstore;
pub mod json;
pub mod jsonpath;
pub mod money;
pub mod network;
pub mod range;
pub mod record;
pub mod scalar;
pub mod snapshot;
pub mod text_search;
pub mod typmod;
pub mod vector;
pub mod xml;

use crate::acl;
use crate::eval::{EvalContext, ObjectKind};
use throng_types::error::state;
use throng_types::range::{RangeType, is_multirange, is_range, multirange_type, range_type};
use throng_types::sqltype::{element_of, made, type_name};
use throng_types::{Datum, EnumValue, Error, Oid, Result, SqlType, Text, oid};

pub use crate::charset::Charset;
pub use crate::format::{
    ByteaOutput, DateFormat, DateOrder, DateStyle, FormatSettings, IntervalStyle,
};
pub use crate::zone::Zone;
pub use binary::{input_binary, output_binary};

/// `invalid input syntax for type integer: "abc"`, 22P02.
#[cold]
pub fn invalid_syntax(ty: Oid, text: &str) -> Error {
    Error::new(
        state::INVALID_TEXT_REPRESENTATION,
        format!(
            "invalid input syntax for type {}: \"{text}\"",
            type_name(ty)
        ),
    )
}

/// `value "99999999999" is out of range for type integer`, 22003.
#[cold]
pub fn out_of_range(ty: Oid, text: &str) -> Error {
    Error::new(
        state::NUMERIC_VALUE_OUT_OF_RANGE,
        format!(
            "value \"{text}\" is out of range for type {}",
            type_name(ty)
        ),
    )
}

/// The catalog object a `reg*` type names.
pub fn object_kind(ty: Oid) -> Option<ObjectKind> {
    Some(match ty {
        oid::REGCLASS => ObjectKind::Class,
        oid::REGTYPE => ObjectKind::Type,
        oid::REGPROC => ObjectKind::Procedure,
        oid::REGPROCEDURE => ObjectKind::ProcedureWithArguments,
        oid::REGOPER => ObjectKind::Operator,
        oid::REGOPERATOR => ObjectKind::OperatorWithArguments,
        oid::REGNAMESPACE => ObjectKind::Namespace,
        oid::REGROLE => ObjectKind::Role,
        oid::REGCOLLATION => ObjectKind::Collation,
        oid::REGCONFIG => ObjectKind::TextSearchConfiguration,
        oid::REGDICTIONARY => ObjectKind::TextSearchDictionary,
        _ => return None,
    })
}

/// Reads a value of a type, its modifier applied as an assignment would (`varchar(5)` refuses six
/// characters).
pub fn input_text(ctx: &EvalContext<'_>, text: &str, ty: SqlType) -> Result<Datum> {
    if ty.typmod < 0 {
        // As it comes: a copy of what was just written in pieces has to wait for them.
        return input_plain(ctx, text, ty.oid, ty.typmod);
    }
    let datum = input_plain(ctx, text, ty.oid, ty.typmod)?;
    typmod::apply(datum, ty, false)
}

/// As [`input_text`], into the place of the row before: a load's values are written once, where
/// they are to be.
pub fn input_text_into(
    ctx: &EvalContext<'_>,
    text: &str,
    ty: SqlType,
    place: &mut Datum,
) -> Result<()> {
    *place = match ty.oid {
        oid::INT4 => Datum::Int4(scalar::parse_int(text, ty.oid)?),
        oid::INT8 => Datum::Int8(scalar::parse_int(text, ty.oid)?),
        oid::TEXT => Datum::Text(Text::new(text)),
        _ => input_text(ctx, text, ty)?,
    };
    Ok(())
}

fn input_plain(ctx: &EvalContext<'_>, text: &str, ty: Oid, typmod: i32) -> Result<Datum> {
    Ok(match ty {
        oid::INT4 => Datum::Int4(scalar::parse_int(text, ty)?),
        oid::INT8 => Datum::Int8(scalar::parse_int(text, ty)?),
        oid::INT2 => Datum::Int2(scalar::parse_int(text, ty)?),
        oid::TEXT
        | oid::REFCURSOR
        | oid::VARCHAR
        | oid::UNKNOWN
        | oid::CSTRING
        | oid::BPCHAR
        | oid::PG_NODE_TREE => Datum::Text(Text::new(text)),
        oid::ACLITEM => acl::read_item(ctx, text)?,
        oid::NAME => Datum::Text(Text::new(scalar::clip_name(text))),
        oid::BOOL => Datum::Bool(scalar::parse_bool(text)?),
        oid::FLOAT8 => Datum::Float8(scalar::parse_float8(text)?),
        oid::FLOAT4 => Datum::Float4(scalar::parse_float4(text)?),
        oid::NUMERIC => Datum::Numeric(scalar::parse_numeric(text)?),
        oid::BYTEA => scalar::parse_bytea(text)?,
        oid::CHAR => Datum::Char(scalar::parse_char(text)),
        oid::UUID => Datum::Uuid(scalar::parse_uuid(text)?),
        oid::JSON => {
            json::check(text)?;
            Datum::Json(Text::new(text))
        }
        oid::JSONB => Datum::Jsonb(json::parse_jsonb(text)?),
        oid::JSONPATH => Datum::Text(jsonpath::input(text)?),
        oid::OID | oid::XID | oid::CID => Datum::Oid(scalar::parse_oid(text, ty)?),
        oid::XID8 | oid::PG_LSN => scalar::parse_wide(text, ty)?,
        oid::TID => Datum::Tid(scalar::parse_tid(text)?),
        oid::DATE => Datum::Date(datetime::parse_date(ctx, text)?),
        oid::TIME => Datum::Time(datetime::parse_time(ctx, text)?),
        oid::TIMETZ => Datum::TimeTz(datetime::parse_timetz(ctx, text)?),
        oid::TIMESTAMP => Datum::Timestamp(datetime::parse_timestamp(ctx, text)?),
        oid::TIMESTAMPTZ => Datum::TimestampTz(datetime::parse_timestamptz(ctx, text)?),
        oid::INTERVAL => Datum::Interval(datetime::interval::parse(
            text,
            ctx.format.interval_style,
            typmod,
        )?),
        oid::INT2VECTOR | oid::OIDVECTOR => array::parse_vector(ctx, text, ty)?,
        oid::VOID => Datum::VOID,
        _ => {
            if let Some(kind) = object_kind(ty) {
                return parse_object(ctx, text, kind);
            }
            if let Some(base) = base::base_type(ty) {
                return Ok(Datum::base(ty, (base.input)(ctx, text, typmod)?));
            }
            if made::is_enum(ty) {
                return enum_value(ctx, text, ty);
            }
            if made::is_composite(ty) {
                return record::parse(ctx, text, ty);
            }
            if is_range(ty) {
                return Ok(Datum::Range(
                    range::parse(ctx, text, &range_of(ty)?)?.into(),
                ));
            }
            if is_multirange(ty) {
                let multirange = range::parse_multi(ctx, text, &range_of(ty)?)?;
                return Ok(Datum::Multirange(multirange.into()));
            }
            match element_of(ty) {
                Some(element) => array::parse(ctx, text, element)?,
                None => {
                    return Err(Error::new(
                        state::FEATURE_NOT_SUPPORTED,
                        format!("cannot accept a value of type {}", type_name(ty)),
                    ));
                }
            }
        }
    })
}

/// The range type that a type is, or is a multirange of.
fn range_of(ty: Oid) -> Result<RangeType> {
    range_type(ty)
        .or_else(|| multirange_type(ty))
        .ok_or_else(|| Error::internal("a range type that is not there"))
}

/// A value by its label; 22P02 where the type has none such.
pub fn enum_value(ctx: &EvalContext<'_>, label: &str, ty: Oid) -> Result<Datum> {
    let def = ctx.host.user_type(ty);
    match def.and_then(|def| def.place_of(label)) {
        Some(place) => Ok(Datum::Enum(EnumValue { ty, place })),
        None => Err(Error::new(
            state::INVALID_TEXT_REPRESENTATION,
            format!(
                "invalid input value for enum {}: \"{label}\"",
                type_name(ty)
            ),
        )),
    }
}

/// What a value is called. Values outlive no type, so that all have a label.
pub fn enum_label(ctx: &EvalContext<'_>, value: &EnumValue) -> String {
    let def = ctx.host.user_type(value.ty);
    let label = def.as_ref().and_then(|def| def.label_at(value.place));
    label.unwrap_or_default().to_owned()
}

/// `-` stands for no object, but where it is an operator's name.
fn no_object(kind: ObjectKind) -> u8 {
    match kind {
        ObjectKind::Operator | ObjectKind::OperatorWithArguments => b'0',
        _ => b'-',
    }
}

/// A `reg*` value: `-`, a number, or a name the catalog knows.
fn parse_object(ctx: &EvalContext<'_>, text: &str, kind: ObjectKind) -> Result<Datum> {
    if text.as_bytes() == [no_object(kind)] {
        return Ok(Datum::Oid(0));
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(Datum::Oid(scalar::parse_oid(text, oid::OID)?));
    }
    let found = ctx
        .host
        .object_oid(kind, text)
        .map_err(|stop| stop.into_error())?;
    Ok(Datum::Oid(found.0))
}

/// Appends a value's text. NULL appends nothing: the protocol and COPY tell it apart before.
pub fn output_text(ctx: &EvalContext<'_>, value: &Datum, ty: SqlType, out: &mut Vec<u8>) {
    match value {
        Datum::Null | Datum::External(_) => {}
        Datum::Bool(v) => out.push(if *v { b't' } else { b'f' }),
        Datum::Int2(v) => scalar::write_int(i64::from(*v), out),
        Datum::Int4(v) => scalar::write_int(i64::from(*v), out),
        Datum::Int8(v) if ty.oid == oid::PG_LSN => scalar::write_lsn(*v, out),
        Datum::Int8(v) if ty.oid == oid::XID8 => scalar::write_uint(scalar::wide_number(*v), out),
        Datum::Int8(v) => scalar::write_int(*v, out),
        Datum::Float4(v) => scalar::write_float4(*v, ctx.format.extra_float_digits, out),
        Datum::Float8(v) => scalar::write_float8(*v, ctx.format.extra_float_digits, out),
        Datum::Numeric(v) => v.write_text(out),
        Datum::Text(s) | Datum::Json(s) => out.extend_from_slice(s.as_bytes()),
        Datum::Jsonb(v) => v.root().write_text(out),
        Datum::Base(v) => {
            if let Some(base) = base::base_type(v.ty) {
                (base.output)(ctx, &v.bytes, out);
            }
        }
        Datum::Enum(v) => out.extend_from_slice(enum_label(ctx, v).as_bytes()),
        Datum::Bytea(b) => scalar::write_bytea(b, ctx.format.bytea_output, out),
        Datum::Char(c) => scalar::write_char(*c, out),
        Datum::Date(v) => datetime::output::date(*v, ctx.format.date_style, out),
        Datum::Time(v) => datetime::output::time(*v, out),
        Datum::TimeTz(v) => datetime::output::timetz(*v, out),
        Datum::Timestamp(v) => datetime::output::timestamp(*v, ctx.format.date_style, out),
        Datum::TimestampTz(v) => datetime::output::timestamptz(*v, ctx.format, out),
        Datum::Interval(v) => datetime::interval::write(*v, ctx.format.interval_style, out),
        Datum::Uuid(v) => scalar::write_uuid(v, out),
        Datum::Oid(v) => match object_kind(ty.oid) {
            Some(kind) => write_object(ctx, *v, kind, out),
            None => scalar::write_uint(u64::from(*v), out),
        },
        Datum::Tid(v) => out.extend_from_slice(v.to_string().as_bytes()),
        Datum::Array(v) => array::write(ctx, v, ty.oid, out),
        Datum::Range(v) => range::write(ctx, v, out),
        Datum::Multirange(v) => range::write_multi(ctx, v, out),
        Datum::Record(v) => array::write_record(ctx, v, out),
    }
}

fn write_object(ctx: &EvalContext<'_>, object: u32, kind: ObjectKind, out: &mut Vec<u8>) {
    if object == 0 {
        out.push(no_object(kind));
        return;
    }
    match ctx.host.object_name(kind, Oid(object)) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => scalar::write_uint(u64::from(object), out),
    }
}

/// A value's text as a string.
pub fn to_text(ctx: &EvalContext<'_>, value: &Datum, ty: SqlType) -> String {
    let mut out = Vec::new();
    output_text(ctx, value, ty, &mut out);
    // Everything written comes from strings or is ASCII.
    String::from_utf8(out).unwrap_or_default()
}
