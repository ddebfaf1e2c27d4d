//! What PostgreSQL's catalogs list of `json` and `jsonb`.

use super::super::aggregate::empty;
use super::super::aggregate::joined_combine;
use super::super::aggregate::other::array_combine as items_combine;
use super::super::aggregate::table::{aggregates, undo};
use super::super::cast::{Cast, CastContext};
use super::super::compare::any;
use super::super::{AggKind, Aggregate, Function, Operator, Strategy};
use super::aggregate::*;
use super::{access, build, cast, edit, rows, text};
use throng_types::Oid;
use throng_types::oid::*;

/// One row a function: oid, name, arguments, result, what computes it, and how it differs from a
/// strict and immutable one.
macro_rules! functions {
    ($($oid:literal $name:ident($($arg:ident),*) $ret:ident $module:ident::$eval:ident $(, $change:ident($($given:expr),*))*;)*) => {
        pub static FUNCTIONS: &[Function] = &[
            $(Function::new($oid, stringify!($name), &[$($arg),*], $ret, $module::$eval)$(.$change($($given),*))*,)*
        ];
    };
}

functions! {
    3153 array_to_json(ANYARRAY) JSON build::to_json, stable();
    3154 array_to_json(ANYARRAY, BOOL) JSON build::to_json, stable();
    3949 json_array_element(JSON, INT4) JSON text::array_element;
    3950 json_array_element_text(JSON, INT4) TEXT text::array_element_text;
    3956 json_array_length(JSON) INT4 text::array_length;
    3198 json_build_array(ANY) JSON build::build_array, stable(), lenient(), variadic(ANY);
    3199 json_build_array() JSON build::build_array, stable(), lenient();
    3200 json_build_object(ANY) JSON build::build_object, stable(), lenient(), variadic(ANY);
    3201 json_build_object() JSON build::build_object, stable(), lenient();
    3951 json_extract_path(JSON, TEXT_ARRAY) JSON text::extract_steps, variadic(TEXT);
    3953 json_extract_path_text(JSON, TEXT_ARRAY) TEXT text::extract_steps_text, variadic(TEXT);
    3202 json_object(TEXT_ARRAY) JSON build::object;
    3203 json_object(TEXT_ARRAY, TEXT_ARRAY) JSON build::object;
    3947 json_object_field(JSON, TEXT) JSON text::object_field;
    3948 json_object_field_text(JSON, TEXT) TEXT text::object_field_text;
    3261 json_strip_nulls(JSON, BOOL) JSON text::strip_nulls, defaults(1);
    3968 json_typeof(JSON) TEXT text::type_name;
    3215 jsonb_array_element(JSONB, INT4) JSONB access::array_element;
    3216 jsonb_array_element_text(JSONB, INT4) TEXT access::array_element_text;
    3207 jsonb_array_length(JSONB) INT4 access::array_length;
    3271 jsonb_build_array(ANY) JSONB build::build_array_b, stable(), lenient(), variadic(ANY);
    3272 jsonb_build_array() JSONB build::build_array_b, stable(), lenient();
    3273 jsonb_build_object(ANY) JSONB build::build_object_b, stable(), lenient(), variadic(ANY);
    3274 jsonb_build_object() JSONB build::build_object_b, stable(), lenient();
    4044 jsonb_cmp(JSONB, JSONB) INT4 access::compare;
    3301 jsonb_concat(JSONB, JSONB) JSONB edit::concat;
    4050 jsonb_contained(JSONB, JSONB) BOOL access::contained_value;
    4046 jsonb_contains(JSONB, JSONB) BOOL access::contains_value;
    3302 jsonb_delete(JSONB, TEXT) JSONB edit::delete_key;
    3303 jsonb_delete(JSONB, INT4) JSONB edit::delete_element;
    3343 jsonb_delete(JSONB, TEXT_ARRAY) JSONB edit::delete_keys;
    3304 jsonb_delete_path(JSONB, TEXT_ARRAY) JSONB edit::delete_path;
    4047 jsonb_exists(JSONB, TEXT) BOOL access::exists;
    4049 jsonb_exists_all(JSONB, TEXT_ARRAY) BOOL access::exists_all;
    4048 jsonb_exists_any(JSONB, TEXT_ARRAY) BOOL access::exists_any;
    3217 jsonb_extract_path(JSONB, TEXT_ARRAY) JSONB access::extract_steps, variadic(TEXT);
    3940 jsonb_extract_path_text(JSONB, TEXT_ARRAY) TEXT access::extract_steps_text, variadic(TEXT);
    3579 jsonb_insert(JSONB, TEXT_ARRAY, JSONB, BOOL) JSONB edit::insert, defaults(1);
    3263 jsonb_object(TEXT_ARRAY) JSONB build::object_b;
    3264 jsonb_object(TEXT_ARRAY, TEXT_ARRAY) JSONB build::object_b;
    3478 jsonb_object_field(JSONB, TEXT) JSONB access::object_field;
    3214 jsonb_object_field_text(JSONB, TEXT) TEXT access::object_field_text;
    3306 jsonb_pretty(JSONB) TEXT access::pretty;
    3305 jsonb_set(JSONB, TEXT_ARRAY, JSONB, BOOL) JSONB edit::set, defaults(1);
    5054 jsonb_set_lax(JSONB, TEXT_ARRAY, JSONB, BOOL, TEXT) JSONB edit::set_lax, lenient(), defaults(2);
    3262 jsonb_strip_nulls(JSONB, BOOL) JSONB edit::strip_nulls, defaults(1);
    3210 jsonb_typeof(JSONB) TEXT access::type_name;
    3155 row_to_json(RECORD) JSON build::to_json, stable();
    3156 row_to_json(RECORD, BOOL) JSON build::to_json, stable();
    3176 to_json(ANYELEMENT) JSON build::to_json, stable();
    3787 to_jsonb(ANYELEMENT) JSONB build::to_jsonb, stable();
    3556 bool(JSONB) BOOL cast::to_bool;
    3449 numeric(JSONB) NUMERIC cast::to_numeric;
    3450 int2(JSONB) INT2 cast::to_int2;
    3451 int4(JSONB) INT4 cast::to_int4;
    3452 int8(JSONB) INT8 cast::to_int8;
    3453 float4(JSONB) FLOAT4 cast::to_float4;
    2580 float8(JSONB) FLOAT8 cast::to_float8;
}

