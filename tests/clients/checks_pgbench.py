"""pgbench as it comes, in every way of initialising, script, protocol and number of clients."""

import os
import random
import re
import signal
import subprocess
import time

SCALE = os.environ.get("THRONG_PGBENCH_SCALE", "2")
SECONDS = os.environ.get("THRONG_PGBENCH_SECONDS", "2")
KILLS = int(os.environ.get("THRONG_PGBENCH_KILLS", "3"))

INITIALISATIONS = {
    "plain": [],
    "server-side rows": ["-I", "dtGvpf"],
    "fillfactor 90": ["-F", "90"],
    "foreign keys": ["--foreign-keys"],
    "unlogged, quiet": ["-q", "--unlogged-tables"],
}
SCRIPTS = {"select-only": ["-S"], "simple-update": ["-N"], "tpcb-like": []}
PROTOCOLS = ["simple", "extended", "prepared"]
CLIENTS = [1, 16, 100]


def initialise(server, *flags):
    server.run("pgbench", "-i", "-s", SCALE, *flags)


def assert_sums(server):
    """Accounts, tellers, branches and the history's deltas add up to the same."""
    sums = server.sql(
        "select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers), "
        "(select sum(bbalance) from pgbench_branches), (select coalesce(sum(delta), 0) from pgbench_history)")
    assert len(set(sums.split("|"))) == 1, f"sums of accounts, tellers, branches, history: {sums}"


def bench(server, *flags, clients, protocol="simple", seconds=SECONDS):
    done = server.run("pgbench", "-n", "-T", str(seconds), "-c", str(clients), "-j", "2", "-M", protocol, *flags)
    failed = re.search(r"number of failed transactions: (\d+)", done.stdout)
    assert failed and failed.group(1) == "0", done.stdout + done.stderr
    assert "error" not in done.stderr.lower(), done.stderr
    tps = re.search(r"tps = ([\d.]+) \((?:without|including)", done.stdout)
    assert tps and float(tps.group(1)) > 0, done.stdout
    return f"{float(tps.group(1)):9.0f} tps"


def initialisation(flags):
    def check(server):
        initialise(server, *flags)
        rows = server.sql("select count(*) from pgbench_accounts")
        assert rows == str(100_000 * int(SCALE)), rows
        bench(server, clients=4, seconds=1)
        bench(server, "-N", clients=4, seconds=1, protocol="prepared")
        # simple-update touches accounts and the history alone.
        sums = server.sql("select (select sum(abalance) from pgbench_accounts) = "
                          "(select sum(delta) from pgbench_history)")
        assert sums == "t", "accounts and history differ"
    return check


def tpcb_sums(server):
    initialise(server)
    for protocol in PROTOCOLS:
        bench(server, clients=16, protocol=protocol)
    assert_sums(server)


def load(flags, protocol, clients):
    return lambda server: bench(server, *flags, clients=clients, protocol=protocol)


def connection_each(server):
    return bench(server, "-S", "-C", clients=4)


def more_clients_than_ever(server):
    return bench(server, "-S", clients=400)


def rate_and_latency(server):
    """The options that change how pgbench talks, not what it does."""
    bench(server, "-N", "-R", "200", "-L", "10000", clients=8)
    bench(server, "-r", "-P", "1", clients=8)


def pipelined(server):
    script = os.path.join(server.dir, "pipeline.sql")
    with open(script, "w", encoding="utf8") as file:
        file.write("\\set aid random(1, 100000)\n\\startpipeline\n"
                   "select abalance from pgbench_accounts where aid = :aid;\n"
                   "update pgbench_accounts set abalance = abalance where aid = :aid;\n"
                   "select 1;\n\\endpipeline\n")
    return bench(server, "-f", script, clients=8, protocol="extended")


def serialization_retries(server):
    """At REPEATABLE READ updates of one branch collide; with tries left none fails."""
    initialise(server)
    environment = {**server.environment(), "PGOPTIONS": "-c default_transaction_isolation=repeatable\\ read"}
    done = subprocess.run(
        ["pgbench", "-n", "-T", SECONDS, "-c", "8", "-j", "2", "--max-tries", "0"],
        env=environment, capture_output=True, text=True, timeout=300, check=False)
    failed = re.search(r"number of failed transactions: (\d+)", done.stdout)
    assert done.returncode == 0 and failed and failed.group(1) == "0", done.stdout + done.stderr
    assert_sums(server)


def kills(server):
    """kill -9 under tpcb-like: nothing that pgbench counted is lost, sums are equal, restart is quick."""
    initialise(server)
    slowest = 0
    for _ in range(KILLS):
        before = int(server.sql("select count(*) from pgbench_history"))
        clients = 16
        bencher = subprocess.Popen(
            ["pgbench", "-n", "-T", "60", "-c", str(clients), "-j", "2", "-M", "prepared"],
            env=server.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(random.uniform(0.5, 3))
        server.kill()
        output, errors = bencher.communicate(timeout=60)
        counted = re.search(r"number of transactions actually processed: (\d+)", output)
        assert counted, output + errors
        counted = int(counted.group(1))
        server.start()
        slowest = max(slowest, server.startup)
        assert server.startup < 10, f"restart took {server.startup:.1f} s"
        there = int(server.sql("select count(*) from pgbench_history")) - before
        assert counted <= there <= counted + clients, f"pgbench saw {counted} commits, {there} are there"
        assert_sums(server)
    server.stop()
    server.check()
    server.start()
    assert_sums(server)
    return f"slowest restart {slowest:.1f} s"


def interrupted(server):
    """A client stopped by ^C leaves nothing behind."""
    initialise(server)
    bencher = subprocess.Popen(["pgbench", "-n", "-T", "60", "-c", "16", "-j", "2"], env=server.environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)
    bencher.send_signal(signal.SIGINT)
    bencher.wait(timeout=30)
    until = time.monotonic() + 10
    while time.monotonic() < until:
        others = server.sql("select count(*) from pg_stat_activity "
                            "where backend_type = 'client backend' and pid <> pg_backend_pid()")
        if others == "0":
            break
    assert others == "0", f"{others} sessions are left"
    assert_sums(server)


def checks():
    yield from ((f"pgbench -i: {name}", initialisation(flags)) for name, flags in INITIALISATIONS.items())
    yield "pgbench: sums after tpcb-like", tpcb_sums
    for script, flags in SCRIPTS.items():
        for protocol in PROTOCOLS:
            for clients in CLIENTS:
                yield f"pgbench {script} {protocol} {clients} clients", load(flags, protocol, clients)
    yield "pgbench: a connection for each transaction", connection_each
    yield "pgbench: 400 clients", more_clients_than_ever
    yield "pgbench: rate limit, latencies, progress", rate_and_latency
    yield "pgbench: pipeline", pipelined
    yield "pgbench: retries at REPEATABLE READ", serialization_retries
    yield "pgbench: interrupted", interrupted
    yield f"pgbench: kill -9, {KILLS} times", kills
