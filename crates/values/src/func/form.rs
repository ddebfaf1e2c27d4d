//! The functions that read and write a type's values as text, called by their names: `uuid_in`,
//! `int4out`. What they do is `io`'s; a type's row in `pg_type` names them.

use super::{EvalContext, EvalResult, Function};
use crate::io;
use throng_types::{Datum, Error, SqlType, oid::*};

fn text_of(value: &Datum) -> Result<&str, Error> {
    value
        .as_str()
        .ok_or_else(|| Error::internal("a cstring that is no text"))
}

/// `args`: the text and, where the type has modifiers, its element type and its modifier.
fn read(ctx: &EvalContext<'_>, args: &[Datum], ty: throng_types::Oid) -> EvalResult {
    let ty = match args.get(2) {
        Some(Datum::Int4(typmod)) => SqlType {
            oid: ty,
            typmod: *typmod,
        },
        _ => SqlType::plain(ty),
    };
    Ok(io::input_text(ctx, text_of(&args[0])?, ty)?)
}

fn write(ctx: &EvalContext<'_>, args: &[Datum], ty: throng_types::Oid) -> EvalResult {
    let mut text = Vec::new();
    io::output_text(ctx, &args[0], SqlType::plain(ty), &mut text);
    let text = String::from_utf8(text).map_err(|_| Error::internal("text output is not UTF-8"))?;
    Ok(Datum::from(text))
}

macro_rules! forms {
    ($($ty:ident $args:tt: $input:literal $in_name:literal $in_how:ident,
       $output:literal $out_name:literal $out_how:ident;)*) => {
        pub static FUNCTIONS: &[Function] = &[
            $(
                Function::new($input, $in_name, &$args, $ty, |c, a| read(c, a, $ty)).$in_how(),
                Function::new($output, $out_name, &[$ty], CSTRING, |c, a| write(c, a, $ty))
                    .$out_how(),
            )*
        ];
    };
}

impl Function {
    const fn immutable(self) -> Function {
        self
    }
}

forms! {
    BOOL [CSTRING]: 1242 "boolin" immutable, 1243 "boolout" immutable;
    BYTEA [CSTRING]: 1244 "byteain" immutable, 31 "byteaout" immutable;
    CHAR [CSTRING]: 1245 "charin" immutable, 33 "charout" immutable;
    NAME [CSTRING]: 34 "namein" immutable, 35 "nameout" immutable;
    INT8 [CSTRING]: 460 "int8in" immutable, 461 "int8out" immutable;
    INT2 [CSTRING]: 38 "int2in" immutable, 39 "int2out" immutable;
    INT4 [CSTRING]: 42 "int4in" immutable, 43 "int4out" immutable;
    TEXT [CSTRING]: 46 "textin" immutable, 47 "textout" immutable;
    OID [CSTRING]: 1798 "oidin" immutable, 1799 "oidout" immutable;
    JSON [CSTRING]: 321 "json_in" immutable, 322 "json_out" immutable;
    FLOAT4 [CSTRING]: 200 "float4in" immutable, 201 "float4out" immutable;
    FLOAT8 [CSTRING]: 214 "float8in" immutable, 215 "float8out" immutable;
    BPCHAR [CSTRING, OID, INT4]: 1044 "bpcharin" immutable, 1045 "bpcharout" immutable;
    VARCHAR [CSTRING, OID, INT4]: 1046 "varcharin" immutable, 1047 "varcharout" immutable;
    DATE [CSTRING]: 1084 "date_in" stable, 1085 "date_out" stable;
    TIME [CSTRING, OID, INT4]: 1143 "time_in" stable, 1144 "time_out" immutable;
    TIMESTAMP [CSTRING, OID, INT4]: 1312 "timestamp_in" stable, 1313 "timestamp_out" stable;
    TIMESTAMPTZ [CSTRING, OID, INT4]: 1150 "timestamptz_in" stable, 1151 "timestamptz_out" stable;
    INTERVAL [CSTRING, OID, INT4]: 1160 "interval_in" stable, 1161 "interval_out" immutable;
    TIMETZ [CSTRING, OID, INT4]: 1350 "timetz_in" stable, 1351 "timetz_out" immutable;
    NUMERIC [CSTRING, OID, INT4]: 1701 "numeric_in" immutable, 1702 "numeric_out" immutable;
    UUID [CSTRING]: 2952 "uuid_in" immutable, 2953 "uuid_out" immutable;
    PG_LSN [CSTRING]: 3229 "pg_lsn_in" immutable, 3230 "pg_lsn_out" immutable;
    JSONB [CSTRING]: 3806 "jsonb_in" immutable, 3804 "jsonb_out" immutable;
    JSONPATH [CSTRING]: 4001 "jsonpath_in" immutable, 4003 "jsonpath_out" immutable;
    REGCLASS [CSTRING]: 2218 "regclassin" stable, 2219 "regclassout" stable;
    REGTYPE [CSTRING]: 2220 "regtypein" stable, 2221 "regtypeout" stable;
    REGPROC [CSTRING]: 44 "regprocin" stable, 45 "regprocout" stable;
    REGPROCEDURE [CSTRING]: 2212 "regprocedurein" stable, 2213 "regprocedureout" stable;
    REGROLE [CSTRING]: 4098 "regrolein" stable, 4092 "regroleout" stable;
    REGNAMESPACE [CSTRING]: 4084 "regnamespacein" stable, 4085 "regnamespaceout" stable;
    CSTRING [CSTRING]: 2292 "cstring_in" immutable, 2293 "cstring_out" immutable;
}
