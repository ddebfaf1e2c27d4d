"""Definitions beside statements: the same random story is told to a server and to a PostgreSQL, and each answer compared.

A story has two tables, prepared statements, cursors, a trigger and functions, and definitions of all of them between BEGIN, SAVEPOINT,
ROLLBACK TO, ROLLBACK and COMMIT: whatever was planned, opened or kept under a definition meets it changed, rolled back, or in use. With
two sessions it also meets what the other has changed while its locks were waited for: that a statement waits is part of the answer.

    definitions.py --server HOST:PORT --postgres HOST:PORT/DATABASE [--sessions 2] [--seconds 60] [--seed N] [--leave STATES]

Ends with 1 where answers differ: the statements of the shortest story found are written down with both answers.
"""

import argparse
import random
import select
import sys
import time

from wire import Connection

# What one of them cannot do tells nothing of definitions; the story ends there.
MISSING = {"0A000"}
# What PostgreSQL alone may answer: it refuses an expression of a body whose row got another type since it was planned.
STALE = {"42804"}
# Who is to give way in a deadlock is not said.
DEADLOCK = {"40P01"}
# Seconds after which a statement is said to wait for the other session, after which it is said so where the other server's has not
# waited, and after which one that waits for nobody is lost.
WAITS, LATE, LOST = 0.4, 5, 20
TABLES = ["t", "u"]
START = """
create table t(a int, b int); create table u(a int, b int); insert into t values (1,10),(2,20),(3,30); insert into u values (1,1),(2,2);
create type e as enum('x','y','z');
create view v as select a, b from t where b > 0;
create function adds(n int) returns bigint language plpgsql as $$begin insert into t(a,b) values(n,n*10); return (select count(*) from t); end$$;
create function counts() returns bigint language sql as 'select count(*) from t';
create function obeys(s text) returns int language plpgsql as $$begin execute s; return 1; end$$;
create function loops(q text, s text) returns int language plpgsql as $$declare r record; n int := 0; begin for r in execute q loop execute s; n := n + 1; end loop; return n; end$$;
create function fires() returns trigger language plpgsql as $$begin if new.a = 4 then execute 'alter table ' || tg_relid::regclass || ' add column c' || new.b || ' int'; elsif new.a = 5 then execute 'truncate ' || tg_relid::regclass; elsif new.a = 6 then execute 'create unique index on ' || tg_relid::regclass || '(b)'; end if; return new; end$$
"""
PREPARED = """
prepare ti(int) as insert into t(a,b) values($1,$1*10); prepare tr as select a, b from t order by a, b; prepare tu(int) as update t set b = b + 1 where a = $1;
prepare ui(int) as insert into u(a,b) values($1,$1*10); prepare ur as select a, b from u order by a, b; prepare vr as select count(*) from v
"""


class Story:
    """Statements drawn one after another."""

    def __init__(self, rng):
        self.rng, self.number = rng, 0

    def definition(self, t):
        self.number += 1
        n, rng = self.number, self.rng
        return rng.choice([
            f"alter table {t} add column d{n} int default {n}", f"alter table {t} add column d{n} text", f"alter table {t} drop column a, add column a int default {n}",
            f"alter table {t} drop column b cascade", f"alter table {t} add column b int default {n}", f"truncate {t}", f"truncate {t}", f"create index on {t}(a)", f"create index i{n} on {t}(b)",
            f"create unique index on {t}(a)", f"alter table {t} add constraint k{n} check (b <> {n * 10})", f"alter table {t} alter b type bigint", f"alter table {t} alter b set default {n}",
            f"alter table {t} rename column b to b{n}", f"alter table {t} rename to t{n}", f"drop table {t} cascade", f"create table {t}(b int, a int)",
            "create or replace view v as select a, b from t where b > 15", "create or replace view v as select a, b from t", "drop view v", "create view v as select a, b from t",
            f"create or replace function counts() returns bigint language sql as 'select count(*) + {n} from t'", f"create trigger g{n} before insert on {t} for each row execute function fires()",
            f"alter type e rename value 'x' to 'x{n}'", f"alter table {t} add column e{n} e default 'x'",
        ])

    def statements(self, count):
        """Drawn one by one, but that here and there a definition is tried, rolled back and followed by another."""
        told = []
        while len(told) < count:
            if self.rng.random() < 0.15:
                told += self.twice()
            told.append(self.statement())
        return told

    def twice(self):
        t, k = self.rng.choice(TABLES), self.rng.randint(1, 9)
        uses = lambda: self.rng.choice([f"execute {t}i({k})", f"execute {t}r", f"select adds({k})", "select counts()"])  # noqa: E731
        first, back, last = self.rng.choice([("begin", "rollback", "commit"), ("savepoint s", "rollback to s", "release s")])
        if first != "begin":
            return ["begin", first, self.definition(t), uses(), back, self.definition(t), uses(), last, "commit", f"execute {t}r"]
        return ["rollback", first, self.definition(t), uses(), back, first, self.definition(t), uses(), last, f"execute {t}r"]

    def statement(self):
        rng, t = self.rng, self.rng.choice(TABLES)
        k = rng.randint(1, 9)
        kind = rng.random()
        if kind < 0.22:
            return self.definition(t)
        if kind < 0.46:
            return rng.choice(["begin", "begin", "savepoint s", "rollback to s", "rollback to s", "release s", "rollback", "rollback", "commit"])
        if kind < 0.74:
            return rng.choice([f"execute ti({k})", "execute tr", f"execute tu({k})", f"execute ui({k})", "execute ur", "execute vr", f"select adds({k})", "select counts()",
                               f"insert into {t}(a,b) values ({k},{k}),({k + 1},{k})", f"select a, b from {t} order by a, b", f"delete from {t} where a = {k}"])
        if kind < 0.84:
            return rng.choice([f"declare c cursor for select a, b from {t} order by a, b", "fetch 1 c", "fetch all c", "close c", f"declare h cursor with hold for select a from {t} order by a", "fetch 2 h", "close h"])
        inner = self.definition(t).replace("'", "''")
        return rng.choice([f"select obeys('{inner}')", f"select obeys('{inner}') from {t} limit 1", f"select loops('select a from {rng.choice(TABLES)}', '{inner}')"])


