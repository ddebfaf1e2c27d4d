"""How tables are stored and how little memory statements have: what no answer may depend on, drawn anew for each schema."""

import re

FILL = [10, 30, 50, 70, 90, 99]
# The server's defaults, half of the time.
OPTIONS = ["", "", "", "-c work_mem=64kB", "-c work_mem=64kB", "-c work_mem=64kB -c enable_indexscan=off -c enable_bitmapscan=off", "-c work_mem=1MB -c enable_seqscan=off"]


def session_options(rng):
    """Settings of a session, as a startup packet has them."""
    return rng.choice(OPTIONS)


def stored(rng, sql):
    """A CREATE TABLE or CREATE INDEX, perhaps with a fill factor or with large values kept in another way."""
    if "partition by" in sql.lower() or rng.random() < 0.5:
        return sql
    option = f"with (fillfactor = {rng.choice(FILL)})"
    if re.match(r"create (temp |unlogged )?table \w+ *(\(|partition of)", sql):
        return f"{sql} {option}"
    if re.match(r"create (unique )?index", sql):
        before, where, condition = sql.partition(" where ")
        return f"{before} {option}{where}{condition}"
    return sql
