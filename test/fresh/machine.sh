#!/bin/bash
# machine.sh ROOT TARGET GOROOT MODULES PARTS [NAME=VALUE...]   boots ROOT, in namespaces, and runs make TARGET in its /root/kubelet-supervisor
# machine.sh --clean                                            removes the cgroups of one that was killed
#
# GOROOT is to be seen inside as /usr/local/go, MODULES as /mnt/modules, PARTS, which may be empty, as /mnt/parts. All mounts and processes
# end with it, whatever ends it: the kernel kills the first process inside when we die, and with it the namespaces go.
set -euo pipefail

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
name=kubelet-supervisor-fresh
hierarchies=(/sys/fs/cgroup)
[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] || mapfile -t hierarchies < <(find /sys/fs/cgroup -mindepth 1 -maxdepth 1 -type d)

clean() {
  for _ in $(seq 100); do
    find "${hierarchies[@]/%//$name}" -depth -type d -exec rmdir {} + 2>/dev/null || :
    compgen -G "/sys/fs/cgroup/$name" >/dev/null || compgen -G "/sys/fs/cgroup/*/$name" >/dev/null || return 0
    sleep 0.1
  done
  echo "A cgroup $name is still in use below /sys/fs/cgroup." >&2
  return 1
}
[ "$1" != --clean ] || { clean; exit; }

for hierarchy in "${hierarchies[@]}"; do
  mkdir "$hierarchy/$name"
  for file in cpuset.cpus cpuset.mems; do # of cgroup v1, where a new one has none, and takes no process
    [ -e "$hierarchy/cgroup.controllers" ] || [ ! -e "$hierarchy/$file" ] || cat "$hierarchy/$file" >"$hierarchy/$name/$file"
  done
done
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  read -ra controllers </sys/fs/cgroup/cgroup.controllers
  for controller in "${controllers[@]}"; do echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control || :; done
fi

# shellcheck disable=SC2016 # it is for the shell that it is given to
enter='
set -eu
v2=/sys/fs/cgroup/$1 uptime=$2 monotonic=$3
shift 3
# A cgroup v2 that hands controllers on may hold no process.
if [ -d "$v2" ]; then mkdir "$v2/machine"; echo $$ >"$v2/machine/cgroup.procs"; fi
exec unshare --mount --propagation private --pid --fork --kill-child=SIGKILL --uts --ipc --time --boottime="$uptime" --monotonic="$monotonic" "$@"'

read -r uptime _ </proc/uptime
monotonic=$(sed -n 's/^now at \([0-9]*\) nsecs$/\1/p' /proc/timer_list) # less than the uptime on a machine that has slept
root=$1 target=$2 goroot=$3 modules=$4 parts=$5
shift 5
(
  for hierarchy in "${hierarchies[@]}"; do echo "$BASHPID" >"$hierarchy/$name/cgroup.procs"; done
  exec setpriv --pdeathsig KILL unshare --cgroup /bin/bash -c "$enter" machine "$name" $((3 - ${uptime%.*})) $((3 - monotonic / 1000000000)) \
    "$here/inside.sh" "$root" "$target" "$goroot" "$modules" "$parts" "$name" "$@"
) &
outer=$!
trap 'kill -KILL "$outer" 2>/dev/null || :; wait "$outer" 2>/dev/null || :; clean' EXIT
trap 'exit 130' INT TERM HUP
wait "$outer"
