# shellcheck shell=bash
# Which libraries programs load, and which Debian packages those are of. Sourced by the scripts beside it, which have
# `fail`.

# What is compiled into the programs: headers alone, and berth-node's gRPC, so that no library says that it was used.
# shellcheck disable=SC2034  # for the scripts that source this
compiled_in=(libabsl-dev libboost-dev libc-ares-dev libcli11-dev libexpected-dev libgrpc++-dev libgrpc-dev libprotobuf-dev
  libre2-dev nlohmann-json3-dev)

# libraries_of PROGRAM...: the libraries that the programs load, and their loader, each once.
libraries_of() {
  local program found all=
  for program in "$@"; do
    [[ -x $program ]] || fail "$program: want a program, got none"
    found=$(ldd "$program") || fail "$program: want a program that loads libraries, got none"
    [[ $found != *'not found'* ]] || fail "$program: a library is missing: $(grep -m 1 'not found' <<<"$found")"
    all+=$found$'\n'
  done
  awk '$2 == "=>" {print $3} $1 ~ "^/" && $2 ~ "^\\(" {print $1}' <<<"$all" | LC_ALL=C sort -u
}

# package_of FILE: the package that a library belongs to. /lib is a link to /usr/lib, and dpkg knows either.
package_of() {
  local name package
  package=$(for name in "$1" "$(readlink -f "$1")" "/usr$1" "${1#/usr}"; do
    if dpkg-query -S "$name" 2>/dev/null; then break; fi
  done | sed -n '1s/: .*//p')
  [[ -n $package ]] || fail "$1: no package has it"
  echo "${package%%:*}"
}
