#!/bin/bash
# build.sh [MINOR...]                  builds kubelets of other versions (1.23, ...; without arguments all) from the Go modules beside this script
# build.sh kube-apiserver MINOR...     … API servers, where tools.go has them
#
# They are for `make matrix`, `make bench-upstream`, older API servers and upgrades of a kubelet, and go into the folder of the other real parts
# (../build.sh --folder) as kubelet-VERSION and kube-apiserver-VERSION; what that folder's name is made of does not have them in it, so a new
# one costs nobody a build of the others.
# A new minor version: a folder with go.mod (k8s.io/kubernetes, and a replace for each k8s.io module of its staging) and tools.go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
folder=$(../build.sh --folder)
program=kubelet
[ "${1:-}" != kube-apiserver ] || { program=$1; shift; }
[ $# -gt 0 ] || set -- 1.*

missing=()
for minor; do
  grep -qs "/cmd/$program\"" "$minor/tools.go" || { echo "$program $minor: there is no module for it; there are: $(grep -l "/cmd/$program\"" 1.*/tools.go | cut -d/ -f1 | paste -sd' ')" >&2; exit 2; }
  version=$(sed -n 's/^require k8s.io\/kubernetes v//p' "$minor/go.mod")
  [ -e "$folder/$program-$version" ] || missing+=("$version")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ -n "${KUBELET_SUPERVISOR_PARTS:-}" ]; then
  echo "KUBELET_SUPERVISOR_PARTS=$folder: it has no $program of ${missing[*]}" >&2
  exit 1
fi

mkdir -p "$folder"
exec {lock}>"$folder/.lock"
flock --nonblock "$lock" || { echo "Waiting for another build of the parts in $folder"; flock "$lock"; }
work=$(mktemp -d "$folder/.build-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
# Nothing of the caller's may change what is built: not a flag, not a workspace.
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off GOOS=linux GOTMPDIR=$work
unset GOARCH
n=0
for version in "${missing[@]}"; do
  n=$((n + 1))
  echo "[$n/${#missing[@]}] $program $version into $folder, once: about three minutes on two processors, plus the download"
  minor=${version%.*} flags='-s -w'
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=${minor#1.} -X $package.gitTreeState=clean"
  done
  go build -C "$minor" -trimpath -ldflags "$flags" -o "$work/$program" "k8s.io/kubernetes/cmd/$program" {lock}>&-
  mv "$work/$program" "$folder/$program-$version"
done
