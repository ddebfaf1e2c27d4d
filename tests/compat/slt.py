"""sqllogictest files: records of SQL with the results they must give."""

import hashlib
import os
import time
from decimal import Decimal

import psycopg

from regress import Result

ENGINE = "postgresql"


def files(folder):
    found = []
    for root, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(root, name), folder) for name in names if name.endswith(".test")]
    return sorted(found)


def records(path):
    """Blocks of lines between empty ones, without comments."""
    block = []
    with open(path, encoding="utf8", errors="replace") as file:
        for line in file:
            line = line.rstrip("\n")
            if line.strip():
                if not line.startswith("#"):
                    block.append(line)
            elif block:
                yield block
                block = []
    if block:
        yield block


def shown(value, kind):
    """A value as the format wants it: I an integer, R three decimals, T text."""
    if value is None:
        return "NULL"
    if kind == "I":
        if isinstance(value, (bool, int, float, Decimal)):
            return str(int(value))
        try:
            return str(int(float(value)))
        except ValueError:
            return "0"
    if kind == "R":
        return f"{float(value):.3f}"
    return str(value) or "(empty)"


def meant_for_us(block):
    """The record without its conditions, or None if they exclude this engine."""
    while block and block[0].startswith(("skipif", "onlyif")):
        condition, engine = block[0].split()[:2]
        if (condition == "skipif") == (engine == ENGINE):
            return None
        block = block[1:]
    return block


def statement(cursor, header, body):
    try:
        cursor.execute("\n".join(body).encode())
    except psycopg.Error as e:
        return None if header[1] == "error" else f"error: {e}"
    return None if header[1] == "ok" else "no error"


def query(cursor, header, body):
    kinds = header[1]
    order = header[2] if len(header) > 2 else "nosort"
    split = body.index("----") if "----" in body else len(body)
    expected = body[split + 1:]
    try:
        cursor.execute("\n".join(body[:split]).encode())
        found = cursor.fetchall()
    except psycopg.Error as e:
        return f"error: {e}"
    rows = [[shown(value, kinds[i] if i < len(kinds) else "T") for i, value in enumerate(row)] for row in found]
    if order == "rowsort":
        rows.sort()
    values = [value for row in rows for value in row]
    if order == "valuesort":
        values.sort()
    if split == len(body) or values == expected:
        return None
    if len(expected) == 1 and "values hashing to" in expected[0]:
        words = expected[0].split()
        digest = hashlib.md5(("\n".join(values) + "\n").encode()).hexdigest()
        if (int(words[0]), words[4]) == (len(values), digest):
            return None
    return f"rows: {values[:6]} of {len(values)}, not {expected[:6]}"


class Suite:
    def __init__(self, target, folder, out):
        self.target = target
        self.folder = folder
        os.makedirs(out, exist_ok=True)

    def connect(self):
        connection = psycopg.connect(self.target.dsn(), autocommit=True)
        return connection, connection.cursor()

    def run(self, name):
        """`pairs`: (SQL, what was wrong) of each record that failed; `fails`: their numbers, from 1."""
        result = Result(name, fails=[])
        began = time.monotonic()
        connection, cursor = self.connect()
        cursor.execute("drop schema if exists public cascade")
        cursor.execute("create schema public")
        for block in records(os.path.join(self.folder, name)):
            block = meant_for_us(block)
            if not block:
                continue
            header = block[0].split()
            if header[0] == "halt":
                break
            if header[0] not in ("statement", "query"):
                continue
            result.of += 1
            wrong = (statement if header[0] == "statement" else query)(cursor, header, block[1:])
            if wrong is None:
                result.agree += 1
                continue
            sql = " ".join(block[1:block.index("----") if "----" in block else None])
            result.pairs.append((sql, wrong))
            result.fails.append(result.of)
            if "statement timeout" in wrong:
                result.hangs.append(sql)
            if connection.closed:
                result.lost.append(sql)
                result.faults += self.target.look()
                connection, cursor = self.connect()
        connection.close()
        result.whole = result.agree == result.of
        result.seconds = time.monotonic() - began
        result.faults += self.target.look()
        return result
