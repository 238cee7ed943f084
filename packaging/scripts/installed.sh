#!/bin/sh
# After installing and upgrading. A kubelet is never restarted here: a supervisor that runs goes over to the new binary by itself.
# deb: configure [VERSION-BEFORE]; rpm: the number of versions that are installed then.
set -e

[ -d /run/systemd/system ] || exit 0

# A unit that systemd could not start the supervisor for runs without it until the next boot. Where the program answers again, until its next start.
# Not its exit code: the shell runs an empty file without an error.
back=
for file in /run/systemd/system.control/*.service.d/zz-kubelet-supervisor.conf; do
  [ -e "$file" ] || continue
  case $(kubelet-supervisor version 2>/dev/null) in
  "kubelet-supervisor "*) ;;
  *) break ;;
  esac
  rm -f "$file"
  rmdir "${file%/*}" 2>/dev/null || :
  unit=${file%.d/*}
  unit=${unit##*/}
  back="$back $unit "
  [ -e /etc/kubelet-supervisor/disabled ] || echo "kubelet-supervisor: $unit runs without the supervisor until its next start: systemctl restart $unit" >&2
done

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
  case $back in
  *" $unit "*) continue ;;
  esac
  systemctl --quiet is-active "$unit" || continue
  systemctl reload "$unit" || echo "kubelet-supervisor: $unit goes on as it runs, with another version or without the supervisor: see systemctl status $unit" >&2
done
