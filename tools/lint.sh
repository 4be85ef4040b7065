#!/usr/bin/env bash
# Checks form, not function: each step says what it is, and the first that fails ends it.

. "$(dirname "$0")/env.sh"

tools/setup.sh deny

say 'rustfmt'
cargo fmt --all --check

say 'clippy'
cargo clippy --quiet --locked --workspace --all-targets -- -D warnings

say 'rustdoc'
RUSTDOCFLAGS='-D warnings' cargo doc --quiet --locked --workspace --no-deps

say 'licences, bans and sources of dependencies'
# Advisories would need the network.
cargo deny --locked --log-level error check licenses bans sources

say 'scripts'
scripts=(.ci/run tools/*.sh hooks/*)
for script in "${scripts[@]}"; do bash -n "$script"; done
if command -v shellcheck >/dev/null; then
    shellcheck --external-sources --exclude=SC1091 "${scripts[@]}"
fi
if command -v node >/dev/null; then
    for module in tests/{wasm,page,action}/*.mjs tools/*.mjs www/*.js wasm/action/src/*.js; do node --check "$module"; done
fi
python3 - tests/interop <<'PYTHON'
import ast, pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    ast.parse(path.read_bytes(), str(path))
PYTHON

say 'nothing of this machine in the tree'
tools/check-tree.sh
