# Every target installs what it needs and needs no other to have been run first. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
BIN := build/release/bin
# Where the shared data sets are; tests and benches that need them say so when they are not there.
export BERTH_DATA ?= $(abspath ../shared/data)

PACKAGES := g++ cmake ninja-build ccache pkg-config libboost-dev libssl-dev zlib1g-dev libsimdjson-dev \
  nlohmann-json3-dev prometheus-cpp-dev libcivetweb-dev libcurl4-openssl-dev libyaml-cpp-dev libspdlog-dev \
  libcli11-dev libexpected-dev libcpprest-dev libgtest-dev libgmock-dev libbenchmark-dev
CLANG_PACKAGES := clang-14 libclang-rt-14-dev
LINT_PACKAGES := clang-format-14 shellcheck

.PHONY: help build demo test sanitize bench lint clean

help: ## What there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Installs the packages that are missing; as root, or with sudo.
define install
	@missing=(); for p in $(1); do \
	  dpkg-query -W -f='$${Status}' "$$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$$p"); done; \
	if (( $${#missing[@]} > 0 )); then \
	  echo "installing: $${missing[*]}"; \
	  as_root=(); if (( $$(id -u) != 0 )); then as_root=(sudo); fi; \
	  $${as_root[@]+"$${as_root[@]}"} apt-get update -qq; \
	  DEBIAN_FRONTEND=noninteractive $${as_root[@]+"$${as_root[@]}"} apt-get install -y -qq \
	    --no-install-recommends "$${missing[@]}" >/dev/null; \
	fi
endef

build: ## Optimised build in build/release/, binaries in build/release/bin/
	$(call install,$(PACKAGES))
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target berth berth-replay

demo: build ## A GPU workload over HTTP against `berth serve`, and a table; TRACE=dir takes openb CSV files
	@$(BIN)/berth-replay demo $(if $(TRACE),--trace '$(TRACE)') $(if $(SEED),--seed $(SEED))

test: ## Every test
	$(call install,$(PACKAGES))
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS)
	@ctest --preset release -j $(JOBS)

# The programs whose tests run under the sanitizers.
SANITIZED := unit_tests config_tests reflector_tests server_tests property_tests wire_tests

sanitize: ## Unit, property and wire tests under address+undefined and under thread sanitizer
	$(call install,$(PACKAGES) $(CLANG_PACKAGES))
	@for preset in asan tsan; do \
	  cmake --preset $$preset >/dev/null; \
	  cmake --build --preset $$preset -j $(JOBS) --target $(SANITIZED); \
	  ctest --preset $$preset -j $(JOBS) -L '^(unit|property|wire)$$'; \
	done

bench: ## Every benchmark, as ratios against a baseline of the same run (bench/RESULTS.md has the recorded ones)
	$(call install,$(PACKAGES))
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS)
	@$(BIN)/berth-load
	@$(BIN)/berth-micro
	@$(BIN)/berth-kube-bench
	@bench/replay/table.sh $(BIN)/berth-replay "$$BERTH_DATA"

lint: ## Format and shell scripts
	$(call install,$(LINT_PACKAGES))
	@git ls-files '*.h' '*.cc' | xargs clang-format-14 --dry-run --Werror
	@git ls-files '*.sh' .ci/run | xargs shellcheck
	@echo "lint: ok"

clean: ## Remove build/
	@rm -rf build
