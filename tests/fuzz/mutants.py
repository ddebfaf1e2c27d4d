"""Mutants: how many planted faults do the tests find?

`mutants.py --tree CLONE [--count N] [--seed S] [--rooms txn,access,write] [--out FILE]`

One small fault after the other is planted in the sources of a clone (never in the tree that somebody works in): a comparison turned, a
condition negated, a call left out, a number off by one. The tests of its room run, cheapest first, until one fails. A fault
that does not compile is not counted; one that no test finds is told with its place and its text. `DEBUG` builds find more than
releases, as their assertions are part of the tests.

The operators are those of Offutt et al., "An experimental determination of sufficient mutant operators" (ACM TOSEM 5:2, 1996), as far as
they can be planted in text: relational and logical operator replacement, arithmetic on constants, and statement deletion.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

SERVER = ["cargo", "test", "-q", "-p", "throng-server", "--test", "it"]
ROOMS = {
    "txn": (
        "crates/txn/src",
        ["cargo", "check", "-q", "-p", "throng-txn"],
        [["cargo", "test", "-q", "-p", "throng-txn"], SERVER + ["--", "isolation", "crash", "waits"]],
    ),
    "access": (
        "crates/access/src",
        ["cargo", "check", "-q", "-p", "throng-access"],
        [["cargo", "test", "-q", "-p", "throng-access"], SERVER + ["--", "redo", "crash", "sql_scripts"]],
    ),
    "write": (
        "crates/exec/src/write",
        ["cargo", "check", "-q", "-p", "throng-exec"],
        [SERVER + ["--", "sql_scripts", "isolation"], SERVER + ["--", "redo", "crash"]],
    ),
}
# What takes longer stands still.
LIMIT = 600

REPLACED = [
    (r" == ", [" != "]),
    (r" != ", [" == "]),
    (r" <= ", [" < ", " > "]),
    (r" >= ", [" > ", " < "]),
    (r" < ", [" <= ", " >= "]),
    (r" > ", [" >= ", " <= "]),
    (r" && ", [" || "]),
    (r" \|\| ", [" && "]),
    (r" \+ 1\b", ["", " + 2"]),
    (r" - 1\b", ["", " - 2"]),
    (r"\btrue\b", ["false"]),
    (r"\bfalse\b", ["true"]),
    (r"\bif !", ["if "]),
    (r"\bcontinue;", ["break;"]),
    (r"\bbreak;", ["continue;"]),
    (r"\.max\(", [".min("]),
    (r"\.min\(", [".max("]),
    (r"\.is_some\(\)", [".is_none()"]),
    (r"\.is_none\(\)", [".is_some()"]),
    (r"\.any\(", [".all("]),
    (r"\.all\(", [".any("]),
]
CALL = re.compile(r"^\s+[a-z_][\w.]*(::[\w]+)*\(.*\)(\.await)?\??;$")
CONDITION = re.compile(r"^(\s*)(\} else )?if ((?!let\b)[^!].*) \{$")
LEFT_ALONE = re.compile(r"^\s*(//|#\[|use |pub use |const |static |debug_assert|assert|fn |pub fn |type |let _)|fail_point|stop_point|trace!|debug!|warn!")


def sources(folder):
    for base, _, names in os.walk(folder):
        if "tests" in base.split(os.sep):
            continue
        for name in sorted(names):
            if name.endswith(".rs") and name not in ("tests.rs", "schedules.rs"):
                yield os.path.join(base, name)


def faults(path):
    """Every fault that could be planted in a file: (line number, its text now, its text then)."""
    with open(path) as file:
        lines = file.read().split("\n")
    for number, line in enumerate(lines):
        if line.startswith("#[cfg(test)]") or line.startswith("#[cfg(all(test"):
            return
        if LEFT_ALONE.match(line) or "//" in line or '"' in line:
            continue
        for pattern, others in REPLACED:
            for found in re.finditer(pattern, line):
                # A type's bounds are no comparison.
                if pattern in (" < ", " > ") and "->" in line:
                    continue
                for other in others:
                    yield number, line, line[: found.start()] + other + line[found.end() :]
        if CALL.match(line):
            yield number, line, re.match(r"^\s*", line).group() + "();"
        if condition := CONDITION.match(line):
            space, otherwise, asked = condition.groups()
            yield number, line, f"{space}{otherwise or ''}if !({asked}) {{"


def run(command, tree):
    """The exit status of a command, -1 when it stands still."""
    env = dict(os.environ, RUST_BACKTRACE="0")
    child = subprocess.Popen(
        command, cwd=tree, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return child.wait(LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return -1


def judge(tree, check, tests):
    """'none' for what does not compile, the number of the test command that found it, or 'alive'."""
    if run(check, tree) != 0:
        return "none"
    for at, command in enumerate(tests):
        if run(command, tree) != 0:
            return at
    return "alive"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--tree", required=True)
    options.add_argument("--count", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rooms", default="txn,access,write")
    options.add_argument("--out", default="mutants.jsonl")
    options.add_argument("--seconds", type=int, default=10**9)
    options = options.parse_args()
    lot = random.Random(options.seed)
    rooms = options.rooms.split(",")
    candidates = {
        room: [
            (path, *fault)
            for path in sources(os.path.join(options.tree, ROOMS[room][0]))
            for fault in faults(path)
        ]
        for room in rooms
    }
    for room in rooms:
        for command in ROOMS[room][2]:
            if run(command, options.tree) != 0:
                sys.exit(f"the tests of {room} fail without a fault: {' '.join(command)}")
    found, alive, started = 0, [], time.time()
    with open(options.out, "a") as out:
        while found + len(alive) < options.count and time.time() - started < options.seconds:
            room = rooms[(found + len(alive)) % len(rooms)]
            path, number, before, after = lot.choice(candidates[room])
            with open(path) as file:
                text = file.read()
            lines = text.split("\n")
            assert lines[number] == before
            lines[number] = after
            try:
                with open(path, "w") as file:
                    file.write("\n".join(lines))
                verdict = judge(options.tree, *ROOMS[room][1:])
            finally:
                with open(path, "w") as file:
                    file.write(text)
            if verdict == "none":
                continue
            place = f"{os.path.relpath(path, options.tree)}:{number + 1}"
            told = {"place": place, "before": before.strip(), "after": after.strip(), "verdict": verdict}
            out.write(json.dumps(told) + "\n")
            out.flush()
            if verdict == "alive":
                alive.append(told)
                print(f"ALIVE {place}\n    {before.strip()}\n    {after.strip()}", flush=True)
            else:
                found += 1
    planted = found + len(alive)
    print(f"planted {planted}, found {found}, alive {len(alive)} (seed {options.seed}, {time.time() - started:.0f} s)")


if __name__ == "__main__":
    main()
