#!/bin/bash
# build.sh FOLDER [MINOR...]   builds the kubelet's own admission into FOLDER, as admission-VERSION: that of the kubelet which the tests use, or
# those of these minor versions (1.34, ...)
#
# Which Kubernetes it is built from is in the modules from which ../parts builds kubelets. It takes some minutes the first time.
set -euo pipefail
folder=$(realpath -m "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/kubelet"
mkdir -p "$folder"
# Nothing of the caller's may change what is built: not a flag, not a workspace.
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off GOOS=linux
unset GOARCH

build() { # MODFILE
  local version tags=()
  version=$(sed -n 's/^\(require\)\?[[:space:]]*k8s.io\/kubernetes v\([0-9.]*\).*/\2/p' "$1")
  case $version in
    1.34.*) tags=(-tags "older,kubernetes134") ;;
    1.35.*) tags=(-tags older) ;;
  esac
  go build "${tags[@]}" -modfile="$1" -o "$folder/admission-$version" .
}

[ $# -gt 0 ] || build ../../parts/kubernetes/go.mod
for minor; do
  build "../../parts/kubelets/$minor/go.mod"
done
