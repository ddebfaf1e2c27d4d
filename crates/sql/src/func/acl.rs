//! What `pg_dump` asks beside the catalogs: default privileges, options as rows, a sequence's state.

use super::array::array;
use super::number::int;
use super::{EvalContext, EvalResult, EvalStop, Function, ObjectKind, SetIterator};
use std::sync::Arc;
use throng_types::error::state;
use throng_types::{Array, Datum, Error, Oid, Record, Text, oid::*};

/// What PUBLIC and what the owner may do with an object of a kind that nobody has granted anything on.
fn default_privileges(kind: u8) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        b'c' => ("", ""),
        b'r' => ("", "arwdDxtm"),
        b's' => ("", "rwU"),
        b'd' => ("Tc", "CTc"),
        b'f' => ("X", "X"),
        b'l' => ("U", "U"),
        b'L' => ("", "rw"),
        b'n' => ("", "UC"),
        b't' => ("", "C"),
        b'F' | b'S' => ("", "U"),
        b'T' => ("U", "U"),
        b'p' => ("", "sA"),
        _ => return None,
    })
}

fn acldefault(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::Char(kind) = args[0] else {
        return Err(Error::internal("acldefault takes a \"char\"").into());
    };
    let Some((public, owner)) = default_privileges(kind) else {
        let message = format!(
            "unrecognized object type abbreviation: {}",
            char::from(kind)
        );
        return Err(Error::internal(message).into());
    };
    let role = Oid(int(&args[1]) as u32);
    let name = ctx
        .host
        .object_name(ObjectKind::Role, role)
        .unwrap_or_else(|| role.0.to_string());
    let granted = [("", public), (name.as_str(), owner)];
    let items = granted
        .iter()
        .filter(|(_, privileges)| !privileges.is_empty())
        .map(|(grantee, privileges)| format!("{grantee}={privileges}/{name}").into())
        .collect();
    Ok(Datum::array(Array::from_items(ACLITEM, items)))
}

/// `name=value` items as rows.
fn options_to_table(_: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let options = Arc::clone(array(&args[0]));
    let types: Arc<[Oid]> = [TEXT, TEXT].into();
    let names: Arc<[Text]> = ["option_name".into(), "option_value".into()].into();
    Ok(Box::new((0..options.items.len()).map(move |i| {
        let Some(option) = options.items[i].as_str() else {
            let message = "null array element not allowed in this context";
            return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message).into());
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, value.into()),
            None => (option, Datum::Null),
        };
        Ok(Datum::Record(Arc::new(Record {
            types: Arc::clone(&types),
            names: Some(Arc::clone(&names)),
            values: vec![name.into(), value],
        })))
    })))
}

fn get_sequence_data(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    ctx.host.system_function("pg_get_sequence_data", args)
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(3943, "acldefault", &[CHAR, OID], ACLITEM_ARRAY, acldefault).stable(),
    Function::set(
        2289,
        "pg_options_to_table",
        &[TEXT_ARRAY],
        RECORD,
        options_to_table,
    )
    .stable()
    .columns(&[("option_name", TEXT), ("option_value", TEXT)]),
    Function::new(
        6427,
        "pg_get_sequence_data",
        &[REGCLASS],
        RECORD,
        get_sequence_data,
    )
    .volatile()
    .columns(&[("last_value", INT8), ("is_called", BOOL)]),
];
