# The habits of the project. `just` lists them; each is a command that stands in CONTRIBUTING.md, too.

target := env("CARGO_TARGET_DIR", justfile_directory() / "target")
throng := target / "release/throng"

# What there is.
default:
    @just --list

# The server and the tools, as they ship.
build:
    cargo build --release

# All tests that `cargo` knows.
test:
    cargo test --workspace

# Formatting, lints and the rules of style.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test -p throng-tidy

# Everything that must hold before a change lands.
ci:
    .ci/run

# Throng beside PostgreSQL: `just bench DIR-OF-POSTGRES`.
bench pgbin: build
    tests/bench/compare.py --throng {{ throng }} --pgbin {{ pgbin }}

# Tests that others wrote: `just compat DIR-OF-CORPORA`.
compat corpora: build
    THRONG={{ throng }} tests/compat/run.sh {{ corpora }}

# Real clients and drivers.
clients: build
    THRONG={{ throng }} tests/clients/run.sh

# Statements and messages that nobody writes.
fuzz minutes="10": build
    tests/fuzz/run.sh --minutes {{ minutes }} --throng {{ throng }}

# Everything at once, with kill -9.
everything minutes="10": build
    python3 tests/fuzz/everything.py --minutes {{ minutes }} --throng {{ throng }}

# The crates' documentation; a link that leads nowhere is an error.
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
