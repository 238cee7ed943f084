#!/bin/sh
# After the files are gone. The kubeconfig is the administrator's, and stays.
# deb: remove | purge | upgrade…; rpm: the number of versions that are left.
set -e

case $1 in
remove | purge | 0) [ ! -d /run/systemd/system ] || systemctl daemon-reload || : ;;
esac
