# Every target installs what it needs and needs no other to have been run first. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
BIN := build/release/bin
# arm64 is built by a cross compiler, in build/arm64, with Debian's packages of it in build/sysroot-arm64.
SYSTEM := $(shell dpkg --print-architecture)
ARCH ?= $(SYSTEM)
# Where the shared data sets are; tests and benches that need them say so when they are not there.
export BERTH_DATA ?= $(abspath ../shared/data)

PACKAGES := g++ cmake ninja-build ccache pkg-config libboost-dev libssl-dev zlib1g-dev libsimdjson-dev \
  nlohmann-json3-dev prometheus-cpp-dev libcivetweb-dev libcurl4-openssl-dev libyaml-cpp-dev libspdlog-dev \
  libcli11-dev libexpected-dev libcpprest-dev libpugixml-dev libgrpc++-dev libre2-dev libprotobuf-dev protobuf-compiler \
  protobuf-compiler-grpc libgtest-dev libgmock-dev libbenchmark-dev
CLANG_PACKAGES := clang-14 libclang-rt-14-dev
# A network of its own for a test; the nodes that run containers.
E2E_PACKAGES := iproute2 containerd runc containernetworking-plugins
LINT_PACKAGES := clang-format-14 shellcheck

# The end-to-end tests run in front of a real control plane, which test/e2e/binaries.sh builds from source, once.
E2E := test/e2e
E2E_LOG := build/e2e-binaries.log
# Those of the live page drive Debian's chromium, which test/page/build.sh installs.
PAGE := test/page
PAGE_LOG := build/page-tests.log

.PHONY: help quick build sysroot lab demo docs pictures test image release sanitize fuzz soak bench bench-guard lint tidy clean e2e e2e-controllers e2e-binaries bench-gangs bench-e2e bench-node cel room-trials replay-e2e e2e-demo e2e-demo-stop page bench-page

help: ## What there is
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Notes in the file BERTH_PHASES, where .ci/run names one, when a phase has ended.
phase = if [[ -n "$${BERTH_PHASES:-}" ]]; then printf '%s\t%s\n' "$$(date +%s)" "$(1)" >>"$$BERTH_PHASES"; fi

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

# Longer ones are labelled property, parity, integration, fuzz or long.
quick: ## The tests of each change: unit, wire and arch, in build/dev (clang, debug)
	$(call install,$(PACKAGES) $(CLANG_PACKAGES))
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev -j $(JOBS) --target quick_tests
	@ctest --preset dev -j $(JOBS) -L '^(unit|wire|arch)$$' -LE '^long$$'

build: ## Optimised build in build/release/, binaries in build/release/bin/; ARCH=arm64: in build/arm64/, by a cross compiler
	$(call install,$(PACKAGES))
	@for arch in $(ARCH); do \
	  preset=release; \
	  if [[ $$arch != $(SYSTEM) ]]; then \
	    $(MAKE) --no-print-directory sysroot ARCH="$$arch"; \
	    preset=$$arch; \
	  fi; \
	  cmake --preset "$$preset" $(if $(VERSION),-DBERTH_VERSION='$(VERSION)') >/dev/null; \
	  cmake --build --preset "$$preset" -j $(JOBS) --target berth berth-replay berth-node; \
	done

sysroot:
	$(call install,g++-aarch64-linux-gnu)
	@[[ '$(SYSTEM) $(ARCH)' == 'amd64 arm64' ]] || { echo "want ARCH=arm64 on amd64, got $(ARCH) on $(SYSTEM)" >&2; exit 2; }
	@release/sysroot.sh $(ARCH) build/sysroot-$(ARCH) libc6-dev libstdc++-12-dev $(filter %-dev,$(PACKAGES))

demo: ## Berth beside kube-scheduler and FGD: live page, bars, a report of plots; TRACE=dir takes openb CSV files, SEED=n
	$(call install,$(PACKAGES))
	@JOBS=$(JOBS) cmake/build-quietly.sh berth berth-replay
	@$(BIN)/berth-replay demo --report build/demo $(if $(TRACE),--trace '$(TRACE)') $(if $(SEED),--seed $(SEED))

# The control plane is built beside Berth, at low priority; what it lacks does not keep the other tests from running.
# End-to-end tests wait more than they compute: one more at a time than there are cores.
test: ## Every test
	$(call install,$(PACKAGES) $(E2E_PACKAGES))
	@mkdir -p build; nice $(E2E)/binaries.sh >/dev/null 2>$(E2E_LOG) & plane=$$!; \
	nice $(PAGE)/build.sh >/dev/null 2>$(PAGE_LOG) & page=$$!; \
	cmake --preset release >/dev/null; \
	cmake --build --preset release -j $(JOBS); \
	$(call phase,release build); \
	if kill -0 $$plane 2>/dev/null; then echo "the control plane of the e2e tests is being built, see $(E2E_LOG)"; fi; \
	wait $$plane || export BERTH_E2E_REASON="$$(tail -n 3 $(E2E_LOG) | uniq | paste -sd ' ') ($(E2E_LOG))"; \
	wait $$page || export BERTH_PAGE_REASON="$$(tail -n 3 $(PAGE_LOG) | uniq | paste -sd ' ') ($(PAGE_LOG))"; \
	$(call phase,control plane); \
	failed=0; ctest --preset release -j $$(( $(JOBS) + 1 )) || failed=$$?; \
	$(call phase,all tests); \
	if [[ -n $${BERTH_E2E_REASON:-} ]]; then echo "The e2e tests were skipped: $$BERTH_E2E_REASON"; fi; \
	if [[ -n $${BERTH_PAGE_REASON:-} ]]; then echo "The tests of the live page were skipped: $$BERTH_PAGE_REASON"; fi; \
	exit $$failed

