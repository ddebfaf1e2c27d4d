"""Texts of values for each type, the odd ones first of all."""

INTS = [0, 1, -1, 2, 3, 7, 10, 42, 100, 255, 1000, 32767, -32768, 65536]
BIG = [2147483647, -2147483648, 4294967296, 9223372036854775807, -9223372036854775808]
TEXTS = ["", "a", "A", "abc", "abd", "Abc", " x ", "%", "_b%", "\\", "é", "日本", "a b c", "0", "1", "12.5", "true", "{}", "[1,2]", "null", "'", '"', "a,b", "foo bar foo", "x" * 40,
         "YYYY-MM-DD", "999.99", "(a|b)*c", "^a.*$", "\\d+", "[[:alpha:]]+", "hex", "utf8", "Europe/Rome", "day", "month", "epoch", "year", "hour", "g", "i", "UTC", "NFC", "base64", "md5"]
DATES = ["2024-02-29", "1999-12-31", "2000-01-01", "0001-01-01", "4713-01-01 BC", "5874897-12-31", "infinity", "-infinity", "1970-01-01", "2023-10-29", "2024-03-31"]
TIMES = ["00:00:00", "23:59:59.999999", "12:34:56.789", "24:00:00", "01:02:03"]
STAMPS = ["2024-02-29 12:34:56.789", "1999-12-31 23:59:59.999999", "infinity", "-infinity", "0001-01-01 00:00:00", "294276-12-31 23:59:59", "4713-01-01 00:00:00 BC", "2023-10-29 02:30:00",
          "1970-01-01 00:00:00"]
INTERVALS = ["1 day", "-1 mon 3 days 04:05:06", "0", "1 year 2 mons", "100000 years", "00:00:00.000001", "-178000000 years", "infinity", "-infinity", "2147483647 days", "1 mon -1 day"]
FLOATS = ["0", "-0", "1", "-1.5", "0.1", "1e308", "-1e308", "1e-307", "NaN", "Infinity", "-Infinity", "3.14159", "123456789.123", "2.5", "0.5"]
NUMERICS = ["0", "1", "-1", "0.1", "-2.50", "1e30", "1e-30", "NaN", "Infinity", "-Infinity", "99999999999999999999.9999", "0.00000000000000000001", "12345.678", "1e1000", "2.5", "3.5"]
JSON = ["null", "1", "-1.50", '"a"', "true", "[]", "{}", "[1,2,[3,null]]", '{"a":1,"b":{"c":[1,2,3]},"d":null}', '[{"a":1},{"a":"x"}]', '{"a":1,"a":2}', '"\\u00e9"', "1e400", '{"":""}']
PATHS = ["$", "$.a", "$[*]", "$.b.c[*] ? (@ > 1)", "strict $.x", "$.**", "$.a.size()", "$[0 to 2].a", 'lax $.d ? (@ == null)', "$.a + 1", '$ ? (@.a like_regex "^x")', "$[last]", "$.keyvalue()"]

