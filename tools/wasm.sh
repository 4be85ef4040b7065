#!/usr/bin/env bash
# Builds the verifier for JavaScript into target/wasm/pkg, and prints its size.
#
#   tools/wasm.sh            the bindings (ES module; initSync for Node and workers)
#   tools/wasm.sh bench      also bare SHA-256 to measure against, into target/wasm/bare
#   tools/wasm.sh action     the gate for CI instead, into target/wasm/action
#
# The same sources and toolchain give the same bytes in any folder: paths in panic texts are
# replaced. How it is optimised (profile.wasm in Cargo.toml) is measured, in Node 20 on x86-64:
#
#   SIMD                          hashes 1.2 times as fast
#   opt-level 3                   checks 1.4 times as fast, 39 % larger gzipped
#   opt-level s                   checks 1.3 times as fast, 15 % larger gzipped
#   memchr for size too           checks 0.85 times as fast, no smaller
#   zmij for speed                no faster, 6 % larger gzipped: its tables
#   fat LTO                       no faster, no smaller
#   function names kept           23 % larger gzipped
#   wasm-opt -Oz (binaryen) too   8 % smaller, but 3 % larger gzipped
#
# What keeps it small besides are modules of the verifier that stand in for parts of the standard
# library which come with a copy for each type, or with large tables: table, order, find and
# json/float. Debug texts of strings, str::find and slices of texts by index ([from..to] panics
# with such a text; get does not) would bring those back, at some 10 KB each.

. "$(dirname "$0")/env.sh"

# wasm-bindgen reads from target_features what it may use.
flags='"-Ctarget-feature=+simd128", "-Clink-arg=--keep-section=target_features"'
for sources in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/; do
    flags+=", \"--remap-path-prefix=${sources%/}=crates\""
done
flags+=", \"--remap-path-prefix=$(rustc --print sysroot)=sysroot\", \"--remap-path-prefix=$PWD=waybill\""
config="target.wasm32-unknown-unknown.rustflags = [$flags]"
# Flags in the environment would replace these.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS

cargo fetch --quiet --locked
# Where it goes, then cargo's options.
bindings() {
    local folder=target/wasm/$1
    shift
    wasm-pack --quiet build wasm --profile wasm --target web --mode no-install \
        --out-dir "../$folder" -- --locked --config "$config" "$@"
    rm -f "$folder/.gitignore"
}
if [ "${1:-}" = action ]; then
    bindings action --features gate
    exit
fi
bindings pkg

if [ "${1:-}" = bench ]; then
    cargo build --quiet --locked --profile wasm --package waybill-wasm --example bare \
        --target wasm32-unknown-unknown --config "$config"
    wasm-bindgen --target web --out-dir target/wasm/bare \
        "$BUILD/wasm32-unknown-unknown/wasm/examples/bare.wasm"
    echo '{"type":"module"}' >target/wasm/bare/package.json
fi

wasm=target/wasm/pkg/waybill_wasm_bg.wasm
size=$(wc -c <"$wasm")
packed=$(gzip -9 -c -n "$wasm" | wc -c)
printf '%s: %s bytes, %s gzipped, sha256 %s\n' "$wasm" "$size" \
    "$packed" "$(sha256sum "$wasm" | cut -d' ' -f1)"
if [ "$size" -gt 450000 ] || [ "$packed" -gt 180000 ]; then
    echo 'wasm.sh: that is more than 450,000 bytes, or 180,000 gzipped' >&2
    exit 1
fi
