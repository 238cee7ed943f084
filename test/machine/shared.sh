#!/bin/bash
# shared.sh FOLDER KERNEL   makes FOLDER/initrd of KERNEL's first file system, of init, and of what machines find in /run/machine: the agent,
# the packages for users, system extensions of two versions, and the fake kubelet with a supervisor beside it, for machines without systemd
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(realpath --canonicalize-missing "$1") kernel=$2

rm -rf "$folder/package" "$folder/next" "$folder/tree"
mkdir -p "$folder/tree/shared"
ARCHITECTURES=amd64 PROGRAMS=kubelet-supervisor VERSION=v0.1.0 packaging/build.sh "$folder/package" >/dev/null
ARCHITECTURES=amd64 PROGRAMS=kubelet-supervisor VERSION=v0.2.0 packaging/build.sh "$folder/next" >/dev/null
export CGO_ENABLED=0 GOARCH=amd64
go build -trimpath -ldflags "-s -w" -o "$folder/tree/shared/agent" ./test/machine/agent
go build -trimpath -ldflags "-s -w" -o "$folder/tree/shared/fake" ./test/fakekubelet
cp "$folder"/package/kubelet-supervisor_*.deb "$folder/tree/shared/kubelet-supervisor.deb"
cp "$folder"/next/kubelet-supervisor_*.deb "$folder/tree/shared/kubelet-supervisor-next.deb"
cp "$folder"/package/kubelet-supervisor-apt_*.deb "$folder/tree/shared/kubelet-supervisor-apt.deb"
dpkg-deb --fsys-tarfile "$folder/tree/shared/kubelet-supervisor.deb" |
  tar -x --directory "$folder/tree/shared" --strip-components=3 ./usr/bin/kubelet-supervisor
install -D --mode=0644 "$folder"/package/kubelet-supervisor_v0.1.0_amd64.sysext.raw "$folder/tree/shared/v0.1.0.raw"
install -D --mode=0644 "$folder"/next/kubelet-supervisor_v0.2.0_amd64.sysext.raw "$folder/tree/shared/v0.2.0.raw"
install test/machine/init.sh "$folder/tree/init"
{ cat "$kernel/initial.cpio"; (cd "$folder/tree" && find . -mindepth 1 -print0 | cpio --null --create --format=newc --quiet); } >"$folder/initrd"
