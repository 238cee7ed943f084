#!/bin/bash
# tree.sh FOLDER VERSION...   clones this tree into FOLDER, with a commit whose CHANGELOG has a heading for each version, and their tags
#
# The commit is the same wherever and whenever it is made. The first version gets what is under Unreleased.
set -euo pipefail
folder=$(realpath --canonicalize-missing "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
shift
git clone --quiet . "$folder"
cd "$folder"
headings="## ${1#v}"
for version in "${@:2}"; do headings="## ${version#v}\n\n### Changed\n\n- The version.\n\n$headings"; done
sed -i "0,/^## Unreleased/s//$headings/" CHANGELOG.md
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@example.org GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@example.org
export GIT_AUTHOR_DATE='2026-01-02T03:04:05Z' GIT_COMMITTER_DATE='2026-01-02T03:04:05Z'
git commit --quiet --all --message 'a release'
for version; do git tag "$version"; done
