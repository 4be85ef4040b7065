#!/usr/bin/env bash
# Builds the action into wasm/action/dist, which is committed: a runner downloads nothing else.
#
#   tools/action.sh            builds it
#   tools/action.sh --check    builds it elsewhere and fails if dist is not that
#
# dist is the modules of wasm/action/src as they are, the bindings, and the WebAssembly. The same
# sources and the same compiler give the same WebAssembly in any folder; dist/BUILD says which
# compiler that was. With another one, --check compares all but the WebAssembly, and says so.

. "$(dirname "$0")/env.sh"

dist=wasm/action/dist
tools/setup.sh targets wasm
tools/wasm.sh action

made=target/wasm/action-dist
rm -rf "$made"
mkdir -p "$made"
cp wasm/action/src/*.js target/wasm/action/waybill_wasm.js target/wasm/action/waybill_wasm_bg.wasm "$made"
printf '%s\nwasm-bindgen %s\n%s  waybill_wasm_bg.wasm\n' "$(rustc --version)" "$WASM_BINDGEN" \
    "$(sha256sum "$made/waybill_wasm_bg.wasm" | cut -d' ' -f1)" >"$made/BUILD"

if [ "${1:-}" != --check ]; then
    rm -rf "$dist"
    cp -r "$made" "$dist"
    say "built $dist: $(du -bs "$dist" | cut -f1) bytes"
    exit
fi

if [ "$(sed -n 1,2p "$made/BUILD")" = "$(sed -n 1,2p "$dist/BUILD")" ]; then
    what=()
else
    echo "!! THE ACTION'S WEBASSEMBLY WAS NOT COMPARED: it was built by $(sed -n 1p "$dist/BUILD")," \
        "and this is $(rustc --version). Its behaviour is tested all the same." >&2
    (cd "$dist" && sed -n 3p BUILD | sha256sum --check --quiet)
    what=(--exclude=BUILD --exclude='*.wasm')
fi
if ! diff -rq "${what[@]}" "$made" "$dist" >&2; then
    echo "action.sh: $dist is not what its sources give: run tools/action.sh and commit it" >&2
    exit 1
fi
