//! Functions of the system that are written in SQL: `information_schema`'s helpers, which drivers call, and those that give a
//! system view's rows. They are routines like users' own, in every catalog from the start, and never stored.

use throng_types::{Oid, oid};

use crate::catalog::builtin::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::catalog::{ArgDef, ArgMode, RoutineBody, RoutineDef, RoutineKind, builtin};
use crate::func::Volatility;

type Arg = (ArgMode, &'static str, Oid);

struct Written {
    oid: u32,
    schema: Oid,
    name: &'static str,
    args: &'static [Arg],
    ret: Oid,
    /// 0: one value.
    rows: f64,
    volatility: Volatility,
    body: &'static str,
}

const fn given(name: &'static str, ty: Oid) -> Arg {
    (ArgMode::In, name, ty)
}

const fn out(name: &'static str, ty: Oid) -> Arg {
    (ArgMode::Out, name, ty)
}

/// Of a type and its modifier.
const OF_TYPE: &[Arg] = &[given("typid", oid::OID), given("typmod", oid::INT4)];

/// What a column of that type tells of itself.
const fn told(oid: u32, name: &'static str, ret: Oid, body: &'static str) -> Written {
    Written {
        oid,
        schema: INFORMATION_SCHEMA,
        name,
        args: OF_TYPE,
        ret,
        rows: 0.0,
        volatility: Volatility::Immutable,
        body,
    }
}

/// The rows of a system view.
const fn view(
    oid: u32,
    name: &'static str,
    args: &'static [Arg],
    rows: f64,
    body: &'static str,
) -> Written {
    Written {
        oid,
        schema: PG_CATALOG,
        name,
        args,
        ret: oid::RECORD,
        rows,
        volatility: Volatility::Stable,
        body,
    }
}

static WRITTEN: &[Written] = &[
    Written {
        oid: 12422,
        schema: INFORMATION_SCHEMA,
        name: "_pg_expandarray",
        args: &[
            given("", oid::ANYARRAY),
            out("x", oid::ANYELEMENT),
            out("n", oid::INT4),
        ],
        ret: oid::RECORD,
        rows: 100.0,
        volatility: Volatility::Immutable,
        body: "select $1[s], s - pg_catalog.array_lower($1, 1) + 1 \
               from pg_catalog.generate_series(pg_catalog.array_lower($1, 1), pg_catalog.array_upper($1, 1)) as g(s)",
    },
    Written {
        oid: 12423,
        schema: INFORMATION_SCHEMA,
        name: "_pg_index_position",
        args: &[given("", oid::OID), given("", oid::INT2)],
        ret: oid::INT4,
        rows: 0.0,
        volatility: Volatility::Stable,
        body: "select k.n from pg_catalog.pg_index i, information_schema._pg_expandarray(i.indkey) k \
               where i.indexrelid = $1 and k.x = $2",
    },
    told(
        12426,
        "_pg_char_max_length",
        oid::INT4,
        "select case when $2 = -1 then null when $1 in (1042, 1043) then $2 - 4 when $1 in (1560, 1562) then $2 end",
    ),
    told(
        12427,
        "_pg_char_octet_length",
        oid::INT4,
        "select case when $1 in (25, 1042, 1043) then case when $2 = -1 then 1073741824 \
         else information_schema._pg_char_max_length($1, $2) * 4 end end",
    ),
    told(
        12429,
        "_pg_numeric_precision",
        oid::INT4,
        "select case $1 when 21 then 16 when 23 then 32 when 20 then 64 when 700 then 24 when 701 then 53 \
         when 1700 then case when $2 = -1 then null else (($2 - 4) >> 16) & 65535 end end",
    ),
    told(
        12430,
        "_pg_numeric_precision_radix",
        oid::INT4,
        "select case when $1 in (20, 21, 23, 700, 701) then 2 when $1 = 1700 then 10 end",
    ),
    told(
        12431,
        "_pg_numeric_scale",
        oid::INT4,
        "select case when $1 in (20, 21, 23) then 0 \
         when $1 = 1700 then case when $2 = -1 then null else ($2 - 4) & 65535 end end",
    ),
    told(
        12432,
        "_pg_datetime_precision",
        oid::INT4,
        "select case when $1 = 1082 then 0 \
         when $1 in (1083, 1114, 1184, 1266) then case when $2 < 0 then 6 else $2 end \
         when $1 = 1186 then case when $2 < 0 or $2 & 65535 = 65535 then 6 else $2 & 65535 end end",
    ),
    told(
        12433,
        "_pg_interval_type",
        oid::TEXT,
        "select case when $1 = 1186 then pg_catalog.upper(pg_catalog.substring(\
         pg_catalog.format_type($1, $2), '^interval[()0-9]* (.+)$')) end",
    ),
    view(
        2856,
        "pg_timezone_names",
        &[
            out("name", oid::TEXT),
            out("abbrev", oid::TEXT),
            out("utc_offset", oid::INTERVAL),
            out("is_dst", oid::BOOL),
        ],
        1000.0,
        "select name, abbrev, utc_offset, is_dst from pg_catalog.pg_timezone_names",
    ),
    view(
        2599,
        "pg_timezone_abbrevs_abbrevs",
        &[
            out("abbrev", oid::TEXT),
            out("utc_offset", oid::INTERVAL),
            out("is_dst", oid::BOOL),
        ],
        1000.0,
        "select abbrev, utc_offset, is_dst from pg_catalog.pg_timezone_abbrevs",
    ),
    view(
        2511,
        "pg_cursor",
        &[
            out("name", oid::TEXT),
            out("statement", oid::TEXT),
            out("is_holdable", oid::BOOL),
            out("is_binary", oid::BOOL),
            out("is_scrollable", oid::BOOL),
            out("creation_time", oid::TIMESTAMPTZ),
        ],
        1000.0,
        "select name, statement, is_holdable, is_binary, is_scrollable, creation_time from pg_catalog.pg_cursors",
    ),
];

fn definition(written: &Written) -> RoutineDef {
    let arg = |&(mode, name, ty): &Arg| ArgDef {
        name: name.to_owned(),
        ty,
        domain: None,
        mode,
        default: None,
    };
    RoutineDef {
        oid: Oid(written.oid),
        schema: written.schema,
        name: written.name.to_owned(),
        owner: builtin::SUPERUSER,
        kind: RoutineKind::Function,
        args: written.args.iter().map(arg).collect(),
        ret: written.ret,
        ret_domain: None,
        row_of: None,
        set: written.rows > 0.0,
        strict: true,
        volatility: written.volatility,
        security_definer: false,
        leakproof: false,
        parallel: 's',
        cost: 100.0,
        rows: written.rows,
        settings: Vec::new(),
        body: RoutineBody::Text(written.body.to_owned()),
        uses: Vec::new(),
    }
}

/// All of them.
pub fn definitions() -> impl Iterator<Item = RoutineDef> {
    WRITTEN.iter().map(definition)
}
