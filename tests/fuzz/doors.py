"""What a role may do: the same statements and functions as several roles, over objects of several owners, on a server and on a PostgreSQL.

    python3 tests/fuzz/doors.py HOST:PORT POSTGRES_HOST:PORT

Each statement runs in a transaction that is rolled back. What one allows and the other refuses is told, as is a refusal of another
kind (SQLSTATE). Both servers need a superuser `postgres` who is let in without a password; a database `doors` is made anew in each.
"""

import sys

from wire import Connection

ROLES = ["postgres", "d_owner", "d_member", "d_granted", "d_stranger", "d_monitor", "d_reader", "d_writer", "d_maintainer", "d_creator", "d_dbcreator"]

SETUP = """
create role d_owner login; create role d_member login in role d_owner; create role d_granted login; create role d_stranger login;
create role d_monitor login in role pg_monitor; create role d_reader login in role pg_read_all_data; create role d_writer login in role pg_write_all_data;
create role d_maintainer login in role pg_maintain; create role d_creator login createrole; create role d_dbcreator login createdb; create role d_other;
create schema s authorization d_owner; create schema closed authorization d_owner;
grant usage on schema s to public; grant create on schema s to d_granted
""".strip().split(";")

OBJECTS = """
create table s.t (a int primary key, b text, c int default 0); insert into s.t values (1, 'x', 2); create table s.u (a int references s.t); create table closed.t (a int);
create view s.v as select * from s.t; create view s.w as select * from closed.t; create materialized view s.m as select * from s.t; create unique index mi on s.m (a);
create sequence s.q; create type s.e as enum ('a', 'b'); create domain s.d as int; create type s.c as (x int);
create function s.f(x int) returns int language sql as 'select x'; create function s.definer() returns bigint language sql security definer as 'select count(*) from closed.t';
create procedure s.p() language plpgsql as $$begin end$$; create function s.tf() returns trigger language plpgsql as $$begin return new; end$$;
create trigger tr before insert on s.t for each row execute function s.tf(); create index ti on s.t (b); create table s.parts (a int) partition by range (a); create table s.part1 partition of s.parts for values from (0) to (10);
revoke execute on function s.f(int) from public; revoke usage on type s.d from public;
grant select (a), update (c), references (a), insert (a, b) on s.t to d_granted; grant select on s.v, s.w, s.m to d_granted; grant usage on sequence s.q to d_granted; grant execute on function s.f(int) to d_granted; grant trigger, truncate, maintain on s.u to d_granted
""".strip()

