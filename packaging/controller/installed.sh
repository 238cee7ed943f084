#!/bin/sh
# After installing and upgrading. Nothing is enabled or started: it needs a kubeconfig first. One that runs is restarted with the new version,
# which harms no node: another one leads meanwhile, or nobody.
# deb: configure [VERSION-BEFORE]; rpm: the number of versions that are installed then.
set -e

[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload || :
systemctl try-restart kubelet-supervisor-controller.service || :
