//! How B-trees order types, and what inverted indexes find in them: `pg_opclass`, `pg_opfamily`,
//! `pg_amop`, `pg_amproc`.

use throng_types::{Datum, Oid, oid};

use super::{Rows, SystemState, row};
use crate::{Catalog, IndexMethod, builtin};
use throng_values::func::{FAMILIES, Operator, Strategy, extension, resolve_operator};
use throng_values::inverted::{self, OperatorClass};

/// A B-tree operator class.
struct Class {
    oid: u32,
    name: &'static str,
    family: u32,
    ty: Oid,
    /// Used where an index names none.
    default: bool,
}

macro_rules! classes {
    ($($oid:literal $name:ident in $family:literal for $ty:ident $($default:ident)?;)*) => {
        const CLASSES: &[Class] = &[
            $(Class {
                oid: $oid,
                name: stringify!($name),
                family: $family,
                ty: oid::$ty,
                default: classes!(@default $($default)?),
            },)*
        ];
    };
    (@default) => { false };
    (@default default) => { true };
}

classes! {
    1978 int4_ops in 1976 for INT4 default;
    1979 int2_ops in 1976 for INT2 default;
    1981 oid_ops in 1989 for OID default;
    3122 date_ops in 434 for DATE default;
    3123 float8_ops in 1970 for FLOAT8 default;
    3124 int8_ops in 1976 for INT8 default;
    3125 numeric_ops in 1988 for NUMERIC default;
    3126 text_ops in 1994 for TEXT default;
    3127 timestamptz_ops in 434 for TIMESTAMPTZ default;
    3128 timestamp_ops in 434 for TIMESTAMP default;
    10000 array_ops in 397 for ANYARRAY default;
    10003 bool_ops in 424 for BOOL default;
    10004 bpchar_ops in 426 for BPCHAR default;
    10006 bytea_ops in 428 for BYTEA default;
    10007 char_ops in 429 for CHAR default;
    10012 float4_ops in 1970 for FLOAT4 default;
    10022 interval_ops in 1982 for INTERVAL default;
    10028 name_ops in 1994 for NAME default;
    10032 oidvector_ops in 1991 for OIDVECTOR default;
    10034 record_ops in 2994 for RECORD default;
    10038 time_ops in 1996 for TIME default;
    10041 timetz_ops in 2000 for TIMETZ default;
    10044 varchar_ops in 1994 for TEXT;
    10050 tid_ops in 2789 for TID default;
    10053 xid8_ops in 5067 for XID8 default;
    10065 uuid_ops in 2968 for UUID default;
    10067 pg_lsn_ops in 3253 for PG_LSN default;
    10069 enum_ops in 3522 for ANYENUM default;
    10076 range_ops in 3901 for ANYRANGE default;
    10080 multirange_ops in 4199 for ANYMULTIRANGE default;
    10088 jsonb_ops in 4033 for JSONB default;
    10071 tsvector_ops in 3626 for TSVECTOR default;
    10074 tsquery_ops in 3683 for TSQUERY default;
    10002 bit_ops in 423 for BIT default;
    10009 cidr_ops in 1974 for INET;
    10015 inet_ops in 1974 for INET default;
    10024 macaddr_ops in 1984 for MACADDR default;
    10026 macaddr8_ops in 3371 for MACADDR8 default;
    10043 varbit_ops in 2002 for VARBIT default;
    10047 money_ops in 2099 for MONEY default;
    4217 text_pattern_ops in 2095 for TEXT;
    4218 varchar_pattern_ops in 2095 for TEXT;
    4219 bpchar_pattern_ops in 2097 for BPCHAR;
}

/// The families of those classes.
const FAMILY_NAMES: &[(u32, &str)] = &[
    (397, "array_ops"),
    (423, "bit_ops"),
    (424, "bool_ops"),
    (426, "bpchar_ops"),
    (428, "bytea_ops"),
    (429, "char_ops"),
    (434, "datetime_ops"),
    (1970, "float_ops"),
    (1974, "network_ops"),
    (1976, "integer_ops"),
    (1982, "interval_ops"),
    (1984, "macaddr_ops"),
    (1988, "numeric_ops"),
    (1989, "oid_ops"),
    (1991, "oidvector_ops"),
    (1994, "text_ops"),
    (2095, "text_pattern_ops"),
    (2097, "bpchar_pattern_ops"),
    (1996, "time_ops"),
    (2000, "timetz_ops"),
    (2002, "varbit_ops"),
    (2099, "money_ops"),
    (2789, "tid_ops"),
    (2968, "uuid_ops"),
    (2994, "record_ops"),
    (3253, "pg_lsn_ops"),
    (3371, "macaddr8_ops"),
    (3522, "enum_ops"),
    (3626, "tsvector_ops"),
    (3683, "tsquery_ops"),
    (3901, "range_ops"),
    (4033, "jsonb_ops"),
    (4199, "multirange_ops"),
    (5067, "xid8_ops"),
];

