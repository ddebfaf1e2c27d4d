"""Answers that must agree: a query's with those of its parts (TLP, NoREC), with its own in other ways of running it, with PostgreSQL's."""

import re
from collections import Counter

from catalog import tables
from grammar import Grammar, Scope
from mutate import tokens

# The one answers, the other says that it cannot: that is no wrong answer. What runs into a limit tells nothing either.
MISSING = {"0A000", "42883", "42704", "57014", "53200", "54001", "54000", "55P03", "54011", "53000", "53400", "57000"}
FLOATS = {700, 701}
PLANS = ["set analytics_above_cost = 0", "set enable_hashjoin = off", "set enable_nestloop = off", "set enable_hashagg = off", "set enable_indexscan = off", "set enable_seqscan = off", "set work_mem = '64kB'",
         "set jit = off", "set plan_cache_mode = force_generic_plan"]


def normal(answer):
    """Rows as a multiset, floats without the digits that the order of adding decides."""
    rows = Counter()
    for row in answer.rows:
        rows[tuple(rounded(v) if t in FLOATS and v is not None else v for v, t in zip(row, answer.types, strict=True))] += 1
    return rows


def rounded(value):
    try:
        return f"{float(value):.9g}"
    except ValueError:
        return value.decode()


class Logic:
    """TLP, NoREC and several plans, on one connection."""

    def __init__(self, rng, catalog, connection, schema):
        self.rng, self.connection = rng, connection
        self.grammar = Grammar(rng, catalog, [t for t in tables(connection, schema) if t.kind in "rvp"], pure=True)

    def rows(self, sql, connection=None):
        answer = (connection or self.connection).query(sql, 30)[-1]
        return None if answer.error or answer.types is None or answer.count > 20000 else normal(answer)

    def step(self):
        """A statement list and a function that tells what is wrong with it, if anything."""
        way = self.rng.randrange(4)
        if way == 3:
            return self.plans()
        g = self.grammar
        source, scope = g.from_clause(Scope(), 2)
        condition = g.condition(scope, self.rng.choice([1, 2, 3]))
        if way == 0:
            return [f"select count(*) from {source} where {condition}", f"select sum(case when {condition} then 1 else 0 end) from {source}"], self.same_number
        columns = ", ".join(c for c, _ in self.rng.sample(scope.columns(), min(len(scope.columns()), 3))) or "1"
        parts = [f"where {condition}", f"where not ({condition})", f"where ({condition}) is null"]
        return [f"select {columns} from {source}"] + [f"select {columns} from {source} {p}" for p in parts], self.same_parts

    def plans(self):
        query = self.grammar.query(self.rng.choice([2, 3]))
        return [query, self.rng.choice(PLANS), query, "reset all"], self.same_answer

    def same_number(self, statements):
        a, b = (self.rows(s) for s in statements)
        if a is None or b is None:
            return None
        (x,), (y,) = a, b
        return None if x[0] == (y[0] or b"0") else f"NoREC: {x[0]} rows where it holds, {y[0]} counted"

    def same_parts(self, statements):
        whole, *parts = (self.rows(s) for s in statements)
        if whole is None or None in parts:
            return None
        total = sum(parts, Counter())
        return None if total == whole else f"TLP: {whole.total()} rows, {total.total()} in parts; {difference(whole, total)}"

    def same_answer(self, statements):
        a = self.rows(statements[0])
        self.connection.query(statements[1], 30)
        b = self.rows(statements[2])
        self.connection.query(statements[3], 30)
        return None if a is None or b is None or a == b else f"another plan, another answer: {difference(a, b)}"


def difference(a, b):
    return f"only the first has {list((a - b).items())[:3]}, only the second {list((b - a).items())[:3]}"


