"""What stands in the way, ranked: every statement that disagrees has a kind, and a cause that others may share.

kinds, in the order in which they matter:
    lost      the connection or the server ended
    hang      no answer in time
    rows      other rows than PostgreSQL's, without an error
    after     other rows or no error, of something that an earlier statement was refused to make or change
    accepted  no error where PostgreSQL has one
    order     the same rows in another order
    described another answer to a backslash command of psql (they read the catalogs)
    plan      another EXPLAIN
    refused   an error where PostgreSQL has none
    error     another error than PostgreSQL's
    notice    the same but for NOTICE, DETAIL, HINT, LINE and their like
    unreached behind something that ended the script
"""

import re
from collections import Counter, defaultdict

BESIDE = re.compile(r"^(NOTICE|WARNING|INFO|DETAIL|HINT|CONTEXT|LINE \d+|QUERY|LOCATION|PL/pgSQL|SQL|\s*\^)")
MADE = re.compile(r"""\bcreate\s+(?:or\s+replace\s+)?(?:(?:local|global|temp|temporary|unlogged|unique|materialized|recursive|trusted|constraint
    |default|foreign|event)\s+)*(table|view|index|function|procedure|aggregate|type|domain|sequence|schema|role|user|group|collation
    |extension|operator|policy|rule|trigger|statistics|publication|subscription|server|language|text\s+search\s+\w+)\s+
    (?:if\s+not\s+exists\s+)?(?:concurrently\s+)?((?:"[^"]+"|[\w$]+)(?:\.(?:"[^"]+"|[\w$]+))?)""", re.IGNORECASE | re.VERBOSE)
MISSING = re.compile(r'(?:relation|table|view|function|procedure|aggregate|type|sequence|schema|role|collation|domain|operator class|index|server'
                     r'|policy|trigger|publication) "?([\w$.]+)"?(?:\(.*\))? does not exist')


CHANGED = re.compile(r"""\b(?:insert\s+into|update|delete\s+from|copy|truncate(?:\s+table)?|merge\s+into|alter\s+\w+(?:\s+if\s+exists)?|drop\s+\w+(?:\s+if\s+exists)?
    |set(?:\s+local|\s+session)?|index\b.*?\son|trigger\b.*?\son|rule\b.*?\sto|policy\b.*?\son|vacuum|analyze|refresh\s+materialized\s+view)\s+(?:only\s+)?
    (?:\w+\.)?([\w$]+)""", re.IGNORECASE | re.VERBOSE | re.DOTALL)
GAP = re.compile(r"not supported|does not exist|^syntax error|^unrecognized")
WORD = re.compile(r"[a-z_][\w$]*")


def errors(output):
    return [line.split(":", 1)[1].strip() for line in output if line.startswith(("ERROR:", "FATAL:", "PANIC:"))]


def kind_of(expected, actual):
    text, wanted, got = expected.text, expected.output, actual.output
    if got is None:
        return "unreached"
    if any("connection to server was lost" in line or "server closed the connection" in line for line in got):
        return "lost"
    if errors(wanted) != errors(got):
        if any("statement timeout" in e for e in errors(got)):
            return "hang"
        if len(errors(got)) > len(errors(wanted)):
            return "refused"
        return "accepted" if len(errors(got)) < len(errors(wanted)) else "error"
    if [line for line in wanted if not BESIDE.match(line)] == [line for line in got if not BESIDE.match(line)]:
        return "notice"
    if text.startswith("\\d") or text.startswith("\\s"):
        return "described"
    if re.match(r"explain\b", text, re.IGNORECASE):
        return "plan"
    return "order" if sorted(wanted) == sorted(got) else "rows"


def cause_of(message):
    """The message without what is only this statement's."""
    message = re.sub(r"\(.*\) does not exist", "() does not exist", message)
    if re.match(r"(relation|column|table|view|schema|role|constraint|index|trigger|policy) ", message):
        message = re.sub(r"^column [\w.]+ ", 'column "…" ', re.sub(r'"[^"]*"', '"…"', message))
    message = re.sub(r"\b\d+\b", "N", message)
    return message


