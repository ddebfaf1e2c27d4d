//! SQL types: their oids, PostgreSQL's facts about each, and how they are spelled.

use crate::Oid;
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::sync::LazyLock;

/// A type as a column or an expression has it: which type, and its modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlType {
    pub oid: Oid,
    /// PostgreSQL's encoding (length + 4 for strings, precision and scale for numeric); -1 for
    /// none.
    pub typmod: i32,
}

impl SqlType {
    pub const fn new(oid: Oid, typmod: i32) -> SqlType {
        SqlType { oid, typmod }
    }
    pub const fn plain(oid: Oid) -> SqlType {
        SqlType { oid, typmod: -1 }
    }
    /// `varchar(n)`, `char(n)`: n as PostgreSQL stores it.
    pub const fn string_modifier(length: i32) -> i32 {
        length + 4
    }
    /// `numeric(precision, scale)`.
    pub const fn numeric_modifier(precision: i32, scale: i32) -> i32 {
        ((precision << 16) | (scale & 0x7ff)) + 4
    }
    /// Precision and scale of a numeric modifier.
    pub const fn numeric_precision(typmod: i32) -> Option<(i32, i32)> {
        if typmod < 4 {
            return None;
        }
        let raw = typmod - 4;
        Some(((raw >> 16) & 0xffff, ((raw & 0x7ff) ^ 1024) - 1024))
    }
    /// `n` of `varchar(n)`.
    pub const fn string_length(typmod: i32) -> Option<i32> {
        if typmod < 4 { None } else { Some(typmod - 4) }
    }
    pub fn info(self) -> Option<TypeInfo> {
        type_info(self.oid)
    }
}

/// PostgreSQL's facts about a type (a row of `pg_type`). The name of a type that a user made is the
/// catalog's to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    pub oid: Oid,
    pub name: &'static str,
    /// Bytes on PostgreSQL's pages: -1 varying, -2 C string.
    pub len: i16,
    pub by_value: bool,
    /// `b` base, `c` composite, `d` domain, `e` enum, `m` multirange, `p` pseudo, `r` range.
    pub kind: u8,
    pub category: u8,
    pub preferred: bool,
    /// The type's array type, or none.
    pub array: Oid,
    /// The element's type where this is an array, or none.
    pub element: Oid,
    pub align: u8,
}

impl TypeInfo {
    /// A true array (not `oidvector` and `int2vector`, which only look like ones).
    pub fn is_array(&self) -> bool {
        self.element != Oid::NONE
            && self.category == b'A'
            && self.len == -1
            && self.name.starts_with('_')
    }
    pub fn is_pseudo(&self) -> bool {
        self.kind == b'p'
    }
}

macro_rules! types {
    ($($konst:ident = $oid:literal, $name:literal, $len:literal, $byval:literal, $kind:literal, $cat:literal, $pref:literal, $array:ident = $array_oid:literal, $align:literal;)*) => {
        /// The oids of built-in types, as PostgreSQL numbers them.
        pub mod oid {
            use crate::Oid;
            $(pub const $konst: Oid = Oid($oid);)*
            $(types!(@array $array $array_oid);)*
        }
        impl SqlType {
            $(pub const $konst: SqlType = SqlType::plain(Oid($oid));)*
        }
        /// Every built-in type, arrays not included.
        const BASE: &[TypeInfo] = &[
            $(TypeInfo {
                oid: Oid($oid), name: $name, len: $len, by_value: $byval, kind: $kind, category: $cat,
                preferred: $pref, array: Oid($array_oid), element: Oid(0), align: $align,
            },)*
        ];
    };
    (@array NO_ARRAY $oid:literal) => {};
    (@array $array:ident $oid:literal) => { pub const $array: Oid = Oid($oid); };
}

