#!/usr/bin/env python3
"""A crowd that asks a partitioned table of sensor readings, of Throng and PostgreSQL in turns; prints a markdown table.

    crowd.py --throng target/release/throng --pgbin /usr/lib/postgresql/18/bin [--pguser NAME] [--clients 200,1000]
             [--days 90] [--rounds 3] [--seconds 20] [--dir DIR]

400 sensors, a reading every three minutes, weekly partitions, `unique (sensor, ts)`: 17.28 million rows in 90 days. Each
client asks one question over and over:

    day, literal    the averages of 100 sensors over one day
    day, now()      the same, the day told by now() - interval
    hours           one sensor's averages by the hour over 15, 30 or 90 days

Told are answers a second, the median and the 99th percentile of their times, and how busy the machine's cores were. Both servers
have the same pool and take up to 1,200 connections; `throng bench script` is the client, which takes them in turns, on the same
machine. One answer is compared before.
"""

import argparse
import contextlib
import datetime
import json
import os
import tempfile

from compare import run, start_postgres, start_throng

START = datetime.datetime(2026, 2, 2, tzinfo=datetime.timezone.utc)
DEFINE = """create table sensor_data (sensor int not null, ts timestamptz not null, value float8 not null, quality int not null,
unique (sensor, ts)) partition by range (ts)"""
FILL = """insert into sensor_data select s, timestamptz '{start}' + t * interval '3 minutes',
20 + s % 17 + sin(t / 77.0 + s) * 5 + (hashint4(s * 50021 + t) % 1000) / 1000.0, ((s + t) % 50 = 0)::int
from generate_series({first}, {last}) t, generate_series(1, 400) s"""
AVERAGES = "SELECT sensor, avg(value), max(value) FROM sensor_data WHERE sensor BETWEEN :s AND :s + 99 AND ts >= {low} AND ts < {high} GROUP BY sensor;"
HOURS = "SELECT date_trunc('hour', ts), avg(value) FROM sensor_data WHERE sensor = :s AND ts >= {low} AND ts < {high} GROUP BY 1;"
A_DAY = 480


def moment(days):
    return f"timestamptz '{START:%Y-%m-%d %H:%M}+00' + :d * interval '1 day' + interval '{days} days'"


def scripts(days):
    """The questions in pgbench's language, by name."""
    age = (datetime.datetime.now(datetime.timezone.utc) - START).days
    ago = "now() - interval '1 day' * ({} - :d)"
    draw = "\\set s random(1, {})\n\\set d random(0, {})\n"
    one = draw.format(301, days - 1)
    spans = [days // 6, days // 3, days]
    hours = "".join(draw.format(400, days - span) + HOURS.format(low=moment(0), high=moment(span)) + "\n" for span in spans)
    return {
        "day, literal": one + AVERAGES.format(low=moment(0), high=moment(1)),
        "day, now()": one + AVERAGES.format(low=ago.format(age), high=ago.format(age - 1)),
        "hours": hours,
    }


def load(url, days):
    def psql(sql):
        return run(["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", url, "-c", sql])

    psql(DEFINE)
    for week in range(0, days, 7):
        low, high = (START + datetime.timedelta(days=week + n) for n in (0, 7))
        psql(f"create table sensor_data_{week // 7} partition of sensor_data for values from ('{low:%F}') to ('{high:%F}')")
    for first in range(0, days * A_DAY, 5 * A_DAY):
        psql(FILL.format(start=f"{START:%F}", first=first, last=min(first + 5 * A_DAY, days * A_DAY) - 1))
    psql("vacuum analyze sensor_data")
    day = START + datetime.timedelta(days=days // 2)
    return psql(
        "select count(*), sum(quality), round(avg(v)::numeric, 6) from sensor_data, lateral (select value as v) x"
        f" where sensor between 50 and 149 and ts >= '{day:%F}' and ts < timestamptz '{day:%F}' + interval '1 day'"
    )


def measure(options, urls, script):
    targets = [argument for url in urls.values() for argument in ("--target", url)]
    bench = [options.throng, "bench", "script", script, *targets, "--clients", options.clients]
    return json.loads(run([*bench, "--rounds", str(options.rounds), "--seconds", str(options.seconds), "--json"]))["targets"]


def row(question, name, point):
    rate, times = point["throughput"], point["latency"]
    failures = sum(point["failures"].values())
    cells = [
        question,
        point["clients"],
        name,
        f"{rate['median']:.1f} ({rate['least']:.1f} to {rate['most']:.1f})",
        *(f"{times[part] / 1e6:.0f}" for part in ("p50", "p99")),
        f"{point['busy']:.0%}",
        failures,
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--throng", required=True)
    parser.add_argument("--pgbin", default=os.environ.get("PGBIN"))
    parser.add_argument("--pguser")
    parser.add_argument("--clients", default="200,1000")
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--dir", default=tempfile.gettempdir())
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory(dir=options.dir))
        os.chmod(root, 0o755)
        urls = {}
        for at, name in enumerate(["Throng", "PostgreSQL"]):
            directory = os.path.join(root, name)
            os.mkdir(directory)
            port = 5610 + at
            if name == "Throng":
                server = start_throng(options.throng, directory, port, max_connections="1200")
            else:
                server = start_postgres(options.pgbin, directory, port, options.pguser, max_connections=1200)
            stack.callback(server.wait)
            stack.callback(server.terminate)
            urls[name] = f"postgres://postgres@127.0.0.1:{port}/postgres"
        answers = {name: load(url, options.days) for name, url in urls.items()}
        if len(set(answers.values())) != 1:
            raise SystemExit(f"the servers differ: {answers}")
        print("| question | clients | server | answers/s | p50 ms | p99 ms | cores busy | errors |\n| --- " + "| --- " * 7 + "|")
        for question, text in scripts(options.days).items():
            script = os.path.join(root, "script.sql")
            with open(script, "w", encoding="ascii") as file:
                file.write(text)
            for name, target in zip(urls, measure(options, urls, script)):
                for point in target["points"]:
                    print(row(question, name, point), flush=True)


if __name__ == "__main__":
    main()
