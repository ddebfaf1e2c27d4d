//! Functions over names and numbers of the catalogs that ask nothing of the session: keywords,
//! lists of types, hashes.

use crate::func::number::int;
use crate::func::{EvalContext, EvalResult, EvalStop, Function, ObjectKind, SetIterator};
use crate::hash;
use std::sync::Arc;
use throng_types::error::state;
use throng_types::lexical::{Category, KEYWORDS};
use throng_types::sqltype::{format_type, made};
use throng_types::{Datum, Error, Oid, Record, SqlType, oid::*};

/// The longest name, in bytes.
const LONGEST_NAME: usize = 63;

/// `pg_get_keywords.catcode` and `catdesc`.
fn described(category: Category) -> (u8, &'static str) {
    match category {
        Category::Unreserved => (b'U', "unreserved"),
        Category::ColumnName => (b'C', "unreserved (cannot be function or type name)"),
        Category::TypeOrFunction => (b'T', "reserved (can be function or type name)"),
        Category::Reserved => (b'R', "reserved"),
    }
}

fn keywords(_: &EvalContext<'_>, _: &[Datum]) -> Result<SetIterator, EvalStop> {
    let row = |(word, category, bare): &(&'static str, Category, bool)| -> EvalResult {
        let (code, description) = described(*category);
        let label = match bare {
            true => "can be bare label",
            false => "requires AS",
        };
        Ok(Datum::Record(Arc::new(Record {
            types: [TEXT, CHAR, BOOL, TEXT, TEXT].into(),
            names: None,
            values: vec![
                (*word).into(),
                Datum::Char(code),
                (*bare).into(),
                description.into(),
                label.into(),
            ],
        })))
    };
    Ok(Box::new(KEYWORDS.iter().map(row)))
}

/// The names of types, as an argument list shows them.
fn vector_types(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let Datum::Array(types) = &args[0] else {
        return Ok(Datum::Null);
    };
    let shown = |item: &Datum| {
        let ty = Oid(int(item) as u32);
        match made::is_made(ty) {
            true => ctx
                .host
                .object_name(ObjectKind::Type, ty)
                .unwrap_or_else(|| "???".into()),
            false => format_type(SqlType::plain(ty)),
        }
    };
    let shown: Vec<String> = types.items.iter().map(shown).collect();
    Ok(shown.join(", ").into())
}

/// `name_oid`, the name cut so that the whole is a name.
fn name_with_oid(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let name = args[0].as_str().unwrap_or_default();
    let suffix = format!("_{}", int(&args[1]) as u32);
    let mut end = name.len().min(LONGEST_NAME - suffix.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    Ok(format!("{}{suffix}", &name[..end]).into())
}

fn user_name(ctx: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(ctx.host.current_user().into())
}

/// Types are not renamed by their collation's library here: its version is not kept.
fn no_version(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::Null)
}

/// How many transactions began since the one with this id; of no transaction's id the most there
/// is.
fn xid_age(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    const FIRST_NORMAL: u32 = 3;
    let id = int(&args[0]) as u32;
    if id < FIRST_NORMAL {
        return Ok(i32::MAX.into());
    }
    let next = int(&ctx.host.system_function("next_xid", &[])?) as u32;
    Ok((next.wrapping_sub(id) as i32).into())
}

/// There are no multixacts: the first one is still to come.
fn multixact_age(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    const NEXT: u32 = 1;
    Ok(match int(&args[0]) as u32 {
        0 => i32::MAX.into(),
        id => (NEXT.wrapping_sub(id) as i32).into(),
    })
}

fn hash_text(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let text = args[0].as_str().unwrap_or_default();
    Ok((hash::hash_any(text.as_bytes()) as i32).into())
}
fn hash_text_extended(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let text = args[0].as_str().unwrap_or_default();
    let seed = int(&args[1]) as u64;
    Ok((hash::hash_any_extended(text.as_bytes(), seed) as i64).into())
}
fn hash_int(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let word = hash::folded(int(&args[0]));
    Ok((hash::hash_any(&word.to_le_bytes()) as i32).into())
}
fn hash_int_extended(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let word = hash::folded(int(&args[0]));
    let seed = int(&args[1]) as u64;
    Ok((hash::hash_any_extended(&word.to_le_bytes(), seed) as i64).into())
}

#[cold]
fn not_recovering() -> EvalStop {
    Error::new(
        state::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "recovery is not in progress",
    )
    .hint("Recovery control functions can only be executed during recovery.")
    .into()
}
/// A server that answers has recovered: there is nothing to pause or to end.
fn of_recovery(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Err(not_recovering())
}
/// Nothing was received or replayed since the server started.
fn not_replayed(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::Null)
}

pub static FUNCTIONS: &[Function] = &[
    Function::set(1686, "pg_get_keywords", &[], RECORD, keywords)
        .stable()
        .columns(&[
            ("word", TEXT),
            ("catcode", CHAR),
            ("barelabel", BOOL),
            ("catdesc", TEXT),
            ("baredesc", TEXT),
        ]),
    Function::new(1349, "oidvectortypes", &[OIDVECTOR], TEXT, vector_types).stable(),
    Function::new(266, "nameconcatoid", &[NAME, OID], NAME, name_with_oid),
    Function::new(710, "getpgusername", &[], NAME, user_name).stable(),
    Function::new(
        3448,
        "pg_collation_actual_version",
        &[OID],
        TEXT,
        no_version,
    )
    .volatile(),
    Function::new(
        6249,
        "pg_database_collation_actual_version",
        &[OID],
        TEXT,
        no_version,
    )
    .volatile(),
    Function::new(1181, "age", &[XID], INT4, xid_age).stable(),
    Function::new(3939, "mxid_age", &[XID], INT4, multixact_age).stable(),
    Function::new(400, "hashtext", &[TEXT], INT4, hash_text),
    Function::new(
        448,
        "hashtextextended",
        &[TEXT, INT8],
        INT8,
        hash_text_extended,
    ),
    Function::new(449, "hashint2", &[INT2], INT4, hash_int),
    Function::new(450, "hashint4", &[INT4], INT4, hash_int),
    Function::new(949, "hashint8", &[INT8], INT4, hash_int),
    Function::new(
        441,
        "hashint2extended",
        &[INT2, INT8],
        INT8,
        hash_int_extended,
    ),
    Function::new(
        425,
        "hashint4extended",
        &[INT4, INT8],
        INT8,
        hash_int_extended,
    ),
    Function::new(
        442,
        "hashint8extended",
        &[INT8, INT8],
        INT8,
        hash_int_extended,
    ),
    Function::new(3820, "pg_last_wal_receive_lsn", &[], PG_LSN, not_replayed).volatile(),
    Function::new(3821, "pg_last_wal_replay_lsn", &[], PG_LSN, not_replayed).volatile(),
    Function::new(
        3830,
        "pg_last_xact_replay_timestamp",
        &[],
        TIMESTAMPTZ,
        not_replayed,
    )
    .volatile(),
    Function::new(3071, "pg_wal_replay_pause", &[], VOID, of_recovery).volatile(),
    Function::new(3072, "pg_wal_replay_resume", &[], VOID, of_recovery).volatile(),
    Function::new(3073, "pg_is_wal_replay_paused", &[], BOOL, of_recovery).volatile(),
    Function::new(
        1137,
        "pg_get_wal_replay_pause_state",
        &[],
        TEXT,
        of_recovery,
    )
    .volatile(),
    Function::new(3436, "pg_promote", &[BOOL, INT4], BOOL, of_recovery)
        .volatile()
        .defaults(2),
];
