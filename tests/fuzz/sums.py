"""Sums under concurrency: sessions change the same rows by every writing statement, and what comes out must be what was put in.

Each episode draws a game, a schema and storage for it, 2 to 64 sessions with little or much memory, and an isolation level for each
transaction. A session notes what its statements did once their transaction has committed; at the end the tables must agree with the notes.

| game | what must come out |
| --- | --- |
| Counters | each key's n is the sum of what was added to it and taken from it |
| References | nothing points at what is not there; rows that nobody deleted are there |
| Places | numbers that change owners are all there, each once |
| Jobs | each job is taken by one worker, once |

    tests/fuzz/sums.py --seconds 60 (--throng BIN | --server HOST:PORT[/DATABASE]) [--seed N] [--games counters,jobs]

It ends with 1 if something was wrong, and tells the episode's seed, its schema and the sums.
"""

import argparse
import os
import random
import sys
import threading
import time
import traceback
from collections import Counter

from storage import session_options, stored
from target import Child, Remote
from wire import Connection, Lost, Slow, Unasked

LEVELS = ["read committed"] * 6 + ["repeatable read", "serializable"]
AGAIN = ("40001", "40P01")  # the transaction is to be tried again: it did nothing
TAKEN, POINTS = ("23505",), ("23503", "23001", "23505")
SCHEMA = "fzsums"


class Wrong(Exception):
    """An answer or a sum that cannot be."""


class Refused(Exception):
    """A statement failed as it may: its transaction, or its savepoint, did nothing."""


