#!/usr/bin/env python3
"""GIN indexes of servers side by side: building, inserting, searching; prints a markdown table.

    inverted.py --server throng="port=5432 user=postgres" --server postgresql="port=5499 user=postgres" [--rows 1000000]

The servers run already, and a database is made and dropped in each. A search is measured as the median of several runs,
the servers in turn, and all must count the same rows. Measure release builds, with the same pool and durability.
"""

import argparse
import statistics
import subprocess
import time

DATABASE = "bench_inverted"

# Ten common tags, a thousand rarer ones, one of its own; a document with a few members.
FILL = """
create table item (id int, tags int[], doc jsonb);
insert into item
select i, array[i % 10, 100 + i * 7 % 1000, 10000 + i],
       jsonb_build_object('kind', i % 20, 'owner', 'u' || i * 13 % 5000, 'size', jsonb_build_object('w', i % 100, 'h', i % 7))
from generate_series(1, {rows}) i;
"""
INDEXES = {
    "tags": "create index item_tags on item using gin (tags)",
    "doc": "create index item_doc on item using gin (doc)",
    "doc, ways": "create index item_ways on item using gin (doc jsonb_path_ops)",
}
INSERTS = (
    "insert into item select i, array[i % 10, 100 + i * 7 % 1000, 10000 + i], jsonb_build_object('kind', i % 20) "
    "from generate_series({rows} + 1, {rows} + {rows} / 20) i"
)
SEARCHES = {
    "a rare tag": "tags @> '{10077}'",
    "a tag in a thousand": "tags @> '{123}'",
    "a tag in ten": "tags @> '{3}'",
    "a common and a rare tag": "tags @> '{3,123}'",
    "two common tags": "tags && '{3,4}'",
    "members": """doc @> '{"kind": 3, "owner": "u39"}'""",
    "members, deeper": """doc @> '{"size": {"w": 3, "h": 3}}'""",
    "a path": "doc @? '$.size ? (@.w == 42 && @.h == 1)'",
    "either index": """tags @> '{123}' or doc @> '{"owner": "u39"}'""",
}


def psql(server, sql, database=DATABASE):
    command = ["psql", f"host=127.0.0.1 {server} dbname={database}", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql]
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout.strip()


def timed(server, sql):
    """Milliseconds, the session's start left out: EXPLAIN's own count."""
    plan = psql(server, f"explain (analyze, timing off, costs off) {sql}")
    for line in plan.splitlines():
        if line.strip().startswith("Execution Time:"):
            return float(line.split(":")[1].split()[0])
    raise ValueError(plan)


def clocked(server, sql):
    start = time.monotonic()
    psql(server, sql)
    return (time.monotonic() - start) * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", action="append", required=True, metavar="NAME=CONNINFO")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    servers = dict(given.split("=", 1) for given in options.server)
    table = {}
    for name, server in servers.items():
        psql(server, f"drop database if exists {DATABASE}", "postgres")
        psql(server, f"create database {DATABASE}", "postgres")
        for statement in FILL.format(rows=options.rows).split(";"):
            psql(server, statement)
        psql(server, "vacuum analyze item")
        for index, sql in INDEXES.items():
            table.setdefault(f"build {index}, ms", {})[name] = clocked(server, sql)
        for index, relation in zip(INDEXES, ("item_tags", "item_doc", "item_ways")):
            size = int(psql(server, f"select pg_relation_size('{relation}')"))
            table.setdefault(f"size {index}, MB", {})[name] = size / 1e6
    for search, condition in SEARCHES.items():
        sql = f"select count(*) from item where {condition}"
        counts = {name: psql(server, sql) for name, server in servers.items()}
        assert len(set(counts.values())) == 1, (search, counts)
        runs = {name: [] for name in servers}
        for _ in range(options.rounds):
            for name, server in servers.items():
                runs[name].append(timed(server, sql))
        label = f"{search} ({next(iter(counts.values()))} rows), ms"
        table[label] = {name: statistics.median(times) for name, times in runs.items()}
    for name, server in servers.items():
        took = clocked(server, INSERTS.format(rows=options.rows))
        table.setdefault(f"insert {options.rows // 20} rows, ms", {})[name] = took
        psql(server, f"drop database {DATABASE}", "postgres")
    print("| | " + " | ".join(servers) + " |")
    print("| --- |" + " ---: |" * len(servers))
    for label, row in table.items():
        print(f"| {label} | " + " | ".join(f"{row[name]:,.1f}" for name in servers) + " |")


if __name__ == "__main__":
    main()
