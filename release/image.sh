#!/usr/bin/env bash
# Makes Berth's image, an OCI archive: without docker, without root, without the network. The same programs, libraries and
# commit give the same bytes.
#
#   image.sh NAME:TAG ARCHIVE FOLDER...   image.sh berth:0.2.0 dist/berth-0.2.0-linux-amd64.oci.tar build/release/bin
#
# A FOLDER has berth, berth-replay and berth-node of one architecture; more than one make one image for each, under one name.
# The image has these, stripped, and what they load from this system, or from the packages of their architecture
# (sysroot.sh): run it where they were built. It has the licenses of all that, and what dpkg says of each package, by which
# scanners find what is to be updated. It has no shell. docs/install.md says how to bring the archive to a registry or to
# nodes.
#
# The time in it is SOURCE_DATE_EPOCH, or that of the commit.
set -euo pipefail
umask 022

fail() { echo "image.sh: $*" >&2; exit 1; }
(( $# >= 3 )) || { sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
image=$1
tag=${image##*:}
archive=$2
folders=("${@:3}")
[[ $image =~ ^[a-z0-9./_-]+(:[0-9]+/[a-z0-9./_-]+)?:[A-Za-z0-9_][A-Za-z0-9._-]*$ ]] || fail "want NAME:TAG, got \"$image\""
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=release/packages.sh
. "$here/packages.sh"

programs=(berth berth-replay berth-node)
# What NVIDIA's management library loads in berth-node, beside what our programs do.
for_drivers=(libdl.so.2 libpthread.so.0 librt.so.1)

revision=$(git -C "$here" rev-parse HEAD 2>/dev/null) || revision=unknown
if [[ -n $(git -C "$here" status --porcelain 2>/dev/null) ]]; then revision+=-dirty; fi
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct 2>/dev/null || echo 0)}
created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
blobs=$work/archive/blobs/sha256
mkdir -p "$blobs"

# describe FOLDER PACKAGE...: the licenses of the packages go there, and what dpkg says of them.
describe() {
  local package
  for package in "${@:2}"; do
    install -D -m 644 "$root/usr/share/doc/$package/copyright" "$1/usr/share/doc/$package/copyright"
    mkdir -p "$1/var/lib/dpkg/status.d"
    packages -s "$package" >"$1/var/lib/dpkg/status.d/$package"
  done
}

pack() { (cd "$1" && tar --format=gnu --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner -c -- *); }
# sum FILE: its digest without the name of the hash. add FILE: it becomes a blob; prints {mediaType, digest, size}.
sum() { sha256sum "$1" | cut -c 1-64; }
add() {
  local digest
  digest=$(sum "$2")
  printf '{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%d}' "$1" "$digest" "$(stat -c %s "$2")"
  mv "$2" "$blobs/$digest"
}
join() { local IFS=,; echo "$*"; }
label=org.opencontainers.image

# add_image FOLDER: the image of its programs becomes blobs. Sets config, layers and manifest, what `add` says of them.
add_image() {
  local from=$1 libraries libc library program layer version
  local -a diffs=()
  layers=()
  rm -rf "$work"/{libraries,programs}
  mkdir -p "$work"/{libraries,programs}
  built_for "$from/berth"
  libraries=$(libraries_of "${programs[@]/#/$from/}")
  version=$(LC_ALL=C readelf -p .berth_version "$from/berth" | sed -n 's/^ *\[ *0\] *//p')

  # What changes when Debian does. By debian_version NVIDIA's runtime finds the folder for the libraries of its driver.
  cd "$work/libraries"
  mkdir -p etc/ld.so.conf.d tmp usr/lib usr/lib64
  chmod 1777 tmp
  ln -s usr/lib lib
  ln -s usr/lib64 lib64
  echo 'include /etc/ld.so.conf.d/*.conf' >etc/ld.so.conf
  echo 'hosts: files dns' >etc/nsswitch.conf
  printf '%s\n' root:x:0:0:root:/:/nonexistent berth:x:65532:65532:berth:/:/nonexistent >etc/passwd
  printf '%s\n' root:x:0: berth:x:65532: >etc/group
  install -m 644 /etc/debian_version etc/
  install -m 644 /usr/lib/os-release etc/
  cd - >/dev/null
  libc=$(grep '/libc\.so\.6$' <<<"$libraries")
  for library in "${for_drivers[@]}"; do libraries+=$'\n'${libc%/*}/$library; done
  for library in $libraries; do
    install -D -m 755 "$(readlink -f "$root$library")" "$work/libraries/usr${library#/usr}"
    describe "$work/libraries" "$(package_of "$library")"
  done

  # What changes when Berth does.
  mkdir -p "$work/programs/usr/local/bin" "$work/programs/usr/share/doc/berth"
  for program in "${programs[@]}"; do
    "${tools}strip" -o "$work/programs/usr/local/bin/$program" "$from/$program"
    chmod 755 "$work/programs/usr/local/bin/$program"
  done
  install -m 644 "$here/../LICENSE" "$work/programs/usr/share/doc/berth/copyright"
  describe "$work/programs" "${compiled_in[@]}"

  for layer in libraries programs; do
    pack "$work/$layer" >"$work/$layer.tar"
    diffs+=("\"sha256:$(sum "$work/$layer.tar")\"")
    gzip -n9 "$work/$layer.tar"
    layers+=("$(add layer.v1.tar+gzip "$work/$layer.tar.gz")")
  done
  cat >"$work/config" <<JSON
{"created":"$created","architecture":"$architecture","os":"linux",
"config":{"User":"65532:65532","ExposedPorts":{"8888/tcp":{}},"Env":["PATH=/usr/local/bin"],"WorkingDir":"/",
"Entrypoint":["/usr/local/bin/berth"],"Cmd":["serve"],
"Labels":{"$label.created":"$created","$label.licenses":"Apache-2.0","$label.revision":"$revision",
"$label.title":"berth","$label.version":"$version"}},
"rootfs":{"type":"layers","diff_ids":[$(join "${diffs[@]}")]},
"history":[{"created":"$created","comment":"libraries"},{"created":"$created","comment":"programs"}]}
JSON
  config=$(add config.v1+json "$work/config")
  cat >"$work/manifest" <<JSON
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":$config,
"layers":[$(join "${layers[@]}")]}
JSON
  manifest=$(add manifest.v1+json "$work/manifest")
  manifest="${manifest%\}},\"platform\":{\"architecture\":\"$architecture\",\"os\":\"linux\"}}"
}

# `docker load` before version 25 reads another form, which has one image: the first.
paths() { printf '%s\n' "$@" | sed 's|.*"sha256:\([0-9a-f]*\)".*|"blobs/sha256/\1"|' | paste -sd ,; }
images=()
for folder in "${folders[@]}"; do
  add_image "$folder"
  images+=("$manifest")
  if (( ${#images[@]} == 1 )); then
    echo "[{\"Config\":$(paths "$config"),\"RepoTags\":[\"$image\"],\"Layers\":[$(paths "${layers[@]}")]}]" \
      >"$work/archive/manifest.json"
  fi
done
if (( ${#images[@]} > 1 )); then
  echo "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.index.v1+json\",\"manifests\":[$(join "${images[@]}")]}" \
    >"$work/images"
  manifest=$(add index.v1+json "$work/images")
fi

# The name as containerd has it, and as skopeo takes it.
full=$image
first=${image%%/*}
if [[ $first == "$image" ]]; then full=docker.io/library/$image
elif [[ $first != *[.:]* && $first != localhost ]]; then full=docker.io/$image; fi
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/archive/oci-layout"
cat >"$work/archive/index.json" <<JSON
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[${manifest%\}},
"annotations":{"io.containerd.image.name":"$full","$label.ref.name":"$tag"}}]}
JSON
mkdir -p "$(dirname "$archive")"
pack "$work/archive" >"$work/image.tar"
mv "$work/image.tar" "$archive"
chmod 644 "$archive"
