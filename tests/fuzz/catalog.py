"""What a server says it can do: its types, functions, operators and casts, and the tables of a schema."""

from dataclasses import dataclass

# Functions that end or stop things, reach outside, wait, or undo the limits that the fuzzer lives by.
NEVER = {
    "set_config", "pg_reload_conf", "pg_rotate_logfile", "pg_terminate_backend", "pg_cancel_backend", "pg_promote", "pg_switch_wal", "pg_log_backend_memory_contexts",
    "lo_import", "lo_export", "pg_read_file", "pg_read_binary_file", "pg_stat_file", "pg_create_restore_point", "pg_backup_start", "pg_backup_stop",
    "pg_export_snapshot", "pg_logical_emit_message", "setseed", "lo_create", "lo_creat", "lo_from_bytea", "lo_unlink", "pg_notify", "pg_drop_replication_slot",
}
NEVER_PREFIXES = ("pg_sleep", "pg_ls_", "pg_advisory", "pg_try_advisory", "binary_upgrade", "pg_replication", "pg_create_", "pg_wal_replay", "pg_stat_reset", "pg_restore_",
                  "pg_clear_", "pg_set_", "pg_sync_", "pg_nextoid", "pg_stop_", "pg_import", "pg_logical", "lo_")
# Those whose answers belong to the server, the session or the moment.
OWN_PREFIXES = ("pg_", "txid_", "inet_", "current_", "localtime", "has_", "to_reg", "version", "now", "clock", "statement_timestamp", "transaction_timestamp", "timeofday", "random", "gen_random",
                "uuidv7", "getdatabase", "row_security", "shobj", "obj_desc", "col_desc", "format_type", "query_to", "table_to", "cursor_to", "schema_to", "database_to", "amvalidate",
                "mxid", "acl", "makeacl", "nextval", "currval", "lastval", "setval", "session_user", "user", "icu_", "unicode_", "hash", "any", "cstring", "record_", "array_shuffle",
                "array_sample", "getpgusername", "brin", "gin", "gist", "spg", "ts_", "to_ts", "phraseto", "plainto", "websearch", "numnode", "querytree", "tsvector", "tsquery", "age")
PSEUDO = {"internal", "cstring", "trigger", "event_trigger", "fdw_handler", "language_handler", "index_am_handler", "tsm_handler", "table_am_handler", "opaque", "pg_ddl_command",
          "void", "unknown", "anyrange", "anymultirange", "anycompatiblerange", "anycompatiblemultirange"}
POLYMORPHIC = {"anyelement", "anyarray", "anynonarray", "anyenum", "anycompatible", "anycompatiblearray", "anycompatiblenonarray"}


@dataclass(frozen=True)
class Function:
    name: str
    kind: str  # f, a, w
    arguments: tuple
    result: str
    returns_set: bool
    volatile: bool


@dataclass(frozen=True)
class Operator:
    name: str
    left: str  # None of a prefix operator
    right: str
    result: str


@dataclass
class Table:
    name: str
    kind: str
    columns: list  # (name, type)


FUNCTIONS = """select p.proname, p.prokind, p.provolatile, p.proretset, format_type(p.prorettype, null),
    array(select format_type(t, null) from unnest(p.proargtypes::oid[]) with ordinality u(t, i) order by i)::text
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'pg_catalog' and p.prokind in ('f', 'a', 'w')"""
OPERATORS = """select o.oprname, case when o.oprleft = 0 then null else format_type(o.oprleft, null) end, format_type(o.oprright, null), format_type(o.oprresult, null)
    from pg_operator o where o.oprright <> 0"""
TYPES = """select format_type(t.oid, null), t.oid from pg_type t join pg_namespace n on n.oid = t.typnamespace
    where n.nspname = 'pg_catalog' and t.typtype in ('b', 'r', 'm') and t.typelem = 0 and t.typname !~ '^(pg_|_|gtsvector)'"""
CASTS = "select format_type(castsource, null), format_type(casttarget, null) from pg_cast"
TABLES = """select c.relname, c.relkind, a.attname, format_type(a.atttypid, null)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
    where n.nspname = '{}' and c.relkind in ('r', 'v', 'p', 'm') and a.attnum > 0 and not a.attisdropped order by c.relname, a.attnum"""


def values(connection, sql):
    """Rows of a question of the fuzzer's own, for which a busy machine has a minute."""
    answers = connection.query(f"begin; set local statement_timeout = '60s'; {sql}; commit", 60)
    answer = answers[:3][-1]
    if answer.error:
        raise RuntimeError(f"{answer.error['M']}: {sql}")
    return [[None if v is None else v.decode(errors="replace") for v in row] for row in answer.rows]


def array(literal):
    parts = literal[1:-1].split(",") if literal != "{}" else []
    return tuple(part[1:-1].replace('\\"', '"') if part.startswith('"') else part for part in parts)


def forbidden(name):
    return name in NEVER or name.startswith(NEVER_PREFIXES)


class Catalog:
    def __init__(self, connection):
        self.types = {name: int(oid) for name, oid in values(connection, TYPES)}
        known = set(self.types)
        self.functions = []
        for name, kind, volatility, returns_set, result, arguments in values(connection, FUNCTIONS):
            f = Function(name, kind, array(arguments), result, returns_set == "t", volatility == "v")
            if not forbidden(name) and not PSEUDO & {result, *f.arguments}:
                self.functions.append(f)
        self.operators = [Operator(*o) for o in values(connection, OPERATORS) if not PSEUDO & set(o)]
        self.casts = [(a, b) for a, b in values(connection, CASTS) if a in known and b in known]
        self.index()

    def index(self):
        """By result, for whoever needs a value of a type."""
        self.by_result, self.aggregates, self.windows, self.sets, self.operators_by_result, self.casts_to = {}, {}, [], [], {}, {}
        for f in self.functions:
            if f.kind == "w":
                self.windows.append(f)
            elif f.returns_set:
                self.sets.append(f)
            else:
                (self.aggregates if f.kind == "a" else self.by_result).setdefault(f.result, []).append(f)
        for o in self.operators:
            self.operators_by_result.setdefault(o.result, []).append(o)
        for a, b in self.casts:
            self.casts_to.setdefault(b, []).append(a)

    def shared_with(self, other):
        """Only what the other has too, and what has one answer whoever is asked."""
        theirs = {(f.name, f.arguments, f.result) for f in other.functions}
        self.types = {t: oid for t, oid in self.types.items() if t in other.types}
        self.functions = [f for f in self.functions
                          if (f.name, f.arguments, f.result) in theirs and not f.volatile and not f.name.startswith(OWN_PREFIXES)]
        self.operators = [o for o in self.operators if o in set(other.operators)]
        self.casts = [c for c in self.casts if c in set(other.casts)]
        self.index()
        return self


def tables(connection, schema):
    found = {}
    for name, kind, column, type_ in values(connection, TABLES.format(schema)):
        found.setdefault(name, Table(name, kind, [])).columns.append((column, type_))
    return list(found.values())
