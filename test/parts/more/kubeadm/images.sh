#!/bin/bash
# images.sh PARTS FILE   makes FILE, a tar that container runtimes import: the images of kubeadm's static pods, of the programs in PARTS
#
# The images of both versions hold the same programs, those of the newer one: what kubeadm upgrade does to a node is to write other names.
set -euo pipefail
parts=$(realpath "$1") file=$(realpath --canonicalize-missing "$2")
newer=v1.36.3 older=v1.36.2

folder=$(dirname "$file")
mkdir -p "$folder"
work=$(mktemp -d "$folder/.images-XXXXXX")
trap 'rm -rf "$work"' EXIT
images=()

image() { # PROGRAM FILE TAG...: one of one layer, with one program
  local program=$1 file=$2 hash tags
  shift 2
  install -D "$file" "$work/layer/usr/local/bin/$program"
  mkdir --mode=1777 "$work/layer/tmp"
  tar -C "$work/layer" --owner=0 --group=0 --mtime=@0 -cf "$work/$program.tar" .
  rm -r "$work/layer"
  hash=$(sha256sum "$work/$program.tar" | cut -d' ' -f1)
  printf '{"architecture":"%s","os":"linux","config":{"Env":["PATH=/usr/local/bin"],"Entrypoint":["/usr/local/bin/%s"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{}]}' \
    "$(go env GOARCH)" "$program" "$hash" >"$work/$program.json"
  tags=$(printf '"registry.k8s.io/%s",' "$@")
  images+=("{\"Config\":\"$program.json\",\"RepoTags\":[${tags%,}],\"Layers\":[\"$program.tar\"]}")
}

for program in kube-apiserver kube-controller-manager kube-scheduler; do
  image "$program" "$parts/$program-1.36.3" "$program:$newer" "$program:$older"
done
image etcd "$parts/etcd" "$("$parts/kubeadm-1.36.3" config images list --kubernetes-version "$newer" | sed -n 's|^registry.k8s.io/\(etcd:.*\)|\1|p')"
(IFS=,; echo "[${images[*]}]" >"$work/manifest.json")
tar -C "$work" -cf "$work/images.tar" --exclude=images.tar .
mv "$work/images.tar" "$file"
