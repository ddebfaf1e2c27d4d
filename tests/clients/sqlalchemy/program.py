"""SQLAlchemy 2 over psycopg and asyncpg: core, ORM, reflection; alembic's comparison and operations."""

import asyncio
import datetime as dt
import decimal
import enum
import os
import sys
import uuid
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import (
    CheckConstraint, Enum, ForeignKey, Identity, Index, Integer, MetaData, Numeric, String, UniqueConstraint, create_engine, delete, event, func, inspect,
    insert, select, text, update)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.dialects.postgresql import insert as pg_insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm.exc import StaleDataError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, aliased, joinedload, mapped_column, relationship, selectinload
from sqlalchemy.pool import QueuePool

sys.path.append(str(Path(__file__).resolve().parent.parent))
from report import Report, same  # noqa: E402

check = Report()
PLACE = "{user}:{password}@{host}:{port}/{database}".format(
    user=os.environ.get("PGUSER", "postgres"), password=os.environ.get("PGPASSWORD", "").replace(" ", "%20"), host=os.environ.get("PGHOST", "127.0.0.1"),
    port=os.environ.get("PGPORT", "5432"), database=os.environ.get("PGDATABASE", "postgres"))
engine = create_engine(f"postgresql+psycopg://{PLACE}", poolclass=QueuePool, pool_pre_ping=True)


class Mood(enum.Enum):
    sad = "sad"
    happy = "happy"


class Base(DeclarativeBase):
    metadata = MetaData(schema="shop_s")


class Customer(Base):
    __tablename__ = "customer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(40), index=True, comment="the full name")
    mail: Mapped[str | None] = mapped_column(unique=True)
    balance: Mapped[decimal.Decimal] = mapped_column(Numeric(10, 2), server_default="0")
    tags: Mapped[list[str]] = mapped_column(ARRAY(String), server_default="{}")
    doc: Mapped[dict | None] = mapped_column(JSONB)
    mood: Mapped[Mood] = mapped_column(Enum(Mood, name="mood"), server_default="happy")
    key: Mapped[uuid.UUID] = mapped_column(server_default=func.gen_random_uuid())
    made: Mapped[dt.datetime] = mapped_column(server_default=func.now())
    day: Mapped[dt.date | None] = mapped_column(server_default=text("current_date"))
    orders: Mapped[list["Order"]] = relationship(back_populates="customer", cascade="all, delete-orphan")
    __table_args__ = (CheckConstraint("balance >= 0", name="solvent"), {"comment": "who buys"})


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey(Customer.id, ondelete="CASCADE"))
    note: Mapped[str | None]
    version: Mapped[int] = mapped_column(default=1)
    customer: Mapped[Customer] = relationship(back_populates="orders")
    __mapper_args__ = {"version_id_col": version}
    __table_args__ = (UniqueConstraint("customer_id", "note", name="one_note"), Index("newest", "customer_id", text("id DESC")))


def fresh():
    with engine.begin() as c:
        c.execute(text("drop schema if exists shop_s cascade"))
        c.execute(text("create schema shop_s"))
    Base.metadata.create_all(engine)


def fill(session):
    session.add_all([Customer(name="Ann", mail="a@x", balance=10, tags=["a", "b"], doc={"k": [1, None]}, mood=Mood.sad, orders=[Order(note="first"), Order(note="second")]),
                     Customer(name="Bob", orders=[Order(note="third")]), Customer(name="Cid")])
    session.commit()


@check("schema: made, made again, dropped")
def schema():
    fresh()
    Base.metadata.create_all(engine)  # every table is looked for and found
    Base.metadata.drop_all(engine)
    same(inspect(engine).get_table_names(schema="shop_s"), [])