types! {
    BOOL = 16, "bool", 1, true, b'b', b'B', true, BOOL_ARRAY = 1000, b'c';
    BYTEA = 17, "bytea", -1, false, b'b', b'U', false, BYTEA_ARRAY = 1001, b'i';
    CHAR = 18, "char", 1, true, b'b', b'Z', false, CHAR_ARRAY = 1002, b'c';
    NAME = 19, "name", 64, false, b'b', b'S', false, NAME_ARRAY = 1003, b'c';
    INT8 = 20, "int8", 8, true, b'b', b'N', false, INT8_ARRAY = 1016, b'd';
    INT2 = 21, "int2", 2, true, b'b', b'N', false, INT2_ARRAY = 1005, b's';
    INT2VECTOR = 22, "int2vector", -1, false, b'b', b'A', false, INT2VECTOR_ARRAY = 1006, b'i';
    INT4 = 23, "int4", 4, true, b'b', b'N', false, INT4_ARRAY = 1007, b'i';
    REGPROC = 24, "regproc", 4, true, b'b', b'N', false, REGPROC_ARRAY = 1008, b'i';
    TEXT = 25, "text", -1, false, b'b', b'S', true, TEXT_ARRAY = 1009, b'i';
    OID = 26, "oid", 4, true, b'b', b'N', true, OID_ARRAY = 1028, b'i';
    TID = 27, "tid", 6, false, b'b', b'U', false, TID_ARRAY = 1010, b's';
    XID = 28, "xid", 4, true, b'b', b'U', false, XID_ARRAY = 1011, b'i';
    CID = 29, "cid", 4, true, b'b', b'U', false, CID_ARRAY = 1012, b'i';
    OIDVECTOR = 30, "oidvector", -1, false, b'b', b'A', false, OIDVECTOR_ARRAY = 1013, b'i';
    JSON = 114, "json", -1, false, b'b', b'U', false, JSON_ARRAY = 199, b'i';
    XML = 142, "xml", -1, false, b'b', b'U', false, XML_ARRAY = 143, b'i';
    PG_NODE_TREE = 194, "pg_node_tree", -1, false, b'b', b'Z', false, NO_ARRAY = 0, b'i';
    POINT = 600, "point", 16, false, b'b', b'G', false, POINT_ARRAY = 1017, b'd';
    LSEG = 601, "lseg", 32, false, b'b', b'G', false, LSEG_ARRAY = 1018, b'd';
    PATH = 602, "path", -1, false, b'b', b'G', false, PATH_ARRAY = 1019, b'd';
    BOX = 603, "box", 32, false, b'b', b'G', false, BOX_ARRAY = 1020, b'd';
    POLYGON = 604, "polygon", -1, false, b'b', b'G', false, POLYGON_ARRAY = 1027, b'd';
    LINE = 628, "line", 24, false, b'b', b'G', false, LINE_ARRAY = 629, b'd';
    CIDR = 650, "cidr", -1, false, b'b', b'I', false, CIDR_ARRAY = 651, b'i';
    FLOAT4 = 700, "float4", 4, true, b'b', b'N', false, FLOAT4_ARRAY = 1021, b'i';
    FLOAT8 = 701, "float8", 8, true, b'b', b'N', true, FLOAT8_ARRAY = 1022, b'd';
    UNKNOWN = 705, "unknown", -2, false, b'p', b'X', false, NO_ARRAY = 0, b'c';
    CIRCLE = 718, "circle", 24, false, b'b', b'G', false, CIRCLE_ARRAY = 719, b'd';
    MACADDR8 = 774, "macaddr8", 8, false, b'b', b'U', false, MACADDR8_ARRAY = 775, b'i';
    MONEY = 790, "money", 8, true, b'b', b'N', false, MONEY_ARRAY = 791, b'd';
    MACADDR = 829, "macaddr", 6, false, b'b', b'U', false, MACADDR_ARRAY = 1040, b'i';
    INET = 869, "inet", -1, false, b'b', b'I', true, INET_ARRAY = 1041, b'i';
    ACLITEM = 1033, "aclitem", 16, false, b'b', b'U', false, ACLITEM_ARRAY = 1034, b'd';
    BPCHAR = 1042, "bpchar", -1, false, b'b', b'S', false, BPCHAR_ARRAY = 1014, b'i';
    VARCHAR = 1043, "varchar", -1, false, b'b', b'S', false, VARCHAR_ARRAY = 1015, b'i';
    DATE = 1082, "date", 4, true, b'b', b'D', false, DATE_ARRAY = 1182, b'i';
    TIME = 1083, "time", 8, true, b'b', b'D', false, TIME_ARRAY = 1183, b'd';
    TIMESTAMP = 1114, "timestamp", 8, true, b'b', b'D', false, TIMESTAMP_ARRAY = 1115, b'd';
    TIMESTAMPTZ = 1184, "timestamptz", 8, true, b'b', b'D', true, TIMESTAMPTZ_ARRAY = 1185, b'd';
    INTERVAL = 1186, "interval", 16, false, b'b', b'T', true, INTERVAL_ARRAY = 1187, b'd';
    TIMETZ = 1266, "timetz", 12, false, b'b', b'D', false, TIMETZ_ARRAY = 1270, b'd';
    BIT = 1560, "bit", -1, false, b'b', b'V', false, BIT_ARRAY = 1561, b'i';
    VARBIT = 1562, "varbit", -1, false, b'b', b'V', true, VARBIT_ARRAY = 1563, b'i';
    REFCURSOR = 1790, "refcursor", -1, false, b'b', b'U', false, REFCURSOR_ARRAY = 2201, b'i';
    NUMERIC = 1700, "numeric", -1, false, b'b', b'N', false, NUMERIC_ARRAY = 1231, b'i';
    REGPROCEDURE = 2202, "regprocedure", 4, true, b'b', b'N', false, REGPROCEDURE_ARRAY = 2207, b'i';
    REGOPER = 2203, "regoper", 4, true, b'b', b'N', false, REGOPER_ARRAY = 2208, b'i';
    REGOPERATOR = 2204, "regoperator", 4, true, b'b', b'N', false, REGOPERATOR_ARRAY = 2209, b'i';
    REGCLASS = 2205, "regclass", 4, true, b'b', b'N', false, REGCLASS_ARRAY = 2210, b'i';
    REGTYPE = 2206, "regtype", 4, true, b'b', b'N', false, REGTYPE_ARRAY = 2211, b'i';
    RECORD = 2249, "record", -1, false, b'p', b'P', false, RECORD_ARRAY = 2287, b'd';
    CSTRING = 2275, "cstring", -2, false, b'p', b'P', false, CSTRING_ARRAY = 1263, b'c';
    ANY = 2276, "any", 4, true, b'p', b'P', false, NO_ARRAY = 0, b'i';
    ANYARRAY = 2277, "anyarray", -1, false, b'p', b'P', false, NO_ARRAY = 0, b'd';
    VOID = 2278, "void", 4, true, b'p', b'P', false, NO_ARRAY = 0, b'i';
    TRIGGER = 2279, "trigger", 4, true, b'p', b'P', false, NO_ARRAY = 0, b'i';
    LANGUAGE_HANDLER = 2280, "language_handler", 4, true, b'p', b'P', false, NO_ARRAY = 0, b'i';
    INTERNAL = 2281, "internal", 8, true, b'p', b'P', false, NO_ARRAY = 0, b'd';
    ANYELEMENT = 2283, "anyelement", 4, true, b'p', b'P', false, NO_ARRAY = 0, b'i';
    ANYNONARRAY = 2776, "anynonarray", 4, true, b'p', b'P', false, NO_ARRAY = 0, b'i';
    UUID = 2950, "uuid", 16, false, b'b', b'U', false, UUID_ARRAY = 2951, b'c';
    TXID_SNAPSHOT = 2970, "txid_snapshot", -1, false, b'b', b'U', false, TXID_SNAPSHOT_ARRAY = 2949, b'd';
    PG_LSN = 3220, "pg_lsn", 8, true, b'b', b'U', false, PG_LSN_ARRAY = 3221, b'd';
    TSVECTOR = 3614, "tsvector", -1, false, b'b', b'U', false, TSVECTOR_ARRAY = 3643, b'i';
    TSQUERY = 3615, "tsquery", -1, false, b'b', b'U', false, TSQUERY_ARRAY = 3645, b'i';
    REGCONFIG = 3734, "regconfig", 4, true, b'b', b'N', false, REGCONFIG_ARRAY = 3735, b'i';
    REGDICTIONARY = 3769, "regdictionary", 4, true, b'b', b'N', false, REGDICTIONARY_ARRAY = 3770, b'i';
    JSONB = 3802, "jsonb", -1, false, b'b', b'U', false, JSONB_ARRAY = 3807, b'i';
    ANYENUM = 3500, "anyenum", 4, true, b'p', b'P', false, NO_ARRAY = 0, b'i';
    JSONPATH = 4072, "jsonpath", -1, false, b'b', b'U', false, JSONPATH_ARRAY = 4073, b'i';
    REGNAMESPACE = 4089, "regnamespace", 4, true, b'b', b'N', false, REGNAMESPACE_ARRAY = 4090, b'i';
    REGROLE = 4096, "regrole", 4, true, b'b', b'N', false, REGROLE_ARRAY = 4097, b'i';
    REGCOLLATION = 4191, "regcollation", 4, true, b'b', b'N', false, REGCOLLATION_ARRAY = 4192, b'i';
    PG_SNAPSHOT = 5038, "pg_snapshot", -1, false, b'b', b'U', false, PG_SNAPSHOT_ARRAY = 5039, b'd';
    XID8 = 5069, "xid8", 8, true, b'b', b'U', false, XID8_ARRAY = 271, b'd';
    ANYCOMPATIBLE = 5077, "anycompatible", 4, true, b'p', b'P', false, NO_ARRAY = 0, b'i';
    ANYCOMPATIBLEARRAY = 5078, "anycompatiblearray", -1, false, b'p', b'P', false, NO_ARRAY = 0, b'd';
    ANYCOMPATIBLENONARRAY = 5079, "anycompatiblenonarray", 4, true, b'p', b'P', false, NO_ARRAY = 0, b'i';
    INT4RANGE = 3904, "int4range", -1, false, b'r', b'R', false, INT4RANGE_ARRAY = 3905, b'i';
    NUMRANGE = 3906, "numrange", -1, false, b'r', b'R', false, NUMRANGE_ARRAY = 3907, b'i';
    TSRANGE = 3908, "tsrange", -1, false, b'r', b'R', false, TSRANGE_ARRAY = 3909, b'd';
    TSTZRANGE = 3910, "tstzrange", -1, false, b'r', b'R', false, TSTZRANGE_ARRAY = 3911, b'd';
    DATERANGE = 3912, "daterange", -1, false, b'r', b'R', false, DATERANGE_ARRAY = 3913, b'i';
    INT8RANGE = 3926, "int8range", -1, false, b'r', b'R', false, INT8RANGE_ARRAY = 3927, b'd';
    INT4MULTIRANGE = 4451, "int4multirange", -1, false, b'm', b'R', false, INT4MULTIRANGE_ARRAY = 6150, b'i';
    NUMMULTIRANGE = 4532, "nummultirange", -1, false, b'm', b'R', false, NUMMULTIRANGE_ARRAY = 6151, b'i';
    TSMULTIRANGE = 4533, "tsmultirange", -1, false, b'm', b'R', false, TSMULTIRANGE_ARRAY = 6152, b'd';
    TSTZMULTIRANGE = 4534, "tstzmultirange", -1, false, b'm', b'R', false, TSTZMULTIRANGE_ARRAY = 6153, b'd';
    DATEMULTIRANGE = 4535, "datemultirange", -1, false, b'm', b'R', false, DATEMULTIRANGE_ARRAY = 6155, b'i';
    INT8MULTIRANGE = 4536, "int8multirange", -1, false, b'm', b'R', false, INT8MULTIRANGE_ARRAY = 6157, b'd';
    ANYRANGE = 3831, "anyrange", -1, false, b'p', b'P', false, NO_ARRAY = 0, b'd';
    ANYMULTIRANGE = 4537, "anymultirange", -1, false, b'p', b'P', false, NO_ARRAY = 0, b'd';
    ANYCOMPATIBLEMULTIRANGE = 4538, "anycompatiblemultirange", -1, false, b'p', b'P', false, NO_ARRAY = 0, b'd';
    ANYCOMPATIBLERANGE = 5080, "anycompatiblerange", -1, false, b'p', b'P', false, NO_ARRAY = 0, b'd';
}

