#!/usr/bin/env python3
"""A page of docs/benchmarks, made from runs of `throng bench --json` on Throng, PostgreSQL and MariaDB side by side.

    benchmarks.py measure --throng target/release/throng --pgbin DIR-OF-POSTGRES --out DIR [PIECE ...]
    benchmarks.py page --out DIR > docs/benchmarks/MACHINE.md

`measure` starts the servers anew for each piece, on temporary directories with the same pool and the same durability
(fsync on, full page images or a doublewrite buffer on), and leaves DIR/PIECE.json; a piece takes up to six minutes, and
without a name all are measured. `page` writes the page from what lies in DIR. No number on it is typed by hand.
PostgreSQL does not run as root: pass --pguser NAME, and MariaDB runs as that user too. MariaDB is found by --mariadbd or
in PATH, and left out where it is not; it takes part in the pieces of `select` and `tpcc`. Clients come by Unix-domain
sockets, as pgbench does on the same machine unless it is told otherwise; with --tcp by TCP.
"""

import argparse
import contextlib
import datetime
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from compare import memory_of_our_own, run, start_mariadb, start_postgres, start_throng

# The workloads that are written for MariaDB too.
SPOKEN_BY_MARIADB = {"select", "tpcc"}

# The arguments of `throng bench`, what the servers are told beside the pool, and what a reader should know. A piece of which one transaction takes
# seconds has "longer" turns, so many times as long.
PIECES = {
    "select": {
        "title": "Point reads, simple protocol",
        "bench": ["select", "--clients", "1,16,100,400", "--limit"],
    },
    "select-crowd": {
        "title": "Point reads of a crowd, simple protocol",
        "bench": ["select", "--clients", "16,1000,4000", "--limit"],
        # The others are not asked: theirs is a process or a thread a connection.
        "alone": True,
    },
    "select-prepared": {
        "title": "Point reads, prepared",
        "bench": ["select", "--mode", "prepared", "--clients", "16,100", "--limit"],
    },
    "tpcb": {
        "title": "TPC-B-like, prepared",
        "bench": ["tpcb", "--mode", "prepared", "--scale", "20", "--clients", "1,4,16,100,400"],
    },
    "tpcb-async": {
        "title": "TPC-B-like, prepared, `synchronous_commit = off`",
        "bench": ["tpcb", "--mode", "prepared", "--scale", "20", "--clients", "100"],
        "settings": {"synchronous_commit": "off"},
    },
    "tpcc": {
        "title": "TPC-C, 10 warehouses, no think time",
        "bench": ["tpcc", "--scale", "10", "--mode", "prepared", "--clients", "64"],
    },
    "copy": {
        "title": "COPYs of 1,000 rows into one table with a primary key",
        "bench": ["copy", "--clients", "1,16,64"],
    },
    "copy-crowd": {
        "title": "64 COPYs of 100 MB in total into one table with a primary key",
        "bench": ["copy", "--scale", "20700", "--clients", "64"],
        "longer": 4,
    },
    "copy-large": {
        "title": "One COPY of 100 MB into a table with a primary key",
        "bench": ["copy", "--scale", "1370000", "--clients", "1"],
        "longer": 4,
    },
    "connect": {
        "title": "Connect, one query, close",
        "bench": ["connect", "--clients", "16"],
    },
}


@contextlib.contextmanager
def scratch_directory():
    """Of a name that can be shown; sockets lie there, so whoever runs a server writes there."""
    path = os.path.join(tempfile.gettempdir(), "throng-benchmarks")
    os.mkdir(path)
    try:
        os.chmod(path, 0o1777)
        yield path
    finally:
        shutil.rmtree(path)