class Counters:
    """n of each key; `add` in every way there is."""

    def __init__(self, rng):
        self.rng = rng
        self.keys = rng.choice([1, 1, 2, 10, 10, 1000])
        self.kind = rng.choice(["int", "int", "named", "expression", "pair", "partial"])
        self.deletes = rng.random() < 0.3
        self.partitions = self.kind in ("int", "named", "pair") and rng.choice([None, None, "hash", "range", "list"])
        self.view = not self.deletes and rng.random() < 0.25
        self.extra = [e for e in ("index", "generated", "before", "second", "child") if rng.random() < 0.25]
        self.table = "v" if self.view else "t"
        self.unsupported = set()

    # A key as SQL: of a number that is an expression `x`.

    def columns(self):
        return {"pair": "a, b", "partial": "k, live"}.get(self.kind, "k")

    def value(self, x):
        return {"expression": f"'K' || {x}", "pair": f"{x} / 7, {x} % 7", "partial": f"{x}, true"}.get(self.kind, f"{x}")

    def where(self, x, of=""):
        return {
            "expression": f"lower({of}k) = 'k' || {x}",
            "pair": f"{of}a = {x} / 7 and {of}b = {x} % 7",
            "partial": f"{of}k = {x} and {of}live",
        }.get(self.kind, f"{of}k = {x}")

    def target(self):
        return {
            "expression": "(lower(k))", "pair": "(b, a)" if self.rng.random() < 0.5 else "(a, b)", "partial": "(k) where live",
            "named": "on constraint t_pkey" if not self.view else "(k)",
        }.get(self.kind, "(k)")

    def setup(self):
        columns = {
            "expression": ["k text not null"], "pair": ["a int", "b int"], "partial": ["k int", "live bool default true"],
        }.get(self.kind, ["k int"])
        columns += ["n bigint not null default 0"]
        if "generated" in self.extra:
            columns.append("twice bigint generated always as (n * 2) stored")
        if "second" in self.extra and not self.partitions:
            columns.append("s serial unique")
        if self.kind in ("int", "named", "pair"):
            columns.append(f"constraint t_pkey primary key ({self.columns()})")
        first = self.columns().split(",")[0]
        of = f"partition by {self.partitions} ({first})" if self.partitions else ""
        made = [f"create table t ({', '.join(columns)}) {of}"]
        made += {
            "hash": [f"create table t{i} partition of t for values with (modulus 3, remainder {i})" for i in range(3)],
            "range": ["create table t0 partition of t for values from (minvalue) to (5)", "create table t1 partition of t for values from (5) to (maxvalue)"],
            "list": ["create table t0 partition of t for values in (0, 1, 2)", "create table t1 partition of t default"],
        }.get(self.partitions, [])
        made += {"expression": ["create unique index on t (lower(k))"], "partial": ["create unique index on t (k) where live"]}.get(self.kind, [])
        if "index" in self.extra:
            made.append("create index on t (n)")
        if "before" in self.extra:
            made.append("create function same() returns trigger language plpgsql as $$ begin new.n := new.n + 0; return new; end $$")
            made.append("create trigger b before insert or update on t for each row execute function same()")
        if "child" in self.extra and self.kind == "int":
            made.append("create table c (k int references t on update cascade on delete cascade, x int)")
        if self.view:
            made.append("create view v as select * from t")
        made.append("create table lg (k int, d int)")
        upsert = f"insert into {self.table} as t ({self.columns()}, n)"
        then = f"on conflict {self.target()} do update set n = t.n + excluded.n"
        row = self.rng.random() < 0.5
        body = f"{upsert} values ({self.value('new.k')}, new.d) {then}" if row else f"{upsert} select {self.value('k')}, sum(d) from added group by k order by k {then}"
        made.append(f"create function told() returns trigger language plpgsql as $$ begin {body}; return null; end $$")
        made.append("create trigger told after insert on lg " + ("for each row" if row else "referencing new table as added for each statement") + " execute function told()")
        made.append(f"""create function add(x int, d int) returns bigint language plpgsql as $$ declare r bigint; begin
            {upsert} values ({self.value('x')}, d) {then} returning t.n into strict r; return r; end $$""")
        made.append(f"""create function add_by_hand(x int, d int) returns void language plpgsql as $$ begin loop
            update {self.table} t set n = n + d where {self.where('x', 't.')};
            if found then return; end if;
            begin insert into {self.table} ({self.columns()}, n) values ({self.value('x')}, d); return;
            exception when unique_violation then
                -- One snapshot for the whole transaction never sees the row that is in the way.
                if current_setting('transaction_isolation') <> 'read committed' then
                    raise exception 'another is in the way' using errcode = 'serialization_failure'; end if;
            end; end loop; end $$""")
        if not self.deletes or self.rng.random() < 0.5:
            made.append(f"insert into t ({self.columns()}) select {self.value('g')} from generate_series(0, {self.keys - 1}) g")
            self.filled = True
        else:
            self.filled = False
        return made

    def there(self):
        """Whether each key has its row, always."""
        return self.filled and not self.deletes

    def operations(self):
        found = [self.upsert] * 5 + [self.upsert_many] * 2 + [self.update, self.merge, self.function, self.by_hand, self.log, self.copy]
        found += [self.nothing_then_update, self.for_update, self.skip_locked, self.with_update]
        if self.keys > 1:
            found += [self.transfer]
        if self.deletes:
            found += [self.delete]
        return found

    single = ("upsert", "upsert_many", "update", "merge", "function", "by_hand", "log", "copy", "transfer", "delete", "with_update")

    def draw(self, rng):
        return rng.randrange(self.keys), rng.choice([1, 1, 1, 5, -2])

    def told(self, key, d, rows):
        return Counter({key: d * rows})

    def upsert(self, run, rng):
        key, d = self.draw(rng)
        how = rng.choice([f"n = t.n + excluded.n", f"n = t.n + {d}", "n = excluded.n + t.n", f"(n) = row(t.n + {d})", f"(n) = (select t.n + excluded.n)"])
        if "," in self.columns() and self.kind == "pair" and not self.partitions and rng.random() < 0.2:
            how = "(a, b, n) = (excluded.a, excluded.b, t.n + excluded.n)"
        tail = rng.choice(["", "", " where t.n > -1000000000", " where excluded.n = " + str(d)])
        tail += rng.choice(["", " returning t.n", " returning *"])
        value = self.value(key)
        if self.kind == "expression" and rng.random() < 0.5:
            value = f"'k{key}'"
        run(f"insert into {self.table} as t ({self.columns()}, n) values ({value}, {d}) on conflict {self.target()} do update set {how}{tail}", rows=1)
        return self.told(key, d, 1)

    def upsert_many(self, run, rng):
        first, d = self.draw(rng)
        last = min(self.keys - 1, first + rng.randrange(5))
        order = rng.choice(["", " order by g", " order by g desc"])
        run(f"insert into {self.table} as t ({self.columns()}, n) select {self.value('g')}, {d} from generate_series({first}, {last}) g{order} on conflict {self.target()} do update set n = t.n + excluded.n", rows=last - first + 1)
        return Counter({key: d for key in range(first, last + 1)})

    def update(self, run, rng):
        key, d = self.draw(rng)
        sql = rng.choice([
            f"update {self.table} t set n = n + {d} where {self.where(key, 't.')}",
            f"update {self.table} t set n = t.n + s.d from (values ({key}, {d})) s(x, d) where {self.where('s.x', 't.')}",
            f"update {self.table} t set n = n + {d} where {self.where(key, 't.')} returning n",
        ])
        return self.told(key, d, run(sql, rows=1 if self.there() else None).rows_told)

    def merge(self, run, rng):
        key, d = self.draw(rng)
        tail = rng.choice(["", " returning t.n"])
        run(f"merge into {self.table} t using (values ({key}, {d})) s(x, d) on {self.where('s.x', 't.')} when matched then update set n = t.n + s.d when not matched then insert ({self.columns()}, n) values ({self.value('s.x')}, s.d){tail}", rows=1, may=TAKEN)
        return self.told(key, d, 1)

    def function(self, run, rng):
        key, d = self.draw(rng)
        run(f"select add({key}, {d})", rows=1)
        return self.told(key, d, 1)

    def by_hand(self, run, rng):
        key, d = self.draw(rng)
        run(f"select add_by_hand({key}, {d})", rows=1)
        return self.told(key, d, 1)

    def rows(self, rng):
        rows = [self.draw(rng) for _ in range(rng.randint(1, 4))]
        total = Counter()
        for key, d in rows:
            total[key] += d
        return rows, total

    def log(self, run, rng):
        rows, total = self.rows(rng)
        run(f"insert into lg values {', '.join(f'({k}, {d})' for k, d in rows)}", rows=len(rows))
        return total

    def copy(self, run, rng):
        rows, total = self.rows(rng)
        run("copy lg from stdin", rows=len(rows), data="".join(f"{k}\t{d}\n" for k, d in rows).encode())
        return total

    def nothing_then_update(self, run, rng):
        key, d = self.draw(rng)
        target = rng.choice(["", self.target() if "where" not in self.target() else ""])
        run(f"insert into {self.table} ({self.columns()}) values ({self.value(key)}) on conflict {target} do nothing")
        # At REPEATABLE READ the row may be one that the snapshot lacks: then the insert has failed already.
        done = run(f"update {self.table} t set n = n + {d} where {self.where(key, 't.')}", rows=None if self.deletes else 1)
        return self.told(key, d, done.rows_told)

    def for_update(self, run, rng):
        key, d = self.draw(rng)
        strength = rng.choice(["update", "no key update"])
        seen = run(f"select n from t where {self.where(key, 't.')} for {strength}", rows=1 if self.there() else None)
        if not seen.rows:
            return Counter()
        run(f"update {self.table} t set n = {int(seen.rows[0][0]) + d} where {self.where(key, 't.')}", rows=1)
        return self.told(key, d, 1)

    def skip_locked(self, run, rng):
        key, d = self.draw(rng)
        seen = run(f"select n from t where {self.where(key, 't.')} for update skip locked")
        if not seen.rows:
            return Counter()
        run(f"update {self.table} t set n = {int(seen.rows[0][0]) + d} where {self.where(key, 't.')}", rows=1)
        return self.told(key, d, 1)

    def with_update(self, run, rng):
        key, d = self.draw(rng)
        run(f"with u as (update {self.table} t set n = n + {d} where {self.where(key, 't.')} returning 1) insert into {self.table} ({self.columns()}, n) select {self.value(key)}, {d} where not exists (select from u)", may=TAKEN)
        return self.told(key, d, 1)

    def transfer(self, run, rng):
        a, b = sorted(rng.sample(range(self.keys), 2))
        d = rng.randint(1, 9)
        if not self.there():
            return self.upsert(run, rng)
        run(f"update {self.table} t set n = n + case when {self.where(a, 't.')} then {-d} else {d} end where ({self.where(a, 't.')}) or ({self.where(b, 't.')})", rows=2)
        return Counter({a: -d, b: d})

    def delete(self, run, rng):
        key, _ = self.draw(rng)
        gone = run(rng.choice([
            f"delete from {self.table} t where {self.where(key, 't.')} returning n",
            f"with d as (delete from {self.table} t where {self.where(key, 't.')} returning n) select n from d",
        ]))
        return Counter({key: -sum(int(n) for n, in gone.rows)})

    def verify(self, ask, totals):
        number = {"expression": "substr(k, 2)::int", "pair": "a * 7 + b"}.get(self.kind, "k")
        found = Counter()
        for key, n in ask(f"select {number}, n from t"):
            if int(key) in found:
                raise Wrong(f"key {int(key)} is there twice")
            found[int(key)] = int(n)
        for key in set(found) | set(totals):
            if found[key] != totals[key]:
                raise Wrong(f"key {key} has {found[key]}, and {totals[key]} was added to it")
        for key in list(found)[:20]:
            by_key = [int(n) for n, in ask(f"select n from t where {self.where(key)}")]
            if by_key != [found[key]]:
                raise Wrong(f"key {key}: {by_key} by its index, {found[key]} without")