e2e: build e2e-binaries ## Only the end-to-end tests, in front of Kubernetes 1.37.2; K8S=1.36.3 takes that (first builds it)
	@ctest --preset release -L '^e2e$$'

e2e-controllers: build ## End-to-end tests behind JobSet, LWS and Kueue of the versions in test/e2e/controllers (first builds them)
	@$(E2E)/binaries.sh --controllers
	@ctest --preset release -L '^e2e-controllers$$'

e2e-binaries: ## Build or find etcd, the programs of Kubernetes and kubectl; the last line is their folder
	@$(E2E)/binaries.sh

bench-e2e: build ## kube-scheduler's throughput alone, with a stub and with Berth; ARGS="-rounds 5 -berth=false ..."
	@$(E2E)/program.sh bench -json build/bench-e2e.json $(ARGS)

bench-node: build ## What becomes of the choice of GPUs on real kubelets; ARGS="-pods 10000 admissions", guard, stream, idle
	$(call install,$(E2E_PACKAGES))
	@$(E2E)/program.sh node-trials -json build/bench-node.json $(or $(ARGS),admissions)

cel: build ## 100,000 random device selectors, by Berth and by Kubernetes' own evaluator; ARGS="-seed 2 -expressions 5000 ..."
	@cmake --build --preset release -j $(JOBS) --target berth-cel-verdicts
	@$(E2E)/program.sh cel -verdicts $(BIN)/berth-cel-verdicts $(ARGS)

room-trials: build ## Drawn clusters in which Berth moves pods behind a real control plane; TRIALS=200 SEED=0 (half a minute each)
	@BERTH_ROOM_TRIALS=$(or $(TRIALS),200) BERTH_ROOM_SEED=$(or $(SEED),0) $(E2E)/program.sh e2e.test -test.v \
	  -test.timeout 0 -test.run '^TestTrialsOfMakingRoom$$'

replay-e2e: build ## A trace through kube-scheduler, with Berth and alone (needs BERTH_DATA); ARGS="-trace default -arms ..."
	@$(E2E)/program.sh replay -json build/replay-e2e.json $(ARGS)

page: build ## Only the tests of the live page in a browser; pictures of it stay in build/page
	@$(PAGE)/build.sh >/dev/null
	@ctest --preset release -L '^page$$'

lab: ## Build and test berth-lab, the micro-benchmarks and the trials of bench/lab, in build/lab
	$(call install,$(PACKAGES))
	@cmake --preset lab >/dev/null
	@cmake --build --preset lab -j $(JOBS) --target berth-lab berth-micro berth-gang-trials lab_tests
	@ctest --preset lab -j $(JOBS) -L '^lab$$'

bench-gangs: lab ## Gangs of 64 to 5,000 on slow API servers, and what they cost others (an hour); ARGS="--sizes 64 --trials 2 ..."
	@build/lab/bin/berth-gang-trials --json build/gang-trials.json $(ARGS)
	@for cost in beside differing large; do build/lab/bin/berth-gang-trials $$cost; done

bench-page: build ## The live page of 5,000 nodes of 8 GPUs in a browser: bytes, first paint, refresh
	@$(PAGE)/program.sh bench $(ARGS)

e2e-demo: build ## A control plane with Berth in front and two nodes that run pods, left running to look at
	$(call install,$(E2E_PACKAGES))
	@$(E2E)/program.sh demo $(ARGS) build/e2e-demo

e2e-demo-stop: ## Stop what e2e-demo left running
	@$(E2E)/program.sh demo -stop build/e2e-demo

