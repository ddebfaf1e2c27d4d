"""A psql script and what psql printed for it, cut into statements.

`psql -a` prints every line of its input before it does anything with it, so the input's own lines are the anchors: whatever
stands between the lines of one statement and those of the next is the statement's output. What the input alone does not tell
is where a statement ends (psql's lexer says that, and `Lexer` follows its rules) and which lines are data of a COPY (they are
not printed: the expected output says that).

    script              expected            statements
    select 1            select 1            "select 1 as a;" -> "a ... (1 row)"
      as a;               as a;
    copy t from stdin;   a                  "copy t from stdin;" -> ""
    1                   ---
    \\.                   1                  "commit;" -> "WARNING ..."
    commit;             (1 row)
                        copy t from stdin;
                        commit;
                        WARNING: ...
"""

import re
from dataclasses import dataclass

TOKEN = re.compile(r"""
      (?P<comment>--.*)
    | (?P<block>/\*)
    | (?P<escaped>[eE]')
    | (?P<unicode>[uU]&['"])
    | (?P<quote>')
    | (?P<name>")
    | (?P<dollar>\$(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)?\$)
    | (?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*)
    | (?P<parameter>\$\d+)
    | (?P<number>\d[\d_.]*(?:[eE][+-]?\d+)?)
    | (?P<open>[(\[])
    | (?P<close>[)\]])
    | (?P<end>;)
    | (?P<command>\\[;:]|\\.*)
    | (?P<other>.)
""", re.VERBOSE)
# Backslash commands that send what was gathered; they stand at the end of a statement.
SENDING = re.compile(r"\\(g|gx|gset|gexec|gdesc|crosstabview\w*|watch|parse|sendpipeline)\b")
COPY_IN = re.compile(r"\bcopy\b[^;]*?\bfrom\s+(?:stdin|pstdin|stdout)\b", re.IGNORECASE | re.DOTALL)
STRINGS = re.compile(r"standard_conforming_strings\s*(?:=|to)\s*'?(on|off|true|false)", re.IGNORECASE)


class Lexer:
    """psql's notion of where statements end (psqlscan.l), fed a line at a time."""

    def __init__(self):
        self.plain_strings = True
        self.quote = None  # None, or what ends the quotation: "'", "e'", '"', "*/" or a dollar quote
        self.comments = 0
        self.forget()

    def forget(self):
        """A new statement begins."""
        self.text = []
        self.depth = 0
        self.words = []
        self.blocks = 0

    def feed(self, line):
        """Takes a line; the statements that it ends, as text."""
        sent, at = [], 0
        while at < len(line):
            if self.quote:
                at = self.leave_quote(line, at)
                continue
            found = TOKEN.match(line, at)
            kind, token = found.lastgroup, found.group()
            at = found.end()
            if kind == "comment":
                break
            self.text.append(token)
            if kind == "end" and self.depth == 0 and self.blocks == 0:
                sent.append(self.take())
            elif kind == "command" and token not in ("\\;", "\\:"):
                if SENDING.search(token) or not "".join(self.text[:-1]).strip():
                    sent.append(self.take())
                elif token.split()[0] in ("\\r", "\\reset"):
                    self.forget()
            else:
                self.step(kind, token)
        self.text.append("\n")
        return sent

    def take(self):
        text = "".join(self.text).strip()
        if found := STRINGS.search(text):
            self.plain_strings = found.group(1).lower() in ("on", "true")
        self.forget()
        return text

    def step(self, kind, token):
        if kind == "block":
            self.quote, self.comments = "*/", 1
        elif kind in ("escaped", "name", "dollar"):
            self.quote = {"escaped": "e'", "name": '"'}.get(kind, token)
        elif kind == "unicode":
            self.quote = token[-1]
        elif kind == "quote":
            self.quote = "'" if self.plain_strings else "e'"
        elif kind == "open":
            self.depth += token == "("
        elif kind == "close":
            self.depth = max(0, self.depth - (token == ")"))
        elif kind == "word":
            self.word(token.lower())

    def word(self, word):
        """The body of a function in SQL's own form, BEGIN ATOMIC ... END, holds semicolons."""
        self.words = [*self.words, word][:4]
        made = [w for w in self.words if w not in ("or", "replace")][:2]
        if self.depth or len(made) < 2 or made[0] != "create" or made[1] not in ("function", "procedure"):
            return
        if word == "begin":
            self.blocks += 1
        elif word == "case":
            self.blocks += self.blocks > 0
        elif word == "end":
            self.blocks = max(0, self.blocks - 1)

    def leave_quote(self, line, at):
        """Goes to the end of the quotation, or of the line."""
        if self.quote == "*/":
            found = re.compile(r"/\*|\*/").search(line, at)
            if not found:
                return len(line)
            self.comments += 1 if found.group() == "/*" else -1
            if self.comments == 0:
                self.quote = None
            return found.end()
        if self.quote == "e'":
            found = re.compile(r"(?:[^'\\]|\\.|'')*('|$|\\$)").match(line, at)
            closed = bool(found) and found.group(1) == "'"
            end = found.end() if closed else len(line)
        else:
            end = line.find(self.quote, at)
            closed = end >= 0
            end = end + len(self.quote) if closed else len(line)
        self.text.append(line[at:end])
        if closed:
            self.quote = None
        return end


