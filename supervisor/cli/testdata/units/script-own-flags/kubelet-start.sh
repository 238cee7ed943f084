#!/bin/bash
set -o errexit
source /etc/kubernetes/kubelet.env
exec /usr/bin/kubelet --config=/etc/kubernetes/kubelet.yaml --kubeconfig=/etc/kubernetes/kubelet.conf --node-ip="${NODE_IP}"
