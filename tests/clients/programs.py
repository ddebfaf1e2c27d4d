"""Programs of drivers: how each is installed, built and started, and what it then reports.

Each program prints `ok NAME` or `no NAME: WHY` for its checks (report.py tells of the form). What is installed or built lies in the
cache and is kept until the files that it was made from change.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("THRONG_CLIENTS_CACHE", HERE / "cache"))
PASSWORD = "open sesame"
SECONDS = 240  # for one program, all its checks


@dataclass
class Program:
    name: str
    tools: list  # that must be on the PATH
    sources: list  # of what is made, below HERE
    make: list  # commands, run in HERE/name once for each state of the sources
    command: list

    def missing(self):
        return [tool for tool in self.tools if not shutil.which(tool)]

    def prepare(self):
        """Makes what the sources' state is not made for yet."""
        state = hashlib.sha256()
        for source in self.sources:
            state.update((HERE / source).read_bytes())
        stamp = CACHE / f"{self.name}.made"
        if stamp.exists() and stamp.read_text() == state.hexdigest():
            return
        CACHE.mkdir(parents=True, exist_ok=True)
        for command in self.make:
            done = subprocess.run(command, cwd=HERE / self.name, env=environment(), capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
        stamp.write_text(state.hexdigest())

    def outcomes(self, server, words):
        """(check, seconds, why it failed or None) as the program tells them; of the whole program where it broke off."""
        # Words that are in the program's own name choose all of it.
        chosen = [] if any(word in self.name for word in words) else words
        settings = {**server.environment(), **environment(), "PGPASSWORD": PASSWORD}
        process = subprocess.Popen([*self.command, *chosen], env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err += f"\nended after {SECONDS} s"
        lines = out.splitlines()
        for line in lines:
            verdict, _, told = line.partition("\t")
            check, _, rest = told.partition("\t")
            if verdict == "ok":
                yield check, rest, None
            elif verdict == "no":
                yield check, "", rest
        if "end" not in lines:
            yield "the whole program", "", f"broke off after {len(lines)} lines, exit status {process.returncode}\n{err[-3000:]}"


def environment():
    return {**os.environ, "NODE_CHECKS_MODULES": str(CACHE / "node"), "GOTOOLCHAIN": "local"}


def python(name):
    return Program(name, [], [], [], [sys.executable, str(HERE / name / "program.py")])


NODE_MODULES = [["mkdir", "-p", str(CACHE / "node")], ["cp", str(HERE / "node-postgres" / "package.json"), str(CACHE / "node")],
                ["npm", "install", "--prefix", str(CACHE / "node"), "--no-audit", "--no-fund", "--no-package-lock", "--silent"]]


def node(name):
    return Program(name, ["node", "npm"], ["node-postgres/package.json"], NODE_MODULES, ["node", str(HERE / name / "program.mjs")])


def java(name):
    """A program of one class, with the packages that its pom.xml names."""
    jars, classes = CACHE / f"{name}-jars", CACHE / f"{name}-classes"
    return Program(name, ["java", "javac", "mvn"], [f"{name}/Program.java", f"{name}/pom.xml"],
                   [["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"],
                    ["javac", "-nowarn", "-encoding", "UTF-8", "-cp", f"{jars}/*", "-d", str(classes), "Program.java"]],
                   ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*:{classes}", "Program"])


PROGRAMS = [
    python("psycopg"), python("asyncpg"), python("sqlalchemy"), python("django"),
    node("node-postgres"), node("sequelize"),
    Program("pgx", ["go"], ["pgx/main.go", "pgx/go.mod", "pgx/go.sum"], [["go", "build", "-o", str(CACHE / "pgx"), "."]], [str(CACHE / "pgx")]),
    java("pgjdbc"), java("frameworks"),
    Program("tokio-postgres", ["cargo"], ["tokio-postgres/src/main.rs", "tokio-postgres/Cargo.toml", "tokio-postgres/Cargo.lock"],
            [["cargo", "build", "--quiet", "--locked", "--target-dir", str(CACHE / "tokio-postgres")]],
            [str(CACHE / "tokio-postgres" / "debug" / "tokio-postgres-checks")]),
]


def certificate(directory):
    """A key and a certificate for the loopback address, that signs itself; None without openssl."""
    if not shutil.which("openssl"):
        return None
    key, cert = os.path.join(directory, "key.pem"), os.path.join(directory, "cert.pem")
    subprocess.run(["openssl", "req", "-new", "-x509", "-days", "30", "-nodes", "-newkey", "rsa:2048", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
    return key, cert
