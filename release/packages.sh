# shellcheck shell=bash
# Which libraries programs load, and which Debian packages those are of. Sourced by the scripts beside it, which have
# `fail`.

# What is compiled into the programs: headers alone, and berth-node's gRPC, so that no library says that it was used.
# shellcheck disable=SC2034  # for the scripts that source this
compiled_in=(libabsl-dev libboost-dev libc-ares-dev libcli11-dev libexpected-dev libgrpc++-dev libgrpc-dev libprotobuf-dev
  libre2-dev nlohmann-json3-dev)

# architecture_of PROGRAM: its architecture, as dpkg calls it.
architecture_of() {
  case $(LC_ALL=C readelf -h "$1" 2>/dev/null | sed -n 's/^ *Machine: *//p') in
    *X86-64) echo amd64 ;;
    AArch64) echo arm64 ;;
    *) fail "$1: want a program for amd64 or arm64, got none" ;;
  esac
}

# built_for PROGRAM: what follows is about programs of its architecture, and of the packages in $root: this system, or what
# sysroot.sh has made for a cross compiler. $tools is what the names of its binutils begin with.
built_for() {
  architecture=$(architecture_of "$1")
  case $architecture in
    amd64) triplet=x86_64-linux-gnu ;;
    arm64) triplet=aarch64-linux-gnu ;;
  esac
  tools=$triplet-
  root=
  if [[ $architecture == "$(dpkg --print-architecture)" ]]; then return; fi
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/sysroot-$architecture
  [[ -f $root/packages ]] || fail "$1: want the packages of $architecture in $root (release/sysroot.sh), got none"
}

# packages DPKG-QUERY'S ARGUMENTS: what dpkg says of the packages in $root.
packages() { dpkg-query ${root:+--admindir="$root/var/lib/dpkg"} "$@"; }

# libraries_of PROGRAM...: the libraries that the programs load, and their loader, each once, without $root.
libraries_of() {
  local file needed folder loader name
  local -A found=()
  local -a next=()
  for file in "$@"; do
    [[ -x $file ]] || fail "$file: want a program, got none"
    loader=$(LC_ALL=C readelf -l "$file" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')
    [[ -n $loader ]] || fail "$file: want a program that loads libraries, got none"
    found[${loader##*/}]=$loader
    next+=("$file")
  done
  while (( ${#next[@]} > 0 )); do
    needed=$(LC_ALL=C readelf -d "${next[@]}" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u)
    next=()
    for name in $needed; do
      if [[ -n ${found[$name]:-} ]]; then continue; fi
      for folder in /lib/$triplet /usr/lib/$triplet /lib /usr/lib; do
        if [[ -e $root$folder/$name ]]; then break; fi
      done
      [[ -e $root$folder/$name ]] || fail "$*: a library is missing: $name"
      found[$name]=$folder/$name
      next+=("$root$folder/$name")
    done
  done
  printf '%s\n' "${found[@]}" | LC_ALL=C sort
}

# package_of FILE: the package that a library belongs to. /lib is a link to /usr/lib, and dpkg knows either.
package_of() {
  local name package real
  real=$(readlink -f "$root$1")
  package=$(for name in "$1" "${real#"$root"}" "/usr$1" "${1#/usr}"; do
    if packages -S "$name" 2>/dev/null; then break; fi
  done | sed -n '1s/: .*//p')
  [[ -n $package ]] || fail "$1: no package has it"
  echo "${package%%:*}"
}
