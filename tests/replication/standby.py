#!/usr/bin/env python3
"""Standbys: they follow under load over kills of either side, and take over.

    standby.py --throng BINARY [--rounds N]

Each round: a primary under pgbench's load with a standby that made itself; the standby or the primary is killed and
started again; at last the primary is killed and the standby promoted. What the standby had said to have on disk must
be there, the sums must be equal, and the new primary's own standby must follow it. Exits with 1 if something is wrong.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]
from backup import SUMS, Load, history  # noqa: E402


class Standby:
    """A process that follows, with a port of its own for when it serves."""

    def __init__(self, server_class, primary, place, *options):
        self.server_class = server_class
        self.server = object.__new__(server_class)
        server = self.server
        server.dir, server.data, server.log = str(place), str(Path(place) / "data"), str(Path(place) / "log")
        server.process, server.startup = None, None
        server.port = free_port()
        server.options = ["--memory", "128MB", *options]
        self.follow(primary)

    def follow(self, primary):
        self.url = f"postgres://postgres@127.0.0.1:{primary.port}"
        self.start()

    def start(self):
        server = self.server
        os.makedirs(server.dir, exist_ok=True)
        with open(server.log, "ab") as log:
            server.process = subprocess.Popen(
                [os.environ["THRONG"], "serve", "--data", server.data, "--listen", f"127.0.0.1:{server.port}", "--standby-of", self.url,
                 "--set", f"unix_socket_directories={server.dir}", *server.options], stdout=subprocess.PIPE, stderr=log, text=True)

    def kill(self):
        self.server.process.kill()
        self.server.process.wait()

    def stop(self):
        self.server.process.send_signal(signal.SIGTERM)
        assert self.server.process.wait(timeout=60) == 0, self.log()

    def log(self):
        return Path(self.server.log).read_text(encoding="utf8")[-3000:]

    def wait_for(self, primary, lsn, seconds=60):
        """Waits until the primary hears that the standby has its log up to `lsn` on disk."""
        began = time.monotonic()
        while primary.sql(f"select count(*) from pg_stat_replication where flush_lsn >= '{lsn}'") == "0":
            assert time.monotonic() - began < seconds, f"the standby does not come to {lsn}\n{self.log()}"
            assert self.server.process.poll() is None, f"the standby has ended\n{self.log()}"
            time.sleep(0.05)

    def promote(self):
        """Takes over; how long that took, and the server."""
        began = time.monotonic()
        done = subprocess.run([os.environ["THRONG"], "promote", "--data", self.server.data], capture_output=True, text=True, timeout=150, check=False)
        assert done.returncode == 0, f"throng promote: {done.stderr}\n{self.log()}"
        ready = self.server.process.stdout.readline()
        assert "is ready" in ready, f"{ready}\n{self.log()}"
        return time.monotonic() - began, self.server


class Writer(threading.Thread):
    """Inserts one number after the other, and knows which were answered."""

    def __init__(self, server, table):
        super().__init__()
        self.psql = subprocess.Popen(["psql", "-XAt"], env=server.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.table, self.answered = table, 0
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                self.psql.stdin.write(f"insert into {self.table} values ({self.answered + 1});\n")
                self.psql.stdin.flush()
                if self.psql.stdout.readline() != "INSERT 0 1\n":
                    break
                self.answered += 1
        self.psql.kill()
        self.psql.wait()


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def end_of_log(server):
    return server.sql("select pg_current_wal_flush_lsn()")


def one_round(server_class, place, number):
    primary = server_class("--memory", "128MB", "--set", "checkpoint_timeout=30s")
    try:
        primary.run("pgbench", "-i", "-q", "-s", "2")
        primary.sql("create table moments (n int primary key)")
        primary.sql("select pg_create_physical_replication_slot('standby', true)")
        standby = Standby(server_class, primary, place / "a", "--slot", "standby", "--set", "checkpoint_timeout=30s")
        with Load(primary):
            standby.wait_for(primary, end_of_log(primary))
            refused = subprocess.run(["psql", "-h", "127.0.0.1", "-p", str(standby.server.port), "-U", "postgres", "-c", "select 1"],
                                     capture_output=True, text=True, check=False)
            assert "not accepting connections" in refused.stderr, refused.stderr
            time.sleep(1)
            if number % 2:
                standby.kill()
                time.sleep(random.random())
                standby.start()
            primary.sql("create table made_later as select g from generate_series(1, 1000) g; checkpoint; drop table made_later; create index on moments (n)")
            standby.wait_for(primary, end_of_log(primary))
        if number % 3 == 0:
            # The primary dies and comes back: the standby goes on.
            with Load(primary):
                time.sleep(1)
                primary.kill()
            primary.start()
            with Load(primary):
                standby.wait_for(primary, end_of_log(primary))
                time.sleep(1)
        # From here on a commit is answered when the standby has it, too.
        Path(primary.data, "throng.toml").write_text('synchronous_standby_names = "ANY 1 (standby, other)"\n', encoding="utf8")
        primary.process.send_signal(signal.SIGHUP)
        primary.sql("create table answered_0 (n int); create table answered_1 (n int)")
        with Load(primary):
            assert primary.sql("select sync_state, sync_priority from pg_stat_replication") == "quorum|1"
            writers = [Writer(primary, f"answered_{n}") for n in range(2)]
            time.sleep(random.random())
            primary.sql("insert into moments select generate_series(1, 100)")
            known = end_of_log(primary)
            count = history(primary)
            standby.wait_for(primary, known)
            time.sleep(1 + random.random())
            primary.kill()
        for writer in writers:
            writer.join()
        took, now = standby.promote()
        assert now.sql(SUMS) == "t", "the sums are not equal"
        assert history(now) >= count, f"{history(now)} transactions, and {count} were on the standby's disk"
        assert now.sql("select count(*), count(n) filter (where n > 50) from moments") == "100|50"
        for n, writer in enumerate(writers):
            kept = int(now.sql(f"select count(*) from answered_{n}"))
            # One more may have been under way.
            assert writer.answered > 20 and writer.answered <= kept <= writer.answered + 1, f"{writer.answered} answered, {kept} kept"
        now.run("pgbench", "-n", "-c", "2", "-t", "50")
        # The next standby follows the new timeline, from nothing and as one that had followed it before.
        second = Standby(server_class, now, place / "b")
        with Load(now):
            second.wait_for(now, end_of_log(now))
            second.stop()
            time.sleep(0.5)
            second.start()
            second.wait_for(now, end_of_log(now))
        second.wait_for(now, end_of_log(now))
        expected = history(now)
        now.stop()
        time.sleep(0.5)
        took_again, then = second.promote()
        assert history(then) == expected and then.sql(SUMS) == "t"
        assert then.sql("select pg_walfile_name(pg_current_wal_insert_lsn())").startswith("00000003")
        then.stop()
        for server in (now, then):
            server.check()
        faults = [line for server in (now, then) for line in server.log_text().splitlines() if re.search(r"panicked|ERROR", line)]
        assert not faults, "\n".join(faults)
        return took, took_again
    finally:
        for process in (primary.process, *(s.server.process for s in (locals().get("standby"), locals().get("second")) if s)):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(primary.dir, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--throng", default=os.environ.get("THRONG"), required="THRONG" not in os.environ)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true", help="leave the directories of a round that failed")
    options = parser.parse_args()
    os.environ["THRONG"] = options.throng
    from server import Server  # asks for THRONG when it is imported

    options.seed = random.randrange(1 << 31) if options.seed is None else options.seed
    random.seed(options.seed)
    print(f"seed {options.seed}")
    for number in range(options.rounds):
        place = Path(tempfile.mkdtemp(prefix="throng-standby-"))
        began = time.monotonic()
        try:
            took, again = one_round(Server, place, number)
            print(f"ok      round {number}: promoted in {took:.1f} and {again:.1f} s ({time.monotonic() - began:.0f} s)")
        except (AssertionError, subprocess.TimeoutExpired, OSError) as e:
            print(f"FAILED  round {number}: {e}")
            if options.keep:
                print(place)
                return 1
            shutil.rmtree(place, ignore_errors=True)
            return 1
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
