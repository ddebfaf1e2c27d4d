//! Functions of the system that are written in SQL: `information_schema`'s helpers, which drivers
//! call, and those that give a system view's rows. They are routines like users' own, in every
//! catalog from the start, and never stored.

use throng_types::{Oid, oid};

use crate::builtin::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::{ArgDef, ArgMode, RoutineBody, RoutineDef, RoutineKind, builtin};
use throng_values::func::Volatility;

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

/// Those of what changes while a statement runs.
const fn volatile_view(
    oid: u32,
    name: &'static str,
    args: &'static [Arg],
    rows: f64,
    body: &'static str,
) -> Written {
    Written {
        volatility: Volatility::Volatile,
        ..view(oid, name, args, rows, body)
    }
}

const OF_SESSION: &[Arg] = &[given("", oid::INT4)];

/// What a session tells of itself; its number is its process id.
const fn of_session(oid: u32, name: &'static str, ret: Oid, body: &'static str) -> Written {
    Written {
        oid,
        schema: PG_CATALOG,
        name,
        args: OF_SESSION,
        ret,
        rows: 0.0,
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
    volatile_view(
        1371,
        "pg_lock_status",
        &[
            out("locktype", oid::TEXT),
            out("database", oid::OID),
            out("relation", oid::OID),
            out("page", oid::INT4),
            out("tuple", oid::INT2),
            out("virtualxid", oid::TEXT),
            out("transactionid", oid::XID),
            out("classid", oid::OID),
            out("objid", oid::OID),
            out("objsubid", oid::INT2),
            out("virtualtransaction", oid::TEXT),
            out("pid", oid::INT4),
            out("mode", oid::TEXT),
            out("granted", oid::BOOL),
            out("fastpath", oid::BOOL),
            out("waitstart", oid::TIMESTAMPTZ),
        ],
        1000.0,
        "select locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid, virtualtransaction, pid, mode, granted, fastpath, waitstart from pg_catalog.pg_locks",
    ),
    view(
        2510,
        "pg_prepared_statement",
        &[
            out("name", oid::TEXT),
            out("statement", oid::TEXT),
            out("prepare_time", oid::TIMESTAMPTZ),
            out("parameter_types", oid::REGTYPE_ARRAY),
            out("result_types", oid::REGTYPE_ARRAY),
            out("from_sql", oid::BOOL),
            out("generic_plans", oid::INT8),
            out("custom_plans", oid::INT8),
        ],
        1000.0,
        "select name, statement, prepare_time, parameter_types, result_types, from_sql, generic_plans, custom_plans from pg_catalog.pg_prepared_statements",
    ),
    view(
        2084,
        "pg_show_all_settings",
        &[
            out("name", oid::TEXT),
            out("setting", oid::TEXT),
            out("unit", oid::TEXT),
            out("category", oid::TEXT),
            out("short_desc", oid::TEXT),
            out("extra_desc", oid::TEXT),
            out("context", oid::TEXT),
            out("vartype", oid::TEXT),
            out("source", oid::TEXT),
            out("min_val", oid::TEXT),
            out("max_val", oid::TEXT),
            out("enumvals", oid::TEXT_ARRAY),
            out("boot_val", oid::TEXT),
            out("reset_val", oid::TEXT),
            out("sourcefile", oid::TEXT),
            out("sourceline", oid::INT4),
            out("pending_restart", oid::BOOL),
        ],
        1000.0,
        "select name, setting, unit, category, short_desc, extra_desc, context, vartype, source, min_val, max_val, enumvals, boot_val, reset_val, sourcefile, sourceline, pending_restart from pg_catalog.pg_settings",
    ),
    Written {
        oid: 1936,
        schema: PG_CATALOG,
        name: "pg_stat_get_backend_idset",
        args: &[],
        ret: oid::INT4,
        rows: 100.0,
        volatility: Volatility::Stable,
        body: "select pid from pg_catalog.pg_stat_activity",
    },
    of_session(
        1937,
        "pg_stat_get_backend_pid",
        oid::INT4,
        "select pid from pg_catalog.pg_stat_activity where pid = $1",
    ),
    of_session(
        1938,
        "pg_stat_get_backend_dbid",
        oid::OID,
        "select datid from pg_catalog.pg_stat_activity where pid = $1",
    ),
    of_session(
        1939,
        "pg_stat_get_backend_userid",
        oid::OID,
        "select usesysid from pg_catalog.pg_stat_activity where pid = $1",
    ),
    of_session(
        1940,
        "pg_stat_get_backend_activity",
        oid::TEXT,
        "select case when exists (select from pg_catalog.pg_stat_activity where pid = $1) \
         then (select query from pg_catalog.pg_stat_activity where pid = $1) \
         else '<backend information not available>' end",
    ),
    of_session(
        2853,
        "pg_stat_get_backend_wait_event",
        oid::TEXT,
        "select case when exists (select from pg_catalog.pg_stat_activity where pid = $1) \
         then (select wait_event from pg_catalog.pg_stat_activity where pid = $1) \
         else '<backend information not available>' end",
    ),
    of_session(
        2788,
        "pg_stat_get_backend_wait_event_type",
        oid::TEXT,
        "select case when exists (select from pg_catalog.pg_stat_activity where pid = $1) \
         then (select wait_event_type from pg_catalog.pg_stat_activity where pid = $1) \
         else '<backend information not available>' end",
    ),
    of_session(
        2094,
        "pg_stat_get_backend_activity_start",
        oid::TIMESTAMPTZ,
        "select query_start from pg_catalog.pg_stat_activity where pid = $1",
    ),
    of_session(
        2857,
        "pg_stat_get_backend_xact_start",
        oid::TIMESTAMPTZ,
        "select xact_start from pg_catalog.pg_stat_activity where pid = $1",
    ),
    of_session(
        1391,
        "pg_stat_get_backend_start",
        oid::TIMESTAMPTZ,
        "select backend_start from pg_catalog.pg_stat_activity where pid = $1",
    ),
    of_session(
        1393,
        "pg_stat_get_backend_client_port",
        oid::INT4,
        "select client_port from pg_catalog.pg_stat_activity where pid = $1",
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