struct Registry {
    all: Vec<TypeInfo>,
    by_oid: HashMap<Oid, usize, FixedState>,
    by_name: HashMap<&'static str, usize, FixedState>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let mut all: Vec<TypeInfo> = BASE.to_vec();
    for info in BASE.iter().filter(|t| t.array != Oid::NONE) {
        // Array types live as long as the process: there is one registry.
        let name: &'static str = Box::leak(format!("_{}", info.name).into_boxed_str());
        all.push(TypeInfo {
            oid: info.array,
            name,
            len: -1,
            by_value: false,
            kind: if info.kind == b'p' { b'p' } else { b'b' },
            category: if info.kind == b'p' { b'P' } else { b'A' },
            preferred: false,
            array: Oid::NONE,
            element: info.oid,
            align: if info.align == b'd' { b'd' } else { b'i' },
        });
    }
    for (vector, element) in [(oid::INT2VECTOR, oid::INT2), (oid::OIDVECTOR, oid::OID)] {
        let info = all
            .iter_mut()
            .find(|t| t.oid == vector)
            .expect("the vectors are built in");
        info.element = element;
    }
    let by_oid = all.iter().enumerate().map(|(i, t)| (t.oid, i)).collect();
    let by_name = all.iter().enumerate().map(|(i, t)| (t.name, i)).collect();
    Registry {
        all,
        by_oid,
        by_name,
    }
});

