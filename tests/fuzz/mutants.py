"""Mutants: how many planted faults do the tests find?

`mutants.py --tree CLONE [--count N] [--seed S] [--rooms txn,access,write] [--out FILE] [--jobs N] [--seconds S]`

Small faults are planted in the sources of a clone (never in the tree that somebody works in): a comparison turned, a condition
negated, a call left out, a number off by one. All are planted at once, each behind a switch, so that the clone is built once: the tests
then run with one switched on by `THRONG_MUTANT` (mutant schemata, Untch, Offutt and Harrold, ISSTA 1993). First they run with none, which tells
which of the faults each of them reaches; only those are tried with it, the quickest first, until one fails. A fault that does not compile is
not counted; one that no test finds is told with its place and its text. Debug builds find more than releases, as their assertions are
part of the tests. With what an earlier run of the same commit has left at `--out` it goes on where
that one ended.

The operators are those of Offutt et al., "An experimental determination of sufficient mutant operators" (ACM TOSEM 5:2, 1996), as far as
they can be planted in text: relational and logical operator replacement, arithmetic on constants, and statement deletion.
"""

import argparse
import concurrent.futures
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOMS = {"txn": "crates/txn/src", "access": "crates/access/src", "write": "crates/exec/src/write"}
# Programs of tests with their filters, from the quickest: the room's own, then the server's.
UNITS = [("throng-txn", "lib"), ("throng-txn", "it"), ("throng-access", "lib"), ("throng-exec", "lib")]
SERVER = [["isolation"], ["redo", "restart"], ["sql_scripts"], ["crash"]]

REPLACED = [
    (r" == ", [" != "]),
    (r" != ", [" == "]),
    (r" <= ", [" < ", " > "]),
    (r" >= ", [" > ", " < "]),
    (r" < ", [" <= ", " >= "]),
    (r" > ", [" >= ", " <= "]),
    (r" && ", [" || "]),
    (r" \|\| ", [" && "]),
    (r" \+ 1\b", ["", " + 2"]),
    (r" - 1\b", ["", " - 2"]),
    (r"\btrue\b", ["false"]),
    (r"\bfalse\b", ["true"]),
    (r"(?<![\w.])!(?=\w)", [""]),
    (r"\.max\(", [".min("]),
    (r"\.min\(", [".max("]),
    (r"\.is_some\(\)", [".is_none()"]),
    (r"\.is_none\(\)", [".is_some()"]),
    (r"\.any\(", [".all("]),
    (r"\.all\(", [".any("]),
]
CALL = re.compile(r"^(\s+)([a-z_][\w.]*(?:::\w+)*\(.*\)(?:\.await)?\??;)$")
CONDITION = re.compile(r"^(\s*(?:\} else )?if )((?!let\b).*)( \{)$")
# What is computed on a line of its own: the value of a binding, an assignment, an arm, a result.
VALUE = re.compile(r"^(\s*(?:let (?:mut )?\w+(?:: [\w<>&]+)? = |return |[\w.]+ = |[^\"|]* => ))(.*)([;,])$")
LAST = re.compile(r"^(\s+)([a-z(!*&][^;,{]*[^;,{(\[|&+=])$")
LEFT_ALONE = re.compile(r"^\s*(//|#\[|use |pub use |const |static |debug_assert|assert|fn |pub fn |type |let _)|fail_point|stop_point|trace!|debug!|warn!|\blet\b.*&&|&& let\b")
SWITCH = """
/// Whether the fault of this number is switched on.
pub fn mutant(n: usize) -> bool {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    static CHOSEN: OnceLock<usize> = OnceLock::new();
    static FOLDER: OnceLock<Option<String>> = OnceLock::new();
    static REACHED: [AtomicBool; 4096] = [const { AtomicBool::new(false) }; 4096];
    if !REACHED[n].load(Ordering::Relaxed) && !REACHED[n].swap(true, Ordering::Relaxed)
        && let Some(folder) = FOLDER.get_or_init(|| std::env::var("THRONG_REACHED").ok())
    {
        let _ = std::fs::write(format!("{folder}/{n}"), "");
    }
    *CHOSEN.get_or_init(|| std::env::var("THRONG_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(usize::MAX)) == n
}
"""


def sources(folder):
    for base, _, names in os.walk(folder):
        if "tests" in base.split(os.sep):
            continue
        for name in sorted(names):
            if name.endswith(".rs") and name not in ("tests.rs", "schedules.rs"):
                yield os.path.join(base, name)


def balanced(text):
    depth = 0
    for c in text:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(c, 0)
        if depth < 0:
            return False
    return depth == 0


def changed(text):
    """What an expression's text becomes by one fault."""
    for pattern, others in REPLACED:
        for found in re.finditer(pattern, text):
            for other in others:
                yield text[: found.start()] + other + text[found.end():]


