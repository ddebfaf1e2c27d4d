"""Statements of PostgreSQL's regression scripts, and what comes of cutting, swapping and joining their tokens."""

import os
import re

# One alternative a kind of token, in the order in which they are tried.
TOKEN = re.compile(r"""\s+|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|[eEbBxXuUnN]?&?'(?:[^']|'')*'|"(?:[^"]|"")*"|\d[\w.]*|\$\d+|\w+|::|:=|[-+*/<>=~!@\#%^&|`?]+|.""", re.DOTALL)
DANGEROUS = re.compile(r"pg_sleep|statement_timeout|terminate_backend|cancel_backend|alter\s+(role|user)\s+(postgres|current_user|session_user)|alter\s+system|alter\s+database|session\s+authorization|pg_read|reload_conf"
                       r"|lo_export|lo_import|program\s+'|drop\s+owned|reassign|\bto\s+'[/]|:'|pg_ls_|rotate_log|\bset\s+role|generate_series\(\s*1\s*,\s*[1-9]\d{6}|password|lock_timeout|set_config"
                       r"|drop\s+schema\s+fz|client_encoding|pg_switch_wal|\\", re.IGNORECASE)
EDGES = ["null", "0", "-1", "2147483648", "9223372036854775807", "-9223372036854775808", "''", "'x'", "1e400", "'infinity'", "'NaN'", "true", "'{}'", "array[]::int[]", "default", "*", "()", "(select 1)", "(select null::int)",
         "'9999-12-31'::date", "1.0/3", "row(1,null)", "$1", "current_date", "99999999999999999999", "'\\xff'::bytea", "interval '1 month'", "''::text", "'[]'::jsonb"]
WRAPPED = ["select * from ({}) x", "explain (costs off) {}", "explain analyze {}", "explain verbose {}", "with x as ({}) select * from x", "with x as materialized ({}) select count(*) from x a, x b", "select exists ({})", "({})",
           "select ({})", "declare cc cursor for {}", "prepare pp as {}", "create temp table tt as {}", "create view vv as {}", "{} union all {}", "({}) except ({})", "copy ({}) to stdout", "select array({})", "{}; {}",
           "insert into zz {}", "select (x).* from ({}) x", "{} limit 3 offset 1", "{} for update", "select count(*) over (), x from ({}) x", "create function ff() returns void language sql as $fz${}$fz$", "select row_to_json(x) from ({}) x"]


def tokens(text):
    return [m.group() for m in TOKEN.finditer(text)]


def split(script, data):
    """A script's statements, without psql's commands and COPY's rows. `data`: where its files lie."""
    text, skipping, file = [], False, ""
    for line in script.split("\n"):
        if named := re.match(r"\\set filename :abs_srcdir '/data/(.*)'", line):
            file = f"{data}/{named.group(1)}"
        if skipping:
            skipping = line != "\\."
        elif line.startswith("\\"):
            continue
        else:
            text.append(line.replace(":'filename'", f"'{file}'"))
            skipping = bool(re.search(r"(?i)\bfrom\s+stdin\b.*;\s*$", line))
    found, now, depth = [], [], 0
    for token in tokens("\n".join(text)):
        if token.lower() == "atomic":
            depth += 1
        elif depth and token.lower() == "end":
            depth -= 1
        if token == ";" and not depth:
            statement = "".join(now).strip()
            if statement:
                found.append(statement)
            now = []
        elif not token.startswith("--"):
            now.append(token)
    return found


class Corpus:
    def __init__(self, folder):
        self.scripts = {}
        sql = os.path.join(folder, "sql")
        for name in sorted(os.listdir(sql)):
            with open(os.path.join(sql, name), encoding="utf8", errors="replace") as file:
                statements = split(file.read(), os.path.join(os.path.abspath(folder), "data"))
            self.scripts[name.removesuffix(".sql")] = statements
        self.all = [s for statements in self.scripts.values() for s in statements if len(s) < 3000]

    def ground(self):
        """What lays the tables that many scripts read."""
        return [s for s in self.scripts["test_setup"] if re.match(r"(?i)(create table|insert|vacuum|copy)", s)]


class Mutator:
    def __init__(self, rng, corpus):
        self.rng, self.corpus = rng, corpus

    def mutated(self, statement):
        rng = self.rng
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            statement = self.step(statement)
        return statement

    def step(self, statement):
        rng = self.rng
        if rng.random() < 0.15:
            return rng.choice(WRAPPED).replace("{}", statement)
        parts = tokens(statement)
        solid = [i for i, t in enumerate(parts) if not t.isspace()]
        if not solid:
            return statement
        i = rng.choice(solid)
        bodies = [j for j in solid if parts[j].startswith("$") and len(parts[j]) > 8 and not parts[j][1:].isdigit()]
        if bodies and rng.random() < 0.7:
            i = rng.choice(bodies)
            mark = parts[i][:parts[i].index("$", 1) + 1]
            parts[i] = mark + self.step(parts[i][len(mark):-len(mark)]) + mark
            return "".join(parts)
        other = tokens(rng.choice(self.corpus.all))
        way = rng.randrange(9)
        if way == 0:
            del parts[i]
        elif way == 1:
            parts.insert(i, parts[rng.choice(solid)] + " ")
        elif way == 2:
            j = rng.choice(solid)
            parts[i], parts[j] = parts[j], parts[i]
        elif way < 5:
            same = [t for t in other if kind(t) == kind(parts[i])]
            parts[i] = rng.choice(same or [parts[i]])
        elif way == 5:
            literals = [j for j in solid if kind(parts[j]) in ("number", "string")]
            parts[rng.choice(literals) if literals else i] = rng.choice(EDGES)
        elif way == 6:
            parts = parts[:i] + [" "] + other[rng.randrange(len(other) + 1):]
        elif way == 7:
            j = rng.randrange(len(parts))
            lo, hi = sorted((i, j))
            parts = parts[:hi] + [" "] + parts[lo:hi] + parts[hi:] if rng.random() < 0.5 else parts[:lo] + parts[hi:]
        else:
            parts[i] = rng.choice(EDGES)
        return "".join(parts)


def kind(token):
    if token[0].isdigit():
        return "number"
    if "'" in token or token.startswith("$"):
        return "string"
    if token[0].isalpha() or token[0] in '_"':
        return "word"
    return "mark" if not token.isspace() else "space"
