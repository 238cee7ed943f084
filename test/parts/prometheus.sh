#!/bin/bash
# prometheus.sh [node-exporter]   says where Debian's promtool and prometheus are, and its node_exporter where that is asked for; for tests of metrics
# and rules. What is missing is fetched once, into the cache
#
# The packages are unpacked, not installed: installed they would start servers on this machine.
# The folder is ${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-~/.cache}/kubelet-supervisor}/prometheus.
set -euo pipefail
cache=${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubelet-supervisor}
folder=$cache/prometheus
packages=(prometheus)
programs=("$folder/promtool" "$folder/prometheus")
[ "${1:-}" != node-exporter ] || { packages+=(prometheus-node-exporter); programs+=("$folder/prometheus-node-exporter"); }
complete() { local p; for p in "${programs[@]}"; do [ -x "$p" ] || return 1; done; }
! complete || { echo "$folder"; exit; }
command -v apt-get >/dev/null || { echo "prometheus.sh: Debian's packages ${packages[*]} are needed, and there is no apt-get to fetch them with" >&2; exit 1; }

mkdir -p "$cache"
exec {lock}>"$cache/.lock-prometheus"
flock "$lock"
! complete || { echo "$folder"; exit; }
echo "Fetching Debian's ${packages[*]} into $folder, once: 20 MB." >&2
work=$(mktemp -d "$cache/.prometheus-XXXXXX")
trap 'rm -rf "$work"' EXIT
fetch() { (cd "$work" && apt-get download "${packages[@]}" </dev/null >"$work/log" 2>&1); }
# The lists of a fresh machine may be old or absent: only then are they fetched.
fetch || { apt-get update </dev/null >/dev/null && fetch; } || { cat "$work/log" >&2; exit 1; }
for package in "$work"/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar --extract --directory "$work" --wildcards './usr/bin/*'
done
# Each is moved into its place when it is whole; who runs one of them now keeps the one that it has.
mkdir -p "$folder"
mv -f "$work"/usr/bin/* "$folder/"
echo "$folder"
