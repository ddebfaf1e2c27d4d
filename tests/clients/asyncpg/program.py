"""asyncpg: binary everywhere, prepared statements by default, a pool."""

import asyncio
import contextlib
import datetime as dt
import decimal
import io
import ipaddress
import json
import os
import ssl
import sys
import uuid
from decimal import Decimal
from pathlib import Path

import asyncpg
from asyncpg import exceptions as errors

sys.path.append(str(Path(__file__).resolve().parent.parent))
from report import Report, same  # noqa: E402

check = Report()
UTC = dt.timezone.utc


def connect(**options):
    return asyncpg.connect(**{"ssl": False, **options})


@contextlib.asynccontextmanager
async def table(columns, name="made"):
    c = await connect()
    await c.execute(f"drop table if exists {name} cascade")
    await c.execute(f"create table {name} ({columns})")
    try:
        yield c
    finally:
        # The way out is a session of its own: whatever state the check's was left in goes with it.
        c.terminate()
        c = await connect()
        await c.execute(f"drop table if exists {name} cascade")
        await c.close()


@contextlib.contextmanager
def refused(kind, **fields):
    try:
        yield
    except kind as e:
        for field, wanted in fields.items():
            same((field, getattr(e, field)), (field, wanted))
    else:
        raise AssertionError(f"not refused with {kind.__name__}")


@check("login: a wrong password, an unknown role and database")
async def login():
    with refused(errors.InvalidPasswordError):
        await connect(password="wrong")
    with refused(errors.InvalidPasswordError):
        await connect(user="nobody")
    with refused(errors.InvalidCatalogNameError):
        await connect(database="nowhere")


@check("login: TLS, verified")
async def tls():
    root = os.environ.get("PGSSLROOTCERT")
    if not root:
        return
    context = ssl.create_default_context(cafile=root)
    c = await connect(ssl=context)
    same(await c.fetchval("select ssl from pg_stat_ssl where pid = pg_backend_pid()"), True)
    with refused(asyncio.TimeoutError):
        await c.execute("select pg_sleep(60)", timeout=0.3)
    same(await c.fetchval("select 1"), 1)
    await c.close()


@check("login: settings of the server")
async def settings():
    c = await connect(server_settings={"application_name": "shop", "search_path": "pg_catalog", "jit": "off"})
    same(await c.fetchval("show application_name"), "shop")
    same(c.get_settings().application_name, "shop")
    version = c.get_server_version()
    assert version.major >= 18, version
    await c.close()


