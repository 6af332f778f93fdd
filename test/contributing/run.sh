#!/usr/bin/env bash
# Does the steps of CONTRIBUTING.md in a copy of the tree: a scorer, a reason, an annotation, a metric and an integration. Compiles
# what they change and their tests, runs these, and replays a small trace with the new policy. Everything else comes from the build
# that is there.
#
#   run.sh BUILD    the folder of a Ninja build that has berth, berth-replay and the library of the tests
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "$1" && pwd)
if [[ ! -f $build/build.ninja ]]; then
  echo "SKIPPED: $build is no Ninja build"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

(cd "$root" && tar -cf - base cel topology cluster scoring config server docs manifests test/support test/arch/docs_test.cc ./*.md) \
  | tar -C "$scratch" -xf -
sources=$(python3 "$root/test/contributing/steps.py" "$scratch")

# The links of the build, with the new files before the libraries: the first definition counts.
link_of() { ninja -C "$build" -t commands "$1" | tail -n 1; }
link=$(link_of berth-replay)
compiler=$(grep -oE '[^ ]*(clang\+\+|g\+\+)[^ ]*' <<<"$link" | head -n 1)
libraries_in() { grep -oE '[^ ]+\.(a|so[.0-9]*)|-l[^ ]+|-pthread' <<<"$1" | tr '\n' ' '; }
support=$(cd "$build" && find test -name 'libtest_support.a')

cd "$scratch"
# Where the tests look for documents: in the copy.
cat >paths.cc <<END
#include "test/support/build_paths.h"
namespace berth::test {
std::string SourceDir() { return "$scratch"; }
std::string BinDir() { return "$build/bin"; }
}  // namespace berth::test
END
compile() { "$compiler" -std=c++20 -O0 -Wall -Wextra -Werror -I. -c "$1" -o "$scratch/${1//\//_}.o"; }
export -f compile
export compiler scratch
printf '%s\n' "$sources" test/arch/docs_test.cc paths.cc | xargs -P "${JOBS:-2}" -I{} bash -c 'compile {}'
objects=() tests=()
for source in $sources; do
  object=$scratch/${source//\//_}.o
  if [[ $source == test/* ]]; then tests+=("$object"); else objects+=("$object"); fi
done

cd "$build"
policies=("$scratch/scoring_registry.cc.o" "$scratch/scoring_scorers_whole_gpus_left.cc.o")
eval "${link/-o bin\/berth-replay/-Wl,--allow-multiple-definition ${policies[*]} -o $scratch/berth-replay}"
libraries=$(libraries_in "$(link_of berth)")
# shellcheck disable=SC2086  # they are words
"$compiler" -Wl,--allow-multiple-definition "${tests[@]}" "$scratch"/{test_arch_docs_test,paths}.cc.o "${objects[@]}" "$support" \
  $libraries -lgtest -lgtest_main -o "$scratch/unit"

cd "$scratch"
# What docs/ says of reasons, annotations and metrics holds with the new ones, too.
./unit --gtest_brief=1 --gtest_filter='-Documents.*'
./unit --gtest_brief=1 --gtest_filter='Documents.ExplainEveryReason:Documents.NameAnnotationsAndMetricsThatAreThere'
printf 'sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,4,A100\nn2,64000,262144,4,A100\n' >nodes.csv
printf 'name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\na,4000,1024,3,1000,\nb,4000,1024,2,1000,\n' >tasks.csv
measure=$(sed -n 's/^ *berth-replay run/.\/berth-replay run/p' CONTRIBUTING.md)
$measure | tee report
grep -q whole-gpus-left report
