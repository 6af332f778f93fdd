#!/usr/bin/env bash
# Builds, or finds, what the end-to-end tests run: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet
# and kubectl, containerd, the compiled tests and the programs beside them. The last line of stdout is the folder of the
# control plane; all else goes to stderr.
#
#   binaries.sh                 build what is missing (Kubernetes from source: some minutes, once per go.sum)
#   binaries.sh --find          build nothing; fail where something is missing
#   binaries.sh --find-tests    the same, and print the folder of the tests instead
#   binaries.sh --find-containerd   the same, and print the folder of containerd instead
#   binaries.sh --controllers   build JobSet, LWS and Kueue too, and print their folder instead; --find-controllers
#
# K8S=VERSION in the environment takes the Kubernetes of k8s-VERSION/go.mod instead of that of go.mod; the tests are the
# same.
#
# In the cache folder, outside the work tree, FOLDER/{etcd,kube-*,kubelet,kubectl} depend on go.sum alone, and
# FOLDER/tests-HASH/{e2e.test,stub,bench,cel,node,fakegpu,...} on our sources too, so that work trees share the one and not
# the other. CONTAINERD/{containerd,containerd-shim-runc-v2,ctr,nri} depend on the go.sum of containerd/ and our sources
# there. CONTROLLERS/{jobset,lws,kueue}, with what they have applied to a cluster in config, depend on the go.sum
# of controllers/ alone. Each folder is built under another name and renamed: what has its name is complete.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth-e2e
hash_of() { sha256sum | cut -c 1-16; }
say() { echo "e2e: $*" >&2; }
# shellcheck source=test/e2e/find_go.sh
. ./find_go.sh
trap 'say "could not build"' ERR

# kubernetes_of GO.MOD: the version that it names.
kubernetes_of() { sed -n 's|^\tk8s.io/kubernetes v\([0-9.]*\).*|\1|p' "$1"; }

module=.
lock=$cache/lock
if [[ ${K8S:-$(kubernetes_of go.mod)} != "$(kubernetes_of go.mod)" ]]; then
  module=k8s-$K8S
  lock=$cache/lock-$K8S  # it takes minutes: nobody who wants the other one waits for it
  if [[ ! -f $module/go.mod ]]; then
    say "K8S=$K8S: want $(kubernetes_of go.mod)$(printf ' or %s' k8s-*/ | sed 's|k8s-||g; s|/||g')"
    exit 2
  fi
fi
plane=$cache/$(hash_of <"$module/go.sum")
containerd=$cache/containerd-$(cat containerd/go.sum containerd/nri/*.go | hash_of)
controllers=$cache/controllers-$(cat controllers/*/go.sum | hash_of)
tests=$plane/tests-$(find . -name '*.go' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | hash_of)

# In a shell of its own, for the folder.
build_plane() (
  local version major minor package=k8s.io/component-base/version
  cd "$module"
  version=v$(kubernetes_of go.mod)
  IFS=. read -r major minor _ <<<"${version#v}"
  # As Kubernetes' own build sets them; without, the API server says that it is v0.0.0.
  local set="-X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
  say "building kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and kubectl $version (some minutes)"
  run_go build -ldflags "-s -w $set" -o "$1/" \
    k8s.io/kubernetes/cmd/kube-{apiserver,controller-manager,scheduler} k8s.io/kubernetes/cmd/kube{let,ctl}
  say "building etcd"
  run_go build -ldflags '-s -w' -o "$1/etcd" go.etcd.io/etcd/server/v3
  # The repository has other main packages of similar names.
  [[ $("$1/etcd" --version) == "etcd Version: 3."* ]]
  [[ $("$1/kube-apiserver" --version) == "Kubernetes $version" ]]
)

build_containerd() (
  cd containerd
  say "building containerd"
  run_go build -ldflags '-s -w' -o "$1/" github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2,ctr} ./nri
)

build_tests() {
  say "building the tests"
  run_go test -c -ldflags '-s -w' -o "$1/e2e.test" .
  run_go build -ldflags '-s -w' -o "$1/" ./stub ./bench ./cel ./demo ./replay ./node ./node-trials ./fakegpu ./fakecri ./work
  # Those of sources long gone.
  find "$plane" -mindepth 1 -maxdepth 1 -name 'tests-*' -mtime +14 -exec rm -rf {} +
}

# build_controller FOLDER NAME PACKAGE: a go.mod of its own names the one version; the packages of two do not go together.
build_controller() (
  cd "controllers/$2"
  say "building $3 (some minutes)"
  mkdir "$1/$2"
  run_go build -ldflags '-s -w' -o "$1/$2/$2" "$3"
  cp -r "$(GOTOOLCHAIN=local GOFLAGS='' "$go" list -m -f '{{.Dir}}' "${3%%/cmd*}")/config" "$1/$2/"
  chmod -R u+w "$1/$2/config"
)

build_controllers() {
  build_controller "$1" jobset sigs.k8s.io/jobset
  build_controller "$1" lws sigs.k8s.io/lws/cmd
  build_controller "$1" kueue sigs.k8s.io/kueue/cmd/kueue
}

# provide FOLDER FUNCTION: FOLDER is there, made by FUNCTION where it was not.
provide() {
  if [[ -d $1 ]]; then return; fi
  if [[ -n $find_only ]]; then
    say "the control plane of these tests is not built: run make e2e-binaries${K8S:+ K8S=$K8S}"
    exit 1
  fi
  if [[ -z ${go:-} ]]; then find_go; fi
  rm -rf "$1.new"
  mkdir -p "$1.new"
  "$2" "$1.new"
  mv "$1.new" "$1"
}

find_only=
case ${1:-} in
  --find | --find-tests | --find-containerd | --find-controllers) find_only=yes ;;
  '' | --controllers) mkdir -p "$cache"
      exec 9>"$lock"
      flock -n 9 || { say "another run is building: waiting for it"; flock 9; } ;;
  *) echo "usage: binaries.sh [--find | --find-tests | --find-containerd | --controllers | --find-controllers]" >&2; exit 2 ;;
esac
provide "$plane" build_plane
if [[ -z $find_only || $1 == --find-containerd ]]; then provide "$containerd" build_containerd; fi
provide "$tests" build_tests
case ${1:-} in
  --find-tests) echo "$tests" ;;
  --find-containerd) echo "$containerd" ;;
  --controllers | --find-controllers)
    provide "$controllers" build_controllers
    echo "$controllers" ;;
  *) echo "$plane" ;;
esac
