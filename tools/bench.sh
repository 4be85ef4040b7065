#!/usr/bin/env bash
# `make bench`: all that is measured, in one run. Arguments go to the bench itself.

. "$(dirname "$0")/env.sh"

# The reference implementation, if a Python for it is here.
reference=$(python3 -B -c '
import sys
sys.path.insert(0, "tests/interop")
import run
found = run.newest_python()
print(run.environment(*found) if found else "")
' | tail -n 1)
if [ -n "$reference" ]; then
    set -- --reference "$reference" tests/interop/driver.py "$@"
else
    say 'no Python for the reference implementation: it is left out'
fi
cargo run --quiet --release --locked --package waybill-writer --example bench -- "$@"

gate=()
if command -v node >/dev/null; then gate=(--node node); fi
cargo run --quiet --release --locked --package waybill-writer --example bench_gate -- "${gate[@]}"

if command -v node >/dev/null; then
    tools/setup.sh targets wasm
    tools/wasm.sh bench
    node tests/wasm/bench.mjs
    if tools/setup.sh chromium; then
        tools/page.sh
        node tests/page/bench.mjs
    else
        say 'no Chromium: the page is left out'
    fi
else
    say 'no Node: WebAssembly is left out'
fi
