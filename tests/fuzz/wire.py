"""PostgreSQL's protocol, version 3, spoken over a plain socket: what a fuzzer needs and drivers hide.

Every read has a deadline. `Slow` is raised when it passes, `Lost` when the server closes; after either the connection is of no use but
for `cancel`.
"""

import re
import socket
import struct
import time
from dataclasses import dataclass, field

KEPT_ROWS = 20000  # of an answer; more are counted and forgotten


class Lost(Exception):
    """The server closed the connection."""


class Unasked(Exception):
    """An answer to nothing."""


class Slow(Exception):
    """No answer before the deadline."""


@dataclass
class Answer:
    """What one statement was answered with."""

    tag: str = None
    names: list = None
    types: list = None
    rows: list = field(default_factory=list)
    count: int = 0
    error: dict = None

    @property
    def state(self):
        return self.error["C"] if self.error else None

    @property
    def message(self):
        return self.error["M"] if self.error else None


def message(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


def text(s):
    return s.encode("utf8", "surrogateescape").replace(b"\0", b"?") + b"\0"


class Connection:
    def __init__(self, address, user="postgres", database="postgres", options="", patience=20):
        self.address = address
        self.socket = socket.create_connection(address, timeout=patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.key = None
        self.status = "I"
        self.until = time.monotonic() + patience
        body = struct.pack("!I", 196608)
        for name, value in [("user", user), ("database", database), ("client_encoding", "UTF8"), ("options", options)]:
            body += text(name) + text(value)
        body += b"\0"
        self.socket.sendall(struct.pack("!I", len(body) + 4) + body)
        answers = self.collect()
        if answers and answers[-1].error:
            raise Lost(answers[-1].message)

    # Bytes

    def send(self, data):
        try:
            self.socket.settimeout(max(self.until - time.monotonic(), 0.01))
            self.socket.sendall(data)
        except TimeoutError as e:
            raise Slow("while sending") from e
        except OSError as e:
            raise Lost(str(e)) from e

    def take(self, n):
        while len(self.buffer) < n:
            left = self.until - time.monotonic()
            if left <= 0:
                raise Slow("no answer")
            self.socket.settimeout(left)
            try:
                got = self.socket.recv(262144)
            except TimeoutError as e:
                raise Slow("no answer") from e
            except OSError as e:
                raise Lost(str(e)) from e
            if not got:
                raise Lost("the server closed the connection")
            self.buffer += got
        data = bytes(self.buffer[:n])
        del self.buffer[:n]
        return data

    def read(self):
        head = self.take(5)
        return head[:1], self.take(struct.unpack("!I", head[1:])[0] - 4)

    # Statements

    def must_be_idle(self):
        """Between statements only what nobody asked for comes: notices, settings, notifications."""
        while True:
            if not self.buffer:
                self.socket.setblocking(False)
                try:
                    self.buffer += self.socket.recv(65536)
                except OSError:
                    return
                if not self.buffer:
                    return
            kind, body = self.read()
            if kind not in (b"N", b"S", b"A"):
                raise Unasked(f"{kind} {body[:60]}")

    def collect(self, copy_data=b"", sync=b""):
        """The answers up to ReadyForQuery. `sync`: what follows COPY's data, as a Sync before it is passed over."""
        answers, now, copied = [], Answer(), False
        while True:
            kind, body = self.read()
            if kind == b"T":
                now.names, now.types = described(body)
            elif kind == b"D":
                now.count += 1
                if len(now.rows) < KEPT_ROWS:
                    now.rows.append(row(body))
            elif kind == b"C":
                now.tag = body[:-1].decode(errors="replace")
                answers.append(now)
                now = Answer()
            elif kind in (b"I", b"s"):
                now.tag = "empty" if kind == b"I" else "suspended"
                answers.append(now)
                now = Answer()
            elif kind == b"E":
                now.error = fields(body)
                answers.append(now)
                now = Answer()
                if self.key is None:
                    return answers
            elif kind == b"G":
                copied = True
                self.send(message(b"d", copy_data) + message(b"c") + sync)
            elif kind == b"W":
                self.send(message(b"f", text("no data")) + sync)
            elif kind == b"d":
                now.count += 1
            elif kind == b"K":
                self.key = body
            elif kind == b"Z":
                self.status = body.decode()
                if copied and sync and any(a.error for a in answers):
                    self.settle()
                return answers
            elif kind == b"R" and body[:4] != b"\0\0\0\0":
                raise Lost("the server asks for a password")

    def settle(self):
        """A COPY that failed before it read its data has met the Sync that was sent before them, and there is one more to answer."""
        try:
            self.socket.settimeout(0.2)
            self.buffer += self.socket.recv(65536)
        except OSError:
            return
        while self.buffer:
            self.status = self.read()[1].decode(errors="replace")

    def start(self, sql, patience):
        """Sends a statement; `collect` reads the answer."""
        self.until = time.monotonic() + patience
        self.must_be_idle()
        self.send(message(b"Q", text(sql)))

    def query(self, sql, patience=20, copy_data=b""):
        self.start(sql, patience)
        return self.collect(copy_data)

    def extended(self, sql, patience=20, *, parameters=(), types=(), formats=(), results=(), limit=0, name="", describe=True):
        """Parse, Bind, Describe, Execute and Sync, in whatever numbers the caller gives. Parameters are bytes or None."""
        self.until = time.monotonic() + patience
        self.must_be_idle()
        if re.search(r"\bstd(in|out)\b", sql, re.IGNORECASE):  # what follows Execute would be an error within COPY, and its Sync this one's
            name, limit = "", 0
        data = message(b"P", text(name) + text(sql) + struct.pack("!H", len(types)) + b"".join(struct.pack("!I", t) for t in types))
        body = text("") + text(name) + struct.pack("!H", len(formats)) + b"".join(struct.pack("!H", f) for f in formats)
        body += struct.pack("!H", len(parameters))
        for p in parameters:
            body += struct.pack("!i", -1) if p is None else struct.pack("!I", len(p)) + p
        body += struct.pack("!H", len(results)) + b"".join(struct.pack("!H", f) for f in results)
        data += message(b"B", body)
        if describe:
            data += message(b"D", b"P" + text(""))
        data += message(b"E", text("") + struct.pack("!I", limit))
        if limit:
            data += message(b"E", text("") + struct.pack("!I", limit))
        if name:
            data += message(b"C", b"S" + text(name))
        self.send(data + message(b"S"))
        return self.collect(sync=message(b"S"))

    def cancel(self):
        with socket.create_connection(self.address, timeout=10) as other:
            other.sendall(struct.pack("!II", 12 + len(self.key) - 4, 80877102) + self.key)
            other.settimeout(10)
            try:
                other.recv(1)
            except OSError:
                pass

    def close(self):
        try:
            self.socket.close()
        except OSError:
            pass


def described(body):
    names, types, at = [], [], 2
    for _ in range(struct.unpack_from("!H", body)[0]):
        end = body.index(b"\0", at)
        names.append(body[at:end].decode(errors="replace"))
        types.append(struct.unpack_from("!I", body, end + 7)[0])
        at = end + 19
    return names, types


def row(body):
    values, at = [], 2
    for _ in range(struct.unpack_from("!H", body)[0]):
        n = struct.unpack_from("!i", body, at)[0]
        at += 4
        if n < 0:
            values.append(None)
        else:
            values.append(body[at:at + n])
            at += n
    return tuple(values)


def fields(body):
    found = {"C": "", "M": ""}
    for part in body.split(b"\0"):
        if part:
            found[chr(part[0])] = part[1:].decode(errors="replace")
    return found