def faults(text):
    """Every fault that could be planted in a source: (line number, its text now, its text then, the line with a switch for `{n}`)."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith(("#[cfg(test)]", "#[cfg(all(test", "mod tests")):
            return
        if LEFT_ALONE.search(line) or "//" in line or '"' in line or "'" in line:
            continue
        before, after = lines[number - 1].strip(), lines[number + 1].strip() if number + 1 < len(lines) else ""
        starts = before.endswith((";", "{", "}", "=>")) or not before
        switch = "throng_types::mutant({n})"
        if (call := CALL.match(line)) and starts and balanced(call[2]):
            yield number, line, call[1] + "();", call[1] + f"if !{switch} {{{{ " + braces(call[2]) + " }}"
        if line.strip() in ("continue;", "break;") and starts:
            other = "break" if "continue" in line else "continue"
            yield number, line, line.replace(line.strip(), other + ";"), f"if {switch} {{{{ {other}; }}}} {line.strip()}"
        if (condition := CONDITION.match(line)) and balanced(condition[2]):
            head, asked, tail = condition.groups()
            yield number, line, f"{head}!({asked}){tail}", braces(head) + f"{switch} != ({braces(asked)})" + braces(tail)
            for other in changed(asked):
                yield number, line, head + other + tail, braces(head) + f"(if {switch} {{{{ {braces(other)} }}}} else {{{{ {braces(asked)} }}}})" + braces(tail)
            continue
        value = VALUE.match(line) if starts or " => " in line else None
        if not value and starts and after == "}" and (last := LAST.match(line)):
            value = [line, last[1], last[2], ""]
        if value and balanced(value[2]) and value[2]:
            for other in changed(value[2]):
                yield number, line, value[1] + other + value[3], braces(value[1]) + f"if {switch} {{{{ {braces(other)} }}}} else {{{{ {braces(value[2])} }}}}" + value[3]


def braces(text):
    return text.replace("{", "{{").replace("}", "}}")


class Tree:
    """A clone with faults behind switches."""

    def __init__(self, folder):
        self.folder = folder
        self.original = {}

    def text(self, path):
        """A source as it was committed, whatever an earlier run has planted in it."""
        if path not in self.original:
            of = f"HEAD:{os.path.relpath(path, self.folder)}"
            shown = subprocess.run(["git", "show", of], cwd=self.folder, stdout=subprocess.PIPE, text=True, check=True)
            self.original[path] = shown.stdout
        return self.original[path]

    def plant(self, planted):
        """Writes the sources with these faults: a dictionary of number to (path, line number, before, after, with its switch)."""
        by_path = {path: self.text(path).split("\n") for path in self.original}
        for n, (path, number, _, _, switched) in planted.items():
            by_path.setdefault(path, self.text(path).split("\n"))[number] = switched.format(n=n)
        library = os.path.join(self.folder, "crates/types/src/lib.rs")
        by_path[library] = (self.text(library) + SWITCH).split("\n")
        for path, lines in by_path.items():
            text = "\n".join(lines)
            with open(path, encoding="utf8") as file:
                if file.read() == text:
                    continue
            with open(path, "w", encoding="utf8") as file:
                file.write(text)

    def cargo(self, *command):
        """A cargo command and the JSON messages that it gave."""
        done = subprocess.run(["cargo", *command, "--message-format=json"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def compiling(self, planted):
        """Those of the faults that compile, planted."""
        while True:
            self.plant(planted)
            code, messages = self.cargo("check", "--keep-going", "-p", "throng-txn", "-p", "throng-access", "-p", "throng-exec")
            if code == 0:
                return planted
            lines = set()
            for message in messages:
                told = message.get("message", {})
                if message.get("reason") == "compiler-message" and told.get("level") == "error":
                    for span in told["spans"]:
                        path = os.path.join(self.folder, span["file_name"])
                        lines |= {(path, line - 1) for line in range(span["line_start"], span["line_end"] + 1)}
            bad = {n for n, fault in planted.items() if fault[:2] in lines}
            if not bad and lines:
                # Found where what it has changed is used: the fault before is why.
                path, line = max(lines)
                near = [n for n, fault in planted.items() if fault[0] == path]
                bad = set(sorted(near, key=lambda n: abs(planted[n][1] - line))[:1])
            if not bad:
                sys.exit("the clone does not compile, and no fault is why")
            planted = {n: fault for n, fault in planted.items() if n not in bad}

    def programs(self):
        """The commands that run the tests."""
        code, messages = self.cargo("test", "--no-run", "-p", "throng-txn", "-p", "throng-access", "-p", "throng-exec", "-p", "throng-server")
        if code:
            sys.exit("the tests do not compile")
        built = {}
        for message in messages:
            if message.get("reason") == "compiler-artifact" and message.get("executable") and message["profile"]["test"]:
                package = re.search(r"([\w-]+)[#@][\d.]+$", message["package_id"])[1] if "#" in message["package_id"] else message["package_id"].split()[0]
                package = os.path.basename(os.path.dirname(message["manifest_path"]))
                kind = "lib" if "lib" in message["target"]["kind"] else message["target"]["name"]
                built[f"throng-{package}", kind] = (message["executable"], os.path.dirname(message["manifest_path"]))
        commands = [([built[unit][0]], built[unit][1]) for unit in UNITS if unit in built]
        it, place = built["throng-server", "it"]
        return commands + [([it, *filters], place) for filters in SERVER]


def run(command, place, limit, **variables):
    """The exit status of a command, -1 when it stands still."""
    env = dict(os.environ, RUST_BACKTRACE="0", **variables)
    child = subprocess.Popen(command, cwd=place, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return child.wait(limit)
    except subprocess.TimeoutExpired:
        return -1
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--tree", required=True)
    options.add_argument("--count", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rooms", default="txn,access,write")
    options.add_argument("--out", default="mutants.jsonl")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--seconds", type=int, default=10**9)
    options = options.parse_args()
    lot, began = random.Random(options.seed), time.monotonic()
    options.tree = os.path.abspath(options.tree)
    tree, planted = Tree(options.tree), {}
    rooms = {room: [(path, *fault) for path in sources(os.path.join(options.tree, ROOMS[room])) for fault in faults(tree.text(path))] for room in options.rooms.split(",")}
    lines = set()
    for room, candidates in rooms.items():
        lot.shuffle(candidates)
        wanted = options.count * 3 // 2 // len(rooms)
        for fault in candidates:
            if wanted and fault[:2] not in lines:
                lines.add(fault[:2])
                planted[len(planted)] = fault
                wanted -= 1
    print(f"{sum(map(len, rooms.values()))} candidates, {len(planted)} drawn", flush=True)
    planted = tree.compiling(planted)
    numbers = list(planted)
    lot.shuffle(numbers)
    numbers = numbers[: options.count]
    print(f"{len(planted)} compile (after {time.monotonic() - began:.0f} s)", flush=True)
    commands, kept = [], options.out + ".reached"
    programs = tree.programs()
    if os.path.exists(kept):
        with open(kept, encoding="utf8") as file:
            commands = [(*program, taken, set(reached)) for program, (taken, reached) in zip(programs, json.load(file))]
        programs = []
    for command, place in programs:
        with tempfile.TemporaryDirectory() as folder:
            since = time.monotonic()
            if run(command, place, 1800, THRONG_REACHED=folder):
                sys.exit(f"fails without a fault: {' '.join(command)}")
            taken = time.monotonic() - since
            commands.append((command, place, taken, {int(name) for name in os.listdir(folder)}))
            print(f"{taken:6.1f} s reaches {len(commands[-1][3] & set(numbers)):4} {os.path.basename(command[0])} {' '.join(command[1:])}", flush=True)
    with open(kept, "w", encoding="utf8") as file:
        json.dump([(taken, sorted(reached)) for *_, taken, reached in commands], file)
    commands.sort(key=lambda c: c[2])
    judged = {}
    if os.path.exists(options.out):
        with open(options.out, encoding="utf8") as file:
            judged = {told["number"]: told["verdict"] for told in map(json.loads, file)}

    def judge(n):
        if n in judged or time.monotonic() - began > options.seconds:
            return judged.get(n)
        verdict = "alive" if any(n in reached for *_, reached in commands) else "unreached"
        for command, place, taken, reached in commands:
            if n in reached and run(command, place, 3 * taken + 60, THRONG_MUTANT=str(n)):
                verdict = " ".join([os.path.basename(command[0]).rsplit("-", 1)[0], *command[1:]])
                break
        path, number, before, after, _ = planted[n]
        told = {"number": n, "place": f"{os.path.relpath(path, options.tree)}:{number + 1}", "before": before.strip(), "after": after.strip(), "verdict": verdict}
        with open(options.out, "a", encoding="utf8") as out:
            out.write(json.dumps(told) + "\n")
        if verdict in ("alive", "unreached"):
            print(f"{verdict.upper()} {told['place']}\n    {told['before']}\n    {told['after']}", flush=True)
        return verdict

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = [v for v in pool.map(judge, numbers) if v]
    alive = sum(v in ("alive", "unreached") for v in verdicts)
    print(f"planted {len(verdicts)}, found {len(verdicts) - alive}, alive {alive} (seed {options.seed}, {time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
