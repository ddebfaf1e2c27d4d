"""The server under test: a child process whose log and memory are watched, or one that runs somewhere."""

import os
import re
import sys
import threading

from wire import Connection, Lost, Slow

PANIC = re.compile(r"panicked at ([^\n]*)\n?([^\n]*)")
# The log tells errors that clients were told of, with their SQLSTATE; some of PostgreSQL's own have XX000.
TOLD = re.compile(r"^\t|throng_exec::session::log: (?!(?:(?! pid=).)*internal error)")
FAULT = re.compile(r"panicked at|internal error|\bXX00\d\b|stack overflow|memory allocation of")


class Remote:
    """A server that somebody else started: only its answers tell how it is."""

    process = None

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.address = (host or "127.0.0.1", int(port))

    def dead(self):
        try:
            Connection(self.address).close()
            return False
        except (Lost, Slow, OSError):
            return True

    def rss(self):
        return 0

    def faults(self):
        return []

    def restart(self):
        raise SystemExit("the server is gone")

    def close(self):
        return []


# What a stall is judged by. A loop that computes counts as long as it computes; one that did not get its core, because others run on
# the machine, or that slept in the kernel, counts once that is out of all proportion.
STALLED_MS = "greatest(coalesce(cpu_ms, held_ms), held_ms / 20)"


class Child:
    """`throng serve` on a directory of its own."""

    def __init__(self, binary, options):
        os.environ["THRONG"] = binary
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients"))
        from server import Server  # reads THRONG as it is imported
        self.make = lambda: Server(*options)
        self.lock = threading.Lock()
        self.begin()

    def begin(self):
        self.server = self.make()
        self.address = ("127.0.0.1", self.server.port)
        self.read = 0

    @property
    def process(self):
        return self.server.process

    def dead(self):
        return self.process.poll() is not None

    def rss(self):
        """Resident bytes."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
                return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) * 1024
        except (OSError, AttributeError):
            return 0

    def faults(self):
        """What the log tells since the last look: (short, whole) pairs."""
        with self.lock:
            log = self.server.log_text()
            new, self.read = log[self.read:], len(log)
        found = [(f"{place} {what}"[:200], new[m.start():m.start() + 3000]) for m in PANIC.finditer(new) for place, what in [m.groups()]]
        return found or [(line[:200], line) for line in new.splitlines() if FAULT.search(line) and not TOLD.search(line)]

    def restart(self):
        """A new directory: what is in the old one may be what kills it."""
        self.server.__exit__()
        self.begin()

    def close(self):
        try:
            return self.server.close()
        finally:
            self.server.__exit__()
