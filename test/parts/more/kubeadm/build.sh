#!/bin/bash
# build.sh   builds kubeadm, and the parts of a control plane that the other tests do without, for make test-kubeadm
#
# They go into the folder of the other real parts (../../build.sh --folder) as NAME-VERSION; what that folder's name is made
# of does not have them in it, so nobody waits for them who does not need them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
folder=$(../../build.sh --folder)
version=$(sed -n "s/^require k8s.io\/kubernetes v//p" go.mod)

missing=()
for program in kubeadm kube-controller-manager kube-scheduler; do
  [ -e "$folder/$program-$version" ] || missing+=("$program")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ -n "${KUBELET_SUPERVISOR_PARTS:-}" ]; then
  echo "KUBELET_SUPERVISOR_PARTS=$folder: of version $version these programs are not in it: ${missing[*]}" >&2
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
flags='-s -w' minor=${version%.*}
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=" -X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=${minor#1.} -X $package.gitTreeState=clean"
done
for program in "${missing[@]}"; do
  [ ! -e "$folder/$program-$version" ] || continue # the build that was waited for made it
  echo "$program $version into $folder, once: about a minute on two processors"
  go build -trimpath -ldflags "$flags" -o "$work/$program" "k8s.io/kubernetes/cmd/$program" {lock}>&-
  mv "$work/$program" "$folder/$program-$version"
done
