#!/usr/bin/env bash
# Runs one test of the live page, for ctest: 0 passed, 77 skipped (the reason is printed), anything else failed.
#
#   run.sh TestName
#
# BERTH_BIN names the folder of berth. Pictures of the page are kept in build/page. BERTH_PAGE_REASON says why the tests
# could not be built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

skip() {
  echo "SKIPPED: $*"
  exit 77
}

if [[ -n ${BERTH_PAGE_REASON:-} ]]; then skip "$BERTH_PAGE_REASON"; fi
tests=$(./build.sh --find 2>&1) || skip "${tests##*$'\n'}"

cd ../..
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch BERTH_PICTURES=${BERTH_PICTURES:-$PWD/build/page}
log=$scratch/log
"$tests/page.test" -test.v -test.timeout 150s -test.run "^$1\$" 2>&1 | tee "$log"
if ! grep -q '^--- PASS' "$log"; then echo "no test is called $1"; exit 1; fi
