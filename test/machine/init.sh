#!/bin/busybox sh
# shellcheck shell=dash
# The first process of a virtual machine. What it boots stands in the kernel's command line: machine=node hands over to the systemd on the
# disk; machine=bare has the disk at /disk and nothing but busybox and the agent. What shared.sh made is in /run/machine either way.
# With pause, too, it waits to be snapshotted before it knows of a disk.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do
  [ "$module" = virtio_blk.ko ] || insmod "/modules/$module" 2>&1 | grep -v 'No such device' # the one is for another processor
done </modules/order
ip link set lo up
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
mount -t tmpfs -o mode=755 tmpfs /run
mv /shared /run/machine

if grep -q pause /proc/cmdline; then /run/machine/agent pause; fi
insmod /modules/virtio_blk.ko
until [ -b /dev/vda ]; do usleep 10000; done

# What the supervisor finds when it starts, for the test to look at.
keep() { [ ! -d "$1" ] || tar -c -f /run/machine/state.tar -C "$1" .; }

if grep -q machine=node /proc/cmdline; then
  mount -t ext4 /dev/vda /root || exec sh
  keep /root/var/lib/kubelet-supervisor
  mount --move /run /root/run
  umount /proc /sys /dev
  exec switch_root /root /sbin/init
fi

mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /tmp
mount -t ext4 /dev/vda /disk
keep /disk/state
/run/machine/agent &
while :; do wait; sleep 1; done
