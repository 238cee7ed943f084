#!/bin/bash
# images.sh PARTS FILE   makes FILE, an ext4 with what a container runtime keeps of imported images: those of kubeadm's static pods
#
# An emulated processor would take minutes to import them. Here the same containerd does it for the machine; the machine mounts the disk.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
parts=$(realpath "$1") file=$(realpath --canonicalize-missing "$2")

work=$(mktemp -d "$(dirname "$file")/.disk-XXXXXX")
containerd=
trap '[ -z "$containerd" ] || { kill "$containerd" && wait "$containerd"; }; rm -rf "$work"' EXIT
test/parts/more/kubeadm/images.sh "$parts" "$work/images.tar"
cat >"$work/config.toml" <<END
version = 3
root = "$work/tree"
state = "$work/state"
disabled_plugins = [
  "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.erofs",
]
[grpc]
  address = "$work/socket"
[ttrpc]
  address = "$work/socket.ttrpc"
END
"$parts/containerd" --config "$work/config.toml" >"$work/log" 2>&1 &
containerd=$!
ctr() { "$parts/ctr" --address "$work/socket" --namespace k8s.io "$@"; }
for _ in {1..300}; do
  if ctr version >/dev/null 2>&1; then break; fi
  sleep 0.1
done
for images in "$parts/pause.tar" "$work/images.tar"; do
  ctr images import "$images" >/dev/null 2>>"$work/log" || { tail -20 "$work/log" >&2; exit 1; }
done
kill "$containerd"
wait "$containerd"
containerd=
mke2fs -q -t ext4 -L images -d "$work/tree" "$work/images.img" 2g >/dev/null
mv "$work/images.img" "$file"
