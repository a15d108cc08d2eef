# `make help` lists the targets. They need cargo, make, git and a C compiler. Only `make packages` and `make tools` install anything:
# the other targets name what is missing and skip what needs it, or stop and say what to do.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# make run: what to serve, and where; a volume to keep, else one is made and removed again; the size of a new one.
ROOT ?=
ORIGIN ?=
LISTEN ?= 127.0.0.1:8080
CACHE ?=
SIZE ?= 64M
# make bench: a first look, too short to be quoted; the heavy stores to build: foyer-hybrid, redb, rocksdb, sqlite, or all.
QUICK ?=
STORES ?=
# make bench, bench-engine, cache-tests, explorer-test, drivers-test, packages, tools, test-php, test-python, test-rocket, test-tower: arguments, for instance ARGS=--quick, ARGS=--update.
ARGS ?=
# make soak: which of the long tests, all of them if empty; the seconds that the mixed storm goes, and each fuzz target gets.
PARTS ?=
MIXED_SECONDS ?= 3600
FUZZ_SECONDS ?= 60
# make install: where to.
PREFIX ?= /usr/local
# A directory of real request traces, for the tests and benchmarks that replay them; they say so where there is none.
EYEWALL_TRACES ?= $(abspath $(firstword $(wildcard ../*/traces)))
export ROOT ORIGIN LISTEN CACHE SIZE STORES MIXED_SECONDS FUZZ_SECONDS
ifneq ($(EYEWALL_TRACES),)
export EYEWALL_TRACES
endif

# The groups of scripts/packages that `make test`, `make soak` and `make cache-tests` use. `make packages ARGS=bench` adds the benchmark's.
PACKAGES := build soak c perl perl-tests php python cache-tests reference sites

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
# The fuzz targets are a workspace of their own.
WORKSPACES := $(wildcard Cargo.toml fuzz/Cargo.toml)
# Whoever changes the dependencies changes Cargo.lock too; only CI insists.
LOCKED := $(if $(CI),--locked)
# CI skips nothing that a tool is missing for.
skip = $(if $(CI),exit 1,echo "make $@: skipped: $(1)")

# The set-up, for all targets but those that only print and those that want nothing but Python.
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
run: ## serve the demo origin through the cache; or ROOT=dir, or ORIGIN=url; LISTEN=address:port, CACHE=volume, SIZE=64M
	@scripts/run

.PHONY: test
test: lint unit models instructions bindings ## lints, every test but the long ones, the bindings, and the counts of instructions
	@echo "make test: all passed"

.PHONY: unit
unit: ## the tests of all crates, doctests included, and whether the references of commands and configuration are up to date; those of the web frameworks that the benchmark compares are drivers-test's
	cargo test $(LOCKED) --workspace --exclude eyewall-bench-frameworks
	if ! command -v python3 >/dev/null; then $(call skip,whether the references of commands and configuration are up to date); else scripts/commands --check; scripts/configuration --check; scripts/snippets sh; fi

.PHONY: models
models: ## the protocols under loom, which runs every interleaving of their steps
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$(TARGET_DIR)/models" \
	    cargo test $(LOCKED) --profile model -p eyewall --test 'model_*'

.PHONY: instructions
instructions: ## the instructions of single operations, held against bench/instructions.json; ARGS=update keeps what they are now
	cargo run $(LOCKED) --release --quiet -p eyewall-bench-count --bin bench-count -- $(if $(ARGS),$(ARGS),check) bench/instructions.json

.PHONY: lint
lint: ## rustfmt, tidy (links too), Clippy, rustdoc, cargo-deny, the C header, the manual
	for manifest in $(WORKSPACES); do cargo fmt --all --check --manifest-path $$manifest; done
	cargo run $(LOCKED) --quiet -p eyewall-tidy
	cargo clippy $(LOCKED) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(LOCKED) --workspace --no-deps --quiet
	if deny=$$(scripts/tool cargo-deny); then "$$deny" deny $(LOCKED) check bans licenses sources; else $(call skip,licences and sources of dependencies); fi
	if scripts/tool cbindgen >/dev/null; then scripts/header --check; else $(call skip,whether eyewall.h is up to date); fi
	if ! command -v python3 >/dev/null; then $(call skip,whether the chart of the README is up to date); else scripts/headlines --check; fi
	if scripts/tool mdbook >/dev/null; then scripts/manual; else $(call skip,whether the manual can be built); fi

.PHONY: fmt
fmt: ## put the sources into form
	for manifest in $(WORKSPACES); do cargo fmt --all --manifest-path $$manifest; done

.PHONY: bench
bench: ## measure all workloads (bench/workloads) on all stores into a record for the explorer; QUICK=1 for a first look at what is quickly built, STORES=all; ARGS="concurrency sweep", ARGS="--resume DIR"
	@scripts/bench $(if $(QUICK),--quick) $(ARGS)

.PHONY: bench-engine
bench-engine: ## measure what only the engine has, and puts, and record it; ARGS=--quick for a first look
	cargo run $(LOCKED) --release -p eyewall-bench-compare --bin bench-engine -- $(ARGS)

.PHONY: explorer
explorer: ## collect the benchmarks' records for the page explorer/index.html, which any browser opens
	@scripts/explorer

.PHONY: explorer-test
explorer-test: ## the records and the explorer, in headless Chromium
	@scripts/explorer-test $(ARGS)

.PHONY: drivers-test
drivers-test: ## the benchmark's drivers in Perl, PHP and Python, in the tiniest form; and its servers in web frameworks
	@scripts/drivers-test $(ARGS)
	cargo test $(LOCKED) -p eyewall-bench-http -p eyewall-bench-frameworks

.PHONY: header
header: ## generate eyewall.h from the sources of the C library
	@scripts/header

.PHONY: install
install: ## build the program and the C library, and put them below PREFIX, with DESTDIR before it; PREFIX=/usr/local
	@scripts/install "$(PREFIX)"

.PHONY: reference
reference: ## pages of the interfaces, each by its language's own tool, into target/reference
	@scripts/reference

.PHONY: manual
manual: ## build the manual, docs/, into target/manual; make tools ARGS=mdbook builds what it wants
	@scripts/manual

.PHONY: bindings
bindings: ## the tests of all languages' bindings; a language whose packages are missing is skipped
	@scripts/bindings

.PHONY: test-c
test-c: ## the C library, installed: by several compilers, under valgrind and AddressSanitizer; and the cases of all languages
	@scripts/test-c

.PHONY: test-perl
test-perl: ## the Perl binding, built and installed into an empty folder: its tests, and the cases
	@scripts/test-perl

.PHONY: test-php
test-php: ## the extension of PHP and its packages, built in a copy; ARGS=ext/tests/fetch.phpt runs one test
	@scripts/test-php $(ARGS)

.PHONY: test-python
test-python: ## the package of Python, built by maturin and installed into an empty folder: its tests, its types, and the cases; ARGS=tests.test_flights runs one test
	@scripts/test-python $(ARGS)

.PHONY: test-rocket
test-rocket: ## files for Rocket: the tests, every snippet of the README, and the example; ARGS=ranges runs one test
	@scripts/test-rocket $(ARGS)

.PHONY: test-tower
test-tower: ## the layer for tower: its tests, every snippet of its README, and its examples; ARGS=flights runs one test
	@scripts/test-tower $(ARGS)

.PHONY: soak
soak: ## the long tests, sanitizers, fuzzers, real sites; or PARTS="storms mixed asan valgrind fuzz miri sites"; MIXED_SECONDS=3600
	@scripts/soak $(PARTS)

.PHONY: cache-tests
cache-tests: ## the public suite of HTTP cache tests against the server; ARGS=--update keeps what passes now
	@scripts/cache-tests $(ARGS)

.PHONY: packages
packages: ## as root: install the Debian packages that the tests use; ARGS=bench those of the benchmark, ARGS="build php" some groups
	@scripts/packages --install $(or $(ARGS),$(PACKAGES))

.PHONY: tools
tools: ## build cargo-deny, cbindgen and mdbook, which make lint uses, and pebble, where there is Go, into ~/.cache/eyewall/tools; ARGS=cargo-fuzz what make soak uses
	@scripts/tool --build $(or $(ARGS),cargo-deny cbindgen mdbook)
	@if [ -n "$(ARGS)" ]; then :; elif [ -n "$(CI)" ] || command -v go >/dev/null; then scripts/tool --build pebble; \
	    else echo "make tools: skipped: pebble, which Go builds"; fi
