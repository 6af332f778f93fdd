#!/usr/bin/env bash
# What Kubernetes' allocator of devices answers to the cases of its own tests: prints the file, a line of JSON each
# (dump_test.go.txt). Made once per version, of the module that go.mod names (K8S=VERSION: that of k8s-VERSION/go.mod).
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
say() { echo "allocator cases: $*" >&2; }
# shellcheck source=test/e2e/find_go.sh
. ./find_go.sh

dump=$PWD/allocator/dump_test.go.txt
if [[ -n ${K8S:-} && -d k8s-$K8S ]]; then cd "k8s-$K8S"; fi
package=k8s.io/dynamic-resource-allocation
version=$(sed -n "s|^\t$package \(v[0-9.]*\).*|\1|p" go.mod)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/berth-e2e/allocator-$version-$(sha256sum <"$dump" | cut -c 1-16)
if [[ ! -f $folder/cases.jsonl ]]; then
  find_go
  export GOTOOLCHAIN=local GOFLAGS=-mod=mod
  module=$("$go" list -m -f '{{.Dir}}' "$package@$version")
  mkdir -p "$folder"
  copy=$(mktemp -d "$folder/copy.XXXXXX")
  trap 'rm -rf "$copy"' EXIT
  cp -r "$module/." "$copy"
  chmod -R u+w "$copy"
  cp "$dump" "$copy/structured/internal/experimental/dump_test.go"
  cases=$copy/structured/internal/allocatortesting/allocator_testing.go
  sed -i 's|^\t*t\.Run(name, func(t \*testing\.T) {$|&\nCurrentCase = name|' "$cases"
  printf '\nvar CurrentCase string\n' >>"$cases"
  (cd "$copy" && DUMP=$copy/cases.jsonl "$go" test -run '^TestDump$' ./structured/internal/experimental/) >&2
  mv "$copy/cases.jsonl" "$folder/cases.jsonl"
fi
echo "$folder/cases.jsonl"
