"""psql: what a person types in the first hour."""

import os
import signal
import subprocess
import time

SETUP = """
create schema shop;
create table shop.customer (id serial primary key, name varchar(40) not null, balance numeric(10,2) default 0,
    since date default current_date, constraint rich check (balance >= 0));
create table shop.orders (id bigint generated always as identity primary key,
    customer int not null references shop.customer on delete cascade, note text);
create index on shop.orders (customer);
insert into shop.customer (name, balance) values ('Ann', 10), ('Bob', 20.50);
insert into shop.orders (customer, note) values (1, 'first'), (2, null);
"""


def setup(server):
    server.run("psql", "-Xq", "-v", "ON_ERROR_STOP=1", text=SETUP)


def described(command, *words):
    """A backslash command that must succeed and name these."""
    def check(server):
        done = server.run("psql", "-X", "-v", "ON_ERROR_STOP=1", "-c", command)
        assert not done.stderr, done.stderr
        missing = [word for word in words if word not in done.stdout]
        assert not missing, f"{missing} not in\n{done.stdout}"
    return check


def table_description(server):
    shown = server.run("psql", "-X", "-c", "\\d shop.customer").stdout
    for part in ('Table "shop.customer"', "nextval('shop.customer_id_seq'::regclass)", "character varying(40)",
                 "not null", "numeric(10,2)", '"customer_pkey" PRIMARY KEY, btree (id)', "Check constraints:",
                 'TABLE "shop.orders" CONSTRAINT "orders_customer_fkey" FOREIGN KEY (customer) '
                 "REFERENCES shop.customer(id) ON DELETE CASCADE"):
        assert part in shown, f"{part!r} not in\n{shown}"


def errors_point_at_their_place(server):
    for sql, message, marker in [
        ("selec 1", 'syntax error at or near "selec"', "LINE 1: selec 1\n        ^"),
        ("select nosuch from shop.customer", 'column "nosuch" does not exist', "LINE 1: select nosuch"),
        ("select 1/0", "division by zero", ""),
        ("select 'a'::int", 'invalid input syntax for type integer: "a"', "LINE 1: select 'a'::int\n               ^"),
        ("insert into shop.customer values (1, 'x')", "duplicate key value violates unique constraint",
         "DETAIL:  Key (id)=(1) already exists."),
    ]:
        done = server.run("psql", "-X", "-c", sql, code=1)
        assert message in done.stderr and marker in done.stderr, f"{sql}: {done.stderr}"


def script_in_one_transaction(server):
    server.run("psql", "-X1q", "-v", "ON_ERROR_STOP=1", code=3,
               text="insert into shop.customer (name) values ('Cid');\nselect 1/0;\n")
    assert server.sql("select count(*) from shop.customer") == "2"


def copy_there_and_back(server):
    path = os.path.join(server.dir, "copied.csv")
    server.sql("create table copied (id int primary key, v text, n numeric)")
    rows = "".join(f'{i},"value, {i}",{i}.5\n' for i in range(1, 10_001))
    with open(path, "w", encoding="utf8") as file:
        file.write("id,v,n\n" + rows)
    done = server.run("psql", "-X", "-c", f"\\copy copied from '{path}' csv header")
    assert "COPY 10000" in done.stdout, done.stdout
    server.run("psql", "-X", "-c", f"\\copy (select * from copied order by id) to '{path}' csv header force quote v")
    with open(path, encoding="utf8") as file:
        assert file.read() == "id,v,n\n" + rows
    wrong = server.run("psql", "-X", "-c", "copy copied from stdin", text="1\tx\tnot a number\n\\.\n", code=1)
    assert "COPY copied, line 1, column n" in wrong.stderr, wrong.stderr
    server.sql("drop table copied")


def variables_and_formats(server):
    out = server.run("psql", "-XAt", text="select 6 * 7 as answer \\gset\n\\echo :answer\n"
                     "select :answer + 1;\n\\x on\nselect 1 as a, 2 as b;\nselect $1 || 'y' \\bind x \\g\n"
                     if psql_version() >= 16 else
                     "select 6 * 7 as answer \\gset\n\\echo :answer\nselect :answer + 1;\n"
                     "\\x on\nselect 1 as a, 2 as b;\n").stdout
    assert out.split()[:2] == ["42", "43"] and "a|1" in out, out


def psql_version():
    out = subprocess.run(["psql", "--version"], capture_output=True, text=True, check=True).stdout
    return int(out.split()[2].split(".")[0])


def gexec(server):
    out = server.run("psql", "-XAt", text="select 'select ' || i from generate_series(1, 3) i \\gexec\n").stdout
    assert out.split() == ["1", "2", "3"], out


