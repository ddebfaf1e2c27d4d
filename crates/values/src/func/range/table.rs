//! Functions and casts of ranges, as PostgreSQL's `pg_proc` and `pg_cast` number them.

use super::*;
use crate::func::Function;
use crate::func::cast::{Cast, CastContext};
use throng_types::oid::*;

/// One row a range type: the types; the oids and names of the range's constructors, then those of
/// the multirange's, of which the second is also the cast.
macro_rules! constructors {
    ($($range:ident $multi:ident $subtype:ident $array:ident $name:literal $two:literal $three:literal
        $multi_name:literal $none:literal $one:literal $many:literal;)*) => {
        pub static CONSTRUCTORS: &[Function] = &[$(
            Function::new($two, $name, &[$subtype, $subtype], $range, {
                fn eval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
                    construct(&type_of($range)?, args)
                }
                eval
            }).lenient(),
            Function::new($three, $name, &[$subtype, $subtype, TEXT], $range, {
                fn eval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
                    construct(&type_of($range)?, args)
                }
                eval
            }).lenient(),
            Function::new($none, $multi_name, &[], $multi, {
                fn eval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
                    construct_multi(&type_of($range)?, args)
                }
                eval
            }),
            Function::new($one, $multi_name, &[$range], $multi, multirange),
            Function::new($many, $multi_name, &[$array], $multi, {
                fn eval(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
                    construct_multi(&type_of($range)?, args)
                }
                eval
            }).lenient().variadic($range),
        )*];

        pub static CASTS: &[Cast] = &[
            $(Cast::by($range, $multi, CastContext::Explicit, $one, multirange),)*
        ];
    };
}

constructors! {
    INT4RANGE INT4MULTIRANGE INT4 INT4RANGE_ARRAY "int4range" 3840 3841
        "int4multirange" 4280 4281 4282;
    INT8RANGE INT8MULTIRANGE INT8 INT8RANGE_ARRAY "int8range" 3945 3946
        "int8multirange" 4295 4296 4297;
    NUMRANGE NUMMULTIRANGE NUMERIC NUMRANGE_ARRAY "numrange" 3844 3845
        "nummultirange" 4283 4284 4285;
    DATERANGE DATEMULTIRANGE DATE DATERANGE_ARRAY "daterange" 3941 3942
        "datemultirange" 4292 4293 4294;
    TSRANGE TSMULTIRANGE TIMESTAMP TSRANGE_ARRAY "tsrange" 3933 3934
        "tsmultirange" 4286 4287 4288;
    TSTZRANGE TSTZMULTIRANGE TIMESTAMPTZ TSTZRANGE_ARRAY "tstzrange" 3937 3938
        "tstzmultirange" 4289 4290 4291;
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(3848, "lower", &[ANYRANGE], ANYELEMENT, lower),
    Function::new(4235, "lower", &[ANYMULTIRANGE], ANYELEMENT, lower),
    Function::new(3849, "upper", &[ANYRANGE], ANYELEMENT, upper),
    Function::new(4236, "upper", &[ANYMULTIRANGE], ANYELEMENT, upper),
    Function::new(3850, "isempty", &[ANYRANGE], BOOL, is_empty),
    Function::new(4237, "isempty", &[ANYMULTIRANGE], BOOL, is_empty),
    Function::new(3851, "lower_inc", &[ANYRANGE], BOOL, lower_inc),
    Function::new(4238, "lower_inc", &[ANYMULTIRANGE], BOOL, lower_inc),
    Function::new(3852, "upper_inc", &[ANYRANGE], BOOL, upper_inc),
    Function::new(4239, "upper_inc", &[ANYMULTIRANGE], BOOL, upper_inc),
    Function::new(3853, "lower_inf", &[ANYRANGE], BOOL, lower_inf),
    Function::new(4240, "lower_inf", &[ANYMULTIRANGE], BOOL, lower_inf),
    Function::new(3854, "upper_inf", &[ANYRANGE], BOOL, upper_inf),
    Function::new(4241, "upper_inf", &[ANYMULTIRANGE], BOOL, upper_inf),
    Function::new(
        4057,
        "range_merge",
        &[ANYRANGE, ANYRANGE],
        ANYRANGE,
        range_merge,
    ),
    Function::new(4228, "range_merge", &[ANYMULTIRANGE], ANYRANGE, merged),
    Function::new(4298, "multirange", &[ANYRANGE], ANYMULTIRANGE, multirange),
    Function::new(3870, "range_cmp", &[ANYRANGE, ANYRANGE], INT4, compare),
    Function::new(
        4273,
        "multirange_cmp",
        &[ANYMULTIRANGE, ANYMULTIRANGE],
        INT4,
        compare,
    ),
    Function::new(
        4401,
        "range_intersect_agg_transfn",
        &[ANYRANGE, ANYRANGE],
        ANYRANGE,
        aggregate::intersect_values,
    ),
    Function::new(
        4388,
        "multirange_intersect_agg_transfn",
        &[ANYMULTIRANGE, ANYMULTIRANGE],
        ANYMULTIRANGE,
        aggregate::intersect_values,
    ),
    Function::new(
        3914,
        "int4range_canonical",
        &[INT4RANGE],
        INT4RANGE,
        canonical,
    ),
    Function::new(
        3928,
        "int8range_canonical",
        &[INT8RANGE],
        INT8RANGE,
        canonical,
    ),
    Function::new(
        3915,
        "daterange_canonical",
        &[DATERANGE],
        DATERANGE,
        canonical,
    ),
    Function::new(3922, "int4range_subdiff", &[INT4, INT4], FLOAT8, difference),
    Function::new(3923, "int8range_subdiff", &[INT8, INT8], FLOAT8, difference),
    Function::new(
        3924,
        "numrange_subdiff",
        &[NUMERIC, NUMERIC],
        FLOAT8,
        difference,
    ),
    Function::new(3925, "daterange_subdiff", &[DATE, DATE], FLOAT8, difference),
    Function::new(
        3929,
        "tsrange_subdiff",
        &[TIMESTAMP, TIMESTAMP],
        FLOAT8,
        difference,
    ),
    Function::new(
        3930,
        "tstzrange_subdiff",
        &[TIMESTAMPTZ, TIMESTAMPTZ],
        FLOAT8,
        difference,
    ),
];

pub static SETS: &[Function] = &[Function::set(
    1293,
    "unnest",
    &[ANYMULTIRANGE],
    ANYRANGE,
    unnest,
)];

/// What makes ranges of types that users made. They have no names that a statement could call: the
/// type's name stands for them. Their numbers are above all that catalogs give out, and beside
/// those of [`crate::func::sqljson`].
pub static MADE_RANGE: Function = Function::new(
    0xffff_ff04,
    "range_constructor",
    &[ANY, ANY, ANY, OID],
    ANYRANGE,
    made_range,
)
.lenient();

/// The same for multiranges.
pub static MADE_MULTIRANGE: Function = Function::new(
    0xffff_ff05,
    "multirange_constructor",
    &[ANY, OID],
    ANYMULTIRANGE,
    made_multirange,
);
