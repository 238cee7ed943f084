#!/bin/bash
# lint.sh [FOLDER]   lintian and rpmlint on the packages that build.sh made; what is not as they ask is in lintian-overrides and
# rpmlint.toml, with the reason. Then the system extensions have to be ones, and the plugin is installed from its archive as the Krew manifest says, and asked for its version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-dist}

failed=0
# As root lintian only says that it is not recommended.
lintian --allow-root --fail-on error,warning --display-level '>=warning' "$folder"/*.deb || failed=1
for package in "$folder"/*.rpm; do # one at a time: two architectures at once would look like files in each other's way
  words=$(rpmlint --config packaging/rpmlint.toml "$package" 2>&1 || :)
  [[ $words = *" 0 errors, 0 warnings"* ]] || { echo "$words"; failed=1; }
done
[ "$failed" = 0 ] || { echo "The packages are not clean." >&2; exit 1; }
echo "lintian and rpmlint find nothing in $(find "$folder" -name '*.deb' -o -name '*.rpm' | wc -l) packages."

for extension in "$folder"/*.sysext.raw; do
  # A system extension has /usr alone; systemd-sysext reads its release file by the name that the image has on the host. Nothing of systemd's
  # is in it, neither unit nor drop-in nor preset: merging it changes nothing.
  architecture=arm64
  [[ $extension != *_amd64.* ]] || architecture=x86-64
  release=$(unsquashfs -cat "$extension" usr/lib/extension-release.d/extension-release.kubelet-supervisor)
  files=$(unsquashfs -llnumeric "$extension")
  if [ "$release" != "ID=_any"$'\n'"ARCHITECTURE=$architecture" ] || grep -vE ' 0/0 .* squashfs-root(/usr(/.*)?)?$' <<<"$files" ||
    grep '/systemd/' <<<"$files" ||
    ! grep -q '^-rwxr-xr-x .*/usr/bin/kubelet-supervisor$' <<<"$files"; then
    echo "$extension is not as a system extension is to be." >&2
    exit 1
  fi
  labels=$(fakeroot packaging/extension/labels.sh "$extension")
  if [ "$(wc -l <<<"$labels")" != "$(($(wc -l <<<"$files") - 1))" ] || grep -vE '^usr[^ ]* system_u:object_r:(usr|lib|bin)_t:s0$' <<<"$labels" ||
    ! grep -qx 'usr/bin/kubelet-supervisor system_u:object_r:bin_t:s0' <<<"$labels"; then
    echo "$extension has not on every file the label that lets a host with SELinux execute it:"$'\n'"$labels" >&2
    exit 1
  fi
  echo "$extension is a system extension for $architecture, with labels of SELinux."
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=$(sed -n "s,^    uri: .*/\(.*_linux_$(go env GOARCH).tar.gz\)\$,\1,p" "$folder/kubelet.yaml")
grep -q "^    sha256: $(sha256sum "$folder/$archive" | cut -d ' ' -f 1)\$" "$folder/kubelet.yaml" || { echo "The Krew manifest has another checksum than $archive." >&2; exit 1; }
tar -xzf "$folder/$archive" -C "$work"
bin=$(sed -n 's/^  - bin: //p' "$folder/kubelet.yaml" | grep -v '\.exe$' | sort -u)
echo "The plugin of $archive says $("$work/$bin" --version)."