/// Every built-in type, array types included.
pub fn all_types() -> &'static [TypeInfo] {
    &REGISTRY.all
}

/// The type with this oid: a built-in one, or one that the oid says a user made.
pub fn type_info(oid: Oid) -> Option<TypeInfo> {
    match REGISTRY.by_oid.get(&oid) {
        Some(&i) => Some(REGISTRY.all[i]),
        None => made::info(oid),
    }
}

/// Types that users make.
///
/// Their oids tell what they are, so that whoever has a value's type knows how it is kept and
/// compared without asking a catalog, which alone knows names, labels and fields: of an enum's, a
/// domain's and a composite type's oid the range and the remainder by four say which it is; its
/// array's is the next one. A range type takes four: itself, its multirange type, and their arrays.
pub mod made {
    use super::TypeInfo;
    use crate::Oid;

    /// Base types of extensions are below it: an even number, and its array the next one.
    pub const FIRST: u32 = 1 << 30;
    const FIRST_BASE: u32 = FIRST - (1 << 12);

    /// The types of extensions. A number never gets another meaning: it is kept in rows.
    pub const CITEXT: Oid = Oid(FIRST_BASE);
    pub const HSTORE: Oid = Oid(FIRST_BASE + 2);
    pub const VECTOR: Oid = Oid(FIRST_BASE + 4);