class References:
    """Rows that point at rows that come, go and change their keys."""

    def __init__(self, rng):
        self.rng = rng
        self.keys = rng.choice([3, 10, 50])
        self.on_delete = rng.choice(["no action", "restrict", "cascade", "set null", "set default"])
        self.on_update = rng.choice(["no action", "restrict", "cascade", "set null", "set default"])
        self.timing = rng.choice(["", "", "deferrable initially deferred", "deferrable"])
        self.itself = rng.random() < 0.3
        self.partitioned = not self.itself and rng.random() < 0.25
        self.indexed = rng.random() < 0.7

    def setup(self):
        key = f"on delete {self.on_delete} on update {self.on_update} {self.timing}"
        if self.itself:
            made = [f"create table p (id int primary key, v int default 0, up int default 0 references p {key})"]
        else:
            of = "partition by hash (id)" if self.partitioned else ""
            made = [f"create table p (id int primary key, v int default 0) {of}"]
            if self.partitioned:
                made += [f"create table p{i} partition of p for values with (modulus 2, remainder {i})" for i in range(2)]
            made.append(f"create table c (id serial primary key, up int default 0 references p {key})")
        self.child = "p" if self.itself else "c"
        if self.indexed:
            made.append(f"create index on {self.child} (up)")
        made.append(f"insert into p {'(id, up)' if self.itself else '(id)'} select g{', null' if self.itself else ''} from generate_series(0, {self.keys - 1}) g")
        return made

    def operations(self):
        found = [self.parent, self.parent_again, self.child_comes, self.child_comes, self.points_elsewhere, self.parent_goes, self.parent_moves, self.child_goes, self.lock]
        return found if self.itself else [*found, self.both]

    single = ("parent", "parent_again", "child_comes", "points_elsewhere", "parent_goes", "parent_moves", "child_goes", "both", "lock")

    def some(self, rng):
        return rng.randrange(self.keys)

    def parent(self, run, rng):
        columns, value = ("(id, up)", ", null") if self.itself else ("(id)", "")
        done = run(f"insert into p {columns} values ({self.some(rng)}{value}) on conflict do nothing")
        return Counter(children=done.rows_told if self.itself else 0)

    def parent_again(self, run, rng):
        columns, value = ("(id, v, up)", ", 1, null") if self.itself else ("(id, v)", ", 1")
        done = run(f"insert into p {columns} values ({self.some(rng)}{value}) on conflict (id) do update set v = p.v + 1 returning p.v", rows=1)
        return Counter(children=int(done.rows[0][0] == b"1" and self.itself), unsure=1)

    def child_comes(self, run, rng):
        if self.itself:
            done = run(f"insert into p (id, up) values ({self.some(rng)}, {self.some(rng)}) on conflict do nothing", may=POINTS)
        else:
            done = run(f"insert into c (up) values ({self.some(rng)})", may=POINTS)
        return Counter(children=done.rows_told)

    def both(self, run, rng):
        key = self.some(rng)
        done = run(f"with n as (insert into p (id) values ({key}) on conflict (id) do update set v = p.v + 1) insert into c (up) values ({key})", may=POINTS)
        return Counter(children=done.rows_told)

    def points_elsewhere(self, run, rng):
        run(f"update {self.child} set up = {self.some(rng)} where id % 5 = {rng.randrange(5)}", may=POINTS)
        return Counter()

    def parent_goes(self, run, rng):
        done = run(f"delete from p where id = {self.some(rng)}", may=POINTS)
        return Counter(children=-done.rows_told if self.itself else 0)

    def parent_moves(self, run, rng):
        if self.partitioned:
            return Counter()
        run(f"update p set id = {self.some(rng)} where id = {self.some(rng)}", may=POINTS)
        return Counter()

    def child_goes(self, run, rng):
        done = run(f"delete from {self.child} where up = {self.some(rng)}", may=POINTS)
        return Counter(children=-done.rows_told)

    def lock(self, run, rng):
        run(f"select * from p where id = {self.some(rng)} for {rng.choice(['update', 'no key update', 'share', 'key share'])}")
        return Counter()

    def verify(self, ask, totals):
        lost = ask(f"select count(*) from {self.child} c where up is not null and not exists (select from p where p.id = c.up)")
        if lost[0][0] != b"0":
            raise Wrong(f"{int(lost[0][0])} rows point at nothing")
        twice = ask("select id from p group by id having count(*) > 1")
        if twice:
            raise Wrong(f"ids that are there twice: {twice}")
        if self.on_delete == "cascade" or totals["unsure"] and self.itself:
            return
        there = int(ask(f"select count(*) from {self.child}")[0][0]) - (self.keys if self.itself else 0)
        if there != totals["children"]:
            raise Wrong(f"{there} rows, and {totals['children']} came that did not go")


