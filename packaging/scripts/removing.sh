#!/bin/sh
# Before the files of a version are removed. Only where no other version follows, the kubelet gets its own unit back.
# deb: remove | upgrade | deconfigure | failed-upgrade; rpm: the number of versions that are left then.
set -e

case $1 in
remove | 0) ;;
*) exit 0 ;;
esac

if [ -d /run/systemd/system ]; then
  for file in /etc/systemd/system/*.service.d/zz-kubelet-supervisor.conf; do
    [ -e "$file" ] || continue
    unit=${file%.d/*}
    kubelet-supervisor disable --unit="${unit##*/}"
  done
  kubelet-supervisor disable >/dev/null
else
  rm -f /etc/systemd/system/*.service.d/zz-kubelet-supervisor.conf
fi
