#!/bin/sh
# Before the files of a version are removed. Only where no other version follows, the kubelet gets its own unit back.
# deb: remove | upgrade | deconfigure | failed-upgrade; rpm: the number of versions that are left then.
set -e

case $1 in
remove | 0) ;;
*) exit 0 ;;
esac

# made_by_enable tells whether enable has written the file.
made_by_enable() {
  line=
  [ ! -e "$1" ] || read -r line <"$1" || :
  case $line in
  "# Made by kubelet-supervisor enable"*) return 0 ;;
  esac
  return 1
}

# step_back removes what kept a unit without the supervisor.
step_back() {
  rm -f "/run/systemd/system.control/$1.d/zz-kubelet-supervisor.conf"
  rmdir "/run/systemd/system.control/$1.d" 2>/dev/null || :
}

# give_back does what disable does, as far as that goes without the program. Limits of cgroups that the kubelet has written stay.
give_back() {
  for file in /etc/systemd/system/*.service.d/zz-kubelet-supervisor.conf; do
    made_by_enable "$file" || continue
    unit=${file%.d/*}
    unit=${unit##*/}
    rm -f "$file"
    rmdir "${file%/*}" 2>/dev/null || :
    step_back "$unit"
    systemctl daemon-reload || :
    [ "$(systemctl is-active "$unit")" != inactive ] || continue
    echo "kubelet-supervisor: systemctl restart $unit, because the program is gone: the kubelet runs as its own unit says" >&2
    systemctl restart "$unit" || echo "kubelet-supervisor: $unit does not start: see systemctl status $unit" >&2
  done
  own=/etc/systemd/system/kubelet-supervisor.service
  made_by_enable "$own" || return 0
  systemctl disable --now "${own##*/}" || :
  rm -f "$own"
  step_back "${own##*/}"
}

if [ -d /run/systemd/system ]; then
  # Not its exit code: the shell runs an empty file, as a full disk leaves one, without an error.
  case $(kubelet-supervisor version 2>/dev/null) in
  "kubelet-supervisor "*) ;;
  *)
    give_back
    exit 0
    ;;
  esac
  for file in /etc/systemd/system/*.service.d/zz-kubelet-supervisor.conf; do
    [ -e "$file" ] || continue
    unit=${file%.d/*}
    kubelet-supervisor disable --unit="${unit##*/}"
  done
  kubelet-supervisor disable >/dev/null
else
  rm -f /etc/systemd/system/*.service.d/zz-kubelet-supervisor.conf
fi