@check("reflection: tables, columns and keys")
def reflection():
    fresh()
    i = inspect(engine)
    same((i.has_table("customer", schema="shop_s"), i.has_table("nosuch", schema="shop_s"), i.has_schema("shop_s")), (True, False, True))
    same(sorted(i.get_table_names(schema="shop_s")), ["customer", "orders"])
    same(i.default_schema_name, "public")
    columns = {c["name"]: c for c in i.get_columns("customer", schema="shop_s")}
    same([(n, str(c["type"]), c["nullable"]) for n, c in columns.items()], [
        ("id", "INTEGER", False), ("name", "VARCHAR(40)", False), ("mail", "VARCHAR", True), ("balance", "NUMERIC(10, 2)", False), ("tags", "ARRAY", False),
        ("doc", "JSONB", True), ("mood", "VARCHAR(5)", False), ("key", "UUID", False),
        ("made", "TIMESTAMP", False), ("day", "DATE", True)])
    same((columns["id"]["default"], columns["id"]["autoincrement"], columns["name"]["comment"]), ("nextval('shop_s.customer_id_seq'::regclass)", True, "the full name"))
    same(columns["mood"]["type"].enums, ["sad", "happy"])
    same(i.get_pk_constraint("customer", schema="shop_s")["constrained_columns"], ["id"])
    key = i.get_foreign_keys("orders", schema="shop_s")[0]
    same((key["constrained_columns"], key["referred_schema"], key["referred_table"], key["referred_columns"], key["options"]),
         (["customer_id"], "shop_s", "customer", ["id"], {"ondelete": "CASCADE"}))
    same(sorted((x["name"], x["unique"]) for x in i.get_indexes("customer", schema="shop_s")), [("customer_mail_key", True), ("ix_shop_s_customer_name", False)])
    newest = [x for x in i.get_indexes("orders", schema="shop_s") if x["name"] == "newest"][0]
    same((newest["column_names"], newest["column_sorting"]["id"][0]), (["customer_id", "id"], "desc"))
    same([(u["name"], u["column_names"]) for u in i.get_unique_constraints("orders", schema="shop_s")], [("one_note", ["customer_id", "note"])])
    same(i.get_table_comment("customer", schema="shop_s"), {"text": "who buys"})
    same([e["name"] for e in i.get_enums(schema="shop_s")], ["mood"])
    same((i.get_view_names(schema="shop_s"), i.get_sequence_names(schema="shop_s")), ([], ["customer_id_seq", "orders_id_seq"]))
    metadata = MetaData()
    metadata.reflect(engine, schema="shop_s")
    same(sorted(metadata.tables), ["shop_s.customer", "shop_s.orders"])


@check("reflection: defaults and checks in their canonical form")
def canonical():
    fresh()
    i = inspect(engine)
    defaults = {c["name"]: c["default"] for c in i.get_columns("customer", schema="shop_s")}
    same({n: defaults[n] for n in ("balance", "tags", "mood", "key", "made", "day")},
         {"balance": "'0'::numeric", "tags": "'{}'::character varying[]", "mood": "'happy'::shop_s.mood", "key": "gen_random_uuid()", "made": "now()", "day": "CURRENT_DATE"})
    same([(k["name"], k["sqltext"]) for k in i.get_check_constraints("customer", schema="shop_s")], [("solvent", "balance >= 0::numeric")])


@check("reflection: no schemas but the user's")
def schemas():
    same([s for s in inspect(engine).get_schema_names() if not s.startswith("shop")], ["information_schema", "public"])


@check("core: insert, upsert, update and delete, RETURNING")
def core():
    fresh()
    with engine.begin() as c:
        ids = c.execute(insert(Customer).returning(Customer.id, sort_by_parameter_order=True), [{"name": f"n{i}"} for i in range(2500)]).scalars().all()
        same(ids, list(range(1, 2501)))
        upsert = pg_insert(Customer).values(id=1, name="changed")
        same(c.execute(upsert.on_conflict_do_update(index_elements=[Customer.id], set_={"name": upsert.excluded.name}).returning(Customer.name)).scalar(), "changed")
        same(c.execute(update(Customer).where(Customer.id <= 10).values(balance=Customer.balance + 5)).rowcount, 10)
        same(c.execute(delete(Customer).where(Customer.id.in_([1, 2, 3])).returning(Customer.id)).scalars().all(), [1, 2, 3])
        same(c.execute(select(func.count()).select_from(Customer)).scalar(), 2497)
        same(c.execute(select(Customer.id).where(Customer.id.in_(list(range(4, 3000)))).order_by(Customer.id).limit(2)).scalars().all(), [4, 5])
        cte = select(Customer.id, func.row_number().over(order_by=Customer.id.desc()).label("place")).cte("placed")
        same(c.execute(select(cte.c.id).where(cte.c.place == 1)).scalar(), 2500)
        same(c.execution_options(stream_results=True, max_row_buffer=100).execute(select(Customer.id)).yield_per(100).fetchmany(3).__len__(), 3)


