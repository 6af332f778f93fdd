#!/usr/bin/env bash
# Builds the site into build/site, strictly: a link that leads nowhere fails, and so does anything that a page would load from
# another host, and a picture that is not of this Berth (BERTH names the program). The first run fetches docs/requirements.txt into build/docs-venv; later ones need no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

venv=build/docs-venv
if ! cmp -s docs/requirements.txt "$venv/requirements.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r docs/requirements.txt
  cp docs/requirements.txt "$venv/requirements.txt"
fi
BERTH=${BERTH:-build/release/bin/berth}
if [[ -x $BERTH ]]; then
  "$venv/bin/python" docs/site/pictures.py "$BERTH" --check
else
  echo "The pictures were not compared: there is no $BERTH (make build)."
fi
"$venv/bin/mkdocs" build --quiet --strict
"$venv/bin/python" docs/site/check.py build/site
echo "The site: build/site/index.html"
