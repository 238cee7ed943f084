#!/bin/bash
# run.sh TARGET...   runs these make targets of a fresh clone of HEAD, each as on a machine that was just installed and just booted
#
# That machine is a minimal Debian of its own with nothing but git, make and the certificates that a download needs, and this machine's
# Go, read only. It is in namespaces of its own: mounts, processes, cgroups, host name, and a time namespace whose boot and monotonic
# clocks stand at a few seconds when a target begins. Its caches are empty: parts, linter, packages and Go's build cache begin from nothing.
#
# What it has of this machine: the kernel, the network with resolv.conf, proxies and trusted certificates, the settings of `go env` that
# say where modules come from, and Go's cache of downloaded modules, read only, as a module proxy: nobody's servers are asked again for
# what is here. FRESH_PARTS=/FOLDER lends prebuilt parts, for work on the tests: then `parts` is no test of a fresh machine.
#
# All targets are run, also after one that failed. Nothing is left, however it ends: see machine.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

exec {lock}>/run/kubelet-supervisor-fresh.lock
flock --nonblock "$lock" || { echo "Another fresh machine is at work on this one; its lock is /run/kubelet-supervisor-fresh.lock." >&2; exit 1; }
pristine=$(test/parts/root.sh bookworm git make ca-certificates)
machine=$(dirname "$pristine")/fresh
root=$machine/root
# The sysctls that clusters change (test/cluster/host.go) are restored by whoever changed them, unless it is killed.
sysctls=$(grep -H '' /proc/sys/{fs/inotify/max_user_instances,vm/overcommit_memory,vm/panic_on_oom,kernel/panic,kernel/panic_on_oops,kernel/keys/root_maxkeys,kernel/keys/root_maxbytes})

child=
cleanup() {
  [ -z "$child" ] || { kill -KILL "$child" 2>/dev/null || :; wait "$child" 2>/dev/null || :; }
  while IFS=: read -r file value; do [ "$(cat "$file")" = "$value" ] || echo "$value" >"$file"; done <<<"$sysctls"
  test/fresh/machine.sh --clean || :
  rm -rf "$machine"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

test/fresh/machine.sh --clean
rm -rf "$machine"
mkdir -p "$machine"
cp -a "$pristine" "$root"
echo fresh >"$root/etc/hostname"
printf '127.0.0.1 localhost fresh\n::1 localhost\n' >"$root/etc/hosts"
tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
rm -f "$root/etc/resolv.conf"
cat /etc/resolv.conf >"$root/etc/resolv.conf"
certificates=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
[ ! -e "$certificates" ] || cat "$certificates" >"$root/etc/ssl/certs/ca-certificates.crt"
git clone --quiet --no-hardlinks "$PWD" "$root/root/kubelet-supervisor"
echo "A fresh machine with $(git -C "$root/root/kubelet-supervisor" log -1 --format='%h, %s')"
[ -z "$(git status --porcelain)" ] || echo "WHAT IS NOT COMMITTED IS NOT IN IT."

environment=(HOME=/root PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
for name in http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY; do
  [ -z "${!name:-}" ] || environment+=("$name=${!name}")
done
for name in GOPRIVATE GONOPROXY GOSUMDB GONOSUMDB GOINSECURE; do environment+=("$name=$(go env "$name")"); done
environment+=("GOPROXY=file:///mnt/modules,$(go env GOPROXY)")
[ -z "${FRESH_PARTS:-}" ] || { environment+=(KUBELET_SUPERVISOR_PARTS=/mnt/parts); echo "THE PARTS ARE THOSE OF $FRESH_PARTS, NOT BUILT HERE."; }

result=0 summary=
for target; do
  printf '\n=== make %s, on a machine that was just booted\n' "$target"
  begin=$SECONDS word=passed
  setpriv --pdeathsig TERM test/fresh/machine.sh "$root" "$target" "$(go env GOROOT)" "$(go env GOMODCACHE)/cache/download" "${FRESH_PARTS:-}" "${environment[@]}" </dev/null &
  child=$!
  wait "$child" || { word=FAILED result=1; }
  child=
  summary+=$(printf '\n  %-14s %s after %d s' "$target" "$word" $((SECONDS - begin)))
done
printf '\nOn fresh machines:%s\n' "$summary"
[ "$result" = 0 ]
