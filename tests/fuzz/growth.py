"""Stalls and stacks: every size that a client can set grows until something gives.

`growth.py --throng BIN [--postgres HOST:PORT/DATABASE] [--seconds S] [--largest N] [--most-ms MS]`

Each kind of statement is asked for in doubling sizes until it takes longer than `--patience`, is refused, or is as large as
`--largest`. Told of each size: the time, the server's memory, the longest stretch that held an event loop (`throng.stalls`), and, where
a PostgreSQL is given, its time for the same. What must never be: a server that is gone, a refusal that is not one (54001 and the like), a
stretch of more than `--most-ms`. Such findings make it end with 1.
"""

import argparse
import sys
import time

from target import STALLED_MS, Child
from wire import Connection, Lost, Slow

# Refusals: statement too complex, program limits, memory, cancelled by a timeout, a syntax of too many items, invalid patterns.
REFUSED = {"54000", "54001", "54011", "54023", "53200", "57014", "2201B", "42622", "22003"}


def chain(first, link, n):
    return first + "".join(link.format(i=i, before=i - 1) for i in range(1, n))


def nested(opening, inside, closing, n):
    return opening * n + inside + closing * n


KINDS = {
    "terms of ||": lambda n: "select length(" + "||".join(["'a'"] * n) + ")",
    "terms of +": lambda n: "select " + "+".join(["1::int8"] * n),
    "terms of + over a column": lambda n: "select " + "+".join(["a"] * n) + " from grown",
    "terms of ->": lambda n: "select '{}'::jsonb" + "->'a'" * n,
    "arms of OR": lambda n: "select count(*) from grown where " + " or ".join(f"a = {i} and b <> 0" for i in range(n)),
    "arms of AND": lambda n: "select count(*) from grown where " + " and ".join(f"a <> {i}" for i in range(n)),
    "rows in IN": lambda n: "select count(*) from grown where (a, b) in (" + ",".join(f"({i},{i})" for i in range(n)) + ")",
    "values in IN": lambda n: "select count(*) from grown where a in (" + ",".join(map(str, range(n))) + ")",
    "rows of VALUES": lambda n: "select count(*) from (values " + ",".join(f"({i})" for i in range(n)) + ") v",
    "columns of a select list": lambda n: "select " + ",".join(map(str, range(n))),
    "branches of UNION ALL": lambda n: "select count(*) from (" + " union all ".join(f"select {i}" for i in range(n)) + ") u",
    "branches of UNION": lambda n: "select count(*) from (" + " union ".join(f"select {i}" for i in range(n)) + ") u",
    "branches of EXCEPT": lambda n: "select count(*) from (" + " except ".join(f"select {i}" for i in range(n)) + ") u",
    "joins": lambda n: chain("select count(*) from grown t0", " join grown t{i} on t{i}.a = t{before}.a", min(n, 300)),
    "queries of WITH": lambda n: chain("with c0 as (select 1 as x)", ", c{i} as (select x + 1 as x from c{before})", n) + f" select x from c{n - 1}",
    "explained queries of WITH": lambda n: "explain " + KINDS["queries of WITH"](n),
    "parentheses": lambda n: "select " + nested("(", "1", ")", n),
    "calls in calls": lambda n: "select " + nested("abs(", "1", ")", n),
    "minus signs": lambda n: "select " + "- " * n + "1",
    "NOTs": lambda n: "select " + "not " * n + "true",
    "casts": lambda n: "select 1" + "::int8" * n,
    "CASEs in CASEs": lambda n: "select " + nested("case when true then ", "1", " end", n),
    "subqueries in FROM": lambda n: nested("select * from (", "select 1", ") s", n),
    "subqueries with LIMIT": lambda n: nested("select * from (", "select 1", " limit 1) s", n),
    "scalar subqueries": lambda n: nested("select (", "select 1", ")", n),
    "EXISTS in EXISTS": lambda n: "select 1 where " + nested("exists (select 1 where ", "true", ")", n),
    "arrays in arrays": lambda n: "select " + nested("array[", "1", "]", min(n, 6)),
    "items compared by <": lambda n: f"select count(*) from generate_series(1, 9) g where g < all (array_fill(7, array[{n * 50}]))",
    "items compared by =": lambda n: f"select count(*) from generate_series(1, 9) g where g = any (array_fill(7, array[{n * 50}]))",
    "rows of EXISTS under OR": lambda n: f"select count(*) from generate_series(1, {n}) g where g < 0 or exists (select from generate_series(1, {n}) h where h = g)",
    "rows in rows": lambda n: "select " + nested("row(", "1", ")", n),
    "depth of json": lambda n: f"select length((repeat('[', {n}) || repeat(']', {n}))::json::text)",
    "depth of jsonb": lambda n: f"select length((repeat('[', {n}) || repeat(']', {n}))::jsonb::text)",
    "depth of a jsonpath": lambda n: f"select (repeat('(', {n}) || '$' || repeat(')', {n}))::jsonpath",
    "groups of a regex": lambda n: f"select 'a' ~ (repeat('(', {n}) || 'a' || repeat(')', {n}))",
    "a text for a regex": lambda n: f"select repeat('a', {n}) ~ '(a*)*b\\1'",
    "a text that is hashed": lambda n: f"select md5(repeat('a', {n * 1000}))",
    "a text that is replaced": lambda n: f"select length(replace(repeat('ab', {n * 100}), 'a', 'ccc'))",
    "a text that is split": lambda n: f"select count(*) from regexp_split_to_table(repeat('ab', {n * 10}), 'b')",
    "items of jsonb": lambda n: f"select jsonb_array_length(('[' || repeat('1,', {n * 10}) || '1]')::jsonb)",
    "digits of a power": lambda n: f"select length((99999.123::numeric ^ {n // 4})::text)",
    "a factorial": lambda n: f"select length(factorial({min(n, 32000)})::text)",
    "a LIKE pattern": lambda n: f"select repeat('a', {n * 10}) like repeat('%a', {min(n, 200)}) || 'b'",
    "an identifier": lambda n: f'select 1 as "{"x" * n}"',
    "a literal": lambda n: f"select length('{'x' * (n * 100)}')",
    "blocks in PL/pgSQL": lambda n: "do $$ " + nested("begin ", "null; ", "end; ", n) + "$$",
    "IFs in PL/pgSQL": lambda n: "do $$ begin " + nested("if true then ", "null; ", "end if; ", n) + "end $$",
    "calls in PL/pgSQL": lambda n: f"select go_down({n})",
    "statements in a string": lambda n: "select 1;" * n,
}

