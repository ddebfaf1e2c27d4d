"""The threads that load the server, one mode each. What a worker sends it notes first, so that it can be sent again."""

import random
import re
import threading
import time
import traceback

import protocol
from catalog import tables
from mutate import DANGEROUS, Mutator
from oracle import Differential, Logic, shape, worth_telling
from procedures import GROUND, Bodies
from shrink import shorter
from statements import SETUP, Statements
from wire import Connection, Lost, Slow, Unasked

LIMIT = 2  # seconds, statement_timeout
STEPS = 150  # statements in an episode; then the schema is made anew
INTERNAL = ("XX000", "XX001", "XX002")
# What PostgreSQL, too, says with XX000.
THEIRS = re.compile(r"unsupported json(b|path) version number|is not marked NOT NULL|unrecognized object type abbreviation|NUMA is not supported|tuple concurrently updated|conflicting not-null constraint names|could not read blocks|unsupported object class|could not open relation with OID|unrecognized class ID|cache lookup failed for sequence")
ODD_PARAMETERS = [None, b"", b"1", b"abc", b"{1,2}", b"2024-01-01", b"\0\0\0\1", b"1.5", b"\xff", b"true", b"[1]"]


def options(schema):
    return f"-c statement_timeout={LIMIT}s -c lock_timeout=40 -c search_path={schema}"


def fresh(address, schema, more=(), patience=60, database="postgres"):
    """A connection whose schema is new and holds what SETUP makes, and `more`."""
    connection = Connection(address, database=database, options=f"-c search_path={schema} -c statement_timeout=100s", patience=patience)
    empty(connection, schema, patience)
    for s in [*SETUP.split(";\n"), *more]:
        answer = connection.query(s, patience)[-1]
        if answer.error and answer.state not in ("0A000", "42704"):
            raise Lost(f"{s[:80]}: {answer.message}")
    return connection


def empty(connection, schema, patience):
    """The schema is there and holds nothing. The drop takes its objects' locks as it comes to them, so beside a session of
    the last episode that has not ended yet it may be the one that a deadlock is broken at; then it is tried again."""
    for s in [f"drop schema if exists {schema} cascade", f"create schema {schema}"]:
        for _ in range(5):
            answer = connection.query(s, patience)[-1]
            if answer.state != "40P01":
                break
        if answer.error:
            raise Lost(f"{s[:80]}: {answer.message}")


def wrong(answers):
    """(kind, message) of an answer that no statement may have."""
    for a in answers:
        if a.state in INTERNAL and not THEIRS.search(a.message):
            return "internal", f"{a.state} {a.message}"
    return None


class Worker(threading.Thread):
    """`history` is what was sent in this episode, oldest first: (connection, operation)."""

    def __init__(self, number, hunt):
        super().__init__(daemon=True, name=f"{type(self).__name__.lower()} {number}")
        self.number, self.hunt = number, hunt
        self.rng = random.Random(f"{hunt.seed} {self.name}")
        self.schema = f"fz{type(self).__name__[:3].lower()}{number}"
        self.history, self.connections, self.done = [], [], 0

    def run(self):
        while not self.hunt.over.is_set():
            self.hunt.up.wait()
            self.history, began = [], self.hunt.begun
            try:
                self.episode()
            except Slow as e:
                self.hunt.hang(self, str(e))
            except (Lost, OSError) as e:
                if not THEIRS.search(str(e)):
                    self.hunt.lost(self, str(e), began)
            except Unasked as e:
                self.hunt.report("unasked", str(e), self, self.history[-6:], shrink=False)
            except Exception:  # the fuzzer's own fault, or an answer that it does not understand
                self.hunt.report("fuzzer", traceback.format_exc(), self, list(self.history), traceback.format_exc(), shrink=False)
            finally:
                for connection in self.connections:
                    connection.close()
                self.connections = []

    def connect(self, n):
        self.connections = [Connection(self.hunt.target.address, options=options(self.schema)) for _ in range(n)]

    def send(self, i, operation):
        """Runs an operation on a connection; reports what may not be."""
        self.history.append((i, operation))
        answers = perform(self.connections, i, operation, LIMIT + self.hunt.grace)
        self.done += 1
        if found := wrong(answers):
            self.hunt.report(*found, self, list(self.history))
        return answers