const KEY_JSON: &[(&str, Oid)] = &[("key", TEXT), ("value", JSON)];
const KEY_JSONB: &[(&str, Oid)] = &[("key", TEXT), ("value", JSONB)];
const KEY_TEXT: &[(&str, Oid)] = &[("key", TEXT), ("value", TEXT)];

/// Those that return rows.
pub static SETS: &[Function] = &[
    Function::set(3955, "json_array_elements", &[JSON], JSON, rows::elements)
        .columns(&[("value", JSON)]),
    Function::set(
        3969,
        "json_array_elements_text",
        &[JSON],
        TEXT,
        rows::elements_text,
    )
    .columns(&[("value", TEXT)]),
    Function::set(3958, "json_each", &[JSON], RECORD, rows::each).columns(KEY_JSON),
    Function::set(3959, "json_each_text", &[JSON], RECORD, rows::each_text).columns(KEY_TEXT),
    Function::set(3957, "json_object_keys", &[JSON], TEXT, rows::keys),
    Function::set(
        3219,
        "jsonb_array_elements",
        &[JSONB],
        JSONB,
        rows::elements_b,
    )
    .columns(&[("value", JSONB)]),
    Function::set(
        3465,
        "jsonb_array_elements_text",
        &[JSONB],
        TEXT,
        rows::elements_text_b,
    )
    .columns(&[("value", TEXT)]),
    Function::set(3208, "jsonb_each", &[JSONB], RECORD, rows::each_b).columns(KEY_JSONB),
    Function::set(3932, "jsonb_each_text", &[JSONB], RECORD, rows::each_text_b).columns(KEY_TEXT),
    Function::set(3931, "jsonb_object_keys", &[JSONB], TEXT, rows::keys_b),
];

/// One row an operator: oid, name, operands, result, its function's oid and name, what computes it.
macro_rules! operators {
    ($($oid:literal $name:literal $left:ident $right:ident $ret:ident $code:literal $code_name:ident $module:ident::$eval:ident $(, $change:ident($($given:expr),*))*;)*) => {
        pub static OPERATORS: &[Operator] = &[
            $(Operator::new($oid, $name, $left, $right, $ret, ($code, stringify!($code_name)), $module::$eval)$(.$change($($given),*))*,)*
        ];
    };
}

