"""Every statement of PostgreSQL's regression suite that gives other rows here, with the reason: docs/differences.md.

reasons.txt has a line for each reason, `FILE LINE[-LINE] …: reason` (`*` for all of a file's). A difference without one is marked, so that
a new one shows. What an earlier statement was refused to make or change is told by file: the refusal is the reason.
"""

import os
import textwrap
from collections import Counter

REASONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reasons.txt")
KINDS = {"rows": "other rows", "order": "another order", "accepted": "no error", "hang": "no answer in time"}
NONE = "**no reason is written down**"


def reasons():
    """[(file, first line, last line, reason)], the more special first."""
    found = []
    with open(REASONS, encoding="utf8") as file:
        for text in file:
            if not text.strip() or text.startswith("#"):
                continue
            places, reason = text.rstrip("\n").split(":", 1)
            name, *lines = places.split()
            for line in lines:
                first, _, last = line.partition("-")
                span = (0, 10**9) if line == "*" else (int(first), int(last or first))
                found.append((name, *span, reason.strip()))
    return sorted(found, key=lambda r: r[2] - r[1])


def reason_of(known, name, line):
    return next((r for file, first, last, r in known if file == name and first <= line <= last), NONE)


def wrapped(text, indent=""):
    """In lines of 120 columns."""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def markdown(kinds):
    """`kinds`: kind -> [(file, line, statement)]."""
    known = reasons()
    rows = sorted((name, line, kind, text) for kind in KINDS for name, line, text in kinds.get(kind, []))
    out = ["# Where rows differ from PostgreSQL's", "",
           wrapped("Every statement of PostgreSQL's regression suite that Throng answers, without an error of its own, otherwise than "
                   "PostgreSQL. Made by `tests/compat/run.sh` from the run's results and `tests/compat/reasons.txt`."), ""]
    for name, line, kind, text in rows:
        text = " ".join(text.split())[:80].replace("`", "'")
        out.append(wrapped(f"- {name}:{line}, {KINDS[kind]}: {reason_of(known, name, line)}", "  "))
        out.append(f"  `{text}`")
    after = Counter(name for name, *_ in kinds.get("after", []))
    if after:
        out += ["", "These follow from a statement before them that was refused (a table that was not made, a row that was not written):", ""]
        out += ["- " + name + f": {n}" for name, n in sorted(after.items())]
    return "\n".join(out) + "\n"


def unexplained(kinds):
    known = reasons()
    return [f"{name}:{line}" for kind in KINDS for name, line, _ in kinds.get(kind, [])
            if reason_of(known, name, line) == NONE]


def of_ranking(ranking):
    return {kind: [(name, expected.line + 1, expected.text) for name, expected, _ in found]
            for kind, found in ranking.kinds.items()}