VALUES = [
    ("int2", -32768), ("int4", 2**31 - 1), ("int8", -(2**63)), ("float4", 1.5), ("float8", 0.1), ("float8", float("-inf")),
    ("numeric", Decimal("12345678901234567890.123456789")), ("numeric", Decimal("-0.00001")), ("numeric", Decimal("1E+5")), ("numeric", Decimal("0.000")),
    ("bool", True), ("text", "h\u00e9'llo \\ \n\u20ac"), ("text", ""), ("varchar(10)", "vc"), ("char(4)", "abcd"), ("name", "n"), ("bytea", b"\x00\xff\\'"),
    ("date", dt.date(2024, 2, 29)), ("date", dt.date.max), ("time", dt.time(12, 34, 56, 789000)), ("timetz", dt.time(1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
    ("timestamp", dt.datetime(2024, 2, 29, 12, 34, 56, 123456)), ("timestamptz", dt.datetime(2024, 2, 29, 12, 0, tzinfo=UTC)),
    ("interval", dt.timedelta(days=3, hours=2, microseconds=7)), ("uuid", uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")), ("oid", 4294967295),
    ("json", '{"a": [1, 2]}'), ("jsonb", '{"a": [1, 2]}'), ("int4[]", [1, None, 3]), ("int4[]", [[1, 2], [3, 4]]), ("text[]", ["a", None, 'q"\\,{}', "", "NULL"]),
    ("numeric[]", [Decimal("1.5"), None]), ("timestamptz[]", [dt.datetime(2024, 2, 29, 12, 0, tzinfo=UTC)]), ("uuid[]", [uuid.UUID(int=5)]), ("jsonb[]", ['{"a": 1}', None]),
    ("bytea[]", [b"\x00"]), ("bool[]", [True, None]), ("float8[]", []), ("int8[]", list(range(5000))), ("tid", (1, 2)), ("xid", 77), ('"char"', b"x"),
]


@check("values: of every type")
async def values():
    columns = ", ".join(f"c{i} {kind}" for i, (kind, _) in enumerate(VALUES))
    async with table(columns) as c:
        for kind, value in VALUES:
            same((kind, await c.fetchval(f"select $1::{kind}", value)), (kind, value))
            same(await c.fetchval(f"select $1::{kind}", None), None)
        marks = ", ".join(f"${i + 1}" for i in range(len(VALUES)))
        await c.execute(f"insert into made values ({marks})", *(v for _, v in VALUES))
        await c.execute(f"insert into made values ({marks})", *(None for _ in VALUES))
        rows = await c.fetch("select * from made")
        same(tuple(rows[0]), tuple(v for _, v in VALUES))
        same(set(rows[1]), {None})
        assert (await c.fetchval("select 'NaN'::numeric")).is_nan()
        same(await c.fetchval("select 'infinity'::timestamptz"), dt.datetime.max)


@check("values: bit, money and network types")
async def rare_values():
    c = await connect()
    for kind, value in [("varbit", asyncpg.BitString("1010")), ("inet", ipaddress.ip_interface("10.0.0.1/8")), ("cidr", ipaddress.ip_network("10.0.0.0/8")),
                        ("macaddr", "08:00:2b:01:02:03")]:
        same(await c.fetchval(f"select $1::{kind}", value), value)
    await c.close()


@check("values: geometric types")
async def geometric():
    c = await connect()
    for kind, value in [("point", asyncpg.Point(1, 2)), ("box", asyncpg.Box((3, 4), (1, 2))), ("circle", asyncpg.Circle((1, 2), 3))]:
        same(await c.fetchval(f"select $1::{kind}", value), value)
    await c.close()


@check("values: ranges")
async def ranges():
    c = await connect()
    same(await c.fetchval("select $1::int4range", asyncpg.Range(1, 5)), asyncpg.Range(1, 5))
    await c.close()


@check("values: records, also anonymous")
async def records():
    async with table("id int, v text") as c:
        await c.execute("insert into made values (1, 'a')")
        row = await c.fetchrow("select id, v, (select array_agg(id) from made) as ids from made")
        same((row["id"], row["v"], row["ids"], list(row.keys())), (1, "a", [1], ["id", "v", "ids"]))
        same(await c.fetchval("select row(1, 'x'::text, null::int)"), (1, "x", None))
        same(await c.fetchval("select array[row(1, 2)]"), [(1, 2)])


@check("values: a table's row type")
async def table_rows():
    async with table("id int, v text") as c:
        await c.execute("insert into made values (1, 'a')")
        same(tuple(await c.fetchval("select m from made m")), (1, "a"))
        same([tuple(r) for r in await c.fetchval("select array_agg(m) from made m")], [(1, "a")])
        same(await c.fetchval("select ($1::made).v", (1, "z")), "z")


@check("values: codecs of the client's own, an enum and its array")
async def codecs():
    c = await connect()
    await c.execute("drop table if exists m; drop type if exists mood; create type mood as enum ('sad', 'happy')")
    await c.execute("create table m (v mood, vs mood[], j jsonb)")
    try:
        await c.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        await c.execute("insert into m values ($1, $2, $3)", "happy", ["sad", None], {"a": 1})
        same(tuple(await c.fetchrow("select * from m")), ("happy", ["sad", None], {"a": 1}))
        same(await c.fetchval("select $1::mood[]", ["sad"]), ["sad"])
        same((await c.fetchrow("select v from m where v = any($1)", ["happy", "sad"]))["v"], "happy")
        with refused(errors.InvalidTextRepresentationError):
            await c.execute("insert into m (v) values ($1)", "glad")
        await c.set_type_codec("numeric", encoder=str, decoder=float, schema="pg_catalog", format="text")
        same(await c.fetchval("select 1.5::numeric"), 1.5)
    finally:
        await c.reload_schema_state()
        await c.execute("drop table m; drop type mood")
        await c.close()


@check("values: a domain and a composite type")
async def domain():
    c = await connect()
    await c.execute("drop type if exists pair; drop domain if exists positive")
    await c.execute("create domain positive as int check (value > 0); create type pair as (a int, b text)")
    try:
        same(await c.fetchval("select $1::positive", 5), 5)
        with refused(errors.CheckViolationError):
            await c.fetchval("select $1::positive", -5)
        same(tuple(await c.fetchval("select $1::pair", (1, "x"))), (1, "x"))
    finally:
        await c.execute("drop type pair; drop domain positive")
        await c.close()


@check("values: large ones")
async def large():
    async with table("id int, v bytea, t text") as c:
        data = os.urandom(1 << 20) * 16
        await c.execute("insert into made values (1, $1, $2)", data, "x" * (16 << 20))
        row = await c.fetchrow("select v, t from made")
        assert row["v"] == data and row["t"] == "x" * (16 << 20)
        same(await c.fetchval("select array_length($1::text[], 1)", ["y" * 100] * 50_000), 50_000)


@check("prepared: their parameters and attributes")
async def prepared():
    async with table("id int primary key, v varchar(5), n numeric(7,2)") as c:
        statement = await c.prepare("select id, v, n from made where id = $1 and v like $2")
        same([p.name for p in statement.get_parameters()], ["int4", "text"])
        same([(a.name, a.type.name) for a in statement.get_attributes()], [("id", "int4"), ("v", "varchar"), ("n", "numeric")])
        await c.executemany("insert into made values ($1, $2, $3)", [(i, f"v{i}", Decimal(i)) for i in range(1000)])
        same([tuple(r) for r in await statement.fetch(5, "v%")], [(5, "v5", Decimal("5.00"))])
        same(await statement.fetchval(6, "%", column=1), "v6")
        await statement.fetch(6, "%")
        same(statement.get_statusmsg(), "SELECT 1")
        plan = await statement.explain(1, "x")
        assert plan[0]["Plan"]["Node Type"], plan
        assert (await c.prepare("insert into made values ($1, 'x', 1)")).get_attributes() == ()


@check("prepared: EXPLAIN ANALYZE in JSON")
async def explain_analyze():
    c = await connect()
    plan = await (await c.prepare("select count(*) from generate_series(1, $1)")).explain(100, analyze=True)
    assert plan[0]["Plan"]["Actual Rows"] >= 1 and plan[0]["Execution Time"] > 0, plan
    await c.close()


@check("prepared: a cached one outlives DDL")
async def stale():
    async with table("id int primary key, v text") as c:
        other = await connect()
        await c.execute("insert into made values (1, 'a')")
        same(tuple(await c.fetchrow("select * from made where id = $1", 1)), (1, "a"))
        await other.execute("alter table made add w int")
        # Once the driver is told 0A000 it prepares anew, outside a transaction.
        same(tuple(await c.fetchrow("select * from made where id = $1", 1)), (1, "a", None))
        async with c.transaction():
            await c.fetchrow("select * from made where id = $1", 1)
        await other.execute("alter table made alter w type text")
        with refused(errors.InvalidCachedStatementError):
            async with c.transaction():
                await c.fetchrow("select * from made where id = $1", 1)
        same(tuple(await c.fetchrow("select * from made where id = $1", 1)), (1, "a", None))
        await other.close()


@check("prepared: more than the cache holds")
async def cache():
    c = await connect(statement_cache_size=20)
    for i in range(200):
        same(await c.fetchval(f"select {i} + $1::int", 1), i + 1)
    assert await c.fetchval("select count(*) from pg_prepared_statements") <= 21
    await c.close()
    c = await connect(statement_cache_size=0)
    same(await c.fetchval("select $1::int", 1), 1)
    await c.close()


@check("rows: a cursor in portions, forwards")
async def cursor():
    c = await connect()
    async with c.transaction():
        total = 0
        async for row in c.cursor("select i from generate_series(1, $1::int) i", 50_000, prefetch=500):
            total += row["i"]
        same(total, 50_000 * 50_001 // 2)
        cursor = await c.cursor("select i from generate_series(1, 100) i")
        same([r["i"] for r in await cursor.fetch(3)], [1, 2, 3])
        same(await cursor.forward(10), 10)
        same((await cursor.fetchrow())["i"], 14)
        # Two portals of one transaction are open at once.
        other = await c.cursor("select -i from generate_series(1, 100) i")
        same([r[0] for r in await other.fetch(2)], [-1, -2])
        same((await cursor.fetchrow())["i"], 15)
    await c.close()


@check("rows: fetchmany, executemany's rows, counts")
async def many():
    async with table("id serial primary key, v int unique") as c:
        rows = await c.fetchmany("insert into made (v) values ($1) returning id", [(i,) for i in range(100)])
        same([r["id"] for r in rows], list(range(1, 101)))
        same(await c.execute("update made set v = v + 1000 where v > $1", 89), "UPDATE 10")
        with refused(errors.UniqueViolationError, constraint_name="made_v_key", detail="Key (v)=(5) already exists."):
            await c.executemany("insert into made (v) values ($1)", [(5000,), (5,)])
        same(await c.fetchval("select count(*) from made where v = 5000"), 0)
        same(await c.fetch("select 1 where false"), [])
        same(await c.execute("select 1; select 2; set work_mem = '8MB'"), "SET")


@check("rows: bulk by unnest, upsert with RETURNING")
async def bulk():
    async with table("id int primary key, v text, at timestamptz default now()") as c:
        ids, names = list(range(10_000)), [f"n{i}" for i in range(10_000)]
        await c.execute("insert into made (id, v) select * from unnest($1::int[], $2::text[])", ids, names)
        row = await c.fetchrow("insert into made (id, v) values ($1, $2) on conflict (id) do update set v = excluded.v || '!' returning v, (xmax <> 0) as updated", 5, "x")
        same(tuple(row), ("x!", True))
        same(await c.fetchval("select count(*) from made where id = any($1::int[])", [1, 2, 99999]), 2)
        same(await c.fetchval("select count(*) from made m join unnest($1::int[]) with ordinality as u(id, place) using (id) where place > 1", [1, 2, 3]), 2)


@check("transactions: nested, by hand, isolated")
async def transactions():
    async with table("id int primary key") as c:
        with contextlib.suppress(ZeroDivisionError):
            async with c.transaction():
                await c.execute("insert into made values (1)")
                with contextlib.suppress(errors.DivisionByZeroError):
                    async with c.transaction():
                        await c.execute("insert into made values (2)")
                        await c.execute("select 1/0")
                async with c.transaction():
                    await c.execute("insert into made values (3)")
        same([r["id"] for r in await c.fetch("select id from made order by id")], [1, 3])
        t = c.transaction(isolation="repeatable_read", readonly=True)
        await t.start()
        with refused(errors.ReadOnlySQLTransactionError):
            await c.execute("insert into made values (9)")
        with refused(errors.InFailedSQLTransactionError):
            await c.execute("select 1")
        await t.rollback()
        assert not c.is_in_transaction()


@check("transactions: serializable, retried")
async def serializable():
    async with table("id int primary key, v int") as c:
        other = await connect()
        await c.execute("insert into made values (1, 1), (2, 1)")
        with refused(errors.SerializationError):
            async with c.transaction(isolation="serializable"):
                await c.fetchval("select sum(v) from made")
                async with other.transaction(isolation="serializable"):
                    await other.fetchval("select sum(v) from made")
                    await other.execute("update made set v = 0 where id = 2")
                await c.execute("update made set v = 0 where id = 1")
        await other.close()


@check("copy: records, tables, queries and files")
async def copy():
    async with table("id int, v text, n numeric, at timestamptz, a int[], j jsonb") as c:
        now = dt.datetime(2024, 1, 1, tzinfo=UTC)
        records = [(i, None if i % 5 == 0 else f"v{i}\t\n", Decimal(i) / 4, now, [i, None], '{"i": 1}') for i in range(20_000)]
        same(await c.copy_records_to_table("made", records=records), "COPY 20000")
        same([tuple(r) for r in await c.fetch("select * from made order by id")], records)
        out = io.BytesIO()
        same(await c.copy_from_table("made", output=out, format="csv", header=True), "COPY 20000")
        await c.execute("truncate made")
        out.seek(0)
        same(await c.copy_to_table("made", source=out, format="csv", header=True), "COPY 20000")
        out = io.BytesIO()
        await c.copy_from_query("select id, v from made where id < $1 order by id", 3, output=out)
        same(out.getvalue(), b"0\t\\N\n1\tv1\\t\\n\n2\tv2\\t\\n\n")
        out = io.BytesIO()
        await c.copy_from_table("made", output=out, format="binary")
        await c.execute("truncate made")
        out.seek(0)
        same(await c.copy_to_table("made", source=out, format="binary"), "COPY 20000")

        async def failing():
            yield b"1\tx\n"
            raise RuntimeError("no more")
        with refused(RuntimeError):
            await c.copy_to_table("made", columns=["id", "v"], source=failing())
        same(await c.fetchval("select count(*) from made"), 20_000)


@check("copy: records WHERE")
async def copy_where():
    async with table("id int") as c:
        same(await c.copy_records_to_table("made", records=[(i,) for i in range(10)], where="id > 6"), "COPY 3")


@check("notify: listeners called")
async def notify():
    a, b = await connect(), await connect()
    got = asyncio.Queue()
    await a.add_listener("news", lambda _, pid, channel, payload: got.put_nowait((pid, channel, payload)))
    await b.execute("select pg_notify('news', 'one')")
    same(await asyncio.wait_for(got.get(), 5), (b.get_server_pid(), "news", "one"))
    await a.close()
    await b.close()


@check("notices: log listeners called")
async def notices():
    c = await connect()
    got = []
    c.add_log_listener(lambda _, message: got.append(message.message))
    await c.execute("drop table if exists never_was")
    same(got, ['table "never_was" does not exist, skipping'])
    await c.close()


@check("cancel: a timeout cancels, and the connection goes on")
async def timeout():
    async with table("id int") as c:
        with refused(asyncio.TimeoutError):
            await c.execute("select pg_sleep(60)", timeout=0.3)
        same(await c.fetchval("select 1"), 1)
        task = asyncio.create_task(c.fetch("select count(*) from generate_series(1, 100000000000)"))
        await asyncio.sleep(0.3)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        same(await c.fetchval("select 2"), 2)
        await c.execute("set statement_timeout = 200")
        with refused(errors.QueryCanceledError):
            await c.execute("select pg_sleep(60)")


@check("end: a terminated session")
async def terminated():
    c, victim = await connect(), await connect()
    await c.execute("select pg_terminate_backend($1)", victim.get_server_pid())
    await asyncio.sleep(0.3)
    assert victim.is_closed()
    with refused(errors.InterfaceError):
        await victim.fetchval("select 1")
    await c.close()


@check("errors: fields")
async def error_fields():
    async with table("id int primary key, n int check (n > 0), p int references made") as c:
        await c.execute("insert into made values (1, 1, null)")
        for statement, kind, fields in [
            ("select nosuch from made", errors.UndefinedColumnError, {"position": "8", "sqlstate": "42703"}),
            ("insert into made values (1, 1, 1)", errors.UniqueViolationError, {"constraint_name": "made_pkey", "table_name": "made", "schema_name": "public"}),
            ("insert into made values (2, 0, 1)", errors.CheckViolationError, {"constraint_name": "made_n_check"}),
            ("insert into made values (2, 1, 5)", errors.ForeignKeyViolationError, {"constraint_name": "made_p_fkey"}),
            ("insert into made values (null, 1, 1)", errors.NotNullViolationError, {"column_name": "id"}),
            ("select 'x'::int", errors.InvalidTextRepresentationError, {}), ("select * from nosuch", errors.UndefinedTableError, {"position": "15"}),
        ]:
            with refused(kind, **fields):
                await c.execute(statement)
            with refused(kind, **fields):
                await c.fetch(statement)
        with refused(errors.DataError):
            await c.fetch("select $1::int", "x")
        with refused(errors.IndeterminateDatatypeError):
            await c.fetch("select $1 is null", None)


@check("pool: shared by tasks, reset between them")
async def pool():
    async with asyncpg.create_pool(min_size=2, max_size=8, max_queries=50, ssl=False) as p:
        async with table("n int") as c:
            await c.execute("insert into made values (0)")

            async def work():
                async with p.acquire() as mine, mine.transaction():
                    await mine.execute("update made set n = n + 1")
            await asyncio.gather(*(work() for _ in range(200)))
            same(await c.fetchval("select n from made"), 200)
        async with p.acquire() as mine:
            await mine.execute("set work_mem = '3MB'")
            await mine.execute("select pg_advisory_lock(5)")
            pid = mine.get_server_pid()
        async with p.acquire() as mine:
            # The reset: advisory locks, cursors, listeners and settings are gone.
            assert await mine.fetchval("show work_mem") != "3MB"
            same(await mine.fetchval("select count(*) from pg_locks where locktype = 'advisory' and pid = $1", pid), 0)
        same(await p.fetchval("select 1"), 1)
        await p.expire_connections()
        same(await p.fetchval("select 2"), 2)


if __name__ == "__main__":
    decimal.getcontext().prec = 200
    check.run(asyncio.run)
