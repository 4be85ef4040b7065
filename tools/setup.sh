#!/usr/bin/env bash
# Installs what building and testing need and this machine lacks, and says what.
#
#   tools/setup.sh [targets] [msrv] [wasm] [deny] [strace] [chromium] [action]     (all if none is named)
#
# Needs rustup, a C compiler and the package registry. Does nothing if all is there.

. "$(dirname "$0")/env.sh"

if ! command -v rustup >/dev/null; then
    echo 'setup.sh: rustup is needed, to add targets and toolchains: get Rust by it' >&2
    exit 69
fi

target() {
    rustup target list --installed | grep -qx "$1" && return
    say "installing the Rust target $1 ($2)"
    rustup --quiet target add "$1"
}

# crate, program, version, what for; then what to give to cargo install.
tool() {
    local crate=$1 program=$2 version=$3 why=$4
    shift 4
    if command -v "$program" >/dev/null && [ "$("$program" --version 2>/dev/null | cut -d' ' -f2)" = "$version" ]; then
        return
    fi
    say "installing $crate $version into $TOOLS ($why; takes some minutes, once)"
    # Quick to build matters more here than quick to run.
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=0 \
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_TARGET_DIR="$BUILD/tools" \
        cargo install --quiet --force --root "$TOOLS" "$@" "$crate@$version"
}

# A Debian package, where its program is missing.
debian() {
    local package=$1 why=$2
    command -v "$package" >/dev/null && return
    say "installing Debian's $package ($why)"
    { apt-get update -q && apt-get install -y -q "$package"; } >/dev/null
}

[ $# -gt 0 ] || set -- targets msrv wasm deny strace chromium action
for what; do
    case $what in
    targets)
        target wasm32-unknown-unknown "the verifier in browsers and Node"
        target x86_64-unknown-none "proves that the verifier is no_std"
        ;;
    msrv)
        if ! rustup toolchain list | grep -q "^$MSRV-"; then
            say "installing the Rust toolchain $MSRV (the oldest that must compile this)"
            rustup --quiet toolchain install "$MSRV" --profile minimal --no-self-update
        fi
        ;;
    wasm)
        # Its lock file is of an older day than the registry's crates.
        tool wasm-bindgen-cli wasm-bindgen "$WASM_BINDGEN" "writes the JavaScript side of the bindings" --bin wasm-bindgen
        tool wasm-pack wasm-pack "$WASM_PACK" "builds the bindings" --locked
        ;;
    strace)
        debian strace "kills a process at each of its system calls"
        ;;
    chromium)
        # The one that CHROMIUM names is taken as it is.
        [ -x "${CHROMIUM:-}" ] || debian chromium "the page's tests drive it"
        if ! [ tests/page/node_modules/.package-lock.json -nt tests/page/package-lock.json ]; then
            say "installing playwright-core and axe into tests/page/node_modules (drive the browser)"
            npm ci --prefix tests/page --silent --no-audit --no-fund
        fi
        ;;
    action)
        if ! [ tests/action/node_modules/.package-lock.json -nt tests/action/package-lock.json ]; then
            say "installing Node 24 and schemas into tests/action/node_modules (run the action, judge its files)"
            npm ci --prefix tests/action --ignore-scripts --silent
        fi
        ;;
    deny)
        tool cargo-deny cargo-deny "$CARGO_DENY" "checks licences and sources of dependencies" --locked
        ;;
    *)
        echo "setup.sh: $what is none of targets, msrv, wasm, deny, strace, chromium, action" >&2
        exit 64
        ;;
    esac
done
