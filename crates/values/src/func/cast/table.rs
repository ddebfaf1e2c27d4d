//! PostgreSQL's casts, as `pg_cast` lists them, and their functions under their own names.

use crate::func::Function;
use crate::func::cast::conversion::{
    bool_int4, booltext, bpchar_name, bytea_int2, bytea_int4, bytea_int8, char_text, chartoi4,
    date_timestamp, date_timestamptz, dtof, float_int2, float_int4, float_int8, float4_numeric,
    float8_numeric, ftod, i4tochar, int_bytea, int4_bool, interval_time, numeric_float4,
    numeric_float8, numeric_int2, numeric_int4, numeric_int8, rtrim1, same, text_char, text_name,
    text_regclass, time_interval, time_timetz, timestamp_date, timestamp_time,
    timestamp_timestamptz, timestamptz_date, timestamptz_time, timestamptz_timestamp,
    timestamptz_timetz, timetz_time, to_float4, to_float8, to_int2, to_int4, to_int8, to_numeric,
    to_oid, xid8toxid,
};
use crate::func::cast::{Cast, CastContext};
use crate::func::table::casts;
use throng_types::oid::*;

casts! {
    BOOL INT4 explicit 2558 bool_int4;
    BOOL TEXT assignment 2971 booltext;
    BOOL BPCHAR assignment 2971 booltext;
    BOOL VARCHAR assignment 2971 booltext;
    BYTEA INT8 explicit 6372 bytea_int8;
    BYTEA INT2 explicit 6370 bytea_int2;
    BYTEA INT4 explicit 6371 bytea_int4;
    CHAR INT4 explicit 77 chartoi4;
    CHAR TEXT implicit 946 char_text;
    CHAR BPCHAR assignment 860 char_text;
    CHAR VARCHAR assignment 946 char_text;
    NAME TEXT implicit 406 same;
    NAME BPCHAR assignment 408 same;
    NAME VARCHAR assignment 1401 same;
    INT8 BYTEA explicit 6369 int_bytea;
    INT8 INT2 assignment 714 to_int2;
    INT8 INT4 assignment 480 to_int4;
    INT8 REGPROC implicit 1287 to_oid;
    INT8 OID implicit 1287 to_oid;
    INT8 FLOAT4 implicit 652 to_float4;
    INT8 FLOAT8 implicit 482 to_float8;
    INT8 NUMERIC implicit 1781 to_numeric;
    INT8 REGPROCEDURE implicit 1287 to_oid;
    INT8 REGOPER implicit 1287 to_oid;
    INT8 REGOPERATOR implicit 1287 to_oid;
    INT8 REGCLASS implicit 1287 to_oid;
    INT8 REGTYPE implicit 1287 to_oid;
    INT8 REGNAMESPACE implicit 1287 to_oid;
    INT8 REGROLE implicit 1287 to_oid;
    INT2 BYTEA explicit 6367 int_bytea;
    INT2 INT8 implicit 754 to_int8;
    INT2 INT4 implicit 313 to_int4;
    INT2 REGPROC implicit 313 to_oid;
    INT2 OID implicit 313 to_oid;
    INT2 FLOAT4 implicit 236 to_float4;
    INT2 FLOAT8 implicit 235 to_float8;
    INT2 NUMERIC implicit 1782 to_numeric;
    INT2 REGPROCEDURE implicit 313 to_oid;
    INT2 REGOPER implicit 313 to_oid;
    INT2 REGOPERATOR implicit 313 to_oid;
    INT2 REGCLASS implicit 313 to_oid;
    INT2 REGTYPE implicit 313 to_oid;
    INT2 REGNAMESPACE implicit 313 to_oid;
    INT2 REGROLE implicit 313 to_oid;
    INT4 BOOL explicit 2557 int4_bool;
    INT4 BYTEA explicit 6368 int_bytea;
    INT4 CHAR explicit 78 i4tochar;
    INT4 INT8 implicit 481 to_int8;
    INT4 INT2 assignment 314 to_int2;
    INT4 REGPROC implicit 0 binary;
    INT4 OID implicit 0 binary;
    INT4 FLOAT4 implicit 318 to_float4;
    INT4 FLOAT8 implicit 316 to_float8;
    INT4 NUMERIC implicit 1740 to_numeric;
    INT4 REGPROCEDURE implicit 0 binary;
    INT4 REGOPER implicit 0 binary;
    INT4 REGOPERATOR implicit 0 binary;
    INT4 REGCLASS implicit 0 binary;
    INT4 REGTYPE implicit 0 binary;
    INT4 REGNAMESPACE implicit 0 binary;
    INT4 REGROLE implicit 0 binary;
    REGPROC INT8 assignment 1288 to_int8;
    REGPROC INT4 assignment 0 binary;
    REGPROC OID implicit 0 binary;
    REGPROC REGPROCEDURE implicit 0 binary;
    TEXT CHAR assignment 944 text_char;
    TEXT NAME implicit 407 text_name;
    TEXT BPCHAR implicit 0 binary;
    TEXT VARCHAR implicit 0 binary;
    TEXT REGCLASS implicit 1079 text_regclass;
    OID INT8 assignment 1288 to_int8;
    OID INT4 assignment 0 binary;
    OID REGPROC implicit 0 binary;
    OID REGPROCEDURE implicit 0 binary;
    OID REGOPER implicit 0 binary;
    OID REGOPERATOR implicit 0 binary;
    OID REGCLASS implicit 0 binary;
    OID REGTYPE implicit 0 binary;
    OID REGNAMESPACE implicit 0 binary;
    OID REGROLE implicit 0 binary;
    FLOAT4 INT8 assignment 653 float_int8;
    FLOAT4 INT2 assignment 238 float_int2;
    FLOAT4 INT4 assignment 319 float_int4;
    FLOAT4 FLOAT8 implicit 311 ftod;
    FLOAT4 NUMERIC assignment 1742 float4_numeric;
    FLOAT8 INT8 assignment 483 float_int8;
    FLOAT8 INT2 assignment 237 float_int2;
    FLOAT8 INT4 assignment 317 float_int4;
    FLOAT8 FLOAT4 assignment 312 dtof;
    FLOAT8 NUMERIC assignment 1743 float8_numeric;
    BPCHAR CHAR assignment 944 text_char;
    BPCHAR NAME implicit 409 bpchar_name;
    BPCHAR TEXT implicit 401 rtrim1;
    BPCHAR VARCHAR implicit 401 rtrim1;
    VARCHAR CHAR assignment 944 text_char;
    VARCHAR NAME implicit 1400 text_name;
    VARCHAR TEXT implicit 0 binary;
    VARCHAR BPCHAR implicit 0 binary;
    VARCHAR REGCLASS implicit 1079 text_regclass;
    DATE TIMESTAMP implicit 2024 date_timestamp;
    DATE TIMESTAMPTZ implicit 1174 date_timestamptz;
    TIME INTERVAL implicit 1370 time_interval;
    TIME TIMETZ implicit 2047 time_timetz;
    TIMESTAMP DATE assignment 2029 timestamp_date;
    TIMESTAMP TIME assignment 1316 timestamp_time;
    TIMESTAMP TIMESTAMPTZ implicit 2028 timestamp_timestamptz;
    TIMESTAMPTZ DATE assignment 1178 timestamptz_date;
    TIMESTAMPTZ TIME assignment 2019 timestamptz_time;
    TIMESTAMPTZ TIMESTAMP assignment 2027 timestamptz_timestamp;
    TIMESTAMPTZ TIMETZ assignment 1388 timestamptz_timetz;
    INTERVAL TIME assignment 1419 interval_time;
    TIMETZ TIME assignment 2046 timetz_time;
    NUMERIC INT8 assignment 1779 numeric_int8;
    NUMERIC INT2 assignment 1783 numeric_int2;
    NUMERIC INT4 assignment 1744 numeric_int4;
    NUMERIC FLOAT4 implicit 1745 numeric_float4;
    NUMERIC FLOAT8 implicit 1746 numeric_float8;
    REGPROCEDURE INT8 assignment 1288 to_int8;
    REGPROCEDURE INT4 assignment 0 binary;
    REGPROCEDURE REGPROC implicit 0 binary;
    REGPROCEDURE OID implicit 0 binary;
    REGOPER INT8 assignment 1288 to_int8;
    REGOPER INT4 assignment 0 binary;
    REGOPER OID implicit 0 binary;
    REGOPER REGOPERATOR implicit 0 binary;
    REGOPERATOR INT8 assignment 1288 to_int8;
    REGOPERATOR INT4 assignment 0 binary;
    REGOPERATOR OID implicit 0 binary;
    REGOPERATOR REGOPER implicit 0 binary;
    REGCLASS INT8 assignment 1288 to_int8;
    REGCLASS INT4 assignment 0 binary;
    REGCLASS OID implicit 0 binary;
    REGTYPE INT8 assignment 1288 to_int8;
    REGTYPE INT4 assignment 0 binary;
    REGTYPE OID implicit 0 binary;
    REGNAMESPACE INT8 assignment 1288 to_int8;
    REGNAMESPACE INT4 assignment 0 binary;
    REGNAMESPACE OID implicit 0 binary;
    REGROLE INT8 assignment 1288 to_int8;
    REGROLE INT4 assignment 0 binary;
    REGROLE OID implicit 0 binary;
    XID8 XID explicit 5071 xid8toxid;
}

