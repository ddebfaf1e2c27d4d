//! Functions over objects that a catalog and a number name, over indexes' properties, and over what
//! values take to be kept.

use throng_types::error::state;
use throng_types::row::{Phys, RowLayout, encode_row};
use throng_types::sqltype::type_info;
use throng_types::{Datum, Error, oid::*};

use crate::func::{EvalContext, EvalResult, EvalStop, Function, ObjectKind};
use crate::io::typmod;

/// Each handed to the host by its name.
macro_rules! asked {
    ($($name:ident)*) => { $(
        fn $name(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            ctx.host.system_function(stringify!($name), args)
        }
    )* };
}
asked! {
    pg_describe_object
    pg_identify_object
    pg_identify_object_as_address
    pg_get_object_address
    pg_get_acl
    pg_basetype
    pg_filenode_relation
    gin_clean_pending_list
    pg_index_has_property
    pg_indexam_has_property
    pg_index_column_has_property
    row_security_active
}

/// The bytes that a value takes in a row.
fn column_size(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    /// What a row begins with.
    const HEAD: usize = 2;
    let ty = args[0].natural_type();
    let Some(phys) = Phys::of(ty) else {
        return match type_info(ty).filter(|info| info.len > 0) {
            Some(info) => Ok(i32::from(info.len).into()),
            None => Err(Error::unsupported("the size of such a value").into()),
        };
    };
    let mut row = Vec::new();
    encode_row(&RowLayout::new(&[phys]), args, &mut row)?;
    Ok(i32::try_from(row.len() - HEAD).unwrap_or(i32::MAX).into())
}

/// Values are kept as they are.
fn column_compression(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    Ok(Datum::Null)
}

/// The modifier that a type's name says; NULL where there is no such type.
fn to_regtypemod(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let name = args[0].as_str().unwrap_or_default();
    if name.trim().is_empty() {
        return Ok(Datum::Null);
    }
    let written = ctx.host.parse_type(name)?;
    match ctx.host.object_oid(ObjectKind::Type, name) {
        Ok(ty) => {
            let item = type_info(ty).filter(|info| info.is_array());
            let item = item.map_or(ty, |info| info.element);
            Ok(typmod::from_written(item, &written.modifiers)?.into())
        }
        Err(EvalStop::Error(e)) if e.code() != state::INSUFFICIENT_PRIVILEGE => Ok(Datum::Null),
        Err(stop) => Err(stop),
    }
}

/// `has_…_privilege` of a kind of object: by a role's name or number, an object's name or number,
/// and the privileges.
macro_rules! privileges {
    ($table:ident $name:ident: $($oid:literal($($arg:ident),*)),*) => {
        fn $name(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            ctx.host.system_function(stringify!($name), args)
        }
        pub static $table: &[Function] = &[
            $(Function::new($oid, stringify!($name), &[$($arg),*], BOOL, $name).stable(),)*
        ];
    };
}
privileges! { SERVERS has_server_privilege:
    3006(NAME, TEXT, TEXT), 3007(NAME, OID, TEXT), 3008(OID, TEXT, TEXT), 3009(OID, OID, TEXT),
    3010(TEXT, TEXT), 3011(OID, TEXT)
}
privileges! { WRAPPERS has_foreign_data_wrapper_privilege:
    3000(NAME, TEXT, TEXT), 3001(NAME, OID, TEXT), 3002(OID, TEXT, TEXT), 3003(OID, OID, TEXT),
    3004(TEXT, TEXT), 3005(OID, TEXT)
}
privileges! { PARAMETERS has_parameter_privilege:
    6205(NAME, TEXT, TEXT), 6206(OID, TEXT, TEXT), 6207(TEXT, TEXT)
}

/// One row a function: oid, name, arguments, result, what computes it. All are stable that do not
/// say otherwise.
macro_rules! functions {
    ($($oid:literal $name:literal($($arg:ident),*) $ret:ident $eval:ident
        $(columns [$($column:ident: $ty:ident),*])? $(is $own:ident)?;)*) => {
        pub static FUNCTIONS: &[Function] = &[$(
            Function::new($oid, $name, &[$($arg),*], $ret, $eval)
                .stable()
                $(.columns(&[$((stringify!($column), $ty)),*]))?
                $(.$own())?,
        )*];
    };
}
functions! {
    3537 "pg_describe_object"(OID, OID, INT4) TEXT pg_describe_object;
    3839 "pg_identify_object"(OID, OID, INT4) RECORD pg_identify_object
        columns [type: TEXT, schema: TEXT, name: TEXT, identity: TEXT];
    3382 "pg_identify_object_as_address"(OID, OID, INT4) RECORD pg_identify_object_as_address
        columns [type: TEXT, object_names: TEXT_ARRAY, object_args: TEXT_ARRAY];
    3954 "pg_get_object_address"(TEXT, TEXT_ARRAY, TEXT_ARRAY) RECORD pg_get_object_address
        columns [classid: OID, objid: OID, objsubid: INT4];
    6385 "pg_get_acl"(OID, OID, INT4) ACLITEM_ARRAY pg_get_acl;
    6315 "pg_basetype"(REGTYPE) REGTYPE pg_basetype;
    3454 "pg_filenode_relation"(OID, OID) REGCLASS pg_filenode_relation;
    3789 "gin_clean_pending_list"(REGCLASS) INT8 gin_clean_pending_list is volatile;
    637 "pg_index_has_property"(REGCLASS, TEXT) BOOL pg_index_has_property;
    638 "pg_index_column_has_property"(REGCLASS, INT4, TEXT) BOOL pg_index_column_has_property;
    636 "pg_indexam_has_property"(OID, TEXT) BOOL pg_indexam_has_property;
    1269 "pg_column_size"(ANY) INT4 column_size;
    2121 "pg_column_compression"(ANY) TEXT column_compression;
    6317 "to_regtypemod"(TEXT) INT4 to_regtypemod;
    3298 "row_security_active"(OID) BOOL row_security_active;
    3299 "row_security_active"(TEXT) BOOL row_security_active;
}