STATEMENTS = """
select * from s.t; select a from s.t; select count(*) from s.t; select b from s.t; select 1 from s.t; select ctid from s.t; select s.t from s.t; select * from s.v; select * from s.w; select * from s.m; select * from closed.t; select last_value from s.q;
select nextval('s.q'); select currval('s.q'); select setval('s.q', 5); select s.f(1); select s.definer(); call s.p(); select 'a'::s.e; select 1::s.d; select row(1)::s.c;
insert into s.t values (2); insert into s.t (a, b) values (2, 'y'); insert into s.t (a) values (2) returning a; insert into s.t (a) values (2) returning b; insert into s.t (a) values (1) on conflict do nothing; insert into s.t (a) values (1) on conflict (a) do update set c = 1;
update s.t set c = 1; update s.t set b = 'z'; update s.t set c = a; update s.t set c = 1 where a = 1; update s.t set c = 1 where b = 'x'; update s.v set c = 1; delete from s.t; delete from s.t where a = 1; delete from s.v; truncate s.u; truncate s.t cascade;
merge into s.t using (values (1)) v (x) on a = x when matched then update set c = 2; merge into s.t using (values (1)) v (x) on a = x when matched then delete;
select a from s.t for update; select a from s.t for share; lock table s.t; lock table s.t in access share mode; lock table s.t in row exclusive mode; lock table s.v in access share mode;
copy s.t to stdout; copy s.t (a) to stdout; copy (select b from s.t) to stdout; copy s.t to '/tmp/doors_copy'; copy s.t from program 'true'; explain select * from s.t; explain select a from s.t; prepare p as select * from s.t;
analyze s.t; analyze s.u; reindex table s.t; reindex table s.u; reindex index s.ti; cluster s.t using ti; refresh materialized view s.m; refresh materialized view concurrently s.m;
create table s.n (a int); create table closed.n (a int); create table public.n (a int); create temp table n (a int); create view s.nv as select * from s.t; create view s.nv as select 1; create or replace view s.v as select * from s.t; create materialized view s.nm as select a from s.t;
create index on s.t (c); create unique index on s.u (a); create sequence s.nq; create type s.ne as enum ('x'); create domain s.nd as s.d; create domain s.nd as int; create function s.nf() returns int language sql as 'select 1'; create function s.nf() returns int language c as 'x', 'y'; create function s.nf() returns int language internal as 'int4pl'; create procedure s.np() language sql as 'select 1';
create or replace function s.f(x int) returns int language sql as 'select 2'; create trigger n before insert on s.t for each row execute function s.tf(); create trigger n before insert on s.u for each row execute function s.tf(); create table s.n (a int references s.t); create table s.n (a int references s.t (b)); create table s.n (like s.t); create table s.n () inherits (s.t); create table s.n (a s.d); create table s.n (a s.e); create table s.n partition of s.parts for values from (10) to (20); create table s.n as select * from s.t; create table s.n as select a from s.t;
alter table s.t add x int; alter table s.t drop column c; alter table s.t rename to n; alter table s.t rename a to z; alter table s.t owner to d_other; alter table s.t owner to d_owner; alter table s.t owner to d_member; alter table s.t set schema public; alter table s.t disable trigger tr; alter table s.t disable trigger all; alter table s.t enable row level security; alter table s.t alter b set default 'x'; alter table s.t add check (a > 0); alter table s.t set (fillfactor = 50); alter table s.parts detach partition s.part1;
alter view s.v rename to n; alter view s.v owner to d_other; alter sequence s.q restart; alter sequence s.q owner to d_other; alter type s.e add value 'c'; alter type s.e rename to n; alter type s.e owner to d_other; alter domain s.d set not null; alter function s.f(int) rename to n; alter function s.f(int) owner to d_other; alter function s.f(int) security definer; alter function s.f(int) leakproof; alter schema s rename to n; alter schema s owner to d_other; alter index s.ti rename to n; alter materialized view s.m rename to n; alter trigger tr on s.t rename to n; alter procedure s.p() rename to n;
drop table s.u; drop table s.t cascade; drop view s.v; drop materialized view s.m; drop sequence s.q; drop type s.e; drop domain s.d; drop function s.f(int); drop procedure s.p(); drop schema s cascade; drop schema closed cascade; drop index s.ti; drop trigger tr on s.t; drop owned by d_owner; drop owned by d_granted; drop owned by d_stranger; reassign owned by d_owner to d_other; reassign owned by d_stranger to d_owner; drop role d_other; drop role d_owner;
comment on table s.t is 'x'; comment on column s.t.a is 'x'; comment on schema s is 'x'; comment on function s.f(int) is 'x'; comment on type s.e is 'x'; comment on database doors is 'x'; comment on role d_other is 'x'; comment on view s.v is 'x'; comment on sequence s.q is 'x'; comment on index s.ti is 'x'; comment on trigger tr on s.t is 'x';
grant select on s.t to d_other; grant select (a) on s.t to d_other; grant all on s.t to d_other; revoke select on s.t from d_granted; grant usage on schema s to d_other; grant execute on function s.f(int) to d_other; grant usage on type s.d to d_other; grant usage on sequence s.q to d_other; grant connect on database doors to d_other; grant all on all tables in schema s to d_other; grant d_owner to d_other; grant d_other to d_owner; revoke d_owner from d_member; grant pg_monitor to d_other; grant usage on language plpgsql to d_other; grant set on parameter work_mem to d_other; alter default privileges grant select on tables to d_other; alter default privileges for role d_owner grant select on tables to d_other; alter default privileges in schema s grant select on tables to d_other;
create role d_new; create role d_new superuser; create role d_new createrole; create role d_new createdb; create role d_new replication; create role d_new bypassrls; create role d_new login password 'x'; create role d_new in role d_owner; create role d_new role d_owner; alter role d_other superuser; alter role d_other createdb; alter role d_other login; alter role d_other password 'x'; alter role d_other rename to d_n; alter role d_other set work_mem = '1MB'; alter role d_other connection limit 3; alter role d_other valid until 'infinity'; alter role postgres nologin; alter role postgres set work_mem = '1MB'; alter role all set work_mem = '1MB'; alter role current_user set work_mem = '2MB'; alter role current_user password 'x'; alter role current_user createdb; alter role current_user set log_statement = 'all'; alter role current_user valid until 'infinity'; alter role current_user rename to d_n;
alter database doors set work_mem = '1MB'; alter database doors rename to d_n; alter database doors owner to d_other; alter database doors connection limit 3; alter system set work_mem = '1MB';
set role d_owner; set role d_other; set role postgres; set role none; set session authorization d_owner; set session authorization postgres; set session authorization default; set work_mem = '1MB'; set log_statement = 'all'; set session_replication_role = 'replica'; set max_connections = 3; set deadlock_timeout = '1s'; set log_min_duration_statement = 0; set log_min_messages = 'error'; set log_connections = 'on'; set is_superuser = 'on'; set role 'none'; reset role; reset all; reset session authorization; select set_config('role', 'd_owner', true); select set_config('log_statement', 'all', true); select set_config('session_authorization', 'postgres', true); set local role d_owner; set transaction_timeout = 100; set my.own = 1; set lc_messages = 'C'; set zero_damaged_pages = on; show log_directory; show config_file; show data_directory; show hba_file; select current_setting('data_directory');
checkpoint; discard plans; listen x; notify x; load 'plpgsql'; do $$begin perform 1; end$$; do language plpgsql $$begin execute 'select b from s.t'; end$$;
select * from pg_authid; select rolpassword from pg_authid; select rolpassword from pg_roles; select * from pg_shadow; select * from pg_user_mapping; select * from pg_statistic; select count(*) from pg_stats where schemaname = 's'; select * from pg_subscription; select * from pg_hba_file_rules; select * from pg_file_settings; select * from pg_config; select * from pg_largeobject; select query from pg_stat_activity where pid <> pg_backend_pid() limit 1; update pg_class set relname = 'x' where false; delete from pg_proc where false; insert into pg_namespace select * from pg_namespace where false; select * from pg_stat_ssl; select * from pg_prepared_xacts; select * from pg_db_role_setting; select * from pg_backend_memory_contexts; select * from pg_shmem_allocations; select count(*) from pg_stat_wal_receiver;
select has_table_privilege('s.t', 'select'); select has_table_privilege('d_owner', 's.t', 'select'); select pg_has_role('d_owner', 'usage'); select has_column_privilege('s.t', 'a', 'select'); select has_schema_privilege('closed', 'usage'); select has_function_privilege('s.f(int)', 'execute'); select has_type_privilege('s.d', 'usage'); select has_sequence_privilege('s.q', 'usage'); select has_database_privilege('doors', 'create'); select 's.t'::regclass; select 'closed.t'::regclass; select to_regclass('closed.t'); select pg_get_viewdef('s.v'); select pg_get_functiondef('s.f(int)'::regprocedure); select pg_table_size('closed.t'); select pg_relation_size('s.t'); select pg_database_size('doors'); select pg_database_size('postgres'); select pg_tablespace_size('pg_default'); select row_security_active('s.t'); select pg_stat_get_live_tuples('s.t'::regclass); select pg_sequence_last_value('s.q'); select pg_get_sequence_data('s.q'); select pg_cancel_backend(0); select pg_terminate_backend(0); select pg_cancel_backend((select pid from pg_stat_activity where usename = 'postgres' and pid <> pg_backend_pid() limit 1));
""".strip()