/// One row a function: oid, name, argument, result, what computes it.
macro_rules! functions {
    ($($oid:literal $name:ident($arg:ident) $ret:ident $eval:ident $(, $change:ident)?;)*) => {
        pub static FUNCTIONS: &[Function] = &[
            $(Function::new($oid, stringify!($name), &[$arg], $ret, $eval)$(.$change())?,)*
        ];
    };
}

functions! {
    2558 int4(BOOL) INT4 bool_int4;
    2971 text(BOOL) TEXT booltext;
    6372 int8(BYTEA) INT8 bytea_int8;
    6370 int2(BYTEA) INT2 bytea_int2;
    6371 int4(BYTEA) INT4 bytea_int4;
    77 int4(CHAR) INT4 chartoi4;
    946 text(CHAR) TEXT char_text;
    860 bpchar(CHAR) BPCHAR char_text;
    406 text(NAME) TEXT same;
    408 bpchar(NAME) BPCHAR same;
    1401 varchar(NAME) VARCHAR same;
    6369 bytea(INT8) BYTEA int_bytea;
    714 int2(INT8) INT2 to_int2;
    480 int4(INT8) INT4 to_int4;
    1287 oid(INT8) OID to_oid;
    652 float4(INT8) FLOAT4 to_float4;
    482 float8(INT8) FLOAT8 to_float8;
    1781 numeric(INT8) NUMERIC to_numeric;
    6367 bytea(INT2) BYTEA int_bytea;
    754 int8(INT2) INT8 to_int8;
    313 int4(INT2) INT4 to_int4;
    236 float4(INT2) FLOAT4 to_float4;
    235 float8(INT2) FLOAT8 to_float8;
    1782 numeric(INT2) NUMERIC to_numeric;
    2557 bool(INT4) BOOL int4_bool;
    6368 bytea(INT4) BYTEA int_bytea;
    78 char(INT4) CHAR i4tochar;
    481 int8(INT4) INT8 to_int8;
    314 int2(INT4) INT2 to_int2;
    318 float4(INT4) FLOAT4 to_float4;
    316 float8(INT4) FLOAT8 to_float8;
    1740 numeric(INT4) NUMERIC to_numeric;
    1288 int8(OID) INT8 to_int8;
    944 char(TEXT) CHAR text_char;
    407 name(TEXT) NAME text_name;
    1079 regclass(TEXT) REGCLASS text_regclass, stable;
    653 int8(FLOAT4) INT8 float_int8;
    238 int2(FLOAT4) INT2 float_int2;
    319 int4(FLOAT4) INT4 float_int4;
    311 float8(FLOAT4) FLOAT8 ftod;
    1742 numeric(FLOAT4) NUMERIC float4_numeric;
    483 int8(FLOAT8) INT8 float_int8;
    237 int2(FLOAT8) INT2 float_int2;
    317 int4(FLOAT8) INT4 float_int4;
    312 float4(FLOAT8) FLOAT4 dtof;
    1743 numeric(FLOAT8) NUMERIC float8_numeric;
    409 name(BPCHAR) NAME bpchar_name;
    401 text(BPCHAR) TEXT rtrim1;
    1400 name(VARCHAR) NAME text_name;
    2024 timestamp(DATE) TIMESTAMP date_timestamp;
    1174 timestamptz(DATE) TIMESTAMPTZ date_timestamptz, stable;
    1370 interval(TIME) INTERVAL time_interval;
    2047 timetz(TIME) TIMETZ time_timetz, stable;
    2029 date(TIMESTAMP) DATE timestamp_date;
    1316 time(TIMESTAMP) TIME timestamp_time;
    2028 timestamptz(TIMESTAMP) TIMESTAMPTZ timestamp_timestamptz, stable;
    1178 date(TIMESTAMPTZ) DATE timestamptz_date, stable;
    2019 time(TIMESTAMPTZ) TIME timestamptz_time, stable;
    2027 timestamp(TIMESTAMPTZ) TIMESTAMP timestamptz_timestamp, stable;
    1388 timetz(TIMESTAMPTZ) TIMETZ timestamptz_timetz, stable;
    1419 time(INTERVAL) TIME interval_time;
    2046 time(TIMETZ) TIME timetz_time;
    1779 int8(NUMERIC) INT8 numeric_int8;
    1783 int2(NUMERIC) INT2 numeric_int2;
    1744 int4(NUMERIC) INT4 numeric_int4;
    1745 float4(NUMERIC) FLOAT4 numeric_float4;
    1746 float8(NUMERIC) FLOAT8 numeric_float8;
    5071 xid(XID8) XID xid8toxid;
}
