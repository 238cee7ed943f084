#!/bin/bash
# build.sh [FOLDER]   builds the packages (deb and rpm, amd64 and arm64) of kubelet-supervisor, of its controller and of the plugin kubectl-kubelet, the deb
# kubelet-supervisor-apt, the plugin's archives for Linux, macOS and Windows with their Krew manifest, the controller's image, the mixin, system extensions for hosts without packages, the SBOMs and
# SHA256SUMS into FOLDER, dist by default
#
# The same source, VERSION and SOURCE_DATE_EPOCH give the same bytes, wherever the tree lies. VERSION is the one that the program tells
# (git describe by default); packages have it in the form that dpkg and rpm sort. ARCHITECTURES="amd64" and
# PROGRAMS="kubelet-supervisor" and SYSTEMS="linux" build less. SOURCE_DATE_EPOCH is the last commit's time.
#
# It is not goreleaser: v2.18.2 needs Go 1.27, and does not make repositories for apt and dnf or minisign's signatures as release.sh does.
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
# Nothing of the caller's may change what is built. No -buildvcs: a tree without git gives the same binary.
export CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false -mod=readonly' GOWORK=off GOAMD64=v1 GOARM64=v8.0
umask 022
test/parts/debian.sh squashfs-tools
unset GOOS GOARCH TEST_LDFLAGS

go build -C packaging/tools -o "$BUILD/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm
go build -o "$BUILD/" ./packaging/bill ./packaging/krew
go build -o "$BUILD/label" ./packaging/extension
go build -C packaging/image -o "$BUILD/image" .
go build -C packaging/mixin -o "$BUILD/mixin" .

