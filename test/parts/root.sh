#!/bin/bash
# root.sh SUITE PACKAGE...   makes a minimal Debian with these packages, once, and says where it is
#
# It lies in the cache: ${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-~/.cache}/kubelet-supervisor}/debian-SUITE-HASH. Nothing ever
# writes to it: whoever uses it has a copy, or a layer above it. The machine's proxies for apt are those of this root, too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
suite=$1
shift

mapfile -t proxies < <(apt-config dump 2>/dev/null | grep -E '^Acquire::[a-z]+::Proxy(::[^ ]+)? "[^"]+";$' || :)
cache=${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubelet-supervisor}
root=$cache/debian-$suite-$({ cat root.sh; echo "$*" "${proxies[@]}"; } | sha256sum | cut -c1-12)
[ ! -e "$root/usr/bin/apt-get" ] || { echo "$root"; exit; }

mkdir -p "$cache"
exec {lock}>"$cache/.lock-debian-$suite"
flock "$lock"
[ ! -e "$root/usr/bin/apt-get" ] || { echo "$root"; exit; }
echo "Making a minimal $suite with $* in $root, once: about a minute, up to 300 MB on disk." >&2
work=$(mktemp -d "$cache/.root-XXXXXX")
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2016 # mmdebstrap gives the hooks the folder
mmdebstrap --mode=root --variant=minbase --include="$(IFS=,; echo "$*")" "${proxies[@]/#/--aptopt=}" \
  --customize-hook='rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*' --customize-hook='rm -f "$1/etc/machine-id"' \
  "$suite" "$work/root" >"$work/log" 2>&1 {lock}>&- || { tail -20 "$work/log" >&2; exit 1; }
rm -rf "$root"
mv "$work/root" "$root"
echo "$root"