def drawn(rng, length, sessions):
    """A story: statements with the session that says each. One goes on for a while before the other has its turn."""
    stories = [Story(rng) for _ in range(sessions)]
    said, who = [], 0
    while len(said) < length:
        said += [(who, sql) for sql in stories[who].statements(rng.randint(1, 4))]
        who = rng.randrange(sessions)
    return said


def told(answers):
    """What is compared of an answer: rows, or the SQLSTATE."""
    return [(a.state, sorted(map(repr, a.rows))) if a.state is None else (a.state, []) for a in answers]


class Side:
    def __init__(self, address, database, sessions):
        self.address, self.database, self.sessions = address, database, sessions
        self.connections, self.waiting = [], []

    def begin(self):
        for connection in self.connections:
            connection.close()
        first, *others = [Connection(self.address, database=self.database, patience=60) for _ in range(self.sessions)]
        first.query("set client_min_messages = error; set lock_timeout = '20s'; drop schema if exists definitions cascade; create schema definitions", 60)
        self.connections, self.waiting = [first, *others], [False] * self.sessions
        for connection in self.connections:
            connection.query("set client_min_messages = error; set search_path = definitions", 60)
        first.query(START, 60)
        for connection in self.connections:
            connection.query(PREPARED, 60)

    def say(self, who, sql):
        """The answer; None where it does not come soon."""
        self.connections[who].start(sql, 60)
        return self.heard(who, WAITS)

    def heard(self, who, patience):
        connection = self.connections[who]
        there = connection.buffer or select.select([connection.socket], [], [], patience)[0]
        self.waiting[who] = not there
        return told(connection.collect()) if there else None

    def free(self):
        """Whether a session that waits has nobody to wait for."""
        return all(waits or connection.status == "I" for waits, connection in zip(self.waiting, self.connections))


def heard(sides, who):
    """What a session that waited is answered by now; none of the sides is left behind."""
    patience = LOST if sides[0].free() else WAITS / 4
    answers = [side.heard(who, patience) for side in sides]
    if None in answers and any(answers):
        answers = [answer or side.heard(who, LOST) for side, answer in zip(sides, answers)]
    return answers


def tell(sides, statements, left):
    """Tells a story; the number of the statement at which the answers differ, and the answers. One of the states in `left` ends it."""
    for side in sides:
        side.begin()
    renamed = False
    for n, (who, sql) in enumerate(statements):
        if sides[0].waiting[who]:
            continue
        renamed |= "rename" in sql
        said = [side.say(who, sql) for side in sides]
        # A busy machine is slow to answer. Who waits for a lock does not answer however long one listens.
        told_of = [[answer or side.heard(who, LATE) if any(said) else answer for side, answer in zip(sides, said)]]
        if all(all(side.waiting) for side in sides):
            return None
        told_of += [heard(sides, other) for other in range(sides[0].sessions) if other != who and sides[0].waiting[other]]
        for answers in told_of:
            states = {state for answer in answers for state, _ in answer or []}
            if states & left or {state for state, _ in answers[1] or []} & STALE:
                return None
            # Kept texts follow a rename, so that and who keeps one wait for each other; PostgreSQL's keep numbers.
            if answers[0] is None and answers[1] and renamed:
                return None
            if answers[0] != answers[1] or answers[0] is None and sides[0].free():
                return n, answers
    return None


def shortened(sides, statements, left):
    """Leaves out what the difference does not need."""
    at = len(statements) - 2
    while at >= 0:
        without = statements[:at] + statements[at + 1:]
        found = tell(sides, without, left)
        if found:
            statements = without[:found[0] + 1]
        at = min(at, len(statements) - 1) - 1
    return statements


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--server", required=True)
    p.add_argument("--postgres", required=True, help="HOST:PORT/DATABASE; it gets a schema of the name definitions")
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    p.add_argument("--leave", default="", help="SQLSTATEs, comma-separated, at which a story ends without a finding")
    p.add_argument("--length", type=int, default=40)
    p.add_argument("--sessions", type=int, default=2)
    arguments = p.parse_args()
    left = MISSING | DEADLOCK | set(arguments.leave.split(","))
    place = lambda s: (s.rsplit(":", 1)[0], int(s.rsplit(":", 1)[1]))  # noqa: E731
    postgres, _, database = arguments.postgres.partition("/")
    places = [(place(arguments.server), "postgres"), (place(postgres), database or "postgres")]
    sides = [Side(address, name, arguments.sessions) for address, name in places]
    end, stories, seed = time.monotonic() + arguments.seconds, 0, arguments.seed
    while time.monotonic() < end:
        statements = drawn(random.Random(seed + stories), arguments.length, arguments.sessions)
        found = tell(sides, statements, left)
        if found:
            print(f"seed {seed + stories} differs at statement {found[0]}: {found[1]}", flush=True)
            short = shortened(sides, statements[:found[0] + 1], left)
            _, (ours, theirs) = tell(sides, short, left) or found
            print(f"seed {seed + stories}:", *(f"  {who}: {sql};" for who, sql in short), f"ours:   {ours}", f"theirs: {theirs}", sep="\n")
            return 1
        stories += 1
    print(f"{stories} stories, seed {seed}: no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
