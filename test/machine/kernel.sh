#!/bin/bash
# kernel.sh   unpacks Debian's kernel for virtual machines, once, and says in which folder it is
#
#   vmlinuz       as it is
#   lib/modules   those that a machine of QEMU's may want, and the kernel's configuration, which kubeadm looks for there
#   initial.cpio  most of the first file system: busybox, and the modules for disk, network and the agent's port
#
# The folder lies in the cache: ${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-~/.cache}/kubelet-supervisor}/machine-kernel-HASH
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

cache=${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubelet-supervisor}
folder=$cache/machine-kernel-$(sha256sum <kernel.sh | cut -c1-12)
[ ! -e "$folder" ] || { echo "$folder"; exit; }

mkdir -p "$cache"
exec {lock}>"$cache/.lock-machine-kernel"
flock "$lock"
[ ! -e "$folder" ] || { echo "$folder"; exit; }
echo "Unpacking a kernel for virtual machines into $folder, once: about half a minute, 150 MB on disk." >&2
work=$(mktemp -d "$cache/.machine-kernel-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/new/lib" "$work/initial"/{bin,modules,proc,sys,dev,root,disk,run,tmp}

# It is unpacked, not installed: no boot loader is wanted, and no initial file system of Debian's.
mmdebstrap --mode=root --variant=extract --include=linux-image-amd64,busybox-static bookworm "$work/debian" >"$work/log" 2>&1 {lock}>&- ||
  { tail -20 "$work/log" >&2; exit 1; }
modules=$(echo "$work"/debian/lib/modules/*)
version=$(basename "$modules")
rm -rf "$modules"/kernel/{sound,drivers/{gpu,media,staging,infiniband,iio,isdn,hid,usb,scsi,net/wireless,net/ethernet}}
depmod --basedir "$work/debian" "$version"

for module in virtio_pci virtio_blk virtio_net virtio_console ext4; do
  modprobe --dirname "$work/debian" --set-version "$version" --show-depends "$module"
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' >"$work/needed"
while read -r file; do
  cp "$file" "$work/initial/modules/"
  basename "$file" >>"$work/initial/modules/order"
done <"$work/needed"
cp "$work/debian/bin/busybox" "$work/initial/bin/"
(cd "$work/initial" && find . -print0 | cpio --null --create --format=newc --quiet) >"$work/new/initial.cpio"
cp "$work/debian/boot/config-$version" "$modules/config"
mv "$work/debian/boot/vmlinuz-$version" "$work/new/vmlinuz"
mv "$work/debian/lib/modules" "$work/new/lib/"
mv "$work/new" "$folder"
echo "$folder"
