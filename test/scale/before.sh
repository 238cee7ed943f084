#!/bin/bash
# before.sh COMMIT FILE: builds test/scale/scalehost as it is here with the package supervisor of another commit, into FILE.
set -euo pipefail
commit="$1" file="$(realpath "$2")"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
git archive "$commit" | tar -x -C "$folder"
mkdir -p "$folder/test/scale"
rm -rf "$folder/test/scale/scalehost"
cp -r test/scale/scalehost "$folder/test/scale/"
cd "$folder"
CGO_ENABLED=0 go build -trimpath -o "$file" ./test/scale/scalehost
