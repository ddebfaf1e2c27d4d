"""Everything at once: the fuzzers, a bank, counters, definitions, idle sessions and big queries beside each other, ended by kill -9.

`everything.py --throng BIN [--minutes N] [--round SECONDS] [--postgres HOST:PORT/DATABASE] [--dir DIR]`

One directory lives through all rounds. In each round the nets run side by side against one server, with `pgbench`, a session that
aggregates, a crowd that does nothing, sessions that define and drop, and counters whose answered commits are noted. Then the server is
killed under that load. What must hold: every answered commit is there and nothing that was not sent, sequences go on above what they
gave, the bank's sums are equal, a copy of the directory passes `throng check --redo`, the restart takes less than `--restart` seconds, no
net finds anything, no panic stands in the log, no event loop was held for more than `--most-ms`, memory stays below `--rss-mb`. What
does not hold is told and makes it end with 1.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import threading
import time

from target import STALLED_MS, Child
from wire import Connection, Lost, Slow

HERE = os.path.dirname(os.path.abspath(__file__))
KEYS = 20
MODES = "grammar,procedures,mutation,oracle"


class Counters(threading.Thread):
    """Upserts numbers and draws from a sequence, and keeps what was answered: what it must find again."""

    def __init__(self, address, number, over):
        super().__init__()
        self.address, self.number, self.over = address, number, over
        self.answered, self.sent, self.drawn = [0] * KEYS, [0] * KEYS, 0

    def run(self):
        try:
            connection = Connection(self.address, patience=60)
            connection.query("prepare up(int, int) as insert into counted values ($1, $2, 1) on conflict (who, k) do update set n = counted.n + 1")
            lot = random.Random(self.number)
            while not self.over.is_set():
                k = lot.randrange(KEYS)
                self.sent[k] += 1
                answers = connection.query(f"begin; execute up({self.number}, {k}); select nextval('drawn'); commit", 60)
                if not any(a.error for a in answers):
                    self.answered[k] += 1
                    self.drawn = max(self.drawn, int(answers[2].rows[0][0]))
        except (Lost, Slow, OSError):
            pass


class Repeated(threading.Thread):
    """Sends the same statements over and over; their errors are no finding, the server's state is."""

    def __init__(self, address, over, statements, pause=0.0):
        super().__init__()
        self.address, self.over, self.statements, self.pause = address, over, statements, pause

    def run(self):
        try:
            connection = Connection(self.address, patience=60)
            while not self.over.is_set():
                for sql in self.statements:
                    connection.query(sql, 120)
                time.sleep(self.pause)
        except (Lost, Slow, OSError):
            pass


DEFINE = [
    "begin; create table made (a serial primary key, b text); insert into made (b) select repeat('x', 5000) from generate_series(1, 100); create index on made (left(b, 9)); commit",
    "alter table made add column c int default 7; update made set b = b || c where a < 50",
    "begin; alter table made drop column b; truncate made; rollback",
    "vacuum made; drop table made",
]
AGGREGATE = ["select bid, count(*), sum(abalance), max(filler) from pgbench_accounts group by bid order by 2"]


