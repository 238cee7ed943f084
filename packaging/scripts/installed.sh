#!/bin/sh
# After installing and upgrading. A kubelet is never restarted here: a supervisor that runs goes over to the new binary by itself.
# deb: configure [VERSION-BEFORE]; rpm: the number of versions that are installed then.
set -e

[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload || :
[ "$1" = configure ] && [ -z "$2" ] && exit 0
[ "$1" = 1 ] && exit 0
[ -e /etc/kubelet-supervisor/disabled ] && exit 0

for unit in kubelet-supervisor.service /etc/systemd/system/*.service.d/zz-kubelet-supervisor.conf; do
  case $unit in
  */*)
    [ -e "$unit" ] || continue
    unit=${unit%.d/*}
    unit=${unit##*/}
    ;;
  esac
  systemctl --quiet is-active "$unit" || continue
  systemctl reload "$unit" || echo "kubelet-supervisor: $unit goes on with the version that it runs: see systemctl status $unit" >&2
done