DEFINED = [
    "create table grown (a int primary key, b int)",
    "insert into grown select g, g from generate_series(1, 1000) g",
    "analyze grown",
    "create function go_down(n int) returns int language plpgsql as 'begin return case when n = 0 then 0 else go_down(n - 1) end; end'",
]


def views(n):
    yield "create view grown_0 as select a from grown"
    for i in range(1, n):
        yield f"create view grown_{i} as select a + 1 as a from grown_{i - 1}"
    yield f"select count(*) from grown_{n - 1}"
    yield "drop view grown_0 cascade"


class Side:
    """A server and a connection to it, made anew where it is lost."""

    def __init__(self, address, database="postgres"):
        self.address, self.database = address, database
        self.connection = None

    def ask(self, sql, patience):
        """Seconds, and the state of the error if there is one. Lost where the server or the connection is gone."""
        if self.connection is None:
            self.connection = Connection(self.address, database=self.database, options="-c client_min_messages=error", patience=60)
        began = time.monotonic()
        try:
            answers = self.connection.query(sql, patience)
        except (Lost, Slow):
            self.connection.close()
            self.connection = None
            raise
        errors = [a.error for a in answers if a.error]
        return time.monotonic() - began, errors[0]["C"] if errors else None

    def value(self, sql):
        other = Connection(self.address, database=self.database, patience=60)
        try:
            return float(other.query(sql, 60)[0].rows[0][0] or 0)
        finally:
            other.close()


