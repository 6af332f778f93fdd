#!/usr/bin/env bash
# Makes the folder of kubectl's plugin: the program, and the libraries that it loads, so that it runs on any Linux with a
# glibc as new as this machine's.
#
#   kubectl-plugin.sh PROGRAM FOLDER
#
# FOLDER/kubectl-berth is what goes into PATH, or a link to it; lib/ and licenses/ stay beside it.
set -euo pipefail

fail() { echo "kubectl-plugin.sh: $*" >&2; exit 1; }
(( $# == 2 )) || { sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
program=$1
folder=$2
[[ -x $program ]] || fail "$program: want a program, got none"

mkdir -p "$folder/lib" "$folder/licenses"
strip -o "$folder/lib/kubectl-berth" "$program"
# Those of glibc belong to the system's loader.
libraries=$(ldd "$program" | awk '$2 == "=>" {print $3}' | grep -vE '/(libc|libm|libpthread|libdl|librt)\.so')
for library in $libraries; do
  cp -L "$library" "$folder/lib/"
  # /lib is a link to /usr/lib, and dpkg knows either.
  package=$( (dpkg-query -S "$library" || dpkg-query -S "/usr$library" || dpkg-query -S "${library#/usr}") 2>/dev/null | head -n 1)
  package=${package%%:*}
  [[ -n $package ]] || fail "$library: no package has it"
  cp "/usr/share/doc/$package/copyright" "$folder/licenses/$package"
done
cp "$(dirname "${BASH_SOURCE[0]}")/../LICENSE" "$folder/LICENSE"

cat >"$folder/kubectl-berth" <<'END'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$here/lib/kubectl-berth" "$@"
END
# kubectl asks this one how to go on with a line (kubectl completion).
cat >"$folder/kubectl_complete-berth" <<'END'
#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/kubectl-berth" __complete "$@"
END
chmod +x "$folder/kubectl-berth" "$folder/kubectl_complete-berth"
