//! The binary forms of libpq's protocol: big endian, one per type.

use super::base::{base_type, described};
use super::object_kind;
use crate::eval::EvalContext;
use std::borrow::Cow;
use throng_types::calendar::{MICROS_PER_DAY, date_in_range, timestamp_in_range};
use throng_types::datum::Dim;
use throng_types::error::state;
use throng_types::numeric::{Groups, WireSign};
use throng_types::sqltype::{element_of, made, type_name};
use throng_types::{
    Array, Datum, Error, Interval, Numeric, Oid, Record, Result, SqlType, Text, Tid, TimeTz, oid,
};

/// What a `jsonb` value's text comes after.
const JSONB_VERSION: u8 = 1;
/// The same of a `jsonpath`.
const JSONPATH_VERSION: u8 = 1;

/// Appends a value's binary form, without a length. NULL appends nothing.
pub fn output_binary(
    ctx: &EvalContext<'_>,
    value: &Datum,
    ty: SqlType,
    out: &mut Vec<u8>,
) -> Result<()> {
    match value {
        Datum::Int8(v) if matches!(ty.oid, oid::PG_LSN | oid::XID8) => {
            out.extend_from_slice(&super::scalar::wide_number(*v).to_be_bytes());
        }
        Datum::Null => {}
        Datum::Bool(v) => out.push((*v).into()),
        Datum::Int2(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Int4(v) | Datum::Date(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => {
            out.extend_from_slice(&v.to_be_bytes());
        }
        Datum::Float4(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Float8(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Numeric(v) => {
            let groups = v.to_groups();
            out.extend_from_slice(&(groups.digits.len() as u16).to_be_bytes());
            out.extend_from_slice(&groups.weight.to_be_bytes());
            out.extend_from_slice(&(groups.sign as u16).to_be_bytes());
            out.extend_from_slice(&groups.scale.to_be_bytes());
            for digit in groups.digits {
                out.extend_from_slice(&digit.to_be_bytes());
            }
        }
        Datum::Text(v) | Datum::Json(v) => {
            if ty.oid == oid::JSONPATH {
                out.push(JSONPATH_VERSION);
            }
            ctx.format.charset.encode(v, out)?;
        }
        Datum::Enum(v) => ctx.format.charset.encode(&super::enum_label(ctx, v), out)?,
        Datum::Jsonb(v) => {
            out.push(JSONB_VERSION);
            let start = out.len();
            v.root().write_text(out);
            ctx.format.charset.encode_from(start, out)?;
        }
        Datum::Base(v) => (described(v.ty)?.send)(ctx, &v.bytes, out)?,
        Datum::Bytea(v) => out.extend_from_slice(v),
        Datum::Char(v) => out.push(*v),
        Datum::TimeTz(v) => {
            out.extend_from_slice(&v.micros.to_be_bytes());
            out.extend_from_slice(&v.zone.to_be_bytes());
        }
        Datum::Interval(v) => {
            out.extend_from_slice(&v.micros.to_be_bytes());
            out.extend_from_slice(&v.days.to_be_bytes());
            out.extend_from_slice(&v.months.to_be_bytes());
        }
        Datum::Uuid(v) => out.extend_from_slice(v),
        Datum::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Tid(v) => {
            out.extend_from_slice(&v.block.to_be_bytes());
            out.extend_from_slice(&v.slot.to_be_bytes());
        }
        Datum::Array(v) => write_array(ctx, v, out)?,
        Datum::Range(v) => super::range::send(ctx, v, out)?,
        Datum::Multirange(v) => super::range::send_multi(ctx, v, out)?,
        Datum::Record(v) => {
            out.extend_from_slice(&(v.values.len() as i32).to_be_bytes());
            for (value, field) in v.values.iter().zip(v.types.iter()) {
                out.extend_from_slice(&field.0.to_be_bytes());
                write_sized(ctx, value, SqlType::plain(*field), out)?;
            }
        }
        Datum::External(_) => {
            return Err(Error::internal(format_args!(
                "a stored value of type {} was not fetched",
                type_name(ty.oid)
            )));
        }
    }
    Ok(())
}

/// A length, -1 for NULL, and the value.
pub(super) fn write_sized(
    ctx: &EvalContext<'_>,
    value: &Datum,
    ty: SqlType,
    out: &mut Vec<u8>,
) -> Result<()> {
    if value.is_null() {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    output_binary(ctx, value, ty, out)?;
    let len = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&len.to_be_bytes());
    Ok(())
}

fn write_array(ctx: &EvalContext<'_>, array: &Array, out: &mut Vec<u8>) -> Result<()> {
    let nulls = array.items.iter().any(Datum::is_null);
    out.extend_from_slice(&(array.dims.len() as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(nulls).to_be_bytes());
    out.extend_from_slice(&array.element.0.to_be_bytes());
    for dim in &array.dims {
        out.extend_from_slice(&dim.len.to_be_bytes());
        out.extend_from_slice(&dim.lower.to_be_bytes());
    }
    for item in &array.items {
        write_sized(ctx, item, SqlType::plain(array.element), out)?;
    }
    Ok(())
}

/// Reads bytes from the front; running out is `insufficient data left in message`.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or_else(too_short)?;
        self.0 = rest;
        Ok(*head)
    }
    pub(super) fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        if n > self.0.len() {
            return Err(too_short());
        }
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        Ok(head)
    }
    /// All that is left.
    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
    /// All that is left, in the client's encoding.
    fn text(&mut self, ctx: &EvalContext<'_>) -> Result<Cow<'a, str>> {
        ctx.format.charset.decode(self.rest())
    }
    pub(super) fn i32(&mut self) -> Result<i32> {
        self.take().map(i32::from_be_bytes)
    }
    pub(super) fn u16(&mut self) -> Result<u16> {
        self.take().map(u16::from_be_bytes)
    }
    fn i64(&mut self) -> Result<i64> {
        self.take().map(i64::from_be_bytes)
    }
    /// That nothing is left.
    pub(super) fn end(&self) -> Result<()> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(invalid("incorrect binary data format")),
        }
    }
}

#[cold]
pub(super) fn too_short() -> Error {
    Error::new(
        state::PROTOCOL_VIOLATION,
        "insufficient data left in message",
    )
}
#[cold]
pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_BINARY_REPRESENTATION, message)
}

