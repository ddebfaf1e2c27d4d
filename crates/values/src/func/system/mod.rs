//! The session, the server and the catalog, asked by functions.
//!
//! What needs more than the session's own state goes through
//! [`EvalHost::system_function`](super::EvalHost::system_function) by the function's name in
//! `pg_proc`; overloads differ in the kinds of their arguments. Descriptions of those functions are
//! a table of their own.

pub(super) mod acl;
pub(super) mod catalog_name;
pub mod current;
pub(super) mod lsn;
pub(super) mod object;
pub(super) mod table;

use super::number::int;
use super::{EvalContext, EvalResult, EvalStop, Function, ObjectKind, SetIterator};
use crate::io::{self, Charset, scalar::wide, typmod};
use crate::settings::flags;
use std::sync::Arc;
use throng_types::error::state;
use throng_types::sqltype::{element_of, format_type as type_text, made, type_by_name};
use throng_types::{Array, Datum, Error, Oid, Record, SqlType, oid::*};

fn text(value: &Datum) -> &str {
    value.as_str().unwrap_or_default()
}
fn class(value: &Datum) -> Oid {
    Oid(int(value) as u32)
}

/// What a sequence keeps, as a row of [`SEQUENCE_COLUMNS`]. It has no name that a statement could
/// call; its number is above all that catalogs give out, and beside
/// [`super::aggregate::transition::TRANSITION`]'s.
pub static SEQUENCE: Function = Function::new(
    0xffff_ff04,
    "sequence_row",
    &[REGCLASS],
    RECORD,
    sequence_row,
)
.volatile();

/// The columns of a sequence that is read as a table.
pub const SEQUENCE_COLUMNS: [(&str, Oid); 3] =
    [("last_value", INT8), ("log_cnt", INT8), ("is_called", BOOL)];

fn sequence_row(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    ctx.host.system_function("sequence_row", args)
}

fn nextval(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(ctx.host.nextval(class(&args[0]))?.into())
}
/// What an identity column is given, whoever writes the row: its sequence is nobody's to grant.
pub static NEXT_OF_IDENTITY: Function =
    Function::new(1574, "nextval", &[REGCLASS], INT8, next_of_identity).volatile();

fn next_of_identity(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(ctx.host.next_of_identity(class(&args[0]))?.into())
}
fn currval(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(ctx.host.currval(class(&args[0]))?.into())
}
fn lastval(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.lastval()?.into())
}
fn setval(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let is_called = args.get(2).is_none_or(Datum::is_true);
    Ok(ctx
        .host
        .setval(class(&args[0]), int(&args[1]), is_called)?
        .into())
}

fn current_user(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.current_user().into())
}
fn session_user(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.session_user().into())
}
fn current_database(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.current_database().into())
}
fn current_schema(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.current_schemas(false).into_iter().next().into())
}
fn current_schemas(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let schemas = ctx.host.current_schemas(args[0].is_true());
    Ok(Datum::array(Array::from_items(
        NAME,
        schemas.into_iter().map(Datum::from).collect(),
    )))
}
/// Memory is not asked for by node.
fn numa_available(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::Bool(false))
}
fn backend_pid(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.backend_pid().into())
}

fn current_setting(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let name = text(&args[0]);
    ctx.host.may_examine(name)?;
    match ctx.host.show_setting(name) {
        Some(value) => Ok(value.into()),
        None if args.get(1).is_some_and(Datum::is_true) => Ok(Datum::Null),
        None => Err(Error::new(
            state::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{name}\""),
        )
        .into()),
    }
}
/// What PostgreSQL says of how a setting is treated; NULL where there is no such setting.
fn setting_flags(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    /// One that nobody declared.
    const CUSTOM: &str = "NOT_IN_SAMPLE";
    let name = text(&args[0]);
    if ctx.host.show_setting(name).is_none() {
        return Ok(Datum::Null);
    }
    let flags = match name.contains('.') {
        true => vec![CUSTOM],
        false => flags::flags(name),
    };
    let items = flags.into_iter().map(Datum::from).collect();
    Ok(Datum::array(Array::from_items(TEXT, items)))
}
fn set_config(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if args[0].is_null() {
        return Err(
            Error::new(state::NULL_VALUE_NOT_ALLOWED, "SET requires parameter name").into(),
        );
    }
    Ok(ctx
        .host
        .set_setting(text(&args[0]), args[1].as_str(), args[2].is_true())?
        .into())
}
fn transaction_id(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.transaction_id(true)?.map(|id| id as i64).into())
}
fn full_transaction_id(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.transaction_id(true)?.map_or(Datum::Null, wide))
}
fn full_transaction_id_if_assigned(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.transaction_id(false)?.map_or(Datum::Null, wide))
}
fn transaction_id_if_assigned(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.transaction_id(false)?.map(|id| id as i64).into())
}
/// A server that answers has recovered.
fn is_in_recovery(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(false.into())
}

/// The type a value shows of itself. Where the type is known when the statement is bound, binding
/// writes that one instead.
fn pg_typeof(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(args[0].natural_type().into())
}

