#!/bin/bash
# deb.sh PARTS FOLDER VERSION...   makes FOLDER/kubelet_VERSION.deb of PARTS/kubelet-VERSION, with the unit and the drop-in of Kubernetes' own
# packages (https://github.com/kubernetes/release, cmd/krel/templates/latest/kubeadm). As those, it has no script: it restarts nothing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
parts=$1 folder=$2
shift 2
umask 022

mkdir -p "$folder"
work=$(mktemp -d "$folder/.deb-XXXXXX")
trap 'rm -rf "$work"' EXIT
for version; do
  mkdir -p "$work/tree/DEBIAN"
  cat >"$work/tree/DEBIAN/control" <<END
Package: kubelet
Version: $version
Architecture: $(go env GOARCH)
Maintainer: Nobody <nobody@example.org>
Description: kubelet
END
  cp -r "$here/files/." "$work/tree/"
  install -D "$parts/kubelet-$version" "$work/tree/usr/bin/kubelet"
  dpkg-deb -Znone --root-owner-group --build "$work/tree" "$work/kubelet.deb" >/dev/null
  mv "$work/kubelet.deb" "$folder/kubelet_$version.deb"
  rm -r "$work/tree"
done