/// Reads a value in binary form; its modifier is applied as an assignment would. Errors are 22P03
/// and 08P01.
pub fn input_binary(ctx: &EvalContext<'_>, bytes: &[u8], ty: SqlType) -> Result<Datum> {
    let mut reader = Reader(bytes);
    let datum = read(ctx, &mut reader, ty.oid)?;
    reader.end()?;
    if ty.typmod < 0 {
        Ok(datum)
    } else {
        super::typmod::apply(datum, ty, false)
    }
}

fn read(ctx: &EvalContext<'_>, r: &mut Reader<'_>, ty: Oid) -> Result<Datum> {
    Ok(match ty {
        oid::BOOL => Datum::Bool(r.take::<1>()?[0] != 0),
        oid::INT2 => Datum::Int2(i16::from_be_bytes(r.take()?)),
        oid::INT4 => Datum::Int4(r.i32()?),
        oid::INT8 => Datum::Int8(r.i64()?),
        oid::XID8 | oid::PG_LSN => super::scalar::wide(r.i64()? as u64),
        oid::FLOAT4 => Datum::Float4(f32::from_be_bytes(r.take()?)),
        oid::FLOAT8 => Datum::Float8(f64::from_be_bytes(r.take()?)),
        oid::NUMERIC => Datum::Numeric(read_numeric(r)?),
        oid::TEXT
        | oid::REFCURSOR
        | oid::VARCHAR
        | oid::BPCHAR
        | oid::UNKNOWN
        | oid::CSTRING
        | oid::PG_NODE_TREE
        | oid::ACLITEM => Datum::Text(Text::new(&r.text(ctx)?)),
        oid::NAME => Datum::Text(Text::new(super::scalar::clip_name(&r.text(ctx)?))),
        oid::BYTEA => Datum::bytea(r.rest()),
        oid::JSON => {
            let text = &r.text(ctx)?;
            super::json::check(text)?;
            Datum::Json(Text::new(text))
        }
        oid::JSONB => {
            let [version] = r.take()?;
            if version != JSONB_VERSION {
                let message = format!("unsupported jsonb version number {version}");
                return Err(Error::new(state::INTERNAL_ERROR, message));
            }
            Datum::Jsonb(super::json::parse_jsonb(&r.text(ctx)?)?)
        }
        oid::JSONPATH => {
            let [version] = r.take()?;
            if version != JSONPATH_VERSION {
                let message = format!("unsupported jsonpath version number: {version}");
                return Err(Error::new(state::INTERNAL_ERROR, message));
            }
            let text = &r.text(ctx)?;
            Datum::Text(super::jsonpath::input(text)?)
        }
        oid::CHAR => Datum::Char(r.take::<1>()?[0]),
        oid::UUID => Datum::Uuid(r.take()?),
        oid::OID | oid::XID | oid::CID => Datum::Oid(u32::from_be_bytes(r.take()?)),
        oid::TID => Datum::Tid(Tid::new(u32::from_be_bytes(r.take()?), r.u16()?)),
        oid::DATE => {
            let days = r.i32()?;
            if days != i32::MIN && days != i32::MAX && !date_in_range(days.into()) {
                return Err(Error::new(
                    state::DATETIME_FIELD_OVERFLOW,
                    "date out of range",
                ));
            }
            Datum::Date(days)
        }
        oid::TIME => Datum::Time(read_time(r)?),
        oid::TIMETZ => {
            let micros = read_time(r)?;
            let zone = r.i32()?;
            if zone.abs() >= 16 * 3600 {
                return Err(Error::new(
                    state::INVALID_TIME_ZONE_DISPLACEMENT,
                    "time zone displacement out of range",
                ));
            }
            Datum::TimeTz(TimeTz { micros, zone })
        }
        oid::TIMESTAMP => Datum::Timestamp(read_timestamp(r)?),
        oid::TIMESTAMPTZ => Datum::TimestampTz(read_timestamp(r)?),
        oid::INTERVAL => {
            let micros = r.i64()?;
            let days = r.i32()?;
            Datum::Interval(Interval {
                micros,
                days,
                months: r.i32()?,
            })
        }
        oid::RECORD => read_record(ctx, r)?,
        oid::VOID => Datum::VOID,
        _ if object_kind(ty).is_some() => Datum::Oid(u32::from_be_bytes(r.take()?)),
        _ if made::is_composite(ty) => read_composite(ctx, r, ty)?,
        _ if made::is_domain(ty) => {
            let base = domain_base(ctx, ty)?;
            let mut value = read(ctx, r, base.oid)?;
            if base.typmod >= 0 {
                value = super::typmod::apply(value, base, false)?;
            }
            ctx.host.check_in_domain(ty, &value)?;
            value
        }
        _ if base_type(ty).is_some() => Datum::base(ty, (described(ty)?.receive)(ctx, r.rest())?),
        _ if made::is_enum(ty) => super::enum_value(ctx, &r.text(ctx)?, ty)?,
        _ => match element_of(ty) {
            Some(element) => read_array(ctx, r, element, ty)?,
            None => super::range::receive_any(ctx, r, ty)?,
        },
    })
}