/// The three-way comparison of each pair of types: family, left type, right type, function.
pub(super) const COMPARISONS: &[(u32, Oid, Oid, u32, &str)] = &[
    (397, oid::ANYARRAY, oid::ANYARRAY, 382, "btarraycmp"),
    (423, oid::BIT, oid::BIT, 1596, "bitcmp"),
    (424, oid::BOOL, oid::BOOL, 1693, "btboolcmp"),
    (426, oid::BPCHAR, oid::BPCHAR, 1078, "bpcharcmp"),
    (428, oid::BYTEA, oid::BYTEA, 1954, "byteacmp"),
    (429, oid::CHAR, oid::CHAR, 358, "btcharcmp"),
    (434, oid::DATE, oid::DATE, 1092, "date_cmp"),
    (434, oid::DATE, oid::TIMESTAMP, 2344, "date_cmp_timestamp"),
    (
        434,
        oid::DATE,
        oid::TIMESTAMPTZ,
        2357,
        "date_cmp_timestamptz",
    ),
    (434, oid::TIMESTAMP, oid::DATE, 2370, "timestamp_cmp_date"),
    (434, oid::TIMESTAMP, oid::TIMESTAMP, 2045, "timestamp_cmp"),
    (
        434,
        oid::TIMESTAMP,
        oid::TIMESTAMPTZ,
        2526,
        "timestamp_cmp_timestamptz",
    ),
    (
        434,
        oid::TIMESTAMPTZ,
        oid::DATE,
        2383,
        "timestamptz_cmp_date",
    ),
    (
        434,
        oid::TIMESTAMPTZ,
        oid::TIMESTAMP,
        2533,
        "timestamptz_cmp_timestamp",
    ),
    (
        434,
        oid::TIMESTAMPTZ,
        oid::TIMESTAMPTZ,
        1314,
        "timestamptz_cmp",
    ),
    (1970, oid::FLOAT4, oid::FLOAT4, 354, "btfloat4cmp"),
    (1970, oid::FLOAT4, oid::FLOAT8, 2194, "btfloat48cmp"),
    (1970, oid::FLOAT8, oid::FLOAT4, 2195, "btfloat84cmp"),
    (1970, oid::FLOAT8, oid::FLOAT8, 355, "btfloat8cmp"),
    (1976, oid::INT8, oid::INT8, 842, "btint8cmp"),
    (1976, oid::INT8, oid::INT2, 2193, "btint82cmp"),
    (1976, oid::INT8, oid::INT4, 2189, "btint84cmp"),
    (1976, oid::INT2, oid::INT8, 2192, "btint28cmp"),
    (1976, oid::INT2, oid::INT2, 350, "btint2cmp"),
    (1976, oid::INT2, oid::INT4, 2190, "btint24cmp"),
    (1976, oid::INT4, oid::INT8, 2188, "btint48cmp"),
    (1976, oid::INT4, oid::INT2, 2191, "btint42cmp"),
    (1976, oid::INT4, oid::INT4, 351, "btint4cmp"),
    (1982, oid::INTERVAL, oid::INTERVAL, 1315, "interval_cmp"),
    (1988, oid::NUMERIC, oid::NUMERIC, 1769, "numeric_cmp"),
    (1989, oid::OID, oid::OID, 356, "btoidcmp"),
    (1991, oid::OIDVECTOR, oid::OIDVECTOR, 404, "btoidvectorcmp"),
    (1994, oid::NAME, oid::NAME, 359, "btnamecmp"),
    (1994, oid::NAME, oid::TEXT, 246, "btnametextcmp"),
    (1994, oid::TEXT, oid::NAME, 253, "bttextnamecmp"),
    (1994, oid::TEXT, oid::TEXT, 360, "bttextcmp"),
    (1996, oid::TIME, oid::TIME, 1107, "time_cmp"),
    (2000, oid::TIMETZ, oid::TIMETZ, 1358, "timetz_cmp"),
    (1974, oid::INET, oid::INET, 926, "network_cmp"),
    (1984, oid::MACADDR, oid::MACADDR, 836, "macaddr_cmp"),
    (2002, oid::VARBIT, oid::VARBIT, 1672, "varbitcmp"),
    (2099, oid::MONEY, oid::MONEY, 377, "cash_cmp"),
    (3371, oid::MACADDR8, oid::MACADDR8, 4119, "macaddr8_cmp"),
    (2789, oid::TID, oid::TID, 2794, "bttidcmp"),
    (2968, oid::UUID, oid::UUID, 2960, "uuid_cmp"),
    (2994, oid::RECORD, oid::RECORD, 2987, "btrecordcmp"),
    (3253, oid::PG_LSN, oid::PG_LSN, 3251, "pg_lsn_cmp"),
    (3522, oid::ANYENUM, oid::ANYENUM, 3514, "enum_cmp"),
    (3626, oid::TSVECTOR, oid::TSVECTOR, 3622, "tsvector_cmp"),
    (3683, oid::TSQUERY, oid::TSQUERY, 3668, "tsquery_cmp"),
    (3901, oid::ANYRANGE, oid::ANYRANGE, 3870, "range_cmp"),
    (4033, oid::JSONB, oid::JSONB, 4044, "jsonb_cmp"),
    (
        4199,
        oid::ANYMULTIRANGE,
        oid::ANYMULTIRANGE,
        4273,
        "multirange_cmp",
    ),
    (5067, oid::XID8, oid::XID8, 5096, "xid8cmp"),
];