prepare() { # PROGRAM SECTION: a folder for the program, with what is the same on every architecture
  local here="$BUILD/$1"
  mkdir "$here"
  ln -s "$PWD" "$here/tree"
  go build -o "$here/native" "./cmd/$1"
  HOME='~' "$here/native" package-files "$here/files" # the home folder is a default of kubectl's flags
  gzip -9n "$here"/files/man/*."$2"
  gzip -9nc CHANGELOG.md >"$here/changelog.gz"
  cat >"$here/changelog.yaml" <<YAML
- semver: $PACKAGE_VERSION-1
  date: $MTIME
  packager: The kubelet-supervisor authors <kubelet-supervisor@users.noreply.github.com>
  deb: {urgency: medium, distributions: [stable]}
  changes:
    - note: Version $version; the changes are in changelog.gz and CHANGELOG.md.
YAML
}

compile() { # PROGRAM: for $GOOS and $ARCH, with the bill of it
  local here="$BUILD/$1" system=
  [ "$GOOS" = linux ] || system=${GOOS}_
  GOARCH=$ARCH packaging/compile.sh "$version" "$here" "$1"
  "$BUILD/bill" "$here/$1" "$version" "$folder/$1_${PACKAGE_VERSION}_$system$ARCH.cdx.json" "$here/licences.txt"
  gzip -9nkf "$here/licences.txt"
}

package() { # PROGRAM NFPM_FILE FORMAT…
  for format in "${@:3}"; do
    (cd "$BUILD/$1" && ../nfpm package --config "tree/packaging/$2" --packager "$format" --target "$folder/")
  done
}

compress() { # FOLDER FILE… : a tar.gz of them, with nothing of this machine in it
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --mode=u+w,go-w,a+rX --directory "$@" | gzip -9n
}

archive() { # what Krew installs
  local here="$BUILD/kubectl-kubelet"
  local files=(LICENSE licences.txt kubectl-kubelet kubectl_complete-kubelet)
  cp LICENSE cmd/kubectl-kubelet/kubectl_complete-kubelet "$here/"
  if [ "$GOOS" = windows ]; then # the completion is a shell's script
    mv "$here/kubectl-kubelet" "$here/kubectl-kubelet.exe"
    files=(LICENSE licences.txt kubectl-kubelet.exe)
  fi
  compress "$here" "${files[@]}" >"$folder/kubectl-kubelet_${version}_${GOOS}_$ARCH.tar.gz"
}

extension() { # for systemd-sysext: /usr alone, of any distribution. It becomes kubelet-supervisor.raw on the host, for its release file has that name
  local here="$BUILD/$program" tree="$BUILD/extension"
  local -A architectures=([amd64]=x86-64 [arm64]=arm64)
  rm -rf "$tree"
  install -D --mode=0755 "$here/$program" "$tree/usr/bin/$program"
  install -D --mode=0644 LICENSE "$tree/usr/share/doc/$program/LICENSE"
  install -D --mode=0644 "$here/licences.txt" "$tree/usr/share/doc/$program/third-party.txt"
  install -D --mode=0644 /dev/stdin "$tree/usr/lib/extension-release.d/extension-release.$program" <<RELEASE
ID=_any
ARCHITECTURE=${architectures[$ARCH]}
RELEASE
  # With labels of SELinux, which mksquashfs before 4.6 takes from nowhere but the files. All times are SOURCE_DATE_EPOCH; -root-time does nothing.
  "$BUILD/label" "$tree" | sqfstar -quiet -no-progress -force -comp gzip -root-mode 0755 "$folder/${program}_${version}_$ARCH.sysext.raw" >/dev/null
}

images=()
image() { # what a node pulls: the binary of each architecture that there is
  local here="$BUILD/$program"
  mkdir "$here/documents"
  cp LICENSE "$here/licences.txt" "$here/documents/"
  "$BUILD/image" --output "$folder/${program}_${version}_oci.tar" --version "$version" --documents "$here/documents" "${images[@]}"
}

programs=${PROGRAMS:-kubelet-supervisor kubectl-kubelet kubelet-supervisor-controller}
mkdir -p "$folder"
rm -f "$folder"/{kubelet-supervisor,kubectl-kubelet}[_-]*.{deb,rpm,json,tar.gz,tar,raw} "$folder"/{kubelet.yaml,SHA256SUMS}
export GOOS=linux ARCH
for program in $programs; do
  case $program in
  kubelet-supervisor | kubelet-supervisor-controller) GOOS='' prepare "$program" 8 ;;
  kubectl-kubelet) GOOS='' prepare "$program" 1 ;;
  *) echo "There is no program $program." >&2; exit 2 ;;
  esac
  for ARCH in ${ARCHITECTURES:-amd64 arm64}; do
    compile "$program"
    case $program in
    kubelet-supervisor) package "$program" nfpm.yaml deb rpm && extension ;;
    kubectl-kubelet) package "$program" kubectl-kubelet/nfpm.yaml deb rpm && archive ;;
    kubelet-supervisor-controller)
      package "$program" controller/nfpm.yaml deb rpm
      cp "$BUILD/$program/$program" "$BUILD/$program/$program.$ARCH"
      images+=("$ARCH=$BUILD/$program/$program.$ARCH")
      ;;
    esac
  done
  case $program in
  kubelet-supervisor) package "$program" apt/nfpm.yaml deb ;;
  kubelet-supervisor-controller) image ;;
  esac
done
for GOOS in ${SYSTEMS:-darwin windows}; do # the plugin, for people's own machines
  [[ $GOOS != linux && " $programs " = *" kubectl-kubelet "* ]] || continue
  for ARCH in ${ARCHITECTURES:-amd64 arm64}; do
    compile kubectl-kubelet
    archive
  done
done
"$BUILD/mixin" --output "$BUILD/rendered"
compress "$BUILD/rendered" . >"$folder/kubelet-supervisor-mixin_$version.tar.gz"
cd "$folder"
shopt -s nullglob
archives=(kubectl-kubelet_*.tar.gz)
# Krew wants the manifest to be named as the plugin.
[ ${#archives[@]} = 0 ] || "$BUILD/krew" "$version" "${archives[@]}" >kubelet.yaml
sha256sum {kubelet-supervisor,kubectl-kubelet}[_-]*.{deb,rpm,json,tar.gz,tar,raw} [k]ubelet.yaml >SHA256SUMS
cat SHA256SUMS