/// What a domain's values are.
fn domain_base(ctx: &EvalContext<'_>, domain: Oid) -> Result<SqlType> {
    let def = ctx.host.user_type(domain);
    let base = def.and_then(|def| def.domain_base());
    base.ok_or_else(|| Error::internal("a domain that is not there"))
}

fn read_numeric(r: &mut Reader<'_>) -> Result<Numeric> {
    let count = r.u16()?;
    let weight = i16::from_be_bytes(r.take()?);
    let sign = WireSign::from_raw(r.u16()?)
        .ok_or_else(|| invalid("invalid sign in external \"numeric\" value"))?;
    let scale = r.u16()?;
    if scale > 0x3fff {
        return Err(invalid("invalid scale in external \"numeric\" value"));
    }
    let mut digits = Vec::with_capacity(count.into());
    for _ in 0..count {
        digits.push(i16::from_be_bytes(r.take()?));
    }
    Numeric::from_groups(&Groups {
        sign,
        weight,
        scale,
        digits,
    })
    .ok_or_else(|| invalid("invalid digit in external \"numeric\" value"))
}

fn read_time(r: &mut Reader<'_>) -> Result<i64> {
    let micros = r.i64()?;
    if (0..=MICROS_PER_DAY).contains(&micros) {
        Ok(micros)
    } else {
        Err(Error::new(
            state::DATETIME_FIELD_OVERFLOW,
            "time out of range",
        ))
    }
}

fn read_timestamp(r: &mut Reader<'_>) -> Result<i64> {
    let micros = r.i64()?;
    if micros == i64::MIN || micros == i64::MAX || timestamp_in_range(micros) {
        Ok(micros)
    } else {
        Err(super::datetime::timestamp_out_of_range())
    }
}