/// Classes of inverted indexes that no extension has to bring.
fn inverted_classes() -> impl Iterator<Item = &'static OperatorClass> {
    let classes = inverted::CLASSES.iter().copied();
    classes.filter(|class| class.extension.is_none())
}

/// The same with those of extensions that are installed, and their schemas.
fn inverted_classes_in(catalog: &Catalog) -> Vec<(&'static OperatorClass, Oid)> {
    let classes = inverted::CLASSES.iter().copied();
    let with_schema = |class: &'static OperatorClass| Some((class, schema_of(catalog, class)?));
    classes.filter_map(with_schema).collect()
}

/// Where an operator class is; None where its extension is not installed.
pub fn schema_of(catalog: &Catalog, class: &OperatorClass) -> Option<Oid> {
    match class.extension {
        None => Some(builtin::PG_CATALOG),
        Some(name) => catalog.extension_by_name(name).map(|def| def.schema),
    }
}

/// Where the class or the family of an extension is that has this oid.
pub fn schema_of_extension_class(catalog: &Catalog, oid: Oid) -> Option<Oid> {
    let mut classes = inverted::CLASSES.iter().copied();
    let class = classes.find(|class| class.oid == oid.0 || class.family == oid.0)?;
    schema_of(catalog, class).filter(|_| class.extension.is_some())
}

/// The access method of indexes of a kind.
pub(super) fn access_method(method: IndexMethod) -> Oid {
    match method {
        IndexMethod::Btree => builtin::BTREE_AM,
        IndexMethod::Hash => builtin::HASH_AM,
        IndexMethod::Gist => builtin::GIST_AM,
        IndexMethod::Gin => builtin::GIN_AM,
    }
}

pub(super) fn class_named(method: &str, name: &str) -> Option<Oid> {
    match method {
        "btree" => {
            let class = CLASSES.iter().find(|c| c.name == name);
            class.map(|c| Oid(c.oid))
        }
        "gin" => {
            let class = inverted_classes().find(|class| class.name == name);
            class.map(|class| Oid(class.oid))
        }
        _ => None,
    }
}

pub(super) fn family_named(method: &str, name: &str) -> Option<Oid> {
    match method {
        "btree" => {
            let family = FAMILY_NAMES.iter().find(|(_, known)| *known == name);
            family.map(|(oid, _)| Oid(*oid))
        }
        "gin" => {
            let class = inverted_classes().find(|class| class.name == name);
            class.map(|class| Oid(class.family))
        }
        _ => None,
    }
}

/// Whether the class of that name takes values of a type; none where there is no such class.
pub fn accepts(method: IndexMethod, name: &str, ty: Oid) -> Option<bool> {
    if method == IndexMethod::Gin {
        return inverted::class_named(name).map(|class| class.accepts(ty));
    }
    let class = CLASSES.iter().find(|c| c.name == name)?;
    Some(class.ty == ordered_as(ty))
}

