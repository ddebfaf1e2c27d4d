"""Random expressions and queries over what the catalog holds, typed, so that most of them are taken.

With `pure` a query has one answer: nothing volatile, no LIMIT over an order with ties, nothing that depends on the order of rows.
"""

from catalog import POLYMORPHIC, Table
from values import literal

COMMON = ["integer", "integer", "bigint", "text", "text", "numeric", "boolean", "double precision", "date", "timestamp without time zone", "timestamp with time zone", "interval",
          "jsonb", "integer[]", "text[]", "character varying", "bytea", "smallint", "uuid", "time without time zone", "json", "real"]
COMPARED = ["integer", "bigint", "text", "numeric", "double precision", "date", "timestamp without time zone", "boolean", "interval", "bytea", "integer[]", "uuid", "jsonb"]
JOINS = ["join", "left join", "right join", "full join", "cross join"]
# Their answer depends on the order of rows, or rounds by it.
UNORDERED = {"array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg", "xmlagg", "json_agg_strict", "jsonb_agg_strict", "json_object_agg_strict",
             "json_object_agg_unique", "jsonb_object_agg_unique", "jsonb_object_agg_strict", "json_object_agg_unique_strict", "jsonb_object_agg_unique_strict", "any_value", "mode"}
FLOATS = {"real", "double precision"}
# Built by the parser: no row of pg_proc tells of them.
SPECIAL = {
    "text": ["overlay({text} placing {text} from {integer} for 2)", "trim(both {text} from {text})", "substring({text} from {integer} for 3)", "substring({text} similar {text} escape '#')",
             "json_serialize({json})", "({text} collate \"C\")"],
    "integer": ["position({text} in {text})", "json_value({jsonb}, '$.a' returning integer null on error)"],
    "numeric": ["extract(epoch from {interval})", "extract(year from {date})", "extract(microseconds from {time without time zone})"],
    "boolean": ["({text} like {text})", "({text} ilike {text})", "({text} similar to {text})", "({jsonb} is json object)", "(({date}, {date}) overlaps ({date}, {interval}))",
                "json_exists({jsonb}, '$.a')", "({boolean} is not unknown)", "(row({integer}, {text}) < row({integer}, {text}))",
                "(row({integer}, {text}) is null)", "(row({integer}, null) is not distinct from row({integer}, {text}))", "({integer} between symmetric {integer} and {integer})"],
    "jsonb": ["json_query({jsonb}, '$.b' with wrapper)", "({jsonb})['a']", "jsonb_build_object('k', {integer}, 'l', {text})", "jsonb_build_array({integer}, {text}, {jsonb})"],
    "json": ["json_object('a': {integer} absent on null)", "json_array({integer}, {text} null on null)", "row_to_json(row({integer}, {text}))", "to_json({text[]})", "json_scalar({integer})"],
    "timestamp without time zone": ["({timestamp with time zone} at time zone {text})", "({timestamp with time zone} at time zone 'Europe/Rome')"],
    "timestamp with time zone": ["({timestamp without time zone} at time zone 'America/New_York')"],
    "integer[]": ["({integer[]})[{integer}:{integer}]", "({integer[]})[:2]"], "text[]": ["string_to_array({text}, {text})", "regexp_split_to_array({text}, 'a')"],
}


class Scope:
    """Relations in FROM: (alias, columns)."""

    def __init__(self, relations=(), outer=None):
        self.relations = list(relations)
        self.outer = outer

    def columns(self, type_=None):
        found = [(f"{alias}.{name}", t) for alias, columns in self.relations for name, t in columns if type_ in (None, t)]
        if self.outer:
            found += self.outer.columns(type_)
        return found


