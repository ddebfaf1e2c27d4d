//! Conversions between character sets.

use throng_types::error::state;
use throng_types::{Datum, Error, Result, oid::*};

use crate::func::string::bytes::bytes;
use crate::func::string::text;
use crate::func::{EvalContext, EvalResult, Function};
use crate::io::Charset;

fn source(name: &str) -> Result<Charset> {
    named(name, "source")
}

fn destination(name: &str) -> Result<Charset> {
    named(name, "destination")
}

fn named(name: &str, which: &str) -> Result<Charset> {
    Charset::named(name).ok_or_else(|| {
        let message = format!("invalid {which} encoding name \"{name}\"");
        Error::new(state::INVALID_PARAMETER_VALUE, message)
    })
}

/// 42883 between character sets that PostgreSQL does not convert between.
fn have_conversion(from: Charset, to: Charset) -> Result<()> {
    /// Each of a group is converted to each other of it, without UTF-8 between them.
    const GROUPS: [&[&str]; 4] = [
        &["KOI8R", "WIN1251", "WIN866", "ISO_8859_5"],
        &["EUC_JP", "SJIS"],
        &["EUC_TW", "BIG5"],
        &["LATIN2", "WIN1250"],
    ];
    let both = |group: &&[&str]| group.contains(&from.name()) && group.contains(&to.name());
    let known = from == Charset::UTF8 || to == Charset::UTF8 || GROUPS.iter().any(both);
    if known && from.name() != "MULE_INTERNAL" && to.name() != "MULE_INTERNAL" {
        return Ok(());
    }
    let (from, to) = (from.name(), to.name());
    let message =
        format!("default conversion function for encoding \"{from}\" to \"{to}\" does not exist");
    Err(Error::new(state::UNDEFINED_FUNCTION, message))
}

fn converted(bytes: &[u8], from: Charset, to: Charset) -> Result<Vec<u8>> {
    if from == to || to == Charset::SQL_ASCII {
        if from != Charset::SQL_ASCII {
            from.decode(bytes)?;
        }
        return Ok(bytes.to_vec());
    }
    if from == Charset::SQL_ASCII {
        to.decode(bytes)?;
        return Ok(bytes.to_vec());
    }
    have_conversion(from, to)?;
    let mut out = Vec::with_capacity(bytes.len());
    to.encode(&from.decode(bytes)?, &mut out)?;
    Ok(out)
}

fn convert_from(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let from = source(text(&args[1]))?;
    if !from.is_plain() {
        have_conversion(from, Charset::UTF8)?;
    }
    Ok(from.decode(bytes(&args[0]))?.into_owned().into())
}

fn convert_to(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let to = destination(text(&args[1]))?;
    let out = converted(text(&args[0]).as_bytes(), Charset::UTF8, to)?;
    Ok(Datum::bytea(out))
}

fn convert(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (from, to) = (source(text(&args[1]))?, destination(text(&args[2]))?);
    Ok(Datum::bytea(converted(bytes(&args[0]), from, to)?))
}

fn length(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let name = text(&args[1]);
    let charset = Charset::named(name).ok_or_else(|| {
        let message = format!("invalid encoding name \"{name}\"");
        Error::new(state::INVALID_PARAMETER_VALUE, message)
    })?;
    let bytes = bytes(&args[0]);
    let count = match charset {
        Charset::SQL_ASCII => bytes.len(),
        charset => charset.decode(bytes)?.chars().count(),
    };
    Ok(Datum::Int4(count as i32))
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(1714, "convert_from", &[BYTEA, NAME], TEXT, convert_from).stable(),
    Function::new(1717, "convert_to", &[TEXT, NAME], BYTEA, convert_to).stable(),
    Function::new(1813, "convert", &[BYTEA, NAME, NAME], BYTEA, convert).stable(),
    Function::new(1713, "length", &[BYTEA, NAME], INT4, length).stable(),
];
