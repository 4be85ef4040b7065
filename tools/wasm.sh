#!/usr/bin/env bash
# Builds the verifier for JavaScript into target/wasm/pkg, and prints its size.
#
#   tools/wasm.sh            the bindings (ES module; initSync for Node and workers)
#   tools/wasm.sh bench      also bare SHA-256 to measure against, into target/wasm/bare
#
# The same sources and toolchain give the same bytes in any folder: paths in panic texts are
# replaced. Measured (Node 20, x86-64): SIMD makes hashing 1.2 times as fast; opt-level s makes
# checking a fifth slower and saves 3 KB gzipped; wasm-opt -O3 saves 6 KB and no time.

. "$(dirname "$0")/env.sh"

flags='"-Ctarget-feature=+simd128"'
for sources in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/; do
    flags+=", \"--remap-path-prefix=${sources%/}=crates\""
done
flags+=", \"--remap-path-prefix=$(rustc --print sysroot)=sysroot\", \"--remap-path-prefix=$PWD=waybill\""
config="target.wasm32-unknown-unknown.rustflags = [$flags]"
# Flags in the environment would replace these.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS

cargo fetch --quiet --locked
wasm-pack --quiet build wasm --release --target web --mode no-install \
    --out-dir ../target/wasm/pkg -- --locked --config "$config"
rm -f target/wasm/pkg/.gitignore

if [ "${1:-}" = bench ]; then
    cargo build --quiet --locked --release --package waybill-wasm --example bare \
        --target wasm32-unknown-unknown --config "$config"
    wasm-bindgen --target web --out-dir target/wasm/bare \
        "$BUILD/wasm32-unknown-unknown/release/examples/bare.wasm"
    echo '{"type":"module"}' >target/wasm/bare/package.json
fi

wasm=target/wasm/pkg/waybill_wasm_bg.wasm
printf '%s: %s bytes, %s gzipped, sha256 %s\n' "$wasm" "$(wc -c <"$wasm")" \
    "$(gzip -9 -c -n "$wasm" | wc -c)" "$(sha256sum "$wasm" | cut -d' ' -f1)"
