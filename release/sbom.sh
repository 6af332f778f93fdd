#!/usr/bin/env bash
# What is in the programs of a release, as SPDX 2.3 (JSON) on stdout: the Debian packages of the libraries that they load,
# and of those that are compiled into them.
#
#   sbom.sh VERSION PROGRAM...
#
# Versions are those that are installed here, or in the packages of sysroot.sh, so run it where the programs were built. Needs
# dpkg, readelf and sha256sum; asks nothing of the network. Licenses are in /usr/share/doc/PACKAGE/copyright of each package and not repeated.
set -euo pipefail

fail() { echo "sbom.sh: $*" >&2; exit 1; }
(( $# >= 2 )) || { sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
version=$1
shift
[[ $version =~ ^[0-9A-Za-z.+-]+$ ]] || fail "want a version, got \"$version\""
# shellcheck source=release/packages.sh
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

declare -A relation_of=()
built_for "$1"
libraries=$(libraries_of "$@")
for library in $libraries; do
  package=$(package_of "$library")
  relation_of[$package]=DYNAMIC_LINK
done
for package in "${compiled_in[@]}"; do
  if packages -W "$package" >/dev/null 2>&1; then relation_of[$package]=CONTAINS; fi
done

created=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)
sum=$(cat "$@" | sha256sum | cut -c 1-64)
distribution=$(sed -n 's/^ID=//p' /etc/os-release)-$(sed -n 's/^VERSION_ID="\{0,1\}\([^"]*\).*/\1/p' /etc/os-release)
cat <<END
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "berth-$version",
  "documentNamespace": "https://spdx.org/spdxdocs/berth-$version-$sum",
  "creationInfo": {"created": "$created", "creators": ["Tool: berth-release-sbom"]},
  "packages": [
    {"SPDXID": "SPDXRef-berth", "name": "berth", "versionInfo": "$version", "downloadLocation": "NOASSERTION",
     "filesAnalyzed": false, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION"}
END
relations=$'    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-berth"}'
for package in $(printf '%s\n' "${!relation_of[@]}" | LC_ALL=C sort); do
  # shellcheck disable=SC2016  # dpkg's words
  read -r installed of < <(packages -W -f '${Version} ${Architecture}\n' "$package")
  id=SPDXRef-${package//[^A-Za-z0-9.-]/-}
  in_url=${installed//+/%2B}
  cat <<END
    ,{"SPDXID": "$id", "name": "$package", "versionInfo": "$installed", "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
      "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
        "referenceLocator": "pkg:deb/debian/${package//+/%2B}@${in_url//:/%3A}?arch=$of&distro=$distribution"}]}
END
  relations+=$',\n    {"spdxElementId": "SPDXRef-berth", "relationshipType": "'${relation_of[$package]}$'", "relatedSpdxElement": "'$id$'"}'
done
cat <<END
  ],
  "relationships": [
$relations
  ]
}
END
