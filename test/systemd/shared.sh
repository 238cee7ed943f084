#!/bin/bash
# shared.sh FOLDER PARTS   fills the folder that machines see: the packages of two versions, made as those for users are, the fake
# kubelet, and the real kubelet and containerd from PARTS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(realpath --canonicalize-missing "$1") parts=$2

mkdir -p "$folder"
ARCHITECTURES=$(go env GOARCH)
export ARCHITECTURES PROGRAMS="kubelet-supervisor kubelet-supervisor-controller"
VERSION=v0.1.0 packaging/build.sh "$folder/old" >/dev/null & # packing takes one processor
old=$!
# The second version has another flags.env, so that package managers have to decide about an edited one.
later=$(mktemp -d)
trap 'rm -rf "$later"' EXIT
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- --ignore-failed-read 2>/dev/null | tar --extract --directory "$later"
echo "# This line came with version 0.2.0." >>"$later/packaging/flags.env"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) VERSION=v0.2.0 "$later/packaging/build.sh" "$folder/new" >/dev/null
wait "$old"
CGO_ENABLED=0 go build -trimpath -o "$folder/fake" ./test/fakekubelet
cp -u "$parts/kubelet-1.36.3" "$folder/real"
cp -u "$parts/containerd" "$folder/containerd"
