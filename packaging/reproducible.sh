#!/bin/bash
# reproducible.sh [FOLDER]   builds the packages once more, from a copy of the tree elsewhere and without git, and compares them with
# those that build.sh made into FOLDER, byte for byte
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(realpath "${1:-dist}")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- --ignore-failed-read 2>/dev/null | tar --extract --directory "$work/tree"
VERSION=${VERSION:-$(git describe --tags --always --dirty)} SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} \
  "$work/tree/packaging/build.sh" "$work/again" >/dev/null
diff "$folder/SHA256SUMS" "$work/again/SHA256SUMS" || { echo "The packages differ when they are built elsewhere." >&2; exit 1; }
(cd "$folder" && sha256sum --check --quiet SHA256SUMS)
echo "Built twice, in two folders: $(wc -l <"$folder/SHA256SUMS") equal files."
