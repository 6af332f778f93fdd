#!/usr/bin/env bash
# Makes a folder of programs that start on any Linux of their architecture: with the libraries that they load, the C library
# and its loader among them, and the licenses of all that.
#
#   bundle.sh FOLDER PROGRAM...
#
# FOLDER/NAME of each program is what goes into PATH, or a link to it: a script, which needs sh and readlink. lib/ and licenses/
# stay beside it. The exception is berth-node, which starts itself again and loads NVIDIA's library: it takes the C library of
# the system, which has to be as new as that of the packages. The image has it whole (image.sh).
set -euo pipefail

fail() { echo "bundle.sh: $*" >&2; exit 1; }
(( $# >= 2 )) || { sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
folder=$1
shift
# shellcheck source=release/packages.sh
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

built_for "$1"
libraries=$(libraries_of "$@")
loader=$(grep '/ld-linux-[^/]*$' <<<"$libraries") || fail "$1: want a program of glibc"
mkdir -p "$folder"/{lib/programs,lib/glibc,licenses}
for library in $libraries; do
  # Those of the C library are of one make with the loader: berth-node has neither.
  if [[ $library =~ /(lib(c|m|pthread|dl|rt)|ld-linux-.*)\.so ]]; then to=lib/glibc; else to=lib; fi
  cp -L "$root$library" "$folder/$to/"
  package=$(package_of "$library")
  cp "$root/usr/share/doc/$package/copyright" "$folder/licenses/$package"
done
cp "$(dirname "${BASH_SOURCE[0]}")/../LICENSE" "$folder/LICENSE"

for program in "$@"; do
  name=${program##*/}
  "${tools}strip" -o "$folder/lib/programs/$name" "$program"
  if [[ $name == berth-node ]]; then
    start="LD_LIBRARY_PATH=\"\$here/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}\" exec"
  else
    start="exec \"\$here/lib/glibc/${loader##*/}\" --library-path \"\$here/lib/glibc:\$here/lib\""
    # berth-replay finds berth beside what /proc/self/exe names: the loader.
    ln -sf "../../$name" "$folder/lib/glibc/$name"
  fi
  cat >"$folder/$name" <<END
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")
$start "\$here/lib/programs/$name" "\$@"
END
  chmod +x "$folder/$name"
done
if [[ -e $folder/kubectl-berth ]]; then
  # kubectl asks this one how to go on with a line (kubectl completion).
  cat >"$folder/kubectl_complete-berth" <<'END'
#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/kubectl-berth" __complete "$@"
END
  chmod +x "$folder/kubectl_complete-berth"
fi
