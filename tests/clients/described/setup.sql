create schema shop;
create type shop.mood as enum ('sad', 'ok', 'happy');
create table shop.customer (
    id serial primary key, name varchar(40) not null, email text unique, balance numeric(10,2) default 0, since date default '2024-02-29', feeling shop.mood default 'ok',
    tags text[] not null default '{}', doc jsonb, at timestamptz default now(), key uuid default gen_random_uuid(), raw bytea, constraint rich check (balance >= 0));
comment on table shop.customer is 'who buys';
comment on column shop.customer.name is 'the full name';
create table shop.orders (
    id bigint generated always as identity primary key, customer int not null references shop.customer on delete cascade, note text,
    qty int not null check (qty > 0), price numeric(12,4), unique (customer, note));
create index on shop.orders (customer);
create index orders_note on shop.orders (note desc nulls last, qty);
create sequence shop.counter start 10 increment 5 maxvalue 1000 cycle;
insert into shop.customer (name, email, balance, tags, doc, at, key) values
    ('Ann', 'a@x', 10, '{a,b}', '{"k": 1}', '2024-02-29 12:00+00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), ('Bob', null, 20.50, '{}', null, null, null);
insert into shop.orders (customer, note, qty, price) values (1, 'first', 1, 1.5), (2, null, 2, null);
