"""Bodies in PL/pgSQL, triggers of every kind, materialized views, samples and partitions. Loops are bounded, but for a few that only a timeout ends."""

from grammar import Scope
from values import literal, quote

# What lies there besides the tables: functions, triggers and views that meet each other.
GROUND = """create table lg (w text, n integer, r text);
create materialized view mv as select i, count(*) as c, max(t) as t from a group by i;
create view iv as select id, i, t from a;
create function tg_log() returns trigger language plpgsql as $$begin insert into lg values (tg_name || ' ' || tg_when || ' ' || tg_op || ' ' || tg_level, tg_nargs, case when tg_level = 'ROW' then coalesce(new::text, old::text) end); if tg_op = 'DELETE' then return old; end if; return new; end$$;
create function tg_view() returns trigger language plpgsql as $$begin if tg_op = 'INSERT' then insert into a (id, i, t) values (new.id, new.i, new.t); return new; elsif tg_op = 'UPDATE' then update a set i = new.i, t = new.t where id = old.id; return new; else delete from a where id = old.id; return old; end if; end$$;
create trigger iv_all instead of insert or update or delete on iv for each row execute function tg_view();
create function pl_down(n integer) returns integer language plpgsql as $$begin if n <= 0 then return 0; end if; return 1 + pl_down(n - 1); end$$;
create function pl_rows(n integer) returns setof a language plpgsql as $$declare r a; begin for r in select * from a where id <= n order by id loop return next r; end loop; return query select * from a where id > 55; end$$;
create function pl_out(x integer, out y integer, out z text) language plpgsql as $$begin y := x + 1; z := 'z' || x; end$$;
create procedure pr_commit(n integer) language plpgsql as $$begin for i in 1..n loop insert into lg values ('commit', i, null); if i % 2 = 0 then commit; else rollback; end if; end loop; end$$;
create procedure pr_out(inout x integer, inout y text default 'y') language plpgsql as $$begin x := x * 2; y := y || x; end$$"""

SCALARS = ["integer", "integer", "text", "text", "numeric", "boolean", "date", "jsonb", "integer[]", "text[]", "bigint", "interval", "timestamp without time zone"]
CONDITIONS = ["others", "others", "others", "division_by_zero", "unique_violation", "data_exception", "sqlstate '22012'", "sqlstate 'P0001'", "raise_exception", "no_data_found", "too_many_rows", "query_canceled",
              "foreign_key_violation", "undefined_table", "integrity_constraint_violation", "statement_too_complex", "assert_failure", "plpgsql_error", "syntax_error_or_access_rule_violation"]
ITEMS = ["returned_sqlstate", "message_text", "pg_exception_detail", "pg_exception_hint", "pg_exception_context", "table_name", "column_name", "constraint_name", "schema_name", "pg_datatype_name", "pg_context"]
OPTIONS = ["errcode = '22012'", "errcode = 'division_by_zero'", "message = 'm'", "detail = 'd'", "hint = null", "column = 'c'", "table = 't'", "errcode = 'nosuch'", "constraint = 'k'", "datatype = 'x'", "schema = 's'"]


