"""Messages that no client should send. Whatever comes, the server answers or closes, and goes on with the others."""

import socket
import struct

from wire import Connection, Lost, Slow, message, text

LENGTHS = [0, 1, 3, 4, 5, 7, 8, 255, 65536, 2**20, 2**30, 2**31 - 1, 2**31, 2**32 - 1]
COUNTS = [0, 1, 2, 3, 255, 32767, 32768, 65535]
QUERIES = ["select 1", "", ";;", "select $1::int", "select generate_series(1, 1000)", "begin", "rollback", "copy (select 1) to stdout", "create temp table if not exists pt (i int, t text)", "copy pt from stdin", "select '", "\0", "select $1",
           "copy pt from stdin (format binary)", "declare c cursor for select 1", "insert into pt values ($1, $2)", "select 1; select 2", "set search_path = ''", "select * from pg_class", "select $1::text, $2::jsonb, $3::timestamptz",
           "select $65535", "select $1::int[]", "select $1::numeric", "select row($1::int, $2::text)", "\xff\xfe", "x" * 5000, "(" * 3000, "select " + "1+" * 3000 + "1", "commit", "savepoint a", "deallocate all", "listen x"]
NAMES = ["", "a", "b", "\xff", "x" * 300]


class Messages:
    def __init__(self, rng):
        self.rng = rng

    def junk(self, n=20):
        return self.rng.randbytes(self.rng.randint(0, n))

    def startup(self):
        rng = self.rng
        pairs = b"".join(text(rng.choice(["user", "database", "options", "application_name", "client_encoding", "replication", "nosuch", "_pq_.x", ""])) + text(rng.choice(["postgres", "", "-c x=y", "x" * 2000, "true", "é"]))
                         for _ in range(rng.randint(0, 6)))
        body = struct.pack("!I", rng.choice([196608, 196608, 196608, 196610, 131072, 80877103, 80877104, 80877102, 0, 2**32 - 1, 196608 + 9999])) + text("user") + text("postgres") + pairs + rng.choice([b"\0", b"", b"\0\0", b"abc"])
        return struct.pack("!I", rng.choice([len(body) + 4] * 4 + LENGTHS)) + body

    def query(self):
        return message(b"Q", text(self.rng.choice(QUERIES)))

    def parse(self):
        rng = self.rng
        types = [rng.choice([0, 23, 25, 1700, 3802, 1007, 16, 2**32 - 1, 705, 2249]) for _ in range(rng.choice([0, 0, 1, 2, 3]))]
        count = len(types) if rng.random() < 0.9 else rng.choice(COUNTS)
        return message(b"P", text(rng.choice(NAMES)) + text(rng.choice(QUERIES)) + struct.pack("!H", count) + b"".join(struct.pack("!I", t) for t in types))

    def bind(self):
        rng = self.rng
        values = [rng.choice([b"1", b"\0\0\0\1", b"", b"abc", b"{1,2}", b"\xff" * 8, self.junk(40), b"\0\0\0\1\0\0\0\0\0\0\0\x17\0\0\0\1\0\0\0\1\0\0\0\4\0\0\0\5", b"\1{}", b"\2{}", None]) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))]
        formats = [rng.choice([0, 1, 1, 2, 65535]) for _ in range(rng.choice([0, 1, 1, len(values), 5]))]
        results = [rng.choice([0, 1, 1, 2]) for _ in range(rng.choice([0, 1, 1, 3]))]

        def count(n):
            return struct.pack("!H", n if rng.random() < 0.95 else rng.choice(COUNTS))
        body = text(rng.choice(NAMES)) + text(rng.choice(NAMES)) + count(len(formats)) + b"".join(struct.pack("!H", f) for f in formats) + count(len(values))
        for v in values:
            body += struct.pack("!I", 2**32 - 1 if v is None else len(v) if rng.random() < 0.95 else rng.choice(LENGTHS)) + (v or b"")
        return message(b"B", body + count(len(results)) + b"".join(struct.pack("!H", f) for f in results))

    def one(self):
        rng = self.rng
        way = rng.randrange(14)
        if way < 3:
            return self.query()
        if way < 5:
            return self.parse()
        if way < 7:
            return self.bind()
        if way == 7:
            return message(rng.choice([b"D", b"C"]), rng.choice([b"S", b"P", b"x", b""]) + text(rng.choice(NAMES)))
        if way == 8:
            return message(b"E", text(rng.choice(NAMES)) + struct.pack("!I", rng.choice([0, 1, 2, 2**31, 2**32 - 1])))
        if way == 9:
            return message(rng.choice([b"S", b"H"]), rng.choice([b"", b"", b"x"]))
        if way == 10:
            return message(b"d", rng.choice([b"1\tx\n", b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", self.junk(200), b"\\.\n", b"1\t" + b"x" * 3000])) + rng.choice([b"", message(b"c"), message(b"f", text("no"))])
        if way == 11:
            return message(b"F", struct.pack("!IHH", rng.choice([0, 1, 1397, 2**32 - 1]), rng.choice(COUNTS), rng.choice(COUNTS)) + self.junk())
        if way == 12:
            return message(bytes([rng.randrange(256)]), self.junk(30))
        return message(b"p", self.junk(100)) if rng.random() < 0.9 else message(b"X")

    def broken(self, data):
        """Some bytes other than meant."""
        rng = self.rng
        way = rng.randrange(8)
        if way == 0 and len(data) > 5:
            return data[:rng.randrange(len(data))]
        if way == 1 and len(data) >= 5:
            return data[:1] + struct.pack("!I", rng.choice(LENGTHS)) + data[5:]
        if way == 2:
            data = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            return bytes(data)
        return data

    def session(self):
        """What one connection sends, in pieces."""
        rng = self.rng
        if rng.random() < 0.15:
            return [self.startup()] + [self.one() for _ in range(rng.randint(0, 2))]
        head = struct.pack("!II", 0, 196608) + text("user") + text("postgres") + text("database") + text("postgres") + text("options") + text("-c statement_timeout=3000 -c lock_timeout=200") + b"\0"
        pieces = [struct.pack("!I", len(head)) + head[4:]]
        for _ in range(rng.randint(1, 15)):
            pieces.append(self.broken(self.one()) if rng.random() < 0.3 else self.one())
        if rng.random() < 0.6:
            pieces.append(message(b"S"))
        return pieces


def drive(address, pieces, wait=0.3):
    """Sends the pieces and takes what comes for a moment; True if the server took the connection."""
    try:
        with socket.create_connection(address, timeout=5) as s:
            s.settimeout(wait)
            try:
                for piece in pieces:
                    s.sendall(piece)
                total = 0
                while total < 4 << 20:
                    got = s.recv(65536)
                    if not got:
                        break
                    total += len(got)
            except OSError:
                pass
        return True
    except OSError:
        return False


def alive(address):
    """Whether a new session is served."""
    try:
        connection = Connection(address, patience=20)
        answer = connection.query("select 1", 20)
        connection.close()
        return answer[0].rows == [(b"1",)]
    except (Lost, Slow, OSError):
        return False
