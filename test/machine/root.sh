#!/bin/bash
# root.sh KERNEL PARTS [POLICY]   makes the disk of a node, once, and says where it is: an ext4 with a Debian, systemd, containerd, runc, and the
# real kubelet and kubeadm of PARTS as kubeadm's packages have them. POLICY is one of the folder selinux: with it the node has SELinux enforcing,
# and each file its label.
#
# It lies in the cache: ${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-~/.cache}/kubelet-supervisor}/machine-root-HASH.img. Nothing ever
# writes to it: what machines write is kept beside it, by package disk.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
kernel=$(realpath "$1") parts=$(realpath "$2") policy=${3:-}

cache=${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubelet-supervisor}
image=$cache/machine-root-$({ cat root.sh; tar -c --sort=name --mtime=@0 --owner=0 --group=0 -C .. machine/files machine/selinux parts/kubelets/files; basename -a "$kernel" "$parts"; echo "$policy"; } | sha256sum | cut -c1-12).img
[ ! -e "$image" ] || { echo "$image"; exit; }

mkdir -p "$cache"
exec {lock}>"$cache/.lock-machine-root"
flock "$lock"
[ ! -e "$image" ] || { echo "$image"; exit; }
echo "Making the disk of a node in $image, once: about a minute, 800 MB on disk." >&2
work=$(mktemp -d "$cache/.machine-root-XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root

packages=systemd,systemd-sysv,dbus,udev,kmod,mount,iproute2,procps,runc,containernetworking-plugins
suite=bookworm
[ -z "$policy" ] || suite=trixie packages+=,selinux-policy-default,selinux-utils,policycoreutils # whose policy knows a kubelet
mmdebstrap --mode=root --variant=minbase --include="$packages" "$suite" "$root" >"$work/log" 2>&1 {lock}>&- || { tail -20 "$work/log" >&2; exit 1; }
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}
cp -r "$kernel/lib/modules" "$root/lib/"
install "$parts"/{containerd,containerd-shim-runc-v2,ctr} "$root/usr/bin/"
install "$parts/kubelet-1.36.3" "$root/usr/bin/kubelet"
install "$parts/kubeadm-1.36.3" "$root/usr/bin/kubeadm"
cp "$parts/pause.tar" "$root/usr/share/"
cp -r files/. ../parts/kubelets/files/. "$root/"
mkdir -p "$root/var/log/journal"
echo machine >"$root/etc/hostname"
: >"$root/etc/machine-id"
for unit in getty@tty1.service serial-getty@ttyS0.service apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service dpkg-db-backup.timer; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
for unit in machine-agent containerd kubelet; do
  ln -s "/usr/lib/systemd/system/$unit.service" "$root/etc/systemd/system/multi-user.target.wants/"
done
[ -z "$policy" ] || selinux/set.sh "$root" "$policy" >>"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
mke2fs -q -t ext4 -L root -d "$root" "$work/root.img" 3g >/dev/null
mv "$work/root.img" "$image"
echo "$image"