fn format_type(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let oid = class(&args[0]);
    if made::is_made(oid) {
        let name = ctx.host.object_name(ObjectKind::Type, oid);
        let name = name.unwrap_or_else(|| "???".into());
        return Ok(match args[1] {
            Datum::Int4(typmod @ 0..) if made::is_base(oid) => format!("{name}({typmod})").into(),
            _ => name.into(),
        });
    }
    // Without a modifier, these are spelled so that reading them back gives no length either.
    match args[1] {
        Datum::Int4(typmod) if oid == BPCHAR && typmod < 0 => Ok("bpchar".into()),
        Datum::Int4(typmod) if oid == BIT && typmod < 0 => Ok("\"bit\"".into()),
        Datum::Int4(typmod) => Ok(type_text(SqlType::new(oid, typmod)).into()),
        _ => Ok(type_text(SqlType::plain(oid)).into()),
    }
}

/// Reads text as a value of the type named, length and all.
fn input_of(
    ctx: &EvalContext<'_>,
    args: &[Datum],
) -> Result<throng_types::Result<Datum>, EvalStop> {
    let name = text(&args[1]);
    let written = ctx.host.parse_type(name)?;
    let foreign = written.schema.is_some_and(|s| s != "pg_catalog");
    let ty = match type_by_name(&written.name).filter(|_| !foreign && !written.is_array) {
        Some(info) => SqlType::new(
            info.oid,
            typmod::from_written(info.oid, &written.modifiers)?,
        ),
        None => SqlType::plain(ctx.host.object_oid(ObjectKind::Type, name)?),
    };
    if made::is_domain(element_of(ty.oid).unwrap_or(ty.oid)) {
        return Err(throng_types::Error::unsupported("asking this of a domain").into());
    }
    Ok(io::input_text(ctx, text(&args[0]), ty))
}

fn input_is_valid(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(input_of(ctx, args)?.is_ok().into())
}

/// A message with the names of types made by users.
fn named(ctx: &EvalContext<'_>, text: &str) -> String {
    let name = |ty| ctx.host.object_name(ObjectKind::Type, ty);
    made::spelled(text, name).unwrap_or_else(|| text.to_owned())
}

/// What reading it says, in parts; NULLs where it reads.
fn input_error_info(ctx: &EvalContext<'_>, args: &[Datum]) -> Result<SetIterator, EvalStop> {
    let values = match input_of(ctx, args)? {
        Ok(_) => vec![Datum::Null; 4],
        Err(e) => {
            let fields = e.fields();
            vec![
                named(ctx, &fields.message).into(),
                fields.detail.as_deref().map(|d| named(ctx, d)).into(),
                fields.hint.clone().into(),
                fields.code.as_str().into(),
            ]
        }
    };
    let record = Arc::new(Record {
        types: vec![TEXT; values.len()].into(),
        names: None,
        values,
    });
    Ok(Box::new(std::iter::once(Ok(Datum::Record(record)))))
}

fn encoding_to_char(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let charset = Charset::numbered(int(&args[0]));
    Ok(charset.map_or("", Charset::name).into())
}
fn char_to_encoding(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let charset = Charset::named(text(&args[0]));
    Ok(charset.map_or(-1, Charset::number).into())
}
fn encoding_max_length(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let charset = Charset::numbered(int(&args[0]));
    Ok(charset.map(Charset::longest).into())
}
fn client_encoding(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.show_setting("client_encoding").into())
}
fn database_encoding(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.show_setting("server_encoding").into())
}

/// The tablespaces there are lie in the data directory, and so have no place of their own.
fn tablespace_location(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    /// The database's own, `pg_default` and `pg_global`.
    const BUILT_IN: [u32; 3] = [0, 1663, 1664];
    match args[0] {
        Datum::Oid(oid) if BUILT_IN.contains(&oid) => Ok("".into()),
        _ => ctx.host.system_function("pg_tablespace_location", args),
    }
}
fn sleep_for(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let span = super::datetime::interval(&args[0]);
    let seconds = span.comparable() as f64 / 1e6;
    ctx.host
        .system_function("pg_sleep", &[Datum::Float8(seconds)])
}