image: ## The image, without docker: dist/berth-TAG-linux-ARCH.oci.tar; IMAGE=registry/berth (berth) TAG=tag (dev) ARCH="amd64 arm64"
	@$(MAKE) --no-print-directory build VERSION="$$(release/version.sh)"
	@release/image.sh '$(or $(IMAGE),berth):$(or $(TAG),dev)' \
	  'dist/berth-$(or $(TAG),dev)-linux$(if $(word 2,$(ARCH)),,-$(ARCH)).oci.tar' \
	  $(foreach arch,$(ARCH),build/$(if $(filter $(SYSTEM),$(arch)),release,$(arch))/bin)
	@ls -s --block-size=KiB dist/*.oci.tar

release: ## The files of a release, or of this commit, in dist/; VERSION=x.y.z IMAGE=registry/berth URL=where they will be ARCH="amd64 arm64"
	$(call install,$(PACKAGES))
	@release/release.sh '$(VERSION)' '$(IMAGE)' '$(URL)' $(ARCH)

sanitize: ## All tests of one process under address+undefined, those with threads under thread sanitizer
	$(call install,$(PACKAGES) $(CLANG_PACKAGES))
	@for preset in asan tsan; do \
	  cmake --preset $$preset >/dev/null; \
	  cmake --build --preset $$preset -j $(JOBS) --target test_programs; \
	  $(call phase,$$preset build); \
	  ctest --preset $$preset -j $(JOBS); \
	  $(call phase,$$preset tests); \
	done

# What each fuzzer found stays in build/fuzz/corpus and is where the next run begins.
FUZZ_SECONDS ?= 10
FUZZERS := topo_text nccl_xml topology_json hami_links
DECODERS := filter preempt bind pod node objects cluster_file plan configuration kubeconfig
FUZZ_LIMITS := -max_len=8192 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256

fuzz: ## Every decoder on hostile input, FUZZ_SECONDS (10) each, with clang's libFuzzer
	$(call install,$(PACKAGES) $(CLANG_PACKAGES))
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz -j $(JOBS) --target fuzzers
	@for fuzzer in $(FUZZERS) $(DECODERS); do \
	  mkdir -p build/fuzz/corpus/$$fuzzer; \
	  program=build/fuzz/bin/fuzz_$$fuzzer; [ -x $$program ] || program=build/fuzz/bin/fuzz_decoders; \
	  BERTH_FUZZ=$$fuzzer $$program -max_total_time=$(FUZZ_SECONDS) $(FUZZ_LIMITS) -print_final_stats=1 \
	    -artifact_prefix=build/fuzz/ build/fuzz/corpus/$$fuzzer test/fuzz/seeds/$$fuzzer 2>build/fuzz/$$fuzzer.log \
	    || { tail -n 40 build/fuzz/$$fuzzer.log; exit 1; }; \
	  echo "$$fuzzer: $$(awk '/number_of_executed_units/ {print $$2}' build/fuzz/$$fuzzer.log) inputs, no fault"; \
	done

# Seeded; a failure prints the seed of its world, and SEED=that SOAK_STEPS=10000 repeats it.
SOAK_STEPS ?= 1000000

soak: ## The books and gangs under stress: SOAK_STEPS (1000000) random steps, what must hold checked after each; SEED=n
	$(call install,$(PACKAGES))
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target soak_tests
	@BERTH_SOAK_STEPS=$(SOAK_STEPS) BERTH_SOAK_SEED=$(or $(SEED),1) $(BIN)/soak_tests --gtest_brief=1

bench: ## The benchmarks, as ratios against a baseline of the same run (bench/RESULTS.md and SPEED.md have the recorded ones)
	$(call install,$(PACKAGES))
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS)
	@$(BIN)/berth-load
	@$(BIN)/berth-kube-bench
	@bench/replay/table.sh $(BIN)/berth-replay "$$BERTH_DATA"

bench-guard: ## Speed and packing of this build against those of an earlier commit, in turn; BASE=commit ARGS="--rounds 9 ..."
	$(call install,$(PACKAGES) python3)
	@bench/guard.sh '$(BASE)' $(JOBS) $(ARGS)

docs: ## The site in build/site, from docs/: strict, nothing from another host
	$(call install,python3-venv)
	@docs/site/build.sh

pictures: build ## The pictures of docs/ from what the programs print and show (needs a browser)
	@$(PAGE)/build.sh >/dev/null
	@$(PAGE)/program.sh pictures $(CURDIR)/docs/pictures
	@python3 docs/site/pictures.py $(BIN)/berth

lint: ## Format and shell scripts
	$(call install,$(LINT_PACKAGES))
	@git ls-files '*.h' '*.cc' ':!bench/lab' | xargs clang-format-14 --dry-run --Werror
	@! git ls-files '*.h' '*.cc' | xargs grep -nP '^(?=.{101})\s*//' || { echo "lint: comments beyond 100 columns"; exit 1; }
	@git ls-files '*.sh' .ci/run | xargs shellcheck
	@if command -v gofmt >/dev/null; then test -z "$$(gofmt -l $(E2E) $(PAGE) | tee /dev/stderr)"; fi
	@$(call phase,lint)
	@echo "lint: ok"

BASE ?= main

tidy: ## clang-tidy on the sources that differ from BASE (main)
	$(call install,$(PACKAGES) $(CLANG_PACKAGES) clang-tidy-14)
	@cmake --preset dev -B build/tidy -DBERTH_COMBINE= >/dev/null # each source by itself
	@git diff --name-only --diff-filter=d "$$(git merge-base $(BASE) HEAD)" -- '*.cc' ':!test/fuzz' \
	  | xargs -r -n 4 -P $(JOBS) clang-tidy-14 --quiet -p build/tidy
	@echo "tidy: ok"

clean: ## Remove build/
	@rm -rf build
