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
# shellcheck source=release/packages.sh
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

libraries=$(libraries_of "$program")
mkdir -p "$folder/lib" "$folder/licenses"
strip -o "$folder/lib/kubectl-berth" "$program"
for library in $libraries; do
  # Those of glibc belong to the system's loader.
  if [[ $library =~ /(lib(c|m|pthread|dl|rt)|ld-linux-.*)\.so ]]; then continue; fi
  cp -L "$library" "$folder/lib/"
  package=$(package_of "$library")
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