    /// What `pg_type` says of one: its length, and its category.
    const BASES: [(Oid, i16, u8); 3] = [(CITEXT, -1, b'S'), (HSTORE, -1, b'U'), (VECTOR, -1, b'U')];
    /// Domains and composite types are from here on, enums below.
    const SECOND: u32 = FIRST + (1 << 29);
    const LAST: u32 = (1 << 31) - 1;
    /// Range types and their multirange types are from here on.
    const RANGES: u32 = 1 << 31;
    /// Numbers a type takes.
    const STEP: u32 = 4;

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum MadeKind {
        Base,
        Enum,
        Domain,
        Composite,
        Range,
        Multirange,
    }

    /// Whether a user made the type.
    pub fn is_made(oid: Oid) -> bool {
        info(oid).is_some()
    }

    fn numbered(serial: Oid, from: u32, to: u32, place: u32) -> Option<Oid> {
        let oid = serial.0.checked_mul(STEP)?.checked_add(from + place)?;
        (oid <= to).then_some(Oid(oid))
    }

    /// The oid of the enum made with this number; None where numbers have run out.
    pub fn enum_oid(serial: Oid) -> Option<Oid> {
        numbered(serial, FIRST, SECOND - 1, 0)
    }

    /// That of the domain.
    pub fn domain_oid(serial: Oid) -> Option<Oid> {
        numbered(serial, SECOND, LAST, 0)
    }

    /// That of the composite type; the number is its relation's oid.
    pub fn composite_oid(serial: Oid) -> Option<Oid> {
        numbered(serial, SECOND, LAST, 2)
    }

    /// That of the range type.
    pub fn range_oid(serial: Oid) -> Option<Oid> {
        numbered(serial, RANGES, u32::MAX, 0)
    }

    /// The multirange type over a range type that a user made.
    pub fn multirange_of(range: Oid) -> Oid {
        Oid(range.0 + 2)
    }

    /// The range type that such a multirange type is over.
    pub fn range_of(multirange: Oid) -> Oid {
        Oid(multirange.0 - 2)
    }

