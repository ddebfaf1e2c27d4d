"""psycopg 3, blocking, asynchronous and pooled, as programs use it."""

import asyncio
import datetime as dt
import ipaddress
import os
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path

import psycopg
from psycopg import errors, sql
from psycopg.rows import class_row, dict_row, namedtuple_row, scalar_row
from psycopg.types import TypeInfo
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.enum import EnumInfo, register_enum
from psycopg.types.json import Json, Jsonb
from psycopg.types.multirange import Multirange
from psycopg.types.range import Range
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

sys.path.append(str(Path(__file__).resolve().parent.parent))
from report import Report, same  # noqa: E402

check = Report()
UTC = dt.timezone.utc


def connect(**options):
    return psycopg.connect("", **{"autocommit": True, **options})


@contextmanager
def table(columns, name="made", connection=None):
    with connect() as own:
        own.execute(f"drop table if exists {name} cascade")
        own.execute(f"create table {name} ({columns})")
        try:
            yield own
        finally:
            own.execute(f"drop table if exists {name} cascade")


@contextmanager
def refused(sqlstate, **diagnostics):
    """The statement fails with this SQLSTATE and these fields of the error."""
    try:
        yield
    except psycopg.Error as e:
        same(e.sqlstate, sqlstate)
        for field, wanted in diagnostics.items():
            got = getattr(e.diag, field)
            assert got == wanted, f"{field}: got {got!r}, wanted {wanted!r}"
    else:
        raise AssertionError(f"not refused with {sqlstate}")


# Logging in


@check("login: a wrong password, an unknown role and database")
def login():
    for options, state in [({"password": "wrong"}, "28P01"), ({"user": "nobody"}, "28P01"), ({"dbname": "nowhere"}, "3D000")]:
        try:
            connect(**options)
        except psycopg.OperationalError as e:
            assert state in str(e.sqlstate) or {"28P01": "password authentication failed", "3D000": "does not exist"}[state] in str(e), e
        else:
            raise AssertionError(options)


@check("login: TLS, verified, with channel binding")
def tls():
    root = os.environ.get("PGSSLROOTCERT")
    if not root:
        return
    with connect(sslmode="verify-full", sslrootcert=root, channel_binding="require") as c:
        assert c.pgconn.ssl_in_use
        same(c.execute("select ssl from pg_stat_ssl where pid = pg_backend_pid()").fetchone(), (True,))


@check("login: settings of the connection string")
def options():
    with connect(options="-c statement_timeout=1234 -c search_path=pg_catalog", application_name="shop") as c:
        same(c.execute("show statement_timeout").fetchone(), ("1234ms",))
        same(c.execute("show search_path").fetchone(), ("pg_catalog",))
        same(c.execute("select application_name from pg_stat_activity where pid = pg_backend_pid()").fetchone(), ("shop",))
        same(c.info.parameter_status("application_name"), "shop")
        for name in ("server_version", "server_encoding", "client_encoding", "DateStyle", "TimeZone", "integer_datetimes",
                     "standard_conforming_strings", "IntervalStyle", "is_superuser", "session_authorization",
                     "default_transaction_read_only", "in_hot_standby", "scram_iterations", "search_path"):
            assert c.info.parameter_status(name) is not None, name
        assert c.info.server_version >= 180000
        c.execute("set timezone to 'Europe/Rome'")
        same(c.info.parameter_status("TimeZone"), "Europe/Rome")
        same(str(c.execute("select '2024-07-01 12:00+00'::timestamptz").fetchone()[0].tzinfo), "Europe/Rome")


@check("login: client_encoding latin1")
def latin1():
    with connect(client_encoding="latin1") as c:
        same(c.info.encoding, "iso8859-1")
        same(c.execute("select 'h\u00e9' || %s, length(%s)", ["\u00e8", "\u00e8"]).fetchone(), ("h\u00e9\u00e8", 1))
        with refused("22P05"):
            c.execute("select chr(8364)")


# Values

