#!/usr/bin/env python3
"""Texts drawn by lot, taken apart by Throng and by PostgreSQL: tokens, lexemes, queries, headlines.

    tests/fuzz/text_search.py --throng HOST:PORT --postgresql HOST:PORT [--seconds N] [--seed N]
"""
import argparse
import random
import sys
import time

import psycopg

PIECES = (
    "a b foo bar Cats running the of 1 12 3.5 1.2.3 1e5 -7 +3 . , - _ / : @ & < > ! ? # = ' \" \\ ~ ( ) ; | * % "
    "foo.com www.example.org http:// https:// ftp:// example.com:8080 x@y.zz user.name@host.example.net "
    "/usr/local/bin ../up ./here ~/home file.txt C:/x index.html?a=1&b=2 &amp; &#38; &#x26; &nbsp <b> </b> <br/> "
    "<a-href='x'> <!-- --> <script> </script> <?xml é ü naïve Straße слово привет 中文 ½ ² e\u0301 foo-bar "
    "foo-bar-baz 12-foo foo-12 a1-b2 foo_bar _x x_ 192.168.0.1 v1.0-rc2 \t \n"
).split(" ") + [" ", " ", " ", "\u00a0"]
OPERATORS = ["&", "|", "!", "<->", "<2>", "(", ")", " ", ":*", ":A", ":*b", "'"]
STATEMENTS = [
    ("select tokid, token from ts_parse('default', %s)", "text"),
    ("select to_tsvector('english', %s)::text", "text"),
    ("select to_tsvector('russian', %s)::text", "text"),
    ("select plainto_tsquery('english', %s)::text", "text"),
    ("select phraseto_tsquery('english', %s)::text", "text"),
    ("select websearch_to_tsquery('english', %s)::text", "web"),
    ("select to_tsquery('english', %s)::text", "query"),
    ("select %s::tsquery::text", "query"),
    ("select %s::tsvector::text", "vector"),
]
WORDS = "cat cats dog dogs run running fat rats the a of bird birds sat mat".split()


def text(draw):
    return "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 12)))


def words(draw, n):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, n)))


def query(draw, depth=0):
    if depth > 3 or draw.random() < 0.4:
        return draw.choice(WORDS) + draw.choice(["", "", "", ":*", ":A", ":BC"])
    if draw.random() < 0.2:
        return "!" + query(draw, depth + 1)
    operator = draw.choice([" & ", " | ", " <-> ", " <2> "])
    return "(" + query(draw, depth + 1) + operator + query(draw, depth + 1) + ")"


def statement(draw):
    kind = draw.random()
    if kind < 0.5:
        sql, of = draw.choice(STATEMENTS)
        if of == "text":
            return sql, (text(draw),)
        if of == "web":
            parts = [draw.choice(WORDS + ['"', "-", " or ", " OR ", " ", " "]) for _ in range(draw.randint(1, 10))]
            return sql, (" ".join(parts),)
        if of == "vector":
            parts = [draw.choice(WORDS + [":1", ":2A,3", "'", "\\", "''", ":0", ":b", " "]) for _ in range(6)]
            return sql, ("".join(parts),)
        parts = [draw.choice(WORDS + OPERATORS) for _ in range(draw.randint(1, 8))]
        return sql, ("".join(parts),)
    document, wanted = words(draw, 30), query(draw)
    if kind < 0.65:
        return "select to_tsvector('english', %s) @@ to_tsquery('english', %s)", (document, wanted)
    if kind < 0.75:
        sql = "select setweight(to_tsvector('simple', %s), 'A') || to_tsvector('simple', %s) @@ %s::tsquery"
        return sql, (document, words(draw, 9), wanted)
    if kind < 0.85:
        sql = "select round({}(to_tsvector('english', %s), to_tsquery('english', %s), %s)::numeric, 5)"
        return sql.format(draw.choice(["ts_rank", "ts_rank_cd"])), (document, wanted, draw.randint(0, 63))
    if kind < 0.9:
        sql = "select querytree(%s::tsquery), numnode(%s::tsquery), (%s::tsquery && %s::tsquery)::text"
        return sql, (wanted, wanted, wanted, query(draw))
    options = "MaxWords={}, MinWords={}, ShortWord={}, MaxFragments={}, HighlightAll={}".format(
        draw.randint(4, 12), draw.randint(1, 3), draw.randint(0, 4), draw.choice([0, 0, 1, 2, 3]),
        draw.choice(["false", "false", "true"]))
    sql = "select ts_headline('english', %s, to_tsquery('english', %s), %s)"
    return sql, (document + ". " + text(draw) + " " + words(draw, 20), wanted, options)


def answer(connection, sql, args):
    try:
        return connection.execute(sql, args).fetchall()
    except psycopg.Error as error:
        return [error.sqlstate, str(error).split("\n")[0]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--throng", required=True)
    parser.add_argument("--postgresql", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    args = parser.parse_args()
    draw = random.Random(args.seed)
    print("seed", args.seed)
    connections = []
    for at in (args.throng, args.postgresql):
        host, port = at.split(":")
        connections.append(psycopg.connect(
            host=host, port=port, user="postgres", dbname="postgres", autocommit=True, client_encoding="utf8"))
    until, asked, differ = time.monotonic() + args.seconds, 0, 0
    while time.monotonic() < until:
        sql, values = statement(draw)
        ours, theirs = (answer(connection, sql, values) for connection in connections)
        asked += 1
        if ours != theirs:
            differ += 1
            if differ <= 40:
                print(f"{sql}\n  {values!r}\n  ours   {ours!r}\n  theirs {theirs!r}")
    print(f"{asked} asked, {differ} differ")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
