#!/usr/bin/env bash
# Drives clients that others wrote (pgbench, psql, psycopg) against a release build of Throng.
#
#   tests/clients/run.sh [NAME...]     only the checks whose names hold one of these words
#
# Takes the binary from THRONG, or from cargo's target directory. Needs psql and pgbench on the PATH;
# psycopg is installed into a virtual environment beside the build where it is missing.
# Prints "N passed, N failed" and fails if something failed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
export THRONG=${THRONG:-$target/release/throng}

[ -x "$THRONG" ] || { echo "no server at $THRONG: cargo build --release" >&2; exit 2; }
for tool in psql pgbench python3; do
    command -v "$tool" >/dev/null || { echo "$tool is not on the PATH" >&2; exit 2; }
done

source "$here/../psycopg.sh"
exec "$python" "$here/run.py" "$@"
