"""A server for the checks: a child process on a temporary directory and a free port."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

THRONG = os.environ["THRONG"]
# Lines of the log that tell of a fault although every client was answered.
BAD_LOG = re.compile(r"panicked at|\bERROR\b|\bWARN\b")
# Errors that clients were told of, logins that were refused, and what a log_ setting asks for.
# A line that begins with a tab goes on with the entry above it: a client's statement, say.
TOLD = re.compile(r"^\t| throng_(exec::session::log|server::auth|server::net::connection)\b.*: ")


class Server:
    def __init__(self, *options, dir=None):
        self.dir = tempfile.mkdtemp(prefix="throng-clients-", dir=dir)
        self.data = os.path.join(self.dir, "data")
        self.log = os.path.join(self.dir, "log")
        self.options = options
        self.process = None
        self.port = None
        self.startup = None
        self.start()

    def start(self):
        began = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [THRONG, "serve", "--data", self.data, "--listen", f"127.0.0.1:{self.port or 0}",
                 "--set", f"unix_socket_directories={self.dir}", *self.options],
                stdout=subprocess.PIPE, stderr=log, text=True)
        ready = self.process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", ready)
        assert found, f"no ready line: {ready!r}\n{self.log_text()[-2000:]}"
        self.port = int(found.group(1))
        self.startup = time.monotonic() - began

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def log_text(self):
        with open(self.log, encoding="utf8", errors="replace") as log:
            return log.read()

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=120)
        assert code == 0, f"stopped with {code}"

    def revive(self):
        """A check that failed may have taken the server with it."""
        if self.process.poll() is not None:
            self.start()

    def check(self):
        """`throng check` on the stopped server's files."""
        done = subprocess.run([THRONG, "check", "--data", self.data],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"throng check: {done.returncode}\n{done.stdout}{done.stderr}"

    def close(self):
        """Stops for good; what was wrong about that, or with the log."""
        problems = []
        for step in (self.stop, self.check):
            try:
                step()
            except (AssertionError, subprocess.TimeoutExpired) as e:
                problems.append(str(e))
        bad = [line for line in self.log_text().splitlines() if BAD_LOG.search(line) and not TOLD.search(line)]
        if bad:
            problems.append("in the log: " + "\n".join(bad[:10]))
        return problems

    # What clients are started with

    def environment(self):
        return {**os.environ, "PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": "postgres",
                "PGDATABASE": "postgres", "PGCONNECT_TIMEOUT": "30", "PGCLIENTENCODING": "UTF8"}

    def run(self, *command, text=None, code=0, timeout=300):
        """Runs a client; its output. `code`: the exit status expected, None for any."""
        done = subprocess.run(command, env=self.environment(), input=text, capture_output=True,
                              text=True, timeout=timeout, check=False)
        assert code is None or done.returncode == code, (
            f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
        return done

    def sql(self, text):
        """The unaligned output of psql."""
        return self.run("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", text).stdout.strip()


class PostgreSQL:
    """The server that PGHOST, PGPORT and so on tell of, where the checks are proved first. Its role's password is PGPASSWORD."""

    def environment(self):
        return {**os.environ, "PGCONNECT_TIMEOUT": "30", "PGCLIENTENCODING": "UTF8"}

    run = Server.run
    sql = Server.sql
