"""Runs every check of this directory, each group and each driver's program on a server of its own, and counts."""

import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import checks_described
import checks_disk
import checks_driver
import checks_pgbench
import checks_psql
import programs
from server import PostgreSQL, Server

GROUPS = [checks_psql, checks_described, checks_driver, checks_disk, checks_pgbench]
KNOWN = Path(__file__).resolve().parent / "known.txt"


def known_differences():
    """The checks that are known to fail on Throng, and why: lines of "GROUP: CHECK", a tab, the reason."""
    lines = [line.rstrip("\n") for line in KNOWN.read_text(encoding="utf8").splitlines()]
    pairs = [line.split("\t") for line in lines if line and not line.startswith("#")]
    bad = [pair for pair in pairs if len(pair) != 2 or not all(pair)]
    assert not bad, f"{KNOWN.name}: {bad}"
    return dict(pairs)


class Tally:
    """What passed, failed and was skipped, and which known differences are none any more."""

    def __init__(self, known):
        self.known = known
        self.seen = set()
        self.passed, self.differ, self.mended, self.failed, self.skipped = 0, [], [], [], []

    def passes(self, name, seconds, told=""):
        self.seen.add(name)
        if name in self.known:
            self.mended.append(name)
        self.passed += 1
        print(f"ok      {name:<64} {seconds:6.1f} s  {told}", flush=True)

    def fails(self, name, why, expected=True):
        self.seen.add(name)
        if expected and name in self.known:
            self.differ.append(name)
            print(f"known   {name:<64}           {self.known[name]}", flush=True)
            return
        self.failed.append(name)
        print(f"FAILED  {name}\n        " + why.replace("\n", "\n        "), flush=True)

    def skips(self, name, why):
        self.skipped.append(name)
        print(f"SKIPPED {name}: {why}", flush=True)

    def close(self, whole):
        """The closing lines; the exit status."""
        if whole:
            groups = {name.partition(":")[0] for name in self.seen}
            for name in self.known:
                if name not in self.seen and name.partition(":")[0] in groups:
                    self.fails(name, f"on {KNOWN.name}, but there is no such check", expected=False)
        print(f"known differences: {len(self.differ)}")
        for name in self.mended:
            print(f"MENDED: {name}: take it off {KNOWN.name}")
        for name in self.skipped:
            print(f"SKIPPED: {name}")
        for name in self.failed:
            print(f"failed: {name}")
        print(f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped")
        return 1 if self.failed or not self.passed else 0


def run_group(group, tally, wanted):
    checks = [(name, check) for name, check in group.checks() if not wanted or any(word in name for word in wanted)]
    if not checks:
        return
    with Server() as server:
        for name, check in checks:
            began = time.monotonic()
            try:
                told = check(server) or ""
                tally.passes(name, time.monotonic() - began, told)
            except Exception as e:  # whatever a client raises is a failure of the check
                tally.fails(name, f"{type(e).__name__}: {e}")
                if name not in tally.known and not isinstance(e, AssertionError):
                    traceback.print_exc()
                server.revive()
        for problem in server.close():
            tally.fails(f"{group.__name__}: the server's end", problem)


def run_program(program, tally, wanted, server):
    """All checks of a driver's program that `wanted` chooses, on this server."""
    try:
        program.prepare()
    except AssertionError as e:
        # A registry that does not answer says nothing of the server.
        tally.skips(program.name, f"not to be installed: {e}")
        return
    for check, seconds, why in program.outcomes(server, wanted):
        name = f"{program.name}: {check}"
        if why is None:
            tally.passes(name, float(seconds))
        else:
            tally.fails(name, why)


def run_programs(tally, wanted, directory):
    """Every program, on servers that ask for a password and offer TLS."""
    pair = programs.certificate(directory)
    options = ["--memory", "128MB"]
    if pair:
        options += ["--set", f"ssl_key_file={pair[0]}", "--set", f"ssl_cert_file={pair[1]}"]
        os.environ["PGSSLROOTCERT"] = pair[1]
    else:
        tally.skips("TLS", "no openssl to make a certificate with")
    for program in programs.PROGRAMS:
        missing = program.missing()
        if missing:
            tally.skips(program.name, f"{', '.join(missing)} not on the PATH")
            continue
        with Server(*options) as server:
            server.sql(f"alter role postgres password '{programs.PASSWORD}'")
            run_program(program, tally, wanted, server)
            for problem in server.close():
                tally.fails(f"{program.name}: the server's end", problem)


def main(words):
    # A shell that runs this in the background has it ignore ^C. Clients would inherit that, and checks send them ^C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if words[:1] == ["--postgres"]:
        # Against PostgreSQL, where nothing may differ; what psql and pg_dump say there is what is expected henceforth.
        tally = Tally({})
        if not words[1:]:
            checks_described.accept(PostgreSQL())
        for program in programs.PROGRAMS:
            run_program(program, tally, words[1:], PostgreSQL())
        return tally.close(whole=False)
    tally = Tally(known_differences())
    for group in GROUPS:
        run_group(group, tally, words)
    with tempfile.TemporaryDirectory(prefix="throng-certificate-") as directory:
        run_programs(tally, words, directory)
    return tally.close(whole=not words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
