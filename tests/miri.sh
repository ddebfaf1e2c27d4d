#!/usr/bin/env bash
# The unsafe code of the lower rooms under Miri, which sees what no processor shows: reads of what is not there, races,
# references that outlive their memory. A minute or two from a warm target directory.
#
# The nightly is fixed, so that what passes today passes tomorrow. Where it is neither installed nor to be had, the script
# says so and succeeds: it has proved nothing then.
set -euo pipefail
cd "$(dirname "$0")/.."

NIGHTLY=nightly-2026-10-30

if ! rustup "+$NIGHTLY" component list --installed 2>/dev/null | grep -q '^miri'; then
    rustup toolchain install "$NIGHTLY" --profile minimal --component miri,rust-src || {
        echo "!! NOT RUN: $NIGHTLY with Miri cannot be had here, so nothing was interpreted !!" >&2
        exit 0
    }
fi

# Threads and clocks are real; system calls go through libc, which Miri knows; parking_lot keeps pointers in integers.
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance"
export RUSTFLAGS="--cfg rustix_use_libc"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/throng/target}/miri"
# Properties are other runs' business: here each is only watched.
export PROPTEST_CASES=2
export RUST_BACKTRACE=0

miri() { cargo "+$NIGHTLY" miri test "$@"; }

# Locks, latches, parking, wakers, cells.
miri -p throng-sync --lib
# The frames' memory, as words and as bytes under a latch.
miri -p throng-buffer --lib -- memory::
# The log's ring: inserters in every form against a flusher. They note waits in slots of 300 kB a thread, of which Stacked
# Borrows would look at every word at each access: hence the other model of aliasing.
MIRIFLAGS="$MIRIFLAGS -Zmiri-tree-borrows -Zmiri-tree-borrows-no-precise-interior-mut" \
    miri -p throng-wal --lib -- buffer:: horizon:: waiters::