class Places:
    """Numbers that rows hand to each other: their uniqueness need not hold row by row."""

    def __init__(self, rng):
        self.rng = rng
        self.many = rng.choice([3, 10, 40])
        self.timing = rng.choice(["", "deferrable initially deferred", "deferrable initially immediate"])
        self.single = ("swap", "rotate") if self.timing else ()

    def setup(self):
        return [f"create table t (id int primary key, place int constraint place unique {self.timing}, moves int default 0)",
                f"insert into t select g, g from generate_series(1, {self.many}) g"]

    def operations(self):
        return [self.swap, self.rotate, self.by_hand] if self.timing else [self.by_hand]

    def pair(self, rng):
        return rng.sample(range(1, self.many + 1), 2)

    def swap(self, run, rng):
        a, b = self.pair(rng)
        done = run(f"update t set place = case place when {a} then {b} else {a} end, moves = moves + 1 where place in ({a}, {b})", may=TAKEN)
        return Counter(moves=done.rows_told)

    def rotate(self, run, rng):
        done = run(f"update t set place = place % {self.many} + 1, moves = moves + 1", may=TAKEN)
        return Counter(moves=done.rows_told)

    def by_hand(self, run, rng):
        a, b = self.pair(rng)
        seen = run(f"select id, place from t where id in ({a}, {b}) order by id for update", rows=2)
        (first, p), (second, q) = [(int(i), int(p)) for i, p in seen.rows]
        run(f"update t set place = {-p} where id = {first}", rows=1, may=TAKEN)
        run(f"update t set place = {p}, moves = moves + 1 where id = {second}", rows=1, may=TAKEN)
        run(f"update t set place = {q}, moves = moves + 1 where id = {first}", rows=1, may=TAKEN)
        return Counter(moves=2)

    def verify(self, ask, totals):
        places = sorted(int(p) for p, in ask("select place from t"))
        # A statement at READ COMMITTED that waited for one row of a pair may move it alone; then the other's place is taken, and it fails.
        if len(set(places)) != self.many or len(places) != self.many:
            raise Wrong(f"places {places}")
        moves = int(ask("select sum(moves) from t")[0][0])
        if moves != totals["moves"]:
            raise Wrong(f"{moves} moves, and {totals['moves']} were made")


