#!/bin/sh
exec /usr/bin/kubelet "$@" \
	--config=/etc/kubernetes/kubelet.yaml
