#!/bin/bash
set -e
function require_ev_all() {
	for rev in "$@"; do
		if [[ -z "${!rev}" ]]; then
			echo "${rev}" is not set
			exit 1
		fi
	done
}
KUBELET_IMAGE="${KUBELET_IMAGE:-${KUBELET_IMAGE_URL}:${KUBELET_IMAGE_TAG}}"
require_ev_all KUBELET_IMAGE
mkdir --parents /etc/kubernetes
mkdir --parents /var/lib/kubelet
RKT="${RKT:-/usr/bin/rkt}"
RKT_STAGE1_ARG="${RKT_STAGE1_ARG:---stage1-from-dir=stage1-fly.aci}"
set -x
exec /usr/bin/rkt ${RKT_GLOBAL_ARGS} \
	run ${RKT_RUN_ARGS} \
	--volume etc-kubernetes,kind=host,source=/etc/kubernetes,readOnly=false \
	${RKT_STAGE1_ARG} \
	${KUBELET_IMAGE} \
		--exec=/kubelet -- "$@"
