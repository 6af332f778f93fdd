#!/usr/bin/env bash
# Builds the tests of the live page and installs the browser that they drive, where it is missing. The last line of
# stdout is the folder of page.test, bench and pictures; all else goes to stderr.
#
#   build.sh            build what is missing
#   build.sh --find     build and install nothing; fail where something is missing
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth-page
say() { echo "page: $*" >&2; }
# shellcheck source=test/e2e/find_go.sh
. ../e2e/find_go.sh
trap 'say "could not build the tests of the page"' ERR
tests=$cache/tests-$(find . \( -name '*.go' -o -name 'go.*' \) -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-16)

missing() {
  say "$1: run test/page/build.sh"
  exit 1
}

find_only=
case ${1:-} in
  --find) find_only=yes ;;
  '') ;;
  *) echo "usage: build.sh [--find]" >&2; exit 2 ;;
esac
if ! command -v chromium >/dev/null; then
  [[ -z $find_only ]] || missing "chromium is not there"
  install_packages chromium fonts-dejavu-core
fi
if [[ ! -d $tests ]]; then
  [[ -z $find_only ]] || missing "the tests of the page are not built"
  find_go
  say "building the tests of the page"
  mkdir -p "$cache"
  new=$(mktemp -d "$cache/new-XXXXXX")
  run_go test -c -ldflags '-s -w' -o "$new/page.test" .
  run_go build -ldflags '-s -w' -o "$new/" ./bench ./pictures
  mv -T "$new" "$tests" 2>/dev/null || rm -rf "$new"  # another run was faster
  find "$cache" -mindepth 1 -maxdepth 1 -name '*-*' -mtime +14 -exec rm -rf {} +
fi
echo "$tests"