def measure(options, name):
    piece = PIECES[name]
    settings = piece.get("settings", {})
    servers, targets = {}, {}
    with scratch_directory() as scratch:

        def directory(server):
            path = os.path.join(scratch, server)
            os.mkdir(path)
            return path

        def listens():
            return {} if options.tcp else {"unix_socket_directories": scratch}

        def url():
            where = f"//postgres@127.0.0.1:{port}/postgres" if options.tcp else f"///postgres?host={scratch}&port={port}&user=postgres"
            return f"postgres:{where}"

        try:
            port = options.port
            connections = 5000 if piece.get("alone") else 500
            more = listens() | settings
            servers["Throng"] = start_throng(options.throng, directory("throng"), port, max_connections=connections, **more)
            targets["Throng"] = url()
            if not piece.get("alone"):
                port += 1
                servers["PostgreSQL"] = start_postgres(options.pgbin, directory("postgres"), port, options.pguser, **more)
                targets["PostgreSQL"] = url()
            if options.mariadbd and piece["bench"][0] in SPOKEN_BY_MARIADB and not piece.get("alone"):
                port += 1
                home = directory("mariadb")
                servers["MariaDB"] = start_mariadb(options.mariadbd, home, port, options.pguser)
                place = f"127.0.0.1:{port}" if options.tcp else f"{home}/socket".replace("/", "%2F")
                targets["MariaDB"] = f"mysql://root@{place}/test"
            seconds = options.seconds * piece.get("longer", 1)
            command = ["throng", "bench", *piece["bench"], "--rounds", str(options.rounds), "--seconds", f"{seconds:g}"]
            for url in targets.values():
                command += ["--target", url]
            done = subprocess.run([options.throng, *command[1:], "--json"], text=True, stdout=subprocess.PIPE, check=False)
        finally:
            for server in servers.values():
                server.terminate()
            for server in servers.values():
                server.wait()
    if not done.stdout:
        raise SystemExit(f"{name}: the bench failed")
    measured = {
        "command": shlex.join(command),
        "way": "TCP" if options.tcp else "Unix-domain sockets",
        "servers": list(targets),
        "day": datetime.date.today().isoformat(),
        "found": json.loads(done.stdout),
    }
    with open(os.path.join(options.out, f"{name}.json"), "w", encoding="utf-8") as file:
        json.dump(measured, file, indent=1)


def spread(of):
    return f"{number(of['median'])} ({number(of['least'])} to {number(of['most'])})"


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def duration(nanos):
    if nanos < 1e6:
        return f"{nanos / 1e3:.3g} µs"
    return f"{nanos / 1e6:.3g} ms" if nanos < 1e9 else f"{nanos / 1e9:.3g} s"


def quantiles(point):
    return f"{duration(point['latency']['p50'])}, {duration(point['latency']['p99'])}"


def table(names, found):
    servers, answerer = found["targets"][: len(names)], found["targets"][len(names) :]
    throng = servers[0]
    tpmc = throng["points"][0]["tpmc"] is not None
    unit = "tpmC" if tpmc else "a second"
    header = ["clients", *(f"{name}, {unit}" for name in names), *(f"Throng over {name}" for name in names[1:])]
    header += ["constant answers", "Throng's share of them", "p50, p99 of constant answers"] if answerer else []
    header += [f"p50, p99 of {name}" for name in names] + [f"slowest client of {name}" for name in names]
    lines = [header, ["---"] * len(header)]
    for at, ours in enumerate(throng["points"]):
        points = [target["points"][at] for target in servers]
        assert all(p["clients"] == ours["clients"] for p in points)
        done = [p["tpmc"] if tpmc else p["throughput"] for p in points]
        cells = [str(ours["clients"]), *map(spread, done)]
        cells += [f"{done[0]['median'] / other['median']:.2f}" for other in done[1:]]
        if answerer:
            most = answerer[0]["points"][at]
            cells += [spread(most["throughput"]), f"{done[0]['median'] / most['throughput']['median']:.0%}", quantiles(most)]
        cells += [quantiles(p) for p in points]
        cells += [f"{p['fairness']['median']:.0%}" for p in points]
        lines.append(cells)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def servers(measured):
    """Their names; pieces of before MariaDB took part do not say them."""
    return measured.get("servers", ["Throng", "PostgreSQL"])


