"""Runs tests that others wrote against Throng (or a PostgreSQL, to judge the judge) and compares with the baseline."""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import dialect
import differences as differing
import isolation
import record
import regress
import slt
from defects import Ranking
from target import PostgreSQL, Throng
from tools import Tools

FOLDERS = {"regress": "postgresql-18/regress", "isolation": "postgresql-18/isolation", "sqllogictest": "sqllogictest"}
DATABASES = {"regress": "regression", "isolation": "isolation_regression", "sqllogictest": "sqllogictest", "dialect": "dialect"}
SLT_GROUPS = 6
DIFFERENCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/differences.md")


def arguments():
    parser = argparse.ArgumentParser(prog="tests/compat/run.sh", description=__doc__)
    parser.add_argument("corpora", help="the folder with sqllogictest/ and postgresql-18/")
    parser.add_argument("--part", choices=record.PARTS, action="append", help="only this part (may be given again)")
    parser.add_argument("--only", metavar="FILE", action="append", default=[], help="only this file (may be given again)")
    parser.add_argument("--server", metavar="HOST:PORT", help="a PostgreSQL that runs, in place of Throng")
    parser.add_argument("--tools", metavar="DIR", default="", help="bin/ and lib/ of PostgreSQL 18's clients")
    parser.add_argument("--dialect", metavar="DIR", default="", help="a virtual environment with SQLAlchemy, psycopg and pytest")
    parser.add_argument("--out", metavar="DIR", required=True, help="where outputs and differences go")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--record", action="store_true", help="write the results down: baseline.json and docs/compatibility.md")
    return parser.parse_args()


def wanted(part, folder, only):
    if part == "sqllogictest":
        names = slt.files(folder)
    elif part == "dialect":
        names = dialect.files(folder)
    else:
        names = (regress if part == "regress" else isolation).schedule(folder)
    if not only:
        return names
    chosen = [name for name in names if name in only]
    if chosen and part == "regress":
        chosen = [name for name in names if name in only or name in regress.GROUNDWORK]
    return chosen


def work(options, part, folder, names):
    """A task of the pool: the files of one part, in order, on a server of their own."""
    tools = Tools(options.tools)
    if options.server:
        host, port = options.server.rsplit(":", 1)
        target = PostgreSQL(tools, host, int(port))
    else:
        target = Throng(tools)
    out = os.path.join(options.out, part)
    suites = {"regress": regress, "isolation": isolation, "sqllogictest": slt, "dialect": dialect}
    suite = suites[part].Suite(target, folder, out)
    results = []
    try:
        target.prepare(DATABASES[part])
        for order, name in enumerate(names):
            result = suite.run(name)
            result.order = order
            results.append(result)
            told = "whole" if result.whole else ""
            print(f"{part:<13} {result.name:<44} {result.agree:>6} of {result.of:>6} {result.seconds:6.1f} s  {told}", flush=True)
    finally:
        target.close()
    return part, results, target.refused


def tasks(options):
    for part in options.part or record.PARTS:
        folder = options.dialect if part == "dialect" else os.path.join(options.corpora, FOLDERS[part])
        if part == "dialect" and not dialect.files(folder):
            print("SKIPPED dialect: there is no SQLAlchemy", flush=True)
            continue
        if not os.path.isdir(folder):
            print(f"SKIPPED {part}: there is no {folder}", flush=True)
            continue
        missing = Tools(options.tools).missing
        if missing and part in ("regress", "isolation"):
            print(f"SKIPPED {part}: there is no {', no '.join(missing)}", flush=True)
            continue
        names = wanted(part, folder, options.only)
        if part != "sqllogictest" or options.server:
            groups = [names]
        else:
            groups = [names[i::SLT_GROUPS] for i in range(SLT_GROUPS)]
        yield from ((part, folder, group) for group in groups if group)


def main():
    options = arguments()
    began = time.monotonic()
    if not os.path.isdir(options.corpora):
        print(f"SKIPPED all of it: there is no folder {options.corpora}")
        return 0
    with ProcessPoolExecutor(options.jobs) as pool:
        done = [f.result() for f in [pool.submit(work, options, *task) for task in tasks(options)]]
    results, refused = {}, []
    for part, some, without in done:
        results.setdefault(part, []).extend(some)
        refused += [text for text in without if text not in refused]
    for some in results.values():
        some.sort(key=lambda r: r.name)
    problems = judge(options, results, refused)
    print(f"{time.monotonic() - began:.0f} s; outputs and differences are in {options.out}")
    return 1 if problems else 0


def judge(options, results, refused):
    kept = record.REFERENCE if options.server else record.BASELINE
    baseline = record.load(kept)
    ranking = rank(options, results)
    problems = []
    for part, some in results.items():
        agree, of, whole, files = record.totals(record.row(r) for r in some)
        print(f"{part}: {agree} of {of} {record.UNITS[part]} agree ({record.share(agree, of)}), {whole} of {files} files whole, "
              f"{sum(len(r.hangs) for r in some)} hang, {sum(len(r.lost) for r in some)} lost, {sum(len(r.faults) for r in some)} faults")
        problems += record.worse(part, some, baseline)
        if gained := record.better(part, some, baseline):
            print(f"{part}: {gained} more than the baseline: run with --record to keep them")
    for text in refused:
        print(f"refused at the start: {text}")
    if results.get("regress") and (without := differing.unexplained(differing.of_ranking(ranking))):
        print(f"rows that differ without a reason in reasons.txt: {', '.join(without)}")
    for text in problems:
        print(f"FAILED  {text}")
    if options.record:
        record.write(kept, results, refused, options.only)
    return problems


def rank(options, results):
    """What fails and why, for whoever mends it: OUT/defects.md, isolation.md and sqllogictest.md."""
    ranking = Ranking()
    for result in sorted(results.get("regress", []), key=lambda r: r.order):
        ranking.add(result)
    texts = {
        "defects": ranking.markdown() if results.get("regress") else "",
        "differences": differing.markdown(differing.of_ranking(ranking)) if results.get("regress") else "",
        "isolation": "".join(f"## {r.name}: {r.agree} of {r.of}\n{differences(r)}\n" for r in results.get("isolation", [])
                             if not r.whole),
        "sqllogictest": "".join(f"## {r.name}: {r.agree} of {r.of}\n" + "".join(
            f"- {number}: `{sql[:300]}`: {wrong}\n" for number, (sql, wrong) in zip(r.fails, r.pairs))
            for r in results.get("sqllogictest", []) if not r.whole),
    }
    for name, text in texts.items():
        if text:
            with open(os.path.join(options.out, f"{name}.md"), "w", encoding="utf8", errors="surrogateescape") as file:
                file.write(text)
    if options.record and results.get("regress") and not options.only and not options.server:
        with open(DIFFERENCES, "w", encoding="utf8") as file:
            file.write(texts["differences"])
    return ranking


def differences(result):
    return "\n".join("-- expected\n" + "\n".join(wanted) + "\n-- actual\n" + "\n".join(got) for wanted, got in result.pairs)


if __name__ == "__main__":
    sys.exit(main())
