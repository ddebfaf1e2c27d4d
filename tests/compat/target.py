"""The server that the tests run against: Throng as a child process, or a PostgreSQL that runs already."""

import os
import re
import socket
import subprocess
import sys

import psycopg

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients"))

# A statement that takes longer hangs: PostgreSQL's slowest of the suite takes a few seconds.
STATEMENT_LIMIT = 15
# What pg_regress sets for its database with ALTER DATABASE.
DATABASE_SETTINGS = ["lc_messages=C", "lc_monetary=C", "lc_numeric=C", "lc_time=C", "bytea_output=hex",
                     "timezone_abbreviations=Default"]
# The log tells errors that clients were told of, with their SQLSTATE; some of PostgreSQL's own have XX000.
TOLD = re.compile(r"throng_exec::session::log: (?!.*internal error)")
FAULT = re.compile(r"panicked at|internal error|\bXX00\d\b|TRAP:|terminated by signal")


def first_line(error):
    return (str(error).strip().splitlines() or ["?"])[0]


class Target:
    """Where to connect, and what the connection must do without: `refused` says it in the server's words."""

    host = "127.0.0.1"
    user = "postgres"
    database = "postgres"
    begun = 1

    def __init__(self, tools):
        self.tools = tools
        self.refused = []

    def prepare(self, database):
        """Makes the database where it can, and finds the start-up settings of pg_regress that the server takes."""
        self.sql(f"drop database if exists {database}")
        for locale in ["locale 'C'", ""]:
            try:
                self.sql(f"create database {database} template template0 {locale} encoding 'UTF8'")
                self.database = database
                break
            except psycopg.Error as e:
                self.refused.append(f"the database's {locale or 'encoding'}: {first_line(e)}")
        self.settings = {}
        if self.tools.psql is None:
            return
        for name, value in [("PGTZ", "America/Los_Angeles"), ("PGDATESTYLE", "Postgres, MDY")]:
            if self.accepts({name: value}):
                self.settings[name] = value
        options = [f"-c {option}" for option in ["intervalstyle=postgres_verbose", *DATABASE_SETTINGS]
                   if self.accepts({"PGOPTIONS": f"-c {option}"})]
        self.settings["PGOPTIONS"] = " ".join(options)

    def accepts(self, setting):
        done = subprocess.run([self.tools.psql, "-XAtq", "-c", "select 1"], env=self.environment(**setting),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            said = re.sub(r".*FATAL: +", "", done.stderr.strip(), flags=re.DOTALL).splitlines()
            self.refused.append(f"{' '.join(f'{k}={v!r}' for k, v in setting.items())}: {said[0] if said else '?'}")
        return done.returncode == 0

    def environment(self, **more):
        """What pg_regress leaves of the environment and adds to it, but for the settings that `prepare` finds."""
        kept = {k: v for k, v in os.environ.items()
                if not k.startswith(("LC_", "LANG", "PG"))}
        library = self.tools.library
        return {**kept, "LC_MESSAGES": "C", "PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": self.user,
                "PGDATABASE": self.database, "PGCONNECT_TIMEOUT": "20", "LD_LIBRARY_PATH": library, **more}

    def sql(self, text):
        with psycopg.connect(self.dsn(), autocommit=True, connect_timeout=20) as connection:
            connection.execute(text)

    def answers(self):
        try:
            self.sql("select 1")
            return True
        except psycopg.Error:
            return False

    def dsn(self):
        return f"host={self.host} port={self.port} user={self.user} dbname={self.database}"


class Throng(Target):
    name = "Throng"

    def __init__(self, tools):
        super().__init__(tools)
        self.begun = 0
        self.begin()

    def begin(self):
        """A server on an empty directory. `begun` counts them, for whoever has to lay the ground anew."""
        from server import Server  # reads the environment as it is imported
        self.server = Server("--set", f"statement_timeout={STATEMENT_LIMIT}s")
        self.read = 0
        self.begun += 1

    @property
    def port(self):
        return self.server.port

    def look(self):
        """What the log tells of faults since the last look. Starts the server again if it is gone or mute."""
        log = self.server.log_text()
        faults = [line.strip() for line in log[self.read:].splitlines() if FAULT.search(line) and not TOLD.search(line)]
        self.read = len(log)
        if self.server.process.poll() is None and self.answers():
            return faults
        code = self.server.process.poll()
        faults.append("the server did not answer" if code is None else f"the server ended with {code}")
        self.server.kill()
        self.server.start()
        if not self.answers():
            faults.append("nor did it after a new start: it goes on with an empty directory")
            self.server.__exit__()
            self.begin()
        return faults

    def close(self):
        self.server.__exit__()


class PostgreSQL(Target):
    name = "PostgreSQL"

    def __init__(self, tools, host, port):
        super().__init__(tools)
        self.host = socket.gethostbyname(host)
        self.port = port

    def look(self):
        return [] if self.answers() else ["the server did not answer"]

    def close(self):
        pass