VALUES = [
    ("int2", [-32768, 32767]), ("int4", [2**31 - 1, -(2**31)]), ("int8", [-(2**63), 2**63 - 1]),
    ("float4", [1.5, float("inf")]), ("float8", [0.1, -float("inf"), 5e-324]),
    ("numeric", [Decimal("12345678901234567890.123456789"), Decimal("-0.00001"), Decimal("0.00"), Decimal("1E+5"),
                 Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity")]),
    ("bool", [True, False]), ("text", ["h\u00e9'llo \\ \n\t\u20ac \U0001f600", ""]), ("varchar", ["vc"]), ("bpchar(4)", ["abcd"]), ("name", ["n"]),
    ("bytea", [b"\x00\xff\\'", b"", bytes(range(256))]), ("date", [dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    ("time", [dt.time(12, 34, 56, 789000), dt.time(0, 0)]), ("timetz", [dt.time(1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2)))]),
    ("timestamp", [dt.datetime(2024, 2, 29, 12, 34, 56, 123456), dt.datetime(1, 1, 1)]),
    ("timestamptz", [dt.datetime(2024, 2, 29, 12, 0, tzinfo=UTC), dt.datetime(1900, 1, 1, tzinfo=UTC)]),
    ("interval", [dt.timedelta(days=3, hours=2, microseconds=7), dt.timedelta(days=-1), dt.timedelta(0)]),
    ("uuid", [uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")]),
    ("int4[]", [[1, None, 3], [], [[1, 2], [3, 4]]]), ("text[]", [["a", None, 'q"\\,{}', "", "NULL"]]), ("numeric[]", [[Decimal("1.5"), None]]),
    ("timestamptz[]", [[dt.datetime(2024, 2, 29, 12, 0, tzinfo=UTC), None]]), ("uuid[]", [[uuid.UUID(int=5)]]), ("bytea[]", [[b"\x00", None]]),
    ("date[]", [[dt.date(2024, 2, 29)]]), ("bool[]", [[True, None, False]]), ("float8[]", [[0.5, None]]), ("oid", [4294967295]),
]


def equal(a, b):
    return a == b or (a != a and b != b)


def round_trip(mark, binary):
    columns = ", ".join(f"c{i} {kind}" for i, (kind, _) in enumerate(VALUES))
    with table(columns) as c:
        cursor = c.cursor(binary=binary)
        for kind, values in VALUES:
            for value in [*values, None]:
                got = cursor.execute(f"select {mark}::{kind}", [value]).fetchone()[0]
                assert equal(got, value), f"{kind}: sent {value!r}, got {got!r}"
        marks = ", ".join(f"{mark}::{kind}" for kind, _ in VALUES)
        for row in ([values[0] for _, values in VALUES], [values[-1] for _, values in VALUES], [None] * len(VALUES)):
            got = cursor.execute(f"insert into made values ({marks}) returning *", row).fetchone()
            for (kind, _), sent, back in zip(VALUES, row, got, strict=True):
                assert equal(sent, back), f"{kind}: kept {sent!r}, got {back!r}"
            cursor.execute("delete from made")


check("values: parameters and results in text")(lambda: round_trip("%t", False))
check("values: parameters and results in binary")(lambda: round_trip("%b", True))
check("values: the driver's choice")(lambda: round_trip("%s", False))


@check("values: json and jsonb")
def json():
    document = {"a": [1, 2.5, None, {"b": "\u20ac\"\\"}], "c": True}
    with table("id int, j json, b jsonb") as c:
        for binary in (False, True):
            c.execute("delete from made")
            c.execute("insert into made values (1, %s, %s), (2, null, 'null')", [Json(document), Jsonb(document)], binary=binary)
            rows = c.execute("select j, b from made order by id", binary=binary).fetchall()
            same(rows, [(document, document), (None, None)])
        same(c.execute("select b->'a'->3->>'b', b @> %s, b ? 'c' from made where id = 1", [Jsonb({"c": True})]).fetchone(), ("\u20ac\"\\", True, True))
        same(c.execute("update made set b = b || %s where id = 1 returning b->>'d'", [Jsonb({"d": 1})]).fetchone(), ("1",))
        same(c.execute("select jsonb_agg(id order by id) from made").fetchone(), ([1, 2],))
        same(c.execute("select %s::jsonb", [Jsonb([None, "x"])]).fetchone(), ([None, "x"],))
        same(c.execute("select %s::jsonb[]", [[Jsonb({"a": 1}), None]]).fetchone(), ([{"a": 1}, None],))


@check("values: jsonpath")
def jsonpath():
    with connect() as c:
        same(c.execute("select jsonb_path_query_first(%s, '$.a[1]')", [Jsonb({"a": [1, 2]})]).fetchone(), (2,))


@check("values: inet and cidr")
def network():
    with connect() as c:
        for value in (ipaddress.ip_address("10.0.0.1"), ipaddress.ip_interface("10.0.0.1/8"), ipaddress.ip_address("::1")):
            same(c.execute("select %s::inet", [value]).fetchone(), (value,))
        network = ipaddress.ip_network("10.0.0.0/8")
        same(c.execute("select %b::cidr", [network], binary=True).fetchone(), (network,))


@check("values: ranges and multiranges")
def ranges():
    with connect() as c:
        value = Range(dt.date(2024, 1, 1), dt.date(2024, 2, 1))
        same(c.execute("select %s::daterange", [value]).fetchone(), (value,))
        value = Multirange([Range(1, 5), Range(8, 9)])
        same(c.execute("select %s::int4multirange", [value]).fetchone(), (value,))


class Mood(Enum):
    sad = 1
    happy = 2


@check("values: an enum registered from the catalog")
def enum():
    with connect() as c:
        c.execute("drop table if exists m; drop type if exists mood; create type mood as enum ('sad', 'happy')")
        try:
            register_enum(EnumInfo.fetch(c, "mood"), c, Mood)
            c.execute("create table m (v mood, vs mood[])")
            for binary in (False, True):
                c.execute("insert into m values (%s, %s)", [Mood.happy, [Mood.sad, None]], binary=binary)
                same(c.execute("select v, vs from m", binary=binary).fetchone(), (Mood.happy, [Mood.sad, None]))
            with refused("22P02"):
                c.execute("insert into m values ('glad')")
            info = TypeInfo.fetch(c, "pg_catalog.int4")
            same((info.oid, info.array_oid), (23, 1007))
        finally:
            c.execute("drop table if exists m; drop type mood")


@check("values: a composite registered from the catalog")
def composite():
    with connect() as c:
        c.execute("drop type if exists pair; create type pair as (a int, b text)")
        try:
            info = CompositeInfo.fetch(c, "pair")
            register_composite(info, c)
            same(c.execute("select row(1, 'x')::pair").fetchone()[0], info.python_type(1, "x"))
            same(c.execute("select %s", [info.python_type(1, "x")]).fetchone()[0], info.python_type(1, "x"))
        finally:
            c.execute("drop type pair")


@check("values: rows of a table as one value")
def whole_rows():
    with table("id int, v text") as c:
        c.execute("insert into made values (1, 'a,b'), (2, null)")
        same(c.execute("select m::text from made m order by id").fetchall(), [('(1,"a,b")',), ("(2,)",)])
        same(c.execute("select row(1, 'x'::text, null)", binary=True).fetchone(), ((1, "x", None),))
        same(c.execute("select array_agg(id), string_agg(v, ';') from made").fetchone(), ([1, 2], "a,b"))


@check("values: large ones, 20 MB there and back")
def large():
    text, raw = "h\u00e9llo worl" * 2_000_000, os.urandom(1 << 20) * 20
    with table("id int primary key, v text, raw bytea") as c:
        c.execute("insert into made values (1, %s, %b)", [text, raw])
        for binary in (False, True):
            v, r = c.execute("select v, raw from made where id = 1", binary=binary).fetchone()
            assert v == text and r == raw
        same(c.execute("select length(v), octet_length(v), length(raw), md5(raw) from made").fetchone()[:3], (20_000_000, 22_000_000, 20 << 20))
        c.execute("update made set v = v || 'x'")
        same(c.execute("select substr(v, 20000000) from made").fetchone(), ("lx",))


@check("values: the columns' descriptions")
def description():
    with table("id int primary key, n numeric(7,2), v varchar(9), a int[]") as c:
        told = c.execute("select id, n, v, a, 1 as one, null as nothing, 'x' as word from made").description
        same([(d.name, d.type_code, d.precision, d.scale, d.display_size, d.internal_size) for d in told], [
            ("id", 23, None, None, None, 4), ("n", 1700, 7, 2, None, None), ("v", 1043, None, None, 9, None),
            ("a", 1007, None, None, None, None), ("one", 23, None, None, None, 4), ("nothing", 25, None, None, None, None),
            ("word", 25, None, None, None, None)])
        result = c.execute("select id, n + 1, v from made").pgresult
        number = c.execute("select 'made'::regclass::oid").fetchone()[0]
        same([(result.ftable(i), result.ftablecol(i)) for i in range(3)], [(number, 1), (0, 0), (number, 3)])


@check("rows: dictionaries, classes and scalars")
def row_factories():
    @dataclass
    class Person:
        id: int
        name: str

    with connect() as c:
        same(c.cursor(row_factory=dict_row).execute("select 1 as id, 'a' as name").fetchone(), {"id": 1, "name": "a"})
        same(c.cursor(row_factory=class_row(Person)).execute("select 1 as id, 'a' as name").fetchone(), Person(1, "a"))
        same(c.cursor(row_factory=namedtuple_row).execute("select 1 as id, 'a' as name").fetchone().name, "a")
        same(c.cursor(row_factory=scalar_row).execute("select i from generate_series(1, 3) i").fetchall(), [1, 2, 3])


@check("rows: many, by a cursor on the server")
def server_cursor():
    with connect(autocommit=False) as c:
        with c.cursor("named") as cursor:
            cursor.itersize = 1000
            cursor.execute("select i, repeat('x', 50) from generate_series(1, %s) i", [100_000])
            same(sum(row[0] for row in cursor), 100_000 * 100_001 // 2)


@check("rows: a scrollable cursor, back and forth")
def scrollable():
    with table("id int primary key") as made, connect(autocommit=False) as c:
        made.execute("insert into made select generate_series(1, 100)")
        with c.cursor("scrolling", scrollable=True) as cursor:
            cursor.execute("select id from made order by id")
            same(cursor.fetchmany(3), [(1,), (2,), (3,)])
            cursor.scroll(-2)
            same(cursor.fetchone(), (2,))
            cursor.scroll(50, mode="absolute")
            same(cursor.fetchone(), (51,))
            cursor.scroll(0, mode="absolute")
            same(len(cursor.fetchall()), 100)


@check("rows: a cursor that outlives its transaction")
def with_hold():
    with connect(autocommit=False) as c:
        cursor = c.cursor("held", withhold=True)
        cursor.execute("select i from generate_series(1, 10) i")
        same(cursor.fetchone(), (1,))
        c.commit()
        same(len(cursor.fetchall()), 9)
        cursor.close()


@check("rows: UPDATE WHERE CURRENT OF")
def current_of():
    with table("id int primary key, v int") as made, connect(autocommit=False) as c:
        made.execute("insert into made select i, 0 from generate_series(1, 5) i")
        with c.cursor("walk") as cursor:
            cursor.execute("select id from made order by id for update")
            for row in cursor.fetchmany(2):
                pass
            c.execute("update made set v = 9 where current of walk")
        c.commit()
        same(c.execute("select id from made where v = 9").fetchall(), [(2,)])


@check("rows: streamed one by one and in chunks")
def stream():
    with connect() as c:
        same(sum(row[0] for row in c.cursor().stream("select i from generate_series(1, 10000) i")), 50_005_000)
        same(sum(row[0] for row in c.cursor().stream("select i from generate_series(1, 10000) i", size=128)), 50_005_000)
        with refused("22012"):
            for _ in c.cursor().stream("select 1 / (500 - i) from generate_series(1, 1000) i"):
                pass
        same(c.execute("select 1").fetchone(), (1,))


@check("rows: several result sets of one string")
def result_sets():
    with connect() as c:
        cursor = c.execute("select 1; select 2, 3; set work_mem = '8MB'; select 4")
        got = []
        while True:
            got.append(cursor.fetchall() if cursor.description else cursor.statusmessage)
            if not cursor.nextset():
                break
        same(got, [[(1,)], [(2, 3)], "SET", [(4,)]])


@check("rows: of a temporary table")
def temporary_table():
    with table("id int primary key, v int") as c:
        c.execute("create temp table staged (like made) on commit preserve rows")
        c.cursor().executemany("insert into staged values (%s, %s)", [(i, i) for i in range(10)])
        c.execute("insert into made select * from staged on conflict (id) do update set v = excluded.v")
        same(c.execute("select count(*) from made").fetchone(), (10,))
        with connect() as other, refused("42P01"):
            other.execute("select * from staged")
        with c.transaction():
            c.execute("create temp table brief (a int) on commit drop")
        with refused("42P01"):
            c.execute("select * from brief")


@check("rows: status messages and counts")
def status():
    with table("id int") as c:
        for statement, message, count in [
            ("insert into made select generate_series(1, 5)", "INSERT 0 5", 5), ("update made set id = id + 10 where id > 2", "UPDATE 3", 3),
            ("delete from made where id > 10", "DELETE 3", 3), ("select * from made", "SELECT 2", 2), ("truncate made", "TRUNCATE TABLE", -1),
            ("begin", "BEGIN", -1), ("savepoint a", "SAVEPOINT", -1), ("release a", "RELEASE", -1), ("commit", "COMMIT", -1),
            ("set work_mem = '8MB'", "SET", -1), ("create table made2 as select 1 as a", "SELECT 1", 1), ("drop table made2", "DROP TABLE", -1),
            ("vacuum made", "VACUUM", -1), ("analyze made", "ANALYZE", -1), ("show work_mem", "SHOW", 1), ("discard all", "DISCARD ALL", -1),
        ]:
            cursor = c.execute(statement)
            assert (cursor.statusmessage, cursor.rowcount) == (message, count), (statement, cursor.statusmessage, cursor.rowcount)


# Statements


@check("prepared: reused, seen in the catalog, replanned after DDL")
def prepared():
    with table("id int primary key, v text") as c:
        c.prepare_threshold = 0
        for i in range(300):
            c.execute("insert into made values (%s, %s)", [i, str(i)])
        for i in range(300):
            same(c.execute("select v from made where id = %s", [i]).fetchone(), (str(i),))
        names = c.execute("select name, statement, parameter_types::text, from_sql from pg_prepared_statements order by name").fetchall()
        assert any("select v from made where id = $1" in n[1] for n in names), names
        c.execute("alter table made add w int default 5")
        same(c.execute("select v from made where id = %s", [7]).fetchone(), ("7",))
        c.execute("select * from made where id = 1")
        c.execute("alter table made drop v")
        # The driver lets go of its statements after such a change.
        same(c.execute("select * from made where id = 1").fetchone(), (1, 5))
        c.execute("prepare whole as select * from made where id = 1")
        with connect() as other:
            other.execute("alter table made add x int")
        with refused("0A000", message_primary="cached plan must not change result type"):
            c.execute("execute whole")


@check("prepared: hundreds, the least used deallocated")
def many_prepared():
    with connect(prepare_threshold=0) as c:
        c.prepared_max = 50
        for i in range(300):
            same(c.execute(f"select {i} + %s::int", [1]).fetchone(), (i + 1,))
        count = c.execute("select count(*) from pg_prepared_statements").fetchone()[0]
        assert count <= 51, count
        c.execute("discard all")


@check("prepared: by SQL, PREPARE EXECUTE DEALLOCATE")
def prepared_by_sql():
    with connect() as c:
        c.execute("prepare p (int, text) as select $1 + 1, $2 || '!'")
        same(c.execute("execute p (41, 'x')").fetchone(), (42, "x!"))
        c.execute("deallocate p")
        with refused("26000"):
            c.execute("execute p (1, 'x')")


@check("prepared: types of parameters are inferred")
def inferred():
    with table("id int, v varchar(5), n numeric, at timestamptz, t text[]") as c:
        c.execute("insert into made values (%s, %s, %s, %s, %s)", [1, "abc", 2, "2024-01-01", ["a"]])
        same(c.execute("select id from made where v = %s and n > %s and at < %s and %s = any(t)", ["abc", 1.5, dt.date(2025, 1, 1), "a"]).fetchone(), (1,))
        same(c.execute("select id from made where id = any(%s)", [[1, 2]]).fetchone(), (1,))
        same(c.execute("select id from made limit %s offset %s", [1, 0]).fetchall(), [(1,)])
        same(c.execute("select coalesce(%s, 'x'), concat(%s::text, 1)", [None, "a"]).fetchone(), ("x", "a1"))
        same(c.execute("select at + %s * interval '1 day' > %s from made", [1, dt.datetime(2020, 1, 1, tzinfo=UTC)]).fetchone(), (True,))
        same(c.execute("select case when %s then %s else %s end", [True, "a", "b"]).fetchone(), ("a",))
        same(c.execute("select * from unnest(%s::int[], %s::text[]) as u(a, b)", [[1, 2], ["x", "y"]]).fetchall(), [(1, "x"), (2, "y")])
        same(c.execute("select jsonb_build_object('a', %s::text)", ["x"]).fetchone(), ({"a": "x"},))
        with refused("42P18"):
            c.execute("select %s is null", [None])


@check("statements: client-side binding and raw marks")
def other_cursors():
    with connect() as c:
        cursor = psycopg.ClientCursor(c)
        same(cursor.execute("select %s, %s, %s::int[]", ["it's \\", dt.date(2024, 1, 1), [1, 2]]).fetchone(), ("it's \\", dt.date(2024, 1, 1), [1, 2]))
        same(cursor.execute("select %s; select %s", [1, 2]).fetchone(), (1,))
        same(psycopg.RawCursor(c).execute("select $1::int + $1", [2]).fetchone(), (4,))
        query = sql.SQL("select {} as {}").format(sql.Literal("x'y"), sql.Identifier('q"uoted'))
        same(c.execute(query).description[0].name, 'q"uoted')


@check("statements: executemany, with rows returned")
def executemany():
    with table("id serial primary key, v text") as c:
        cursor = c.cursor()
        cursor.executemany("insert into made (v) values (%s)", [(str(i),) for i in range(1000)])
        same(cursor.rowcount, 1000)
        cursor.executemany("insert into made (v) values (%s) returning id", [("a",), ("b",)], returning=True)
        got = [cursor.fetchone()]
        while cursor.nextset():
            got.append(cursor.fetchone())
        same(got, [(1001,), (1002,)])


@check("statements: pipeline, with an error in the middle")
def pipeline():
    with table("id int primary key") as c:
        with c.pipeline() as p:
            cursors = [c.execute("insert into made values (%s) returning id", [i]) for i in range(200)]
            p.sync()
            same([cursor.fetchone()[0] for cursor in cursors], list(range(200)))
        with refused("23505"):
            with c.pipeline():
                c.execute("insert into made values (1000)")
                c.execute("insert into made values (5)")
                c.execute("insert into made values (1001)")
        same(c.execute("select count(*) from made where id >= 1000").fetchone(), (0,))
        with c.pipeline() as p:
            with c.transaction():
                c.execute("insert into made values (2000)")
            try:
                with c.transaction():
                    c.execute("insert into made values (2001)")
                    c.execute("select 1/0")
                    p.sync()
            except errors.DivisionByZero:
                pass
        same(c.execute("select id from made where id >= 2000").fetchall(), [(2000,)])


# Transactions


@check("transactions: nested, rolled back, retried")
def transactions():
    with table("id int primary key, v int") as made, connect(autocommit=False) as c:
        with c.transaction():
            c.execute("insert into made values (1, 0)")
            try:
                with c.transaction("inner"):
                    c.execute("insert into made values (2, 0)")
                    c.execute("select 1/0")
            except errors.DivisionByZero:
                pass
            with c.transaction(force_rollback=True):
                c.execute("insert into made values (3, 0)")
            with c.transaction() as undone:
                c.execute("insert into made values (4, 0)")
                raise psycopg.Rollback(undone)
        same(made.execute("select id from made").fetchall(), [(1,)])
        c.rollback()
        c.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        tries = 0
        while True:
            tries += 1
            try:
                with c.transaction():
                    v = c.execute("select v from made where id = 1").fetchone()[0]
                    if tries == 1:
                        made.execute("update made set v = v + 10")
                    c.execute("update made set v = %s where id = 1", [v + 1])
                break
            except errors.SerializationFailure as e:
                same(e.diag.message_primary, "could not serialize access due to concurrent update")
                c.rollback()
        same((tries, made.execute("select v from made").fetchone()), (2, (11,)))
        c.read_only = True
        with refused("25006"), c.transaction():
            c.execute("insert into made values (9, 9)")


@check("transactions: serializable, write skew refused")
def serializable():
    with table("id int primary key, v int") as made, connect(autocommit=False) as a, connect(autocommit=False) as b:
        made.execute("insert into made values (1, 1), (2, 1)")
        for c in (a, b):
            c.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
            c.execute("select sum(v) from made")
        a.execute("update made set v = 0 where id = 1")
        a.commit()
        with refused("40001"):
            b.execute("update made set v = 0 where id = 2")
            b.commit()


@check("transactions: a deadlock ends one of two")
def deadlock():
    with table("id int primary key, v int") as made:
        made.execute("insert into made values (1, 0), (2, 0)")
        ended = []
        barrier = threading.Barrier(2)

        def work(first, second):
            with connect(autocommit=False) as c:
                try:
                    c.execute("update made set v = v + 1 where id = %s", [first])
                    barrier.wait()
                    c.execute("update made set v = v + 1 where id = %s", [second])
                    c.commit()
                    ended.append("ok")
                except errors.DeadlockDetected:
                    ended.append("deadlock")
        threads = [threading.Thread(target=work, args=pair) for pair in ((1, 2), (2, 1))]
        for t in threads:
            t.start()
        for t in threads:
            t.join(30)
        same(sorted(ended), ["deadlock", "ok"])


@check("transactions: locks, NOWAIT, SKIP LOCKED, advisory")
def locks():
    with table("id int primary key, done bool default false") as c, connect(autocommit=False) as a:
        c.execute("insert into made select generate_series(1, 5)")
        same(a.execute("select id from made where not done order by id limit 2 for update skip locked").fetchall(), [(1,), (2,)])
        same(c.execute("select id from made where not done order by id limit 2 for update skip locked").fetchall(), [(3,), (4,)])
        with refused("55P03"):
            c.execute("select id from made where id = 1 for update nowait")
        with refused("55P03"):
            c.execute("begin; lock table made in exclusive mode nowait")
        c.execute("rollback")
        same(a.execute("select pg_try_advisory_lock(42), pg_try_advisory_xact_lock(1, 2)").fetchone(), (True, True))
        same(c.execute("select pg_try_advisory_lock(42), pg_try_advisory_xact_lock(1, 2)").fetchone(), (False, False))
        a.rollback()
        same(c.execute("select pg_try_advisory_xact_lock(1, 2), pg_try_advisory_lock(42)").fetchone(), (True, False))
        a.execute("select pg_advisory_unlock(42)")
        same(c.execute("select pg_try_advisory_lock(42)").fetchone(), (True,))


@check("transactions: in two phases")
def two_phases():
    with table("id int primary key") as made, connect(autocommit=False) as c:
        made.execute("select 1")
        xid = c.xid(1, "gtrid", "bqual")
        c.tpc_begin(xid)
        c.execute("insert into made values (1)")
        c.tpc_prepare()
        same([str(x) for x in made.tpc_recover()], [str(xid)])
        c.tpc_commit()
        same(made.execute("select count(*) from made").fetchone(), (1,))


@check("transactions: status that the driver sees")
def status_of_transactions():
    with connect(autocommit=False) as c:
        status = psycopg.pq.TransactionStatus
        same(c.info.transaction_status, status.IDLE)
        c.execute("select 1")
        same(c.info.transaction_status, status.INTRANS)
        with refused("42703"):
            c.execute("select nosuch")
        same(c.info.transaction_status, status.INERROR)
        with refused("25P02"):
            c.execute("select 1")
        c.rollback()
        same(c.info.transaction_status, status.IDLE)


# COPY

COPIED = [(i, None if i % 7 == 0 else f"a\tb\\{i}\n\u20ac", Decimal(i) / 8, dt.datetime(2024, 1, 1, tzinfo=UTC) + dt.timedelta(seconds=i), [i, None]) for i in range(5000)]


@check("copy: rows in and out, text, CSV and binary")
def copy():
    kinds = ["int4", "text", "numeric", "timestamptz", "int4[]"]
    with table("id int, v text, n numeric, at timestamptz, a int[]") as c:
        for form in ("", "(format binary)"):
            c.execute("truncate made")
            with c.cursor().copy(f"copy made (id, v, n, at, a) from stdin {form}") as into:
                into.set_types(kinds)
                for row in COPIED:
                    into.write_row(row)
            with c.cursor().copy(f"copy (select * from made order by id) to stdout {form}") as out:
                out.set_types(kinds)
                assert list(out.rows()) == COPIED, form
        with c.cursor().copy("copy (select id, v, n from made order by id limit 3) to stdout (format csv, header, null 'NIL', delimiter ';', force_quote (v))") as out:
            told = b"".join(out).decode()
        same(told, 'id;v;n\n0;NIL;0\n1;"a\tb\\1\n\u20ac";0.125\n2;"a\tb\\2\n\u20ac";0.25\n'.replace("0;NIL;0\n", "0;NIL;0\n"))
        c.execute("truncate made")
        cursor = c.cursor()
        with cursor.copy("copy made (id, v, n) from stdin (format csv, header match, null 'NIL', delimiter ';')") as into:
            into.write(told)
        same(cursor.rowcount, 3)
        same(c.execute("select id, v, n from made order by id").fetchall(), [row[:3] for row in COPIED[:3]])


@check("copy: from one connection into another")
def copy_between():
    with table("id int, v text") as c, table("id int, v text", "target") as other:
        c.execute("insert into made select i, repeat('y', 200) from generate_series(1, 20000) i")
        with c.cursor().copy("copy made to stdout (format binary)") as out, other.cursor().copy("copy target from stdin (format binary)") as into:
            for data in out:
                into.write(data)
        same(other.execute("select count(*), sum(id), sum(length(v)) from target").fetchone(), (20000, 200010000, 4000000))


@check("copy: errors name the line and column, and nothing is kept")
def copy_errors():
    with table("id int primary key, n numeric check (n > 0)") as c:
        for data, state, context in [
            ("1\t1\n2\tnot a number\n", "22P02", 'COPY made, line 2, column n: "not a number"'), ("1\n", "22P04", 'COPY made, line 1: "1"'),
            ("1\t1\t1\n", "22P04", 'COPY made, line 1: "1\t1\t1"'), ("1\t1\n1\t1\n", "23505", "COPY made, line 2"), ("1\t-1\n", "23514", 'COPY made, line 1: "1\t-1"'),
            ("\\N\t1\n", "23502", 'COPY made, line 1: "\\N\t1"'),
        ]:
            with refused(state, context=context), c.cursor().copy("copy made from stdin") as into:
                into.write(data)
            same(c.execute("select count(*) from made").fetchone(), (0,))
        try:
            with c.cursor().copy("copy made from stdin") as into:
                into.write("1\t1\n")
                raise RuntimeError("the client thinks again")
        except RuntimeError:
            pass
        with refused("42P01"), c.cursor().copy("copy nosuch from stdin"):
            pass
        with c.cursor().copy("copy made from stdin (on_error ignore, log_verbosity verbose)") as into:
            into.write("1\t1\n2\tx\n3\t3\n")
        same(c.execute("select id from made").fetchall(), [(1,), (3,)])


# Notifications and notices


@check("notify: between two connections")
def notify():
    with connect() as a, connect() as b:
        a.execute("listen news")
        b.execute("select pg_notify('news', 'one')")
        with b.transaction():
            b.execute("notify news, 'two'")
            b.execute("notify news, 'two'")
        got = []
        for n in a.notifies(timeout=5, stop_after=2):
            got.append((n.channel, n.payload, n.pid))
        same(got, [("news", "one", b.info.backend_pid), ("news", "two", b.info.backend_pid)])
        a.execute("unlisten *")


@check("notices: seen by the client")
def notices():
    with connect() as c:
        got = []
        c.add_notice_handler(lambda d: got.append((d.severity, d.sqlstate, d.message_primary)))
        c.execute("drop table if exists never_was")
        c.execute("commit")
        same(got, [("NOTICE", "00000", 'table "never_was" does not exist, skipping'), ("WARNING", "25P01", "there is no transaction in progress")])


@check("notices: RAISE in a DO block")
def do_block():
    with connect() as c:
        got = []
        c.add_notice_handler(lambda d: got.append(d.message_primary))
        c.execute("do $$ begin raise notice 'hello %', 1 + 1; end $$")
        same(got, ["hello 2"])


# Ends of statements and sessions


@check("cancel: a statement, a wait, a sleep")
def cancel():
    with table("id int") as c, connect(autocommit=False) as other:
        c.execute("insert into made values (1)")
        other.execute("update made set id = 2")
        for statement in ("select count(*) from generate_series(1, 100000000000)", "update made set id = 3", "select pg_sleep(100)",
                          "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b where a # b = -1"):
            timer = threading.Timer(0.3, c.cancel_safe)
            timer.start()
            began = time.monotonic()
            with refused("57014", message_primary="canceling statement due to user request"):
                c.execute(statement)
            assert time.monotonic() - began < 5, statement
            timer.join()
        same(c.execute("select id from made").fetchone(), (1,))


@check("cancel: statement_timeout, lock_timeout, an idle transaction's")
def timeouts():
    with table("id int") as c, connect(autocommit=False) as other:
        c.execute("insert into made values (1)")
        other.execute("update made set id = 2")
        c.execute("set statement_timeout = '200ms'")
        with refused("57014", message_primary="canceling statement due to statement timeout"):
            c.execute("select pg_sleep(30)")
        with refused("57014"):
            c.execute("select count(*) from generate_series(1, 100000000000)")
        c.execute("set statement_timeout = 0; set lock_timeout = '200ms'")
        with refused("55P03", message_primary="canceling statement due to lock timeout"):
            c.execute("update made set id = 3")
        c.execute("set lock_timeout = 0")
        with connect() as gone:
            gone.execute("set idle_in_transaction_session_timeout = '200ms'")
            gone.execute("begin")
            time.sleep(1)
            try:
                gone.execute("select 1")
                raise AssertionError("the idle transaction lives")
            except psycopg.Error as e:
                assert e.sqlstate == "25P03" or "terminat" in str(e) or "closed" in str(e), e


@check("cancel: transaction_timeout")
def transaction_timeout():
    with connect() as gone:
        gone.execute("set transaction_timeout = '300ms'")
        gone.execute("begin")
        with refused("25P04"):
            gone.execute("select pg_sleep(30)")


@check("end: pg_terminate_backend")
def terminate():
    with connect() as c, connect() as victim:
        same(c.execute("select pg_terminate_backend(%s)", [victim.info.backend_pid]).fetchone(), (True,))
        time.sleep(0.3)
        try:
            victim.execute("select 1")
            raise AssertionError("it lives")
        except psycopg.OperationalError as e:
            assert e.sqlstate == "57P01" or "terminating connection" in str(e), (e.sqlstate, str(e))


# Errors

ERRORS = [
    ("select nosuch from made", "42703", {"statement_position": "8"}), ("selec 1", "42601", {"statement_position": "1"}),
    ("select * from nosuch", "42P01", {"statement_position": "15"}), ("select nosuch(1)", "42883", {"statement_position": "8"}),
    ("select '\u20ac\u20ac', nosuch", "42703", {"statement_position": "14"}),
    ("select 1/0", "22012", {}), ("select 'a'::int", "22P02", {"statement_position": "8"}), ("select 99999999999::int", "22003", {}),
    ("insert into made values (1, 'x', 1, 1)", "23505", {"constraint_name": "made_pkey", "table_name": "made", "schema_name": "public",
     "message_detail": "Key (id)=(1) already exists."}),
    ("insert into made values (null, 'x', 1, 1)", "23502", {"column_name": "id", "table_name": "made"}),
    ("insert into made values (2, 'x', -1, 1)", "23514", {"constraint_name": "made_n_check", "table_name": "made"}),
    ("insert into made values (2, 'x', 1, 7)", "23503", {"constraint_name": "made_parent_fkey", "table_name": "made",
     "message_detail": 'Key (parent)=(7) is not present in table "made".'}),
    ("delete from made where id = 1", "23503", {"constraint_name": "made_parent_fkey",
     "message_detail": 'Key (id)=(1) is still referenced from table "made".'}),
    ("insert into made values (2, 'much too long', 1, 1)", "22001", {}), ("select '2024-13-01'::date", "22008", {}), ("select 'x'::date", "22007", {}),
    ("create table made (a int)", "42P07", {}), ("drop table nosuch", "42P01", {}), ("select id, count(*) from made", "42803", {"statement_position": "8"}),
    ("select a.id from made a, made b where id = 1", "42702", {"statement_position": "39"}), ("select id from made where v", "42804", {}),
    ("select sum(v) from made", "42883", {}), ("select 1 + 'a'::text", "42883", {}), ("select (select id from made union all select 2)", "21000", {}),
    ("alter table made add id int", "42701", {}), ("create schema public", "42P06", {}), ("set nosuch to 1", "42704", {}),
    ("set work_mem = 'lots'", "22023", {}), ("select lower(1, 2)", "42883", {}), ("select * from made order by 9", "42P10", {}),
    ("select 1 union select 'a'::text", "42804", {}), ("insert into made (nosuch) values (1)", "42703", {"statement_position": "19"}),
    ("insert into made values (1,2,3,4,5)", "42601", {}), ("select $1", "42P02", {}), ("release nosuch", "25P01", {}), ("rollback to nosuch", "25P01", {}),
    ("select chr(0)", "54000", {}), ("select repeat('x', 2000000000)::text || repeat('x', 2000000000)", "54000", {}), ("select sqrt(-1)", "2201F", {}),
    ("select 1::int2 << 100000::int8", "42883", {}), ("select array[1,2]::int", "42846", {}), ("select to_date('x', 'YYYY')", "22007", {}),
    ("select 'nosuch'::regclass", "42P01", {}), ("select '{'::jsonb", "22P02", {}), ("select nextval('nosuch')", "42P01", {}),
    ("copy made from '/nosuch'", "58P01", {}), ("fetch nosuch", "34000", {}), ("drop role nosuch", "42704", {}), ("comment on column made.nosuch is 'x'", "42703", {}),
]


@check("errors: SQLSTATE, position and names")
def error_fields():
    wrong = []
    with table("id int primary key, v varchar(5), n int check (n > 0), parent int references made") as c:
        c.execute("insert into made values (1, 'a', 1, 1)")
        c.execute("insert into made values (5, 'a', 1, 1)")
        for statement, state, fields in ERRORS:
            try:
                with refused(state, **fields):
                    c.execute(statement)
            except Exception as e:
                wrong.append(f"{statement}: {e}")
    assert not wrong, "; ".join(wrong)


# Pools


@check("pool: shared by threads, lost connections replaced")
def pool():
    with ConnectionPool("", min_size=2, max_size=4, kwargs={"autocommit": True}, check=ConnectionPool.check_connection) as p:
        p.wait()
        with table("n int") as made:
            made.execute("insert into made values (0)")

            def work():
                for _ in range(20):
                    with p.connection() as c:
                        c.execute("update made set n = n + 1")
            threads = [threading.Thread(target=work) for _ in range(10)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            same(made.execute("select n from made").fetchone(), (200,))
        with p.connection() as c:
            killed = c.info.backend_pid
        with connect() as c:
            c.execute("select pg_terminate_backend(%s)", [killed])
        for _ in range(6):
            with p.connection() as c:
                same(c.execute("select 1").fetchone(), (1,))
        held = [p.getconn() for _ in range(4)]
        try:
            p.getconn(timeout=0.2)
            raise AssertionError("a fifth of four")
        except PoolTimeout:
            pass
        for c in held:
            p.putconn(c)


@check("async: gathered, streamed, copied, cancelled")
async def asynchronous():
    async with await psycopg.AsyncConnection.connect("", autocommit=True) as c:
        cursor = await c.execute("select %s::int", [5])
        same(await cursor.fetchone(), (5,))
        await c.execute("drop table if exists here")
        await c.execute("create table here (id int, v text)")
        async with c.cursor().copy("copy here from stdin") as into:
            for i in range(1000):
                await into.write_row((i, "x"))
        same([row async for row in c.cursor().stream("select count(*) from here")], [(1000,)])
        task = asyncio.create_task(c.execute("select pg_sleep(60)"))
        await asyncio.sleep(0.3)
        await c.cancel_safe()
        try:
            await task
            raise AssertionError("not cancelled")
        except errors.QueryCanceled:
            pass
        # A task that is cancelled cancels its statement, and the connection goes on.
        try:
            await asyncio.wait_for(c.execute("select pg_sleep(60)"), 0.3)
        except asyncio.TimeoutError:
            pass
        async with c.pipeline():
            cursors = [await c.execute("select %s::int", [i]) for i in range(50)]
        same([(await cursor.fetchone())[0] for cursor in cursors], list(range(50)))
        await c.execute("drop table here")


@check("async: a pool under 50 tasks")
async def async_pool():
    async with AsyncConnectionPool("", min_size=2, max_size=8, open=False) as p:
        async def work(i):
            async with p.connection() as c:
                async with c.transaction():
                    cursor = await c.execute("select %s::int * 2", [i])
                    return (await cursor.fetchone())[0]
        same(await asyncio.gather(*(work(i) for i in range(50))), [2 * i for i in range(50)])


if __name__ == "__main__":
    check.run(asyncio.run)
