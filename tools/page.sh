#!/usr/bin/env bash
# Builds the page from www/ and what tools/wasm.sh built: target/page/site to serve, and
# target/page/waybill-verify.html, one file that opens from disk. Prints its size and SHA-256.

. "$(dirname "$0")/env.sh"

if ! command -v node >/dev/null; then
    echo 'page.sh: Node is needed to put the page together: install it' >&2
    exit 69
fi
if [ ! -e target/wasm/pkg/waybill_wasm_bg.wasm ]; then
    echo "page.sh: the verifier's WebAssembly is not there: make wasm" >&2
    exit 66
fi
node tools/page.mjs
