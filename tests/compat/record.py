"""Results kept: the baseline that must not be lost, PostgreSQL's own results by the same judge, and the page for readers."""

import json
import os

from differences import wrapped

HERE = os.path.dirname(os.path.abspath(__file__))
BASELINE = os.path.join(HERE, "baseline.json")
REFERENCE = os.path.join(HERE, "postgresql.json")
PAGE = os.path.join(HERE, "..", "..", "docs", "compatibility.md")
PARTS = ["regress", "isolation", "sqllogictest", "dialect"]
UNITS = {"regress": "statements", "isolation": "permutations", "sqllogictest": "records", "dialect": "tests"}
# What no file should have.
WRONG = {"hangs": "hangs", "lost": "the connection was lost after", "faults": "the server"}
# How many statements a file may lose, and as many may hang, without a defect: part/file -> (how many, why).
FLUTTER = {
    "regress/memoize": (2, "nested loops over ten million pairs take 4 s on idle cores, and on busy ones as long as a statement may"),
}


def load(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf8") as file:
        return json.load(file)


def save(path, kept):
    """A file a line, so that a change reads as one."""
    with open(path, "w", encoding="utf8") as file:
        parts = []
        for part, held in kept.items():
            if isinstance(held, list):
                rows, ends = [json.dumps(text) for text in held], "[]"
            else:
                rows, ends = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in held.items()], "{}"
            parts.append(f"  {json.dumps(part)}: {ends[0]}\n" + ",\n".join(f"    {row}" for row in rows) + f"\n  {ends[1]}")
        file.write("{\n" + ",\n".join(parts) + "\n}\n")


def row(result):
    """What is kept of a file; of what should not be, only what is."""
    kept = {"agree": result.agree, "of": result.of, "whole": result.whole}
    counts = {wrong: len(getattr(result, wrong)) for wrong in WRONG}
    return {**kept, **{wrong: n for wrong, n in counts.items() if n}, **({"fails": result.fails} if result.fails else {})}


def below(ours, theirs):
    """How many records fail that PostgreSQL passes."""
    return len(set(ours.get("fails", [])) - set(theirs.get("fails", [])))


# What a busy machine may cost a part in all, as a share: statements that had no answer in time, and what follows from them.
BUSY = 0.005


def worse(part, results, baseline):
    """What was held by the baseline and is not any more; nothing where a busy machine may be the reason for all of it."""
    found = fallen(part, results, baseline)
    dead = any(len(getattr(r, wrong)) > baseline.get(part, {}).get(r.name, {}).get(wrong, 0)
               for r in results for wrong in ("lost", "faults"))
    held = sum(baseline.get(part, {}).get(r.name, {}).get("agree", 0) for r in results)
    late = any(r.hangs for r in results)
    if found and late and not dead and sum(r.agree for r in results) >= (1 - BUSY) * held:
        for text in found:
            print(f"fell, on a machine too busy to tell: {text}")
        return []
    return found


def fallen(part, results, baseline):
    found = []
    for result in results:
        held = baseline.get(part, {}).get(result.name)
        what = f"{part}/{result.name}"
        bear = FLUTTER.get(what, (0, ""))[0]
        for wrong, told in WRONG.items():
            texts = getattr(result, wrong)
            if len(texts) > (held or {}).get(wrong, 0) + (bear if wrong == "hangs" else 0):
                found += [f"{what}: {told}: {text[:200]}" for text in texts]
        if held is None:
            continue
        if held["whole"] and not result.whole and not bear:
            found.append(f"{what}: passed whole, {result.agree} of {result.of} now")
        elif result.agree < held["agree"] - bear:
            found.append(f"{what}: {result.agree} of {result.of}, {held['agree']} before")
    return found


def better(part, results, baseline):
    before = baseline.get(part, {})
    return sum(max(0, r.agree - before.get(r.name, {"agree": 0})["agree"]) for r in results)


def share(agree, of):
    return f"{100 * agree / of:.1f} %" if of else "-"


def totals(rows):
    rows = list(rows)
    return (sum(r["agree"] for r in rows), sum(r["of"] for r in rows), sum(r["whole"] for r in rows), len(rows))


def write(path, results, refused, only):
    """Puts results into the file at `path`, in place of what it held of those parts, and prints the page anew."""
    kept = load(path)
    for part, some in results.items():
        rows = {r.name: row(r) for r in some}
        kept[part] = {**kept.get(part, {}), **rows} if only else rows
    if path == BASELINE:
        kept["refused"] = refused
    save(path, kept)
    with open(PAGE, "w", encoding="utf8") as file:
        file.write(page(load(BASELINE), load(REFERENCE)))


def page(parts, reference):
    refused = parts.get("refused", [])
    out = ["# Compatibility", "",
           "What Throng answers to tests that others wrote. This page is printed by", "",
           "```sh", "cargo build --release", "tests/compat/run.sh ../shared/corpora --record", "```", "",
           wrapped("and not edited by hand; `tests/compat/README.md` tells how the judge works. The same judge on a PostgreSQL "
                   "18.6 that runs elsewhere (`tests/compat/run.sh ../shared/corpora --server HOST:PORT --record`) gives the "
                   "columns named PostgreSQL: what is missing there is what the judge or the missing test library costs."), "",
           "| | unit | Throng | | whole files | PostgreSQL | whole files |", "| --- | --- | --- | --- | --- | --- | --- |"]
    names = {"regress": "PostgreSQL's regression scripts", "isolation": "PostgreSQL's isolation specs", "sqllogictest": "sqllogictest",
             "dialect": "SQLAlchemy's suite for dialects"}
    for part in PARTS:
        if part not in parts:
            continue
        agree, of, whole, files = totals(parts[part].values())
        cells = [names[part], UNITS[part], f"{agree:,} of {of:,}", share(agree, of), f"{whole} of {files}"]
        if part in reference:
            theirs = totals(reference[part].values())
            cells += [f"{theirs[0]:,} of {theirs[1]:,}", f"{theirs[2]} of {theirs[3]}"]
        else:
            cells += ["-", "-"]
        out.append("| " + " | ".join(cells) + " |")
    if refused:
        out += ["", "The runner asks for the environment of `pg_regress` and leaves out what the server refuses:", ""]
        out += [f"- {text}" for text in refused]
    wrong = [f"- {part}/{name}: " + ", ".join(f"{r[w]} {w}" for w in WRONG if w in r)
             for part in PARTS for name, r in parts.get(part, {}).items() if any(w in r for w in WRONG)]
    if wrong:
        out += ["", "Statements that had no answer in time, lost connections, and faults of the server (there should be none):", "", *wrong]
    for part in PARTS:
        if part in parts:
            out += ["", f"## {names[part][0].upper()}{names[part][1:]}", "", *table(part, parts[part], reference.get(part, {}))]
    return "\n".join(out) + "\n"


def table(part, files, reference):
    last = "fail where PostgreSQL passes" if part == "sqllogictest" else "PostgreSQL"
    out = [f"| file | {UNITS[part]} that agree | of | | whole | {last} |", "| --- | ---: | ---: | ---: | --- | --- |"]
    for name, r in files.items():
        theirs = reference.get(name)
        if theirs is None:
            told = "-"
        elif part == "sqllogictest":
            told = str(below(r, theirs))
        else:
            told = "whole" if theirs["whole"] else f"{theirs['agree']} of {theirs['of']}"
        out.append(f"| {name} | {r['agree']} | {r['of']} | {share(r['agree'], r['of'])} | {'yes' if r['whole'] else ''} | {told} |")
    return out
