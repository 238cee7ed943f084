#!/bin/sh
# Before the files of a version are removed. Where no other version follows, it is stopped. The nodes go on with what they were assigned.
# deb: remove | upgrade | deconfigure | failed-upgrade; rpm: the number of versions that are left then.
set -e

case $1 in
remove | 0) ;;
*) exit 0 ;;
esac
[ ! -d /run/systemd/system ] || systemctl disable --now kubelet-supervisor-controller.service || :
