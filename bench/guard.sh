#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds an earlier commit beside this tree, and holds this build's speed and packing against it (guard.py).
#
#   guard.sh COMMIT JOBS [arguments of guard.py]
#
# Without COMMIT it is that of bench/guard_base: whoever lets something cost more on purpose names a later one there, and
# says why in the commit. Where the commit is not in this clone nothing is compared, and it says so.
set -euo pipefail
base=${1:-$(<bench/guard_base)} jobs=$2
shift 2
if ! git cat-file -e "$base^{commit}" 2>/dev/null; then
  echo "bench guard: skipped, commit $base is not in this clone"
  exit 0
fi
targets=(berth-load berth-micro berth-replay)
source=build/guard/$(git rev-parse "$base^{commit}")
if [[ ! -d $source ]]; then
  rm -rf build/guard
  mkdir -p "$source"
  git archive "$base" | tar -x -C "$source"
fi

# build TREE: where its programs are. Benchmarks are in the lab, in trees that have one.
build() {
  local preset=release
  if grep -q '"name": "lab"' "$1/CMakePresets.json"; then preset=lab; fi
  (cd "$1" && cmake --preset "$preset" >/dev/null && cmake --build --preset "$preset" -j "$jobs" --target "${targets[@]}" >/dev/null) || return 1
  echo "$1/build/$preset/bin"
}
base_bin=$(build "$source")
head_bin=$(build .)
exec python3 bench/guard.py "$base_bin" "$head_bin" "$@"
