# `make help` lists the targets. They need cargo, make, git and a C compiler. Only `make packages` and `make tools` install
# anything. The other targets name missing programs; they skip the parts that need them, or stop and say what to do.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# make run: what to serve, and where; a volume to keep (otherwise a temporary one is used); the size of a new volume.
ROOT ?=
ORIGIN ?=
LISTEN ?= 127.0.0.1:8080
CACHE ?=
SIZE ?= 64M
# make bench: a quick run, too short to quote; the heavy stores to build: foyer-hybrid, redb, rocksdb, sqlite, or all.
QUICK ?=
STORES ?=
# make bench, cache-tests, dashboard-test, explorer-test, drivers-test, packages, tools, test-lua, test-php, test-python, test-rocket, test-tower: arguments, for instance ARGS="serve tags", ARGS=--update.
ARGS ?=
# make soak: the parts to run, all if empty; the seconds of the mixed storm, of each fuzz target, of the counts that have to agree, and of each long
# test of a fleet.
PARTS ?=
MIXED_SECONDS ?= 3600
FUZZ_SECONDS ?= 60
METRICS_SECONDS ?= 600
FLEET_SECONDS ?= 60
# make install: the prefix.
PREFIX ?= /usr/local
# A directory of real request traces, for the tests and benchmarks that replay them. Without one, they say so and pass.
EYEWALL_TRACES ?= $(abspath $(firstword $(wildcard ../*/traces)))
export ROOT ORIGIN LISTEN CACHE SIZE STORES MIXED_SECONDS FUZZ_SECONDS METRICS_SECONDS FLEET_SECONDS
ifneq ($(EYEWALL_TRACES),)
export EYEWALL_TRACES
endif

# The groups of scripts/packages that `make test`, `make soak` and `make cache-tests` use. `make packages ARGS=bench` adds the benchmark's.
PACKAGES := build fleet soak c perl perl-tests php lua lua-tests python cache-tests reference sites deb

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
# The fuzz targets are a workspace of their own.
WORKSPACES := $(wildcard Cargo.toml fuzz/Cargo.toml)
# A developer who changes dependencies also changes Cargo.lock; only CI insists on it.
LOCKED := $(if $(CI),--locked)
# In CI, a missing tool is an error.
skip = $(if $(CI),exit 1,echo "make $@: skipped: $(1)")

# The set-up, for all targets except those that only print or only need Python.
ifneq ($(filter-out help packages tools explorer explorer-test manual,$(or $(MAKECMDGOALS),help)),)
TOOLCHAIN := $(shell scripts/packages build >&2 && scripts/toolchain rustfmt clippy)
ifneq ($(.SHELLSTATUS),0)
$(error The set-up is incomplete; what to do stands above)
endif
ifneq ($(TOOLCHAIN),)
export RUSTUP_TOOLCHAIN := $(TOOLCHAIN)
endif
endif

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

.PHONY: run
run: ## serve the demo origin through the cache; ROOT=dir or ORIGIN=url serves another; LISTEN=address:port, CACHE=volume, SIZE=64M
	@scripts/run

.PHONY: test
test: lint unit models instructions bindings ## run the lints, all tests except the long ones, the bindings' tests, and the counts of instructions
	@echo "make test: all passed"

.PHONY: unit
unit: ## run the tests of all crates with their doctests, and check the references of commands and configuration; drivers-test has those of the benchmark's web frameworks
	cargo test $(LOCKED) --workspace --exclude eyewall-bench-frameworks
	if ! command -v python3 >/dev/null; then $(call skip,whether the references of commands and configuration are up to date); else scripts/commands --check; scripts/configuration --check; scripts/snippets sh; fi

.PHONY: models
models: ## run the protocols under loom, which tries every interleaving of their steps
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$(TARGET_DIR)/models" \
	    cargo test $(LOCKED) --profile model -p eyewall --test 'model_*'

.PHONY: instructions
instructions: ## compare the instructions of single operations with bench/instructions.json; ARGS=update records the present ones
	cargo run $(LOCKED) --release --quiet -p eyewall-bench-count --bin bench-count -- $(if $(ARGS),$(ARGS),check) bench/instructions.json

.PHONY: lint
lint: ## run rustfmt, tidy (links too), Clippy, rustdoc and cargo-deny; check the C header, the units of systemd and the manual
	for manifest in $(WORKSPACES); do cargo fmt --all --check --manifest-path $$manifest; done
	cargo run $(LOCKED) --quiet -p eyewall-tidy
	cargo clippy $(LOCKED) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(LOCKED) --workspace --no-deps --quiet
	if deny=$$(scripts/tool cargo-deny); then "$$deny" deny $(LOCKED) check bans licenses sources; else $(call skip,licences and sources of dependencies); fi
	if scripts/tool cbindgen >/dev/null; then scripts/header --check; else $(call skip,whether eyewall.h is up to date); fi
	if ! command -v python3 >/dev/null; then $(call skip,whether the chart of the README is up to date); else scripts/headlines --check; fi
	if command -v systemd-analyze >/dev/null; then scripts/units; else $(call skip,whether the units of systemd are right); fi
	if scripts/tool mdbook >/dev/null; then scripts/manual; else $(call skip,whether the manual can be built); fi

.PHONY: fmt
fmt: ## format the sources
	for manifest in $(WORKSPACES); do cargo fmt --all --manifest-path $$manifest; done

.PHONY: bench
bench: ## measure all workloads (bench/workloads) on all stores into a record for the explorer; QUICK=1 for a quick run without slow builds, STORES=all for all stores; ARGS="concurrency sweep", ARGS=serve, ARGS="--resume DIR"
	@scripts/bench $(if $(QUICK),--quick) $(ARGS)

.PHONY: bench-engine
bench-engine: ## the same as make bench ARGS=engine: puts, and the engine's own features
	@scripts/bench $(if $(QUICK),--quick) engine $(ARGS)

.PHONY: bench-serve
bench-serve: ## the same as make bench ARGS=serve: the server against others
	@scripts/bench $(if $(QUICK),--quick) serve $(ARGS)

.PHONY: explorer
explorer: ## collect the benchmarks' records for explorer/index.html, a page for any browser
	@scripts/explorer

.PHONY: explorer-test
explorer-test: ## test the records and the explorer, in headless Chromium
	@scripts/explorer-test $(ARGS)

.PHONY: dashboard-test
dashboard-test: ## test the dashboard of a server, in headless Chromium
	@scripts/dashboard-test $(ARGS)

.PHONY: drivers-test
drivers-test: ## test the benchmark's drivers, and its servers in web frameworks, at the smallest size
	@scripts/drivers-test $(ARGS)
	cargo test $(LOCKED) -p eyewall-bench-http -p eyewall-bench-frameworks

.PHONY: header
header: ## generate eyewall.h from the sources of the C library
	@scripts/header

.PHONY: install
install: ## build the program and the C library, and install them below PREFIX (after DESTDIR); PREFIX=/usr/local
	@scripts/install "$(PREFIX)"

.PHONY: deb
deb: ## build the Debian packages into target/deb, and check them by lintian
	@scripts/deb "$(TARGET_DIR)/deb"

.PHONY: deb-test
deb-test: deb ## as root: build the Debian packages, and install, use, upgrade, remove and purge them in an empty system
	@scripts/deb-test "$(TARGET_DIR)/deb"

.PHONY: reference
reference: ## build the reference of each language's interface, by the language's own tool, into target/reference
	@scripts/reference

.PHONY: manual
manual: ## build the manual, docs/, into target/manual; make tools ARGS=mdbook builds the mdbook that it needs
	@scripts/manual

.PHONY: bindings
bindings: ## run the tests of all bindings; a language whose packages are missing is skipped
	@scripts/bindings

.PHONY: test-c
test-c: ## test the installed C library with several compilers, under valgrind and AddressSanitizer; and the cases of all languages
	@scripts/test-c

.PHONY: test-go
test-go: ## test the package of Go: its form, its tests without cgo and under the race detector, its README, and the cases; ARGS="-run Fill" runs some tests
	@scripts/test-go $(ARGS)

.PHONY: test-perl
test-perl: ## build the Perl binding, install it into an empty folder, and run its tests and the cases
	@scripts/test-perl

.PHONY: test-php
test-php: ## build the PHP extension in a copy, and run its tests, those of its packages, and the cases; ARGS=ext/tests/fetch.phpt runs one test
	@scripts/test-php $(ARGS)

.PHONY: test-python
test-python: ## build the Python package, install it into an empty folder, and run its tests, mypy, and the cases; ARGS=tests.test_flights runs one test
	@scripts/test-python $(ARGS)

.PHONY: test-lua
test-lua: ## test the Lua package in LuaJIT and in nginx, and run the cases; ARGS=test_dict.lua runs one test
	@scripts/test-lua $(ARGS)

.PHONY: test-rocket
test-rocket: ## test files for Rocket: the tests, every snippet of the README, and the example; ARGS=ranges runs one test
	@scripts/test-rocket $(ARGS)

.PHONY: test-tower
test-tower: ## test the layer for tower: its tests, every snippet of its README, and its examples; ARGS=collapsing runs one test
	@scripts/test-tower $(ARGS)

.PHONY: soak
soak: ## run the long tests, sanitizers, fuzzers and real sites; PARTS="storms mixed changes attacks metrics fleet asan valgrind fuzz miri sites packages" selects; MIXED_SECONDS=3600
	@scripts/soak $(PARTS)

.PHONY: cache-tests
cache-tests: ## run the public suite of HTTP cache tests against the server; ARGS=--update records what passes now
	@scripts/cache-tests $(ARGS)

.PHONY: packages
packages: ## as root: install the Debian packages of the tests; ARGS=bench for those of the benchmark, ARGS="build php" for some groups
	@scripts/packages --install $(or $(ARGS),$(PACKAGES))

.PHONY: tools
tools: ## build cargo-deny, cbindgen and mdbook for make lint, with Go Pebble for tests of certificates, and promtool for tests of metrics, into ~/.cache/eyewall/tools; ARGS=cargo-fuzz for make soak
	@scripts/tool --build $(or $(ARGS),cargo-deny cbindgen mdbook)
	@if [ -n "$(ARGS)" ]; then :; elif [ -n "$(CI)" ] || command -v go >/dev/null; then scripts/tool --build pebble; \
	    else echo "make tools: skipped: pebble, which Go builds"; fi
	@if [ -n "$(ARGS)" ]; then :; elif [ -n "$(CI)" ] || command -v apt-get >/dev/null; then scripts/tool --build promtool; \
	    else echo "make tools: skipped: promtool, which Debian has"; fi