@dataclass
class Statement:
    """One statement of a script (or several that end on the same line)."""

    echo: list  # its lines as psql prints them
    text: str  # empty: what stands behind the last statement, comments
    line: int  # where it begins in the script, from 0
    next: int  # the line of the script that psql reads after it, the data of a COPY left out
    output: list = None  # what stands behind it in an output; None: it is not there

    def like(self):
        return Statement(self.echo, self.text, self.line, self.next)


def find(lines, wanted, start):
    """Where `wanted` stands in `lines` as a whole, from `start` on; -1: nowhere."""
    at = start
    while True:
        try:
            at = lines.index(wanted[0], at)
        except ValueError:
            return -1
        if lines[at:at + len(wanted)] == wanted:
            return at
        at += 1


def behind_copy(script, line, expected, at):
    """The line of the script after a COPY's data; `line` itself if the expected output shows that the COPY took none."""
    end = find(script, ["\\."], line)
    first = next((text for text in script[line:] if text), None)
    if end < 0 or first is None or first == "\\.":
        return end + 1 if end >= 0 else line
    behind = next((text for text in script[end + 1:] if text), None)
    shown = find(expected, [first], at)
    if shown < 0:
        return end + 1
    after = find(expected, [behind], at) if behind is not None else -1
    return line if after < 0 or shown <= after else end + 1


def cut(script, expected):
    """The statements of `script` with the outputs that `expected` gives them; those that it does not show are left out."""
    lexer, statements, echo, at, line, begun = Lexer(), [], [], 0, 0, 0
    while line < len(script):
        text = script[line]
        line += 1
        if not text and not lexer.quote:
            continue
        if not echo:
            begun = line - 1
        echo.append(text)
        sent = lexer.feed(text)
        if not sent:
            continue
        found = find(expected, echo, at)
        if found >= 0:
            at = found + len(echo)
        for _ in COPY_IN.findall("\n".join(sent)):
            line = behind_copy(script, line, expected, at)
        if found >= 0:
            statements.append(Statement(echo, "\n".join(sent), begun, line))
        echo = []
    if echo and find(expected, echo, at) >= 0:
        statements.append(Statement(echo, "", begun, line))
    return locate(statements, expected)


def locate(statements, output):
    """The same statements with their outputs in `output`."""
    found, at = [], 0
    places = []
    for statement in statements:
        place = find(output, statement.echo, at)
        places.append(place)
        if place >= 0:
            at = place + len(statement.echo)
    end = len(output)
    for statement, place in zip(reversed(statements), reversed(places)):
        copy = statement.like()
        if place >= 0:
            copy.output = output[place + len(statement.echo):end]
            end = place
        found.append(copy)
    return found[::-1]
