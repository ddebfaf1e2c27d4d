#!/usr/bin/env python3
"""pgbench against Throng and PostgreSQL, alternating in one run; prints medians and ratios as a markdown table.

    compare.py --throng target/release/throng --pgbin /usr/lib/postgresql/18/bin [--rounds 5] [--seconds 5]

Starts both servers itself, on temporary directories with the same pool (512 MB) and the same durability
(fsync on, synchronous_commit on, full page images on). Every round measures both, and the next begins with the other
one, so that whatever else the machine does falls on both. PostgreSQL does not run as root: pass --pguser NAME to
start it as NAME. Without --pgbin it is looked for in PGBIN.

With --unix pgbench comes by a Unix-domain socket, as it does by default; otherwise by TCP. With --answerer BIN (made by
`cargo build --release -p throng-lab --example answerer`) the table tells what select-only reaches, the same way, at a server that
answers from a constant, and Throng's share of it.
"""

import argparse
import contextlib
import mmap
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

POOL = "512MB"
SCRIPTS = {"select-only": ["-S"], "simple-update": ["-N"], "tpcb-like": [], "tpcb-async": []}
# pgbench's own select-only, which looks for the scale in a table that the answerer has not.
POINT_READ = "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"


def run(command, **options):
    return subprocess.run(command, check=True, text=True, capture_output=True, **options).stdout