/// Whether the class of that name is what an index on a column of that type has anyway.
pub fn is_default(method: IndexMethod, name: &str, ty: Oid) -> bool {
    class_of(method, name, ty) == class_of(method, "", ty)
}

/// The class of a key column: the one that was named, or its type's.
pub fn class_of(method: IndexMethod, name: &str, ty: Oid) -> Oid {
    if method == IndexMethod::Gin {
        let class = inverted::class_named(name);
        let class = class.or_else(|| inverted::default_class(ty));
        return class.map_or(Oid::NONE, |class| Oid(class.oid));
    }
    let class = CLASSES.iter().find(|c| c.name == name);
    class.map_or_else(|| default_for(ty), |c| Oid(c.oid))
}

/// The type as which values of a type are ordered.
fn ordered_as(ty: Oid) -> Oid {
    match ty {
        oid::VARCHAR => oid::TEXT,
        oid::CIDR => oid::INET,
        oid::REGPROC
        | oid::REGCLASS
        | oid::REGTYPE
        | oid::REGROLE
        | oid::REGNAMESPACE
        | oid::REGCONFIG
        | oid::REGDICTIONARY => oid::OID,
        _ if throng_types::sqltype::made::is_enum(ty) => oid::ANYENUM,
        _ if throng_types::range::is_range(ty) => oid::ANYRANGE,
        _ if throng_types::range::is_multirange(ty) => oid::ANYMULTIRANGE,
        _ if throng_types::sqltype::type_info(ty).is_some_and(|t| t.is_array()) => oid::ANYARRAY,
        other => other,
    }
}

/// The class an index on a column of that type has; none for types that have no order.
pub fn default_for(ty: Oid) -> Oid {
    let ordered = ordered_as(ty);
    let class = CLASSES.iter().find(|c| c.default && c.ty == ordered);
    class.map_or(Oid::NONE, |c| Oid(c.oid))
}

fn family_of(ty: Oid) -> Option<u32> {
    CLASSES.iter().find(|c| c.ty == ty).map(|c| c.family)
}

/// What the family is called that orders values of a type.
pub fn family_name(ty: Oid) -> &'static str {
    let family = family_of(ordered_as(ty));
    let named = FAMILY_NAMES.iter().find(|(oid, _)| Some(*oid) == family);
    named.map_or("", |(_, name)| name)
}

/// The functions behind the classes of inverted indexes, as `pg_proc` lists them: oid, name, types
/// of arguments and result. Nobody calls them: a class has its own.
pub(super) fn support_functions() -> impl Iterator<Item = (u32, &'static str, Vec<Oid>, Oid)> {
    let of_class = |class: &'static OperatorClass| {
        let listed = move |&(number, oid, name): &(i16, u32, &'static str)| {
            let (args, ret) = support_types(number, class.input);
            (oid, name, args, ret)
        };
        class.support.iter().map(listed)
    };
    inverted_classes().flat_map(of_class)
}

/// What a support function takes and gives, by its number.
fn support_types(number: i16, input: Oid) -> (Vec<Oid>, Oid) {
    let any = oid::INTERNAL;
    match number {
        1 => (vec![oid::TEXT; 2], oid::INT4),
        2 => (vec![input, any, any], any),
        3 => (vec![input, any, oid::INT2, any, any, any, any], any),
        4 => {
            let args = vec![any, oid::INT2, input, oid::INT4, any, any, any, any];
            (args, oid::BOOL)
        }
        5 => (vec![oid::TEXT, oid::TEXT, oid::INT2, any], oid::INT4),
        _ => {
            let args = vec![any, oid::INT2, input, oid::INT4, any, any, any];
            (args, oid::CHAR)
        }
    }
}

/// Whether there is an operator class of that oid.
pub fn is_class(oid: Oid) -> bool {
    CLASSES.iter().any(|class| class.oid == oid.0)
        || inverted_classes().any(|class| class.oid == oid.0)
}

/// Whether there is an operator family of that oid.
pub fn is_family(oid: Oid) -> bool {
    FAMILY_NAMES.iter().any(|(family, _)| *family == oid.0)
        || inverted_classes().any(|class| class.family == oid.0)
}

