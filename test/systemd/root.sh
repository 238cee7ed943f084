#!/bin/bash
# root.sh SUITE   makes a small Debian with systemd, dbus and rpm, once, and says where it is
#
# It lies in the cache: ${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-~/.cache}/kubelet-supervisor}/systemd-SUITE-HASH. Nothing ever
# writes to it: machines boot from a layer of their own above it. bookworm has systemd 252, trixie 257.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
suite=$1

cache=${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubelet-supervisor}
root=$cache/systemd-$suite-$(sha256sum <root.sh | cut -c1-12)
[ ! -e "$root/usr/bin/systemctl" ] || { echo "$root"; exit; }

mkdir -p "$cache"
exec {lock}>"$cache/.lock-systemd-$suite"
flock "$lock"
[ ! -e "$root/usr/bin/systemctl" ] || { echo "$root"; exit; }
echo "Making a $suite with systemd in $root, once: about a minute, 300 MB on disk." >&2
work=$(mktemp -d "$cache/.root-XXXXXX")
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2016 # mmdebstrap gives the hooks the folder
mmdebstrap --mode=root --variant=minbase --include=systemd,systemd-sysv,dbus,rpm,mount \
  --customize-hook='rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*' --customize-hook='rm -f "$1/etc/machine-id"' \
  "$suite" "$work/root" >"$work/log" 2>&1 {lock}>&- || { tail -20 "$work/log" >&2; exit 1; }
rm -rf "$root"
mv "$work/root" "$root"
echo "$root"
