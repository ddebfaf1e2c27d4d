#!/usr/bin/env python3
"""What takes minutes to show: a table larger than the pool, tables that stop growing, a crowd behind one lock.

    tests/bench/endure.py [--throng target/release/throng] [large] [steady] [crowd] [idle] [analytics] [kills]

large   a table of --gigabytes with a pool of --memory: scans, random reads and updates are right, memory stays near the pool
steady  --minutes of tpcb-like with 50 clients: sizes of the tables level off, the last minute is at least 90 % of the second
crowd   select-only clients keep at least 80 % of their throughput beside 200 sessions that want one row, and beside
        one that reads a big table slowly
idle    10,000 connections that do nothing take less than 1 GB, and beside them select-only clients keep 95 % of their throughput
analytics  beside a session that aggregates a table over and over, select-only and tpcb-like clients keep at least 80 % of theirs
kills   --rounds times kill -9 under tpcb-like: sums are equal, what pgbench counted is there, restart takes under 10 s

Each prints what it measured and whether it held; the exit status says whether all did.
"""

import argparse
import os
import random
import re
import resource
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

IDLE = 10_000
ENVIRONMENT = {"PGUSER": "postgres", "PGDATABASE": "postgres", "PGHOST": "127.0.0.1"}


class Server:
    def __init__(self, options, connections=1000):
        self.options = options
        self.connections = connections
        self.directory = tempfile.TemporaryDirectory(dir=options.dir, prefix="throng-endure-")
        self.port = 0
        self.start()

    def start(self):
        began = time.monotonic()
        self.process = subprocess.Popen(
            [self.options.throng, "serve", "--data", os.path.join(self.directory.name, "data"),
             "--listen", f"127.0.0.1:{self.port}", "--memory", self.options.memory,
             "--set", "unix_socket_directories=", "--set", f"max_connections={self.connections}"],
            stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", self.process.stdout.readline()).group(1))
        self.environment = {**os.environ, **ENVIRONMENT, "PGPORT": str(self.port)}
        self.startup = time.monotonic() - began

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.directory.cleanup()

    def run(self, *command):
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def sql(self, text):
        return self.run("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", text).strip()

    def memory(self):
        """Resident megabytes, and the most there ever were."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            found = dict(re.findall(r"(VmHWM|VmRSS):\s+(\d+) kB", status.read()))
        return int(found["VmRSS"]) // 1024, int(found["VmHWM"]) // 1024

    def bench(self, *flags, clients, seconds):
        out = self.run("pgbench", "-n", "-c", str(clients), "-j", "2", "-T", str(seconds), *flags)
        assert "number of failed transactions: 0 " in out, out
        return float(re.search(r"tps = ([\d.]+) \(without", out).group(1))


def verdict(name, held, text):
    print(f"{name}: {text}: {'held' if held else 'NOT HELD'}", flush=True)
    return held


def megabytes(size):
    number, unit = re.fullmatch(r"(\d+)([MG])B", size).groups()
    return int(number) * (1024 if unit == "G" else 1)


def large(options):
    with Server(options) as server:
        rows = options.gigabytes * 1_000_000
        server.sql("create table large (id int primary key, n int not null, filler text)")
        step = 250_000
        for first in range(1, rows + 1, step):
            last = min(first + step - 1, rows)
            server.sql(f"insert into large select i, i, repeat('x', 1000) from generate_series({first}, {last}) i")
        size = int(server.sql("select pg_relation_size('large')")) / 2**30
        began = time.monotonic()
        right = server.sql("select count(*), sum(n) from large") == f"{rows}|{rows * (rows + 1) // 2}"
        scan = time.monotonic() - began
        script = os.path.join(server.directory.name, "large.sql")
        with open(script, "w", encoding="ascii") as file:
            file.write(f"\\set id random(1, {rows})\nselect n from large where id = :id;\n"
                       "update large set n = n + 1 where id = :id;\n")
        tps = server.bench("-f", script, "-M", "prepared", clients=16, seconds=options.seconds)
        grown = int(server.sql("select sum(n) from large")) - rows * (rows + 1) // 2
        now, most = server.memory()
        pool = megabytes(options.memory)
        text = (f"{size:.1f} GB, pool {pool} MB: scan {scan:.1f} s, read and update {tps:,.0f} TPS, "
                f"memory {now} MB, at most {most} MB")
        return verdict("large", right and grown > 0 and most < pool * 1.5 + 200, text)


def sizes(server):
    tables = ["pgbench_accounts", "pgbench_tellers", "pgbench_branches"]
    return [int(server.sql(f"select pg_total_relation_size('{table}')")) // 1024 for table in tables]


def steady(options):
    with Server(options) as server:
        server.run("pgbench", "-i", "-q", "-s", str(options.scale))
        start, tps, seen = sizes(server), [], []
        for minute in range(options.minutes):
            tps.append(server.bench(clients=50, seconds=60))
            seen.append(sizes(server))
            print(f"  minute {minute + 1}: {tps[-1]:,.0f} TPS; accounts, tellers, branches {seen[-1]} kB", flush=True)
        half = seen[len(seen) // 2]
        level = all(last <= at_half * 1.1 + 512 for last, at_half in zip(seen[-1], half, strict=True))
        kept = tps[-1] / tps[min(1, len(tps) - 1)]
        return verdict("steady", level and kept >= 0.9,
                       f"sizes {start} to {seen[-1]} kB, last minute {kept:.0%} of the second")


class Raw:
    """A session that sends a query and reads when it likes."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        body = struct.pack("!I", 196608) + b"user\0postgres\0database\0postgres\0\0"
        self.socket.sendall(struct.pack("!I", len(body) + 4) + body)
        self.until_ready()

    def send(self, sql):
        body = sql.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!I", len(body) + 4) + body)

    def until_ready(self):
        seen = b""
        while not (len(seen) >= 6 and seen[-6:-1] == b"Z\0\0\0\x05"):
            more = self.socket.recv(65536)
            if not more:
                raise SystemExit("the server hung up")
            seen = (seen + more)[-64:]


def crowd(options):
    with Server(options) as server:
        server.run("pgbench", "-i", "-q", "-s", str(options.scale))
        server.sql("create table wanted (id int primary key, n int); insert into wanted values (1, 0); "
                   "create table slow as select i, repeat('x', 500) as filler from generate_series(1, 400000) i")

        def measure():
            return server.bench("-S", "-M", "prepared", clients=32, seconds=options.seconds)

        alone = [measure()]
        holder = Raw(server.port)
        holder.send("begin; update wanted set n = n + 1 where id = 1")
        holder.until_ready()
        waiters = [Raw(server.port) for _ in range(200)]
        for waiter in waiters:
            waiter.send("update wanted set n = n + 1 where id = 1")
        while server.sql("select count(*) from pg_stat_activity where wait_event_type = 'Lock'") != "200":
            pass
        beside_waiters = measure()
        holder.send("commit")
        holder.until_ready()
        for waiter in waiters:
            waiter.until_ready()
        right = server.sql("select n from wanted") == "201"
        alone.append(measure())
        reader = Raw(server.port)
        reader.send("select * from slow")
        reading = True

        def read_slowly():
            while reading:
                reader.socket.recv(16384)
                time.sleep(0.01)

        thread = threading.Thread(target=read_slowly)
        thread.start()
        beside_reader = measure()
        reading = False
        thread.join()
        reader.socket.close()
        alone.append(measure())
        usual = sorted(alone)[1]
        shares = [beside_waiters / usual, beside_reader / usual]
        return verdict("crowd", right and min(shares) >= 0.8,
                       f"select-only alone {usual:,.0f} TPS; beside 200 who wait {shares[0]:.0%}, "
                       f"beside a slow reader {shares[1]:.0%}")


def idle(options):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with Server(options, connections=IDLE + 1000) as server:
        server.run("pgbench", "-i", "-q", "-s", str(options.scale))

        def measure():
            return server.bench("-S", clients=100, seconds=options.seconds)

        measure()
        shares, grown = [], []
        for _ in range(3):
            alone = measure()
            before, _ = server.memory()
            began = time.monotonic()
            connections = [Raw(server.port) for _ in range(IDLE)]
            took = time.monotonic() - began
            grown.append(server.memory()[0] - before)
            beside = measure()
            shares.append(beside / alone)
            print(f"  {IDLE} connections in {took:.1f} s, {grown[-1]} MB; {alone:,.0f} TPS alone, {beside:,.0f} beside them",
                  flush=True)
            for connection in connections:
                connection.socket.close()
            while server.sql("select count(*) from pg_stat_activity where backend_type = 'client backend'") != "1":
                time.sleep(0.1)
        share = statistics.median(shares)
        return verdict("idle", share >= 0.95 and max(grown) < 1024,
                       f"{IDLE} idle connections take at most {max(grown)} MB; beside them select-only keeps {share:.0%}")


def analytics(options):
    with Server(options) as server:
        server.run("pgbench", "-i", "-q", "-s", str(options.scale))
        query = "select bid, count(*), sum(abalance), min(filler) from pgbench_accounts group by bid"
        held = []
        for name, flags in {"select-only": ["-S"], "tpcb-like": []}.items():
            def measure(flags=flags):
                return server.bench(*flags, "-M", "prepared", clients=32, seconds=options.seconds)

            measure()
            shares, answered = [], 0
            for _ in range(3):
                alone = measure()
                session, enough, answers = Raw(server.port), threading.Event(), []

                def ask(session=session, enough=enough, answers=answers):
                    while not enough.is_set():
                        session.send(query)
                        session.until_ready()
                        answers.append(1)

                thread = threading.Thread(target=ask)
                thread.start()
                beside = measure()
                enough.set()
                thread.join()
                session.socket.close()
                answered += len(answers)
                shares.append(beside / alone)
            share = statistics.median(shares)
            held.append(verdict(f"analytics, {name}", share >= 0.8 and answered > 0,
                                f"32 clients keep {share:.0%} beside {answered / (3 * options.seconds):.1f} aggregations a second"))
        return all(held)


def kills(options):
    with Server(options) as server:
        server.run("pgbench", "-i", "-q", "-s", str(options.scale))
        slowest, held, seen = 0, True, 0
        for _ in range(options.rounds):
            before = int(server.sql("select count(*) from pgbench_history"))
            bench = subprocess.Popen(["pgbench", "-n", "-c", "50", "-j", "2", "-T", "600", "-M", "prepared"],
                                     env=server.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            time.sleep(random.uniform(2, 20))
            server.process.kill()
            server.process.wait()
            output = bench.communicate()[0]
            counted = int(re.search(r"number of transactions actually processed: (\d+)", output).group(1))
            server.start()
            slowest = max(slowest, server.startup)
            there = int(server.sql("select count(*) from pgbench_history")) - before
            sums = server.sql("select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from "
                              "pgbench_tellers), (select sum(bbalance) from pgbench_branches), "
                              "(select coalesce(sum(delta), 0) from pgbench_history)").split("|")
            good = len(set(sums)) == 1 and counted <= there <= counted + 50
            print(f"  {counted} counted, {there} there, sums {sums}, restart {server.startup:.1f} s", flush=True)
            held, seen = held and good, seen + counted
        server.process.terminate()
        server.process.wait()
        checked = subprocess.run([options.throng, "check", "--data", os.path.join(server.directory.name, "data")],
                                 check=False, capture_output=True, text=True)
        return verdict("kills", held and slowest < 10 and checked.returncode == 0,
                       f"{options.rounds} kills, {seen} commits counted, slowest restart {slowest:.1f} s, "
                       f"check: {checked.stdout.strip() or checked.returncode}")


def main():
    trials = {"large": large, "steady": steady, "crowd": crowd, "idle": idle, "analytics": analytics, "kills": kills}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", nargs="*", metavar="trial", help=f"{', '.join(trials)}; all without one")
    parser.add_argument("--throng", default="target/release/throng")
    parser.add_argument("--memory", default="512MB", help="the pool")
    parser.add_argument("--gigabytes", type=int, default=4)
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=15, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--dir", help="where the data lies")
    options = parser.parse_args()
    unknown = set(options.trials) - set(trials)
    if unknown:
        parser.error(f"no such trial: {', '.join(unknown)}")
    results = [trials[name](options) for name in options.trials or trials]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
