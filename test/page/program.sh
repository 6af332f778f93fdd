#!/usr/bin/env bash
# Runs a program that is built with the tests of the live page.
#
#   program.sh NAME [ARGUMENT...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
tests=$(./build.sh)
export BERTH_BIN=${BERTH_BIN:-$PWD/../../build/release/bin}
cd ../..
exec "$tests/$1" "${@:2}"
