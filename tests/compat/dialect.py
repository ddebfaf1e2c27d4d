"""The tests that SQLAlchemy brings for every dialect, through its PostgreSQL one and psycopg."""

import os
import re
import subprocess
import time
from glob import glob

from regress import Result

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dialect-suite")
FILE_LIMIT = 300
# The schemas that the suite wants to find.
SCHEMAS = ["test_schema", "test_schema_2"]


def files(environment):
    """What there is in a virtual environment."""
    found = glob(os.path.join(environment, "lib/python3*/site-packages/sqlalchemy/testing/suite/test_*.py"))
    return sorted(os.path.basename(path).removesuffix(".py") for path in found)


class Suite:
    def __init__(self, target, environment, out):
        self.target = target
        self.python = os.path.join(environment, "bin", "python")
        self.out = out
        self.ready = False
        os.makedirs(out, exist_ok=True)

    def run(self, name):
        target = self.target
        if not self.ready:
            for schema in SCHEMAS:
                target.sql(f"create schema {schema}")
            self.ready = True
        url = f"postgresql+psycopg://{target.user}@{target.host}:{target.port}/{target.database}"
        environment = {**target.environment(), "DIALECT_FILE": name, "PYTHONPATH": FOLDER, "PYTHONDONTWRITEBYTECODE": "1"}
        path = os.path.join(self.out, f"{name}.out")
        result = Result(name)
        began = time.monotonic()
        with open(path, "w", encoding="utf8") as stdout:
            try:
                subprocess.run([self.python, "-m", "pytest", "test_suite.py", "--dburi", url], env=environment, cwd=FOLDER,
                               stdout=stdout, stderr=subprocess.STDOUT, timeout=FILE_LIMIT, check=False)
            except subprocess.TimeoutExpired:
                result.hangs.append(name)
        result.seconds = time.monotonic() - began
        result.faults += target.look()
        with open(path, encoding="utf8") as file:
            last = (file.read().strip().splitlines() or [""])[-1]
        count = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", last)}
        result.agree = count.get("passed", 0)
        result.of = sum(count.values())
        result.whole = result.agree == result.of > 0
        return result