/// A length and a value of that length, or NULL.
pub(super) fn read_sized(
    ctx: &EvalContext<'_>,
    r: &mut Reader<'_>,
    ty: Oid,
    what: &str,
) -> Result<Datum> {
    let len = r.i32()?;
    if len == -1 {
        if made::is_domain(ty) {
            ctx.host.check_in_domain(ty, &Datum::Null)?;
        }
        return Ok(Datum::Null);
    }
    let len = usize::try_from(len).map_err(|_| too_short())?;
    let mut inner = Reader(r.bytes(len)?);
    let datum = read(ctx, &mut inner, ty)?;
    if !inner.0.is_empty() {
        return Err(invalid(format!("improper binary format in {what}")));
    }
    Ok(datum)
}

fn read_array(ctx: &EvalContext<'_>, r: &mut Reader<'_>, element: Oid, ty: Oid) -> Result<Datum> {
    let ndims = r.i32()?;
    if !(0..=6).contains(&ndims) {
        return Err(invalid(format!("invalid number of dimensions: {ndims}")));
    }
    let flags = r.i32()?;
    if !matches!(flags, 0 | 1) {
        return Err(invalid("invalid array flags"));
    }
    let sent = Oid(u32::from_be_bytes(r.take()?));
    if sent != element {
        return Err(Error::new(
            state::DATATYPE_MISMATCH,
            format!(
                "binary data has array element type {} ({}) instead of expected {} ({})",
                sent,
                type_name(sent),
                element,
                type_name(element)
            ),
        ));
    }
    let mut dims = Vec::with_capacity(ndims as usize);
    let mut count = if ndims == 0 { 0i64 } else { 1 };
    for _ in 0..ndims {
        let dim = Dim {
            len: r.i32()?,
            lower: r.i32()?,
        };
        count = count.saturating_mul(i64::from(dim.len.max(0)));
        dims.push(dim);
    }
    // Each item has at least its length word.
    if count > (r.0.len() / 4) as i64 {
        return Err(too_short());
    }
    let mut items = Vec::with_capacity(count as usize);
    for i in 0..count {
        items.push(read_sized(
            ctx,
            r,
            element,
            &format!("array element {}", i + 1),
        )?);
    }
    if items.is_empty() && !matches!(ty, oid::INT2VECTOR | oid::OIDVECTOR) {
        dims.clear();
    }
    let element = match made::is_domain(element) {
        true => domain_base(ctx, element)?.oid,
        false => element,
    };
    Ok(Datum::array(Array {
        element,
        dims,
        items,
    }))
}

/// A record whose columns must be those of the type.
fn read_composite(ctx: &EvalContext<'_>, r: &mut Reader<'_>, ty: Oid) -> Result<Datum> {
    let Some(def) = ctx.host.user_type(ty) else {
        return Err(Error::internal("a composite type that is not there"));
    };
    let Datum::Record(record) = read_record(ctx, r)? else {
        return Err(Error::internal("a record that is none"));
    };
    let fields = def.fields().unwrap_or_default();
    if record.types.len() != fields.len() {
        let message = format!(
            "wrong number of columns: {}, expected {}",
            record.types.len(),
            fields.len()
        );
        return Err(Error::new(state::DATATYPE_MISMATCH, message));
    }
    for (i, (field, ty)) in fields.iter().zip(record.types.iter()).enumerate() {
        if field.declared() != *ty {
            let message = format!(
                "binary data has type {} ({}) instead of expected {} ({}) in record column {}",
                ty.0,
                type_name(*ty),
                field.declared().0,
                type_name(field.declared()),
                i + 1
            );
            return Err(Error::new(state::DATATYPE_MISMATCH, message));
        }
    }
    Ok(Datum::Record(std::sync::Arc::new(Record {
        types: fields.iter().map(|f| f.ty.oid).collect(),
        names: Some(fields.iter().map(|f| Text::new(f.name)).collect()),
        values: record.values.clone(),
    })))
}

fn read_record(ctx: &EvalContext<'_>, r: &mut Reader<'_>) -> Result<Datum> {
    let count = r.i32()?;
    let (mut types, mut values) = (Vec::new(), Vec::new());
    for i in 0..count {
        let ty = Oid(u32::from_be_bytes(r.take()?));
        types.push(ty);
        values.push(read_sized(ctx, r, ty, &format!("record column {}", i + 1))?);
    }
    Ok(Datum::Record(std::sync::Arc::new(Record {
        types: types.into(),
        names: None,
        values,
    })))
}
