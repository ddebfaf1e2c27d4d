//! Lists of grants, and what else `pg_dump` asks beside the catalogs: options as rows, a sequence's
//! state.

use crate::acl::{self, Kind, NamedItem, right, role_name, role_oid};
use crate::func::array::array;
use crate::func::number::int;
use crate::func::{EvalContext, EvalResult, EvalStop, Function, Operator, SetIterator};
use std::sync::Arc;
use throng_types::error::state;
use throng_types::{Array, Datum, Error, Oid, Record, Text, oid::*};

/// The rest of `acldefault`'s kinds, which nothing here is of: what the owner may do.
fn other_defaults(kind: u8) -> Option<u32> {
    Some(match kind {
        b'L' => right::SELECT | right::UPDATE,
        b't' => right::CREATE,
        b'F' | b'S' => right::USAGE,
        b'p' => right::SET | right::ALTER_SYSTEM,
        _ => return None,
    })
}

fn acldefault(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::Char(letter) = args[0] else {
        return Err(Error::internal("acldefault takes a \"char\"").into());
    };
    let role = Oid(int(&args[1]) as u32);
    let name = role_name(ctx, role);
    let item = |grantee: &str, rights: u32| NamedItem {
        grantee: grantee.to_owned(),
        rights,
        grantor: Some(name.clone()),
    };
    let items: Vec<Datum> = match (Kind::of_letter(letter), other_defaults(letter)) {
        (Some(kind), _) => {
            let (public, own) = kind.defaults();
            let items = [(String::new(), public), (name.clone(), own)];
            let items = items.into_iter().filter(|(_, rights)| *rights != 0);
            items
                .map(|(who, rights)| item(&who, rights).text().into())
                .collect()
        }
        (None, Some(rights)) => vec![item(&name, rights).text().into()],
        (None, None) => {
            let message = format!(
                "unrecognized object type abbreviation: {}",
                char::from(letter)
            );
            return Err(Error::new(state::INTERNAL_ERROR, message).into());
        }
    };
    Ok(Datum::array(Array::from_items(ACLITEM, items)))
}

/// Each right of each item as a row.
fn aclexplode(ctx: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let types: Arc<[Oid]> = [OID, OID, TEXT, BOOL].into();
    let names: Arc<[Text]> = ["grantor", "grantee", "privilege_type", "is_grantable"]
        .map(Text::new)
        .into();
    let mut rows = Vec::new();
    for item in acl::items_of(array(&args[0]))? {
        let oid = |name: &str| match name {
            "" => Ok(Oid::NONE),
            name => role_oid(ctx, name).or_else(|e| name.parse().map(Oid).map_err(|_| e)),
        };
        let grantee = oid(&item.grantee)?;
        let grantor = oid(item.grantor.as_deref().unwrap_or_default())?;
        // In the order of the bits.
        let mut rights = right::NAMES;
        rights.sort_by_key(|(.., bit)| *bit);
        for (name, _, bit) in rights {
            if item.rights & bit == 0 {
                continue;
            }
            rows.push(Datum::Record(Arc::new(Record {
                types: Arc::clone(&types),
                names: Some(Arc::clone(&names)),
                values: vec![
                    Datum::Oid(grantor.0),
                    Datum::Oid(grantee.0),
                    name.into(),
                    (item.rights & right::options(bit) != 0).into(),
                ],
            })));
        }
    }
    Ok(Box::new(rows.into_iter().map(Ok)))
}

fn makeaclitem(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let list = args[2].as_str().unwrap_or_default();
    let bits = right::list(list).map_err(|wrong| {
        let message = format!("unrecognized privilege type: \"{wrong}\"");
        Error::new(state::INVALID_PARAMETER_VALUE, message)
    })?;
    let mut rights = bits.into_iter().fold(0, |sum, bit| sum | bit);
    if args[3] == Datum::Bool(true) {
        rights |= right::options(rights);
    }
    let item = NamedItem {
        grantee: role_name(ctx, Oid(int(&args[0]) as u32)),
        rights,
        grantor: Some(role_name(ctx, Oid(int(&args[1]) as u32))),
    };
    Ok(item.text().into())
}

/// Whether an array has an item of the same roles with at least these rights.
fn aclcontains(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let wanted = NamedItem::parse(args[1].as_str().unwrap_or_default())?;
    let found = acl::items_of(array(&args[0]))?.into_iter().any(|item| {
        (&item.grantee, &item.grantor) == (&wanted.grantee, &wanted.grantor)
            && wanted.rights & !item.rights == 0
    });
    Ok(found.into())
}

fn aclitemeq(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((args[0] == args[1]).into())
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

fn sequence_parameters(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    ctx.host.system_function("pg_sequence_parameters", args)
}

fn create_physical_slot(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    ctx.host
        .system_function("pg_create_physical_replication_slot", args)
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(
        3779,
        "pg_create_physical_replication_slot",
        &[NAME, BOOL, BOOL],
        RECORD,
        create_physical_slot,
    )
    .volatile()
    .defaults(2)
    .columns(&[("slot_name", NAME), ("lsn", PG_LSN)]),
    Function::new(
        3078,
        "pg_sequence_parameters",
        &[OID],
        RECORD,
        sequence_parameters,
    )
    .stable()
    .columns(&[
        ("start_value", INT8),
        ("minimum_value", INT8),
        ("maximum_value", INT8),
        ("increment", INT8),
        ("cycle_option", BOOL),
        ("cache_size", INT8),
        ("data_type", OID),
    ]),
    Function::new(1062, "aclitemeq", &[ACLITEM, ACLITEM], BOOL, aclitemeq),
    Function::new(
        1037,
        "aclcontains",
        &[ACLITEM_ARRAY, ACLITEM],
        BOOL,
        aclcontains,
    )
    .stable(),
    Function::new(
        1365,
        "makeaclitem",
        &[OID, OID, TEXT, BOOL],
        ACLITEM,
        makeaclitem,
    )
    .stable(),
    Function::set(1689, "aclexplode", &[ACLITEM_ARRAY], RECORD, aclexplode)
        .stable()
        .columns(&[
            ("grantor", OID),
            ("grantee", OID),
            ("privilege_type", TEXT),
            ("is_grantable", BOOL),
        ]),
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

pub static OPERATORS: &[Operator] = &[
    Operator::new(
        974,
        "=",
        ACLITEM,
        ACLITEM,
        BOOL,
        (1062, "aclitemeq"),
        aclitemeq,
    )
    .related(974, 0),
    Operator::new(
        968,
        "@>",
        ACLITEM_ARRAY,
        ACLITEM,
        BOOL,
        (1037, "aclcontains"),
        aclcontains,
    ),
];
