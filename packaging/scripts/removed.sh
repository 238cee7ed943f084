#!/bin/sh
# After the files are gone. What the supervisor knows stays until the package is purged; rpm knows no purge, so there it stays.
# deb: remove | purge | upgrade…; rpm: the number of versions that are left.
set -e

if [ "$1" = purge ]; then
  rm -rf /var/lib/kubelet-supervisor /run/kubelet-supervisor
  rm -f /etc/kubelet-supervisor/disabled
  rmdir /etc/kubelet-supervisor 2>/dev/null || :
fi
case $1 in
remove | purge | 0) [ ! -d /run/systemd/system ] || systemctl daemon-reload || : ;;
esac
