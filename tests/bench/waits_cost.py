#!/usr/bin/env python3
"""What recording waits costs: one server under one pgbench -S, `track_waits` on, on and off in turn (A, A, B) all the while.

    waits_cost.py --throng target/release/throng [--seconds 75] [--window 0.25] [--clients 50] [--mode simple]

The setting is changed in throng.toml and by SIGHUP a few times a second, so that whatever else the machine does falls on all
three alike, and everything else (processes, connections, placement of memory) is the same. From one round to the next the order
moves on by one. Transactions are counted by the times that pgbench logs of one in ten of them; the server's processor time
is the kernel's account of its threads. Printed are the medians, the ratio of A to A (what the machine alone makes of it), and that
of A's mean to B, round by round, with an interval of 95 % from resampling the rounds: of the throughput, and of the
server's processor time for a transaction, which a machine shared with others disturbs less.
"""

import argparse
import bisect
import glob
import os
import random
import signal
import statistics
import subprocess
import tempfile
import time

PORT = 5977
SAMPLED = 0.1
# What a change of the setting takes at most to be everywhere.
SETTLING = 0.02


def start(binary, directory):
    command = [binary, "serve", "--data", directory, "--listen", f"127.0.0.1:{PORT}", "--memory", "256MB",
               "--set", "unix_socket_directories="]
    quiet = os.environ | {"THRONG_LOG": "error"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quiet)
    if not server.stdout.readline():
        raise SystemExit(f"{binary} did not start")
    return server


def shell(command):
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def connection():
    return ["-h", "127.0.0.1", "-p", str(PORT), "-U", "postgres"]


def track(server, directory, on):
    path = os.path.join(directory, "throng.toml")
    with open(path + ".new", "w") as file:
        file.write(f'track_waits = "{"on" if on else "off"}"\n')
    os.rename(path + ".new", path)
    server.send_signal(signal.SIGHUP)


def check_that_it_switches(server, directory):
    for on in [False, True]:
        track(server, directory, on)
        time.sleep(0.5)
        told = shell(["psql", *connection(), "-Atc", "show track_waits"]).strip()
        if told != ("on" if on else "off"):
            raise SystemExit("the server does not reread its configuration")


def processor_time(pid):
    """Seconds that the process's threads have run."""
    nanos = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                nanos += int(file.read().split()[0])
        except FileNotFoundError:
            pass
    return nanos / 1e9


def switch_while_running(options, server, directory, logs):
    """Runs pgbench; returns each round's windows by name, as (from, to, processor time)."""
    command = ["pgbench", *connection(), "-n", "-S", "-M", options.mode, "-c", str(options.clients), "-j", "2",
               "-T", str(options.seconds + 2), "-l", f"--sampling-rate={SAMPLED}", f"--log-prefix={logs}/log", "postgres"]
    pgbench = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if os.geteuid() == 0:
        # Both cores are busy: who switches must not queue for them.
        os.nice(-15)
    time.sleep(1)
    turns = [("first", True), ("second", True), ("off", False)]
    rounds = []
    end = time.time() + options.seconds
    while time.time() < end:
        windows = {}
        for i in range(3):
            name, on = turns[(len(rounds) + i) % 3]
            track(server, directory, on)
            time.sleep(SETTLING)
            began, spent = time.time(), processor_time(server.pid)
            time.sleep(options.window)
            windows[name] = (began, time.time(), processor_time(server.pid) - spent)
        rounds.append(windows)
    if pgbench.wait() != 0:
        raise SystemExit("pgbench failed")
    return rounds


def finished_at(logs):
    times = []
    for path in glob.glob(f"{logs}/log*"):
        with open(path) as file:
            for line in file:
                fields = line.split()
                times.append(int(fields[4]) + int(fields[5]) / 1e6)
    return sorted(times)


def transactions(times, window):
    return (bisect.bisect(times, window[1]) - bisect.bisect(times, window[0])) / SAMPLED


def throughput(times, window):
    return transactions(times, window) / (window[1] - window[0])


def cost(times, window):
    """Microseconds of the server's processor time for a transaction."""
    return window[2] * 1e6 / max(transactions(times, window), 1)


def interval(values):
    """The median, and the bounds of 95 % of the medians of resampled values."""
    draws = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(4000))
    return statistics.median(values), draws[100], draws[-101]


def told(name, values):
    median, low, high = interval(values)
    print(f"{name}: {100 * (median - 1):+.2f} %  (95 %: {100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})")


def report(what, unit, rounds):
    print(f"\n{what}")
    for name in ["first", "second", "off"]:
        values = [r[name] for r in rounds]
        spread = statistics.pstdev(values) / statistics.mean(values)
        label = "B, off" if name == "off" else f"A, on ({name})"
        print(f"{label}: median {statistics.median(values):.4g} {unit}, standard deviation {100 * spread:.1f} %")
    told("A to A", [r["first"] / r["second"] for r in rounds])
    told("A to B", [(r["first"] + r["second"]) / 2 / r["off"] for r in rounds])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--throng", default="target/release/throng")
    parser.add_argument("--seconds", type=int, default=75)
    parser.add_argument("--window", type=float, default=0.25)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--mode", choices=["simple", "extended", "prepared"], default="simple")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as logs:
        server = start(options.throng, directory)
        try:
            shell(["pgbench", *connection(), "-i", "-q", "-s", "5", "postgres"])
            check_that_it_switches(server, directory)
            rounds = switch_while_running(options, server, directory, logs)
            times = finished_at(logs)
        finally:
            server.terminate()
            server.wait()
    print(f"{len(rounds)} rounds of three windows of {options.window} s, pgbench -S -M {options.mode} -c {options.clients}")
    report("throughput", "TPS", [{name: throughput(times, w) for name, w in r.items()} for r in rounds])
    report("processor time", "us", [{name: cost(times, w) for name, w in r.items()} for r in rounds])


main()
