#!/bin/bash
# packages.sh PARTS FILE   makes FILE, an ext4 that is a folder for apt: packages of the kubelets of PARTS, of two versions
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
parts=$(realpath "$1") file=$(realpath --canonicalize-missing "$2")

work=$(mktemp -d "$(dirname "$file")/.packages-XXXXXX")
trap 'rm -rf "$work"' EXIT
test/parts/kubelets/deb.sh "$parts" "$work/tree" 1.35.4 1.36.3
(cd "$work/tree" && apt-ftparchive packages . >Packages)
mke2fs -q -t ext4 -L packages -d "$work/tree" "$work/packages.img" 256m >/dev/null
mv "$work/packages.img" "$file"