class Bodies:
    """Makes bodies out of another generator's statements and expressions."""

    def __init__(self, statements):
        self.of = statements
        self.rng, self.grammar = statements.rng, statements.grammar
        self.variables, self.kind, self.number, self.loops = [], "do", 0, 0

    # What a client sends

    def statement(self):
        rng = self.rng
        ways = [(6, self.do), (6, self.function), (5, self.procedure), (9, self.call), (6, self.trigger_function), (9, self.trigger), (4, self.alter_trigger), (5, self.materialized), (3, self.sample), (3, self.partition),
                (5, self.view_write), (2, self.constraints), (2, self.recursion), (1, self.forever), (1, self.grows)]
        return rng.choices([w for _, w in ways], [n for n, _ in ways])[0]()

    def name(self, prefix):
        return self.of.name(prefix)

    def do(self):
        self.kind = "do"
        return f"do {self.quoted(self.body())}"

    def function(self):
        rng = self.rng
        self.kind = rng.choice(["value", "value", "set", "void", "out", "table"])
        t = rng.choice(SCALARS)
        self.result = t
        returns = {"value": f"returns {t}", "set": f"returns setof {rng.choice(['a', 'integer', 'record', 'lg', t])}", "void": "returns void", "out": "", "table": "returns table (k integer, u text)"}[self.kind]
        args = rng.choice(["x integer", "x integer default 3", "x integer, y text default 'y'", "", "x integer, variadic q integer[]", "x anyelement"]) if self.kind != "out" else "x integer, out o1 integer, out o2 text"
        more = rng.choice(["", "", "", " stable", " immutable", " strict", " security definer", " set search_path = pg_catalog", " set work_mem = '64kB'", " set datestyle = 'german'"])
        return f"create or replace function {self.name('pf')}({args}) {returns} language plpgsql{more} as {self.quoted(self.body())}"

    def procedure(self):
        self.kind = "procedure"
        args = self.rng.choice(["x integer", "x integer", "inout x integer", "x integer, out o1 integer", "", "x integer, inout o2 text default 'o'"])
        return f"create or replace procedure {self.name('pp')}({args}) language plpgsql as {self.quoted(self.body())}"

    def call(self):
        rng, n = self.rng, self.rng.choice([0, 1, 2, 3, 5, -1])
        f, p = self.name("pf"), self.name("pp")
        return rng.choice([f"select {f}({n})", f"select {f}({n}), {f}({n + 1}) from a limit 5", f"select * from {f}({n})", f"select * from {f}({n}) as (q integer, w text)", f"call {p}({n})", f"call {p}({n}, null)", f"call {p}()",
                           f"select {f}()", f"select ({f}({n})).*", f"select count({f}(id)) from a", f"select * from a, lateral {f}(a.i) x", f"update a set i = {f}(i)::integer where id < 4", f"select {f}(id) from a order by 1",
                           f"select pl_down({rng.choice([1, 20, 90])})", f"select * from pl_rows({n})", f"select pl_out({n}), (pl_out({n})).y", f"call pr_commit({rng.choice([1, 4])})", f"call pr_out({n})", "call pr_out(3, null)",
                           f"explain (analyze, costs off, timing off) select {f}({n})", f"create view {self.name('vw')} as select {f}(1) as q", f"create index {self.name('ix')} on a ({f}(i))", f"declare c1 cursor for select {f}(id) from a",
                           f"select pg_get_functiondef('{f}'::regproc)", f"drop function {f}", f"drop procedure {p}", f"drop routine {f} cascade", f"alter function {f} rename to {self.name('pf')}"])

    def quoted(self, body):
        return f"$body${body}$body$" if self.rng.random() < 0.9 else quote(body)

    # Bodies

    def body(self):
        rng = self.rng
        self.number = self.loops = 0
        self.variables = [(f"{t[0]}{i}", t) for i, t in enumerate(rng.choice(SCALARS) for _ in range(rng.randint(1, 5)))]
        declared = [f"{n} {rng.choice(['', '', '', 'constant ' if rng.random() < 0.2 else ''])}{t}{self.initial(t)}" for n, t in self.variables]
        declared += rng.sample(["r record", "w a%rowtype", "g a.id%type", "cu refcursor", "cb cursor for select id, t from a order by id", "ca cursor (k integer) for select * from a where i = k", "cs scroll cursor for select * from c",
                                "m mood", "pa pair", "po positive", "ar a[]", "nn integer not null := 1", "al alias for $1" if self.kind in ("value", "void") else "z0 integer", "pe pair[]"], rng.randint(2, 8))
        rng.shuffle(declared)
        option = rng.choice(["", "", "", "", "#variable_conflict use_column\n", "#variable_conflict use_variable\n", "#print_strict_params on\n"])
        last = "" if rng.random() < 0.25 else self.returning()
        return f"{option}<<v>> declare {'; '.join(declared)}; begin {self.several(3)} {last} {self.handlers(2)}end"

    def initial(self, t):
        return rng_default(self.rng, lambda: self.value(t))

    def returning(self):
        rng = self.rng
        if self.kind == "value":
            return f"return {self.value(self.result)};"
        if self.kind == "trigger":
            return rng.choice(["return new;", "return new;", "return old;", "return null;", "return coalesce(new, old);", "return r;", "return row(1, 2);", "return w;"])
        if self.kind in ("set", "table"):
            return rng.choice(["return;", "return next;", "return next r;", "return next 1;", "return query select * from a;", "return query select i, t from a;", f"return query execute {quote('select i, t from c where i > $1')} using 1;",
                               f"return query {self.grammar.query(2)};", "k := 1; u := 'u'; return next;", "return next w;"])
        return rng.choice(["return;", "", "o1 := 4;"])

    def scope(self):
        return Scope([("v", self.variables)])

    def value(self, t, depth=None):
        return self.grammar.expr(t, self.scope(), self.rng.choice([0, 1, 1, 2]) if depth is None else depth)

    def condition(self):
        return self.grammar.condition(self.scope(), 1)

    def several(self, depth):
        return " ".join(self.one(depth) for _ in range(self.rng.choice([1, 1, 2, 3])))

    def handlers(self, depth):
        rng = self.rng
        if rng.random() < 0.6:
            return ""
        parts = []
        for _ in range(rng.choice([1, 1, 2])):
            parts.append(f"when {rng.choice(CONDITIONS)}{rng.choice(['', '', ' or ' + rng.choice(CONDITIONS)])} then {rng.choice(['null;', 'raise;', self.stacked(), self.several(depth - 1), 'raise notice ' + quote('% %') + ', sqlstate, sqlerrm;'])}")
        return f"exception {' '.join(parts)} "

    def stacked(self):
        name = self.target("text")
        return f"get stacked diagnostics {name} = {self.rng.choice(ITEMS)};"

    def target(self, t):
        fitting = [n for n, u in self.variables if u == t] or [n for n, _ in self.variables]
        return self.rng.choice(fitting)

    def assignment(self):
        rng = self.rng
        name, t = rng.choice(self.variables)
        if t.endswith("[]") and rng.random() < 0.5:
            return f"{name}[{self.value('integer', 0)}{rng.choice(['', '', ':3'])}] := {self.value(t[:-2])};"
        return rng.choice([f"{name} := {self.value(t)};", f"{name} := {self.value(t)};", f"{name} = {self.value(rng.choice(SCALARS))};", f"{name} := (select {self.grammar.aggregate(t, Scope([('a', [('i', 'integer'), ('t', 'text')])]), 1) or 'null'} from a);",
                           f"w.i := {self.value('integer')};", "r := row(1, 'x');", "r.i := 3;", "pa.b := 'b'; pa := row(1, 'q');", f"pe[{rng.randint(-1, 3)}].a := 4;", "ar[2] := w;", "w := null;", f"{name} := i + 1 from a limit 1;", "po := -1;",
                           f"nn := {rng.choice(['null', '3', self.value('integer')])};", "r := (select a from a limit 1);", "w.ia[2] := 5;", "w.j['k'] := '1';", "found := true;"])

    def one(self, depth):
        rng = self.rng
        if depth <= 0:
            return rng.choice([self.assignment, self.assignment, self.raised, self.written])()
        ways = [(5, self.assignment), (3, lambda: self.branch(depth)), (4, lambda: self.loop(depth)), (3, self.raised), (4, self.written), (3, self.taken), (2, lambda: self.block(depth)), (3, self.dynamic), (2, self.cursor),
                (1, self.told), (2, self.called), (1, self.ended), (1, self.defined), (1, self.left)]
        return rng.choices([w for _, w in ways], [n for n, _ in ways])[0]()

    def branch(self, depth):
        rng = self.rng
        if rng.random() < 0.3:
            t = rng.choice(["integer", "text"])
            last = f" else {self.several(depth - 1)}" if rng.random() < 0.7 else ""
            return f"case {self.value(t)} when {self.value(t, 0)}, {self.value(t, 0)} then {self.several(depth - 1)} when {self.value(t, 0)} then {self.several(depth - 1)}{last} end case;"
        more = f" elsif {self.condition()} then {self.several(depth - 1)}" if rng.random() < 0.3 else ""
        return f"if {self.condition()} then {self.several(depth - 1)}{more}{' else ' + self.several(depth - 1) if rng.random() < 0.4 else ''} end if;"

    def loop(self, depth):
        rng = self.rng
        self.loops += 1
        label = f"l{self.loops}"
        inside = self.several(depth - 1)
        leave = rng.choice(["", "", f"exit {label} when {self.condition()};", "continue when found;", f"exit {label};", "exit when random() < 0.2;", f"continue {label};"])
        inside += leave if "continue l" not in leave else ""
        head = rng.choice([f"for i in {rng.choice(['reverse 4..1', '1..4', '1..10 by 3', '3..1', f'{self.value(chr(105) + chr(110) + chr(116) + chr(101) + chr(103) + chr(101) + chr(114), 0)} % 5..6', '2147483640..2147483647'])}",
                           "for r in select * from a where id < 6", f"for r in {self.grammar.query(2)}", "for w in select * from a limit 3", f"for r in execute {quote('select * from c where i = $1')} using 2", "for r in cb", "for r in ca(2)", "for r in ca(k => 3)",
                           f"foreach {self.target('integer')} in array {self.value('integer[]')}", f"foreach {self.target('integer[]')} slice 1 in array array[[1, 2], [3, 4]]", "for r in insert into lg values ('loop', 1, null) returning *",
                           f"for {', '.join(n for n, _ in self.variables[:2])} in select i, t from a where id < 4", "for r in explain select 1", "for r in delete from lg returning *"])
        if rng.random() < 0.15:
            n = self.target("integer")
            return f"{n} := 0; <<{label}>> while {n} < 5 loop {n} := {n} + 1; {inside} end loop {label};"
        if rng.random() < 0.1:
            n = self.target("integer")
            return f"{n} := 0; <<{label}>> loop {n} := coalesce({n}, 0) + 1; exit {label} when {n} > 4; {inside} end loop;"
        return f"<<{label}>> {head} loop {inside} end loop {rng.choice(['', label])};"

    def raised(self):
        rng = self.rng
        name = self.target("text")
        using = f" using {', '.join(rng.sample(OPTIONS, rng.choice([1, 2])))}" if rng.random() < 0.3 else ""
        return rng.choice([f"raise notice '% and %', {name}, {self.value('text', 1)}{using};", f"raise {rng.choice(['debug', 'log', 'info', 'notice', 'warning'])} 'r %', {self.value(rng.choice(SCALARS), 1)};", f"raise exception 'e %', {name}{using};",
                           "raise division_by_zero;", f"raise sqlstate '{rng.choice(['22012', 'ZZ000', 'P0001'])}'{using};", f"assert {self.condition()}, 'no';", "raise;", f"raise{using or ' using message = 3'};", "raise notice '%%';", "null;"])

    def written(self):
        rng = self.rng
        return rng.choice([lambda: self.of.insert() + ";", lambda: self.of.update() + ";", lambda: self.of.delete() + ";", lambda: self.of.merge() + ";", lambda: f"insert into lg values ({self.value('text')}, {self.value('integer')}, null);",
                           lambda: f"update a set i = {self.value('integer')} where id = {rng.randint(1, 60)};", lambda: "delete from lg where n > 3;", lambda: f"insert into a (id, i) values ({rng.randint(1, 99)}, {self.value('integer')}) on conflict (id) do update set i = excluded.i;",
                           lambda: f"update iv set i = {self.value('integer')} where id < 5;", lambda: "refresh materialized view mv;"])()

    def taken(self):
        rng = self.rng
        strict = rng.choice(["", "", "strict "])
        name, t = rng.choice(self.variables)
        return rng.choice([f"select {self.value(t)} into {strict}{name};", f"select * into {strict}r from a where id = {rng.randint(1, 70)};", f"select into {strict}w * from a;", f"select i, t into {strict}{', '.join(n for n, _ in self.variables[:2])} from a limit 1;",
                           f"insert into lg values ('x', 1, null) returning n into {strict}{name};", f"update a set i = 1 where id < 3 returning * into {strict}r;", f"perform {self.value(t)};", f"perform * from {self.of.table().name};",
                           f"execute {quote('select i from a where id = $1')} into {strict}{name} using {self.value('integer', 0)};", f"select i into {strict}w.i from a limit 1;", "select a, 1 into w, nn from a;", f"with q as (select 1 as x) select x into {name} from q;",
                           "values (1, 2) into r;", f"fetch cu into {name};", "select pa into pa;"])

    def block(self, depth):
        rng = self.rng
        self.number += 1
        extra = (f"b{self.number}", rng.choice(SCALARS))
        return f"declare {extra[0]} {extra[1]}{self.initial(extra[1])}; begin {self.several(depth - 1)} {self.handlers(depth)}end;"

    def dynamic(self):
        rng = self.rng
        inner = rng.choice([self.of.statement, self.of.insert, self.of.select, self.of.create_table, self.of.drop, self.of.setting, self.of.utility, self.of.cursor, self.of.prepared])()
        return rng.choice([f"execute {quote(inner)};", f"execute {quote(inner)};", f"execute {quote(inner)} using {self.value('integer', 0)}, {self.value('text', 0)};", f"execute format({quote('select %L, %I')}, {self.value('text', 0)}, 'i');", f"execute {self.value('text')};"])

    def cursor(self):
        rng = self.rng
        name = rng.choice(["cu", "cu", "cb", "ca", "cs"])
        way = rng.choice(["", "next from ", "prior from ", "last from ", "absolute 2 from ", "relative -1 from ", "first from ", "backward from "])
        opened = {"cu": rng.choice(["for select * from a", f"for execute {quote('select * from c')}", "scroll for select id from a", f"for {self.grammar.query(1)}", "no scroll for select 1"]), "ca": rng.choice(["(1)", "(k := 2)"])}.get(name, "")
        return rng.choice([f"open {name} {opened};", f"open {name} {opened}; fetch {way}{name} into r; close {name};", f"fetch {way}{name} into r;", f"move {rng.choice(['', 'forward 2 from ', 'all from ', 'backward all in '])}{name};", f"close {name};",
                           f"update a set i = 0 where current of {name};", f"{'cu'} := 'c1';", f"open {name} {opened}; loop fetch {name} into r; exit when not found; end loop;"])

    def told(self):
        return self.rng.choice([f"get diagnostics {self.target('integer')} = row_count;", f"get diagnostics {self.target('text')} = pg_context;", f"get current diagnostics {self.target('bigint')} = pg_routine_oid;", self.stacked()])

    def called(self):
        rng = self.rng
        n = self.target("integer")
        return rng.choice([f"call {self.name('pp')}({rng.randint(0, 3)});", f"call pr_out({n});", "call pr_commit(3);", f"perform {self.name('pf')}({rng.randint(0, 3)});", f"{n} := {self.name('pf')}(1);", f"{n} := pl_down({rng.choice([5, 40])});", f"do {quote('begin null; end')};",
                           f"select * into r from pl_rows(3);", "perform pg_notify('ch', 'x');", f"do {quote('begin commit; end')};"])

    def ended(self):
        return self.rng.choice(["commit;", "rollback;", "commit and chain;", "rollback and chain;", "commit;", "savepoint s;", "begin; end;", "set constraints all immediate;", "set constraints all deferred;"])

    def defined(self):
        rng = self.rng
        return rng.choice(["create temporary table if not exists tt (x integer); insert into tt values (1);", "drop table if exists tt;", "create temporary table t9 on commit drop as select 1 as x;", f"{self.of.alter_table()};", f"{self.of.create_index()};",
                           f"{self.of.setting()};", "truncate lg;", f"{self.of.create_view()};", "lock table a;", "analyze a;", f"{self.of.explain()};", "prepare p9 as select 1; deallocate p9;", "set role fz_role1;", "reset role;", "discard plans;", "notify ch;"])

    def left(self):
        return self.rng.choice(["return;", "exit;", "continue;", "exit v;", "return next;", "return null;", "return query select 1;"])

    # Triggers

    def trigger_function(self):
        self.kind = "trigger"
        rng = self.rng
        body = self.body()
        if rng.random() < 0.5:
            lines = ["insert into lg values (tg_op, tg_nargs, tg_argv[0]);", "new.i := coalesce(new.i, 0) + 1;", "new := null;", "if tg_level = 'ROW' and tg_op <> 'DELETE' then return new; end if;", "new.t := old.t;", "update a set i = i + 1 where id = new.id;",
                     "delete from b where a_id = old.id;", "if pg_trigger_depth() > 5 then return new; end if;", "insert into a (id) values (new.id + 1);", "perform count(*) from nt;", "for r in select * from ot loop null; end loop;", "new.g := 3;",
                     "raise notice '% %', tg_table_name, new;", "select * into new from a limit 1;", "raise exception 'in a trigger';", "truncate c;", "update b set v = 'w' where id = new.id;"]
            body = body.replace("begin ", f"begin {' '.join(rng.sample(lines, rng.choice([1, 2, 3])))} ", 1)
        return f"create or replace function {self.name('tf')}() returns trigger language plpgsql as {self.quoted(body)}"

    def trigger(self):
        rng, table = self.rng, self.rng.choice([self.of.table().name, "a", "b", "p", "iv", "w", "mv", "par"])
        events = " or ".join(rng.sample(["insert", "delete", rng.choice(["update", "update of i", "update of id, t"]), "truncate"], rng.choice([1, 1, 2, 3])))
        function = rng.choice([self.name("tf")] * 4 + ["tg_log", "tg_log", "suppress_redundant_updates_trigger", "tg_view", "f1"])
        args = rng.choice(["", "", "1, 'two'", "x"])
        name = self.name("tr")
        when = rng.choice([""] * 4 + ["when (old.* is distinct from new.*) ", "when (new.i > 3) ", "when (old.i is null) ", "when (pg_trigger_depth() < 3) ", f"when ({self.grammar.condition(Scope([('new', [('i', 'integer'), ('t', 'text')])]), 1)}) "])
        way = rng.randrange(10)
        if way < 5:
            return f"create {rng.choice(['', 'or replace '])}trigger {name} {rng.choice(['before', 'after'])} {events} on {table} for each {rng.choice(['row', 'row', 'statement'])} {when}execute function {function}({args})"
        if way < 6:
            return f"create trigger {name} instead of {events} on {rng.choice(['w', 'iv', 'iv', table])} for each row execute function {function}()"
        if way < 8:
            return (f"create constraint trigger {name} after {events} on {table} {rng.choice(['', 'from a '])}{rng.choice(['deferrable initially deferred', 'deferrable', 'not deferrable', 'initially deferred'])} for each row {when}execute function {function}({args})")
        event = rng.choice(["insert", "update", "delete", events])
        tables = {"insert": "new table as nt", "delete": "old table as ot"}.get(event, "old table as ot new table as nt")
        return f"create trigger {name} after {event} on {table} referencing {tables} for each {rng.choice(['row', 'statement'])} execute function {function}()"

    def alter_trigger(self):
        rng, table, name = self.rng, self.rng.choice(["a", "b", "p", "iv", "par"]), self.name("tr")
        return rng.choice([f"alter table {table} {rng.choice(['disable', 'enable', 'enable always', 'enable replica'])} trigger {rng.choice([name, 'all', 'user'])}", f"drop trigger if exists {name} on {table}", f"drop trigger {name} on {table} cascade",
                           f"alter trigger {name} on {table} rename to {self.name('tr')}", "set session_replication_role = replica", "reset session_replication_role", f"drop function if exists {self.name('tf')}() cascade",
                           "select tgname, tgtype, tgenabled, pg_get_triggerdef(oid) from pg_trigger order by 1", "select * from information_schema.triggers", f"alter table {table} drop column if exists k1, add column if not exists k2 integer",
                           "explain (analyze, costs off, timing off, summary off) update a set i = i where id < 3", "explain (analyze, format json) insert into lg values ('x', 1, null)", f"comment on trigger {name} on {table} is 'c'"])

    # What is new besides

    def view_write(self):
        rng = self.rng
        return rng.choice([f"insert into iv values ({rng.randint(1, 90)}, 1, 'x') returning *", "update iv set i = i + 1 where id < 4 returning old.*, new.*", "delete from iv where id > 58 returning *", "merge into iv using c on iv.id = c.i when matched then update set t = 'm'",
                           "merge into iv using generate_series(90, 93) g on iv.id = g when not matched then insert values (g, g, 'g') when matched then delete", "update a set i = i + 1", "delete from a where id % 9 = 3", "insert into p select g, g, 'n' from generate_series(1, 30) g",
                           "update p set id = id + 9 where id < 12", "insert into a (id) select max(id) + 1 from a", "copy lg from stdin", "update par set i = i + 1", "insert into b (a_id) values (1), (2)", "truncate a cascade", "update b set i = i + 1 returning *",
                           "with x as (insert into lg values ('w', 1, null) returning *), y as (update a set i = 1 where id = 1 returning *) select * from x, y"])

    def materialized(self):
        rng, name = self.rng, self.rng.choice(["mv", self.name("mv")])
        return rng.choice([f"create materialized view {name} as {self.grammar.query(2)}{rng.choice(['', ' with no data'])}", f"refresh materialized view {rng.choice(['', 'concurrently '])}{name}{rng.choice(['', ' with no data'])}", f"select * from {name}",
                           f"create unique index {self.name('ix')} on mv (i)", f"drop materialized view if exists {name}{rng.choice(['', ' cascade'])}", f"alter materialized view {name} rename to {self.name('mv')}", "insert into mv values (1, 2, 'x')", f"analyze {name}",
                           f"create index on {name} (c)", f"alter materialized view {name} alter column c set statistics 5", f"select count(*) from {name} m join a on a.i = m.i"])

    def sample(self):
        rng, table = self.rng, self.of.table().name
        method = rng.choice(["system", "bernoulli"])
        return f"select count(*) from {table} tablesample {method} ({rng.choice(['0', '10', '50.5', '100', '-1', '101', 'null', self.value('numeric', 1).replace('v.', '')])}){rng.choice(['', ' repeatable (3)', ' repeatable (null)', ' repeatable (1e300)'])}{rng.choice(['', ' where 1 = 1', f' x join {table} y on true'])}"

    def partition(self):
        rng, n = self.rng, self.rng.randint(100, 400)
        return rng.choice([f"create table {self.name('part')} partition of p for values from ({n}) to ({n + 20})", f"alter table p detach partition {rng.choice(['p1', 'p2', 'p3', self.name('part')])}{rng.choice(['', ' concurrently', ' finalize'])}",
                           f"alter table p attach partition {rng.choice(['p1', 'p2', self.name('part')])} for values from ({n}) to ({n + 20})", f"alter table p attach partition p3 default", f"update p set id = {n} where id = {rng.randint(0, 50)} returning tableoid::regclass",
                           f"create table {self.name('part')} partition of p for values from ({n}) to ({n + 20}) partition by hash (i)", "select tableoid::regclass, count(*) from p group by 1", f"merge into p using c on p.id = c.i when matched then update set id = p.id + 50 when not matched then insert (id) values ({n})",
                           "create index on p (i)", "alter table p add primary key (id)", "select * from p where id between 5 and 12 for update", "drop table if exists part1", "explain (costs off) select * from p where id = 3", f"delete from p where id = {rng.randint(0, 50)}"])

    def constraints(self):
        return self.rng.choice(["set constraints all deferred", "set constraints all immediate", f"set constraints {self.name('tr')} deferred", "begin; set constraints all deferred; insert into a (id) values (500); commit"])

    def recursion(self):
        """Calls without end, which the depth of calls ends."""
        rng, f = self.rng, self.name("rf")
        return rng.choice([f"create or replace function {f}(n integer) returns integer language plpgsql as $$begin return {self.name('rf')}(n + 1) + 1; exception when {rng.choice(CONDITIONS)} then return n; end$$",
                           f"create or replace function {f}(n integer) returns integer language plpgsql as $$declare x integer; begin execute 'select {self.name('rf')}($1)' into x using n + 1; return x; end$$",
                           f"create or replace function {f}(n integer) returns integer language sql as 'select {self.name('rf')}(n + 1)'", f"create or replace procedure {f}p(n integer) language plpgsql as $$begin call {f}p(n + 1); end$$",
                           f"select {f}(1)", f"select {f}(id) from a", f"call {f}p(1)", "select pl_down(100000)", "select pl_down(299)", "do $$begin perform pl_down(280); end$$"])

    def forever(self):
        """What only its timeout ends."""
        return self.rng.choice(["do $$begin loop null; end loop; end$$", "do $$declare i integer := 0; begin while true loop i := (i + 1) % 7; begin perform 1 / i; exception when others then null; end; end loop; end$$",
                                "do $$begin loop begin loop null; end loop; exception when others then null; end; end loop; end$$", "do $$begin loop perform count(*) from a; end loop; end$$", "do $$begin loop raise notice 'x'; end loop; end$$",
                                "do $$begin loop commit; end loop; end$$", "do $$declare r record; begin for r in select * from generate_series(1, 1000000000) loop null; end loop; end$$", "do $$begin loop execute 'select 1'; end loop; end$$",
                                "do $$begin for i in 1..2000000000 loop insert into lg values ('f', i, null); delete from lg; end loop; end$$"])

    def grows(self):
        """What would take all memory."""
        return self.rng.choice(["do $$declare s text := 'x'; begin loop s := s || s; end loop; end$$", "do $$declare s integer[] := '{1}'; begin loop s := s || s; end loop; end$$", "do $$declare s integer[]; begin s[1000000000] := 1; s[1] := 1; end$$",
                                "do $$declare s jsonb := '[1]'; begin loop s := jsonb_build_array(s, s); end loop; end$$", "do $$declare s record; begin s := row(1); loop s := row(s, s); end loop; end$$",
                                "do $$begin for i in 1..1000000 loop raise notice 'a longer message than others %', i; end loop; end$$", "do $$declare c refcursor; begin loop c := null; open c for select * from a; end loop; end$$",
                                "create or replace function pf1(x integer) returns setof text language plpgsql as $$begin loop return next repeat('x', 100000); end loop; end$$", "do $$begin for i in 1..100000 loop execute 'set my.v' || i || ' = 1'; end loop; end$$",
                                "do $$begin for i in 1..100000 loop execute 'create temp table zz' || i || ' (i integer)'; end loop; end$$", "do $$declare n numeric := 10; begin loop n := n * n; end loop; end$$",
                                "do $$begin for i in 1..100000 loop perform pg_notify('ch', i || repeat('x', 7000)); end loop; end$$", "do $$begin for i in 1..100000 loop begin insert into lg values ('g', i, null); exception when others then null; end; end loop; end$$"])


def rng_default(rng, value):
    return f" {rng.choice([':=', 'default', '='])} {value()}" if rng.random() < 0.6 else ""
