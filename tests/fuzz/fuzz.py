"""Hunts for statements and messages that a server answers wrongly, or not at all. README.md tells how to start it."""

import argparse
import os
import random
import re
import signal
import sys
import threading
import time
from collections import Counter

import workers
from catalog import Catalog
from mutate import Corpus
from protocol import alive, drive
from shrink import shorter, smaller
from target import Child, Remote
from wire import Connection, Lost, Slow

MODES = {"grammar": workers.Grammar, "procedures": workers.Procedures, "mutation": workers.Mutation, "protocol": workers.Protocol, "oracle": workers.Oracle, "diff": workers.Diff}
IN_FLIGHT = 400  # operations of each worker that are looked at when the server died


class Hunt:
    """What the workers share: the server, what is known of it, and what was found."""

    def __init__(self, arguments):
        self.arguments, self.seed, self.grace = arguments, arguments.seed, arguments.grace
        self.over, self.up, self.lock, self.shrinking = threading.Event(), threading.Event(), threading.RLock(), threading.Lock()
        self.found, self.missing, self.begun, self.kept, self.spare = Counter(), Counter(), 0, 0, None
        self.child = ["--memory", arguments.memory, "--cores", arguments.cores, *arguments.option]
        self.target = Child(arguments.throng, self.child) if arguments.throng else Remote(arguments.server)
        self.corpus = Corpus(arguments.corpora) if os.path.isdir(arguments.corpora) else None
        self.read_catalogs()
        self.up.set()

    def read_catalogs(self):
        connection = Connection(self.target.address, patience=60)
        self.catalog, self.pure = Catalog(connection), Catalog(connection)
        self.pure = self.pure.shared_with(self.pure)
        if self.arguments.postgres:
            address, _, self.database = self.arguments.postgres.partition("/")
            self.postgres = Remote(address).address
            self.shared = Catalog(connection).shared_with(Catalog(Connection(self.postgres, database=self.database, patience=60)))
        if self.corpus and "mutation" in self.arguments.modes:
            self.lay_ground(connection)
        connection.close()

    def lay_ground(self, connection):
        for s in ["create schema if not exists ground", "set search_path = ground", *self.corpus.ground()]:
            connection.query(s, 120)

    # Findings

    def known(self, found, statement):
        """Whether something like it was shrunk often enough."""
        from oracle import shape
        key = f"tried {found[0]} {shape(statement)}"
        with self.lock:
            self.found[key] += 1
            cause = self.found[f"class {found[0]}"] = self.found[f"class {found[0]}"] + 1
            return self.found[key] > 1 or cause > self.arguments.each

    def report(self, kind, signature, worker, history, told="", shrink=True):
        signature = signature[:200] if kind in ("differs", "logic") else plain(signature)
        with self.lock:
            self.found[(kind, signature)] += 1
            if self.found[(kind, signature)] > 1:
                return
            self.kept += 1
            number = self.kept
        if shrink and self.arguments.throng:
            history = self.shrunk(kind, signature, worker, history)
        path = os.path.join(self.arguments.out, f"{number:03}-{kind}.txt")
        text = [f"# {kind}: {signature}", f"# seed {self.seed}, {worker.name if worker else 'server'}", *[f"# {line}" for line in told.splitlines()], *[shown(entry) for entry in history]]
        with open(path, "w", encoding="utf8", errors="surrogateescape") as file:
            file.write("\n".join(text) + "\n")
        with self.lock:
            print(f"== {kind}: {signature}\n   {told[:600]}\n   {path}: {len(history)} statements; the last: {shown(history[-1])[:400] if history else ''}", flush=True)

    def hang(self, worker, told):
        """A statement that outlived its timeout: does it hear a cancel?"""
        if self.target.dead():
            return self.lost(worker, "dead", self.begun)
        ignored = []
        for connection in worker.connections:
            try:
                connection.until = time.monotonic() + self.grace
                connection.cancel()
                connection.collect()
            except Slow:
                ignored.append("ignores cancel")
            except (Lost, OSError, TypeError):
                pass
        last = worker.history[-1][1][1] if worker.history else ""
        self.report("hang", f"{told} {' '.join(ignored[:1])} {re.sub(r'[^a-z_ ]+', ' ', str(last).lower())[:60]}", worker, list(worker.history))

    def lost(self, worker, told, began):
        if self.target.dead() or not self.up.is_set() or began != self.begun:
            while began == self.begun and not self.over.is_set():
                time.sleep(0.1)  # the watch tells of it, and asks for the worker's history
            return
        time.sleep(0.2)
        faults = self.target.faults()
        signature = faults[0][0] if faults else told
        self.report("panic" if faults else "lost", signature, worker, list(worker.history), faults[0][1] if faults else "")

    def died(self):
        """The server is gone: whose statements end it again is asked of each worker."""
        self.up.clear()
        code = self.target.process.poll() if self.target.process else None
        faults = self.target.faults()
        signature = faults[-1][0] if faults else f"ended with {code}"
        told = "\n".join(whole for _, whole in faults[-2:])
        time.sleep(1)
        if self.found[("died", plain(signature))]:
            self.found[("died", plain(signature))] += 1
        else:
            for worker in sorted(self.threads, key=lambda w: w.name):
                history = worker.history[-IN_FLIGHT:]
                if history and self.shows("died", signature, worker, history):
                    self.report("died", signature, worker, history, told)
                    break
            else:
                everything = [entry for w in self.threads for entry in w.history[-3:]]
                self.report("died", signature, None, everything, told + "\nnot seen again: the last statements of all workers", shrink=False)
        self.target.restart()
        self.read_catalogs()
        self.begun += 1
        self.up.set()

    # Again, on a server of its own

    def shows(self, kind, signature, worker, history):
        """Whether the operations bring it about."""
        with self.shrinking:
            if self.spare is None:
                self.spare = Child(self.arguments.throng, ["--memory", "128MB", *self.child[2:]])
            if self.spare.dead() or not alive(self.spare.address):
                self.spare.restart()
            self.spare.faults()
            seen = self.replay(worker, history)
            if kind == "died":
                time.sleep(0.1)
                return self.spare.dead()
            faults = [plain(short) for short, _ in self.spare.faults()]
            return seen == kind if kind in ("hang", "lost") else signature in faults or signature in seen

    def replay(self, worker, history):
        address = self.spare.address
        if isinstance(worker, workers.Protocol):
            for _, (_, pieces) in history:
                drive(address, pieces)
            return "" if self.spare.dead() or alive(address) else "lost"
        connections, seen = [], ""
        try:
            path = worker.schema
            workers.fresh(address, worker.schema, getattr(worker, "ground", ())).close()
            if isinstance(worker, workers.Mutation):
                path = worker.schema_path
            connections = [Connection(address, options=workers.options(path)) for _ in range(3)]
            for i, operation in history:
                if found := workers.wrong(workers.perform(connections, i, operation, workers.LIMIT + self.grace)):
                    seen = plain(found[1])
        except Slow:
            seen = "hang"
        except (Lost, OSError):
            seen = "lost"
        for c in connections:
            c.close()
        return seen

    def shrunk(self, kind, signature, worker, history):
        if kind in ("logic", "memory"):
            return history
        end = time.monotonic() + self.arguments.shrink

        def shows(part):
            return bool(part) and time.monotonic() < end and self.shows(kind, signature, worker, part)
        last = history[-1:]
        if shows(last):
            history = last
        elif shows(history):
            history = smaller(history, shows, end - time.monotonic())
        else:
            return history
        for k in range(len(history) - 1, -1, -1):
            i, (way, text, *rest) = history[k]
            if way in ("query", "extended"):
                text = shorter(text, lambda s, k=k, i=i, way=way, rest=rest: shows(history[:k] + [(i, (way, s, *rest))] + history[k + 1:]), max(end - time.monotonic(), 0))
                history[k] = (i, (way, text, *rest))
        return history

    # The watch

    def run(self):
        modes = [m for m in self.arguments.modes if not (m == "mutation" and self.corpus is None) and not (m == "diff" and not self.arguments.postgres)]
        self.threads = [MODES[m](n, self) for m in modes for n in range(self.arguments.workers if m != "protocol" else 1)]
        began, told, warm, peak, within = time.monotonic(), 0, None, 0, 0
        for t in self.threads:
            t.start()
        length = self.arguments.minutes * 60
        try:
            while (spent := time.monotonic() - began) < length:
                time.sleep(0.5)
                if self.target.dead():
                    self.died()
                    warm = None
                    continue
                for short, whole in self.target.faults():
                    self.report("panic" if "panicked" in whole else "log", short, None, [entry for w in self.threads for entry in w.history[-2:]], whole, shrink=False)
                rss = self.target.rss() >> 20
                peak = max(peak, rss)
                if warm is None and spent > min(length / 5, 120):
                    warm = rss
                # What a long value takes it gives back: its statement may take three seconds.
                within = spent if rss <= self.arguments.rss_mb else within
                if rss > self.arguments.peak_mb or spent - within > 15:
                    self.report("memory", f"{rss} MB", None, [entry for w in self.threads for entry in w.history[-2:]], f"after warm-up {warm} MB", shrink=False)
                    self.target.process.kill()
                    within = spent
                if spent > told + 60:
                    told = spent
                    print(f"-- {spent / 60:.0f} min: {counted(self.threads)}; {rss} MB; {self.kept} found", flush=True)
        except KeyboardInterrupt:
            pass
        self.over.set()
        self.up.set()
        for t in self.threads:
            t.join(timeout=30)
        for problem in self.target.close():
            self.report("end", problem[:100], None, [], problem, shrink=False)
        if self.spare:
            self.spare.server.__exit__()
        print(f"seed {self.seed}; {counted(self.threads)} statements; at most {peak} MB; {self.kept} found")
        for text, n in self.missing.most_common(self.arguments.missing):
            print(f"   not there {n:5} {text}")
        return 1 if self.kept else 0


