#!/usr/bin/env bash
# Runs one end-to-end test, for ctest: 0 passed, 77 skipped (the reason is printed), anything else failed.
#
#   run.sh TestName
#
# BERTH_BIN names the folder of berth. BERTH_E2E_BINARIES names that of the control plane; without it the one that
# `make e2e-binaries` has built is looked for. BERTH_E2E_REASON says why there is none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

skip() {
  echo "SKIPPED: $*"
  exit 77
}

if [[ -n ${BERTH_E2E_REASON:-} ]]; then skip "$BERTH_E2E_REASON"; fi
tests=$(./binaries.sh --find-tests 2>&1) || skip "${tests##*$'\n'}"
export BERTH_E2E_BINARIES=${BERTH_E2E_BINARIES:-$(dirname "$tests")}
# Only tests behind controllers of others need those; they say so where there are none.
if [[ $1 == TestBehind* ]]; then
  BERTH_E2E_CONTROLLERS=$(./binaries.sh --find-controllers 2>/dev/null) || BERTH_E2E_CONTROLLERS=
  export BERTH_E2E_CONTROLLERS
fi
# Only tests with real nodes need a container runtime; without ours they take the one that is installed.
if [[ $1 == TestNode* ]]; then
  BERTH_E2E_CONTAINERD=$(./binaries.sh --find-containerd 2>/dev/null) || BERTH_E2E_CONTAINERD=
  export BERTH_E2E_CONTAINERD
fi

cd ../..
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
export TMPDIR=$scratch  # a test that is killed leaves its folder
"$tests/e2e.test" -test.v -test.failfast -test.timeout 280s -test.run "^$1\$" 2>&1 | tee "$log"
# go test has no exit code of its own for a test that skips itself.
if grep -q '^--- SKIP' "$log"; then exit 77; fi
if ! grep -q '^--- PASS' "$log"; then echo "no test is called $1"; exit 1; fi
