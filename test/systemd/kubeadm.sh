#!/bin/bash
# kubeadm.sh FOLDER PARTS   fills the folder that the machines of make test-kubeadm see: what shared.sh makes, and from PARTS kubeadm, two
# kubelets as packages, a container runtime, and the images that kubeadm's static pods are made of
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(realpath --canonicalize-missing "$1") parts=$2

test/systemd/shared.sh "$folder" "$parts"
for file in containerd-shim-runc-v2 ctr; do cp -u "$parts/$file" "$folder/$file"; done
cp -u "$parts/kubeadm-1.36.3" "$folder/kubeadm"
cp -u "$parts/kubectl-1.36.3" "$folder/kubectl"
cp -u "$parts/pause.tar" "$folder/pause.tar"
cp -r deploy/manifests "$folder/"

test/parts/kubelets/deb.sh "$parts" "$folder" 1.35.4 1.36.3
test/parts/more/kubeadm/images.sh "$parts" "$folder/images.tar"