# Those that would wait, end something, or leave something behind that no rollback takes back.
NEVER = {"pg_sleep", "pg_sleep_for", "pg_sleep_until", "pg_reload_conf", "pg_rotate_logfile", "pg_switch_wal", "pg_promote", "pg_backup_start", "pg_backup_stop", "lo_import", "lo_export", "pg_nextoid", "pg_stop_making_pinned_objects",
         "pg_wal_replay_pause", "pg_wal_replay_resume", "pg_stat_reset", "pg_stat_reset_shared", "pg_log_backend_memory_contexts", "pg_get_process_memory_contexts"}


def pieces(text):
    """Statements of a text; a `;` between `$$` ends none."""
    parts, inside = [""], False
    for chunk in text.split("$$"):
        if inside:
            parts[-1] += "$$" + chunk + "$$"
        else:
            first, *rest = chunk.split(";")
            parts[-1] += first
            parts += rest
        inside = not inside
    return [part.strip() for part in parts if part.strip()]


class Side:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.address = (host, int(port))
        admin = Connection(self.address)
        admin.query("drop database if exists doors")
        for role in ROLES[1:] + ["d_other"]:
            admin.query(f"drop owned by {role}")
            admin.query(f"drop role if exists {role}")
        self.must(admin, "create database doors")
        top = Connection(self.address, database="doors")
        for sql in SETUP:
            self.must(top, sql)
        owner = Connection(self.address, user="d_owner", database="doors")
        for sql in pieces(OBJECTS):
            self.must(owner, sql)
        self.connections = {}

    @staticmethod
    def must(connection, sql):
        answer = connection.query(sql)[-1]
        if answer.error:
            raise SystemExit(f"{connection.address}: {sql}: {answer.message}")

    def ask(self, role, sql):
        """The SQLSTATE of a statement, or 00000 and what it gave where that is one value."""
        connection = self.connections.get(role)
        if connection is None:
            connection = self.connections[role] = Connection(self.address, user=role, database="doors")
        connection.query("begin")
        answer = connection.query(sql)[-1]
        connection.query("rollback; reset session authorization; discard plans; deallocate all; unlisten *")
        if answer.error:
            return answer.state, answer.message
        rows = answer.rows if len(answer.rows) == 1 and len(answer.rows[0]) == 1 and sql.startswith(("select has_", "select pg_has", "select row_sec")) else None
        return "00000", rows


