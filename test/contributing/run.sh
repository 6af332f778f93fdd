#!/usr/bin/env bash
# Does the five steps of CONTRIBUTING.md in a copy of the tree: compiles the new scorer and its test, and replays a small trace with
# the new policy. Everything else comes from the build that is there.
#
#   run.sh BUILD    the folder of a Ninja build that has berth-replay and the library of the tests
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "$1" && pwd)
if [[ ! -f $build/build.ninja ]]; then
  echo "SKIPPED: $build is no Ninja build"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

tar -C "$root" -cf - base cel topology cluster scoring config test/support CONTRIBUTING.md | tar -C "$scratch" -xf -
python3 "$root/test/contributing/steps.py" "$scratch"

# The link of berth-replay, with the new files before the libraries: the first definition counts.
link=$(ninja -C "$build" -t commands berth-replay | tail -n 1)
compiler=$(grep -oE '[^ ]*(clang\+\+|g\+\+)[^ ]*' <<<"$link" | head -n 1)
cd "$scratch"
objects=()
for source in scoring/registry.cc scoring/scorers/whole_gpus_left.cc; do
  "$compiler" -std=c++20 -O0 -Wall -Wextra -Werror -I. -c "$source" -o "${source//\//_}.o"
  objects+=("$PWD/${source//\//_}.o")
done
"$compiler" -std=c++20 -O0 -Wall -Wextra -Werror -I. -c test/unit/scoring/whole_gpus_left_test.cc -o test.o

cd "$build"
eval "${link/-o bin\/berth-replay/-Wl,--allow-multiple-definition ${objects[*]} -o $scratch/berth-replay}"
support=$(find test -name 'libtest_support.a')
libraries=$(grep -oE '[^ ]+\.(a|so[.0-9]*)|-l[^ ]+|-pthread' <<<"$link" | tr '\n' ' ')
# shellcheck disable=SC2086  # they are words
"$compiler" -Wl,--allow-multiple-definition "$scratch/test.o" "${objects[@]}" "$support" $libraries \
  -lgtest -lgtest_main -o "$scratch/unit"

cd "$scratch"
./unit --gtest_brief=1
printf 'sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,4,A100\nn2,64000,262144,4,A100\n' >nodes.csv
printf 'name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\na,4000,1024,3,1000,\nb,4000,1024,2,1000,\n' >tasks.csv
measure=$(sed -n 's/^ *berth-replay run/.\/berth-replay run/p' CONTRIBUTING.md)
$measure | tee report
grep -q whole-gpus-left report
