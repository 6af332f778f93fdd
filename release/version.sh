#!/usr/bin/env bash
# Prints the version of this commit: that of its tag v0.2.0, or of what is on the way to the version of CMakeLists.txt
# (after the release of that, to the next patch), which is less than it by the rules of Semantic Versioning:
#
#   0.2.0      0.2.0-dev.1042.gef7b0cba: the 1,042nd commit      0.2.0-dev.1042.gef7b0cba.changed: and what is not committed
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(sed -n 's/^project(berth VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
commit=$(git rev-parse --short=8 HEAD)
changed=$(git status --porcelain)
if [[ -z $changed && -n $(git tag --points-at HEAD --list "v$version") ]]; then
  echo "$version"
  exit
fi
if [[ -n $(git tag --list "v$version") ]]; then version=${version%.*}.$(( ${version##*.} + 1 )); fi
echo "$version-dev.$(git rev-list --count HEAD).g$commit${changed:+.changed}"
