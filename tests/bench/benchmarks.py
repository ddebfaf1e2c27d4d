#!/usr/bin/env python3
"""docs/benchmarks.md, made from runs of `throng bench --json` on Throng and PostgreSQL side by side.

    benchmarks.py measure --throng target/release/throng --pgbin DIR-OF-POSTGRES --out DIR [PIECE ...]
    benchmarks.py page --out DIR > docs/benchmarks.md

`measure` starts both servers anew for each piece, on temporary directories with the same pool and the same durability
(fsync on, full page images on), and leaves DIR/PIECE.json; a piece takes up to four minutes, and without a name all are
measured. `page` writes the page from what lies in DIR. No number on it is typed by hand. PostgreSQL does not run as root: pass --pguser NAME.
"""

import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys
import tempfile

from compare import POOL, run, start_postgres, start_throng

# The arguments of `throng bench`, what the servers are told beside the pool, and what a reader should know.
PIECES = {
    "select": {
        "title": "Point reads, simple protocol",
        "bench": ["select", "--clients", "1,16,100,400", "--limit"],
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
    "copy-large": {
        "title": "COPYs of 100,000 rows into one table with a primary key",
        "bench": ["copy", "--scale", "100000", "--clients", "1"],
    },
    "connect": {
        "title": "Connect, one query, close",
        "bench": ["connect", "--clients", "16"],
    },
}


def measure(options, name):
    piece = PIECES[name]
    settings = piece.get("settings", {})
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        os.chmod(theirs, 0o755)
        ports = [options.port, options.port + 1]
        servers = []
        try:
            servers.append(start_throng(options.throng, ours, ports[0], max_connections=500, **settings))
            servers.append(start_postgres(options.pgbin, theirs, ports[1], options.pguser, **settings))
            command = ["throng", "bench", *piece["bench"], "--rounds", str(options.rounds), "--seconds", f"{options.seconds:g}"]
            for port in ports:
                command += ["--target", f"postgres://postgres@127.0.0.1:{port}/postgres"]
            done = subprocess.run([options.throng, *command[1:], "--json"], text=True, stdout=subprocess.PIPE, check=False)
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                server.wait()
    if not done.stdout:
        raise SystemExit(f"{name}: the bench failed")
    measured = {
        "command": shlex.join(command),
        "settings": {"pool": POOL, "fsync": "on"} | settings,
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


def table(found):
    throng, postgres, *answerer = found["targets"]
    tpmc = throng["points"][0]["tpmc"] is not None
    unit = "tpmC" if tpmc else "a second"
    header = ["clients", f"Throng, {unit}", f"PostgreSQL, {unit}", "ratio"]
    header += ["constant answers", "Throng's share of them"] if answerer else []
    header += ["p50, p99 of Throng", "of PostgreSQL", "slowest client of Throng", "of PostgreSQL"]
    lines = [header, ["---"] * len(header)]
    for at, (one, two) in enumerate(zip(throng["points"], postgres["points"], strict=True)):
        ours, theirs = (p["tpmc"] if tpmc else p["throughput"] for p in (one, two))
        cells = [str(one["clients"]), spread(ours), spread(theirs), f"{ours['median'] / theirs['median']:.2f}"]
        if answerer:
            most = answerer[0]["points"][at]["throughput"]
            cells += [spread(most), f"{ours['median'] / most['median']:.0%}"]
        cells += [f"{duration(p['latency']['p50'])}, {duration(p['latency']['p99'])}" for p in (one, two)]
        cells += [f"{p['fairness']['median']:.0%}" for p in (one, two)]
        lines.append(cells)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def section(name, measured):
    found = measured["found"]
    lines = [f"## {PIECES[name]['title']}", "", f"`{measured['command']}`", "",
             f"Scale {found['scale']}; medians (least to most) of {found['rounds']} rounds of {found['seconds']:g} s. "
             f"Settings of both: {', '.join(f'{k} = {v}' for k, v in measured['settings'].items())}.", "", table(found), ""]
    for who, target in zip(["Throng", "PostgreSQL"], found["targets"]):
        lines.append(f"- {who}: {target['limit']}.")
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
    print("# Benchmarks\n")
    print("Made by `tests/bench/benchmarks.py` from what `throng bench --json` measured; no number here is typed by hand. "
          "`docs/bench.md` tells what the figures are.\n")
    print(f"- Machine: {machine['cores']} cores, {machine['processor']} ({machine['architecture']}), "
          f"Linux {machine['kernel']}; the client is on the same machine and takes its part of these cores.")
    print(f"- Measured on {' and '.join(dict.fromkeys([days[0], days[-1]]))}.")
    for version in sorted(versions):
        print(f"- {version}")
    print("- MariaDB was not measured: `throng bench` does not speak its protocol.")
    missing = [PIECES[name]["title"] for name in PIECES if name not in pieces]
    if missing:
        print(f"- Not measured this time: {'; '.join(missing)}.")
    print("- The two servers take turns within each round, and each round begins with the other one.\n")
    print("\n".join(section(name, measured) for name, measured in pieces.items()), end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "page"])
    parser.add_argument("pieces", nargs="*", metavar="PIECE", help=f"{', '.join(PIECES)}; all without one")
    parser.add_argument("--out", required=True, help="where the pieces lie")
    parser.add_argument("--throng", default="target/release/throng")
    parser.add_argument("--pgbin", default=os.environ.get("PGBIN"))
    parser.add_argument("--pguser")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each turn")
    parser.add_argument("--port", type=int, default=15432, help="the first of two")
    options = parser.parse_args()
    unknown = set(options.pieces) - set(PIECES)
    if unknown:
        parser.error(f"no such piece: {', '.join(unknown)}")
    if options.what == "page":
        return page(options)
    if not options.pgbin:
        parser.error("--pgbin, or PGBIN, says where PostgreSQL is")
    os.makedirs(options.out, exist_ok=True)
    print(run([f"{options.pgbin}/postgres", "--version"]).strip(), file=sys.stderr)
    for name in options.pieces or PIECES:
        measure(options, name)
    return None


if __name__ == "__main__":
    main()
