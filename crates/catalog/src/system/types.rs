//! Types: `pg_type`, `pg_collation`, and the input and output functions types have.

use throng_types::range::{is_multirange, is_range};
use throng_types::sqltype::{TypeInfo, all_types, delimiter, made, part_of, type_info};
use throng_types::{Datum, Oid, oid};

use super::{Rows, SystemState, row};
use crate::{Catalog, builtin};

/// The functions that read and write a type's values: text in and out, binary in and out, modifier
/// in and out. 0 where there is none.
pub(super) struct Forms {
    pub ty: Oid,
    pub functions: [(u32, &'static str); 6],
}

macro_rules! forms {
    ($($ty:literal: $($oid:literal $name:ident),*;)*) => {
        pub(super) static FORMS: &[Forms] = &[
            $(Forms { ty: Oid($ty), functions: six(&[$(($oid, stringify!($name))),*]) },)*
        ];
    };
}

/// Filled up with none.
const fn six(given: &[(u32, &'static str)]) -> [(u32, &'static str); 6] {
    let mut functions = [(0, ""); 6];
    let mut i = 0;
    while i < given.len() {
        functions[i] = given[i];
        i += 1;
    }
    functions
}

forms! {
    16: 1242 boolin, 1243 boolout, 2436 boolrecv, 2437 boolsend;
    17: 1244 byteain, 31 byteaout, 2412 bytearecv, 2413 byteasend;
    18: 1245 charin, 33 charout, 2434 charrecv, 2435 charsend;
    19: 34 namein, 35 nameout, 2422 namerecv, 2423 namesend;
    20: 460 int8in, 461 int8out, 2408 int8recv, 2409 int8send;
    21: 38 int2in, 39 int2out, 2404 int2recv, 2405 int2send;
    22: 40 int2vectorin, 41 int2vectorout, 2410 int2vectorrecv, 2411 int2vectorsend;
    23: 42 int4in, 43 int4out, 2406 int4recv, 2407 int4send;
    24: 44 regprocin, 45 regprocout, 2444 regprocrecv, 2445 regprocsend;
    25: 46 textin, 47 textout, 2414 textrecv, 2415 textsend;
    26: 1798 oidin, 1799 oidout, 2418 oidrecv, 2419 oidsend;
    27: 48 tidin, 49 tidout, 2438 tidrecv, 2439 tidsend;
    28: 50 xidin, 51 xidout, 2440 xidrecv, 2441 xidsend;
    29: 52 cidin, 53 cidout, 2442 cidrecv, 2443 cidsend;
    30: 54 oidvectorin, 55 oidvectorout, 2420 oidvectorrecv, 2421 oidvectorsend;
    114: 321 json_in, 322 json_out, 323 json_recv, 324 json_send;
    142: 2893 xml_in, 2894 xml_out, 2898 xml_recv, 2899 xml_send;
    194: 195 pg_node_tree_in, 196 pg_node_tree_out, 197 pg_node_tree_recv, 198 pg_node_tree_send;
    600: 117 point_in, 118 point_out, 2428 point_recv, 2429 point_send;
    601: 119 lseg_in, 120 lseg_out, 2480 lseg_recv, 2481 lseg_send;
    602: 121 path_in, 122 path_out, 2482 path_recv, 2483 path_send;
    603: 123 box_in, 124 box_out, 2484 box_recv, 2485 box_send;
    604: 347 poly_in, 348 poly_out, 2486 poly_recv, 2487 poly_send;
    628: 1490 line_in, 1491 line_out, 2488 line_recv, 2489 line_send;
    650: 1267 cidr_in, 1427 cidr_out, 2498 cidr_recv, 2499 cidr_send;
    700: 200 float4in, 201 float4out, 2424 float4recv, 2425 float4send;
    701: 214 float8in, 215 float8out, 2426 float8recv, 2427 float8send;
    705: 109 unknownin, 110 unknownout, 2416 unknownrecv, 2417 unknownsend;
    718: 1450 circle_in, 1451 circle_out, 2490 circle_recv, 2491 circle_send;
    774: 4110 macaddr8_in, 4111 macaddr8_out, 3446 macaddr8_recv, 3447 macaddr8_send;
    790: 886 cash_in, 887 cash_out, 2492 cash_recv, 2493 cash_send;
    829: 436 macaddr_in, 437 macaddr_out, 2494 macaddr_recv, 2495 macaddr_send;
    869: 910 inet_in, 911 inet_out, 2496 inet_recv, 2497 inet_send;
    1033: 1031 aclitemin, 1032 aclitemout;
    1042: 1044 bpcharin, 1045 bpcharout, 2430 bpcharrecv, 2431 bpcharsend,
        2913 bpchartypmodin, 2914 bpchartypmodout;
    1043: 1046 varcharin, 1047 varcharout, 2432 varcharrecv, 2433 varcharsend,
        2915 varchartypmodin, 2916 varchartypmodout;
    1082: 1084 date_in, 1085 date_out, 2468 date_recv, 2469 date_send;
    1083: 1143 time_in, 1144 time_out, 2470 time_recv, 2471 time_send,
        2909 timetypmodin, 2910 timetypmodout;
    1114: 1312 timestamp_in, 1313 timestamp_out, 2474 timestamp_recv, 2475 timestamp_send,
        2905 timestamptypmodin, 2906 timestamptypmodout;
    1184: 1150 timestamptz_in, 1151 timestamptz_out, 2476 timestamptz_recv, 2477 timestamptz_send,
        2907 timestamptztypmodin, 2908 timestamptztypmodout;
    1186: 1160 interval_in, 1161 interval_out, 2478 interval_recv, 2479 interval_send,
        2903 intervaltypmodin, 2904 intervaltypmodout;
    1266: 1350 timetz_in, 1351 timetz_out, 2472 timetz_recv, 2473 timetz_send,
        2911 timetztypmodin, 2912 timetztypmodout;
    1560: 1564 bit_in, 1565 bit_out, 2456 bit_recv, 2457 bit_send, 2919 bittypmodin,
        2920 bittypmodout;
    1562: 1579 varbit_in, 1580 varbit_out, 2458 varbit_recv, 2459 varbit_send,
        2902 varbittypmodin, 2921 varbittypmodout;
    1700: 1701 numeric_in, 1702 numeric_out, 2460 numeric_recv, 2461 numeric_send,
        2917 numerictypmodin, 2918 numerictypmodout;
    2202: 2212 regprocedurein, 2213 regprocedureout, 2446 regprocedurerecv, 2447 regproceduresend;
    2203: 2214 regoperin, 2215 regoperout, 2448 regoperrecv, 2449 regopersend;
    2204: 2216 regoperatorin, 2217 regoperatorout, 2450 regoperatorrecv, 2451 regoperatorsend;
    2205: 2218 regclassin, 2219 regclassout, 2452 regclassrecv, 2453 regclasssend;
    2206: 2220 regtypein, 2221 regtypeout, 2454 regtyperecv, 2455 regtypesend;
    2249: 2290 record_in, 2291 record_out, 2402 record_recv, 2403 record_send;
    2275: 2292 cstring_in, 2293 cstring_out, 2500 cstring_recv, 2501 cstring_send;
    2276: 2294 any_in, 2295 any_out;
    2277: 2296 anyarray_in, 2297 anyarray_out, 2502 anyarray_recv, 2503 anyarray_send;
    2278: 2298 void_in, 2299 void_out, 3120 void_recv, 3121 void_send;
    2279: 2300 trigger_in, 2301 trigger_out;
    2280: 2302 language_handler_in, 2303 language_handler_out;
    2281: 2304 internal_in, 2305 internal_out;
    2283: 2312 anyelement_in, 2313 anyelement_out;
    2776: 2777 anynonarray_in, 2778 anynonarray_out;
    2950: 2952 uuid_in, 2953 uuid_out, 2961 uuid_recv, 2962 uuid_send;
    2970: 2939 txid_snapshot_in, 2940 txid_snapshot_out, 2941 txid_snapshot_recv,
        2942 txid_snapshot_send;
    3220: 3229 pg_lsn_in, 3230 pg_lsn_out, 3238 pg_lsn_recv, 3239 pg_lsn_send;
    3802: 3806 jsonb_in, 3804 jsonb_out, 3805 jsonb_recv, 3803 jsonb_send;
    4072: 4001 jsonpath_in, 4003 jsonpath_out, 4002 jsonpath_recv, 4004 jsonpath_send;
    3500: 3504 anyenum_in, 3505 anyenum_out;
    4089: 4084 regnamespacein, 4085 regnamespaceout, 4087 regnamespacerecv, 4088 regnamespacesend;
    4096: 4098 regrolein, 4092 regroleout, 4094 regrolerecv, 4095 regrolesend;
    3614: 3610 tsvectorin, 3611 tsvectorout, 3639 tsvectorrecv, 3638 tsvectorsend;
    3615: 3612 tsqueryin, 3613 tsqueryout, 3641 tsqueryrecv, 3640 tsquerysend;
    3734: 3736 regconfigin, 3737 regconfigout, 3738 regconfigrecv, 3739 regconfigsend;
    3769: 3771 regdictionaryin, 3772 regdictionaryout, 3773 regdictionaryrecv, 3774 regdictionarysend;
    4191: 4193 regcollationin, 4194 regcollationout, 4196 regcollationrecv, 4197 regcollationsend;
    5038: 5055 pg_snapshot_in, 5056 pg_snapshot_out, 5057 pg_snapshot_recv, 5058 pg_snapshot_send;
    5069: 5070 xid8in, 5081 xid8out, 5082 xid8recv, 5083 xid8send;
    3831: 3832 anyrange_in, 3833 anyrange_out;
    4537: 4229 anymultirange_in, 4230 anymultirange_out;
    4538: 4226 anycompatiblemultirange_in, 4227 anycompatiblemultirange_out;
    5080: 5094 anycompatiblerange_in, 5095 anycompatiblerange_out;
    5077: 5086 anycompatible_in, 5087 anycompatible_out;
    5078: 5088 anycompatiblearray_in, 5089 anycompatiblearray_out, 5090 anycompatiblearray_recv, 5091 anycompatiblearray_send;
    5079: 5092 anycompatiblenonarray_in, 5093 anycompatiblenonarray_out;
}

/// All array types share these.
pub(super) const ARRAY_FORMS: [(u32, &str); 4] = [
    (750, "array_in"),
    (751, "array_out"),
    (2400, "array_recv"),
    (2401, "array_send"),
];
/// So do all enums.
pub(super) const ENUM_FORMS: [(u32, &str); 4] = [
    (3506, "enum_in"),
    (3507, "enum_out"),
    (3532, "enum_recv"),
    (3533, "enum_send"),
];
/// And composite types.
const RECORD_FORMS: [(u32, &str); 4] = [
    (2290, "record_in"),
    (2291, "record_out"),
    (2402, "record_recv"),
    (2403, "record_send"),
];
/// All range types share these.
pub(super) const RANGE_FORMS: [(u32, &str); 4] = [
    (3834, "range_in"),
    (3835, "range_out"),
    (3836, "range_recv"),
    (3837, "range_send"),
];
/// And all multirange types.
pub(super) const MULTIRANGE_FORMS: [(u32, &str); 4] = [
    (4231, "multirange_in"),
    (4232, "multirange_out"),
    (4233, "multirange_recv"),
    (4234, "multirange_send"),
];
const RANGE_ANALYZE: Oid = Oid(3916);
const MULTIRANGE_ANALYZE: Oid = Oid(4242);
const ARRAY_ANALYZE: Oid = Oid(3816);
const ARRAY_SUBSCRIPT: Oid = Oid(6179);
const RAW_ARRAY_SUBSCRIPT: Oid = Oid(6180);
const JSONB_SUBSCRIPT: Oid = Oid(6098);

/// A type's forms' functions, arrays included.
fn forms_of(ty: &TypeInfo) -> [Oid; 6] {
    let mut functions = [Oid::NONE; 6];
    let given: &[(u32, &str)] = match FORMS.iter().find(|f| f.ty == ty.oid) {
        Some(forms) => &forms.functions,
        None if made::is_enum(ty.oid) => &ENUM_FORMS,
        None if made::is_composite(ty.oid) => &RECORD_FORMS,
        None if is_range(ty.oid) => &RANGE_FORMS,
        None if is_multirange(ty.oid) => &MULTIRANGE_FORMS,
        None if made::is_base(ty.oid) => &[],
        None => &ARRAY_FORMS,
    };
    for (slot, (oid, _)) in functions.iter_mut().zip(given) {
        *slot = Oid(*oid);
    }
    functions
}

/// How PostgreSQL would store long values: `p` plainly, `m` within the table, `x` outside if need
/// be.
pub(super) fn storage(ty: Oid) -> u8 {
    crate::Storage::of_type(ty).letter()
}

/// The collation a type's values have unless told otherwise; none where order is not a matter of
/// language.
pub(super) fn collation(ty: Oid) -> Oid {
    match ty {
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::PG_NODE_TREE => builtin::DEFAULT_COLLATION,
        oid::TEXT_ARRAY | oid::VARCHAR_ARRAY | oid::BPCHAR_ARRAY => builtin::DEFAULT_COLLATION,
        oid::NAME | oid::NAME_ARRAY => builtin::C_COLLATION,
        _ => Oid::NONE,
    }
}

fn type_row(ty: &TypeInfo) -> Vec<Datum> {
    named_type_row(ty, ty.name, builtin::PG_CATALOG, builtin::SUPERUSER)
}

fn named_type_row(ty: &TypeInfo, name: &str, schema: Oid, owner: Oid) -> Vec<Datum> {
    let vector = matches!(ty.oid, oid::INT2VECTOR | oid::OIDVECTOR);
    let array = ty.is_array();
    let subscript = match ty.oid {
        ty if ty == oid::NAME || part_of(ty).is_some() => RAW_ARRAY_SUBSCRIPT,
        oid::JSONB => JSONB_SUBSCRIPT,
        _ if array || vector => ARRAY_SUBSCRIPT,
        _ => Oid::NONE,
    };
    // Base types, besides arrays, whose values have items of another.
    let element = match ty.oid {
        oid::NAME => oid::CHAR,
        other => part_of(other).unwrap_or(ty.element),
    };
    let [input, output, receive, send, modifier_in, modifier_out] = forms_of(ty);
    // An array takes its element's modifiers.
    let (modifier_in, modifier_out) = match type_info(ty.element).filter(|_| array) {
        Some(element) => {
            let of_element = forms_of(&element);
            (of_element[4], of_element[5])
        }
        None => (modifier_in, modifier_out),
    };
    row![
        ty.oid,
        name,
        schema,
        owner,
        ty.len,
        ty.by_value,
        Datum::Char(ty.kind),
        Datum::Char(ty.category),
        ty.preferred,
        true,
        Datum::Char(delimiter(ty.oid)),
        made::serial(ty.oid)
            .filter(|_| made::is_composite(ty.oid))
            .unwrap_or(Oid::NONE),
        subscript,
        element,
        ty.array,
        input,
        output,
        receive,
        send,
        modifier_in,
        modifier_out,
        match ty.kind {
            b'r' => RANGE_ANALYZE,
            b'm' => MULTIRANGE_ANALYZE,
            _ if array => ARRAY_ANALYZE,
            _ => Oid::NONE,
        },
        Datum::Char(ty.align),
        Datum::Char(storage(ty.oid)),
        false,
        Oid::NONE,
        -1,
        0,
        collation(ty.oid),
        Datum::Null,
        Datum::Null,
        Datum::Null,
    ]
}

pub(super) fn pg_type(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let mut rows: Rows = match catalog.has_built_in() {
        true => all_types().iter().map(type_row).collect(),
        false => Rows::new(),
    };
    for def in catalog.made_types() {
        if let Some(domain) = &def.domain {
            let base = type_info(domain.base.oid);
            let row = base.map(|b| named_type_row(&b, &def.name, def.schema, def.owner));
            rows.extend(row.map(|row| super::domain::type_row(row, catalog, def, domain)));
        }
        let info = type_info(def.oid).filter(|_| def.domain.is_none());
        rows.extend(info.map(|i| {
            let mut row = named_type_row(&i, &def.name, def.schema, def.owner);
            if let Some(acl) = row.last_mut() {
                *acl = super::relation::privileges(catalog, builtin::class::TYPE, def.oid, 0);
            }
            row
        }));
        let array = type_info(made::array_oid(def.oid));
        let name = catalog.array_name(def.oid).unwrap_or_default();
        rows.extend(array.map(|a| named_type_row(&a, &name, def.schema, def.owner)));
    }
    let tables = catalog.tables().into_iter();
    let tables = tables.map(|t| (t.oid, t.name.as_str(), t.schema, t.owner));
    let views = catalog.views().into_iter();
    let views = views.map(|v| (v.oid, v.name.as_str(), v.schema, v.owner));
    for (relation, name, schema, owner) in tables.chain(views) {
        let Some(ty) = made::composite_oid(relation) else {
            continue;
        };
        let info = type_info(ty);
        rows.extend(info.map(|i| named_type_row(&i, name, schema, owner)));
        let array = type_info(made::array_oid(ty));
        let name = catalog.array_name(ty).unwrap_or_default();
        rows.extend(array.map(|a| named_type_row(&a, &name, schema, owner)));
    }
    rows
}

pub(super) fn pg_enum(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let types = catalog.made_types().into_iter();
    let labels = types.flat_map(|def| def.labels.iter().map(|l| (def.oid, l)));
    labels
        .map(|(ty, label)| row![label.oid, ty, label.place as f32, label.name.as_str()])
        .collect()
}

/// A type's schema and its name as `pg_type` has it.
pub(super) fn catalog_name(catalog: &Catalog, ty: Oid) -> Option<(Oid, String)> {
    let info = type_info(ty)?;
    if !made::is_made(ty) {
        return Some((builtin::PG_CATALOG, info.name.into()));
    }
    let named = |ty| {
        catalog
            .made_type(ty)
            .cloned()
            .or_else(|| catalog.composite(ty))
    };
    match named(ty) {
        Some(def) => Some((def.schema, def.name.clone())),
        None => {
            let def = named(info.element)?;
            Some((def.schema, catalog.array_name(def.oid)?))
        }
    }
}

/// The collations: all order by the bytes of UTF-8.
pub(super) const COLLATIONS: [(Oid, &str); 3] = [
    (builtin::DEFAULT_COLLATION, "default"),
    (builtin::C_COLLATION, "C"),
    (builtin::POSIX_COLLATION, "POSIX"),
];

pub(super) fn pg_collation(_: &Catalog, _: &dyn SystemState) -> Rows {
    let rows = COLLATIONS.into_iter().map(|(oid, name)| {
        let default = oid == builtin::DEFAULT_COLLATION;
        let locale = (!default).then_some(name);
        row![
            oid,
            name,
            builtin::PG_CATALOG,
            builtin::SUPERUSER,
            Datum::Char(if default { b'd' } else { b'c' }),
            true,
            -1,
            locale,
            locale,
            Datum::Null,
            Datum::Null,
            Datum::Null,
        ]
    });
    rows.collect()
}
