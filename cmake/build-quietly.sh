#!/usr/bin/env bash
# Builds targets of the release preset and says how far it is in one line: build-quietly.sh TARGET...
# JOBS is the number of compilers (all cores). What ninja says goes to build/build.log; its end is shown if the build fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=build/build.log
mkdir -p build
started=$SECONDS
line=''
progress() {
  while IFS= read -r text; do
    printf '%s\n' "$text" >>"$log"
    [[ $text =~ ^\[([0-9]+)/([0-9]+)\]' ' ]] || continue
    line="building Berth: $(( 100 * BASH_REMATCH[1] / BASH_REMATCH[2] )) %, $(( SECONDS - started )) s"
    if [[ -t 1 ]]; then printf '\r%s\e[K' "$line"; fi
  done
  if [[ -t 1 && -n $line ]]; then printf '\r\e[K'; fi
}

: >"$log"
if ! cmake --preset release >>"$log" 2>&1 ||
  ! NINJA_STATUS='[%f/%t] ' cmake --build --preset release -j "${JOBS:-$(nproc)}" --target "$@" 2>&1 | progress; then
  tail -n 40 "$log" >&2
  echo "The build failed; all of it is in $log." >&2
  exit 1
fi
