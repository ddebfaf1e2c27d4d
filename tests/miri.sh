#!/usr/bin/env bash
# The unsafe code of the lower rooms under Miri, which sees what no processor does: reads of what is not there, races,
# references that outlive their memory. Needs a nightly toolchain; where there is none, and none to be had, says so.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! rustup +nightly component list --installed 2>/dev/null | grep -q '^miri'; then
    rustup toolchain install nightly --profile minimal --component miri,rust-src >/dev/null 2>&1 || {
        echo "no Miri to be had"
        exit 0
    }
fi

# Threads, clocks and files are real. System calls go through libc, which Miri knows.
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance"
export RUSTFLAGS="--cfg rustix_use_libc"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/throng/target}/miri"

miri() { cargo +nightly miri test "$@"; }

# Left out: what starts as many threads as there may be.
miri -p throng-sync --lib -- --skip living_threads_differ
miri -p throng-observe --lib -- table:: slots:: sampled::tests::a
miri -p throng-wal --lib
miri -p throng-buffer --lib
