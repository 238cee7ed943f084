#!/bin/bash
# release.sh FOLDER   makes all that is published of VERSION into FOLDER, which must not exist
#
# It is for a clean tree at the tag VERSION (v1.2.3, v1.2.3-rc.1), with a heading of that version in CHANGELOG.md.
#
#   MINISIGN_KEY  a file with a secret key of minisign; it signs SHA256SUMS. minisign asks for its password, if it has one
#   OPENPGP_KEY   a file with a secret key of OpenPGP, without a passphrase; it signs the rpms, the repositories for apt and dnf, and the digest of the
#                 image
#
# Without keys nothing is signed, and the last line says so. The same tag gives the same bytes where Go and the Debian packages that provenance.intoto.json
# names are the same; signatures that stand in files of their own have a time, and are not in SHA256SUMS. Rpms have theirs inside: see sign.sh.
set -euo pipefail
export LC_ALL=C
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/.."
die() { echo "release: $*" >&2; exit 1; }
steps='"How to release" in CONTRIBUTING.md'

[ $# = 1 ] || die "say where to: release.sh FOLDER"
folder=$(realpath --canonicalize-missing "$1")
version=${VERSION:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || die "VERSION is ${version:-not set}; it has to be like v1.2.3 or v1.2.3-rc.1"
[ ! -e "$folder" ] || die "$folder is there already; a release is made into a new folder"
[ -z "$(git status --porcelain)" ] || die "the tree is not clean: commit or remove what git status shows"
commit=$(git rev-parse HEAD)
[ "$(git rev-parse --verify --quiet "refs/tags/$version^{commit}")" = "$commit" ] || die "HEAD is not the tag $version: check it out, or make it as step 3 of $steps says"
notes=$(awk -v heading="## ${version#v}" '$1 " " $2 == heading {on = 1; next} /^## / {on = 0} on' CHANGELOG.md)
[ -n "${notes//[[:space:]]/}" ] || die "CHANGELOG.md says nothing under the heading \"## ${version#v}\", which step 1 of $steps makes of \"## Unreleased\""
for key in MINISIGN_KEY OPENPGP_KEY; do
  [ -n "${!key:-}" ] || continue
  [ -r "${!key}" ] || die "$key: there is no key in ${!key}; step 4 of $steps makes one"
  printf -v "$key" %s "$(realpath "${!key}")"
done
test/parts/debian.sh apt-utils createrepo-c gpg gpg-agent jq minisign rpm
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

VERSION=$version packaging/build.sh "$folder" >/dev/null
rm "$folder/SHA256SUMS" # one for all comes last
printf '%s\n' "$notes" | sed -e '/./,$!d' >"$folder/notes.md"

join() { # FILE… : one file of several
  local separator=
  for file; do
    printf '%s' "$separator"
    cat "$file"
    separator=$'---\n'
  done
}
shopt -s extglob
join deploy/manifests/!(kustomization).yaml >"$folder/kubelet-supervisor_$version.yaml"
join deploy/manifests/controller/crd.yaml >"$folder/kubelet-supervisor-crd_$version.yaml"
# By its digest the image is the one that is signed below, wherever it is pulled from.
image=$folder/kubelet-supervisor-controller_${version}_oci
digest=$(tar --extract --to-stdout --file "$image.tar" index.json | jq --raw-output 'if (.manifests | length) == 1 then .manifests[0].digest else error("not one image") end')
[[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || die "the image has the digest $digest"
echo "$digest" >"$image.digest"
join deploy/manifests/controller/{crd,rbac,policies,flow,networkpolicy,deployment}.yaml |
  sed "s|image: kubelet-supervisor-controller\$|&:$version@$digest|" >"$folder/kubelet-supervisor-controller_$version.yaml"
grep -q "image: kubelet-supervisor-controller:$version@$digest\$" "$folder/kubelet-supervisor-controller_$version.yaml" || die "deployment.yaml no longer names the image"

# The repositories have links of their own to the packages, so that each folder can be served as it is.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "${OPENPGP_KEY:-}" ]; then
  export GNUPGHOME=$work/gnupg
  mkdir -m 700 "$GNUPGHOME"
  gpg --batch --quiet --import "$OPENPGP_KEY"
  gpg --batch --armor --export >"$folder/kubelet-supervisor.asc" # for signed-by and gpgkey
  packaging/sign.sh "$folder"
fi
sign() { [ -z "${OPENPGP_KEY:-}" ] || gpg --batch --yes --quiet --pinentry-mode loopback --passphrase '' "$@"; }

mkdir -p "$folder"/apt/pool
ln "$folder"/*.deb "$folder/apt/pool/"
(
  cd "$folder/apt"
  for architecture in amd64 arm64; do
    binary=dists/stable/main/binary-$architecture
    mkdir -p "$binary"
    apt-ftparchive --arch "$architecture" packages pool >"$binary/Packages"
    gzip -9nk "$binary/Packages"
  done
  date=$(date -u -R -d "@$SOURCE_DATE_EPOCH")
  apt-ftparchive -o APT::FTPArchive::Release::Origin=kubelet-supervisor -o APT::FTPArchive::Release::Suite=stable -o APT::FTPArchive::Release::Codename=stable \
    -o APT::FTPArchive::Release::Architectures="amd64 arm64" -o APT::FTPArchive::Release::Components=main release dists/stable |
    sed "s/^Date: .*/Date: $date/" >"$work/Release"
  mv "$work/Release" dists/stable/Release
  sign --clearsign --output dists/stable/InRelease dists/stable/Release
  sign --armor --detach-sign --output dists/stable/Release.gpg dists/stable/Release
)
mkdir -p "$folder/yum"
ln "$folder"/*.rpm "$folder/yum/"
touch --date="@$SOURCE_DATE_EPOCH" "$folder"/yum/*.rpm # the index has it
createrepo_c --quiet --no-database --revision "$SOURCE_DATE_EPOCH" --set-timestamp-to-revision "$folder/yum"
sign --armor --detach-sign --output "$folder/yum/repodata/repomd.xml.asc" "$folder/yum/repodata/repomd.xml"

materials() { # what the bytes depend on beside the commit, as JSON: Go, the modules of what is released and of what makes it, and programs of this machine
  local file package system
  jq -n --arg go "$(go env GOVERSION)" '{uri: "pkg:golang/stdlib@\($go)"}'
  while read -r file; do
    jq -n --arg name "$file" --arg sha256 "$(sha256sum <"$file" | cut -d ' ' -f 1)" '{$name, digest: {$sha256}}'
  done < <(git ls-files go.sum 'packaging/*/go.sum')
  system=$(sed -n 's/^ID=//p' /etc/os-release | tr -d '"')
  for package in apt-utils createrepo-c gzip jq squashfs-tools tar zlib1g; do
    jq -n --arg package "$system/$package" --arg version "$(dpkg-query -W -f '${Version}' "$package")" '{uri: "pkg:deb/\($package)@\($version | @uri)"}'
  done
}
materials >"$work/materials"

# What was built from what, as SLSA's provenance has it: https://slsa.dev/spec/v1.0/provenance
cd "$folder"
list() { find . -type f ! -name SHA256SUMS ! -name '*.minisig' ! -name '*.asc' ! -name InRelease ! -name Release.gpg -printf '%P\n' | sort | xargs -d '\n' sha256sum; }
list >"$work/subjects"
jq --raw-input --slurp --sort-keys --arg version "$version" --arg commit "$commit" --slurpfile materials "$work/materials" '
  {
    _type: "https://in-toto.io/Statement/v1",
    subject: (split("\n") | map(select(. != "") | capture("^(?<sha>[0-9a-f]+) .(?<name>.+)$")) | map({name, digest: {sha256: .sha}})),
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "https://github.com/kubelet-supervisor/kubelet-supervisor/blob/main/packaging/release.sh",
        externalParameters: {version: $version},
        resolvedDependencies: ([
          {uri: "git+https://github.com/kubelet-supervisor/kubelet-supervisor@refs/tags/\($version)", digest: {gitCommit: $commit}}
        ] + $materials)
      },
      runDetails: {builder: {id: "https://github.com/kubelet-supervisor/kubelet-supervisor/blob/main/CONTRIBUTING.md#how-to-release"}}
    }
  }' "$work/subjects" >provenance.intoto.json
list >SHA256SUMS
if [ -n "${MINISIGN_KEY:-}" ]; then
  minisign -S -s "$MINISIGN_KEY" -m SHA256SUMS -t "kubelet-supervisor $version" >/dev/null
fi
echo "$version of commit $commit is in $folder: $(wc -l <SHA256SUMS) files."
[ -n "${MINISIGN_KEY:-}" ] || echo "NOT SIGNED: MINISIGN_KEY names no key, so nobody can tell who made SHA256SUMS."
[ -n "${OPENPGP_KEY:-}" ] || echo "NOT SIGNED: OPENPGP_KEY names no key, so apt and dnf will trust neither the repositories nor the rpms, and nobody can tell who made the image."