def plain(signature):
    return re.sub(r"\d+", "N", signature)[:200]


def counted(threads):
    return ", ".join(f"{t.name} {t.done}" for t in threads)


def shown(entry):
    """An operation as text that can be sent again."""
    i, (kind, *rest) = entry
    if kind == "query":
        return f"/* {i} */ {rest[0]};"
    return f"/* {i} {kind} */ {' /* with */ '.join(str(r) for r in rest)}"


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--minutes", type=float, default=10)
    p.add_argument("--server", help="HOST:PORT of a server that runs")
    p.add_argument("--throng", help="the binary to start")
    p.add_argument("--postgres", help="HOST:PORT/DATABASE of a PostgreSQL to compare with")
    p.add_argument("--modes", default="grammar,procedures,mutation,protocol,oracle,diff", help="comma-separated")
    p.add_argument("--workers", type=int, default=2, help="of each mode")
    p.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    p.add_argument("--out", default="/tmp/throng-fuzz")
    p.add_argument("--corpora", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared/corpora/postgresql-18/regress"))
    p.add_argument("--rss-mb", type=int, default=1500, help="the server may not stay beyond")
    p.add_argument("--peak-mb", type=int, default=4000, help="the server may never grow beyond: the GB that long values may take, once as it is made, once kept, once sent")
    p.add_argument("--memory", default="256MB", help="the server's pool")
    p.add_argument("--cores", default="0", help="the server's cores")
    p.add_argument("--option", action="append", default=[], help="more for `throng serve`")
    p.add_argument("--grace", type=float, default=10, help="seconds that a statement may outlive its timeout")
    p.add_argument("--shrink", type=float, default=90, help="seconds for each find")
    p.add_argument("--each", type=int, default=40, help="differences of one class that are shrunk")
    p.add_argument("--missing", type=int, default=0, help="prints so many of what PostgreSQL answers and the server has not")
    arguments = p.parse_args()
    if not arguments.server and not arguments.throng:
        p.error("--server or --throng")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments.modes = arguments.modes.split(",")
    os.makedirs(arguments.out, exist_ok=True)
    sys.exit(Hunt(arguments).run())


if __name__ == "__main__":
    main()