pub(super) fn pg_opclass(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let classes = CLASSES.iter().map(|c| {
        // `name` is kept in indexes as a string of its true length.
        let kept = if c.ty == oid::NAME {
            oid::CSTRING
        } else {
            Oid::NONE
        };
        row![
            Oid(c.oid),
            builtin::BTREE_AM,
            c.name,
            builtin::PG_CATALOG,
            builtin::SUPERUSER,
            Oid(c.family),
            c.ty,
            c.default,
            kept,
        ]
    });
    let inverted = inverted_classes_in(catalog).into_iter();
    let inverted = inverted.map(|(class, schema)| {
        row![
            Oid(class.oid),
            builtin::GIN_AM,
            class.name,
            schema,
            builtin::SUPERUSER,
            Oid(class.family),
            class.input,
            class.default,
            class.key,
        ]
    });
    classes.chain(inverted).collect()
}

pub(super) fn pg_opfamily(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let ordered = FAMILY_NAMES.iter().copied();
    let ordered = ordered.map(|(oid, name)| (oid, builtin::BTREE_AM, name, builtin::PG_CATALOG));
    let inverted = inverted_classes_in(catalog).into_iter();
    let inverted =
        inverted.map(|(class, schema)| (class.family, builtin::GIN_AM, class.name, schema));
    ordered
        .chain(inverted)
        .map(|(oid, method, name, schema)| row![Oid(oid), method, name, schema, builtin::SUPERUSER])
        .collect()
}

fn strategy_number(strategy: Strategy) -> i16 {
    match strategy {
        Strategy::Less => 1,
        Strategy::LessEqual => 2,
        Strategy::Equal => 3,
        Strategy::GreaterEqual => 4,
        Strategy::Greater => 5,
    }
}

/// Where the numbers of these rows begin; they have none that anybody could know.
const FIRST_UNPINNED: u32 = 10_000;

/// An operator of a family: the family, both types, the strategy's number, the operator.
type FamilyOperator = (u32, Oid, Oid, i16, Oid);

/// The operators that an inverted index finds rows for, with its access method.
fn searched(class: &'static OperatorClass) -> impl Iterator<Item = (FamilyOperator, Oid)> {
    class.strategies.iter().filter_map(|strategy| {
        let (left, right) = (class.input, strategy.query);
        let known = class.extension.and_then(extension::known);
        let mut own = known.into_iter().flat_map(|known| known.operators);
        let own = own.find(|o| (o.name, o.left, o.right) == (strategy.operator, left, right));
        let operator = match own {
            Some(own) => own.oid,
            None => {
                let found = resolve_operator(strategy.operator, Some(left), right);
                found.ok()?.operator.oid
            }
        };
        let entry = (class.family, left, right, strategy.number, operator);
        Some((entry, builtin::GIN_AM))
    })
}

pub(super) fn pg_amop(catalog: &Catalog, _: &dyn SystemState) -> Rows {
    let entry = |o: &Operator| {
        let family = family_of(o.left)?;
        let strategy = strategy_number(o.strategy?);
        let entry = (family, o.left, o.right, strategy, o.oid);
        Some((entry, builtin::BTREE_AM))
    };
    let operators = FAMILIES.iter().flat_map(|f| f.operators).filter_map(entry);
    let inverted = inverted_classes_in(catalog).into_iter();
    operators
        .chain(inverted.flat_map(|(class, _)| searched(class)))
        .zip(FIRST_UNPINNED..)
        .map(|((entry, method), number)| {
            let (family, left, right, strategy, operator) = entry;
            row![
                Oid(number),
                Oid(family),
                left,
                right,
                strategy,
                Datum::Char(b's'),
                operator,
                method,
                Oid::NONE,
            ]
        })
        .collect()
}

pub(super) fn pg_amproc(_: &Catalog, _: &dyn SystemState) -> Rows {
    let comparisons = COMPARISONS.iter();
    let comparisons = comparisons
        .map(|&(family, left, right, function, _)| (family, left, right, 1i16, function));
    let support = inverted_classes().flat_map(|class| {
        let of = |&(number, function, _): &(i16, u32, &str)| {
            (class.family, class.input, class.input, number, function)
        };
        class.support.iter().map(of)
    });
    comparisons
        .chain(support)
        .zip(FIRST_UNPINNED..)
        .map(|((family, left, right, purpose, function), number)| {
            row![
                Oid(number),
                Oid(family),
                left,
                right,
                purpose,
                Oid(function)
            ]
        })
        .collect()
}
