#!/bin/bash
# debian.sh PACKAGE... : sees to it that these Debian packages are installed: as root it installs what is missing.
set -euo pipefail

missing=()
for package; do
  [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null)" = "ii " ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

install="apt-get install --yes --no-install-recommends ${missing[*]}"
if ! command -v apt-get >/dev/null; then
  echo "These programs are needed, under the names that Debian gives their packages: ${missing[*]}" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  printf 'Debian packages are missing, and only root may install them. Run\n\n    sudo %s\n\n' "$install" >&2
  exit 1
fi
# One at a time: what make test runs side by side may need packages at the same moment.
exec {lock}>/run/kubelet-supervisor-debian.lock
flock "$lock"
echo "Installing Debian packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# The lists of a fresh machine may be old or absent: only then are they fetched.
$install </dev/null >/dev/null 2>&1 || { apt-get update </dev/null >/dev/null && $install </dev/null; }