/// A name looked up as a `reg*` type would, NULL where there is no such object.
fn look_up(ctx: &EvalContext<'_>, args: &[Datum], kind: ObjectKind) -> EvalResult {
    match ctx.host.object_oid(kind, text(&args[0])) {
        Ok(oid) => Ok(oid.into()),
        // That there is none is an answer; that one may not ask is none.
        Err(EvalStop::Error(e)) if e.code() != state::INSUFFICIENT_PRIVILEGE => Ok(Datum::Null),
        Err(stop) => Err(stop),
    }
}
macro_rules! look_ups {
    ($($name:ident: $kind:ident;)*) => { $(
        fn $name(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            look_up(ctx, args, ObjectKind::$kind)
        }
    )* };
}
look_ups! {
    to_regclass: Class;
    to_regtype: Type;
    to_regproc: Procedure;
    to_regprocedure: ProcedureWithArguments;
    to_regoper: Operator;
    to_regoperator: OperatorWithArguments;
    to_regnamespace: Namespace;
    to_regrole: Role;
    to_regcollation: Collation;
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(1574, "nextval", &[REGCLASS], INT8, nextval).volatile(),
    Function::new(1575, "currval", &[REGCLASS], INT8, currval).volatile(),
    Function::new(2559, "lastval", &[], INT8, lastval).volatile(),
    Function::new(1576, "setval", &[REGCLASS, INT8], INT8, setval).volatile(),
    Function::new(1765, "setval", &[REGCLASS, INT8, BOOL], INT8, setval).volatile(),
    Function::new(1619, "pg_typeof", &[ANY], REGTYPE, pg_typeof)
        .stable()
        .lenient(),
    Function::new(2026, "pg_backend_pid", &[], INT4, backend_pid).stable(),
    Function::new(4099, "pg_numa_available", &[], BOOL, numa_available).stable(),
    Function::new(745, "current_user", &[], NAME, current_user).stable(),
    Function::new(746, "session_user", &[], NAME, session_user).stable(),
    Function::new(861, "current_database", &[], NAME, current_database).stable(),
    Function::new(1402, "current_schema", &[], NAME, current_schema).stable(),
    Function::new(
        1403,
        "current_schemas",
        &[BOOL],
        NAME_ARRAY,
        current_schemas,
    )
    .stable(),
    Function::new(2077, "current_setting", &[TEXT], TEXT, current_setting).stable(),
    Function::new(
        3294,
        "current_setting",
        &[TEXT, BOOL],
        TEXT,
        current_setting,
    )
    .stable(),
    Function::new(2078, "set_config", &[TEXT, TEXT, BOOL], TEXT, set_config)
        .volatile()
        .lenient(),
    Function::new(
        6240,
        "pg_settings_get_flags",
        &[TEXT],
        TEXT_ARRAY,
        setting_flags,
    )
    .stable(),
    Function::new(2943, "txid_current", &[], INT8, transaction_id).stable(),
    Function::new(
        3348,
        "txid_current_if_assigned",
        &[],
        INT8,
        transaction_id_if_assigned,
    )
    .stable(),
    Function::new(5059, "pg_current_xact_id", &[], XID8, full_transaction_id).stable(),
    Function::new(
        5060,
        "pg_current_xact_id_if_assigned",
        &[],
        XID8,
        full_transaction_id_if_assigned,
    )
    .stable(),
    Function::new(3810, "pg_is_in_recovery", &[], BOOL, is_in_recovery).volatile(),
    Function::new(1081, "format_type", &[OID, INT4], TEXT, format_type)
        .stable()
        .lenient(),
    Function::new(810, "pg_client_encoding", &[], NAME, client_encoding).stable(),
    Function::new(1039, "getdatabaseencoding", &[], NAME, database_encoding).stable(),
    Function::new(1597, "pg_encoding_to_char", &[INT4], NAME, encoding_to_char).stable(),
    Function::new(1264, "pg_char_to_encoding", &[NAME], INT4, char_to_encoding).stable(),
    Function::new(
        2319,
        "pg_encoding_max_length",
        &[INT4],
        INT4,
        encoding_max_length,
    ),
    Function::new(3495, "to_regclass", &[TEXT], REGCLASS, to_regclass).stable(),
    Function::new(3493, "to_regtype", &[TEXT], REGTYPE, to_regtype).stable(),
    Function::new(3494, "to_regproc", &[TEXT], REGPROC, to_regproc).stable(),
    Function::new(
        3479,
        "to_regprocedure",
        &[TEXT],
        REGPROCEDURE,
        to_regprocedure,
    )
    .stable(),
    Function::new(3492, "to_regoper", &[TEXT], REGOPER, to_regoper).stable(),
    Function::new(3476, "to_regoperator", &[TEXT], REGOPERATOR, to_regoperator).stable(),
    Function::new(
        4086,
        "to_regnamespace",
        &[TEXT],
        REGNAMESPACE,
        to_regnamespace,
    )
    .stable(),
    Function::new(4093, "to_regrole", &[TEXT], REGROLE, to_regrole).stable(),
    Function::new(
        4195,
        "to_regcollation",
        &[TEXT],
        REGCOLLATION,
        to_regcollation,
    )
    .stable(),
    Function::new(
        6210,
        "pg_input_is_valid",
        &[TEXT, TEXT],
        BOOL,
        input_is_valid,
    )
    .stable(),
    Function::set(
        6211,
        "pg_input_error_info",
        &[TEXT, TEXT],
        RECORD,
        input_error_info,
    )
    .columns(&[
        ("message", TEXT),
        ("detail", TEXT),
        ("hint", TEXT),
        ("sql_error_code", TEXT),
    ]),
    Function::new(
        3778,
        "pg_tablespace_location",
        &[OID],
        TEXT,
        tablespace_location,
    )
    .stable(),
    Function::new(3935, "pg_sleep_for", &[INTERVAL], VOID, sleep_for).volatile(),
];