    /// The number a type of this range was made with.
    pub fn serial(oid: Oid) -> Option<Oid> {
        if is_base(oid) || is_base(Oid(oid.0.wrapping_sub(1))) {
            return None;
        }
        let from = match oid.0 {
            ..SECOND => FIRST,
            SECOND..RANGES => SECOND,
            RANGES.. => RANGES,
        };
        kind(oid).map(|_| Oid((oid.0 - from) / STEP))
    }

    /// The array of a type that a user made.
    pub fn array_oid(element: Oid) -> Oid {
        Oid(element.0 + 1)
    }

    /// What a type is, or what its elements are (true).
    fn kind(oid: Oid) -> Option<(MadeKind, bool)> {
        if (FIRST_BASE..FIRST).contains(&oid.0) {
            let listed = BASES.iter().any(|(base, ..)| base.0 == oid.0 & !1);
            return listed.then_some((MadeKind::Base, oid.0 % 2 == 1));
        }
        if oid.0 < FIRST {
            return None;
        }
        if oid.0 >= RANGES {
            let family = match oid.0 % STEP {
                0 | 1 => MadeKind::Range,
                _ => MadeKind::Multirange,
            };
            return Some((family, oid.0 % 2 == 1));
        }
        let family = match (oid.0 < SECOND, oid.0 % STEP) {
            (true, 0 | 1) => MadeKind::Enum,
            (true, _) => return None,
            (false, 0 | 1) => MadeKind::Domain,
            (false, _) => MadeKind::Composite,
        };
        Some((family, oid.0 % 2 == 1))
    }

    /// A base type of an extension.
    pub fn is_base(oid: Oid) -> bool {
        kind(oid) == Some((MadeKind::Base, false))
    }

    pub fn is_enum(oid: Oid) -> bool {
        kind(oid) == Some((MadeKind::Enum, false))
    }

    pub fn is_domain(oid: Oid) -> bool {
        kind(oid) == Some((MadeKind::Domain, false))
    }

    pub fn is_composite(oid: Oid) -> bool {
        kind(oid) == Some((MadeKind::Composite, false))
    }

    pub fn is_range(oid: Oid) -> bool {
        kind(oid) == Some((MadeKind::Range, false))
    }

    pub fn is_multirange(oid: Oid) -> bool {
        kind(oid) == Some((MadeKind::Multirange, false))
    }

    pub(super) fn info(oid: Oid) -> Option<TypeInfo> {
        let made = kind(oid)?;
        let (len, by_value, family, category, align) = match made {
            (_, true) => (-1, false, b'b', b'A', b'i'),
            (MadeKind::Base, _) => {
                let (_, len, category) = BASES.iter().find(|(base, ..)| *base == oid)?;
                (*len, false, b'b', *category, b'i')
            }
            (MadeKind::Enum, _) => (4, true, b'e', b'E', b'i'),
            (MadeKind::Domain, _) => (-1, false, b'd', b'U', b'i'),
            (MadeKind::Composite, _) => (-1, false, b'c', b'C', b'd'),
            (MadeKind::Range, _) => (-1, false, b'r', b'R', b'i'),
            (MadeKind::Multirange, _) => (-1, false, b'm', b'R', b'i'),
        };
        let (name, array, element) = match made.1 {
            true => ("_", Oid::NONE, Oid(oid.0 - 1)),
            false => ("", array_oid(oid), Oid::NONE),
        };
        Some(TypeInfo {
            oid,
            name,
            len,
            by_value,
            kind: family,
            category,
            preferred: false,
            array,
            element,
            align,
        })
    }

    /// How a message names a type before the session that knows its name puts that in: the oid
    /// between marks that no text of ours has.
    pub fn mark(oid: Oid) -> String {
        format!("{OPEN}{}{CLOSE}", oid.0)
    }
    const OPEN: char = '\u{1}';
    const CLOSE: char = '\u{2}';

    /// A text with names in the place of marks; None where there are no marks in it.
    pub fn spelled(text: &str, mut name: impl FnMut(Oid) -> Option<String>) -> Option<String> {
        let mut rest = text;
        let mut out = String::new();
        while let Some((before, after)) = rest.split_once(OPEN) {
            let named = after.split_once(CLOSE).and_then(|(number, after)| {
                let name = name(Oid(number.parse().ok()?))?;
                Some((name, after))
            });
            out.push_str(before);
            match named {
                Some((name, after)) => {
                    out.push_str(&name);
                    rest = after;
                }
                None => {
                    out.push(OPEN);
                    rest = after;
                }
            }
        }
        if rest.len() == text.len() {
            return None;
        }
        out.push_str(rest);
        Some(out)
    }
}

