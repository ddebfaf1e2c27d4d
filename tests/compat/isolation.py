"""PostgreSQL's isolation specs through PostgreSQL's own isolationtester."""

import os
import re
import subprocess
import time

import psycopg

from regress import Result, expectations, lines

SPEC_LIMIT = 90
# A spec whose setup fails leaves what it had made behind, and the next one would stumble over it.
CLEAN = ["drop schema if exists public cascade", "create schema public", "grant usage on schema public to public"]


def schedule(folder):
    return [line[5:].strip() for line in lines(os.path.join(folder, "isolation_schedule")) if line.startswith("test:")]


def permutations(output):
    """The output cut where a permutation of the steps starts."""
    parts = [[]]
    for line in output:
        if line.startswith("starting permutation:"):
            parts.append([])
        parts[-1].append(line)
    return parts[1:]


class Suite:
    def __init__(self, target, folder, out):
        self.target = target
        self.folder = folder
        self.out = out
        os.makedirs(os.path.join(out, "results"), exist_ok=True)

    def run(self, name):
        target = self.target
        path = os.path.join(self.out, "results", f"{name}.out")
        environment = target.environment(**target.settings, PGAPPNAME=f"isolation/{name}", PG_TEST_TIMEOUT_DEFAULT="20")
        result = Result(name)
        began = time.monotonic()
        with open(os.path.join(self.folder, "specs", f"{name}.spec"), "rb") as stdin, open(path, "wb") as stdout:
            try:
                done = subprocess.run([target.tools.isolationtester, f"dbname={target.database}"], env=environment, stdin=stdin,
                                      stdout=stdout, stderr=subprocess.STDOUT, timeout=SPEC_LIMIT, check=False).returncode == 0
            except subprocess.TimeoutExpired:
                done = False
                result.hangs.append(name)
        result.seconds = time.monotonic() - began
        result.faults += target.look()
        if not done:
            self.clean()
        output = lines(path)
        if any(line.startswith("isolationtester: canceling step") for line in output):
            result.hangs.append(name)
        for expected in expectations(self.folder, name):
            wanted = permutations(expected)
            got = permutations(output)
            agree = sum(a == b for a, b in zip(wanted, got))
            if (expected == output, agree) >= (result.whole, result.agree):
                result.whole, result.agree, result.of = expected == output, agree, len(wanted)
        result.pairs = first_difference(expectations(self.folder, name)[0], output)
        return result

    def clean(self):
        for sql in CLEAN:
            try:
                self.target.sql(sql)
            except psycopg.Error:
                pass  # what cannot be granted is not needed


def first_difference(expected, output):
    """Where the output leaves the expected one: a few lines of both."""
    for at, (wanted, got) in enumerate(zip([*expected, None], [*output, None])):
        if wanted != got:
            return [(expected[max(0, at - 2):at + 4], output[max(0, at - 2):at + 4])]
    return []
