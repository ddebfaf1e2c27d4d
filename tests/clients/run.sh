#!/usr/bin/env bash
# Drives clients that others wrote (pgbench, psql, pg_dump, drivers of five languages and what is built on them) against a release build of Throng.
#
#   tests/clients/run.sh [WORD...]              only the checks whose names hold one of these words
#   tests/clients/run.sh --postgres [WORD...]   the drivers' programs against the PostgreSQL that PGHOST, PGPORT, PGUSER and PGPASSWORD name
#
# Takes the binary from THRONG, or from cargo's target directory. Needs psql and pgbench on the PATH; drivers are installed by their package managers
# into a cache beside the build, and a language without its tools is skipped, loudly. Where Throng is known to differ is in known.txt.
# Prints "N passed, N failed, N skipped" and fails if something failed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export THRONG=${THRONG:-${CARGO_TARGET_DIR:-$root/target}/release/throng}
export THRONG_CLIENTS_CACHE=${CARGO_TARGET_DIR:-$HOME/.cache/throng/target}/clients

[ -x "$THRONG" ] || { echo "no server at $THRONG: cargo build --release" >&2; exit 2; }
for tool in psql pgbench python3; do
    command -v "$tool" >/dev/null || { echo "$tool is not on the PATH" >&2; exit 2; }
done

venv=$THRONG_CLIENTS_CACHE/venv
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    rm -rf "$venv"
    mkdir -p "$THRONG_CLIENTS_CACHE"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/installed.txt"
fi
exec "$venv/bin/python" "$here/run.py" "$@"
