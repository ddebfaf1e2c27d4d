"""Minimal cases (`== name`, then SQL) run in a database of their own on two servers, and what differs.

    cases.py [--only TEXT] HOST:PORT HOST:PORT FILE...

The second server is PostgreSQL. A file that ends in .md is a table whose second column holds the SQL in backticks.
psql's output counts: rows, notices, SQLSTATEs and messages.
"""

import argparse
import difflib
import pathlib
import re
import subprocess

SCRIPT = "\\set VERBOSITY verbose\n\\set SHOW_CONTEXT never\n\\pset format unaligned\n"
BESIDE = re.compile(r"^(LOCATION: |LINE \d+: |\s*\^$)")


def cases_of(file):
    text = file.read_text()
    if file.suffix == ".md":
        rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| d")]
        found = [(row[0].strip("| "), re.sub(r"\\\|", "|", code)) for row in rows
                 for code in re.findall(r"`([^`]* [^`]*)`", row[1])]
    else:
        found = [tuple(block.split("\n", 1)) for block in text.split("== ")[1:]]
    return [(f"{file.stem}: {name.strip()}", sql.strip()) for name, sql in found]


def psql(server, database, script, echo="-q"):
    host, port = server.rsplit(":", 1)
    done = subprocess.run(["psql", "-X", echo, "-h", host, "-p", port, "-U", "postgres", "-d", database], input=script,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
    return done.stdout


def answer(server, sql, database):
    psql(server, "postgres", f"drop database if exists {database} with (force);\ncreate database {database};\n")
    try:
        told = psql(server, database, f"{SCRIPT}{sql}\n;\n", "-a").splitlines()
        return [line.removeprefix("psql:<stdin>:") for line in told if not BESIDE.match(line)]
    except subprocess.TimeoutExpired:
        return ["no answer in a minute"]
    finally:
        psql(server, "postgres", f"drop database if exists {database} with (force);\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--database", default="cases")
    parser.add_argument("ours")
    parser.add_argument("oracle")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    total = differ = 0
    for file in args.files:
        for name, sql in cases_of(file):
            if args.only not in name:
                continue
            total += 1
            ours, right = (answer(server, sql, args.database) for server in (args.ours, args.oracle))
            if ours != right:
                differ += 1
                print(f"== {name}\n{sql[:1500]}")
                print("\n".join(f"  {line}" for line in difflib.unified_diff(right, ours, lineterm="", n=0)
                                if not line.startswith(("---", "+++", "@@"))), flush=True)
    print(f"{total} cases, {differ} differ")


if __name__ == "__main__":
    main()
