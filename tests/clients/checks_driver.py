"""psycopg: the extended protocol as a driver uses it."""

import datetime
import threading
import uuid
from decimal import Decimal

import psycopg
from psycopg import errors

VALUES = [
    ("smallint", -32768), ("integer", 2**31 - 1), ("bigint", -(2**63)), ("real", 1.5), ("double precision", 0.1),
    ("numeric", Decimal("12345678901234567890.123456789")), ("numeric", Decimal("-0.00001")), ("numeric", Decimal("NaN")),
    ("boolean", True), ("text", "hé'llo \\ \n"), ("text", ""), ("varchar(10)", "vc"), ("char(4)", "abcd"),
    ("bytea", b"\x00\xff\\'"), ("date", datetime.date(2024, 2, 29)), ("time", datetime.time(12, 34, 56, 789000)),
    ("timestamp", datetime.datetime(2024, 2, 29, 12, 34, 56, 123456)),
    ("timestamptz", datetime.datetime(2024, 2, 29, 12, 0, tzinfo=datetime.timezone.utc)),
    ("interval", datetime.timedelta(days=3, hours=2, microseconds=7)),
    ("uuid", uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
]


def connect(server, **options):
    return psycopg.connect(host="127.0.0.1", port=server.port, user="postgres", dbname="postgres", **options)


def round_trip(binary):
    """Every type, as a parameter and as a result, in one format."""
    mark = "%b" if binary else "%t"

    def check(server):
        with connect(server, autocommit=True) as connection:
            cursor = connection.cursor(binary=binary)
            for kind, value in VALUES:
                got = cursor.execute(f"select {mark}::{kind}", [value]).fetchone()[0]
                same = got == value or (value != value and got != got)
                assert same, f"{kind}: sent {value!r}, got {got!r}"
                assert cursor.execute(f"select {mark}::{kind}", [None]).fetchone()[0] is None, kind
            connection.execute("drop table if exists kept")
            columns = ", ".join(f"c{i} {kind}" for i, (kind, _) in enumerate(VALUES))
            connection.execute(f"create table kept ({columns})")
            marks = ", ".join(f"{mark}::{kind}" for kind, _ in VALUES)
            cursor.execute(f"insert into kept values ({marks})", [value for _, value in VALUES])
            row = cursor.execute("select * from kept").fetchone()
            for (kind, value), got in zip(VALUES, row, strict=True):
                assert got == value or (value != value and got != got), f"{kind}: kept {value!r}, got {got!r}"
            connection.execute("drop table kept")
    return check


def transactions(server):
    with connect(server) as connection:
        connection.execute("create table t (id int primary key)")
        connection.commit()
        connection.execute("insert into t values (1)")
        connection.rollback()
        with connection.transaction():
            connection.execute("insert into t values (2)")
            try:
                with connection.transaction():
                    connection.execute("insert into t values (3)")
                    connection.execute("select 1/0")
            except errors.DivisionByZero:
                pass
        assert connection.execute("select id from t").fetchall() == [(2,)]
        try:
            connection.execute("insert into t values (2)")
        except errors.UniqueViolation as e:
            assert e.diag.constraint_name == "t_pkey" and e.diag.table_name == "t", vars(e.diag)
        try:
            connection.execute("select 1")
            raise AssertionError("a failed transaction went on")
        except errors.InFailedSqlTransaction:
            connection.rollback()
        connection.execute("drop table t")


def prepared(server):
    with connect(server, autocommit=True, prepare_threshold=0) as connection:
        connection.execute("create table t (id int primary key, v text)")
        for i in range(200):
            connection.execute("insert into t values (%s, %s)", [i, str(i)])
        for i in range(200):
            assert connection.execute("select v from t where id = %s", [i]).fetchone() == (str(i),)
        names = connection.execute("select count(*) from pg_prepared_statements").fetchone()[0]
        assert names >= 2, names
        connection.execute("alter table t add w int")
        assert connection.execute("select v from t where id = %s", [7]).fetchone() == ("7",)
        connection.execute("drop table t")


def pipeline(server):
    with connect(server, autocommit=True) as connection:
        with connection.pipeline():
            cursors = [connection.execute("select %s::int * 2", [i]) for i in range(100)]
        assert [c.fetchone()[0] for c in cursors] == [2 * i for i in range(100)]
        try:
            with connection.pipeline():
                connection.execute("select 1")
                connection.execute("select 1/0")
                connection.execute("select 2")
            raise AssertionError("no error")
        except errors.DivisionByZero:
            pass
        assert connection.execute("select 3").fetchone() == (3,)


def copy(server):
    with connect(server) as connection:
        connection.execute("create table t (id int, v text, n numeric, at timestamptz)")
        now = datetime.datetime.now(datetime.timezone.utc)
        rows = [(i, None if i % 7 == 0 else f"a\tb\\{i}\n", Decimal(i) / 8, now) for i in range(5000)]
        with connection.cursor().copy("copy t from stdin") as into:
            for row in rows:
                into.write_row(row)
        with connection.cursor().copy("copy t from stdin (format binary)") as into:
            into.set_types(["int4", "text", "numeric", "timestamptz"])
            for row in rows:
                into.write_row(row)
        assert connection.execute("select count(*), count(v) from t").fetchone() == (10000, 2 * 4285)
        for options in ("", "(format binary)"):
            with connection.cursor().copy(f"copy (select * from t order by id limit 4) to stdout {options}") as out:
                out.set_types(["int4", "text", "numeric", "timestamptz"])
                assert list(out.rows()) == [rows[0], rows[0], rows[1], rows[1]]
        connection.commit()
        try:
            with connection.cursor().copy("copy t from stdin") as into:
                into.write("1\tx\tnot a number\t\\N\n")
            raise AssertionError("no error")
        except errors.InvalidTextRepresentation as e:
            assert e.diag.context.startswith("COPY t, line 1, column n"), e.diag.context
        connection.rollback()
        try:
            with connection.cursor().copy("copy t from stdin") as into:
                into.write("1\tx\t1\t\\N\n")
                raise RuntimeError("the client thinks again")
        except RuntimeError:
            connection.rollback()
        assert connection.execute("select count(*) from t").fetchone() == (10000,)
        connection.execute("drop table t")


def cancel(server):
    with connect(server, autocommit=True) as connection:
        timer = threading.Timer(0.5, connection.cancel)
        timer.start()
        try:
            connection.execute("select count(*) from generate_series(1, 100000000000)")
            raise AssertionError("not cancelled")
        except errors.QueryCanceled:
            pass
        timer.join()
        assert connection.execute("select 1").fetchone() == (1,)


def server_side_cursors(server):
    with connect(server) as connection:
        with connection.cursor("named") as cursor:
            cursor.itersize = 100
            cursor.execute("select i from generate_series(1, 1000) i")
            assert sum(row[0] for row in cursor) == 500500
        with connection.cursor("scrolling", scrollable=False) as cursor:
            cursor.execute("select i from generate_series(1, 10) i")
            assert cursor.fetchmany(3) == [(1,), (2,), (3,)]


def description(server):
    with connect(server, autocommit=True) as connection:
        cursor = connection.execute("select 1::numeric(7,2) as n, 'x'::varchar(9) as v, null::text as t")
        told = [(c.name, c.type_code, c.precision, c.scale, c.display_size) for c in cursor.description]
        assert told[0] == ("n", 1700, 7, 2, None), told
        assert told[1][:2] == ("v", 1043) and told[1][4] == 9, told


def notices_and_settings(server):
    with connect(server, autocommit=True, application_name="checks", options="-c work_mem=8MB") as connection:
        heard = []
        connection.add_notice_handler(lambda notice: heard.append(notice.message_primary))
        connection.execute("drop table if exists nosuch")
        assert heard == ['table "nosuch" does not exist, skipping'], heard
        assert connection.execute("show work_mem").fetchone() == ("8MB",)
        assert connection.execute("show application_name").fetchone() == ("checks",)
        assert connection.info.server_version // 10000 == 18
        assert connection.info.encoding == "utf-8"


def many_sessions(server):
    connections = [connect(server, autocommit=True) for _ in range(80)]
    try:
        connections[0].execute("create table counter (id int primary key, n int); insert into counter values (1, 0)")
        threads = [threading.Thread(target=c.execute, args=["update counter set n = n + 1"]) for c in connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert connections[0].execute("select n from counter").fetchone() == (80,)
        connections[0].execute("drop table counter")
    finally:
        for connection in connections:
            connection.close()


def array_parameters(server):
    with connect(server, autocommit=True) as connection:
        got = connection.execute("select i from generate_series(1, 10) i where i = any(%s)", [[2, 3, 11]]).fetchall()
        assert got == [(2,), (3,)], got
        assert connection.execute("select %s::text[]", [["a", None, 'q"']]).fetchone() == (["a", None, 'q"'],)


def checks():
    yield "psycopg: every type, text", round_trip(False)
    yield "psycopg: every type, binary", round_trip(True)
    yield "psycopg: transactions and savepoints", transactions
    yield "psycopg: prepared statements", prepared
    yield "psycopg: pipeline mode", pipeline
    yield "psycopg: COPY, text and binary", copy
    yield "psycopg: cancel", cancel
    yield "psycopg: cursors on the server", server_side_cursors
    yield "psycopg: descriptions of columns", description
    yield "psycopg: notices and settings", notices_and_settings
    yield "psycopg: 80 sessions and one row", many_sessions
    yield "psycopg: arrays as parameters", array_parameters
