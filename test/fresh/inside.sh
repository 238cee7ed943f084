#!/bin/bash
# inside.sh ROOT TARGET GOROOT MODULES PARTS CGROUP [NAME=VALUE...]   is the first process of a machine that machine.sh makes: it mounts
# what a machine has, makes ROOT the root, and runs make TARGET
set -euo pipefail
root=$1 target=$2 goroot=$3 modules=$4 parts=$5 cgroup=$6
shift 6

mount --bind "$root" "$root"
cd "$root"
mkdir -p .old mnt/modules mnt/parts usr/local/go
mount -t proc -o nosuid,nodev,noexec proc proc
mount -t sysfs -o nosuid,nodev,noexec sysfs sys
if [ -d "/sys/fs/cgroup/$cgroup" ]; then
  mount --bind "/sys/fs/cgroup/$cgroup" sys/fs/cgroup
else
  mount -t tmpfs -o mode=755,nosuid,nodev,noexec tmpfs sys/fs/cgroup
  for hierarchy in /sys/fs/cgroup/*; do
    here=sys/fs/cgroup/${hierarchy##*/}
    if [ -L "$hierarchy" ]; then cp -P "$hierarchy" "$here"; else mkdir "$here"; mount --bind "$hierarchy/$cgroup" "$here"; fi
  done
fi
mount --rbind /dev dev
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs run
mount --bind -o ro "$goroot" usr/local/go
[ ! -d "$modules" ] || mount --bind -o ro "$modules" mnt/modules
[ -z "$parts" ] || mount --bind -o ro "$parts" mnt/parts
hostname fresh
pivot_root . .old
umount -l /.old

cd /root/kubelet-supervisor
echo "up for $(cut -d ' ' -f 1 /proc/uptime) s; $(env -i "$@" go version); $(dpkg-query --show | wc -l) Debian packages"
result=0
env -i --default-signal=INT,QUIT "$@" make "$target" || result=$? # no exec: the first process of a machine has orphans to bury
exit $result