class Growth:
    def __init__(self, child, postgres, options):
        self.child, self.options = child, options
        self.throng = Side(child.address)
        self.postgres = postgres
        self.findings = []
        for side in filter(None, [self.throng, postgres]):
            for sql in DEFINED:
                side.ask(sql, 60)

    def finding(self, what):
        self.findings.append(what)
        print("FINDING", what, flush=True)

    def longest_stall(self):
        return self.throng.value(f"select max({STALLED_MS}) from throng.stalls where began >= (select max(began) from growth_began)")

    def one(self, name, n, statements):
        """Whether to grow further."""
        patience = self.options.patience
        self.throng.ask("drop table if exists growth_began; create table growth_began as select clock_timestamp() as began", 60)
        taken, refused = 0.0, None
        try:
            for sql in statements:
                seconds, state = self.throng.ask(sql, 20 * patience + 60)
                taken, refused = taken + seconds, refused or state
        except Slow:
            self.finding(f"{name} {n}: no answer, and no timeout")
            return False
        except Lost as e:
            self.finding(f"{name} {n}: {e}")
            if self.child.dead():
                self.finding(f"{name} {n}: the server is gone")
                raise SystemExit(1) from e
            return False
        if refused and refused not in REFUSED:
            self.finding(f"{name} {n}: {refused}")
        stall = self.longest_stall()
        if stall > self.options.most_ms:
            self.finding(f"{name} {n}: an event loop was held for {stall:.0f} ms")
        other = ""
        if self.postgres:
            try:
                seconds, state = self.postgres.ask("; ".join(statements), patience * 10)
                other = f"  PostgreSQL {seconds:8.3f} s {state or ''}"
            except (Lost, Slow):
                other = "  PostgreSQL gives no answer"
        print(f"{name:28} {n:>8} {taken:8.3f} s {refused or '':5} held {stall:7.1f} ms  {self.child.rss() >> 20:5} MB{other}", flush=True)
        return taken < patience and not refused

    def run(self):
        until = time.monotonic() + self.options.seconds
        kinds = dict(KINDS)
        growing = {name: 8 for name in kinds}
        self.throng.ask(f"set statement_timeout = '{20 * self.options.patience}s'", 60)
        self.one("a chain of views", 300, list(views(300)))
        # All kinds grow side by side, so that a short run has seen each.
        while growing and time.monotonic() < until:
            for name in list(growing):
                n = growing[name]
                if time.monotonic() > until:
                    break
                goes_on = self.one(name, n, [kinds[name](n)])
                growing[name] = n * self.options.step
                if not goes_on or growing[name] > self.options.largest:
                    del growing[name]
        for fault, _ in self.child.faults():
            self.finding(fault)
        if self.child.dead():
            self.finding("the server is gone")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--throng", required=True)
    parser.add_argument("--postgres", help="HOST:PORT/DATABASE")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--largest", type=int, default=200_000)
    parser.add_argument("--step", type=int, default=4)
    parser.add_argument("--patience", type=int, default=2, help="seconds after which a kind grows no further")
    parser.add_argument("--most-ms", type=float, default=1_000)
    options = parser.parse_args()
    postgres = None
    if options.postgres:
        address, _, database = options.postgres.partition("/")
        host, _, port = address.rpartition(":")
        postgres = Side((host, int(port)), database)
    child = Child(options.throng, ["--memory", "256MB"])
    try:
        growth = Growth(child, postgres, options)
        growth.run()
    finally:
        child.server.__exit__()
    print(f"{len(growth.findings)} findings")
    sys.exit(1 if growth.findings else 0)


if __name__ == "__main__":
    main()
