#!/bin/bash
# labels.sh IMAGE   prints each path in a squashfs with the label of SELinux that the image has for it, the root aside
#
# Only root may put labels on files: everybody else calls it by fakeroot.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unsquashfs -quiet -no-progress -xattrs -dest "$folder/image" "$1" >/dev/null
cd "$folder/image"
find . -mindepth 1 -printf '%P\n' | sort | while read -r path; do
  echo "$path $(getfattr --no-dereference --only-values --name=security.selinux "$path" 2>/dev/null || echo none)"
done