/// The type named so: `pg_type`'s names and SQL's spellings (`integer`, `double precision`), in
/// lower case; `[]` after it for its array.
pub fn type_by_name(name: &str) -> Option<TypeInfo> {
    if let Some(element) = name.strip_suffix("[]") {
        return type_by_name(element).and_then(|t| type_info(t.array));
    }
    let canonical = match name {
        "integer" | "int" => "int4",
        "smallint" => "int2",
        "bigint" => "int8",
        "real" => "float4",
        "double precision" | "float" => "float8",
        "decimal" | "dec" => "numeric",
        "boolean" => "bool",
        "character varying" | "char varying" => "varchar",
        "character" => "bpchar",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "time without time zone" => "time",
        "time with time zone" => "timetz",
        "bit varying" => "varbit",
        other => other,
    };
    REGISTRY.by_name.get(canonical).map(|&i| REGISTRY.all[i])
}

/// The array type over an element type.
pub fn array_of(element: Oid) -> Option<Oid> {
    type_info(element)
        .map(|t| t.array)
        .filter(|&a| a != Oid::NONE)
}

/// The element type of an array (or vector) type.
pub fn element_of(array: Oid) -> Option<Oid> {
    type_info(array)
        .map(|t| t.element)
        .filter(|&e| e != Oid::NONE)
}

/// The type of the numbers or points that a value of a base type is made of, which subscripts
/// from 0 on tell; none for types without such parts. Names have them, too.
pub fn part_of(ty: Oid) -> Option<Oid> {
    match ty {
        oid::POINT | oid::LINE => Some(oid::FLOAT8),
        oid::LSEG | oid::BOX => Some(oid::POINT),
        _ => None,
    }
}

/// What stands between the items of an array whose items have that type, or its own.
pub fn delimiter(ty: Oid) -> u8 {
    match element_of(ty).unwrap_or(ty) {
        oid::BOX => b';',
        _ => b',',
    }
}

/// Whether the order of a type's values is a matter of collation: strings, and arrays of them.
pub fn has_collation(ty: Oid) -> bool {
    let item = element_of(ty).unwrap_or(ty);
    type_info(item).is_some_and(|info| info.category == b'S')
}

/// A type as PostgreSQL's messages and `\d` spell it: `integer`, `character varying(5)`,
/// `numeric(10,2)[]`.
pub fn format_type(ty: SqlType) -> String {
    let Some(info) = type_info(ty.oid) else {
        return if ty.oid == Oid::NONE {
            "-".into()
        } else {
            "???".into()
        };
    };
    if info.is_array() {
        return format_type(SqlType::new(info.element, ty.typmod)) + "[]";
    }
    let length = SqlType::string_length(ty.typmod);
    match ty.oid {
        oid::BOOL => "boolean".into(),
        oid::INT2 => "smallint".into(),
        oid::INT4 => "integer".into(),
        oid::INT8 => "bigint".into(),
        oid::FLOAT4 => "real".into(),
        oid::FLOAT8 => "double precision".into(),
        oid::CHAR => "\"char\"".into(),
        oid::ANY => "\"any\"".into(),
        oid::VARCHAR => match length {
            Some(n) => format!("character varying({n})"),
            None => "character varying".into(),
        },
        oid::BPCHAR => match length {
            Some(n) => format!("character({n})"),
            None if ty.typmod == -1 => "character".into(),
            None => "bpchar".into(),
        },
        oid::BIT if ty.typmod < 0 => "bit".into(),
        oid::BIT => format!("bit({})", ty.typmod),
        oid::VARBIT if ty.typmod < 0 => "bit varying".into(),
        oid::VARBIT => format!("bit varying({})", ty.typmod),
        oid::NUMERIC => match SqlType::numeric_precision(ty.typmod) {
            Some((p, s)) => format!("numeric({p},{s})"),
            None => "numeric".into(),
        },
        oid::TIME => timed("time", ty.typmod, " without time zone"),
        oid::TIMETZ => timed("time", ty.typmod, " with time zone"),
        oid::TIMESTAMP => timed("timestamp", ty.typmod, " without time zone"),
        oid::TIMESTAMPTZ => timed("timestamp", ty.typmod, " with time zone"),
        oid::INTERVAL => interval_name(ty.typmod),
        oid if made::is_base(oid) && ty.typmod >= 0 => {
            format!("{}({})", made::mark(oid), ty.typmod)
        }
        oid if made::is_made(oid) => made::mark(oid),
        _ => info.name.into(),
    }
}