@check("orm: relations loaded, changed, flushed and deleted")
def orm():
    fresh()
    with Session(engine) as s:
        fill(s)
        ann = s.scalars(select(Customer).where(Customer.name == "Ann").options(selectinload(Customer.orders))).one()
        same((ann.balance, ann.tags, ann.doc, ann.mood, len(ann.orders), isinstance(ann.key, uuid.UUID)), (decimal.Decimal("10.00"), ["a", "b"], {"k": [1, None]}, Mood.sad, 2, True))
        everyone = s.scalars(select(Customer).options(joinedload(Customer.orders)).order_by(Customer.id)).unique().all()
        same([len(c.orders) for c in everyone], [2, 1, 0])
        same(s.execute(select(Customer.name, func.count(Order.id)).outerjoin(Order).group_by(Customer.name).having(func.count(Order.id) > 0).order_by(Customer.name)).all(), [("Ann", 2), ("Bob", 1)])
        other = aliased(Order)
        same(s.scalars(select(Order.note).where(select(other.id).where(other.customer_id == Order.customer_id, other.id < Order.id).exists())).all(), ["second"])
        same(s.scalars(select(Customer.name).where(Customer.tags.any("a"), Customer.doc["k"][0].astext == "1", Customer.tags.contains(["b"]))).all(), ["Ann"])
        ann.orders.remove([o for o in ann.orders if o.note == "second"][0])
        ann.orders[0].note = "changed"
        s.commit()
        same(s.scalars(select(Order.note).order_by(Order.note)).all(), ["changed", "third"])
        s.delete(ann)
        s.commit()
        same(s.scalar(select(func.count()).select_from(Order)), 1)
        s.add(Customer(name="Dan", balance=-1))
        try:
            s.flush()
            raise AssertionError("a negative balance")
        except IntegrityError as e:
            same((e.orig.sqlstate, e.orig.diag.constraint_name), ("23514", "solvent"))
            s.rollback()
        with s.begin_nested():
            s.add(Customer(name="Eve"))
        nested = s.begin_nested()
        s.add(Customer(name="Fay"))
        s.flush()
        nested.rollback()
        s.commit()
        same(s.scalars(select(Customer.name).where(Customer.name.in_(["Eve", "Fay"]))).all(), ["Eve"])


@check("orm: rows locked, and a stale version refused")
def locking():
    fresh()
    with Session(engine) as s, Session(engine) as t:
        fill(s)
        mine = s.scalars(select(Order).order_by(Order.id).with_for_update(skip_locked=True).limit(1)).one()
        theirs = t.scalars(select(Order).order_by(Order.id).with_for_update(skip_locked=True).limit(1)).one()
        assert mine.id != theirs.id
        t.rollback()
        s.commit()
        a, b = s.get(Order, 1), t.get(Order, 1)
        a.note = "a"
        s.commit()
        b.note = "b"
        try:
            t.commit()
            raise AssertionError("a stale version")
        except StaleDataError:
            t.rollback()


@check("engine: isolation levels, pre-ping, lost connections")
def engines():
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as c:
        same(c.get_isolation_level(), "REPEATABLE READ")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
        c.execute(text("vacuum"))
        pid = c.execute(text("select pg_backend_pid()")).scalar()
    other = create_engine(f"postgresql+psycopg://{PLACE}")
    with other.begin() as c:
        c.execute(text("select pg_terminate_backend(:pid)"), {"pid": pid})
    other.dispose()
    with engine.connect() as a, engine.connect() as b:
        same((a.execute(text("select 1")).scalar(), b.execute(text("select 1")).scalar()), (1, 1))