OF_TYPE = {
    "boolean": ["t", "f"], "smallint": INTS[:-1], "integer": INTS + BIG[:2], "bigint": INTS + BIG, "oid": [0, 1, 16, 1259, 4294967295],
    "real": [f for f in FLOATS if "e" not in f], "double precision": FLOATS, "numeric": NUMERICS,
    "text": TEXTS, "character varying": TEXTS, "character": TEXTS, "name": TEXTS, '"char"': ["a", "", "z", "\\101"],
    "bytea": ["", "\\x00", "\\xdeadbeef", "abc", "\\x" + "ff" * 20], "date": DATES, "time without time zone": TIMES, "time with time zone": [t + z for t in TIMES for z in ("+00", "-08", "+05:30")],
    "timestamp without time zone": STAMPS, "timestamp with time zone": STAMPS + ["2024-02-29 12:00:00+05:30"], "interval": INTERVALS,
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "json": JSON, "jsonb": JSON, "jsonpath": PATHS,
    "bit": ["1", "0"], "bit varying": ["", "1", "0101", "1" * 70], "money": ["0", "1.50", "-$1,234.56", "92233720368547758.07"],
    "inet": ["127.0.0.1", "10.0.0.0/8", "::1", "fe80::/10"], "cidr": ["10.0.0.0/8", "::/0"], "macaddr": ["08:00:2b:01:02:03"], "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "pg_lsn": ["0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"], "xid": [0, 3, 4294967295], "xid8": [0, 3, 18446744073709551615], "cid": [0, 1], "tid": ["(0,1)", "(4294967295,65535)"],
    "regclass": ["pg_class", "pg_type", "0"], "regtype": ["int4", "text", "0"], "regproc": ["0", "now"], "regprocedure": ["0", "lower(text)"], "regnamespace": ["pg_catalog"], "regrole": ["postgres"],
    "regoper": ["0"], "regoperator": ["+(int4,int4)"], "point": ["(0,0)", "(1.5,-2)", "(NaN,1e300)"], "box": ["(1,1),(0,0)"], "lseg": ["[(0,0),(1,1)]"], "line": ["{1,-1,0}"],
    "path": ["((0,0),(1,1),(2,0))", "[(0,0),(1,1)]"], "polygon": ["((0,0),(1,1),(2,0))"], "circle": ["<(0,0),1>"],
    "int4range": ["[1,10)", "empty", "(,)", "[5,5]"], "int8range": ["[1,10)", "empty", "(,5]"], "numrange": ["[0.5,1.5]", "(,)"], "daterange": ["[2024-01-01,2024-02-01)"],
    "tsrange": ["[2024-01-01,2024-02-01)"], "tstzrange": ["[2024-01-01,2024-02-01)"], "int4multirange": ["{[1,3),[5,8)}", "{}"], "tsvector": ["'a':1 'b':2"], "tsquery": ["a & b"],
    "xml": ["<a/>"],
}
RANDOM = {
    "smallint": lambda r: r.randint(-200, 200), "integer": lambda r: r.randint(-20, 20) if r.random() < .7 else r.randint(-2**31, 2**31 - 1), "bigint": lambda r: r.randint(-2**63, 2**63 - 1),
    "numeric": lambda r: f"{r.randint(-10**r.randint(1, 12), 10**r.randint(1, 12))}.{r.randint(0, 10**r.randint(1, 6))}", "double precision": lambda r: repr(r.uniform(-1000, 1000)),
    "real": lambda r: f"{r.uniform(-100, 100):.3f}", "date": lambda r: f"{r.randint(1900, 2100)}-{r.randint(1, 12):02}-{r.randint(1, 28):02}",
    "timestamp without time zone": lambda r: f"{r.randint(1900, 2100)}-{r.randint(1, 12):02}-{r.randint(1, 28):02} {r.randint(0, 23):02}:{r.randint(0, 59):02}:{r.randint(0, 59):02}",
    "timestamp with time zone": lambda r: f"{r.randint(1900, 2100)}-{r.randint(1, 12):02}-{r.randint(1, 28):02} {r.randint(0, 23):02}:{r.randint(0, 59):02}:00{r.randint(-11, 12):+03}",
    "time without time zone": lambda r: f"{r.randint(0, 23):02}:{r.randint(0, 59):02}:{r.randint(0, 59):02}", "interval": lambda r: f"{r.randint(-50, 50)} days {r.randint(-99, 99)} minutes",
    "text": lambda r: "".join(r.choice("abcxyzAB _%0123é") for _ in range(r.randint(0, 8))), "oid": lambda r: r.randint(0, 20000),
    "bit varying": lambda r: "".join(r.choice("01") for _ in range(r.randint(0, 12))),
}


def quote(s):
    s = str(s)
    return ("E'" + s.replace("\\", "\\\\").replace("'", "''") + "'") if "\\" in s else "'" + s.replace("'", "''") + "'"


def plain(rng, type_):
    """A value's text, None where the type is not known here."""
    if type_.endswith("[]"):
        return array(rng, type_[:-2])
    if type_ in RANDOM and rng.random() < 0.5:
        return str(RANDOM[type_](rng))
    if type_ in OF_TYPE:
        return str(rng.choice(OF_TYPE[type_]))
    return None


def array(rng, type_):
    parts = []
    for _ in range(rng.choice([0, 1, 2, 3, 3, 5])):
        value = plain(rng, type_)
        if value is None or rng.random() < 0.15:
            parts.append("NULL")
        else:
            parts.append('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"')
    return "{" + ",".join(parts) + "}"


def literal(rng, type_):
    """A constant of the type as an expression."""
    if rng.random() < 0.06:
        return f"null::{type_}"
    if type_ == "boolean":
        return rng.choice(["true", "false", "true", "false", "null"])
    value = plain(rng, type_)
    if value is None:
        return f"null::{type_}"
    if type_ in ("integer", "bigint", "numeric") and rng.random() < 0.5 and value.lstrip("-").replace(".", "", 1).isdigit():
        return f"({value})" if value.startswith("-") else value
    if type_ == "text" and rng.random() < 0.3:
        return quote(value)
    return f"{quote(value)}::{type_}"
