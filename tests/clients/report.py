"""What a program of a driver prints: one line per check, then "end" (a program without one broke off)."""

import inspect
import re
import sys
import time
import traceback

SECONDS = 60  # a check that hangs is a finding too


class Report:
    """Collects checks by decorator and runs them; `ok NAME` or `no NAME: WHY`, tab-separated, on standard output."""

    def __init__(self):
        self.checks = []

    def __call__(self, name):
        def keep(function):
            self.checks.append((name, function))
            return function
        return keep

    def run(self, run_async=None):
        wanted = sys.argv[1:]
        for name, function in self.checks:
            if wanted and not any(word in name for word in wanted):
                continue
            began = time.monotonic()
            try:
                if inspect.iscoroutinefunction(function):
                    run_async(function())
                else:
                    function()
                print(f"ok\t{name}\t{time.monotonic() - began:.2f}", flush=True)
            except Exception as e:
                why = re.sub(r"\s+", " ", f"{type(e).__name__}: {e}")[:600]
                print(f"no\t{name}\t{why}", flush=True)
                traceback.print_exc()
        print("end", flush=True)


def same(got, wanted):
    assert got == wanted, f"got {got!r}, wanted {wanted!r}"