@contextlib.contextmanager
def memory_of_our_own():
    """Uses the machine's free memory once, and keeps a page here and there, so that none of it can be given away in one piece. A
    virtual machine gives larger free pieces back to its host ("free page reporting"), which has to find them anew, a page at a time and
    at the expense of whoever writes there first. The faster server in loads of gigabytes, which are dropped after each turn, is then
    measured by its host."""
    with open("/proc/meminfo", encoding="ascii") as file:
        free = int(re.search(r"^MemFree: +(\d+) kB$", file.read(), re.M).group(1)) * 1024
    kept_each = 512 << 10
    touched = min(free * 94 // 100, 64 << 30) // kept_each * kept_each
    with mmap.mmap(-1, touched, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(0, len(memory), mmap.PAGESIZE):
            memory[page] = 1
        for kept in range(0, len(memory), kept_each):
            memory.madvise(mmap.MADV_DONTNEED, kept + mmap.PAGESIZE, kept_each - mmap.PAGESIZE)
        yield


def start_throng(binary, directory, port, **settings):
    command = [binary, "serve", "--data", directory, "--listen", f"127.0.0.1:{port}", "--memory", POOL]
    for name, value in ({"unix_socket_directories": ""} | settings).items():
        command += ["--set", f"{name}={value}"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    if not server.stdout.readline():
        raise SystemExit(f"{binary} did not start")
    return server


def as_user(user, command):
    return ["setpriv", f"--reuid={user}", "--clear-groups", *command] if user else command


def start_postgres(pgbin, directory, port, user, **more):
    if user:
        shutil.chown(directory, user)
    data = os.path.join(directory, "data")
    run(as_user(user, [f"{pgbin}/initdb", "-D", data, "-U", "postgres", "--locale=C.UTF-8", "-E", "UTF8"]))
    settings = {"port": port, "shared_buffers": POOL, "max_connections": 500, "unix_socket_directories": ""} | more
    options = [f"-c{name}={value}" for name, value in settings.items()]
    server = subprocess.Popen(
        as_user(user, [f"{pgbin}/postgres", "-D", data, *options]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(100):
        if subprocess.run(["pg_isready", "-h", "127.0.0.1", "-p", str(port)], capture_output=True).returncode == 0:
            return server
        time.sleep(0.1)
    raise SystemExit("PostgreSQL did not start")


def start_mariadb(mariadbd, directory, port, user):
    """Durable as the others: each commit flushed, pages written twice, no second log. As much log between checkpoints as
    PostgreSQL's max_wal_size; max_prepared_stmt_count has room for every client's statements."""
    if user:
        shutil.chown(directory, user)
    data, socket = os.path.join(directory, "data"), os.path.join(directory, "socket")
    beside = os.path.join(os.path.dirname(os.path.realpath(mariadbd)), "..", "bin", "mariadb-install-db")
    install = beside if os.path.exists(beside) else "mariadb-install-db"
    run(as_user(user, [install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"]))
    settings = {
        "datadir": data,
        "socket": socket,
        "port": port,
        "bind-address": "127.0.0.1",
        "innodb-buffer-pool-size": "512M",
        "innodb-flush-log-at-trx-commit": 1,
        "innodb-doublewrite": 1,
        "innodb-log-file-size": "1G",
        "skip-log-bin": None,
        "max-connections": 500,
        "max-prepared-stmt-count": 100_000,
    }
    options = [f"--{name}" if value is None else f"--{name}={value}" for name, value in settings.items()]
    server = subprocess.Popen(
        as_user(user, [mariadbd, "--no-defaults", *options]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(300):
        if server.poll() is not None:
            break
        asked = subprocess.run(["mariadb", "--no-defaults", "-S", socket, "-u", "root", "-e", "CREATE DATABASE IF NOT EXISTS test"], capture_output=True)
        if asked.returncode == 0:
            return server
        time.sleep(0.1)
    raise SystemExit("MariaDB did not start")


def pgbench(host, port, *arguments, **options):
    return run(["pgbench", "-h", host, "-p", str(port), "-U", "postgres", *arguments, "postgres"], **options)


def tps(host, port, script, mode, clients, seconds, **options):
    # What others have left unwritten would be written at this turn's expense.
    os.sync()
    out = pgbench(host, port, *script, "-n", "-M", mode, "-c", str(clients), "-j", str(min(clients, os.cpu_count())), "-T", str(seconds), **options)
    if not re.search(r"number of failed transactions: 0 ", out):
        raise SystemExit(f"failed transactions on port {port}:\n{out}")
    return float(re.search(r"^tps = ([0-9.]+)", out, re.M).group(1))


def answers(binary, host, scale, mode, clients, seconds):
    """The rate at which the constant answerer is asked, at a port or a socket as the servers are."""
    port = 15434
    with tempfile.TemporaryDirectory() as files:
        script = os.path.join(files, "read.sql")
        with open(script, "w", encoding="utf-8") as file:
            file.write(POINT_READ)
        by_socket = os.path.isabs(host)
        host = files if by_socket else host
        address = os.path.join(host, f".s.PGSQL.{port}") if by_socket else f"{host}:{port}"
        with subprocess.Popen([binary, address, str(clients)], stdout=subprocess.PIPE) as answerer:
            answerer.stdout.readline()  # It listens.
            try:
                return tps(host, port, ["-f", script, "-D", f"scale={scale}"], mode, clients, seconds)
            finally:
                answerer.terminate()


def spread(of):
    return f"{statistics.median(of):,.0f} ({min(of):,.0f}-{max(of):,.0f})"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--throng", default="target/release/throng")
    parser.add_argument("--pgbin", default=os.environ.get("PGBIN"), required="PGBIN" not in os.environ)
    parser.add_argument("--pguser")
    parser.add_argument("--unix", action="store_true")
    parser.add_argument("--answerer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--clients", default="16,100")
    parser.add_argument("--modes", default="simple,prepared")
    parser.add_argument("--scripts", default="select-only,tpcb-like", help=f"of {', '.join(SCRIPTS)}; tpcb-async is tpcb-like with synchronous_commit off")
    args = parser.parse_args()
    version = run([f"{args.pgbin}/postgres", "--version"]).strip()
    with memory_of_our_own(), tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs, tempfile.TemporaryDirectory() as sockets:
        os.chmod(theirs, 0o755)
        os.chmod(sockets, 0o777)
        host, listen = (sockets, {"unix_socket_directories": sockets}) if args.unix else ("127.0.0.1", {})
        ports = {"throng": 15433, "postgres": 15432}
        servers = []
        try:
            servers.append(start_throng(args.throng, ours, ports["throng"], **listen))
            servers.append(start_postgres(args.pgbin, theirs, ports["postgres"], args.pguser, **listen))
            for port in ports.values():
                pgbench(host, port, "-i", "-q", "-s", str(args.scale))
            way = "Unix sockets" if args.unix else "TCP"
            print(f"{version}; {os.cpu_count()} cores; {way}; pool {POOL}; fsync on; scale {args.scale}; medians (least-most) of {args.rounds} rounds of {args.seconds} s")
            print()
            header = ["workload", "mode", "clients", "Throng TPS", "PostgreSQL TPS", "ratio"]
            header += ["constant answers", "Throng's share of them"] if args.answerer else []
            print(line(header))
            print(line(["---"] * len(header)))
            for name in args.scripts.split(","):
                script = SCRIPTS[name]
                env = os.environ | ({"PGOPTIONS": "-c synchronous_commit=off"} if name == "tpcb-async" else {})
                for mode in args.modes.split(","):
                    for clients in map(int, args.clients.split(",")):
                        seen = {server: [] for server in ports}
                        most = []
                        for turn in range(args.rounds):
                            for server, port in sorted(ports.items(), reverse=turn % 2 == 0):
                                seen[server].append(tps(host, port, script, mode, clients, args.seconds, env=env))
                            if args.answerer and name == "select-only":
                                most.append(answers(args.answerer, host, args.scale, mode, clients, args.seconds))
                        median = {server: statistics.median(of) for server, of in seen.items()}
                        cells = [name, mode, str(clients), spread(seen["throng"]), spread(seen["postgres"]), f"{median['throng'] / median['postgres']:.2f}"]
                        if most:
                            cells += [spread(most), f"{median['throng'] / statistics.median(most):.0%}"]
                        print(line(cells), flush=True)
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                server.wait()


if __name__ == "__main__":
    main()