@check("engine: SERIALIZABLE")
def serializable():
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as c:
        same(c.execute(text("select 1")).scalar(), 1)


@check("alembic: no difference between the model and what it made")
def alembic_clean():
    fresh()
    with engine.connect() as c:
        context = MigrationContext.configure(c, opts={"include_schemas": True, "compare_type": True, "include_name": lambda name, kind, _: kind != "schema" or name == "shop_s"})
        same(compare_metadata(context, Base.metadata), [])


@check("alembic: server defaults compared")
def alembic_defaults():
    fresh()
    with engine.connect() as c:
        context = MigrationContext.configure(c, opts={"include_schemas": True, "compare_server_default": True,
                                                      "include_name": lambda name, kind, _: kind != "schema" or name == "shop_s"})
        same(compare_metadata(context, Base.metadata), [])


@check("alembic: operations")
def alembic_operations():
    fresh()
    from sqlalchemy import BigInteger, Column, Text
    with engine.begin() as c:
        op = Operations(MigrationContext.configure(c))
        op.create_table("extra", Column("id", Integer, primary_key=True), Column("v", String(10)), schema="shop_s")
        op.add_column("extra", Column("n", Integer, nullable=False, server_default="5"), schema="shop_s")
        op.alter_column("extra", "v", type_=Text(), new_column_name="word", schema="shop_s")
        op.alter_column("extra", "n", server_default=None, nullable=True, type_=BigInteger(), schema="shop_s")
        op.create_index("extra_word", "extra", ["word"], unique=True, schema="shop_s")
        op.create_unique_constraint("extra_n", "extra", ["n"], schema="shop_s")
        op.create_check_constraint("extra_check", "extra", "n > 0", schema="shop_s")
        op.create_foreign_key("extra_fk", "extra", "customer", ["n"], ["id"], source_schema="shop_s", referent_schema="shop_s")
        op.create_table_comment("extra", "more", schema="shop_s")
        op.rename_table("extra", "further", schema="shop_s")
        op.bulk_insert(Customer.__table__, [{"id": 5, "name": "x"}])
        op.execute("alter type shop_s.mood add value 'angry'")
        op.drop_constraint("extra_fk", "further", schema="shop_s")
        op.drop_index("extra_word", "further", schema="shop_s")
        op.drop_column("further", "word", schema="shop_s")
        op.drop_table("further", schema="shop_s")


@check("asyncpg: core through the asynchronous engine")
async def asynchronous():
    fresh()
    e = create_async_engine(f"postgresql+asyncpg://{PLACE}", pool_size=3)
    async with e.begin() as c:
        await c.execute(insert(Customer), [{"name": "a", "tags": ["x"], "doc": {"k": 1}, "mood": Mood.sad}, {"name": "b", "tags": [], "doc": None, "mood": Mood.happy}])
        rows = (await c.execute(select(Customer.name, Customer.tags, Customer.doc, Customer.mood).order_by(Customer.id))).all()
        same(rows, [("a", ["x"], {"k": 1}, Mood.sad), ("b", [], None, Mood.happy)])
        names = await c.run_sync(lambda sync: inspect(sync).get_table_names(schema="shop_s"))
        same(sorted(names), ["customer", "orders"])

    async def work():
        async with e.begin() as c:
            await c.execute(update(Customer).values(balance=Customer.balance + 1))
    await asyncio.gather(*(work() for _ in range(20)))
    async with e.connect() as c:
        same((await c.execute(select(func.sum(Customer.balance)))).scalar(), decimal.Decimal("40.00"))
    await e.dispose()


if __name__ == "__main__":
    check.run(asyncio.run)
    with engine.begin() as last:
        last.execute(text("drop schema if exists shop_s cascade"))
