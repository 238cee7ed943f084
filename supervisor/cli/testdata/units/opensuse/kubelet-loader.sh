#!/bin/sh
# Which kubelet is wanted says KUBELET_VER.
if [ -e /etc/sysconfig/kubelet ]; then
	. /etc/sysconfig/kubelet
fi
if [ -z "$KUBELET_VER" ]; then
	echo "KUBELET_VER is not set" >&2
	exit 1
fi
exec "/usr/bin/kubelet${KUBELET_VER}" "$@"
