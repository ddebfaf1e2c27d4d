--
-- PostgreSQL database dump
--



SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: shop; Type: SCHEMA; Schema: -; Owner: postgres
--

CREATE SCHEMA shop;


ALTER SCHEMA shop OWNER TO postgres;

--
-- Name: mood; Type: TYPE; Schema: shop; Owner: postgres
--

CREATE TYPE shop.mood AS ENUM (
    'sad',
    'ok',
    'happy'
);


ALTER TYPE shop.mood OWNER TO postgres;

--
-- Name: counter; Type: SEQUENCE; Schema: shop; Owner: postgres
--

CREATE SEQUENCE shop.counter
    START WITH 10
    INCREMENT BY 5
    NO MINVALUE
    MAXVALUE 1000
    CACHE 1
    CYCLE;


ALTER SEQUENCE shop.counter OWNER TO postgres;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: customer; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.customer (
    id integer NOT NULL,
    name character varying(40) NOT NULL,
    email text,
    balance numeric(10,2) DEFAULT 0,
    since date DEFAULT '2024-02-29'::date,
    feeling shop.mood DEFAULT 'ok'::shop.mood,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    doc jsonb,
    at timestamp with time zone DEFAULT now(),
    key uuid DEFAULT gen_random_uuid(),
    raw bytea,
    CONSTRAINT rich CHECK ((balance >= (0)::numeric))
);


ALTER TABLE shop.customer OWNER TO postgres;

--
-- Name: TABLE customer; Type: COMMENT; Schema: shop; Owner: postgres
--

COMMENT ON TABLE shop.customer IS 'who buys';


--
-- Name: COLUMN customer.name; Type: COMMENT; Schema: shop; Owner: postgres
--

COMMENT ON COLUMN shop.customer.name IS 'the full name';


--
-- Name: customer_id_seq; Type: SEQUENCE; Schema: shop; Owner: postgres
--

CREATE SEQUENCE shop.customer_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER SEQUENCE shop.customer_id_seq OWNER TO postgres;

--
-- Name: customer_id_seq; Type: SEQUENCE OWNED BY; Schema: shop; Owner: postgres
--

ALTER SEQUENCE shop.customer_id_seq OWNED BY shop.customer.id;


--
-- Name: orders; Type: TABLE; Schema: shop; Owner: postgres
--

CREATE TABLE shop.orders (
    id bigint NOT NULL,
    customer integer NOT NULL,
    note text,
    qty integer NOT NULL,
    price numeric(12,4),
    CONSTRAINT orders_qty_check CHECK ((qty > 0))
);


ALTER TABLE shop.orders OWNER TO postgres;

--
-- Name: orders_id_seq; Type: SEQUENCE; Schema: shop; Owner: postgres
--

ALTER TABLE shop.orders ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME shop.orders_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: customer id; Type: DEFAULT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.customer ALTER COLUMN id SET DEFAULT nextval('shop.customer_id_seq'::regclass);


--
-- Data for Name: customer; Type: TABLE DATA; Schema: shop; Owner: postgres
--

COPY shop.customer (id, name, email, balance, since, feeling, tags, doc, at, key, raw) FROM stdin;
1	Ann	a@x	10.00	2024-02-29	ok	{a,b}	{"k": 1}	2024-02-29 12:00:00+00	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	\N
2	Bob	\N	20.50	2024-02-29	ok	{}	\N	\N	\N	\N
\.


--
-- Data for Name: orders; Type: TABLE DATA; Schema: shop; Owner: postgres
--

COPY shop.orders (id, customer, note, qty, price) FROM stdin;
1	1	first	1	1.5000
2	2	\N	2	\N
\.


--
-- Name: counter; Type: SEQUENCE SET; Schema: shop; Owner: postgres
--

SELECT pg_catalog.setval('shop.counter', 10, false);


--
-- Name: customer_id_seq; Type: SEQUENCE SET; Schema: shop; Owner: postgres
--

SELECT pg_catalog.setval('shop.customer_id_seq', 2, true);


--
-- Name: orders_id_seq; Type: SEQUENCE SET; Schema: shop; Owner: postgres
--

SELECT pg_catalog.setval('shop.orders_id_seq', 2, true);


--
-- Name: customer customer_email_key; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.customer
    ADD CONSTRAINT customer_email_key UNIQUE (email);


--
-- Name: customer customer_pkey; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.customer
    ADD CONSTRAINT customer_pkey PRIMARY KEY (id);


--
-- Name: orders orders_customer_note_key; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.orders
    ADD CONSTRAINT orders_customer_note_key UNIQUE (customer, note);


--
-- Name: orders orders_pkey; Type: CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);


--
-- Name: orders_customer_idx; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE INDEX orders_customer_idx ON shop.orders USING btree (customer);


--
-- Name: orders_note; Type: INDEX; Schema: shop; Owner: postgres
--

CREATE INDEX orders_note ON shop.orders USING btree (note DESC NULLS LAST, qty);


--
-- Name: orders orders_customer_fkey; Type: FK CONSTRAINT; Schema: shop; Owner: postgres
--

ALTER TABLE ONLY shop.orders
    ADD CONSTRAINT orders_customer_fkey FOREIGN KEY (customer) REFERENCES shop.customer(id) ON DELETE CASCADE;


--
-- PostgreSQL database dump complete
--


