#!/bin/bash
# machine.sh ROOT UPPER SHARED   boots a throw-away machine: a real systemd as PID 1 in namespaces of its own, with a pure cgroup v2
#
# ROOT is read only; what the machine changes is kept in the folder UPPER, so that a second boot with it is a reboot, with a boot id of
# its own; so is what it has in /disk, which keeps its device number too. SHARED is to be seen inside as /shared, read only. "PID N" is
# said when systemd runs; N is its pid outside. The machine is switched off when our standard input ends, for whatever reason.
#
# Where the host has cgroup v1, the machine's own cgroup v2 is without controllers. For the real kubelet, which needs some, the host's
# hierarchies are at /run/cgroup, each with a cgroup that has the name of the folder UPPER.
set -euo pipefail
root=$(realpath "$1") upper=$(realpath "$2") shared=$(realpath "$3")
name=$(basename "$upper")
v2=/sys/fs/cgroup v1=()
if [ "$(stat -fc %T $v2)" != cgroup2fs ]; then
  v2=/sys/fs/cgroup/unified
  for hierarchy in /sys/fs/cgroup/*; do [ "$hierarchy" = "$v2" ] || v1+=("$hierarchy"); done
fi
cgroup=$v2/$name
mkdir -p "$upper/layer" "$upper/work" "$upper/root" "$upper/disk" "$cgroup"
for hierarchy in "${v1[@]}"; do
  mkdir -p "$hierarchy/$name"
  for file in cpuset.cpus cpuset.mems; do [ ! -e "$hierarchy/$file" ] || cat "$hierarchy/$file" >"$hierarchy/$name/$file"; done
done
cat /proc/sys/kernel/random/uuid >"$upper/boot_id"

# shellcheck disable=SC2016 # it is for the shell inside
machine='
set -eu
root=$1 upper=$2 shared=$3
mount -t overlay -o "lowerdir=$root,upperdir=$upper/layer,workdir=$upper/work" overlay "$upper/root"
cd "$upper/root"
mkdir -p shared disk .old
mount --bind -o ro "$shared" shared
mount --bind "$upper/disk" disk
mount -t proc -o nosuid,nodev,noexec proc proc
mount --bind "$upper/boot_id" proc/sys/kernel/random/boot_id
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755,nosuid,size=64m tmpfs run
mkdir -p run/host run/cgroup
mount --rbind /sys/fs/cgroup run/cgroup
echo machine >run/host/container-manager
mount -t tmpfs -o mode=1777,nosuid tmpfs tmp
mount -t tmpfs -o mode=755,nosuid,size=4m tmpfs dev
for node in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 dev/${node%:*} c 1 ${node#*:}; done
mknod -m 666 dev/tty c 5 0
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
ln -s /proc/self/fd dev/fd
# The host is not for machines to change.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount --bind "$upper/boot_id" proc/sys/kernel/random/boot_id
[ ! -e proc/sysrq-trigger ] || { mount --bind proc/sysrq-trigger proc/sysrq-trigger; mount -o remount,bind,ro proc/sysrq-trigger; }
# What a machine without hardware has no use for.
for unit in console-getty.service getty.target sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount \
  dev-hugepages.mount apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer dpkg-db-backup.timer man-db.timer; do
  ln -sf /dev/null "etc/systemd/system/$unit"
done
hostname machine
echo machine >etc/hostname
[ -s etc/machine-id ] || : >etc/machine-id
ip link set lo up
pivot_root . .old
umount -l /.old
mount --make-rshared / # as systemd does where it is not in a container
exec env -i container=machine PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
  setpriv --bounding-set=-sys_module,-sys_time,-sys_rawio,-wake_alarm,-syslog /lib/systemd/systemd --system'

(
  echo "$BASHPID" >"$cgroup/cgroup.procs"
  exec setsid unshare --mount --propagation private --pid --fork --kill-child=SIGKILL --cgroup --uts --ipc --net \
    /bin/bash -c "$machine" machine "$root" "$upper" "$shared"
) >"$upper/log" 2>&1 </dev/null &
outer=$!
systemd=

cleanup() {
  set +e
  if [ -n "$systemd" ] && kill -0 "$outer" 2>/dev/null; then # not if it was switched off inside: its pid may be another's by now
    kill -s RTMIN+4 "$systemd" 2>/dev/null # poweroff
    for _ in $(seq 200); do kill -0 "$outer" 2>/dev/null || break; sleep 0.05; done
  fi
  kill -KILL "$outer" 2>/dev/null
  wait "$outer" 2>/dev/null
  for _ in $(seq 40); do
    find "$cgroup" "${v1[@]/%//$name}" -depth -type d -exec rmdir {} + 2>/dev/null
    [ -d "$cgroup" ] || [ -d "${v1[0]:-}/$name" ] || break
    sleep 0.1
  done
}
trap cleanup EXIT
trap 'exit 143' TERM INT HUP

for _ in $(seq 1500); do
  kill -0 "$outer" 2>/dev/null || { cat "$upper/log" >&2; exit 1; }
  candidate=$(tr -d ' ' 2>/dev/null <"/proc/$outer/task/$outer/children") || :
  if [ -n "$candidate" ] && [ -S "/proc/$candidate/root/run/systemd/private" ]; then systemd=$candidate; break; fi
  sleep 0.02
done
[ -n "$systemd" ] || { echo "systemd did not start:" >&2; cat "$upper/log" >&2; exit 1; }
echo "PID $systemd"
cat >/dev/null # until the test ends