class Differential:
    """The same statements here and there."""

    def __init__(self, rng, catalog, ours, theirs, schema):
        self.rng, self.ours, self.theirs = rng, ours, theirs
        self.grammar = Grammar(rng, catalog, [t for t in tables(theirs, schema) if t.kind in "rvp"], pure=True)
        self.missing = Counter()

    def statement(self):
        rng, g = self.rng, self.grammar
        way = rng.randrange(12)
        if way < 4:  # any function or operator, over constants
            f = rng.choice(g.catalog.functions)
            o = rng.choice(g.catalog.operators)
            if way == 0:
                base = rng.choice(g.types)
                return f"select {'' if o.left is None else g.expr(g.concrete(o.left, base), Scope(), 0)} {o.name} {g.expr(g.concrete(o.right, base), Scope(), 0)}"
            if f.kind == "f" and not f.returns_set and (call := g.call(f, rng.choice(g.types) if f.result.startswith("any") else f.result, Scope(), rng.choice([1, 1, 1, 2]))):
                return f"select {call}"
        if way < 7:
            return f"select {g.expr(g.type(), Scope(), rng.choice([1, 1, 2, 3]))}"
        if way < 9:
            source, scope = g.from_clause(Scope(), 1)
            return f"select {g.any(scope, rng.choice([1, 2, 3]))} from {source}"
        return g.query(rng.choice([1, 2, 3]))

    def verdict(self, statement):
        """(class, what differs), None if nothing does."""
        a = self.ours.query(statement, 30)[-1]
        b = self.theirs.query(statement, 130)[-1]
        if (a.state or b.state) and " from " in statement and not (a.state or "").startswith("42"):
            return None  # what is computed, and first, is the planner's choice
        if a.state in MISSING or a.state == "42601" or b.state in MISSING or (a.state or "").startswith("XX"):
            if a.state != b.state:
                self.missing[f"{a.state} {a.message}" if a.state else f"theirs {b.state}"] += 1
            return None
        if a.state and b.state:
            return None if a.state == b.state else (f"state {a.state} {b.state}", f"ours {a.state} {a.message}, PostgreSQL's {b.state} {b.message}")
        if a.state or b.state:
            side = "refused" if a.state else "accepted"
            return f"{side} {a.state or b.state}", f"ours {told(a)}, PostgreSQL's {told(b)}"
        if a.types is None or b.types is None or b.count > 20000:
            return None
        if any(x != y for x, y in zip(a.types, b.types, strict=False) if max(x, y) < 16384) or len(a.types) != len(b.types):
            return "types", f"ours {a.types}, PostgreSQL's {b.types}"
        if a.names != b.names:
            return "names", f"ours {a.names}, PostgreSQL's {b.names}"
        x, y = normal(a), normal(b)
        return None if x == y else ("rows", f"ours {list((x - y).items())[:3]}, PostgreSQL's {list((y - x).items())[:3]}")


def worth_telling(kind, statement):
    """Which of several errors comes first is the planner's choice: of a mere error the cause must be plain."""
    return kind in ("rows", "types", "names") or len(shape(statement).split()) <= 4 and "null" not in statement.lower()


def told(answer):
    return f"{answer.state} {answer.message}" if answer.error else f"{answer.count} rows {answer.rows[:2]}"


def shape(statement):
    """What a statement uses, without its constants: differing answers of one shape have one cause, mostly."""
    parts = [t.lower() for t in tokens(statement) if not t.isspace()]
    used = {p for p, q in zip(parts, parts[1:], strict=False) if q == "("} | {p for p in parts if re.fullmatch(r"[-+*/<>=~!@#%^&|?]+", p)} | {q for p, q in zip(parts, parts[1:], strict=False) if p == "::"}
    used |= {p for p in parts if p in ("over", "union", "intersect", "except", "distinct", "group", "having", "left", "right", "full", "lateral", "case", "like", "ilike", "similar", "exists", "array", "between", "rollup", "cube")}
    return " ".join(sorted(used - {"select", "from", "as", "and", "or"}))
