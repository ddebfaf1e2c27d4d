"""PostgreSQL's regression scripts, run through psql as pg_regress runs them, judged statement by statement."""

import glob
import os
import re
import subprocess
import time
from dataclasses import dataclass, field

import script
from target import STATEMENT_LIMIT

FILE_LIMIT = 240
# psql prints nothing for longer than any statement may take: it hangs.
STALL_LIMIT = STATEMENT_LIMIT + 20
INTERNAL = "ERROR:  internal error"
TIMED_OUT = "canceling statement due to statement timeout"
# What later scripts need of earlier ones.
GROUNDWORK = ["test_setup", "create_index"]
LOST = re.compile(r"server closed the connection unexpectedly|connection to server was lost")


@dataclass
class Result:
    name: str
    order: int = 0  # its place in the schedule
    agree: int = 0
    of: int = 0
    whole: bool = False
    seconds: float = 0.0
    hangs: list = field(default_factory=list)  # statements
    lost: list = field(default_factory=list)  # statements after which the connection was gone
    faults: list = field(default_factory=list)  # what the server's log or its end tells
    pairs: list = field(default_factory=list)  # (statement with the expected output, with the actual one)
    fails: list = None  # the numbers of the records that fail, of an sqllogictest file


def lines(path):
    with open(path, encoding="utf8", errors="surrogateescape", newline="\n") as file:
        text = file.read().split("\n")
    return text[:-1] if text and text[-1] == "" else text


def schedule(folder):
    names = []
    for line in lines(os.path.join(folder, "parallel_schedule")):
        if line.startswith("test:"):
            names += line[5:].split()
    return names


def expectations(folder, name):
    """Every output that passes."""
    paths = [os.path.join(folder, "expected", f"{name}.out")]
    paths += sorted(glob.glob(os.path.join(folder, "expected", f"{name}_[0-9].out")))
    return [lines(path) for path in paths if os.path.exists(path)]


class Suite:
    def __init__(self, target, folder, out):
        self.target = target
        self.folder = os.path.abspath(folder)
        self.out = out
        self.begun = target.begun
        for sub in ("results", "diffs"):
            os.makedirs(os.path.join(out, sub), exist_ok=True)
        os.chmod(os.path.join(out, "results"), 0o777)  # the scripts have the server write files there

    def lay_ground(self):
        """A server that had to begin anew has none of the tables that later scripts use."""
        self.begun = self.target.begun
        for name in GROUNDWORK:
            source = lines(os.path.join(self.folder, "sql", f"{name}.sql"))
            self.psql(name, source, os.path.join(self.out, "ground.out"), FILE_LIMIT)

    def run(self, name):
        if self.begun != self.target.begun:
            self.lay_ground()
        source = lines(os.path.join(self.folder, "sql", f"{name}.sql"))
        expected = expectations(self.folder, name)
        result = Result(name)
        began = time.monotonic()
        output = self.drive(result, source, script.cut(source, expected[0]))
        result.seconds = time.monotonic() - began
        result.faults += self.target.look()
        best = None
        for other in expected:
            statements = script.cut(source, other)
            actual = script.locate(statements, output)
            pairs = [pair for pair in zip(statements, actual) if pair[0].text]
            agree = sum(a.output == b.output for a, b in pairs)
            if best is None or (other == output, agree) > best[:2]:
                best = (other == output, agree, pairs)
        result.whole, result.agree, result.pairs = best
        result.of = len(result.pairs)
        self.report(result)
        return result

    def drive(self, result, source, statements):
        """Everything that psql prints. What ends psql before the script's end is noted, and the rest is run by another one."""
        path = os.path.join(self.out, "results", f"{result.name}.out")
        at, output, began = 0, [], time.monotonic()
        while True:
            spent = time.monotonic() - began
            ended = self.psql(result.name, source[at:], path, max(FILE_LIMIT - spent, 10))
            part = lines(path)
            output += part
            if ended == "done" or spent > FILE_LIMIT:
                break
            rest = [s for s in statements if s.line >= at]
            seen = [s for s in script.locate(rest, part) if s.output is not None]
            if not seen:
                break
            (result.lost if ended == "lost" else result.hangs).append(seen[-1].text)
            result.faults += self.target.look()
            at = seen[-1].next
        if len(output) != len(part):
            with open(path, "w", encoding="utf8", errors="surrogateescape", newline="\n") as file:
                file.write("\n".join(output) + "\n")
        return output

    def psql(self, name, source, path, limit):
        """Runs one psql to its end: "done", "lost" (the connection) or "hangs"."""
        target = self.target
        environment = target.environment(
            **target.settings, PGAPPNAME=f"pg_regress/{name}", PG_ABS_SRCDIR=self.folder, PG_ABS_BUILDDIR=self.out,
            PG_LIBDIR=target.tools.library, PG_DLSUFFIX=".so")
        command = [target.tools.psql, "-X", "-a", "-q", "-d", target.database,
                   "-v", "HIDE_TABLEAM=on", "-v", "HIDE_TOAST_COMPRESSION=on"]
        feed = os.path.join(self.out, "input.sql")
        with open(feed, "w", encoding="utf8", errors="surrogateescape", newline="\n") as file:
            file.write("\n".join(source) + "\n")
        with open(feed, "rb") as stdin, open(path, "wb") as stdout:
            psql = subprocess.Popen(command, env=environment, cwd=self.out, stdin=stdin, stdout=stdout,
                                    stderr=subprocess.STDOUT)
            began = grown = time.monotonic()
            size = 0
            while True:
                try:
                    code = psql.wait(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    now = time.monotonic()
                    if os.path.getsize(path) != size:
                        size, grown = os.path.getsize(path), now
                    if now - grown > STALL_LIMIT or now - began > limit:
                        psql.kill()
                        psql.wait()
                        return "hangs"
        if code == 0:
            return "done"
        with open(path, encoding="utf8", errors="replace") as file:
            return "lost" if LOST.search(file.read()[-2000:]) else "done"

    def report(self, result):
        """Every statement that disagrees, in full, for a person."""
        for expected, actual in result.pairs:
            if TIMED_OUT in "\n".join(actual.output or []) and TIMED_OUT not in "\n".join(expected.output):
                result.hangs.append(expected.text)
            result.faults += [f"{line} of {expected.text}" for line in actual.output or [] if line.startswith(INTERNAL)]
        path = os.path.join(self.out, "diffs", f"{result.name}.txt")
        with open(path, "w", encoding="utf8", errors="surrogateescape", newline="\n") as file:
            file.write(f"{result.name}: {result.agree} of {result.of}\n")
            for expected, actual in result.pairs:
                if expected.output == actual.output:
                    continue
                shown = ["(not reached)"] if actual.output is None else actual.output
                file.write("\n".join(["", f"## {result.name}.sql:{expected.line + 1}", *expected.echo, "-- expected",
                                      *expected.output, "-- actual", *shown]) + "\n")
