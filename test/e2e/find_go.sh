#!/usr/bin/env bash
# To be sourced: the Go that builds the tests, how it is called, and how packages are installed. `say TEXT...` is the script's own.

go_wanted=1.26.6
toolchain=v0.0.1-go1.26.8

new_enough() {
  local version
  version=$("$1" env GOVERSION 2>/dev/null) || return 1
  [[ $(printf '%s\n' "$go_wanted" "${version#go}" | sort -V | head -n 1) == "$go_wanted" ]]
}

# Sets $go to a Go that is new enough: the one on PATH, or one that an older Go (Debian's) fetches as a module.
find_go() {
  go=$(command -v go) || install_go
  if new_enough "$go"; then return; fi
  local module root
  module=golang.org/toolchain@$toolchain.linux-$("$go" env GOARCH)
  say "Go $go_wanted is needed: fetching $module"
  (cd / && "$go" mod download "$module") >&2
  root=$("$go" env GOMODCACHE)/$module
  chmod -R u+w,a+x "$root/bin" "$root/pkg/tool"  # modules are stored without the execute bit
  go=$root/bin/go
}

# install_packages PACKAGE...: as root, or with sudo; one caller at a time.
install_packages() {
  say "installing $*"
  local as_root=()
  if (( $(id -u) != 0 )); then as_root=(sudo); fi
  mkdir -p "${XDG_CACHE_HOME:-$HOME/.cache}"
  (
    flock 8
    ${as_root[@]+"${as_root[@]}"} apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive ${as_root[@]+"${as_root[@]}"} apt-get install -y -qq --no-install-recommends "$@" >/dev/null
  ) 8>"${XDG_CACHE_HOME:-$HOME/.cache}/berth-packages.lock"
}

install_go() {
  install_packages golang-go ca-certificates
  go=$(command -v go)
}

# go COMMAND, with the same result wherever it runs: static, no paths of this machine.
run_go() {
  local command=$1
  shift
  GOTOOLCHAIN=local GOFLAGS='' CGO_ENABLED=0 "$go" "$command" -trimpath -buildvcs=false "$@" >&2
}
