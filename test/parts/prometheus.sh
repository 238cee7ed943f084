#!/bin/bash
# prometheus.sh   says where Debian's promtool and prometheus are, for tests of metrics and rules; fetched once, into the cache
#
# The package is unpacked, not installed: installed it would start a server on this machine.
# The folder is ${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-~/.cache}/kubelet-supervisor}/prometheus.
set -euo pipefail
cache=${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubelet-supervisor}
folder=$cache/prometheus
[ ! -x "$folder/promtool" ] || { echo "$folder"; exit; }
command -v apt-get >/dev/null || { echo "prometheus.sh: promtool is needed, of Debian's package prometheus, and there is no apt-get to fetch it with" >&2; exit 1; }

mkdir -p "$cache"
exec {lock}>"$cache/.lock-prometheus"
flock "$lock"
[ ! -x "$folder/promtool" ] || { echo "$folder"; exit; }
echo "Fetching Debian's promtool into $folder, once: 20 MB." >&2
work=$(mktemp -d "$cache/.prometheus-XXXXXX")
trap 'rm -rf "$work"' EXIT
fetch() { (cd "$work" && apt-get download prometheus </dev/null >"$work/log" 2>&1); }
# The lists of a fresh machine may be old or absent: only then are they fetched.
fetch || { apt-get update </dev/null >/dev/null && fetch; } || { cat "$work/log" >&2; exit 1; }
dpkg-deb --fsys-tarfile "$work"/prometheus_*.deb | tar --extract --directory "$work" ./usr/bin/promtool ./usr/bin/prometheus
rm -rf "$folder"
mv "$work/usr/bin" "$folder"
echo "$folder"
