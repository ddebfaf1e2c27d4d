set timezone to 'UTC';
select 1 as a, 'x'::text as b, 2.5::numeric(5,2) as c, now() as d, '{1}'::int[] as e, '{}'::jsonb as f, 'ok'::shop.mood as g, null as h \gdesc
select v as row, w as col, v*w from generate_series(1,3) v, generate_series(1,3) w \crosstabview
select i from generate_series(1,2) i \watch i=0.01 c=2
\copy shop.orders to stdout csv header
\copy (select id, name from shop.customer order by 1) to stdout
\set VERBOSITY default
\set SHOW_CONTEXT always
insert into shop.orders (customer, qty) values (99, 1);
insert into shop.orders (customer, qty) values (1, 0);
\set VERBOSITY sqlstate
insert into shop.customer (name, balance) values ('x', -1);
delete from nosuch;
select nosuch;
\set VERBOSITY default
\x auto
select * from shop.customer order by id;
\x on
select id, name from shop.customer order by id;
\x off
\pset null NULL
select * from shop.orders order by id;
select 1 \; select 2 \; select 3;
begin; savepoint a; select 1/0; rollback to a; select 1; commit;
select $1::int + 1 \bind 5 \g
select $1::int \parse st1
\bind_named st1 7 \g
\close_prepared st1
\startpipeline
select 1 \bind \sendpipeline
select $1::int \bind 4 \sendpipeline
\endpipeline
\set FETCH_COUNT 2
select i from generate_series(1,5) i;
\unset FETCH_COUNT
select format('select %s', i) from generate_series(1,2) i \gexec
values (1,'a'),(2,'b') \gx
select * from shop.orders order by id;
select * from shop.customer where id = 1 \gset got_
\echo :got_name :got_balance :{?got_raw}
\set ON_ERROR_ROLLBACK on
begin; select 1/0; select 2; commit;
\if false
select 1;
\else
select 'else';
\endif
copy shop.orders (customer, note, qty) from stdin;
1	copied	5
\.
copy shop.orders (customer, note, qty) from stdin;
1	copied	x
\.
create table shop.orders (a int);
drop table if exists shop.nosuch;