class Grammar:
    def __init__(self, rng, catalog, tables=(), pure=False, types=None):
        self.rng, self.catalog, self.tables, self.pure = rng, catalog, list(tables), pure
        self.types = [t for t in types or COMMON if t.removesuffix("[]") in catalog.types]
        self.odd = [t for t in catalog.types if t not in self.types]
        self.number = 0

    def name(self, prefix):
        self.number += 1
        return f"{prefix}{self.number}"

    def type(self):
        if self.odd and self.rng.random() < 0.06:
            return self.rng.choice(self.odd)
        return self.rng.choice(self.types)

    # Expressions

    def expr(self, type_, scope, depth):
        rng = self.rng
        columns = scope.columns(type_)
        if depth <= 0:
            return rng.choice(columns)[0] if columns and rng.random() < 0.7 else literal(rng, type_)
        for _ in range(4):
            made = self.one(type_, scope, depth, columns)
            if made:
                return made
        return literal(rng, type_)

    def one(self, type_, scope, depth, columns):
        rng = self.rng
        way = rng.randrange(24)
        if way < 6:
            return self.call(rng.choice(self.catalog.by_result.get(type_, [None])), type_, scope, depth)
        if way < 11:
            return self.operator(type_, scope, depth)
        if way < 13:
            return rng.choice(columns)[0] if columns else None
        if way == 13:
            return self.case(type_, scope, depth)
        if way == 14:
            f = rng.choice(["coalesce", "nullif", "greatest", "least"])
            return f"{f}({self.expr(type_, scope, depth - 1)}, {self.expr(type_, scope, depth - 1)})"
        if way == 15:
            source = rng.choice(self.catalog.casts_to.get(type_, ["text"]) + ["text"])
            return f"({self.expr(source, scope, depth - 1)})::{type_}" if rng.random() < 0.7 else f"cast({self.expr(source, scope, depth - 1)} as {type_})"
        if way == 16:
            return self.scalar_subquery(type_, scope, depth)
        if way == 17:
            if type_.endswith("[]"):
                return f"array[{', '.join(self.expr(type_[:-2], scope, depth - 1) for _ in range(rng.randint(1, 3)))}]"
            return f"({self.expr(type_ + '[]', scope, depth - 1)})[{self.expr('integer', scope, 0)}]" if type_ in self.types else None
        if way < 20:
            options = SPECIAL.get(type_)
            return self.fill(rng.choice(options), scope, depth) if options else None
        if way == 20:
            return self.polymorphic(type_, scope, depth)
        return self.condition(scope, depth) if type_ == "boolean" else None

    def fill(self, template, scope, depth):
        out = []
        for i, part in enumerate(template.replace("}", "{").split("{")):
            out.append(self.expr(part, scope, depth - 1) if i % 2 else part)
        return "".join(out)

    def concrete(self, type_, result):
        """The type that a polymorphic argument gets where the call's result is `result`."""
        element = result.removesuffix("[]")
        if type_ in ("anyarray", "anycompatiblearray"):
            return element + "[]"
        return element if type_ in POLYMORPHIC else type_

    def call(self, f, type_, scope, depth):
        if f is None:
            return None
        arguments = [self.expr(self.concrete(a, "integer" if type_.startswith("any") else type_), scope, depth - 1) if a not in ("any", '"any"', "record") else self.any(scope, depth - 1)
                     for a in f.arguments]
        if f.name in UNORDERED and self.pure:
            return None
        name = f.name if f.name.isidentifier() and f.name not in ("position", "overlay", "substring", "trim", "normalize", "extract", "timestamp", "time", "interval", "bit", "char", "float4", "numeric") \
            else f'pg_catalog."{f.name}"'
        return f"{name}({', '.join(arguments)})"

    def polymorphic(self, type_, scope, depth):
        generic = "anyarray" if type_.endswith("[]") else "anyelement"
        f = self.rng.choice(self.catalog.by_result.get(generic, []) + self.catalog.by_result.get(generic.replace("any", "anycompatible").replace("element", ""), []) + [None])
        return self.call(f, type_, scope, depth)

    def any(self, scope, depth):
        return self.expr(self.type(), scope, depth)

    def operator(self, type_, scope, depth):
        o = self.rng.choice(self.catalog.operators_by_result.get(type_, [None]))
        if o is None:
            return None
        base = self.rng.choice(self.types)
        right = self.expr(self.concrete(o.right, base), scope, depth - 1)
        if o.left is None:
            return f"({o.name} {right})"
        return f"({self.expr(self.concrete(o.left, base), scope, depth - 1)} {o.name} {right})"

    def case(self, type_, scope, depth):
        rng = self.rng
        if rng.random() < 0.6:
            whens = " ".join(f"when {self.condition(scope, depth - 1)} then {self.expr(type_, scope, depth - 1)}" for _ in range(rng.randint(1, 2)))
            head = "case"
        else:
            t = rng.choice(COMPARED)
            head = f"case {self.expr(t, scope, depth - 1)}"
            whens = " ".join(f"when {self.expr(t, scope, 0)} then {self.expr(type_, scope, depth - 1)}" for _ in range(rng.randint(1, 3)))
        last = f" else {self.expr(type_, scope, depth - 1)}" if rng.random() < 0.7 else ""
        return f"({head} {whens}{last} end)"

    def condition(self, scope, depth):
        rng = self.rng
        if depth <= 0:
            return self.comparison(scope, 0)
        way = rng.randrange(14)
        if way < 4:
            return self.comparison(scope, depth - 1)
        if way < 6:
            return f"({self.condition(scope, depth - 1)} {rng.choice(['and', 'or'])} {self.condition(scope, depth - 1)})"
        if way == 6:
            return f"(not {self.condition(scope, depth - 1)})"
        if way == 7:
            return f"({self.any(scope, depth - 1)} is {rng.choice(['', 'not '])}null)"
        if way == 8:
            t = rng.choice(COMPARED)
            return f"({self.expr(t, scope, depth - 1)} {rng.choice(['', 'not '])}in ({', '.join(self.expr(t, scope, 0) for _ in range(rng.randint(1, 4)))}))"
        if way == 9:
            t = rng.choice(COMPARED)
            return f"({self.expr(t, scope, depth - 1)} {rng.choice(['', 'not '])}between {self.expr(t, scope, 0)} and {self.expr(t, scope, 0)})"
        if way == 10:
            t = rng.choice([c for c in COMPARED if not c.endswith("[]")])
            return f"({self.expr(t, scope, depth - 1)} {rng.choice(['=', '<>', '<', '>='])} {rng.choice(['any', 'all'])} ({self.expr(t + '[]', scope, depth - 1)}))"
        if way == 11 and depth > 1:
            t = rng.choice(COMPARED)
            q, _ = self.select([t], scope, depth - 2)
            return f"({self.expr(t, scope, depth - 1)} {rng.choice(['in', 'not in', '= any', '<> all', '< any', '>= all'])} ({q}))"
        if way == 12 and depth > 1:
            return f"({rng.choice(['', 'not '])}exists ({self.select(None, scope, depth - 2)[0]}))"
        return self.expr("boolean", scope, depth - 1)

    def comparison(self, scope, depth):
        t = self.rng.choice(COMPARED)
        columns = scope.columns()
        if columns and self.rng.random() < 0.6:
            t = self.rng.choice(columns)[1]
            if t in ("json", "point", "xml", "jsonpath"):
                t = "integer"
        o = self.rng.choice(["=", "=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"])
        return f"({self.expr(t, scope, depth)} {o} {self.expr(t, scope, depth)})"

    def scalar_subquery(self, type_, scope, depth):
        if depth < 2 or not self.tables:
            return None
        rng = self.rng
        if rng.random() < 0.5 and self.catalog.aggregates.get(type_):
            relation, inner = self.relation(scope, depth - 2)
            value = self.aggregate(type_, Scope([inner], scope), depth - 2)
            if value:
                where = f" where {self.condition(Scope([inner], scope), depth - 2)}" if rng.random() < 0.6 else ""
                return f"(select {value} from {relation}{where})"
        if rng.random() < 0.3:
            return f"array(select {self.expr(type_[:-2], scope, depth - 2)})" if type_.endswith("[]") else f"(select {self.expr(type_, scope, depth - 2)})"
        query, _ = self.select([type_], scope, depth - 2)
        return f"(select v from ({query}) s(v) order by 1 limit 1)" if type_ not in ("json", "jsonpath", "xml", "point") else None

    def aggregate(self, type_, scope, depth, window=False):
        rng = self.rng
        pool = [f for f in self.catalog.aggregates.get(type_, []) if not (self.pure and (f.name in UNORDERED or FLOATS & set(f.arguments)))]
        if rng.random() < 0.2 and type_ == "bigint":
            return "count(*)"
        if not pool:
            return None
        f = rng.choice(pool)
        if f.name in ("percentile_cont", "percentile_disc", "mode"):
            return f"{f.name}({'' if f.name == 'mode' else '0.5'}) within group (order by {self.expr('double precision', scope, depth)})"
        if f.name in ("rank", "dense_rank", "percent_rank", "cume_dist"):
            return f"{f.name}({self.expr('integer', scope, 0)}) within group (order by {self.expr('integer', scope, depth)})"
        body = ", ".join(self.expr(self.concrete(a, type_), scope, depth - 1) if a not in ('"any"', "record") else self.any(scope, depth - 1) for a in f.arguments)
        if not body and f.name == "count":
            body = "*"
        elif body and not window:
            if rng.random() < 0.15:
                body = "distinct " + body
            elif rng.random() < 0.15:
                body += f" order by {self.expr(rng.choice(COMPARED), scope, depth - 1)} {rng.choice(['', 'desc', 'nulls first'])}"
        filtered = f" filter (where {self.condition(scope, depth - 1)})" if rng.random() < 0.15 else ""
        return f"{f.name}({body}){filtered}"

    def window(self, type_, scope, depth):
        rng = self.rng
        pool = [f for f in self.catalog.windows if f.result in (type_, "anyelement", "anycompatible")]
        if pool and rng.random() < 0.6:
            f = rng.choice(pool)
            if self.pure and f.name in ("row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"):
                return None
            head = f"{f.name}({', '.join(self.expr(self.concrete(a, type_), scope, 1 if i == 0 else 0) for i, a in enumerate(f.arguments))})"
        else:
            head = self.aggregate(type_, scope, depth, window=True)
            if head is None or "within group" in head:
                return None
        return f"{head} over ({self.window_body(scope, depth)})"

    def window_body(self, scope, depth):
        rng = self.rng
        parts = []
        if rng.random() < 0.5:
            parts.append("partition by " + self.expr(rng.choice(COMPARED), scope, depth - 1))
        if rng.random() < 0.7:
            t = rng.choice(["integer", "date", "numeric", "text", "timestamp without time zone"])
            parts.append(f"order by {self.expr(t, scope, depth - 1)} {rng.choice(['', 'desc', 'nulls first'])}")
            if rng.random() < 0.5:
                units = "range" if self.pure else rng.choice(["rows", "range", "groups"])
                offset = {"date": "'3 days'", "timestamp without time zone": "'1 day'", "text": None, "numeric": "1.5"}.get(t, "2") if units == "range" else str(rng.randint(0, 3))
                ends = ["unbounded {}", "current row"] + (["{o} {}"] if offset else [])
                frame = [rng.choice(ends), rng.choice(ends)]
                sides = [e.replace("{o}", offset or "").format(side) for e, side in zip(frame, [rng.choice(["preceding", "preceding", "following"]), "following"], strict=True)]
                exclude = "" if self.pure else rng.choice(["", "", " exclude ties", " exclude current row", " exclude group"])
                parts.append(f"{units} between {sides[0]} and {sides[1]}{exclude}")
        return " ".join(parts)

    # FROM

    def relation(self, outer, depth, lateral=None):
        """A FROM item and what it brings into scope."""
        rng = self.rng
        alias = self.name("t")
        way = rng.randrange(10)
        if depth > 0 and way == 0:
            query, types = self.select(None, lateral or outer, depth - 1)
            columns = [(f"c{i}", t) for i, t in enumerate(types)]
            return f"{'lateral ' if lateral else ''}({query}) {alias}({', '.join(c for c, _ in columns)})", (alias, columns)
        if way == 1:
            types = [self.type() for _ in range(rng.randint(1, 3))]
            rows = ", ".join("(" + ", ".join(literal(rng, t) for t in types) + ")" for _ in range(rng.randint(1, 4)))
            columns = [(f"c{i}", t) for i, t in enumerate(types)]
            return f"(values {rows}) {alias}({', '.join(c for c, _ in columns)})", (alias, columns)
        if way == 2:
            call, t = rng.choice([("generate_series(1, {})".format(rng.choice([0, 3, 10, 100])), "integer"), ("generate_series(date '2024-01-01', date '2024-01-05', '1 day')", "timestamp with time zone"),
                                  (f"unnest({self.expr('integer[]', lateral or Scope(), 1)})", "integer"), (f"jsonb_array_elements({self.expr('jsonb', lateral or Scope(), 1)})", "jsonb"),
                                  (f"regexp_split_to_table({self.expr('text', lateral or Scope(), 1)}, ',')", "text"), (f"generate_series(({self.expr('integer', lateral or Scope(), 0)}) % 30, 5)", "integer")])
            if rng.random() < 0.3:
                return f"{call} with ordinality {alias}(c0, c1)", (alias, [("c0", t), ("c1", "bigint")])
            return f"{call} {alias}(c0)", (alias, [("c0", t)])
        if way == 3 and self.catalog.sets and not self.pure and rng.random() < 0.4:
            f = rng.choice(self.catalog.sets)
            return f"{self.call(f, f.result, lateral or Scope(), 1) or 'generate_series(1, 2)'} {alias}", (alias, [])
        if not self.tables:
            return f"(select 1) {alias}(c0)", (alias, [("c0", "integer")])
        table = rng.choice(self.tables)
        only = "only " if rng.random() < 0.05 else ""
        sample = ""
        return f"{only}{table.name} {alias}{sample}", (alias, table.columns)

    def from_clause(self, outer, depth):
        rng = self.rng
        text, relation = self.relation(outer, depth)
        scope = Scope([relation], outer)
        for _ in range(rng.choice([0, 0, 1, 1, 2]) if depth > 0 else 0):
            lateral = scope if rng.random() < 0.3 else None
            more, relation = self.relation(outer, depth - 1, lateral)
            join = rng.choice(JOINS + ["join", "left join", ","])
            if lateral and join in ("right join", "full join"):
                join = "left join"
            scope.relations.append(relation)
            if join == ",":
                text += f", {more}"
                continue
            on = ""
            if join != "cross join":
                left = [c for r in scope.relations[:-1] for c in Scope([r]).columns()]
                pairs = [(a, b) for a, t in left for b, u in Scope([relation]).columns() if t == u and t not in ("json", "xml", "point", "jsonpath")]
                if pairs and (rng.random() < 0.8 or join == "full join"):
                    on = " on " + "{} = {}".format(*rng.choice(pairs))
                    if rng.random() < 0.2 and join != "full join":
                        on += f" and {self.condition(Scope(scope.relations, None if ',' in text else outer), 1)}" if "," not in text else ""
                else:
                    on = " on " + rng.choice(["true", "false", "null"] if join != "full join" else ["true"])
            text = f"{text} {join} {more}{on}"
        return text, scope

    # SELECT

    def query(self, depth=3):
        """A whole query."""
        rng = self.rng
        outer = Scope()
        if rng.random() < 0.12 and depth > 1:
            return self.with_query(depth)
        return self.select(None, outer, depth)[0]

    def with_query(self, depth):
        rng = self.rng
        if rng.random() < 0.3:
            return (f"with recursive r(n, s) as (select 1, {self.expr('text', Scope(), 1)} union {rng.choice(['', 'all'])} select n + 1, s || 'x' from r where n < {rng.randint(1, 12)}"
                    f"{' and ' + self.condition(Scope([('r', [('n', 'integer'), ('s', 'text')])]), 1) if rng.random() < 0.4 else ''}) select count(*), max(n), sum(length(s)) from r")
        kept, parts = list(self.tables), []
        for _ in range(rng.randint(1, 2)):
            query, types = self.select(None, Scope(), depth - 2)
            name = self.name("w")
            columns = [(f"c{i}", t) for i, t in enumerate(types)]
            parts.append(f"{name}({', '.join(c for c, _ in columns)}) as {rng.choice(['', '', 'materialized ', 'not materialized '])}({query})")
            self.tables += [Table(name, "w", columns)] * 3
        body, _ = self.select(None, Scope(), depth - 1)
        self.tables = kept
        return f"with {', '.join(parts)} {body}"

    def select(self, types, outer, depth):
        """A query that returns columns of the types given, or of any; and the types."""
        rng = self.rng
        types = types or [self.type() for _ in range(rng.choice([1, 1, 2, 2, 3]))]
        if depth > 0 and rng.random() < 0.1:
            if not {"json", "xml", "point", "jsonpath"} & set(types) or rng.random() < 0.1:
                left, right = (self.simple_select(types, outer, depth - 1) for _ in range(2))
                op = rng.choice(["union", "union all", "intersect", "except", "intersect all", "except all"])
                tail = rng.choice(["", "", " order by 1"])
                return f"({left}) {op} ({right}){tail}", types
        return self.simple_select(types, outer, depth), types

    def simple_select(self, types, outer, depth):
        rng = self.rng
        if rng.random() < 0.1:
            return "select " + ", ".join(self.expr(t, outer, depth) for t in types)
        source, scope = self.from_clause(outer, depth)
        where = f" where {self.condition(scope, depth)}" if rng.random() < 0.6 else ""
        way = rng.random()
        if way < 0.25:
            return self.grouped(types, source, scope, where, depth)
        if way < 0.4:
            columns = [self.window(t, scope, depth) or self.expr(t, scope, depth) for t in types]
        else:
            columns = [self.expr(t, scope, depth) for t in types]
        distinct = "distinct " if rng.random() < 0.12 else ""
        text = f"select {distinct}{', '.join(columns)} from {source}{where}"
        if rng.random() < 0.3:
            text += " order by " + ", ".join(f"{i + 1} {rng.choice(['', 'desc', 'nulls first', 'desc nulls last'])}" for i in range(len(types)))
        if not self.pure:
            if rng.random() < 0.2:
                text += rng.choice([f" limit {rng.choice([0, 1, 5, 'null'])}", f" offset {rng.choice([0, 2])}", " fetch first 3 rows only", " order by 1 fetch first 2 rows with ties"]) if "order by" not in text \
                    else f" limit {rng.choice([0, 1, 5])}"
            if rng.random() < 0.04 and not distinct and outer.outer is None:
                text += rng.choice([" for update", " for share", " for update skip locked", " for no key update nowait", " for key share"])
        return text

    def grouped(self, types, source, scope, where, depth):
        rng = self.rng
        keys = [self.expr(rng.choice(COMPARED), scope, 1) for _ in range(rng.choice([0, 1, 1, 2]))]
        columns = []
        for t in types:
            columns.append(self.aggregate(t, scope, depth) or f"min({self.expr(t, scope, 1)})" if t in COMPARED and t not in ("boolean", "uuid", "jsonb") else f"{literal(rng, t)}")
        text = f"select {', '.join(columns)} from {source}{where}"
        if keys:
            group = rng.choice(["{}", "{}", "{}", "rollup ({})", "cube ({})", "grouping sets (({}), ())", "distinct {}"]).format(", ".join(keys))
            text += f" group by {group}"
        if rng.random() < 0.25:
            text += f" having {rng.choice(['count(*) > 1', 'count(*) is not null', 'min(1) = 1', 'false'])}"
        return text
