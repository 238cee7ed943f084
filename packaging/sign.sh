#!/bin/bash
# sign.sh FOLDER   signs every rpm in FOLDER, and the digest of the image that is in a *_oci.digest, with the secret key in GNUPGHOME, which has no
# passphrase and is the only one there
#
# Signatures have the time SOURCE_DATE_EPOCH, or that of the key where the key is younger: the same files and the same key give the same bytes.
# `rpmsign --delsign` gives the rpm as it was built.
set -euo pipefail
export LC_ALL=C
cd "$1"
shopt -s nullglob

keys=$(gpg --batch --with-colons --list-secret-keys)
[ "$(grep -c '^sec:' <<<"$keys")" = 1 ] || { echo "sign: want one secret key, and there are $(grep -c '^sec:' <<<"$keys" || :)" >&2; exit 1; }
key=$(awk -F: '$1 == "fpr" {print $10; exit}' <<<"$keys")
at=$(awk -F: -v at="$SOURCE_DATE_EPOCH" '($1 == "sec" || $1 == "ssb") && $6 > at {at = $6} END {print at}' <<<"$keys")
options=(--batch --yes --quiet --pinentry-mode loopback --passphrase '' --faked-system-time "$at!")

packages=(*.rpm)
if [ ${#packages[@]} != 0 ]; then
  said=$(rpmsign --define "__gpg $(command -v gpg)" --define "_gpg_name $key" --define "_gpg_sign_cmd_extra_args ${options[*]@Q}" --addsign "${packages[@]}" 2>&1) || { echo "$said" >&2; exit 1; }
fi
for digest in *_oci.digest; do
  gpg "${options[@]}" --armor --detach-sign --local-user "$key" --output "$digest.asc" "$digest" 2>/dev/null # it warns of the time
done