class Everything:
    def __init__(self, options):
        self.options, self.findings = options, []
        os.environ["TMPDIR"] = options.dir
        self.child = Child(options.throng, ["--memory", options.memory])
        self.server = self.child.server
        os.setpriority(os.PRIO_PROCESS, self.server.process.pid, options.nice)
        self.counters = {}
        self.drawn = 0
        for sql in ["create table counted (who int, k int, n int, primary key (who, k))", "create sequence drawn", "create database sums", "create database fuzzed"]:
            self.ask(sql)
        self.server.run("pgbench", "-i", "-q", "-s", "2")

    def finding(self, what):
        self.findings.append(what)
        print("FINDING", what, flush=True)

    def ask(self, sql, database="postgres"):
        connection = Connection(self.child.address, database=database, patience=60)
        try:
            answer = connection.query(sql, 120)[-1]
            if answer.error:
                raise AssertionError(f"{sql}: {answer.message}")
            return answer.rows
        finally:
            connection.close()

    def nets(self, number, seconds, folder):
        place = f"127.0.0.1:{self.server.port}"
        if self.options.kills:
            return
        yield "sums", ["sums.py", "--server", f"{place}/sums", "--seconds", str(seconds)]
        yield "fuzz", ["fuzz.py", "--server", place, "--minutes", str(seconds / 60), "--modes", MODES, "--workers", "1", "--out", os.path.join(folder, f"found{number}")]
        yield "protocol", ["fuzz.py", "--server", place, "--minutes", str(seconds / 60), "--modes", "protocol", "--out", os.path.join(folder, f"protocol{number}")]
        if self.options.postgres:
            yield "definitions", ["definitions.py", "--server", place, "--postgres", self.options.postgres, "--seconds", str(seconds), "--leave", "22P02,42703,42701,42P07"]

    def round(self, number):
        over = threading.Event()
        workers = [Counters(self.child.address, number * 100 + n, over) for n in range(4)]
        others = [Repeated(self.child.address, over, DEFINE, 0.05), Repeated(self.child.address, over, AGGREGATE, 0.5)]
        idle = [Connection(self.child.address, patience=60) for _ in range(self.options.idle)]
        for thread in workers + others:
            thread.start()
        bank = subprocess.Popen(
            ["pgbench", "-n", "-c", "8", "-T", "100000", "-M", "prepared"], env=self.server.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        folder = self.options.dir
        running = []
        for name, command in self.nets(number, self.options.round, folder):
            log = os.path.join(folder, f"{name}{number}.log")
            with open(log, "w", encoding="utf8") as out:
                running.append((name, log, subprocess.Popen([sys.executable, os.path.join(HERE, command[0]), *command[1:]], stdout=out, stderr=out)))
        if self.options.kills:
            # Nobody but the load: the moment of the kill is drawn.
            time.sleep(random.uniform(0.2, self.options.round))
        until, most = time.monotonic() + self.options.round + 300, 0
        while any(p.poll() is None for _, _, p in running) and time.monotonic() < until:
            time.sleep(1)
            most = max(most, self.child.rss() >> 20)
            if self.child.dead():
                self.finding(f"round {number}: the server ended with {self.server.process.poll()}")
                break
        for name, log, process in running:
            if process.poll() is None:
                process.kill()
                self.finding(f"round {number}: {name} did not end")
            elif process.returncode:
                self.finding(f"round {number}: {name} ended with {process.returncode}: {log}")
        if most > self.options.rss_mb:
            self.finding(f"round {number}: {most} MB")
        if not self.child.dead():
            for held, used, text in self.ask(f"select held_ms, cpu_ms, statement from throng.stalls where {STALLED_MS} > {self.options.most_ms}"):
                self.finding(f"round {number}: held for {held} ms, computing for {used}: {str(text)[:4000]}")
        self.server.kill()
        over.set()
        bank.wait()
        for thread in workers + others:
            thread.join()
        for connection in idle:
            connection.close()
        self.counters |= {w.number: w for w in workers}
        self.drawn = max([self.drawn, *(w.drawn for w in workers)])
        for fault, whole in self.child.faults():
            self.finding(f"round {number}: {fault}\n{whole[:1500]}")
        self.copy(number)
        self.server.start()
        os.setpriority(os.PRIO_PROCESS, self.server.process.pid, self.options.nice)
        if self.server.startup > self.options.restart:
            self.finding(f"round {number}: the restart took {self.server.startup:.1f} s")
        self.judge(number)
        answered = sum(sum(w.answered) for w in workers)
        print(f"round {number}: {answered} commits answered, restart {self.server.startup:.1f} s, at most {most} MB, {len(self.findings)} findings", flush=True)

    def copy(self, number):
        """A copy of what the killed server left is whole."""
        copied = os.path.join(self.options.dir, "copy")
        shutil.copytree(self.server.data, copied)
        done = subprocess.run([self.options.throng, "check", "--redo", "--data", copied], capture_output=True, text=True, check=False)
        if done.returncode:
            self.finding(f"round {number}: check --redo of a copy: {done.returncode}\n{(done.stdout + done.stderr)[-1500:]}")
        shutil.rmtree(copied)

    def judge(self, number):
        there = {(int(who), int(k)): int(n) for who, k, n in self.ask("select who, k, n from counted")}
        for who, counter in self.counters.items():
            for k in range(KEYS):
                n = there.get((who, k), 0)
                if not counter.answered[k] <= n <= counter.sent[k]:
                    self.finding(f"round {number}: counter {who}, {k} is {n}; answered {counter.answered[k]}, sent {counter.sent[k]}")
        if int(self.ask("select nextval('drawn')")[0][0]) <= self.drawn:
            self.finding(f"round {number}: the sequence gave a number again that was at most {self.drawn}")
        sums = self.ask("select (select sum(abalance) from pgbench_accounts), (select sum(bbalance) from pgbench_branches), (select sum(tbalance) from pgbench_tellers), (select sum(delta) from pgbench_history)")[0]
        if len({int(s or 0) for s in sums}) > 1:
            self.finding(f"round {number}: the bank's sums are {sums}")

    def run(self):
        until, number = time.monotonic() + self.options.minutes * 60, 0
        while number < self.options.kills or not self.options.kills and time.monotonic() < until:
            number += 1
            self.round(number)
        for problem in self.child.close():
            self.finding(f"at the end: {problem}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--throng", required=True)
    p.add_argument("--minutes", type=float, default=120)
    p.add_argument("--round", type=float, default=180, help="seconds of each round's nets")
    p.add_argument("--kills", type=int, default=0, help="so many rounds of load and kill -9 without nets, instead of minutes")
    p.add_argument("--postgres", help="HOST:PORT/DATABASE, for definitions beside statements")
    p.add_argument("--dir", default="/tmp/throng-everything")
    p.add_argument("--memory", default="256MB")
    p.add_argument("--idle", type=int, default=300)
    p.add_argument("--nice", type=int, default=-10, help="the server's, so that a busy machine's turns are not taken for its own")
    p.add_argument("--most-ms", type=float, default=50)
    p.add_argument("--rss-mb", type=int, default=2500)
    p.add_argument("--restart", type=float, default=5)
    options = p.parse_args()
    options.throng, options.dir = os.path.abspath(options.throng), os.path.abspath(options.dir)
    os.makedirs(options.dir, exist_ok=True)
    everything = Everything(options)
    try:
        everything.run()
    finally:
        everything.child.server.__exit__()
    print(f"{len(everything.findings)} findings")
    sys.exit(1 if everything.findings else 0)


if __name__ == "__main__":
    main()
