#!/usr/bin/env bash
# Runs a program that is built with the end-to-end tests, and builds it and the control plane first where needed.
#
#   program.sh NAME [ARGUMENT...]      file names among the arguments are relative to the top of the work tree
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
BERTH_E2E_BINARIES=$(./binaries.sh)
export BERTH_E2E_BINARIES BERTH_BIN=${BERTH_BIN:-$PWD/../../build/release/bin}
tests=$(./binaries.sh --find-tests)
BERTH_E2E_CONTAINERD=$(./binaries.sh --find-containerd 2>/dev/null) || BERTH_E2E_CONTAINERD=
export BERTH_E2E_CONTAINERD
cd ../..
exec "$tests/$1" "${@:2}"
