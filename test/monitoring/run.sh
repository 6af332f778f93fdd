#!/usr/bin/env bash
# `promtool test rules` on the alerts of manifests/monitoring, for ctest: 0 passed, 77 skipped (the reason is printed),
# anything else failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# Debian has promtool in the package prometheus. That is unpacked and not installed: it would start a server.
promtool=$(command -v promtool) || promtool=${XDG_CACHE_HOME:-$HOME/.cache}/berth-promtool/promtool
if [[ ! -x $promtool ]]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  if ! (cd "$scratch" && apt-get download prometheus && dpkg -x ./*.deb unpacked) >"$scratch/log" 2>&1; then
    echo "SKIPPED: there is no promtool, and no package of Debian that has it: $(tail -n 1 "$scratch/log")"
    exit 77
  fi
  mkdir -p "${promtool%/*}"
  mv "$scratch/unpacked/usr/bin/promtool" "$promtool"
fi

work=$(mktemp -d)
trap 'rm -rf "${scratch:-}" "$work"' EXIT
cp ../../manifests/monitoring/rules.yml alerts_test.yaml "$work"
dashboards=$PWD/../../manifests/monitoring
cd "$work"
"$promtool" check rules rules.yml
"$promtool" test rules alerts_test.yaml

# The queries of the dashboards, with Grafana's variables filled in, are PromQL.
{
  echo "groups: [{name: dashboards, rules: ["
  # shellcheck disable=SC2016  # Grafana's variables
  sed -n 's/^ *"expr": \(".*"\),\{0,1\}$/{record: query, expr: \1},/p' "$dashboards"/dashboard*.json |
    sed 's/\$__rate_interval/5m/g; s/\$cluster\|\$namespace/.*/g'
  echo "]}]"
} >queries.yaml
grep -c '^{record' queries.yaml | sed 's/$/ queries of dashboards/'
"$promtool" check rules --lint=none queries.yaml