def another_database(server):
    """Made and dropped as a user does, and gone over to from within a session."""
    server.run("createdb", "-T", "template0", "-E", "UTF8", "other", "for a try")
    try:
        there = "select current_database(), count(*) from pg_namespace where nspname = 'shop'"
        out = server.run("psql", "-XAt", "-v", "ON_ERROR_STOP=1", text=f"{there};\n\\c other\n{there};\n").stdout
        assert "postgres|1" in out and "other|0" in out, out
        server.run("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", "other", text=SETUP)
        described("\\dt+ shop.*", "customer")(server)
    finally:
        server.run("dropdb", "-f", "other")
    assert server.sql("select count(*) from pg_database where datname = 'other'") == "0"


def interrupt(server):
    """^C stops the statement, and psql goes on with the next."""
    client = subprocess.Popen(
        ["psql", "-XAt", "-c", "select pg_sleep(600)", "-c", "select 'went on'"],
        env=server.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running = "select count(*) from pg_stat_activity where query like '%pg_sleep(600)%' and pid <> pg_backend_pid()"
    until = time.monotonic() + 30
    while server.sql(running) != "1" and time.monotonic() < until:
        pass
    client.send_signal(signal.SIGINT)
    out, err = client.communicate(timeout=30)
    assert "canceling statement due to user request" in err, out + err


def activity(server):
    rows = server.run("psql", "-XAt", "-c", "select application_name, state, usename, datname, query "
                      "from pg_stat_activity where pid = pg_backend_pid()").stdout
    assert rows.startswith("psql|active|postgres|postgres|select application_name"), rows


def unix_socket(server):
    environment = {**server.environment(), "PGHOST": server.dir}
    done = subprocess.run(["psql", "-XAtc", "select 1"], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "1", done.stderr


def large_results(server):
    done = server.run("psql", "-XAt", "-v", "FETCH_COUNT=1000", "-c", "select i, repeat('x', 100) "
                      "from generate_series(1, 100000) i")
    assert done.stdout.count("\n") == 100_000


def passwords(server):
    server.sql("create role teller login password 'correct horse'; alter role postgres password 'open sesame'")
    environment = {**server.environment(), "PGUSER": "teller", "PGPASSWORD": "correct horse"}
    right = subprocess.run(["psql", "-XAtc", "select current_user"], env=environment,
                           capture_output=True, text=True, check=False)
    assert right.stdout.strip() == "teller", right.stderr
    wrong = subprocess.run(["psql", "-wXAtc", "select 1"], env={**environment, "PGPASSWORD": "wrong"},
                           capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "password authentication failed" in wrong.stderr, wrong.stderr
    back = subprocess.run(["psql", "-Xqc", "alter role postgres password null; alter role teller password null"],
                          env={**server.environment(), "PGPASSWORD": "open sesame"},
                          capture_output=True, text=True, check=False)
    assert back.returncode == 0, back.stderr


def explain(server):
    plan = server.sql("explain select * from shop.customer where id = 1")
    assert "Index Scan using customer_pkey on customer" in plan, plan
    plan = server.sql("explain (analyze, costs off, timing off) select count(*) from shop.orders")
    assert "actual rows=" in plan and "Execution Time" in plan, plan


def checks():
    yield "psql: a first script", setup
    for command, words in [
        ("\\dn", ["shop", "public"]), ("\\dt shop.*", ["customer", "orders"]),
        ("\\dt+ shop.*", ["customer"]), ("\\d shop.orders", ["Foreign-key constraints", "generated always as identity"]),
        ("\\di shop.*", ["customer_pkey", "orders_customer_idx"]), ("\\ds shop.*", ["customer_id_seq"]),
        ("\\d+ shop.customer", ["extended"]), ("\\d shop.customer_pkey", ["primary key, btree"]),
        ("\\d shop.customer_id_seq", ["integer"]), ("\\du", ["postgres", "Superuser"]), ("\\dp shop.*", ["customer"]),
        ("\\df upper", ["upper"]), ("\\dT int*", []), ("\\dx", []), ("\\conninfo", ["postgres"]),
        ("\\encoding", ["UTF8"]), ("\\db", []), ("\\dC", []), ("\\do ||", []),
    ]:
        yield f"psql: {command}", described(command, *words)
    # Older ones ask pg_database for a column that PostgreSQL 17 renamed.
    if psql_version() >= 17:
        yield "psql: \\l", described("\\l", "postgres")
    yield "psql: \\d of a table, line by line", table_description
    yield "psql: errors point at their place", errors_point_at_their_place
    yield "psql: a script in one transaction", script_in_one_transaction
    yield "psql: \\copy there and back", copy_there_and_back
    yield "psql: variables and formats", variables_and_formats
    yield "psql: \\gexec", gexec
    yield "psql: another database", another_database
    yield "psql: ^C", interrupt
    yield "psql: pg_stat_activity", activity
    yield "psql: over the Unix socket", unix_socket
    yield "psql: a large result in pieces", large_results
    yield "psql: passwords", passwords
    yield "psql: EXPLAIN", explain
