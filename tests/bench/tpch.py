#!/usr/bin/env python3
"""TPC-H's 22 queries on Throng and PostgreSQL, alternating in one run: times and ratios as a markdown page.

    tpch.py --throng target/release/throng --pgbin /usr/lib/postgresql/18/bin --data DIR [--runs 3] [--memory 2GB]

DIR holds the eight tables as CSV with a header, as `tpchgen-cli csv -s 1 -o DIR` writes them (`pip install tpchgen-cli`).
Starts both servers itself, on temporary directories with a pool of --memory, loads, indexes foreign keys too, analyzes, and asks
each query of one server and then of the other, --runs times. The first run is the first touch of a query's columns; the table
has it and the median of all. Results are compared byte by byte; a query that gives other rows than PostgreSQL's, or none in ten
minutes, is told and not summed. docs/benchmarks/tpch.md is what it printed.
PostgreSQL does not run as root: pass --pguser NAME to start it as NAME.
"""

import argparse
import datetime
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import compare

QUERIES = pathlib.Path(__file__).parent / "tpch"
TABLES = ["region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"]
MOST_SECONDS = 600


def psql(port, *arguments, **options):
    command = ["psql", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-XAtq", "-v", "ON_ERROR_STOP=1"]
    return subprocess.run([*command, *arguments], text=True, capture_output=True, **options)


def load(port, directory):
    started = time.monotonic()
    copies = [f"\\copy {table} from '{directory}/{table}.csv' with (format csv, header)" for table in TABLES]
    copies = [argument for copy in copies for argument in ("-c", copy)]
    made = psql(port, "-f", str(QUERIES / "schema.sql"), *copies, "-f", str(QUERIES / "indexes.sql"), "-c", "VACUUM ANALYZE")
    if made.returncode:
        raise SystemExit(f"loading port {port}: {made.stderr}")
    return time.monotonic() - started


def ask(port, number):
    started = time.monotonic()
    answer = psql(port, "-c", f"SET statement_timeout = '{MOST_SECONDS}s'", "-f", str(QUERIES / f"q{number}.sql"))
    return time.monotonic() - started, answer.stdout if answer.returncode == 0 else None


def measure(ports, runs):
    """Each query's seconds by server, and whether all rows were the same."""
    seconds = {number: {name: [] for name in ports} for number in range(1, 23)}
    same = dict.fromkeys(seconds, True)
    for _ in range(runs):
        for number, times in seconds.items():
            answers = []
            for name, port in ports.items():
                elapsed, rows = ask(port, number)
                print(f"{name}: query {number}, {elapsed:.2f} s", file=sys.stderr, flush=True)
                times[name].append(elapsed)
                answers.append(rows)
            same[number] &= answers[0] is not None and answers.count(answers[0]) == len(answers)
    return seconds, same


def table(seconds, same):
    lines = ["| query | Throng, first | Throng | PostgreSQL, first | PostgreSQL | Throng over PostgreSQL | rows |", "|" + " --- |" * 7]
    sums = [0.0] * 4
    for number, times in seconds.items():
        row = [f(times[name]) for name in ("Throng", "PostgreSQL") for f in (lambda t: t[0], statistics.median)]
        if same[number]:
            sums = [a + b for a, b in zip(sums, row)]
        cells = " | ".join(f"{value:.2f}" for value in row)
        lines.append(f"| {number} | {cells} | {row[1] / row[3]:.2f} | {'same' if same[number] else 'DIFFERENT'} |")
    cells = " | ".join(f"{value:.2f}" for value in sums)
    lines.append(f"| sum | {cells} | {sums[1] / sums[3]:.2f} | first runs {sums[0] / sums[2]:.2f} |")
    return "\n".join(lines)


def page(arguments, version, loaded, seconds, same):
    size = sum(os.path.getsize(f"{arguments.data}/{table}.csv") for table in TABLES) / 1e9
    took = ", ".join(f"{name} {elapsed:.0f} s" for name, elapsed in loaded.items())
    return f"""# TPC-H's queries

Made by `tests/bench/tpch.py`: no number here is typed by hand.

- `tests/bench/tpch.py --throng target/release/throng --pgbin DIR-OF-POSTGRES --data DIR --runs {arguments.runs} --memory {arguments.memory}`
- Throng and PostgreSQL {version}, {os.cpu_count()} cores, {size:.2g} GB of text, measured on {datetime.date.today().isoformat()}.
- Seconds of the first run of a query, and the median of {arguments.runs}; the servers take turns, each with a pool of {arguments.memory} and its own defaults beside it.
- Primary keys and the columns of foreign keys are indexed. Loading, indexes and VACUUM ANALYZE took: {took}.

{table(seconds, same)}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--throng", required=True)
    parser.add_argument("--pgbin", default=os.environ.get("PGBIN"), required="PGBIN" not in os.environ)
    parser.add_argument("--pguser")
    parser.add_argument("--data", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", default="2GB")
    arguments = parser.parse_args()
    compare.POOL = arguments.memory
    ports = {"Throng": 5611, "PostgreSQL": 5612}
    with tempfile.TemporaryDirectory(prefix="tpch-") as directory:
        os.chmod(directory, 0o755)
        postgres = os.path.join(directory, "postgres")
        os.mkdir(postgres)
        servers = [
            compare.start_throng(arguments.throng, os.path.join(directory, "throng"), ports["Throng"]),
            compare.start_postgres(arguments.pgbin, postgres, ports["PostgreSQL"], arguments.pguser),
        ]
        try:
            loaded = {name: load(port, os.path.abspath(arguments.data)) for name, port in ports.items()}
            version = psql(ports["PostgreSQL"], "-c", "show server_version").stdout.strip()
            seconds, same = measure(ports, arguments.runs)
        finally:
            for server in servers:
                server.terminate()
                server.wait()
    print(page(arguments, version, loaded, seconds, same))


if __name__ == "__main__":
    main()
