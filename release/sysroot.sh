#!/usr/bin/env bash
# Makes a folder with Debian's packages of another architecture, for a cross compiler: what is in them and, under
# var/lib/dpkg, what dpkg knows of them. Nothing of this system changes; no root, but the network.
#
#   sysroot.sh ARCH FOLDER PACKAGE...     sysroot.sh arm64 build/sysroot-arm64 libc6-dev libboost-dev
#
# They are of the release and from the mirrors that this system has, its security updates too. A folder that has these
# packages of this week stays as it is.
set -euo pipefail
umask 022

fail() { echo "sysroot.sh: $*" >&2; exit 1; }
(( $# >= 3 )) || { sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
architecture=$1
folder=$2
packages=("${@:3}")
wanted="$(date -u +%G-W%V) ${packages[*]}"
if [[ $(cat "$folder/packages" 2>/dev/null) == "$wanted" ]]; then exit 0; fi
rm -rf "$folder" "$folder.new"
mkdir -p "$folder.new"/{apt/{lists,cache/archives}/partial,apt/state,var/lib/dpkg/info,usr/{bin,lib,sbin}}
new=$(cd "$folder.new" && pwd)

# mirrors SUITE: "URL SUITE" of each source of apt; SUITE is a regular expression.
mirrors() { apt-cache policy | sed -nE "s#^ *[0-9-]+ (https?://[^ ]+) ($1)/main .*#\1 \2#p" | sort -u; }
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
mirrors "$release(-updates|-security)?" | while read -r url suite; do
  echo "deb [arch=$architecture signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $url $suite main"
done >"$new/apt/sources"
[[ -s $new/apt/sources ]] || fail "want a mirror of Debian $release among the sources of apt, got none"
apt() {
  apt-get -qq -o Dir::State="$new/apt/state" -o Dir::State::Lists="$new/apt/lists" -o Dir::Cache="$new/apt/cache" \
    -o Dir::State::status=/dev/null -o Dir::Etc::sourcelist="$new/apt/sources" -o Dir::Etc::sourceparts=- \
    -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o APT::Sandbox::User= "$@"
}
apt update
apt install -y --no-install-recommends --download-only "${packages[@]}" >/dev/null

for merged in bin lib sbin; do ln -s "usr/$merged" "$new/$merged"; done
echo 1 >"$new/var/lib/dpkg/info/format"
for deb in "$new"/apt/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$new"
  name=$(dpkg-deb -f "$deb" Package)
  if [[ $(dpkg-deb -f "$deb" Multi-Arch) == same ]]; then name+=:$architecture; fi
  dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's|^\.||; s|\(.\)/$|\1|; s|^/$|/.|' >"$new/var/lib/dpkg/info/$name.list"
  { dpkg-deb -f "$deb" | sed '/^Package:/a Status: install ok installed'; echo; } >>"$new/var/lib/dpkg/status"
done
rm -r "$new/apt"
# Links to the root of a system are to lead into the folder.
find "$new" -type l -lname '/*' -printf '%p\t%l\n' | while IFS=$'\t' read -r link to; do ln -sfr "$new$to" "$link"; done
echo "$wanted" >"$new/packages"
mv "$new" "$folder"
