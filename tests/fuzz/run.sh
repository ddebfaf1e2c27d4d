#!/usr/bin/env bash
# Fuzzes a server: tests/fuzz/run.sh --minutes N (--server HOST:PORT | --throng BIN) [--postgres HOST:PORT/DATABASE]; README.md tells the rest.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$(dirname "$0")/fuzz.py" "$@"