/// A type's name in an error message, without its modifier.
pub fn type_name(oid: Oid) -> String {
    format_type(SqlType::plain(oid))
}

fn timed(base: &str, typmod: i32, zone: &str) -> String {
    if typmod < 0 {
        format!("{base}{zone}")
    } else {
        format!("{base}({typmod}){zone}")
    }
}

/// The fields of an interval modifier, as bits of its high half.
pub mod interval_field {
    pub const MONTH: i32 = 1 << 1;
    pub const YEAR: i32 = 1 << 2;
    pub const DAY: i32 = 1 << 3;
    pub const HOUR: i32 = 1 << 10;
    pub const MINUTE: i32 = 1 << 11;
    pub const SECOND: i32 = 1 << 12;
    /// No field named: all of them.
    pub const FULL_RANGE: i32 = 0x7fff;
    /// No precision named.
    pub const FULL_PRECISION: i32 = 0xffff;
}

impl SqlType {
    /// `interval [fields] [(precision)]`: the fields' bits and digits of a second.
    pub const fn interval_modifier(range: i32, precision: i32) -> i32 {
        (range << 16) | (precision & 0xffff)
    }
}

fn interval_name(typmod: i32) -> String {
    use interval_field::*;
    if typmod < 0 {
        return "interval".into();
    }
    const UP_TO_HOUR: i32 = DAY | HOUR;
    const UP_TO_MINUTE: i32 = DAY | HOUR | MINUTE;
    const UP_TO_SECOND: i32 = DAY | HOUR | MINUTE | SECOND;
    const YEAR_MONTH: i32 = YEAR | MONTH;
    const HOUR_MINUTE: i32 = HOUR | MINUTE;
    const HOUR_SECOND: i32 = HOUR | MINUTE | SECOND;
    const MINUTE_SECOND: i32 = MINUTE | SECOND;
    let fields = match (typmod >> 16) & 0x7fff {
        YEAR => " year",
        MONTH => " month",
        DAY => " day",
        HOUR => " hour",
        MINUTE => " minute",
        SECOND => " second",
        YEAR_MONTH => " year to month",
        UP_TO_HOUR => " day to hour",
        UP_TO_MINUTE => " day to minute",
        UP_TO_SECOND => " day to second",
        HOUR_MINUTE => " hour to minute",
        HOUR_SECOND => " hour to second",
        MINUTE_SECOND => " minute to second",
        _ => "",
    };
    match typmod & 0xffff {
        FULL_PRECISION => format!("interval{fields}"),
        precision => format!("interval{fields}({precision})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_postgresqls() {
        let cases = [
            (SqlType::INT4, "integer"),
            (SqlType::new(oid::VARCHAR, 9), "character varying(5)"),
            (
                SqlType::new(oid::NUMERIC, SqlType::numeric_modifier(10, 2)),
                "numeric(10,2)",
            ),
            (
                SqlType::new(oid::NUMERIC, SqlType::numeric_modifier(3, -2)),
                "numeric(3,-2)",
            ),
            (
                SqlType::new(oid::TIMESTAMPTZ, 3),
                "timestamp(3) with time zone",
            ),
            (SqlType::plain(oid::TEXT_ARRAY), "text[]"),
            (SqlType::plain(oid::OIDVECTOR), "oidvector"),
            (SqlType::CHAR, "\"char\""),
            (
                SqlType::new(
                    oid::INTERVAL,
                    SqlType::interval_modifier(
                        interval_field::YEAR | interval_field::MONTH,
                        0xffff,
                    ),
                ),
                "interval year to month",
            ),
        ];
        for (ty, name) in cases {
            assert_eq!(format_type(ty), name);
        }
        assert_eq!(type_by_name("double precision").unwrap().oid, oid::FLOAT8);
        assert_eq!(element_of(oid::INT2VECTOR), Some(oid::INT2));
        assert_eq!(array_of(oid::INT8), Some(oid::INT8_ARRAY));
    }
}
