#!/usr/bin/env bash
# Builds, or finds, what the end-to-end tests run: etcd, kube-apiserver, kube-scheduler and kubectl, the compiled
# tests and the programs beside them. The last line of stdout is the folder of the four; all else goes to stderr.
#
#   binaries.sh           build what is missing (Kubernetes from source: some minutes, once per go.sum)
#   binaries.sh --find    build nothing; fail where something is missing
#
# In the cache folder, outside the work tree, FOLDER/{etcd,kube-apiserver,kube-scheduler,kubectl} depend on go.sum
# alone, and FOLDER/tests-HASH/{e2e.test,stub,...} on our sources too, so that work trees share the one and not
# the other. Each folder is built under another name and renamed: what has its name is complete.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

go_wanted=1.26
toolchain=v0.0.1-go1.26.5
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth-e2e
sum() { sha256sum | cut -c 1-16; }
plane=$cache/$(cat go.mod go.sum | sum)
tests=$plane/tests-$(find . -name '*.go' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sum)

say() { echo "e2e: $*" >&2; }

new_enough() {
  local version
  version=$("$1" env GOVERSION 2>/dev/null) || return 1
  [[ $(printf '%s\n' "$go_wanted" "${version#go}" | sort -V | head -n 1) == "$go_wanted" ]]
}

# Sets $go to a Go that is new enough: the one on PATH, or one that an older Go (Debian's) can fetch as a module.
find_go() {
  go=$(command -v go || true)
  if [[ -z $go ]]; then
    say "installing golang-go"
    local as_root=()
    if (( $(id -u) != 0 )); then as_root=(sudo); fi
    "${as_root[@]}" apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends golang-go \
      ca-certificates >&2
    go=$(command -v go)
  fi
  if new_enough "$go"; then return; fi
  local module root
  module=golang.org/toolchain@$toolchain.linux-$("$go" env GOARCH)
  say "Go $go_wanted is needed: fetching $module"
  (cd / && "$go" mod download "$module") >&2
  root=$("$go" env GOMODCACHE)/$module
  chmod -R u+w,a+x "$root/bin" "$root/pkg/tool"  # modules are stored without the execute bit
  go=$root/bin/go
  new_enough "$go"
}

# Static, stripped, and the same bytes wherever it is built.
build() {
  GOTOOLCHAIN=local GOFLAGS='' CGO_ENABLED=0 "$go" "$@"
}
flags=(-trimpath -buildvcs=false)

build_plane() {
  local version
  version=$(build list -m -f '{{.Version}}' k8s.io/kubernetes)
  # As Kubernetes' own build sets them; without, the API server says that it is v0.0.0.
  local package=k8s.io/component-base/version major minor
  IFS=. read -r major minor _ <<<"${version#v}"
  local ldflags="-s -w -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
  say "building kube-apiserver, kube-scheduler, kubectl $version (some minutes)"
  build build "${flags[@]}" -ldflags "$ldflags" -o "$1/" \
    k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-scheduler k8s.io/kubernetes/cmd/kubectl >&2
  say "building etcd"
  build build "${flags[@]}" -ldflags '-s -w' -o "$1/etcd" go.etcd.io/etcd/server/v3 >&2
  # The module go.etcd.io/etcd/v3 also has a main package, which is another program.
  "$1/etcd" --version | grep -q '^etcd Version: 3\.' || { say "the etcd built is not the etcd server"; return 1; }
  "$1/kube-apiserver" --version | grep -q "$version" || { say "kube-apiserver is not $version"; return 1; }
}

build_tests() {
  say "building the tests"
  build test -c "${flags[@]}" -ldflags '-s -w' -o "$1/e2e.test" . >&2
  build build "${flags[@]}" -ldflags '-s -w' -o "$1/" ./stub >&2
  # Those of sources long gone.
  find "$plane" -mindepth 1 -maxdepth 1 -name 'tests-*' -mtime +14 -exec rm -rf {} +
}

# provide FOLDER FUNCTION: makes FOLDER with FUNCTION, unless it is there.
provide() {
  if [[ -d $1 ]] || [[ $1 == "$tests" && -d $1 ]]; then return; fi
  if [[ -n $find_only ]]; then
    say "not built: $1 (make e2e-binaries builds it)"
    return 1
  fi
  [[ -n ${go:-} ]] || find_go
  rm -rf "$1.new"
  mkdir -p "$1.new"
  "$2" "$1.new" || { say "could not build $1"; return 1; }
  mv "$1.new" "$1"
}

find_only=
case ${1:-} in
  '') mkdir -p "$cache"
      exec 9>"$cache/lock"
      flock -n 9 || { say "another run is building; waiting"; flock 9; } ;;
  --find) find_only=yes ;;
  *) echo "usage: binaries.sh [--find]" >&2; exit 2 ;;
esac
provide "$plane" build_plane
provide "$tests" build_tests
echo "$plane"
