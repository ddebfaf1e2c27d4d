#!/usr/bin/env python3
"""`throng bench` against a MariaDB that this starts: every way to send statements and to enter, and TPC-C's conditions.

    mariadb_check.py --throng target/debug/throng [--user NAME] [--mariadbd PATH]

Says what it ran; the exit status is 1 where something was not as it must be. Its figures mean nothing.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

from compare import run, start_mariadb

SHORT = ["--seconds", "0.5", "--rounds", "1", "--json"]


def bench(throng, *arguments):
    done = subprocess.run([throng, "bench", *arguments, *SHORT], text=True, capture_output=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def check(what, holds, told):
    print(f"{'ok' if holds else 'FAILED'}: {what}", flush=True)
    if not holds:
        raise SystemExit(str(told))


def works(throng, what, *arguments):
    status, found, said = bench(throng, *arguments)
    points = [p for t in found["targets"] for p in t["points"]] if found else []
    good = status == 0 and points and all(p["throughput"]["median"] > 0 and not p["failures"] for p in points)
    check(what, good, (status, points, said))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--throng", default="target/debug/throng")
    parser.add_argument("--mariadbd", default=shutil.which("mariadbd"), required=not shutil.which("mariadbd"))
    parser.add_argument("--user", help="to run MariaDB as, which does not run as root")
    parser.add_argument("--port", type=int, default=15450)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        directory = os.path.join(scratch, "mariadb")
        os.mkdir(directory)
        server = start_mariadb(options.mariadbd, directory, options.port, options.user)
        try:
            socket = os.path.join(directory, "socket")
            grant = "CREATE USER ada@localhost IDENTIFIED BY 'p@ss'; GRANT ALL ON test.* TO ada@localhost"
            run(["mariadb", "--no-defaults", "-S", socket, "-u", "root", "-e", grant])
            tcp = f"mysql://root@127.0.0.1:{options.port}/test"
            select = ["select", "--scale", "1", "--clients", "1,8"]
            for mode in ["simple", "extended", "prepared"]:
                works(options.throng, f"select, {mode}", *select, "--mode", mode, "--target", tcp)
            password = f"mysql://ada:p%40ss@127.0.0.1:{options.port}/test"
            works(options.throng, "a password", *select, "--keep", "--target", password)
            unix = f"mysql://ada:p%40ss@{socket.replace('/', '%2F')}/test"
            works(options.throng, "a password over a Unix socket", *select, "--keep", "--target", unix)
            status, _, said = bench(options.throng, *select, "--keep", "--target", password.replace("p%40ss", "wrong"))
            check("a wrong password", status == 1 and "1045" in said, (status, said))
            status, _, said = bench(options.throng, "tpcb", "--target", tcp)
            check("a workload that is not written for it", status == 2 and "only select and tpcc" in said, (status, said))
            for mode in ["simple", "prepared"]:
                kept = ["--keep"] if mode == "prepared" else []
                tpcc = ["tpcc", "--scale", "1", "--clients", "1,16", "--mode", mode, *kept]
                found = works(options.throng, f"tpcc, {mode}", *tpcc, "--target", tcp)
                conditions = found["targets"][0]["conditions"]
                check(f"{len(conditions)} conditions", len(conditions) == 11, conditions)
        finally:
            server.terminate()
            server.wait()
    return None


if __name__ == "__main__":
    sys.exit(main())
