#!/bin/sh
# Before the files of a version are unpacked. Earlier versions shipped kubelet-supervisor.service, and dpkg and rpm take it away with them. A node
# that uses it keeps it, as one that enable has written.
# deb: install | upgrade, with the version before; rpm: the number of versions that are installed then.
set -e

shipped=/usr/lib/systemd/system/kubelet-supervisor.service
kept=/etc/systemd/system/kubelet-supervisor.service
link=/etc/systemd/system/multi-user.target.wants/kubelet-supervisor.service

[ -e "$shipped" ] || exit 0
[ ! -e "$kept" ] || exit 0
[ -L "$link" ] || systemctl --quiet is-active kubelet-supervisor.service 2>/dev/null || exit 0
{ echo "# Made by kubelet-supervisor enable." && cat "$shipped"; } >"$kept.new"
mv "$kept.new" "$kept"
[ ! -L "$link" ] || ln -sf "$kept" "$link"
