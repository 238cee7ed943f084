#!/bin/bash
# build.sh [FOLDER]   builds the packages (deb and rpm, amd64 and arm64), their SBOMs and SHA256SUMS into FOLDER, dist by default
#
# The same source, VERSION and SOURCE_DATE_EPOCH give the same bytes, wherever the tree lies. VERSION is the one that the program tells
# (git describe by default); packages have it in the form that dpkg and rpm sort. ARCHITECTURES="amd64" builds less. SOURCE_DATE_EPOCH is the last commit's time.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(realpath --canonicalize-missing "${1:-dist}")

version=${VERSION:-$(git describe --tags --always --dirty)}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
MTIME=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)

package_version() { # v1.2.0 is 1.2.0, v1.2.0-rc.1 comes before it and v1.2.0-4-g123abc after it; without a tag, before everything
  case $1 in
  v[0-9]*-[0-9]*-g*) sed -E 's/^v//; s/-([0-9]+)-g([0-9a-f]+)(-dirty)?$/+\1.\2\3/; s/-dirty$/.dirty/; s/-/~/g' <<<"$1" ;;
  v[0-9]*) sed -E 's/^v//; s/-dirty$/+dirty/; s/-/~/g' <<<"$1" ;;
  *) echo "0~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S).${1//-/.}" ;;
  esac
}
PACKAGE_VERSION=$(package_version "$version")
BUILD=$(mktemp -d)
trap 'rm -rf "$BUILD"' EXIT
export PACKAGE_VERSION
ln -s "$PWD" "$BUILD/tree"
# Nothing of the caller's may change what is built. No -buildvcs: a tree without git gives the same binary.
export CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false -mod=readonly' GOWORK=off GOAMD64=v1 GOARM64=v8.0
umask 022
unset GOOS GOARCH

go build -C packaging/tools -o "$BUILD/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm
go build -o "$BUILD/bill" ./packaging/bill
go build -o "$BUILD/native" ./cmd/kubelet-supervisor
"$BUILD/native" package-files "$BUILD/files"
gzip -9n "$BUILD"/files/man/*.8
gzip -9nc CHANGELOG.md >"$BUILD/changelog.gz"
cat >"$BUILD/changelog.yaml" <<YAML
- semver: $PACKAGE_VERSION-1
  date: $MTIME
  packager: The kubelet-supervisor authors <kubelet-supervisor@users.noreply.github.com>
  deb: {urgency: medium, distributions: [stable]}
  changes:
    - note: Version $version; the changes are in changelog.gz and CHANGELOG.md.
YAML

mkdir -p "$folder"
rm -f "$folder"/kubelet-supervisor[_-]*.{deb,rpm,json} "$folder/SHA256SUMS"
for ARCH in ${ARCHITECTURES:-amd64 arm64}; do
  export ARCH
  GOOS=linux GOARCH=$ARCH go build -ldflags "-s -w -X main.version=$version" -o "$BUILD/kubelet-supervisor" ./cmd/kubelet-supervisor
  "$BUILD/bill" "$BUILD/kubelet-supervisor" "$version" "$folder/kubelet-supervisor_${PACKAGE_VERSION}_$ARCH.cdx.json" "$BUILD/licences.txt"
  gzip -9nkf "$BUILD/licences.txt"
  for format in deb rpm; do
    (cd "$BUILD" && ./nfpm package --config tree/packaging/nfpm.yaml --packager "$format" --target "$folder/")
  done
done
cd "$folder"
sha256sum kubelet-supervisor[_-]*.{deb,rpm,json} >SHA256SUMS
cat SHA256SUMS
