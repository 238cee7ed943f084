#!/bin/bash
# releases.sh FOLDER VERSION...   makes a release of each version into FOLDER/VERSION, all of one commit and signed with the keys in FOLDER/keys
#
# The last one has the plugin's archives for all systems, the others those for Linux alone: each other system takes minutes to compile.
# FOLDER/tree.git is what they are made of, and FOLDER/fake the fake kubelet. What FOLDER had before is removed.
set -euo pipefail
folder=$(realpath --canonicalize-missing "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
shift
rm -rf "$folder"
mkdir -p "$folder/keys"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
./tree.sh "$work/tree" "$@"
git clone --quiet --bare "$work/tree" "$folder/tree.git"
(
  cd "$folder/keys"
  minisign -G -W -p kubelet-supervisor.pub -s secret >/dev/null
  GNUPGHOME=$(mktemp -d) # short enough for its sockets
  export GNUPGHOME
  trap 'gpgconf --kill all; rm -rf "$GNUPGHOME"' EXIT
  gpg --batch --quiet --passphrase '' --quick-generate-key 'test <test@example.org>' ed25519 sign never
  gpg --batch --armor --export-secret-keys >openpgp
)
for version; do
  systems=linux
  [ "$version" != "${!#}" ] || systems='linux darwin windows'
  SYSTEMS=$systems VERSION=$version MINISIGN_KEY=$folder/keys/secret OPENPGP_KEY=$folder/keys/openpgp "$work/tree/packaging/release.sh" "$folder/$version"
done
CGO_ENABLED=0 go build -trimpath -o "$folder/fake" ../fakekubelet