class Jobs:
    """A queue: each job is taken once."""

    def __init__(self, rng):
        self.rng = rng
        self.partitioned = rng.random() < 0.25
        self.next, self.lock = 0, threading.Lock()

    def setup(self):
        of = "partition by hash (id)" if self.partitioned else ""
        made = [f"create table q (id int primary key, at timestamptz default now(), taken bool default false) {of}"]
        if self.partitioned:
            made += [f"create table q{i} partition of q for values with (modulus 2, remainder {i})" for i in range(2)]
        return [*made, "create index on q (at) where not taken"]

    def operations(self):
        return [self.push, self.push, self.pop, self.pop, self.take, self.pop_waiting]

    single = ("push", "pop", "take", "pop_waiting")

    def push(self, run, rng):
        with self.lock:
            first, self.next = self.next, self.next + rng.randint(1, 5)
            last = self.next - 1
        if rng.random() < 0.3:
            run("copy q (id) from stdin", rows=last - first + 1, data="".join(f"{i}\n" for i in range(first, last + 1)).encode())
        else:
            run(f"insert into q select g from generate_series({first}, {last}) g", rows=last - first + 1)
        return Counter({("pushed", i): 1 for i in range(first, last + 1)})

    def popped(self, done):
        return Counter({("popped", int(i)): 1 for i, in done.rows})

    def pop(self, run, rng):
        n = rng.randint(1, 3)
        order = rng.choice(["order by at", "order by id", "order by id desc"])
        return self.popped(run(f"delete from q where id in (select id from q where not taken {order} limit {n} for update skip locked) and not taken returning id"))

    def pop_waiting(self, run, rng):
        return self.popped(run("delete from q where id = (select min(id) from q where not taken) and not taken returning id"))

    def take(self, run, rng):
        return self.popped(run("update q set taken = true where id = (select id from q where not taken order by id for update skip locked limit 1) and not taken returning id"))

    def verify(self, ask, totals):
        pushed = {i for (what, i), _ in totals.items() if what == "pushed"}
        twice = [i for (what, i), n in totals.items() if what == "popped" and n > 1]
        popped = {i for (what, i), _ in totals.items() if what == "popped"}
        if twice:
            raise Wrong(f"jobs that were taken twice: {twice}")
        left = {int(i) for i, in ask("select id from q where not taken")}
        if left != pushed - popped:
            raise Wrong(f"jobs that are lost: {sorted(pushed - popped - left)}; that came from nowhere: {sorted(left - (pushed - popped))}")