def perform(connections, i, operation, patience):
    kind, *rest = operation
    connection = connections[i]
    if kind == "query":
        return connection.query(rest[0], patience, rest[1] if len(rest) > 1 else b"")
    if kind == "extended":
        return connection.extended(rest[0], patience, **rest[1])
    if kind == "overlap":  # on two connections at once; the first may be cancelled
        other = connections[(i + 1) % len(connections)]
        connection.start(rest[0], patience)
        other.start(rest[1], patience)
        if rest[2]:
            connection.cancel()
        answers = other.collect() if len(connections) > 1 else []
        return connection.collect() + answers
    raise AssertionError(kind)


class Grammar(Worker):
    """Statements made from the server's catalog, on three connections over one schema."""

    ground = ()

    def generator(self):
        return Statements(self.rng, self.hunt.catalog, tables(self.connections[0], self.schema))

    def episode(self):
        fresh(self.hunt.target.address, self.schema, self.ground).close()
        self.connect(3)
        make = self.generator()
        for step in range(STEPS):
            if self.hunt.over.is_set() or not self.hunt.up.is_set():
                return
            if step % 25 == 24 and self.connections[0].status == "I":
                self.history.append((0, ("query", "select 1")))
                try:
                    make.tables = tables(self.connections[0], self.schema)
                except RuntimeError:
                    pass
            self.send(*self.operation(make))

    def operation(self, make):
        rng = self.rng
        i = rng.choice([0, 0, 0, 1, 2])
        if self.connections[i].status == "E" and rng.random() < 0.6:
            return i, ("query", rng.choice(["rollback", "rollback", "rollback to s1", "commit"]))
        if self.connections[i].status == "T" and rng.random() < 0.08:
            return i, ("query", rng.choice(["commit", "rollback"]))
        sql = make.statement()
        way = rng.random()
        if way < 0.72:
            return i, ("query", sql, make.copy_data())
        if way < 0.93:
            parameters = [rng.choice(ODD_PARAMETERS) for _ in range(rng.choice([0, 0, 0, 1, 2, 3]))]
            if rng.random() < 0.3:
                sql, parameters = parametrized(rng, sql)
            return i, ("extended", sql, {"parameters": parameters, "types": [rng.choice([0, 0, 23, 25, 1700, 1184, 3802, 999999]) for _ in range(rng.choice([0, 0, len(parameters)]))],
                                         "formats": rng.choice([[], [], [0], [1], [0, 1]]), "results": rng.choice([[], [], [0], [1], [1], [0, 1]]), "limit": rng.choice([0, 0, 0, 1, 5]),
                                         "name": rng.choice(["", "", "s1"]), "describe": rng.random() < 0.8})
        return i, ("overlap", sql, make.statement(), rng.random() < 0.4)


class Procedures(Grammar):
    """As [`Grammar`], most of it bodies in PL/pgSQL, triggers and what else is new."""

    ground = GROUND.split(";\n")

    def generator(self):
        make = super().generator()
        bodies = Bodies(make)
        make.ways.append((sum(n for n, _ in make.ways) * 2, bodies.statement))
        return make


def parametrized(rng, sql):
    """Some of a statement's numbers and texts become parameters."""
    from mutate import kind, tokens
    parts, parameters = tokens(sql), []
    for i, t in enumerate(parts):
        if kind(t) in ("number", "string") and t[0] in "'0123456789" and rng.random() < 0.5 and len(parameters) < 20:
            parameters.append(t.strip("'").encode())
            parts[i] = f"${len(parameters)}"
    return "".join(parts), parameters


