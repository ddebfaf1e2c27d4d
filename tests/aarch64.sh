#!/usr/bin/env bash
# The forms written for aarch64, on whatever machine this is: cross-compiled, and run by an emulator for correctness.
# Says so and succeeds where the cross compiler or the emulator is not there.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
if [ "$(uname -m)" = aarch64 ]; then
    exec cargo test -p throng-sync spin
fi
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool (Debian: gcc-aarch64-linux-gnu, qemu-user)"; exit 0; }
done
rustup target list --installed | grep -q "$target" || rustup target add "$target" ||
    { echo "skipped: no standard library for $target"; exit 0; }

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
# The newest processor the emulator knows: one with the large system extensions.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu max"
cargo test --target "$target" -p throng-sync --lib spin