def calls(side):
    """Calls of functions that not everybody may run, or that look at who runs them; each argument is NULL, or such that there is none."""
    sql = """select p.oid::regprocedure::text, proname, array_to_string(array(select 'null::' || t::regtype from unnest(proargtypes) t), ', ') from pg_proc p
             where pronamespace = 'pg_catalog'::regnamespace and prokind = 'f' and prorettype not in ('trigger'::regtype, 'internal'::regtype) and not proisstrict is null
             and (proacl is not null or proname ~ '^(pg_|lo_|has_|txid_|currtid)') and not 'internal'::regtype = any(proargtypes) order by 1"""
    for name, plain, args in ((row[0], row[1], row[2]) for row in side.connections["postgres"].query(sql)[-1].rows):
        decoded = [x.decode() if isinstance(x, bytes) else x for x in (name, plain, args)]
        if decoded[1] not in NEVER and not decoded[1].startswith(("binary_upgrade", "pg_advisory", "pg_replication")):
            yield f"select {decoded[1]}({decoded[2]})"


def main(ours, theirs):
    here, there = Side(ours), Side(theirs)
    there.ask("postgres", "select 1")
    statements = pieces(STATEMENTS) + list(calls(there))
    differences = compared = 0
    for sql in statements:
        for role in ROLES:
            (mine, said), (right, told) = here.ask(role, sql), there.ask(role, sql)
            compared += 1
            if mine == right and (mine != "00000" or said == told):
                continue
            # What there is not is no door.
            if mine in ("42883", "0A000", "42601", "42704", "42P01") and right != "42501":
                continue
            differences += 1
            kind = "OPEN" if right == "42501" and mine == "00000" else "SHUT" if mine == "42501" and right == "00000" else "OTHER"
            print(f"{kind} {role}: {sql[:150]}\n    here {mine} {said}; there {right} {told}", flush=True)
    print(f"{compared} compared, {differences} differ")
    return differences > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
