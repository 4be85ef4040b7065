# Sourced by the other scripts: the repository's root as working folder, and where tools are.
# shellcheck shell=bash

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Pinned. The wasm-bindgen program must be of the crate's own version.
WASM_BINDGEN=$(sed -n 's/^wasm-bindgen = "=\(.*\)"$/\1/p' Cargo.toml)
WASM_PACK=0.15.1
CARGO_DENY=0.20.2
MSRV=$(sed -n 's/^rust-version = "\(.*\)"$/\1.0/p' Cargo.toml)
export WASM_BINDGEN WASM_PACK CARGO_DENY MSRV

# Tools that we install go here and not into cargo's own folder, so that nobody's own versions
# are replaced; they are found there by every clone.
TOOLS=${WAYBILL_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/waybill/tools}
BUILD=${CARGO_TARGET_DIR:-target}
export TOOLS BUILD
export PATH="$TOOLS/bin:$PATH"

say() {
    printf '== %s\n' "$*" >&2
}