class Ranking:
    def __init__(self):
        self.kinds = defaultdict(list)  # kind -> [(file, expected, actual)]
        self.direct = Counter()
        self.blamed = Counter()
        self.files = defaultdict(Counter)
        self.examples = {}
        self.swapped = Counter()  # (PostgreSQL's error, ours), where ours is not that something is missing
        self.blame = {}  # a name -> the cause for which it is not there
        self.spoilt = set()  # names of what is not as PostgreSQL has it

    def add(self, result):
        aborted = None
        for expected, actual in result.pairs:
            got = errors(actual.output or [])
            if expected.output == actual.output:
                if got:
                    aborted = None
                continue
            kind = kind_of(expected, actual)
            names = set(WORD.findall(expected.text.lower()))
            if kind in ("rows", "accepted", "order") and names & self.spoilt:
                kind = "after"
            self.kinds[kind].append((result.name, expected, actual))
            if kind in ("after", "hang", "lost", "unreached", "accepted"):
                self.spoil(expected.text)
            if kind not in ("refused", "error"):
                continue
            self.spoil(expected.text)
            known = set(errors(expected.output))
            message = next((e for e in got if e not in known), got[0])
            cause = cause_of(message)
            consequence = None
            if "current transaction is aborted" in message:
                consequence = aborted
            elif (found := MISSING.search(message)) and (name := found.group(1).split(".")[-1]) in self.blame:
                consequence = self.blame[name]
            else:
                aborted = cause
            if kind == "error" and not consequence and not GAP.search(message):
                wanted = next((e for e in errors(expected.output) if e not in got), errors(expected.output)[0])
                self.swapped[cause_of(wanted), cause] += 1
            self.note(consequence or cause, result.name, expected, direct=consequence is None)
            for made in MADE.findall(expected.text):
                self.blame[made[1].strip('"').split(".")[-1]] = consequence or cause

    def spoil(self, text):
        self.spoilt |= {name.strip('"').split(".")[-1].lower() for _, name in MADE.findall(text)}
        self.spoilt |= {name.lower() for name in CHANGED.findall(text)}

    def note(self, cause, file, statement, direct):
        (self.direct if direct else self.blamed)[cause] += 1
        self.files[cause][file] += 1
        if direct:
            self.examples.setdefault(cause, (file, statement.line + 1, " ".join(statement.text.split())[:150]))

    def markdown(self, many=150):
        out = ["| kind | statements |", "| --- | --- |"]
        out += [f"| {kind} | {len(found)} |" for kind, found in sorted(self.kinds.items(), key=lambda i: -len(i[1]))]
        out += ["", "## Causes, by the statements that they and what follows from them cost", "",
                "| all | directly | cause | files | first seen |", "| --- | --- | --- | --- | --- |"]
        total = self.direct + self.blamed
        for cause, count in total.most_common(many):
            files = ", ".join(f"{name} {n}" for name, n in self.files[cause].most_common(4))
            file, line, text = self.examples.get(cause, ("?", 0, "?"))
            cells = [str(count), str(self.direct[cause]), cause, f"{len(self.files[cause])}: {files}", f"{file}:{line} `{text}`"]
            out.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        out += ["", "## Other errors than PostgreSQL's", "", "| statements | PostgreSQL | here |", "| --- | --- | --- |"]
        out += [f"| {n} | {wanted} | {got} |" for (wanted, got), n in self.swapped.most_common(many)]
        for kind in ("lost", "hang", "rows", "accepted", "order"):
            out += ["", f"## {kind}: {len(self.kinds[kind])}"]
            for name, expected, actual in self.kinds[kind]:
                out += ["", f"### {name}:{expected.line + 1}", "```", *expected.echo[-12:], "-- expected", *expected.output[:14],
                        "-- actual", *(actual.output or [])[:14], "```"]
        return "\n".join(out) + "\n"