def section(name, measured):
    found, names = measured["found"], servers(measured)
    lines = [f"## {PIECES[name]['title']}", "", f"`{measured['command']}`", "",
             f"Scale {found['scale']}; medians (least to most) of {found['rounds']} rounds of {found['seconds']:g} s; clients come by "
             f"{measured.get('way', 'TCP')}; measured on {measured['day']}.", "",
             table(names, found), ""]
    for who, target in zip(names, found["targets"]):
        lines.append(f"- {who}: {target['limit']}.")
        settings = [f"{k} = {v}" for k, v in target.get("settings", measured.get("settings", {}).items())]
        lines.append(f"- {who}: {', '.join(settings)}.")
        failed = sum(count for p in target["points"] for count, _ in p["failures"].values())
        repeated = sum(p["retries"] for p in target["points"])
        if failed or repeated:
            lines.append(f"- {who}: {failed:,} transactions failed, {repeated:,} tries were repeated.")
        faults = [f"{c['condition']}: {c['fault']}" for c in target["conditions"] if c["fault"] is not None]
        if target["conditions"]:
            held = f"{len(target['conditions']) - len(faults)} of {len(target['conditions'])} conditions hold"
            lines.append(f"- {who}: {held}{''.join('; VIOLATED: ' + fault for fault in faults)}.")
    return "\n".join(lines) + "\n"


def page(options):
    pieces = {}
    for name in PIECES:
        path = os.path.join(options.out, f"{name}.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                pieces[name] = json.load(file)
    if not pieces:
        raise SystemExit(f"nothing was measured: {options.out} has no piece")
    any_piece = next(iter(pieces.values()))
    machine = any_piece["found"]["machine"]
    versions = {t["version"] for p in pieces.values() for t in p["found"]["targets"] if not t["is_answerer"]}
    days = sorted({p["day"] for p in pieces.values()})
    by_tcp = all(p.get("way", "TCP") == "TCP" for p in pieces.values())
    print(f"# Benchmarks{' by TCP' if by_tcp else ''} on {machine['cores']} cores\n")
    print("Made by `tests/bench/benchmarks.py` from what `throng bench --json` measured; no number here is typed by hand. "
          "`docs/bench.md` tells what the figures are.\n")
    print(f"- Machine: {machine['cores']} cores, {machine['processor']} ({machine['architecture']}), "
          f"Linux {machine['kernel']}; the client is on the same machine and takes its part of these cores.")
    print(f"- Measured on {' and '.join(dict.fromkeys([days[0], days[-1]]))}.")
    for version in sorted(versions):
        print(f"- {version}")
    if not any("MariaDB" in servers(p) for p in pieces.values()):
        print("- MariaDB was not measured this time.")
    missing = [PIECES[name]["title"] for name in PIECES if name not in pieces]
    if missing:
        print(f"- Not measured this time: {'; '.join(missing)}.")
    print("- The servers take turns within each round, and each round begins with another one. Transactions run at READ "
          "COMMITTED on all.\n")
    print("\n".join(section(name, measured) for name, measured in pieces.items()), end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "page"])
    parser.add_argument("pieces", nargs="*", metavar="PIECE", help=f"{', '.join(PIECES)}; all without one")
    parser.add_argument("--out", required=True, help="where the pieces lie")
    parser.add_argument("--throng", default="target/release/throng")
    parser.add_argument("--pgbin", default=os.environ.get("PGBIN"))
    parser.add_argument("--pguser")
    parser.add_argument("--mariadbd", default=shutil.which("mariadbd"))
    parser.add_argument("--tcp", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each turn, but for pieces that need longer ones")
    parser.add_argument("--port", type=int, default=15432, help="the first of three")
    options = parser.parse_intermixed_args()
    unknown = set(options.pieces) - set(PIECES)
    if unknown:
        parser.error(f"no such piece: {', '.join(unknown)}")
    if options.what == "page":
        return page(options)
    if not options.pgbin:
        parser.error("--pgbin, or PGBIN, says where PostgreSQL is")
    os.makedirs(options.out, exist_ok=True)
    print(run([f"{options.pgbin}/postgres", "--version"]).strip(), file=sys.stderr)
    print(run([options.mariadbd, "--version"]).strip() if options.mariadbd else "no MariaDB", file=sys.stderr)
    with memory_of_our_own():
        for name in options.pieces or PIECES:
            measure(options, name)
    return None


if __name__ == "__main__":
    main()