GAMES = {game.__name__.lower(): game for game in (Counters, References, Places, Jobs)}


class Session(threading.Thread):
    """One client of an episode."""

    def __init__(self, episode, number):
        super().__init__(daemon=True)
        self.episode, self.number = episode, number
        self.rng = random.Random(f"{episode.seed} {number}")
        self.totals, self.committed, self.tried = Counter(), 0, 0
        self.sent = []

    def run(self):
        try:
            connection = self.episode.connect()
        except (Lost, Slow, OSError) as e:
            return self.episode.found(self, f"cannot connect: {e}")
        try:
            while time.monotonic() < self.episode.until and not self.episode.wrong and self.tried < self.episode.each:
                self.tried += 1
                self.transaction(connection)
        except Wrong as e:
            self.episode.found(self, str(e))
        except (Lost, Slow, Unasked, OSError) as e:
            self.episode.found(self, f"{type(e).__name__}: {e}")
        except Exception:
            self.episode.found(self, traceback.format_exc())
        finally:
            connection.close()

    def transaction(self, connection):
        rng, game = self.rng, self.episode.game
        operations = game.operations()
        chosen = [rng.choice(operations) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        self.sent = []
        if len(chosen) == 1 and chosen[0].__name__ in game.single and rng.random() < 0.7:
            try:
                did = chosen[0](self.runner(connection), rng)
            except Refused:
                return
            self.totals.update(did)
            self.committed += 1
            return
        pending = Counter()
        send = self.runner(connection)
        send(f"begin isolation level {rng.choice(LEVELS)}")
        try:
            for operation in chosen:
                pending.update(self.step(operation, send, rng))
            if getattr(game, "timing", None) and rng.random() < 0.3:
                send(f"set constraints all {rng.choice(['immediate', 'deferred'])}", may=POINTS)
            if rng.random() < 0.08:
                raise Refused
            done = send("commit", may=POINTS)
            if done.tag != "COMMIT":
                raise Wrong(f"COMMIT was answered by {done.tag}")
        except Refused:
            if connection.status != "I":
                send("rollback")
            return
        self.totals.update(pending)
        self.committed += 1

    def step(self, operation, send, rng):
        """An operation, perhaps in a savepoint that is released or rolled back."""
        if rng.random() < 0.8:
            return operation(send, rng)
        send("savepoint s")
        try:
            did = operation(send, rng)
        except Refused as e:
            if e.args[0] in AGAIN:
                raise
            send("rollback to s")
            return Counter()
        if rng.random() < 0.5:
            send("rollback to s")
            return Counter()
        send("release s")
        return did

    def runner(self, connection):
        def run(sql, rows=None, may=(), data=b""):
            self.sent.append(sql)
            answer = connection.query(sql, self.episode.patience, data)[-1]
            if answer.error:
                if answer.state in AGAIN or answer.state in may:
                    raise Refused(answer.state)
                if answer.state == "0A000":
                    raise Refused(answer.state)
                raise Wrong(f"{answer.state} {answer.message}\n    {sql}")
            last = (answer.tag or "").split()[-1:]
            answer.rows_told = int(last[0]) if last and last[0].isdigit() else 0
            if rows is not None and answer.rows_told != rows:
                raise Wrong(f"{answer.tag} and {answer.count} rows where {rows} are due\n    {sql}")
            return answer
        return run


class Episode:
    def __init__(self, address, database, seed, games, seconds, sessions):
        self.address, self.database, self.seed = address, database, seed
        self.rng = random.Random(seed)
        self.game = GAMES[self.rng.choice(games)](self.rng)
        self.sessions = sessions or self.rng.choice([2, 3, 4, 8, 8, 16, 32, 64])
        self.until = time.monotonic() + seconds
        self.each = self.rng.choice([20, 50, 200])
        self.patience = 60
        self.options = f"-c search_path={SCHEMA} -c client_min_messages=error -c deadlock_timeout=20ms {session_options(self.rng)}"
        self.wrong = []
        self.committed = self.tried = 0

    def connect(self):
        return Connection(self.address, database=self.database, options=self.options, patience=60)

    def found(self, session, what):
        self.wrong.append((session, what))

    def play(self):
        """What was wrong, as text; none."""
        connection = self.connect()

        def ask(sql):
            answer = connection.query(sql, 120)[-1]
            if answer.error:
                raise Wrong(f"{answer.state} {answer.message}\n    {sql}")
            return answer.rows
        ask(f"drop schema if exists {SCHEMA} cascade")
        ask(f"create schema {SCHEMA}")
        made = [stored(self.rng, sql) for sql in self.game.setup()]
        try:
            for sql in made:
                ask(sql)
            crowd = [Session(self, number) for number in range(self.sessions)]
            for session in crowd:
                session.start()
            for session in crowd:
                session.join()
            totals = Counter()
            for session in crowd:
                for key, n in session.totals.items():
                    totals[key] += n
                self.committed += session.committed
                self.tried += session.tried
            if not self.wrong:
                self.game.verify(ask, totals)
        except Wrong as e:
            self.wrong.append((None, str(e)))
        finally:
            connection.close()
        if not self.wrong:
            return None
        lines = [f"episode {self.seed}: {type(self.game).__name__}, {self.sessions} sessions, {self.options}"]
        lines += [f"  {sql};" for sql in made]
        for session, what in self.wrong[:5]:
            lines.append(f"  WRONG {what}")
            if session:
                lines += [f"    sent: {sql}" for sql in session.sent[-6:]]
        return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--throng", help="the binary to start")
    p.add_argument("--server", help="HOST:PORT[/DATABASE] of a server that runs, a PostgreSQL too")
    p.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    p.add_argument("--episode", help="plays this one alone, by the seed that was told")
    p.add_argument("--games", default=",".join(GAMES))
    p.add_argument("--sessions", type=int, help="instead of drawing them")
    p.add_argument("--each", type=float, default=6, help="seconds that an episode may last")
    p.add_argument("--cores", default="0", help="the server's cores")
    p.add_argument("--memory", default="256MB", help="the server's pool")
    arguments = p.parse_args()
    if not arguments.server and not arguments.throng:
        p.error("--server or --throng")
    place, _, database = (arguments.server or "").partition("/")
    target = Remote(place) if arguments.server else Child(os.path.abspath(arguments.throng), ["--memory", arguments.memory, "--cores", arguments.cores])
    end, number, wrong, played = time.monotonic() + arguments.seconds, 0, [], Counter()
    while time.monotonic() < end and not wrong:
        seed = arguments.episode or f"{arguments.seed}.{number}"
        episode = Episode(target.address, database or "postgres", seed, arguments.games.split(","), min(arguments.each, end - time.monotonic()), arguments.sessions)
        wrong = list(filter(None, [episode.play(), *(f"{short}\n{whole}" for short, whole in target.faults())]))
        played[type(episode.game).__name__] += 1
        played["committed"] += episode.committed
        played["tried"] += episode.tried
        number += 1
        if arguments.episode:
            break
    wrong += [str(fault) for fault in target.close()]
    for what in wrong:
        print(what)
    print(f"seed {arguments.seed}: " + ", ".join(f"{n} {what.lower()}" for what, n in sorted(played.items())) + f"; {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
