#!/usr/bin/env bash
# Makes the files of a release, or of any other commit, in dist/:
#
#   release.sh [VERSION [IMAGE [URL [ARCH...]]]]   release.sh 0.2.0 registry.example.com/berth https://example.com/berth/0.2.0 amd64 arm64
#
#   berth-VERSION-linux-ARCH.tar.gz         the programs, stripped, with their libraries (bundle.sh), manual pages, completions
#   kubectl-berth-VERSION-linux-ARCH.tar.gz kubectl's plugin with its libraries (bundle.sh)
#   berth-VERSION-linux-ARCH.debug.tar.gz   their symbols, for who reads a core dump
#   berth-VERSION-linux-ARCH.spdx.json      what is in all these (sbom.sh)
#   berth-VERSION-linux.oci.tar             the image IMAGE:VERSION, for every ARCH (image.sh)
#   berth.yaml                              krew's manifest of the plugin, where URL says from where it will be fetched
#   install.yaml, berth-VERSION.tgz         manifests/install.yaml and the Helm chart, with IMAGE:VERSION in them
#   berth-VERSION-manifests.tar.gz          the kustomizations
#   CHANGES.md                              the section of CHANGELOG.md
#   SHA256SUMS                              of all that; its first line says the commit
#
# Without VERSION, or with "", it is that of version.sh. One that is given is a release: CMakeLists.txt and the chart have it,
# and CHANGELOG.md has a section of it. IMAGE is berth unless given. ARCH is amd64 or arm64, and that of this system unless
# given; another one needs the network, for Debian's packages of it (sysroot.sh). The last lines that it prints say how the
# image goes to its registry.
set -euo pipefail

fail() { echo "release.sh: $*" >&2; exit 1; }
if [[ ${1:-} == -* ]]; then sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
image=${2:-berth}
url=${3:-}
architectures=("${@:4}")
if (( ${#architectures[@]} == 0 )); then architectures=("$(dpkg --print-architecture)"); fi
[[ $image =~ ^[a-z0-9./:_-]+$ ]] || fail "want the name of an image without a tag, got \"$image\""
[[ -z $(git status --porcelain) ]] || fail "want a clean work tree: the commit is to say what was built"
section=Unreleased
if [[ -n ${1:-} ]]; then
  version=$1
  section=$version
  grep -q "^project(berth VERSION $version " CMakeLists.txt || fail "$version: CMakeLists.txt has another version"
  grep -q "^version: $version$" manifests/helm/berth/Chart.yaml || fail "$version: the chart has another version"
else
  version=$(release/version.sh)
  if [[ $version != *-* ]]; then section=$version; fi
fi
grep -q "^## $section\( \|$\)" CHANGELOG.md || fail "$version: CHANGELOG.md has no section $section"
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
# shellcheck source=release/packages.sh
. release/packages.sh
pack() {
  tar -C dist --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -c "$2" | gzip -n9 >"dist/$1"
  rm -r "dist/${2:?}"
}

# Manual pages and completions are the same for all, by programs that run here.
make build VERSION="$version" ARCH="$(dpkg --print-architecture)"
rm -rf dist
mkdir -p dist/krew
bins=()
for arch in "${architectures[@]}"; do
  make build VERSION="$version" ARCH="$arch"
  bin=build/release/bin
  if [[ $arch != "$(dpkg --print-architecture)" ]]; then bin=build/$arch/bin; fi
  bins+=("$bin")
  built_for "$bin/berth"
  name=berth-$version-linux-$arch
  mkdir -p "dist/$name.debug"
  release/bundle.sh "dist/$name" "$bin"/berth{,-replay,-node}
  for program in berth berth-replay berth-node; do
    "${tools}objcopy" --only-keep-debug "$bin/$program" "dist/$name.debug/$program.debug"
    "${tools}objcopy" --add-gnu-debuglink="dist/$name.debug/$program.debug" "dist/$name/lib/programs/$program"
  done
  cp CHANGELOG.md docs/berth-configuration.schema.json "dist/$name/"
  for program in berth berth-replay; do
    "build/release/bin/$program" man | gzip -n9 >"dist/$name/$program.1.gz"
    for shell in bash zsh fish; do "build/release/bin/$program" completion $shell >"dist/$name/$program.$shell"; done
  done
  plugin=kubectl-$name
  ln -sf berth "$bin/kubectl-berth"
  release/bundle.sh "dist/$plugin" "$bin/kubectl-berth"
  release/sbom.sh "$version" "$bin"/berth{,-replay,-node} >"dist/$name.spdx.json"
  pack "$name.tar.gz" "$name"
  pack "$name.debug.tar.gz" "$name.debug"
  pack "$plugin.tar.gz" "$plugin"
  sum=$(sha256sum "dist/$plugin.tar.gz" | cut -c 1-64)
  sed -n '/^    - selector:/,$p' release/krew.yaml.in \
    | sed "s|@URL@|$url/$plugin.tar.gz|; s|@SHA256@|$sum|; s|@ARCH@|$arch|; s|@FOLDER@|$plugin|" >"dist/krew/$arch"
done
release/image.sh "$image:$version" "dist/berth-$version-linux.oci.tar" "${bins[@]}"
awk -v title="## $section" '/^## / {on = index($0 " ", title " ") == 1} on' CHANGELOG.md >dist/CHANGES.md
sed "s|image: berth\$|image: $image:$version|" manifests/install.yaml >dist/install.yaml
manifests=berth-$version-manifests
git archive --prefix="dist/$manifests/" HEAD:manifests | tar -x
mv "dist/$manifests/helm/berth" dist/berth
rm -r "dist/$manifests/helm"
sed -i "s|^image: berth\$|image: $image:$version|" dist/berth/values.yaml
sed -i -E "s/^(version|appVersion): .*/\1: $version/" dist/berth/Chart.yaml

pack "berth-$version.tgz" berth
pack "$manifests.tar.gz" "$manifests"
if [[ -n $url ]]; then
  { sed '/^    - selector:/,$d' release/krew.yaml.in | sed "s|@VERSION@|v$version|"; cat dist/krew/*; } >dist/berth.yaml
fi
rm -r dist/krew
(cd dist && { echo "# commit $commit"; sha256sum berth* kubectl-berth* install.yaml CHANGES.md; } >SHA256SUMS)

cat <<END
dist/ is complete for ${architectures[*]}. The image goes to its registry, or to nodes without one (docs/install.md), by

  skopeo copy --all oci-archive:dist/berth-$version-linux.oci.tar docker://$image:$version
END
