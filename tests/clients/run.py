"""Runs every check of this directory, each group on a server of its own, and counts."""

import sys
import time
import traceback

import checks_disk
import checks_driver
import checks_pgbench
import checks_psql
from server import Server

GROUPS = [checks_psql, checks_driver, checks_disk, checks_pgbench]


def main(wanted):
    passed, failed = 0, []
    for group in GROUPS:
        checks = [
            (name, check)
            for name, check in group.checks()
            if not wanted or any(word in name for word in wanted)
        ]
        if not checks:
            continue
        with Server() as server:
            for name, check in checks:
                began = time.monotonic()
                try:
                    told = check(server) or ""
                    passed += 1
                    print(f"ok      {name:<46} {time.monotonic() - began:6.1f} s  {told}", flush=True)
                except Exception as e:  # whatever a client raises is a failure of the check
                    failed.append(name)
                    print(f"FAILED  {name}", flush=True)
                    kind = type(e).__name__
                    print("        " + f"{kind}: {e}".replace("\n", "\n        "), flush=True)
                    if not isinstance(e, AssertionError):
                        traceback.print_exc()
                    server.revive()
            for problem in server.close():
                failed.append(f"{group.__name__}: {problem}")
                print(f"FAILED  {group.__name__}: {problem}", flush=True)
    for name in failed:
        print(f"failed: {name}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