operators! {
    3206 "#>>" JSONB TEXT_ARRAY TEXT 3940 jsonb_extract_path_text access::extract_path_text;
    3211 "->" JSONB TEXT JSONB 3478 jsonb_object_field access::object_field;
    3212 "->" JSONB INT4 JSONB 3215 jsonb_array_element access::array_element;
    3213 "#>" JSONB TEXT_ARRAY JSONB 3217 jsonb_extract_path access::extract_path;
    3240 "=" JSONB JSONB BOOL 4043 jsonb_eq any::eq, related(3240, 3241), orders(Strategy::Equal);
    3241 "<>" JSONB JSONB BOOL 4038 jsonb_ne any::ne, related(3241, 3240);
    3242 "<" JSONB JSONB BOOL 4039 jsonb_lt any::lt, related(3243, 3245), orders(Strategy::Less);
    3243 ">" JSONB JSONB BOOL 4040 jsonb_gt any::gt, related(3242, 3244), orders(Strategy::Greater);
    3244 "<=" JSONB JSONB BOOL 4041 jsonb_le any::le, related(3245, 3243), orders(Strategy::LessEqual);
    3245 ">=" JSONB JSONB BOOL 4042 jsonb_ge any::ge, related(3244, 3242), orders(Strategy::GreaterEqual);
    3246 "@>" JSONB JSONB BOOL 4046 jsonb_contains access::contains_value, related(3250, 0);
    3247 "?" JSONB TEXT BOOL 4047 jsonb_exists access::exists;
    3248 "?|" JSONB TEXT_ARRAY BOOL 4048 jsonb_exists_any access::exists_any;
    3249 "?&" JSONB TEXT_ARRAY BOOL 4049 jsonb_exists_all access::exists_all;
    3250 "<@" JSONB JSONB BOOL 4050 jsonb_contained access::contained_value, related(3246, 0);
    3284 "||" JSONB JSONB JSONB 3301 jsonb_concat edit::concat;
    3285 "-" JSONB TEXT JSONB 3302 jsonb_delete edit::delete_key;
    3286 "-" JSONB INT4 JSONB 3303 jsonb_delete edit::delete_element;
    3287 "#-" JSONB TEXT_ARRAY JSONB 3304 jsonb_delete_path edit::delete_path;
    3398 "-" JSONB TEXT_ARRAY JSONB 3343 jsonb_delete edit::delete_keys;
    3477 "->>" JSONB TEXT TEXT 3214 jsonb_object_field_text access::object_field_text;
    3481 "->>" JSONB INT4 TEXT 3216 jsonb_array_element_text access::array_element_text;
    3962 "->" JSON TEXT JSON 3947 json_object_field text::object_field;
    3963 "->>" JSON TEXT TEXT 3948 json_object_field_text text::object_field_text;
    3964 "->" JSON INT4 JSON 3949 json_array_element text::array_element;
    3965 "->>" JSON INT4 TEXT 3950 json_array_element_text text::array_element_text;
    3966 "#>" JSON TEXT_ARRAY JSON 3951 json_extract_path text::extract_path;
    3967 "#>>" JSON TEXT_ARRAY TEXT 3953 json_extract_path_text text::extract_path_text;
}

pub static CASTS: &[Cast] = &[
    Cast::through_text(JSON, JSONB, CastContext::Assignment, cast::json_to_jsonb),
    Cast::through_text(JSONB, JSON, CastContext::Assignment, cast::jsonb_to_json),
    Cast::by(JSONB, BOOL, CastContext::Explicit, 3556, cast::to_bool),
    Cast::by(
        JSONB,
        NUMERIC,
        CastContext::Explicit,
        3449,
        cast::to_numeric,
    ),
    Cast::by(JSONB, INT2, CastContext::Explicit, 3450, cast::to_int2),
    Cast::by(JSONB, INT4, CastContext::Explicit, 3451, cast::to_int4),
    Cast::by(JSONB, INT8, CastContext::Explicit, 3452, cast::to_int8),
    Cast::by(JSONB, FLOAT4, CastContext::Explicit, 3453, cast::to_float4),
    Cast::by(JSONB, FLOAT8, CastContext::Explicit, 2580, cast::to_float8),
];

aggregates! {
    3175 json_agg(ANYELEMENT) JSON empty array_step joined_combine array_finish;
    6276 json_agg_strict(ANYELEMENT) JSON empty array_step_strict joined_combine array_finish;
    3197 json_object_agg(ANY, ANY) JSON empty object_step joined_combine object_finish;
    6280 json_object_agg_strict(ANY, ANY) JSON empty object_step_strict joined_combine object_finish;
    6281 json_object_agg_unique(ANY, ANY) JSON empty object_unique_step items_combine object_unique_finish;
    6282 json_object_agg_unique_strict(ANY, ANY) JSON empty object_unique_step items_combine object_unique_finish_strict;
    6289 jsonb_object_agg_unique(ANY, ANY) JSONB empty object_b_step items_combine object_b_unique_finish;
    6290 jsonb_object_agg_unique_strict(ANY, ANY) JSONB empty object_b_step items_combine object_b_unique_finish_strict;
    3267 jsonb_agg(ANYELEMENT) JSONB empty array_b_step items_combine array_b_finish;
    6284 jsonb_agg_strict(ANYELEMENT) JSONB empty array_b_step_strict items_combine array_b_finish;
    3270 jsonb_object_agg(ANY, ANY) JSONB empty object_b_step items_combine object_b_finish;
    6288 jsonb_object_agg_strict(ANY, ANY) JSONB empty object_b_step_strict items_combine object_b_finish;
}