class Mutation(Worker):
    """PostgreSQL's scripts, statement by statement, each with what becomes of it by mutation."""

    def episode(self):
        corpus, rng = self.hunt.corpus, self.rng
        address = self.hunt.target.address
        first = Connection(address, options="-c statement_timeout=60s")
        empty(first, self.schema, 70)
        first.close()
        self.schema_path = f"{self.schema},ground"
        self.connections = [Connection(address, options=options(self.schema_path)) for _ in range(2)]
        mutator = Mutator(rng, corpus)
        for statement in corpus.scripts[rng.choice(list(corpus.scripts))]:
            for text in [statement] + [mutator.mutated(statement) for _ in range(rng.choice([0, 1, 2]))]:
                if self.hunt.over.is_set() or not self.hunt.up.is_set():
                    return
                if DANGEROUS.search(text) or len(text) > 20000:
                    continue
                i = 0 if rng.random() < 0.9 else 1
                if rng.random() < 0.85:
                    self.send(i, ("query", text, b"1\tx\n"))
                else:
                    self.send(i, ("extended", text, {"results": [rng.choice([0, 1])], "parameters": [], "limit": rng.choice([0, 0, 1])}))
                if self.connections[i].status == "E" and rng.random() < 0.7:
                    self.send(i, ("query", "rollback"))


class Protocol(Worker):
    """Broken messages; after some of them a new session must be served."""

    def episode(self):
        make = protocol.Messages(self.rng)
        for _ in range(20):
            if self.hunt.over.is_set() or not self.hunt.up.is_set():
                return
            pieces = make.session()
            self.history.append((0, ("bytes", pieces)))
            protocol.drive(self.hunt.target.address, pieces)
            self.done += 1
        if not protocol.alive(self.hunt.target.address):
            raise Lost("no session is served after broken messages")


class Oracle(Worker):
    """Answers that must agree with each other."""

    def episode(self):
        setup = fresh(self.hunt.target.address, self.schema)
        setup.close()
        self.connect(1)
        logic = Logic(self.rng, self.hunt.pure, self.connections[0], self.schema)
        for _ in range(STEPS):
            if self.hunt.over.is_set() or not self.hunt.up.is_set():
                return
            statements, judge = logic.step()
            self.history = [(0, ("query", s)) for s in statements]
            self.done += len(statements)
            told = judge(statements)
            if told:
                self.hunt.report("logic", f"{told.split(':')[0]} {shape(' '.join(statements))}", self, list(self.history), told)


class Diff(Worker):
    """The same to a PostgreSQL."""

    def episode(self):
        fresh(self.hunt.target.address, self.schema).close()
        fresh(self.hunt.postgres, self.schema, database=self.hunt.database).close()
        self.connect(1)
        ours = self.connections[0]
        theirs = Connection(self.hunt.postgres, database=self.hunt.database, options=options(self.schema))
        self.connections.append(theirs)
        both = Differential(self.rng, self.hunt.shared, ours, theirs, self.schema)
        for _ in range(STEPS * 4):
            if self.hunt.over.is_set() or not self.hunt.up.is_set():
                break
            statement = both.statement()
            self.history = [(0, ("query", statement))]
            self.done += 1
            found = both.verdict(statement)
            if not found or self.hunt.known(found, statement):
                continue
            end = time.monotonic() + 20
            short = shorter(statement, lambda s, c=found[0]: (both.verdict(s) or ("",))[0] == c, 15)
            while time.monotonic() < end and (again := shorter(short, lambda s, c=found[0]: (both.verdict(s) or ("",))[0] == c, 5)) != short:
                short = again
            told = both.verdict(short) or found
            if worth_telling(found[0], short):
                self.hunt.report("differs", f"{found[0]} {shape(short)}", self, [(0, ("query", short))], told[1], shrink=False)
        self.hunt.missing.update(both.missing)
