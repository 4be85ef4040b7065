# The doors to everything: `make demo` needs only Rust; `make test` installs what else it needs.
# Each part can be run alone. Nothing here runs in parallel: cargo does that.

.NOTPARALLEL:
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

WAYBILL := $(or $(CARGO_TARGET_DIR),target)/release/waybill
DEBUG := $(or $(CARGO_TARGET_DIR),target)/debug/waybill

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

demo: ## Record a small run, kill it in a write, recover it, find one changed byte
	@cargo build --quiet --release --locked --package waybill-writer --bin waybill
	@cargo run --quiet --release --locked --package waybill-writer --example demo

test: setup test-rust test-no-std test-msrv test-wasm test-page test-action test-interop test-demo ## Run every test

test-quick: ## Run the tests that need seconds: no crashes, no other toolchain, no Node or Python
	cargo test --quiet --locked --workspace -- --skip crash:: --skip faults::

test-rust: ## Run the unit, property and end-to-end tests
	cargo test --locked --workspace

test-no-std: ## Build the verifier where there is no std, and for WebAssembly
	@tools/setup.sh targets
	cargo build --quiet --locked --package waybill-verifier --no-default-features --target x86_64-unknown-none
	cargo build --quiet --locked --package waybill-verifier --no-default-features --target wasm32-unknown-unknown

test-msrv: ## Check that the oldest Rust that we promise compiles all of it
	@tools/setup.sh msrv
	@source tools/env.sh && set -x && cargo "+$$MSRV" check --quiet --locked --workspace --all-targets

test-wasm: release wasm ## Hold the reports from WebAssembly against the command's
	@if command -v node >/dev/null; then \
		set -x; WAYBILL_BIN=$(WAYBILL) node tests/wasm/parity.mjs; \
		WAYBILL_BIN=$(WAYBILL) node tests/wasm/parity.mjs vectors; \
	else \
		echo '!! WASM PARITY DID NOT RUN: there is no node here'; [ -z "$${CI:-}" ]; \
	fi

test-page: ## Drive the page in a browser, and hold its reports against the command's
	@if command -v node >/dev/null && tools/setup.sh chromium; then \
		$(MAKE) --no-print-directory page; set -x; \
		cargo build --quiet --locked --package waybill-writer --bin waybill --features page; \
		WAYBILL_BIN=$(DEBUG) WAYBILL_PAGE_BIN=$(DEBUG) node --test tests/page/*.test.mjs; \
	else \
		echo '!! THE PAGE TESTS DID NOT RUN: there is no chromium or no node here'; [ -z "$${CI:-}" ]; \
	fi

test-action: release ## Run the action as a runner does, and hold its report against the command's
	@if command -v node >/dev/null; then \
		tools/setup.sh action; tools/action.sh --check; \
		WAYBILL_BIN=$(WAYBILL) node tests/action/action.mjs; \
	else \
		echo '!! THE ACTION WAS NOT TESTED: there is no node here'; [ -z "$${CI:-}" ]; \
	fi

test-interop: ## Let the reference implementation check us, and the other way round
	python3 tests/interop/run.py

test-demo:
	@$(MAKE) --no-print-directory demo >/dev/null
	@echo 'demo: 1 passed, 0 failed'

bench: release ## Measure rates, sizes and memory (minutes; best on an idle machine)
	@tools/bench.sh

lint: ## Check form: rustfmt, clippy, docs, dependencies, scripts
	@tools/lint.sh

setup: ## Install what building and testing need and this machine lacks
	@tools/setup.sh targets msrv wasm strace

release:
	cargo build --quiet --release --locked --package waybill-writer --bin waybill

wasm: ## Build the verifier for JavaScript into target/wasm/pkg
	@tools/setup.sh targets wasm
	tools/wasm.sh

action: ## Build the action for GitHub into wasm/action/dist, which is committed
	@tools/action.sh

page: wasm ## Build the page: one file that opens from disk, and a folder to serve
	tools/page.sh

.PHONY: help demo test test-quick test-rust test-no-std test-msrv test-wasm test-page test-action test-interop test-demo \
	bench lint setup release wasm page action
